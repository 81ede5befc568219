# SPDX-License-Identifier: BSD-2-Clause
"""Which process an id belongs to."""

import os
from dataclasses import dataclass
from pathlib import Path

ENDED = {"Z", "X"}      # states of threads that do nothing any more
SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")


@dataclass
class Started:
    """A process, as the file state.json of an instance names it."""

    pid: int
    start: int              # start_time()


def find_system_programs() -> None:
    """Look for programs also where Debian has those for administrators, after PATH.

    The launcher does the same; without it, an ordinary user has no mksquashfs or modprobe.
    """
    folders = os.environ.get("PATH", os.defpath).split(":")
    os.environ["PATH"] = ":".join([*folders, *(x for x in SYSTEM_FOLDERS
                                               if x not in folders)])


def stat_fields(of: int | Path) -> list[str]:
    """The fields of the stat file of a process or of a thread's folder, from the state on;
    none if there is no such process."""
    folder = of if isinstance(of, Path) else Path(f"/proc/{of}")
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def thread_states(pid: int) -> list[str]:
    """The state of each thread of a process."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []
    return [fields[0] for thread in threads if (fields := stat_fields(thread))]


def start_time(pid: int) -> int:
    """Start time of a process in clock ticks, which identifies a reused id; 0: it has ended.

    A zombie has ended, although its parent has not waited for it yet.  But the first thread
    is a zombie, too, when it has ended before the others, which still have all files.
    """
    fields = stat_fields(pid)
    if not fields or (fields[0] in ENDED and set(thread_states(pid)) <= ENDED):
        return 0
    return int(fields[19])


def is_stopped(pid: int) -> bool:
    """Whether a signal or a debugger has stopped the process."""
    return stat_fields(pid)[:1] in (["T"], ["t"])
