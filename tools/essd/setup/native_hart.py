# SPDX-License-Identifier: BSD-2-Clause
"""A drive with a native hart: docs/hardware/native-hart.md."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import EssdError
from ..instance.config import NATIVE

if TYPE_CHECKING:
    from .setup import Wish

IMAGE_FILE = "native_hart.bin"
SEE = "(docs/hardware/native-hart.md)"


def check(wish: "Wish", has_key: bool) -> None:
    """EssdError if the drive that is wanted cannot have a native hart."""
    if wish.hart != NATIVE:
        return
    if wish.target != "drive":
        raise EssdError(f"--hart is for a drive, not for --target {wish.target}")
    if has_key:
        raise EssdError("--hart native: this drive has a boot key, and a native hart has no "
                        f"boot ROM that checks its firmware {SEE}")


def chosen(wish: "Wish", built: Path | None) -> Path | None:
    """The firmware for the drive's native hart: that of its own revision, or the one that
    was built now.  None: the hart is a RISC-V one."""
    if wish.hart != NATIVE or wish.binaries is None:
        return built
    if wish.binaries.native_hart is None:
        raise EssdError("--hart native: the earlier revision has no native hart")
    return wish.binaries.native_hart


def kept(image: Path | None, flash: Path) -> str:
    """Copy the firmware beside the drive's flash, where a later build does not change it.

    Returns "" for a drive without a native hart.
    """
    if image is None:
        return ""
    path = flash.with_name(IMAGE_FILE)
    fresh = path.with_suffix(".new")
    shutil.copyfile(image, fresh)
    fresh.replace(path)
    return str(path)
