# SPDX-License-Identifier: BSD-2-Clause
"""Create the file that holds the drive's media, and check it before use."""

import contextlib
import fcntl
import json
import os
import re
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import files, persisted
from ..base.errors import EssdError

SMALLEST = 64 << 20
LARGEST = 16 << 40
DEFAULT_SIZE = 8 << 30
SECTOR = 4096

FORMATS = ("raw", "qcow2")
RECORD_SUFFIX = ".essd.json"

QCOW2_MAGIC = b"QFI\xfb"
# Magic, version, backing file (offset, length), cluster bits, size.  Since version
# 3, the incompatible features are at byte 72.
QCOW2_HEADER = struct.Struct(">4sIQIIQ40xQ")
QCOW2_EXTERNAL_DATA = 1 << 2

# QEMU locks these bytes of an image (block/file-posix.c, RAW_LOCK_*_BASE).
LOCK_FIRST = 100
LOCK_LAST = 299
LOCK_WRITER = 101       # held by a process that may write
F_OFD_GETLK = 36
FLOCK = "hhqqi4x"       # l_type, l_whence, l_start, l_len, l_pid


class MediaError(EssdError):
    """The media file cannot be used; the text is one line that says why."""


@dataclass(frozen=True)
class Media:
    path: Path
    format: str         # "raw" or "qcow2"
    size: int           # bytes that the drive sees


def parse_size(text: str) -> int:
    """Bytes of a size such as "512M", "8G" or "1T", or of a number of bytes."""
    match = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:i?B)?", text.strip(), re.I)
    if not match:
        raise MediaError(f"{text!r} is not a valid size: write a number with a unit, "
                         "such as 512M, 8G or 1T")
    size = int(match[1]) << (10 * " KMGT".index(match[2].upper() or " "))
    if not SMALLEST <= size <= LARGEST:
        raise MediaError(f"the size {text} is outside 64M to 16T")
    if size % SECTOR:
        raise MediaError(f"the size {text} is not a multiple of {SECTOR} bytes; the nearest "
                         f"is {exact_size(size - size % SECTOR)}")
    return size


def exact_size(size: int) -> str:
    """A size as options take it, such as "300M"."""
    for unit, letter in ((40, "T"), (30, "G"), (20, "M"), (10, "K")):
        if size and size % (1 << unit) == 0:
            return f"{size >> unit}{letter}"
    return str(size)


def show_size(size: int) -> str:
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} bytes"


def create(path: Path, size: int) -> None:
    """Create a sparse raw file; it takes disk space only as it is written."""
    try:
        with open(path, "xb") as file:
            file.truncate(size)
    except FileExistsError:
        raise MediaError(f"cannot create {path}: the file exists already") from None
    except OSError as error:
        path.unlink(missing_ok=True)
        raise MediaError(f"cannot create {path} of {show_size(size)}: "
                         f"{error.strerror}") from None
    try:
        record_format(path, "raw")
    except MediaError:
        path.unlink()
        raise


def is_locked(descriptor: int, first: int = LOCK_FIRST, last: int = LOCK_LAST) -> bool:
    """Whether another process (a QEMU) has the image open for writing."""
    query = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, first, last - first + 1, 0)
    answer = struct.unpack(FLOCK, fcntl.fcntl(descriptor, F_OFD_GETLK, query))
    return bool(answer[0] != fcntl.F_UNLCK)


def is_written(path: Path) -> bool:
    """Whether a QEMU or an essd-nand that writes has the image open; readers do not count."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(
                name, flags | os.O_NONBLOCK)) as file:
            return is_locked(file.fileno(), LOCK_WRITER, LOCK_WRITER)
    except OSError:     # It cannot be read either: essd-nand says why.
        return False


# The format
#
# A host may write anything to its drive, including a qcow2 header that names
# another file of the user.  Therefore the format is not derived from a file's
# content or name: it is decided once and recorded in a second file beside it.

def record_path(path: Path) -> Path:
    return path.with_name(path.name + RECORD_SUFFIX)


def recorded_format(path: Path) -> str | None:
    """The format that is recorded for this file, or None if there is no record."""
    record = record_path(path)
    try:
        found = persisted.parse(record.read_text(encoding="utf-8"), dict[str, Any]).get("format")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, persisted.ShapeError) as error:
        raise MediaError(f"the record {record} of the format of {path.name} cannot be "
                         f"read ({error}): remove the record and give --media-format "
                         "again") from None
    if found not in FORMATS:
        raise MediaError(f"the record {record} contains an unknown format, {found!r}: "
                         "remove the record and give --media-format "
                         f"{' or '.join(FORMATS)}")
    return str(found)


def write_record(path: Path, facts: dict[str, Any]) -> None:
    """Record permanently what a file is."""
    record = record_path(path)
    try:
        files.replace_file(record, json.dumps(facts).encode() + b"\n")
    except OSError as error:
        raise MediaError(f"{record}, the record of {path.name}, cannot be written: "
                         f"{error.strerror}") from None


def record_format(path: Path, kind: str) -> None:
    write_record(path, {"format": kind})


def decide_format(path: Path, asked: str | None) -> str:
    """The format of an existing file: the recorded one, else the user's choice."""
    if asked is not None and asked not in FORMATS:
        raise MediaError(f"--media-format {asked}: must be {' or '.join(FORMATS)}")
    recorded = recorded_format(path)
    if recorded is None and asked is None:
        raise MediaError(
            f"the format of media file {path} is not recorded: give it once with "
            "--media-format raw or --media-format qcow2 (choose qcow2 only if no host "
            "has ever written to the file as raw media)")
    if recorded is not None and asked not in (None, recorded):
        raise MediaError(
            f"media file {path} is recorded as {recorded}, not {asked}: if the file "
            f"has been replaced since, remove {record_path(path)} first")
    return recorded or str(asked)


def qcow2_size(path: Path, descriptor: int) -> int:
    """The size of a qcow2 image as the drive sees it.

    A host cannot change this header, because in a qcow2 image it only reaches
    the clusters.  The header is checked because the user may have got the image
    from somebody else.
    """
    head = os.pread(descriptor, QCOW2_HEADER.size, 0)
    if len(head) < QCOW2_HEADER.size or head[:4] != QCOW2_MAGIC:
        raise MediaError(f"media file {path} is not a qcow2 image")
    _, version, backing, _, _, size, features = QCOW2_HEADER.unpack(head)
    if backing:
        raise MediaError(f"media file {path} has a backing file, which the drive does "
                         "not open: convert it to an image without one with qemu-img "
                         "convert -O qcow2")
    if version >= 3 and features & QCOW2_EXTERNAL_DATA:
        raise MediaError(f"media file {path} keeps its data in another file, which the "
                         "drive does not open: convert it to a self-contained image "
                         "with qemu-img convert -O qcow2")
    return int(size)


@contextlib.contextmanager
def opened(path: Path, what: str) -> Iterator[int]:
    """Open a file of the drive as QEMU would; MediaError says why that is impossible."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise MediaError(f"{what} {path} does not exist") from None
    except IsADirectoryError:
        raise MediaError(f"{what} {path} is a folder") from None
    except PermissionError:
        raise MediaError(f"{what} {path} cannot be opened for reading and writing: "
                         "permission denied") from None
    except OSError as error:
        raise MediaError(f"{what} {path}: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise MediaError(f"{what} {path} is not a regular file")
        if is_locked(descriptor):
            raise MediaError(f"{what} {path} is in use by another process")
        yield descriptor
    finally:
        os.close(descriptor)


def check(path: Path, kind: str) -> Media:
    """Check a file as media of this format; MediaError says why it is unusable."""
    with opened(path, "media file") as descriptor:
        size = (qcow2_size(path, descriptor) if kind == "qcow2"
                else os.fstat(descriptor).st_size)
    if size < SMALLEST:
        raise MediaError(f"media file {path} holds {show_size(size)} as {kind}: "
                         "too small, the minimum is 64 MiB")
    if size > LARGEST:
        raise MediaError(f"media file {path} holds {show_size(size)} as {kind}: "
                         "too large, the maximum is 16 TiB")
    if size % SECTOR:
        raise MediaError(f"media file {path}: its size, {size} bytes, is not a "
                         f"multiple of {SECTOR}")
    return Media(path, kind, size)
