# SPDX-License-Identifier: BSD-2-Clause
"""Claims: who may write the files of an instance's drives.

Each instance name has one lock, the file .NAME.lock beside the data folder NAME, so the
lock also exists before the first start and outlives `essd rm`.  A command that
writes files of a drive claims the name first.  `essd up` hands its claim to the
supervisor, and the supervisor to each drive's QEMU, so that the name is claimed until
the last of them has ended, whatever XDG_RUNTIME_DIR anybody else has.

Nobody waits for a claim: whoever finds the name claimed asks the supervisor, or says who
the holder is.

The locks are open file description locks (fcntl(2), F_OFD_SETLK): a child that inherits
the open file holds them too, and F_OFD_GETLK tells whether somebody holds one without
locking the file for a moment, which could refuse a claim.
"""

import contextlib
import fcntl
import json
import os
import struct
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from . import paths, persisted
from .errors import EssdError


FLOCK = "hhqqi0q"       # struct flock: type, whence, start, length (0: all), process
REPLACED_MOST = 100     # how often a lock file may be replaced while it is being locked


def lock_request(file: IO[str], command: int, kind: int) -> int:
    """Make one request about a lock on a whole file; return the kind that it answers."""
    asked = struct.pack(FLOCK, kind, os.SEEK_SET, 0, 0, 0)
    return int(struct.unpack(FLOCK, fcntl.fcntl(file, command, asked))[0])


@dataclass(frozen=True)
class Holder:
    """Who holds a claim, as the lock file says."""

    pid: int = 0
    what: str = ""          # the command, such as "essd up"; "": it is not known yet
    folder: str = ""        # of the running instance; "": the holder is no supervisor

    @property
    def words(self) -> str:
        return f"{self.what} (process {self.pid})" if self.pid else "another essd command"


class ClaimedError(EssdError):
    """Another process holds the claim."""

    def __init__(self, name: str, holder: Holder) -> None:
        from .chosen import hint        # which imports this file
        super().__init__(
            f"instance {name} is running already: stop it with {hint(name, 'down')}"
            if holder.folder else
            f"{holder.words} uses the drive {name} now: try again when it has ended")
        self.holder = holder


@dataclass
class Held:
    """A claim that a thread of this process holds, and how many of its functions rely on it."""

    file: IO[str]
    users: int = 0


# The claims of this process, by their lock file and thread.  A lock belongs to an open
# file, so a thread would refuse itself if one of its functions locked the file again.
_held: dict[tuple[Path, int], Held] = {}


def key_of(name: str) -> tuple[Path, int]:
    return lock_file(name), threading.get_ident()


def lock_file(name: str) -> Path:
    return paths.drives() / f".{name}.lock"


def write_holder(file: IO[str], holder: Holder) -> None:
    """Say who holds the claim.  The lock counts also where a full disk prevents this."""
    with contextlib.suppress(OSError):
        os.ftruncate(file.fileno(), 0)
        os.pwrite(file.fileno(), json.dumps(asdict(holder)).encode(), 0)


def read_holder(text: str) -> Holder:
    """The holder; a file that is just being written names nobody."""
    try:
        return persisted.parse(text, Holder)
    except persisted.ShapeError:
        return Holder()


def acquire(name: str, what: str) -> IO[str]:
    """Open and lock the lock file of a name; ClaimedError if somebody else has locked it."""
    file = locked_file(name)
    for _ in range(REPLACED_MOST):
        if is_current(file, name):
            break
        file.close()        # delete_file() has deleted it before it was locked
        file = locked_file(name)
    write_holder(file, Holder(os.getpid(), what))
    return file


def is_current(file: IO[str], name: str) -> bool:
    """Whether an open file is still the lock file of a name."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(file.fileno()), os.stat(lock_file(name)))
    return False


def locked_file(name: str) -> IO[str]:
    path = lock_file(name)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = open(path, "a+", encoding="utf-8")
    except OSError as error:
        raise EssdError(f"cannot lock the drive {name}: {path}: {error.strerror}") from None
    try:
        lock_request(file, fcntl.F_OFD_SETLK, fcntl.F_WRLCK)
    except BlockingIOError:
        file.seek(0)
        holder = read_holder(file.read())
        file.close()
        raise ClaimedError(name, holder) from None
    except OSError as error:        # The file system has no such locks.
        file.close()
        raise EssdError(f"cannot lock the drive {name}: {path}: {error.strerror}; ESSD_DATA "
                        "names another folder for drives") from None
    return file


@contextlib.contextmanager
def claimed(name: str, what: str) -> Iterator[IO[str]]:
    """Hold the claim to a name; ClaimedError if another process holds it.

    Functions of one thread may nest their claims.  A process that inherits the open file,
    which this yields, goes on holding the claim.
    """
    key = key_of(name)
    held = _held.get(key)
    if held is None:
        held = _held[key] = Held(acquire(name, what))
    held.users += 1
    try:
        yield held.file
    finally:
        held.users -= 1
        if held.users == 0:
            del _held[key]
            held.file.close()


def delete_file(name: str) -> None:
    """Delete the lock file of a name that no drive has any more."""
    with claimed(name, "essd"):
        lock_file(name).unlink(missing_ok=True)


def is_ours(name: str) -> bool:
    """Whether this thread holds the claim to a name."""
    return key_of(name) in _held


def holder(name: str) -> Holder | None:
    """Who holds the claim to a name; None if nobody does.

    None, too, if this user cannot read the lock file: acquire() refuses with the reason.
    """
    with contextlib.suppress(OSError), open(lock_file(name), encoding="utf-8") as file:
        if lock_request(file, fcntl.F_OFD_GETLK, fcntl.F_RDLCK) != fcntl.F_UNLCK:
            return read_holder(file.read())
    return None


def has_open(pid: int, name: str) -> bool:
    """Whether a process has the lock file of a name open.

    Another process, to which the kernel has given the id of a holder that has ended, has
    not.
    """
    with contextlib.suppress(OSError):
        lock = os.stat(lock_file(name))
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(lock, os.stat(entry.path)):
                    return True
    return False


def folder(name: str) -> Path:
    """The runtime folder of an instance: that of the supervisor that holds the claim, which
    may have been started with another XDG_RUNTIME_DIR."""
    found = holder(name)
    return Path(found.folder) if found and found.folder else paths.instance(name)


def running() -> list[str]:
    """The names that supervisors have claimed."""
    names = [path.name[1:-len(".lock")] for path in paths.drives().glob(".*.lock")]
    return [name for name in names if (found := holder(name)) and is_running(found, name)]


def is_running(found: Holder, name: str) -> bool:
    """Whether the holder of a claim is a supervisor that runs.

    Whoever has just got the claim has not yet replaced what the last holder said.
    """
    return bool(found.folder) and has_open(found.pid, name)


def inherit(descriptor: int, folder: Path) -> None:
    """In the supervisor: hold the claim that its starter has handed over."""
    with open(descriptor, "r+", encoding="utf-8", closefd=False) as file:
        write_holder(file, Holder(os.getpid(), "essd up", str(folder)))
