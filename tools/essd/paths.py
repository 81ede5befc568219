# SPDX-License-Identifier: BSD-2-Clause
"""Where things are: the checkout, the cache, the per-user runtime folder."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent


def cache() -> Path:
    """Everything that is built or downloaded; deleting it costs time only."""
    chosen = os.environ.get("ESSD_CACHE")
    if chosen:
        path = Path(chosen).absolute()
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        path = Path(base) / "essd"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def runtime() -> Path:
    """Sockets, process ids and logs of running instances; nobody else's."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.access(base, os.W_OK):
        path = Path(base) / "essd"
    else:
        path = Path(tempfile.gettempdir()) / f"essd-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if path.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o77:
        raise PermissionError(f"{path} is not a private folder of yours: remove it")
    return path


def instance(name: str) -> Path:
    """The folder of one named instance (it may not exist)."""
    return runtime() / name


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; wait for whoever has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock on this file, which exists."""
    with open(path, encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
