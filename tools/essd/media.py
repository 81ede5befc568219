# SPDX-License-Identifier: BSD-2-Clause
"""The file behind the drive's media: made, measured and checked before use."""

import fcntl
import os
import re
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

SMALLEST = 64 << 20
LARGEST = 16 << 40
DEFAULT_SIZE = 8 << 30
SECTOR = 4096

# QEMU holds its locks on these bytes (block/file-posix.c, RAW_LOCK_*_BASE).
LOCK_FIRST = 100
LOCK_LAST = 299
F_OFD_GETLK = 36
FLOCK = "hhqqi4x"       # l_type, l_whence, l_start, l_len, l_pid


class MediaError(Exception):
    """One clear line on what is wrong with the file."""


@dataclass(frozen=True)
class Media:
    path: Path
    format: str         # "raw" or "qcow2"
    size: int           # bytes that the drive sees


def parse_size(text: str) -> int:
    """Bytes of "512M", "8G", "1T" or a plain number of bytes."""
    match = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:i?B)?", text.strip(), re.I)
    if not match:
        raise MediaError(f"{text!r} is no size: write 512M, 8G, 1T")
    size = int(match[1]) << (10 * " KMGT".index(match[2].upper() or " "))
    if not SMALLEST <= size <= LARGEST:
        raise MediaError(f"a size of {text} is outside 64M to 16T")
    if size % SECTOR:
        raise MediaError(f"a size of {text} is no multiple of {SECTOR} bytes")
    return size


def show_size(size: int) -> str:
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} bytes"


def create(path: Path, size: int) -> None:
    """A raw file without any blocks yet; it takes room as it is written."""
    try:
        with open(path, "xb") as file:
            file.truncate(size)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise MediaError(f"cannot make {path} of {show_size(size)}: "
                         f"{error.strerror}") from None


def is_locked(descriptor: int) -> bool:
    """Whether another process (a QEMU) has the image open for writing."""
    query = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, LOCK_FIRST,
                        LOCK_LAST - LOCK_FIRST + 1, 0)
    answer = struct.unpack(FLOCK, fcntl.fcntl(descriptor, F_OFD_GETLK, query))
    return bool(answer[0] != fcntl.F_UNLCK)


def check(path: Path) -> Media:
    """The file as media, or MediaError with the reason why not."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise MediaError(f"media file {path} does not exist") from None
    except IsADirectoryError:
        raise MediaError(f"media file {path} is a folder") from None
    except PermissionError:
        raise MediaError(f"media file {path} may not be written") from None
    except OSError as error:
        raise MediaError(f"media file {path}: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise MediaError(f"media file {path} is not an ordinary file")
        if is_locked(descriptor):
            raise MediaError(f"media file {path} is in use by another process")
        head = os.pread(descriptor, 32, 0)
        # A host may write such a header, or a whole image, into a raw file:
        # what it wrote must never decide how the file is read the next time.
        looks_qcow2 = head[:4] == b"QFI\xfb"
        if looks_qcow2 and path.suffix not in (".raw", ".qcow2"):
            raise MediaError(f"media file {path} begins like a qcow2 image: name "
                             "it .qcow2 if it is one, .raw if it is not")
        if looks_qcow2 and path.suffix == ".qcow2":
            kind, size = "qcow2", int.from_bytes(head[24:32], "big")
        else:
            kind, size = "raw", os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    if size < SMALLEST:
        raise MediaError(f"media file {path} holds {show_size(size)}: "
                         "too small, the least is 64 MiB")
    if size > LARGEST:
        raise MediaError(f"media file {path} holds {show_size(size)}: "
                         "too large, the most is 16 TiB")
    if size % SECTOR:
        raise MediaError(f"media file {path}: its size, {size} bytes, is no "
                         f"multiple of {SECTOR}")
    return Media(path, kind, size)
