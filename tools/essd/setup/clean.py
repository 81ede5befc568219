# SPDX-License-Identifier: BSD-2-Clause
"""`essd clean`: delete what was built or downloaded; it is made again when needed.

Drives and their data are not here (`essd rm` deletes those), and nothing that a
running instance, a running build or this program itself uses is deleted.
"""

import contextlib
import fcntl
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ..base import chosen, claims, in_use, paths
from ..build import libraries
from . import instances

# What each kind is, and the names of its folders in the cache.
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "qemu": ("QEMU builds", ("qemu",)),
    "guest": ("Linux guests, user-mode Linux, and libraries for their programs",
              ("guest", "guest-variants", "uml", "sysroot", "host-tests", "dpdk")),
    "build": ("firmware and native programs, and earlier drives of essd bench",
              ("build", "elf", "base")),
    "python": ("Python environments", ("python-*", "venv-*", "pip-venv")),
    "downloads": ("downloaded sources and packages",
                  ("download", "debs", "apt", *libraries.LIBRARIES)),
    "reports": ("reports of the demo", ("reports",)),
    "logs": ("logs of builds", ("log",)),
}


@dataclass
class Found:
    """What exists of one kind."""

    kind: str
    folders: list[Path]         # that can be deleted
    used: list[Path]            # that something uses now
    size: int                   # bytes that deleting `folders` frees

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "bytes": self.size,
                "folders": [str(path) for path in self.folders],
                "used": [str(path) for path in self.used]}


def paths_in(value: object) -> Iterator[Path]:
    """The absolute paths in what JSON has returned."""
    if isinstance(value, str) and value.startswith("/"):
        yield Path(value)
    elif isinstance(value, (list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from paths_in(one)


def files_in_use() -> list[Path]:
    """Files of the cache that this program or a running instance has open.

    Another version of essd may have started the instance, and have written another
    configuration; its paths are found nevertheless.
    """
    found = [Path(sys.prefix)]
    for name in chosen.running():
        if holder := claims.holder(name):       # Its Python, which older ones do not hold.
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{holder.pid}/cmdline").read_text(encoding="utf-8")
                found.append(Path(words.partition("\0")[0]).parent)
        with contextlib.suppress(OSError, ValueError, RecursionError):
            file = claims.folder(name) / "config.json"
            found += paths_in(json.loads(file.read_text(encoding="utf-8")))
    return [path.resolve() for path in found]


def has_one(folder: Path, files: Iterable[Path]) -> bool:
    """Whether one of these files is in a folder."""
    return any(path.is_relative_to(folder.resolve()) for path in files)


def is_used(folder: Path, files: Iterable[Path]) -> bool:
    """Whether a folder has one of these files, or a process has locked a part of it."""
    return (has_one(folder, files)
            or any(paths.is_locked(path) for path in in_use.lock_files(folder))
            or any(in_use.is_held(path) for path in (folder, *in_use.builds_in(folder))))


# What is deleted at a time: builds of these kinds are used separately.
APART = ("qemu", "guest", "guest-variants", "uml", "build", "base", *libraries.LIBRARIES)


def candidates(folder: Path) -> list[Path]:
    """What is deleted at a time: builds of one kind are used separately."""
    if folder.name in APART:
        return sorted(path for path in folder.iterdir()
                      if path.is_dir() and not in_use.is_removed(path))
    return [folder]


def locks_of(kind: str) -> list[Path]:
    """The files that are locked while something of a kind is made.

    Those in the folders that are deleted as a whole are locked with these.
    """
    if kind == "python":        # The build of QEMU has an environment of its own.
        return [paths.cache() / "venv.lock", paths.all_builds_lock()]
    if kind in ("downloads", "logs"):
        return [paths.all_builds_lock()]
    return [paths.cache() / name / "lock" for name in KINDS[kind][1]
            if name in APART and (paths.cache() / name).is_dir()]


@contextlib.contextmanager
def nothing_is_made(kind: str) -> Iterator[bool]:
    """Keep everybody from making something of a kind; False if a process makes some now."""
    with contextlib.ExitStack() as locks:
        try:
            for path in locks_of(kind):
                locks.enter_context(paths.flocked(path, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def find(kinds: Iterable[str]) -> list[Found]:
    """What exists of these kinds, and how much space each takes."""
    files = files_in_use()
    result = []
    for kind in kinds:
        everything = [path for pattern in KINDS[kind][1]
                      for folder in sorted(paths.cache().glob(pattern)) if folder.is_dir()
                      for path in candidates(folder)]
        with nothing_is_made(kind) as is_still:
            used = [path for path in everything if not is_still or is_used(path, files)]
        free = [path for path in everything if path not in used]
        result.append(Found(kind, free, used, instances.disk_bytes(*free)))
    return result


def check_kinds(words: Iterable[str]) -> list[str]:
    """The kinds that the user names; all without a name."""
    return [chosen.check_word("clean", word, KINDS) for word in words] or list(KINDS)


def table(found: Iterable[Found]) -> Table:
    rows = Table(box=None, pad_edge=False)
    for heading in ("kind", "what it is", "frees"):
        rows.add_column(heading, justify="right" if heading == "frees" else "left")
    for entry in found:
        in_use = f" ({len(entry.used)} in use, kept)" if entry.used else ""
        rows.add_row(entry.kind, KINDS[entry.kind][0] + in_use,
                     instances.size_words(entry.size))
    return rows


def delete(found: Iterable[Found]) -> list[str]:
    """Delete all that; return what could not be deleted, with the reason.

    What has been taken into use since find() is kept.
    """
    failures: list[str] = []
    for entry in found:
        with nothing_is_made(entry.kind) as is_still:
            if not is_still and entry.folders:
                failures.append(f"{KINDS[entry.kind][0]}: they are being made now, and are kept")
                continue
            for folder in entry.folders:
                failures += remove(folder)
            for pattern in KINDS[entry.kind][1]:
                for folder in paths.cache().glob(pattern):
                    in_use.sweep(folder)
    in_use.sweep(paths.cache())
    # The launcher looks for missing packages again.
    (paths.cache() / "packages.ok").unlink(missing_ok=True)
    return failures


def remove(folder: Path) -> list[str]:
    """Delete a folder; return why it is still there, or cannot be deleted in whole."""
    try:
        is_gone = in_use.remove(folder, lambda: not has_one(folder, files_in_use()))
    except OSError as error:
        return [f"{error.filename or folder}: {error.strerror}"]
    return [] if is_gone else [f"{folder}: it was taken into use just now, and is kept"]
