# SPDX-License-Identifier: BSD-2-Clause
"""From the options of a command to a configuration, and what it leaves on this computer."""
