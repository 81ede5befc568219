# SPDX-License-Identifier: BSD-2-Clause
"""The firmware under a debugger: gdb, crash dumps, telemetry, and flashing it anew."""
