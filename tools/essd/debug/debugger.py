# SPDX-License-Identifier: BSD-2-Clause
"""`essd gdb`: run gdb on the drive's harts with the symbols of the running image."""

import contextlib
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from ..base import show
from ..base.errors import EssdError
from ..base.paths import TOP
from ..build import elf, fw_build
from ..instance.instance import Instance
from ..machine.drive import gdb_socket
from ..storage import image

PROGRAM = "gdb-multiarch"
HELPERS = Path(__file__).with_name("gdb_helpers.py")
IMAGE_BYTES = 4 << 20       # of DRAM that are searched for the image's build ID
RELEASE_S = 60.0            # time limit for QEMU, which may have to write to a slow disk
DETACHED_S = 5.0
DETACH = b"$D;1#b0"         # from process 1, which has all harts, in gdb's remote protocol
DETACHED = b"$OK#9a"


def running_build_id(instance: Instance) -> str | None:
    """Return the build ID of the firmware in the drive's DRAM; None before it is loaded."""
    path = instance.file("gdb.dram")
    try:
        instance.ask("qmp", part=instance.drive, execute="pmemsave", arguments={
            "val": image.LOAD_ADDR, "size": IMAGE_BYTES, "filename": str(path)})
        return elf.build_id(path.read_bytes())
    finally:
        path.unlink(missing_ok=True)


def is_attached(instance: Instance) -> bool:
    """Whether a debugger is connected to the drive.

    QEMU keeps a second one waiting, and halts the drive for it after the first one has
    gone, even if the second one has given up by then.
    """
    return any(device["label"] == "gdb" and
               not device["filename"].startswith("disconnected:")
               for device in instance.ask("qmp", part=instance.drive, execute="query-chardev"))


def release(server: Path) -> bool:
    """Remove all breakpoints and continue the drive, as gdb's command detach does.

    False if QEMU has not answered; if it does not run, there is nothing to release.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(RELEASE_S)
        try:
            connection.connect(str(server))
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        reply = b""
        with contextlib.suppress(OSError):
            connection.sendall(DETACH)
            while DETACHED not in reply and (more := connection.recv(100)):
                reply += more
    return DETACHED in reply


def wait_detached(instance: Instance) -> None:
    """Wait until QEMU has noticed that gdb has gone, or the drive is not powered."""
    deadline = time.monotonic() + DETACHED_S
    with contextlib.suppress(EssdError):        # The drive may have lost its power.
        while is_attached(instance) and time.monotonic() < deadline:
            time.sleep(0.05)


def run(instance: Instance, words: Sequence[str]) -> int:
    """Run gdb and return its status; the drive is released, however gdb ended.

    A gdb that SIGTERM ends while the drive runs leaves its breakpoints in QEMU and
    exits with status 0, as after `detach`.  So the status does not say whether the
    drive has to be released.

    QEMU notices a little later that gdb has gone; another gdb is refused until then.
    """
    before = signal.signal(signal.SIGINT, lambda *_: None)      # Ctrl-C is for gdb
    try:
        with subprocess.Popen(words) as process:
            try:
                process.wait()      # no timeout: the user decides when gdb ends
            except BaseException:   # a signal to this program
                process.kill()
                raise
    finally:
        signal.signal(signal.SIGINT, before)
        if not release(gdb_socket(instance.folder, instance.drive)):
            show.line("QEMU does not answer: the drive may be halted or have breakpoints; "
                      f"continue it with {instance.drive_hint('gdb', '-- -batch -ex detach')}")
    wait_detached(instance)
    if process.returncode < 0:
        show.line("gdb was killed: its breakpoints are removed, and the drive continues")
        return 128 - process.returncode
    return process.returncode


def command(instance: Instance, firmware: Path | None,
            options: Sequence[str]) -> list[str]:
    """Return the command that attaches gdb to a running drive."""
    part = instance.status()["parts"].get(instance.drive)
    if part is None or part["state"] != "running":
        raise EssdError("the drive is not powered: there is nothing to debug")
    if shutil.which(PROGRAM) is None:
        raise EssdError(f"{PROGRAM} is not installed: apt-get install {PROGRAM}")
    if is_attached(instance):
        raise EssdError("another gdb is attached to the drive: leave that one first, with "
                        "its command quit")
    drive = instance.config.drives[instance.drive]
    drive.need_riscv("essd gdb debugs RISC-V code, and this drive has a native hart")
    if firmware is None:
        identity = running_build_id(instance)
        if identity is None:
            show.line("the boot ROM has loaded no firmware yet: symbols of the ROM only")
        else:
            firmware = elf.find(identity)
    elif not firmware.is_file():
        raise EssdError(f"{firmware} does not exist")
    return words(gdb_socket(instance.folder, instance.drive), Path(drive.qemu).with_name("rom.elf"),
                 firmware, options)


def words(server: Path, rom: Path, firmware: Path | None,
          options: Sequence[str]) -> list[str]:
    """Return gdb's command line; gdb runs `options` last, when it is attached."""
    # The ELF names sources relative to the build's folder if ccache was used, else
    # relative to the top folder.
    commands = ["set confirm off", "set max-value-size unlimited",
                f"directory {fw_build.BUILD}:{TOP}", f"source {HELPERS}"]
    if firmware is not None:
        commands.append(f"file {firmware}")
    # A drive that was started by an older essd has no ROM symbols.
    if rom.exists():
        commands.append(f"add-symbol-file {rom}")
    commands += ["set confirm on", f"target remote {server}"]
    return [PROGRAM, "-q", *(word for text in commands for word in ("-ex", text)),
            *options]
