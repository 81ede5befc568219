# SPDX-License-Identifier: BSD-2-Clause
"""Which process an id belongs to."""

import os
from pathlib import Path

SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")


def find_system_programs() -> None:
    """Look for programs also where Debian has those for administrators, after PATH.

    The launcher does the same; without it, an ordinary user has no mksquashfs or modprobe.
    """
    folders = os.environ.get("PATH", os.defpath).split(":")
    os.environ["PATH"] = ":".join([*folders, *(x for x in SYSTEM_FOLDERS
                                               if x not in folders)])


def start_time(pid: int) -> int:
    """Start time of a process in clock ticks, which identifies a reused id."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    # A zombie has ended, although its parent has not waited for it yet.
    return 0 if fields[0] == "Z" else int(fields[19])
