# SPDX-License-Identifier: BSD-2-Clause
"""Which process an id belongs to."""

import os
from dataclasses import dataclass
from pathlib import Path

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


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; none if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def start_time(pid: int) -> int:
    """Start time of a process in clock ticks, which identifies a reused id."""
    fields = stat_fields(pid)
    # A zombie has ended, although its parent has not waited for it yet.
    return int(fields[19]) if fields and fields[0] != "Z" else 0


def is_stopped(pid: int) -> bool:
    """Whether a signal or a debugger has stopped the process."""
    return stat_fields(pid)[:1] in (["T"], ["t"])
