# SPDX-License-Identifier: BSD-2-Clause
"""Command lines of the processes of an instance: drives, hosts and switches."""
