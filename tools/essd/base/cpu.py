# SPDX-License-Identifier: BSD-2-Clause
"""The CPU time and the memory that a process has used."""

import os
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def seconds(pid: int) -> float:
    """User and system time of all threads so far, without child processes."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def thread_seconds(pid: int, thread: int) -> float:
    """Time that a thread has run, or was ready to run and waited for a core."""
    fields = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
    return (int(fields[0]) + int(fields[1])) / 1e9


def resident_mib(pid: int) -> float:
    """Resident memory of the process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
