# SPDX-License-Identifier: BSD-2-Clause
"""Folders of the cache that a process uses, so that no other one deletes them.

A process that has looked up a guest or a build holds a shared lock on its folder until
it ends, and the supervisor of a running instance holds those that the instance boots
from.  A lock needs no list of running instances, which may be in different runtime
folders.
"""

import fcntl
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

_held: dict[Path, int] = {}     # open folders, which the end of the process closes


def open_folder(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None


def hold(folder: Path) -> bool:
    """Keep a folder until this process ends; False if there is no such folder.

    Waits while another process deletes the folder.
    """
    if folder in _held and is_same(_held[folder], folder):
        return True
    opened = open_folder(folder)
    if opened is None:
        return False
    fcntl.flock(opened, fcntl.LOCK_SH)
    if not is_same(opened, folder):     # It was deleted before the lock was given.
        os.close(opened)
        return False
    if folder in _held:
        os.close(_held[folder])
    _held[folder] = opened
    return True


def is_same(opened: int, folder: Path) -> bool:
    """Whether the path still leads to the folder that was opened."""
    try:
        return os.path.samestat(os.fstat(opened), folder.stat())
    except FileNotFoundError:
        return False


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


def delete(folder: Path) -> bool:
    """Delete a folder unless a process holds it; return whether it is gone."""
    opened = open_folder(folder)
    if opened is None:
        return True
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(opened)
    return True


def hold_all(files: Iterable[str | Path]) -> None:
    """Keep the folders of programs and guests that an instance has been given."""
    for text in files:
        if text:
            path = Path(text)
            hold(path if path.is_dir() else path.parent)
