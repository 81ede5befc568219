# SPDX-License-Identifier: BSD-2-Clause
"""Keep the programs that a supervisor runs in memory.

The clock of a machine in QEMU follows real time.  The kernel may drop pages of
QEMU's program that were not used for a while, and must read them from the disk when
they are used again.  On a slow disk this stops the machine for a second or more,
and hosts' timers expire.  Pages that one process
has locked with mlock() stay in memory for all processes that map the same file.
"""

import contextlib
import ctypes
import mmap
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ [1-9]\d* +(/.*)$",
                     re.M)
MAP_FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                       ctypes.c_int, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mlock.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


class Piece(NamedTuple):
    """A part of a program or library that a process has mapped."""

    path: str
    offset: int
    length: int
    is_code: bool


def pieces(maps: str) -> Iterator[Piece]:
    """The parts of files that /proc/PID/maps shows, except those that can be written."""
    for start, end, access, offset, path in MAPPING.findall(maps):
        if "w" not in access and not path.endswith(" (deleted)"):
            yield Piece(path, int(offset, 16), int(end, 16) - int(start, 16), "x" in access)


def lock(piece: Piece) -> bool:
    """Lock a part of a file in memory until this process ends.

    Returns false if it cannot be locked, usually because of RLIMIT_MEMLOCK.
    """
    with open(piece.path, "rb") as file:
        address = _libc.mmap(None, piece.length, mmap.PROT_READ, mmap.MAP_SHARED,
                             file.fileno(), piece.offset)
    if address == MAP_FAILED:
        return False
    if _libc.mlock(address, piece.length) == 0:
        return True
    _libc.munmap(address, piece.length)
    return False


def read_ahead(program: Path) -> None:
    """Have the kernel read the program, so that it starts without waiting for the disk."""
    with contextlib.suppress(OSError), open(program, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


class Resident:
    """What this process has locked."""

    def __init__(self) -> None:
        self.locked: set[Piece] = set()
        self.one_at_a_time = threading.Lock()

    def keep(self, pid: int) -> None:
        """Lock the program and the libraries of a process, code first.

        Waits for the disk.  Stops at the first part that cannot be locked: then the
        limit for locked memory is reached.
        """
        try:
            maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
        except OSError:     # The process has ended.
            return
        # An error means that a file was replaced meanwhile.
        with self.one_at_a_time, contextlib.suppress(OSError):
            for piece in sorted(set(pieces(maps)) - self.locked,
                                key=lambda one: not one.is_code):
                if not lock(piece):
                    return
                self.locked.add(piece)
