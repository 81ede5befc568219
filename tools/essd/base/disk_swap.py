# SPDX-License-Identifier: BSD-2-Clause
"""Replaces several files together: all of them are the new ones, or all the old ones.

A file cannot be renamed together with another one.  So the old files are kept beside
the new ones, and a journal names them, until keep() is called.  Whatever ends the
process before that, recover() puts all old files back.
"""

import contextlib
import fcntl
import json
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from . import claims, paths, persisted

JOURNAL = ".load.json"


def fresh_of(file: Path) -> Path:
    """Where the new content of a file is written."""
    return file.with_name(f".{file.name}.load")


def old_of(file: Path) -> Path:
    """Where the old file is kept."""
    return file.with_name(f".{file.name}.before")


class Swap:
    """Replaces `files`; the journal is in `folder`."""

    def __init__(self, folder: Path, files: Iterable[Path]) -> None:
        self.journal = folder / JOURNAL
        self.files = list(files)
        self.lock: IO[str] | None = None

    def __enter__(self) -> "Swap":
        recover(self.journal.parent)
        self.remove_copies()        # A killed process may have left some.
        return self

    def __exit__(self, *_: object) -> None:
        """Without keep(), all old files are put back."""
        if self.lock is not None:
            put_back(self.journal)
            self.end_journal()
        self.remove_copies()

    def remove_copies(self) -> None:
        for file in self.files:
            fresh_of(file).unlink(missing_ok=True)
            old_of(file).unlink(missing_ok=True)

    def swap(self) -> None:
        """Put the new files, which exist as fresh_of(), in place of the old ones."""
        # Whoever finds a journal that nobody has locked puts the old files back.
        draft = self.journal.with_name(self.journal.name + ".new")
        self.lock = open(draft, "w", encoding="utf-8")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        json.dump([str(file) for file in self.files], self.lock)
        self.lock.flush()
        draft.replace(self.journal)
        for file in self.files:
            file.replace(old_of(file))
            fresh_of(file).replace(file)

    def keep(self) -> None:
        """From now on the new files count."""
        self.journal.unlink()
        self.end_journal()

    def end_journal(self) -> None:
        if self.lock is not None:
            self.lock.close()
            self.lock = None


def put_back(journal: Path) -> None:
    try:
        names = persisted.read(
            journal, "the list of files that the load of a snapshot replaces", list[str],
            remedy="rename each file .NAME.before beside a drive's files to NAME, then delete "
            "this list")
    except FileNotFoundError:
        return
    for name in names:
        with contextlib.suppress(FileNotFoundError):    # This one was not replaced yet.
            old_of(Path(name)).replace(name)
        fresh_of(Path(name)).unlink(missing_ok=True)
    journal.unlink()


def recover_of(name: str) -> None:
    """Do recover() for an instance; nothing while somebody else has claimed its name."""
    folder = paths.drives() / name
    if (folder / JOURNAL).exists():
        with contextlib.suppress(claims.ClaimedError), claims.claimed(name, "essd"):
            recover(folder)


def recover(folder: Path) -> None:
    """Put the old files back if the process that replaced them was killed."""
    try:
        journal = open(folder / JOURNAL, encoding="utf-8")
    except OSError:
        return
    with journal:
        try:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return          # It is being done now.
        put_back(folder / JOURNAL)
