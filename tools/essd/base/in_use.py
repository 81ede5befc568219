# SPDX-License-Identifier: BSD-2-Clause
"""Folders of the cache that a process uses, so that no other one deletes them.

A process that has looked up a guest or a build holds a shared lock on its folder until
it ends, and the supervisor of a running instance holds those that the instance boots
from.  A lock needs no list of running instances, which may be in different runtime
folders.

A folder that is there counts as complete.  So a removal first renames it, under the locks
of all who may use it, to a name that nobody looks up; what an interrupted removal leaves
is removed by a later one.
"""

import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from . import paths

_held: dict[Path, int] = {}     # open folders, which the end of the process closes
DELETED = ".deleted-"           # begins the names of folders that are being removed


def open_folder(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None


def hold(folder: Path) -> bool:
    """Keep a folder until this process ends; False if there is no such folder.

    Waits while another process deletes the folder.
    """
    if folder in _held and paths.is_at(_held[folder], folder):
        return True
    opened = open_folder(folder)
    if opened is None:
        return False
    fcntl.flock(opened, fcntl.LOCK_SH)
    if not paths.is_at(opened, folder):     # It was deleted before the lock was given.
        os.close(opened)
        return False
    if folder in _held:
        os.close(_held[folder])
    _held[folder] = opened
    return True


@contextlib.contextmanager
def held(folder: Path) -> Iterator[bool]:
    """Keep a folder while the caller uses it; False if it is not there, or is being removed.

    Unlike hold(), this waits for nobody.
    """
    opened = open_folder(folder)
    if opened is None:
        yield False
        return
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
            is_there = paths.is_at(opened, folder)
        except BlockingIOError:
            is_there = False
        yield is_there
    finally:
        os.close(opened)


def is_held(folder: Path) -> bool:
    """Whether a process holds the folder."""
    opened = open_folder(folder)
    if opened is None:
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(opened)
    return False


def builds_in(folder: Path) -> Iterator[Path]:
    """The folders in a tree of QEMU that are held apart from it."""
    return (path for path in folder.glob("bin/*") if path.is_dir())


def lock_files(folder: Path) -> Iterator[Path]:
    """The files that a build in this folder keeps locked."""
    return (path for pattern in ("lock", "*/lock", "*.lock") for path in folder.glob(pattern))


def lock_alone(folder: Path, locks: contextlib.ExitStack) -> bool:
    """Lock a folder and what is locked in it; False if a process uses any of that."""
    def lock(path: Path, flags: int) -> None:
        opened = os.open(path, flags | os.O_CLOEXEC, 0o600)
        locks.callback(os.close, opened)
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)

    try:
        for path in (folder, *builds_in(folder)):
            lock(path, os.O_RDONLY | os.O_DIRECTORY)
        # The file "lock" is made if it is missing: a build may be about to make it.
        for path in {folder / "lock", *lock_files(folder)}:
            lock(path, os.O_WRONLY | os.O_CREAT)
    except BlockingIOError:
        return False
    return True


def remove(folder: Path, is_unused: Callable[[], bool] = lambda: True) -> bool:
    """Delete a folder unless a process uses it; return whether it is gone.

    `is_unused` is asked under the locks.  OSError if a part cannot be deleted.
    """
    sweep(folder.parent)
    with contextlib.ExitStack() as locks:
        try:
            if not lock_alone(folder, locks) or not is_unused():
                return False
            gone = folder.with_name(f"{DELETED}{os.getpid()}-{folder.name}")
            folder.rename(gone)
        except FileNotFoundError:       # Another process has deleted it.
            return True
        shutil.rmtree(gone)
    return True


def delete(folder: Path) -> bool:
    """The same; what cannot be deleted is left."""
    try:
        return remove(folder)
    except OSError:
        return not folder.exists()


def delete_whole(folder: Path) -> None:
    """Delete a folder that the caller alone may use; at no time is half of it there.

    OSError if a part cannot be deleted, which then has another name.
    """
    sweep(folder.parent)
    opened = open_folder(folder)
    if opened is None:
        return
    try:
        with contextlib.suppress(BlockingIOError):      # No sweep() deletes it meanwhile.
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        gone = folder.with_name(f"{DELETED}{os.getpid()}-{folder.name}")
        folder.rename(gone)
        shutil.rmtree(gone)
    finally:
        os.close(opened)


def is_removed(folder: Path) -> bool:
    """Whether this is what a removal has renamed."""
    return folder.name.startswith(DELETED)


def sweep(parent: Path) -> None:
    """Delete what processes that have ended have left of their removals.

    A removal holds its folder until it ends.
    """
    for left in parent.glob(f"{DELETED}*"):
        with contextlib.suppress(OSError), contextlib.ExitStack() as locks:
            if lock_alone(left, locks):
                shutil.rmtree(left)


def hold_python() -> None:
    """Keep the Python environment of this process, which imports modules until it ends."""
    if Path(sys.prefix).is_relative_to(paths.cache_path()):
        hold(Path(sys.prefix))


def hold_all(files: Iterable[str | Path]) -> None:
    """Keep the folders of programs and guests that an instance has been given."""
    for text in files:
        if text:
            path = Path(text)
            hold(path if path.is_dir() else path.parent)
