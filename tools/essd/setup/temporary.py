# SPDX-License-Identifier: BSD-2-Clause
"""Names of systems that are deleted when the program that started them ends.

Each has a lock file in its data folder that the program keeps locked.  The kernel
unlocks the file when the program ends, in whatever way; the next program then deletes
the folder.
"""

import contextlib
import fcntl
import os
import shutil
from pathlib import Path
from typing import IO

from ..base import chosen, claims, interrupts, paths
from . import setup

OWNER = "owner.lock"


def guard() -> Path:
    """The lock under which folders are created and deleted."""
    return paths.drives() / ".python.guard"


class Temporary:
    """A new instance name that begins with `prefix`.  Its data belong to this process."""

    def __init__(self, prefix: str) -> None:
        with paths.locked(guard()):
            sweep()
            number = 0
            while True:
                self.name = chosen.check_name(f"{prefix}{os.getpid()}"
                                              + (f"-{number}" if number else ""))
                try:
                    paths.drive(self.name).mkdir(mode=0o700, parents=True)
                    break
                except FileExistsError:
                    number += 1
            self.file: IO[bytes] = open(paths.drive(self.name) / OWNER, "wb")
            fcntl.flock(self.file, fcntl.LOCK_EX)

    def delete(self, keep_logs: bool = False) -> None:
        """Delete the drives' data, and the logs unless somebody wants to read them."""
        with interrupts.ignored(), paths.locked(guard()):
            setup.forget(self.name)
            forget_run(self.name, keep_logs)
            self.file.close()

    def release(self) -> None:
        """Keep the data also after this process has ended."""
        (paths.drive(self.name) / OWNER).unlink(missing_ok=True)
        self.file.close()


def forget_run(name: str, keep_logs: bool = False) -> None:
    """Delete what is left of an instance's run in the runtime folder."""
    if not keep_logs:
        shutil.rmtree(claims.folder(name), ignore_errors=True)
    (paths.runtime() / f".{name}.lock").unlink(missing_ok=True)
    claims.delete_file(name)


def sweep() -> None:
    """Delete the data of programs that have ended without deleting them."""
    for file in paths.drives().glob(f"[!.]*/{OWNER}"):
        name = file.parent.name
        # Its owner may keep it, or somebody may start it, at this moment.
        with contextlib.suppress(FileNotFoundError, claims.ClaimedError):
            if not chosen.answers(name) and not paths.is_locked(file):
                setup.forget(name)
                forget_run(name)
