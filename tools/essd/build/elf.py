# SPDX-License-Identifier: BSD-2-Clause
"""Firmware ELFs by build ID, which keep the symbols of images that drives still run.

The linker writes the same build ID into the ELF and into the flat image.  So the ELF
of a running image is found even if the firmware has been built again since.
"""

import os
import time
from pathlib import Path

from ..base import in_use, paths
from ..base.errors import EssdError

# An ELF note: length of name and of content, type NT_GNU_BUILD_ID, name.
NOTE = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"
ID_LEN = 20
UNUSED_DAYS = 30


def build_id(data: bytes) -> str | None:
    """The build ID in an ELF, in a flat image or in a drive's memory, in hex."""
    at = data.find(NOTE)
    content = data[at + len(NOTE):at + len(NOTE) + ID_LEN]
    return content.hex() if at >= 0 and len(content) == ID_LEN else None


def folder() -> Path:
    """The folder with all ELFs.  Each running instance keeps it, for debuggers."""
    return paths.cache() / "elf"


def kept(identity: str) -> Path:
    """The path at which the ELF with this build ID is kept, if it is."""
    return folder() / identity / "firmware.elf"


def keep(path: Path) -> Path:
    """Keep a copy of a firmware's ELF; delete copies unused for a month."""
    identity = build_id(path.read_bytes())
    if identity is None:
        raise EssdError(f"{path} has no build ID, so gdb could not find it: link it with "
                        "--build-id")
    to = kept(identity)
    copy(path, to)
    drop_unused(to.parent.parent)
    return to


def copy(path: Path, to: Path) -> None:
    """Copy an ELF atomically, unless `to` has the same build ID already."""
    data = path.read_bytes()
    if to.exists() and build_id(to.read_bytes()) == build_id(data):
        os.utime(to.parent)
        return
    to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = to.with_name(f"{to.name}.{os.getpid()}.new")
    fresh.write_bytes(data)
    fresh.rename(to)


def drop_unused(kept_in: Path) -> None:
    """Delete the ELFs that no build and no debugger has used for a month."""
    limit = time.time() - UNUSED_DAYS * 24 * 3600
    for old in kept_in.iterdir():
        if not in_use.is_removed(old) and old.stat().st_mtime < limit:
            in_use.delete(old)


def find(identity: str, what: str = "the running firmware") -> Path:
    """Return the kept ELF with this build ID."""
    path = kept(identity)
    if not path.exists():
        raise EssdError(f"no ELF is kept for {what} (build ID {identity}): "
                        "it was not built with this cache; name its ELF with --elf")
    os.utime(path.parent)
    return path
