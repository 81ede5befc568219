# SPDX-License-Identifier: BSD-2-Clause
"""Paths of the checkout, the cache and the per-user runtime folder."""

import contextlib
import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from .errors import EssdError

PACKAGE = Path(__file__).resolve().parents[1]
# The sources of drive and guest.  In an installed package they are a folder of it and
# are only read.
IS_INSTALLED = (PACKAGE / "tree").is_dir()
TOP = PACKAGE / "tree" if IS_INSTALLED else PACKAGE.parent.parent

# Folders of the cache whose builds consist of packages of Debian, which share a folder.
FETCH_PACKAGES = ("guest", "guest-variants", "sysroot", "dpdk")


def place_problem(path: Path) -> str:
    """Why a folder cannot be used, which may not exist yet; "" if it can."""
    there = next(one for one in (path, *path.parents) if one.exists())
    if not there.is_dir():
        return f"{there} is not a folder"
    return "" if os.access(there, os.W_OK | os.X_OK) else f"{there} cannot be written"


def name_problem(path: Path) -> str:
    """Why nothing can be built in a folder with this path; "" if it can.

    The configure script of QEMU refuses spaces and colons, and Make takes the others for
    something else.
    """
    wrong = re.search(r"[\s:\"'`$#%&;*?\\]", str(path))
    return f"its path has {wrong[0]!r}, with which QEMU cannot be built" if wrong else ""


def cache_path() -> Path:
    """The path of cache(), which need not exist yet."""
    chosen = os.environ.get("ESSD_CACHE")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "essd"


def cache() -> Path:
    """Folder for everything built or downloaded; it can be deleted and rebuilt."""
    path = cache_path()
    wrong = name_problem(path)
    if wrong:
        raise EssdError(f"nothing can be kept in {path}: {wrong}; ESSD_CACHE names another "
                        "folder")
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EssdError(f"cannot create the folder {path}: {error.strerror}; ESSD_CACHE "
                        "names another one") from None
    return path


def build() -> Path:
    """Folder for what CMake builds: in the checkout, or else in the cache.

    It is in the cache if the checkout cannot be written, or is an installed package.
    """
    if not IS_INSTALLED and not place_problem(TOP / "build"):
        return TOP / "build"
    return cache_path() / "build" / hashlib.sha256(str(TOP).encode()).hexdigest()[:16]


def source_name(path: Path) -> str:
    """The name that a source file has in the checkout."""
    if path.is_relative_to(TOP):
        return path.relative_to(TOP).as_posix()
    return f"tools/essd/{path.relative_to(PACKAGE).as_posix()}"


def need_checkout(command: str) -> None:
    """EssdError if this is an installed package, which has no tests."""
    if IS_INSTALLED:
        raise EssdError(f"essd {command} works on a checkout of the sources only; this is "
                        f"an installed package ({PACKAGE})")


def runtime() -> Path:
    """Private folder for sockets, process ids and logs of running instances."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.access(base, os.W_OK):
        path = Path(base) / "essd"
    else:
        path = Path(tempfile.gettempdir()) / f"essd-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise EssdError(f"{path}, where running drives have their sockets, cannot be used: "
                        f"{error.strerror}; XDG_RUNTIME_DIR names another folder") from None
    if path.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o77:
        raise EssdError(f"{path} is not a folder that only you can access: remove it")
    return path


def drives() -> Path:
    """Folder with a folder for each drive: its flash, its identity and its data."""
    chosen = os.environ.get("ESSD_DATA")
    base = Path(chosen) if chosen else Path(
        os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "essd"
    return base.absolute()


def drive(instance: str, part: str = "drive") -> Path:
    """Folder of one drive.

    The drive "drive" has the instance's folder.  Those with other names are in the folder
    drives in it, so that no name is that of something else there, such as the snapshots.
    """
    if part == "drive":
        return drives() / instance
    before = drives() / instance / part     # where essd 0.1 to 0.3 created it
    return before if (before / "flash.img").is_file() else drives() / instance / "drives" / part


def kept_drives(instance: str) -> list[str]:
    """Names of an instance's drives that have a flash file, sorted by number."""
    folder = drives() / instance
    names = [path.parent.name for pattern in ("*/flash.img", "drives/*/flash.img")
             for path in folder.glob(pattern) if path.is_file()]    # not a snapshot's folder
    if (folder / "flash.img").is_file():
        names.append("drive")
    return sorted(names, key=lambda name: [int(word) if word.isdigit() else word
                                           for word in re.split(r"(\d+)", name)])


def instance(name: str) -> Path:
    """The folder of one named instance (it may not exist)."""
    return runtime() / name


@contextlib.contextmanager
def locked(path: Path, progress: Callable[[str], object] = lambda text: None
           ) -> Iterator[None]:
    """Hold an exclusive lock on a file; wait while another process holds it.

    Whoever builds something in the cache holds this for it, and so a lock of all builds,
    too: they share the folders with downloads and logs.  `progress` is told if a build of
    another thing has to end first.
    """
    with contextlib.ExitStack() as locks:
        if path.is_relative_to(cache_path()):
            locks.enter_context(flocked(all_builds_lock(), fcntl.LOCK_SH))
            if path.parent.name in FETCH_PACKAGES:
                locks.enter_context(packages_locked(progress))
        locks.enter_context(flocked(path, fcntl.LOCK_EX))
        yield


def packages_lock() -> Path:
    """The file that is locked while packages of Debian are fetched or unpacked.

    apt writes each of them where it stays, and another build may be reading it there.
    """
    return cache_path() / "packages.lock"


@contextlib.contextmanager
def packages_locked(progress: Callable[[str], object]) -> Iterator[None]:
    """Hold packages_lock(), and tell `progress` if another process has to release it first."""
    with contextlib.ExitStack() as lock:
        try:
            lock.enter_context(flocked(packages_lock(), fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            progress("waiting for another build that fetches packages")
            lock.enter_context(flocked(packages_lock(), fcntl.LOCK_EX))
        yield


def all_builds_lock() -> Path:
    """The file that every build in the cache locks, for itself and others at once."""
    return cache_path() / "builds.lock"


@contextlib.contextmanager
def flocked(path: Path, kind: int) -> Iterator[None]:
    """Hold a lock of this kind on a file, which is made if it does not exist."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            opened = open(path, "w", encoding="utf-8")
        except OSError as error:
            raise EssdError(f"{path} cannot be written: {error.strerror}") from None
        with opened as file:
            fcntl.flock(file, kind)
            # Another process may have deleted the file before the lock was given.
            if is_at(file.fileno(), path):
                yield
                return


def is_at(opened: int, path: Path) -> bool:
    """Whether a path still leads to the file or folder that was opened."""
    try:
        return os.path.samestat(os.fstat(opened), path.stat())
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def locked_or(refusal: str, path: Path, shared: bool = False) -> Iterator[None]:
    """Hold a lock on a file, by default an exclusive one; EssdError if another process
    holds one that forbids it."""
    with open(path, "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EssdError(refusal) from None
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock on this file, which must exist."""
    with open(path, encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
