# SPDX-License-Identifier: BSD-2-Clause
"""The CPU time and the memory that a process has used, and what memory there is."""

import contextlib
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def seconds(pid: int) -> float:
    """User and system time of all threads so far, without child processes."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def tree_seconds(pids: Iterable[int]) -> float:
    """The time of these processes and of all that they have started.

    Processes that have ended count once their parent has waited for them.
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
            # User and system time, its own and that of children that it has waited for.
            ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    wanted = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in wanted} - wanted:
        wanted |= more
    return sum(ticks.get(pid, 0) for pid in wanted) / TICK


def thread_seconds(pid: int, thread: int) -> float:
    """Time that a thread has run, or was ready to run and waited for a core."""
    fields = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
    return (int(fields[0]) + int(fields[1])) / 1e9


def resident_mib(pid: int) -> float:
    """Resident memory of the process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@dataclass(frozen=True)
class Spent:
    """What some processes have used, or did so between two readings."""

    cpu_s: float = 0.0
    # Context switches of each thread, voluntary ones and others.
    switches_of: dict[int, int] = field(default_factory=dict)

    @property
    def switches(self) -> int:
        return sum(self.switches_of.values())

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.cpu_s + other.cpu_s, self.switches_of | other.switches_of)

    def __sub__(self, before: "Spent") -> "Spent":
        return Spent(self.cpu_s - before.cpu_s, {
            thread: count - before.switches_of.get(thread, 0)
            for thread, count in self.switches_of.items()})


def cpu_clock(pid: int) -> int:
    """The clock of a process's CPU time, as clock_getcpuclockid() makes it; Python has no
    function for it.  It counts nanoseconds, and threads that have ended, too."""
    return (~pid << 3) | 2


def spent(pid: int) -> Spent:
    """What a process has used so far.

    Switches of threads that have ended do not count: they appear nowhere.
    """
    switches = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            status = (task / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        switches[int(task.name)] = sum(int(n) for n in re.findall(
            r"^(?:non)?voluntary_ctxt_switches:\s+(\d+)", status, re.M))
    return Spent(time.clock_gettime(cpu_clock(pid)), switches)


def memory_mib() -> int:
    """Memory that this machine can give to new programs."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0
