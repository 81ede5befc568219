# SPDX-License-Identifier: BSD-2-Clause
"""What `essd gdb` starts: gdb on the drive's harts, with the symbols of what runs."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from . import elf, flash, fw_build, show
from .drive import gdb_socket
from .errors import EssdError
from .instance import Instance
from .paths import TOP

PROGRAM = "gdb-multiarch"
HELPERS = Path(__file__).with_name("gdb_helpers.py")
IMAGE_BYTES = 4 << 20       # of DRAM that are searched for the image's build ID


def running_build_id(instance: Instance) -> str | None:
    """The build ID of the firmware in the drive's DRAM; None: there is none yet."""
    path = instance.folder / "gdb.dram"
    try:
        instance.ask("qmp", part="drive", execute="pmemsave", arguments={
            "val": flash.LOAD_ADDR, "size": IMAGE_BYTES, "filename": str(path)})
        return elf.build_id(path.read_bytes())
    finally:
        path.unlink(missing_ok=True)


def command(instance: Instance, firmware: Path | None,
            options: Sequence[str]) -> list[str]:
    """The command that attaches gdb to a running drive."""
    part = instance.status()["parts"].get("drive")
    if part is None or part["state"] != "running":
        raise EssdError("the drive is not powered: there is nothing to debug")
    if shutil.which(PROGRAM) is None:
        raise EssdError(f"{PROGRAM} is not installed: apt-get install {PROGRAM}")
    drive = instance.config.drive
    assert drive is not None
    if firmware is None:
        identity = running_build_id(instance)
        if identity is None:
            show.line("the boot ROM has loaded no firmware yet: symbols of the ROM only")
        else:
            firmware = elf.find(identity)
    elif not firmware.is_file():
        raise EssdError(f"{firmware} does not exist")
    return words(gdb_socket(instance.folder), Path(drive.qemu).with_name("rom.elf"),
                 firmware, options)


def words(server: Path, rom: Path, firmware: Path | None,
          options: Sequence[str]) -> list[str]:
    """gdb's own command line; `options` come last, when gdb is attached."""
    # Sources are named from the build's folder with ccache, else from the top.
    commands = ["set confirm off", "set max-value-size unlimited",
                f"directory {fw_build.BUILD}:{TOP}", f"source {HELPERS}"]
    if firmware is not None:
        commands.append(f"file {firmware}")
    # A drive may be older than this file; gdb then does without.
    if rom.exists():
        commands.append(f"add-symbol-file {rom}")
    commands += ["set confirm on", f"target remote {server}"]
    return [PROGRAM, "-q", *(word for text in commands for word in ("-ex", text)),
            *options]
