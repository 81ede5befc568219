# SPDX-License-Identifier: BSD-2-Clause
"""One instance: its configuration, and how it is started, asked and stopped."""
