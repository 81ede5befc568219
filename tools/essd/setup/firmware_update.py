# SPDX-License-Identifier: BSD-2-Clause
"""`essd firmware`: make, sign and show images, and update the drive's firmware.

A running drive is updated as in the field: its Linux host sends the image with
nvme-cli.  The image of a drive that is off is written into its flash file.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..base.errors import EssdError
from ..build import elf, fw_build
from ..debug import reflash
from ..instance import steps
from ..instance.instance import Instance
from ..instance.steps import Job
from ..storage import boot_key, flash
from ..storage.flash import FlashImage, SlotRecord
from ..storage.image import Image, public_key
from . import setup

GUEST_FILE = "/tmp/essd-firmware.img"
STARTS_S = 90.0
STORE, STORE_ACTIVATE, ACTIVATE = range(3)      # actions of Firmware Commit
# What nvme-cli prints when the commit has succeeded and a reset is to follow.
NEEDS_RESET = "subsystem reset"
FAILURES = {1: "it was started three times and never ran for long enough",
            2: "the boot ROM did not accept it"}

Progress = Callable[[str], None]


def load(path: Path) -> Image:
    try:
        return Image.of_file(path.read_bytes(), str(path))
    except OSError as error:
        raise EssdError(f"{path}: {error.strerror}") from None


def pack(source: Path | None, version: str, security: int, key: Path | None,
         progress: Progress) -> Image:
    """Make an image from a flat binary.  Without one, build the firmware and use that."""
    if source is None:
        progress("building the firmware")
        built = fw_build.ensure_firmware()
        source, version = built.image, version or built.version
    try:
        image = Image(source.read_bytes(), version, security=security)
    except OSError as error:
        raise EssdError(f"{source}: {error.strerror}") from None
    if not version:
        raise EssdError("give --version: the binary does not say which it is")
    image.header()              # refuses what does not fit
    return image.sign(key) if key else image


def describe(image: Image, key: Path | None) -> dict[str, Any]:
    """What is in an image; with a key, whether it is signed with that key."""
    facts: dict[str, Any] = {
        "version": image.version, "bytes": len(image.data), "header": image.format,
        "board": f"{image.board:#x}", "security": image.security,
        "build-id": elf.build_id(image.data), "signed": bool(image.signature)}
    if key is not None:
        facts["signature-is-right"] = bool(image.signature) and \
            image.is_signed_with(public_key(key))
    return facts


# A drive's slots

def drive_file(instance: Instance) -> Path:
    """The flash file of the drive, which need not run."""
    if instance.is_running:
        drive = instance.config.drives.get(instance.drive)
        if drive is None:
            raise EssdError("this instance has no drive")
        return Path(drive.flash)
    path = setup.flash_path(instance.name, instance.part or "drive")
    if not path.exists():
        raise EssdError(f"there is no drive {instance.name}: create one with essd up "
                        f"--name {instance.name}")
    return path


def slots(instance: Instance) -> dict[str, Any]:
    """What the drive's flash file says about its slots."""
    file = FlashImage.load(drive_file(instance))
    record = file.slot_record or SlotRecord()
    running = reflash.running_slot(instance) if is_on(instance) else None
    rows = {}
    for slot in flash.SLOTS:
        image = file.image(slot)
        rows[slot] = None if image is None else {
            "version": image.version, "bytes": len(image.data), "header": image.format,
            "security": image.security, "signed": bool(image.signature),
            "build-id": elf.build_id(image.data), "updated": not image.made_here}
    name = {0: None, 1: "A", 2: "B"}
    return {"running": running, "starts-next": file.starting_slot, "slots": rows,
            "trial": record.trial, "attempts": record.attempts,
            "given-up": name[record.failed],
            "given-up-because": FAILURES.get(record.failure),
            "unproven": name[record.unproven], "read-only": ["A"] if record.read_only else []}


# A running drive

@dataclass
class Target:
    """The host that updates the drive, and the controller to which it is connected."""

    job: Job
    controller: str
    was_connected: bool

    @classmethod
    def of(cls, instance: Instance) -> "Target":
        instance.config.drives[instance.drive].need_riscv(
            "a native hart does not run the firmware in the drive's flash")
        job = Job.on(instance, instance.drive)
        names = controllers(job)
        if not names:
            steps.connect(job)
        return cls(job, (names or controllers(job))[0], bool(names))

    def leave(self) -> None:
        if not self.was_connected:
            self.job.quiet(f"nvme disconnect -n {self.job.nqn}", check=False)

    def run(self, command: str) -> str:
        """Run nvme-cli; EssdError has its complaint and the drive's reason."""
        console = self.console()
        result = self.job.result(command, check=False)
        if result.status != 0 and NEEDS_RESET not in result.output.lower():
            why = [line for line in self.console()[len(console):].splitlines()
                   if "firmware:" in line]
            said = (why or result.output.strip().splitlines() or ["it failed"])[-1]
            raise EssdError(f"the drive refused the update: {said.split('] ')[-1]}")
        return result.output

    def console(self) -> str:
        path = self.job.instance.file("console.log")
        return path.read_text(errors="replace") if path.exists() else ""

    def revision(self) -> str:
        output = self.job.quiet(f"nvme id-ctrl {self.controller} | grep '^fr '",
                                check=False)
        return output.partition(":")[2].strip()


def controllers(job: Job) -> list[str]:
    script = ("for c in /sys/class/nvme/nvme*; do "
              f"[ \"$(cat $c/subsysnqn 2>/dev/null)\" = '{job.nqn}' ]"
              " && echo /dev/${c##*/}; done; true")
    return job.quiet(script).split()


def update_running(instance: Instance, image: Image, slot: str, activate: bool,
                   progress: Progress) -> dict[str, Any]:
    target = Target.of(instance)
    try:
        number = flash.SLOTS.index(slot) + 1 if slot else 0
        target.job.instance.run(f"cat > {GUEST_FILE}", part=target.job.host,
                                send=image.file())
        progress("downloading")
        target.run(f"nvme fw-download {target.controller} --fw={GUEST_FILE}")
        progress("writing")
        target.run(f"nvme fw-commit {target.controller} --slot={number} "
                   f"--action={STORE_ACTIVATE if activate else STORE}")
        if activate:
            restart(target, progress)
    finally:
        target.leave()
    return slots(instance)


def activate_running(instance: Instance, slot: str, progress: Progress) -> dict[str, Any]:
    target = Target.of(instance)
    try:
        said = target.run(f"nvme fw-commit {target.controller} "
                          f"--slot={flash.SLOTS.index(slot) + 1} --action={ACTIVATE}")
        if NEEDS_RESET in said.lower():
            restart(target, progress)
        else:
            progress(f"slot {slot} runs already")
    finally:
        target.leave()
    return slots(instance)


def restart(target: Target, progress: Progress) -> None:
    """Reset the subsystem, and wait until the slot that starts next runs."""
    instance = target.job.instance
    wanted = FlashImage.load(drive_file(instance)).starting_slot
    if reflash.running_slot(instance) == wanted:
        wanted = None           # the slot stays the same, so any start will do
    before = target.console().count("boot: starting slot")
    progress("restarting")
    target.job.quiet(f"nvme subsystem-reset {target.controller}", check=False)
    deadline = time.monotonic() + STARTS_S
    while target.console().count("boot: starting slot") == before or \
            (wanted and reflash.running_slot(instance) != wanted):
        if time.monotonic() > deadline:
            raise EssdError(
                f"slot {wanted} does not run within {STARTS_S:.0f} s; the UART's last "
                f"lines:\n{reflash.uart_tail(target.console())}")
        time.sleep(0.3)
    steps.wait_target(target.job)


# A drive that is off

def check_security(file: FlashImage, image: Image) -> None:
    active = file.starting_slot
    now = file.image(active) if active else None
    lowest = max(file.security_floor, now.security if now else 0)
    if image.security < lowest:
        raise EssdError(f"the image has the security version {image.security}, the drive "
                        f"has had {lowest}; a lower one is refused")


def check_kept(file: FlashImage, slot: str) -> None:
    """EssdError unless the other slot holds a proven image, so that this one may be written."""
    record = file.slot_record or SlotRecord()
    other = reflash.other(slot)
    kept = file.image(other)
    if record.read_only and slot == "A":
        raise EssdError("slot A is read-only; use slot B")
    if kept is None:
        raise EssdError(f"slot {slot} holds the only good image; write the other slot "
                        "first")
    if record.unproven == flash.SLOTS.index(other) + 1:
        raise EssdError(f"the image in slot {other} has not passed its trial, so slot "
                        f"{slot} is kept; write slot {other}, or start the drive")
    if other != file.starting_slot and kept.security < file.security_floor:
        raise EssdError(f"the image in slot {other} has too low a security version, so "
                        f"slot {slot} is kept; write slot {other} first")


def update_file(instance: Instance, image: Image, slot: str,
                activate: bool) -> dict[str, Any]:
    """Write an image into the flash file as the firmware does."""
    path = drive_file(instance)
    file = FlashImage.load(path)
    active = file.starting_slot
    record = file.slot_record or SlotRecord()
    slot = slot or (flash.SLOTS[record.unproven - 1] if record.unproven
                    else reflash.other(active))
    check_kept(file, slot)
    boot_key.check(image, boot_key.recorded(path.parent))
    check_security(file, image)
    number = flash.SLOTS.index(slot) + 1
    chosen = number if activate else 3 - number if active in (slot, None) else \
        flash.SLOTS.index(active) + 1
    if record.failed == number:
        record = replace(record, failed=0, failure=0, unreported=False)
    record = replace(record, chosen=chosen, previous=3 - chosen, trial=activate,
                     attempts=0, unproven=number, stores=record.stores + 1,
                     security=file.security_floor)
    sequence = reflash.next_sequence(file) if activate else 0
    file.set_image(slot, replace(image, sequence=sequence, made_here=False))
    file.slot_record = record
    file.save(path)
    return slots(instance)


def activate_file(instance: Instance, slot: str) -> dict[str, Any]:
    """Let a slot start next, as the firmware does."""
    path = drive_file(instance)
    file = FlashImage.load(path)
    image = file.image(slot)
    if image is None:
        raise EssdError(f"slot {slot} holds no good image")
    boot_key.check(image, boot_key.recorded(path.parent))
    check_security(file, image)
    number = flash.SLOTS.index(slot) + 1
    record = file.slot_record or SlotRecord()
    trial = record.unproven == number if record.unproven else slot != file.starting_slot
    if record.failed == number:
        record = replace(record, failed=0, failure=0, unreported=False)
    file.slot_record = replace(record, chosen=number, previous=3 - number, trial=trial,
                               attempts=0, unproven=number if trial else record.unproven,
                               security=file.security_floor)
    file.save(path)
    return slots(instance)


def is_on(instance: Instance) -> bool:
    return instance.is_running and \
        instance.status()["parts"][instance.drive]["state"] == "running"


def update(instance: Instance, image: Image, slot: str, activate: bool,
           progress: Progress) -> dict[str, Any]:
    if is_on(instance):
        return update_running(instance, image, slot, activate, progress)
    with instance.writable("essd firmware update"):
        return update_file(instance, image, slot, activate)


def activate(instance: Instance, slot: str, progress: Progress) -> dict[str, Any]:
    if is_on(instance):
        return activate_running(instance, slot, progress)
    with instance.writable("essd firmware activate"):
        return activate_file(instance, slot)
