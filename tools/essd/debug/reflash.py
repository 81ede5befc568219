# SPDX-License-Identifier: BSD-2-Clause
"""`essd flash`: build the firmware, write it into a flash slot, restart the drive.

The boot ROM starts the image with the higher sequence number.  A new image
therefore gets the highest one; the other slot keeps the image that ran before,
and `essd flash --back` starts that one again in the same way.

QEMU reads the flash file when it starts, so the drive's power is off while the
file is written.  The hosts stay.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base import paths
from ..base.chosen import check_word
from ..base.errors import EssdError
from ..base.paths import TOP
from ..build import elf, fw_build
from ..drive import mgmt
from ..instance.config import BootKey, flash_lock
from ..instance.instance import Instance
from ..storage import boot_key, flash
from ..storage.flash import FlashError, FlashImage
from ..storage.image import Image
from . import debugger

STARTS_S = 30.0
TAIL_LINES = 12
BOOT_SLOTS = {1: "A", 2: "B"}       # SYSCTL_BOOT_STATUS.SLOT: docs/hardware/sysctl.md

Progress = Callable[[str], None]


@dataclass
class Done:
    """What was written where, what runs now, and the seconds of each step."""

    slot: str
    version: str
    build_id: str
    seconds: dict[str, float] = field(default_factory=dict)


def number_in(header: str, pattern: str) -> int:
    """A number of the hardware's register headers."""
    text = (TOP / "hw-model/regs" / header).read_text(encoding="utf-8")
    found = re.search(pattern + r"\s*(0x[0-9a-f]+)", text, re.I)
    assert found, pattern
    return int(found[1], 16)


def running_slot(instance: Instance) -> str | None:
    """The slot that the boot ROM has started; None: it has started none yet."""
    address = (number_in("soc.h", "SOC_SYSCTL_BASE")
               + number_in("sysctl.h", r"REG32\(SYSCTL_BOOT_STATUS,"))
    said = instance.ask("qmp", part=instance.drive, execute="human-monitor-command",
                        arguments={"command-line": f"xp /1wx {address:#x}"})
    found = re.search(r": 0x([0-9a-f]{8})", str(said))
    return BOOT_SLOTS.get(int(found[1], 16) & 15) if found else None


def running_image(instance: Instance) -> dict[str, str | None]:
    """Slot and build ID of the firmware that runs, for `essd status`."""
    return {"slot": running_slot(instance), "build-id": debugger.running_build_id(instance)}


def next_sequence(image: FlashImage) -> int:
    return 1 + max((kept.sequence for slot in flash.SLOTS if (kept := image.image(slot))),
                   default=0)


def other(slot: str | None) -> str:
    return "A" if slot == "B" else "B"


def write_new(image: FlashImage, slot: str, data: bytes, version: str,
              key: BootKey | None = None, security: int = 0, lower_floor: bool = False,
              ) -> None:
    """Write an image into a slot so that the boot ROM takes it at the next start."""
    image.start_image(slot, boot_key.sign(
        Image(data, version, next_sequence(image), security=security, made_here=True), key),
        lower_floor)


def uart_tail(text: str) -> str:
    """The last lines of the UART, to be shown below a message."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(f"    {line}" for line in lines[-TAIL_LINES:]) or "    (no output)"


def trouble(part: dict[str, Any]) -> str:
    """Why a drive that was started does not run, or "" if nothing speaks against it."""
    if part["state"] != "running":
        return str(part["why"] or f"its state is {part['state']}")
    if part["restarts"]:
        return f"it has restarted by itself ({part['restarts'][-1]})"
    return ""


def wait_running(instance: Instance, done: Done, uart_from: int) -> None:
    """Wait until the new image runs and answers; EssdError has the UART's last lines.

    `uart_from` is how many bytes the UART had sent before.
    """
    deadline = time.monotonic() + STARTS_S
    while True:
        part = instance.status()["parts"][instance.drive]
        why = trouble(part)
        if not why and "why" not in mgmt.status(instance) and \
                debugger.running_build_id(instance) == done.build_id:
            return
        if not why and time.monotonic() > deadline:
            why = f"it does not answer within {STARTS_S:.0f} s"
        if why:
            said = Path(part["console"]).read_bytes()[uart_from:].decode(errors="replace")
            raise EssdError(
                f"the image in slot {done.slot} (build {done.build_id[:12]}) does not "
                f"run: {why}; the UART's last lines:\n{uart_tail(said)}\n"
                "the way back to the image that ran before: "
                f"{instance.drive_hint('flash', '--back')}")
        time.sleep(0.1)


def build() -> tuple[bytes, str, str]:
    """Build the firmware; return the image, its version and its build ID."""
    built = fw_build.ensure_firmware()
    data = built.image.read_bytes()
    identity = elf.build_id(data)
    if identity is None:
        raise EssdError(f"{built.image} has no build ID")
    return data, built.version, identity


class Watch:
    """Measures the seconds of each step, and announces it."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.seconds: dict[str, float] = {}

    def step(self, name: str, action: Callable[[], Any]) -> Any:
        begin = time.monotonic()
        result = action()
        self.seconds[name] = round(time.monotonic() - begin, 3)
        self.progress(f"{name}: {self.seconds[name]:.1f} s")
        return result


def check(instance: Instance, slot: str) -> dict[str, Any]:
    """The status of the drive; EssdError if its flash cannot be written now."""
    part = instance.status()["parts"].get(instance.drive)
    if part is None:
        raise EssdError("this instance has no drive")
    instance.config.drives[instance.drive].need_riscv(
        "a native hart does not run the firmware in the drive's flash")
    if part["saved"]:
        raise EssdError("the drive's state is saved: resume it first with "
                        f"{instance.drive_hint('load')}")
    if slot:
        check_word("--slot", slot, flash.SLOTS)
    return dict(part)


def run(instance: Instance, slot: str, back: bool, progress: Progress,
        lower_floor: bool = False) -> Done:
    """Run `essd flash`; nothing is changed if the build fails."""
    check(instance, slot)
    watch = Watch(progress)
    built = None if back else watch.step("build", build)
    with paths.locked_or(f"another essd flash writes the flash of {instance.the_drive} now: "
                         "wait until it has ended",
                         flash_lock(instance.folder, instance.drive)):
        return replace(instance, slot, built, watch, lower_floor)


def replace(instance: Instance, slot: str, built: tuple[bytes, str, str] | None,
            watch: Watch, lower_floor: bool = False) -> Done:
    """Restart the drive with what was built, or with the image in the other slot.

    While the lock on the flash file is held, the supervisor refuses to start, save or
    load the drive for anybody else.
    """
    part = check(instance, slot)
    path = Path(instance.config.drives[instance.drive].flash)
    key = boot_key.recorded(path.parent)
    image = FlashImage.load(path)
    if built is None:
        slot = slot or other(image.starting_slot)
        kept = image.image(slot)
        if kept is None:
            raise EssdError(f"slot {slot} holds no good image to go back to")
        data, version, identity = kept.data, kept.version, elf.build_id(kept.data) or ""
        security = kept.security
    else:
        data, version, identity = built
        security = 0
        is_active = part["state"] == "running" and not part["halted"]
        slot = slot or other((running_slot(instance) if is_active else None)
                             or image.starting_slot)
    image.floor_with(Image(data, version, security=security), lower_floor)
    done = Done(slot, version, identity, watch.seconds)

    def stop() -> None:
        mgmt.shut_down_one(instance)
        instance.ask("power-cut", part=instance.drive)

    def write() -> None:
        # The drive has written its counters into the flash in the meantime.
        image = FlashImage.load(path)
        write_new(image, slot, data, version, key, security, lower_floor)
        image.save(path)

    def start() -> None:
        uart = Path(part["console"])
        uart_from = uart.stat().st_size if uart.exists() else 0
        # What an earlier image did does not count.
        instance.ask("power-on", part=instance.drive, forget_restarts=True, flashing=True)
        wait_running(instance, done, uart_from)

    if part["state"] == "running":
        watch.step("power off", stop)
    try:
        watch.step("write", write)
    except FlashError:          # an image has raised the floor meanwhile, or the disk is full
        instance.ask("power-on", part=instance.drive, flashing=True)
        raise
    except OSError as error:
        instance.ask("power-on", part=instance.drive, flashing=True)
        raise EssdError(f"{path}: {error.strerror}; the drive runs its old image again"
                        ) from None
    watch.step("start", start)
    return done
