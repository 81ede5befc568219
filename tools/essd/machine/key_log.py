# SPDX-License-Identifier: BSD-2-Clause
"""The file of `up --capture-keys`: the secrets of drives' TLS connections, for tshark.

Each drive's QEMU appends to it what the firmware gives to the system controller
(docs/hardware/sysctl.md).  Without the option the firmware is told that nobody keeps them.
"""

import os
import stat
from pathlib import Path

from ..base import show
from ..base.errors import EssdError
from .vm import option

MODE = 0o600


def check(captured: bool, drives: bool) -> None:
    """EssdError if there is nothing that the secrets are for."""
    if not drives:
        raise EssdError("--capture-keys is for a drive, and none is started: only a drive "
                        "gives its secrets away")
    if not captured:
        raise EssdError("--capture-keys goes with --capture: without a capture the secrets "
                        "are of no use, and dangerous")


def prepare(path: Path) -> None:
    """Create the file, or look that nobody else can read the one that exists.

    QEMU opens it by its name, makes it if it is not there, and follows links: before each
    start, this has to be done.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
                             | os.O_NONBLOCK | os.O_CLOEXEC, MODE)
    except OSError as error:
        raise EssdError(f"{path} cannot be written: {error.strerror}") from None
    try:
        found = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise EssdError(f"{path} is not a file: --capture-keys needs a file")
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise EssdError(f"{path} exists, and others may read it: choose another file for the "
                        "secrets, or delete this one")


def create(path: Path) -> Path:
    """Prepare the file that the user has named, and warn of it.  @return its full path"""
    path = path.absolute()
    prepare(path)
    show.note(f"warning: the secrets of TLS connections are written to {path}: whoever has "
              "this file can read all that they carry; delete it when the instance has ended",
              "yellow")
    return path


def options(path: str) -> list[str]:
    """The options of a drive's QEMU."""
    return ["-chardev", f"file,id=key-log,path={option(path)},append=on",
            "-global", "essd-sysctl.key-log=key-log"]
