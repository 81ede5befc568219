# SPDX-License-Identifier: BSD-2-Clause
"""Which process an id belongs to."""

from pathlib import Path


def start_time(pid: int) -> int:
    """Start time of a process in clock ticks, which identifies a reused id."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    # A zombie has ended, although its parent has not waited for it yet.
    return 0 if fields[0] == "Z" else int(fields[19])
