# SPDX-License-Identifier: BSD-2-Clause
"""Firmware ELFs by build ID: symbols for images that run long after they were built.

The linker writes the same build ID into the ELF and into the flat image, so that
what a drive runs leads to the ELF it was made of, whatever was built since.
"""

import os
import shutil
import time
from pathlib import Path

from . import paths
from .errors import EssdError

# An ELF note: length of name and of content, type NT_GNU_BUILD_ID, name.
NOTE = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"
ID_LEN = 20
UNUSED_DAYS = 30


def build_id(data: bytes) -> str | None:
    """The build ID in an ELF, in a flat image or in a drive's memory, in hex."""
    at = data.find(NOTE)
    content = data[at + len(NOTE):at + len(NOTE) + ID_LEN]
    return content.hex() if at >= 0 and len(content) == ID_LEN else None


def kept(identity: str) -> Path:
    """Where the ELF with that build ID is, if it has been kept."""
    return paths.cache() / "elf" / identity / "firmware.elf"


def keep(path: Path) -> Path:
    """Keep a copy of a firmware's ELF; copies unused for a month are dropped."""
    identity = build_id(path.read_bytes())
    if identity is None:
        raise EssdError(f"{path} has no build ID: it cannot be kept for gdb")
    to = kept(identity)
    copy(path, to)
    drop_unused(to.parent.parent)
    return to


def copy(path: Path, to: Path) -> None:
    """Copy an ELF, unless that very ELF is there; readers see all of it or nothing."""
    data = path.read_bytes()
    if to.exists() and build_id(to.read_bytes()) == build_id(data):
        os.utime(to.parent)
        return
    to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = to.with_name(f"{to.name}.{os.getpid()}.new")
    fresh.write_bytes(data)
    fresh.rename(to)


def drop_unused(folder: Path) -> None:
    """Drop what no build and no debugger has asked for in a month."""
    limit = time.time() - UNUSED_DAYS * 24 * 3600
    for old in folder.iterdir():
        if old.stat().st_mtime < limit:
            shutil.rmtree(old, ignore_errors=True)


def find(identity: str) -> Path:
    """The kept ELF with that build ID."""
    path = kept(identity)
    if not path.exists():
        raise EssdError(f"no ELF is kept for the running firmware (build ID {identity}): "
                        "it was not built with this cache; name its ELF with --elf")
    os.utime(path.parent)
    return path
