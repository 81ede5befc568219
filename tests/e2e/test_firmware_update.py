# SPDX-License-Identifier: BSD-2-Clause
"""A stock host updates the drive's firmware with nvme-cli."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import SESSION

from essd.build import fw_build
from essd.instance import steps
from essd.instance.config import DEFAULT_PORTS
from essd.instance.steps import Job
from essd.settings.block import Config, Port
from essd.setup import setup
from essd.storage.flash import FlashImage, Identity, new_flash
from essd.storage.image import Image, make_key

pytestmark = [pytest.mark.drive, pytest.mark.uml]

NEW = "0.9.9"
NAME = "/tmp/firmware.img"
HANG = b"\x6f\x00\x00\x00"      # j .: an image that never serves the watchdog
BACK_S = 120
NEEDS_SUBSYSTEM_RESET = "subsystem reset"


def new_firmware() -> bytes:
    """The firmware of this checkout, with another version of the same length."""
    built = fw_build.ensure_firmware()
    data = built.image.read_bytes()
    old = built.version.encode() + b"\0"
    assert old in data and len(NEW) == len(built.version)
    return Image(data.replace(old, NEW.encode() + b"\0"), NEW).file()


def download(job: Job, file: bytes) -> None:
    job.instance.run(f"cat > {NAME}", send=file)
    job.run(f"nvme fw-download {job.controller()} --fw={NAME}")


def commit(job: Job, slot: int, action: int) -> str:
    return job.result(f"nvme fw-commit {job.controller()} --slot={slot} "
                      f"--action={action}", check=False).output


def running(job: Job) -> str:
    found = json.loads(job.quiet(f"nvme id-ctrl {job.controller()} -o json"))
    return str(found["fr"]).strip()


def active(job: Job) -> int:
    """AFI of the firmware log: the running slot, and in bits 6:4 the next one."""
    output = job.quiet(f"nvme fw-log {job.controller()} -o json")
    match = re.search(r'"Active Firmware Slot \(afi\)"\s*:\s*(\d+)', output)
    assert match, output
    return int(match[1])


def console(job: Job) -> str:
    return (job.instance.folder / "drive/console.log").read_text(errors="replace")


def wait_version(job: Job, version: str) -> None:
    deadline = time.monotonic() + BACK_S
    while True:
        try:
            if running(job) == version:
                return
        except Exception:       # the controller is connecting again
            pass
        assert time.monotonic() < deadline, console(job)[-2000:]
        time.sleep(0.5)


def test_a_host_commits_an_image_that_is_signed(booted: Callable[..., Job],
                                                tmp_path: Path) -> None:
    """The short test of an update; the others are in `essd test --all`."""
    key = tmp_path / "key.pem"
    make_key(key)
    job = booted(boot_key=key)
    steps.connect(job)
    unsigned = Image.of_file(new_firmware())
    download(job, unsigned.file())
    assert "invalid" in commit(job, 2, 1).lower()
    assert "is not signed with the key of this drive" in console(job)
    download(job, unsigned.sign(key).file())
    assert NEEDS_SUBSYSTEM_RESET in commit(job, 2, 1).lower()
    job.run(f"nvme subsystem-reset {job.controller()}")
    wait_version(job, NEW)
    assert active(job) == 2
    steps.clean_host(job)


@pytest.mark.long
def test_a_host_updates_the_firmware_and_keeps_its_data(
        booted: Callable[..., Job]) -> None:
    job = booted()
    steps.connect(job)
    old = running(job)
    device = job.device()
    verify = (f"fio --name=v --filename={device} --rw=randwrite --bs=4k --size=32m "
              "--ioengine=libaio --direct=1 --iodepth=8 --verify=crc32c "
              "--do_verify=1 --verify_fatal=1")
    job.quiet(f"({verify} > /tmp/fio.log 2>&1; echo $? > /tmp/fio.status) & echo begun")
    download(job, new_firmware())
    output = commit(job, 2, 1)
    assert NEEDS_SUBSYSTEM_RESET in output.lower(), output
    assert active(job) == 0x21
    job.quiet("while ! [ -e /tmp/fio.status ]; do sleep 0.2; done")
    assert job.quiet("cat /tmp/fio.status").strip() == "0", job.quiet("cat /tmp/fio.log")
    # A reset of this host's controller does not activate the image.
    job.run(f"nvme reset {job.controller()}")
    steps.wait_target(job)
    wait_version(job, old)
    assert active(job) == 0x21
    checksum = job.quiet(f"dd if={device} bs=1M count=32 iflag=direct status=none "
                         "| sha256sum")
    job.run(f"nvme subsystem-reset {job.controller()}")
    wait_version(job, NEW)
    assert active(job) == 2
    assert job.quiet(f"dd if={job.device()} bs=1M count=32 iflag=direct status=none "
                     "| sha256sum") == checksum
    assert "slot B is on trial, start 1 of 3" in console(job)
    longest = re.search(r"the longest step of the commit took (\d+) us", console(job))
    assert longest and int(longest[1]) < 50_000, console(job)
    log = f"nvme persistent-event-log {job.controller()}"
    job.quiet(f"{log} --action=1")
    events = job.quiet(f"{log} --action=0")
    job.quiet(f"{log} --action=2")
    assert "Firmware Commit" in events, events
    deadline = time.monotonic() + 30
    while "its trial is over" not in console(job):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    steps.clean_host(job)


@pytest.mark.long
def test_a_host_replaces_the_image_in_the_running_slot(
        booted: Callable[..., Job]) -> None:
    job = booted()
    steps.connect(job)
    assert active(job) == 1
    download(job, new_firmware())
    assert NEEDS_SUBSYSTEM_RESET in commit(job, 1, 1).lower()
    assert active(job) == 0x11
    job.run(f"nvme subsystem-reset {job.controller()}")
    wait_version(job, NEW)
    assert active(job) == 1
    assert "slot A is on trial, start 1 of 3" in console(job)
    # An update in the first 10 s waits until the image has passed its trial.
    download(job, new_firmware())
    assert NEEDS_SUBSYSTEM_RESET in commit(job, 0, 1).lower()
    said = console(job)
    assert said.index("slot B is written when the running image has passed") < \
        said.index("so its trial is over") < said.index("slot B holds version")
    # The image that runs needs no reset.
    assert NEEDS_SUBSYSTEM_RESET not in commit(job, 1, 2).lower()
    assert active(job) == 1
    steps.clean_host(job)


@pytest.mark.long
def test_an_image_that_hangs_is_given_up(booted: Callable[..., Job]) -> None:
    job = booted()
    steps.connect(job)
    old = running(job)
    download(job, Image(HANG * 2048, "9.9.9").file())
    assert NEEDS_SUBSYSTEM_RESET in commit(job, 0, 1).lower()
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    deadline = time.monotonic() + BACK_S
    while "going back to slot A" not in console(job):
        assert time.monotonic() < deadline, console(job)[-2000:]
        time.sleep(0.5)
    wait_version(job, old)
    assert active(job) == 1
    assert "was started and never ran for long enough" in console(job)
    log = json.loads(job.quiet(f"nvme error-log {job.controller()} -o json"))
    assert any(entry["status_field"] & 0x7ff == 0x107 for entry in log["errors"])
    steps.clean_host(job)


def signed_flash(key: Path, identity: Identity) -> FlashImage:
    """The flash of a drive with a fused key: both slots hold signed images."""
    built = fw_build.ensure_firmware()
    # The drive keeps the configuration that is in its flash, addresses included.
    first, second = (Port.of(address) for address in DEFAULT_PORTS)
    file = new_flash(built, identity, Config((first, second)))
    for slot, sequence in (("A", 2), ("B", 1)):
        image = Image(built.image.read_bytes(), built.version, sequence).sign(key)
        file.set_image(slot, image)
    return file


@pytest.mark.long
def test_a_drive_with_a_key_runs_signed_images_only(booted: Callable[..., Job],
                                                    tmp_path: Path) -> None:
    key, other = tmp_path / "key.pem", tmp_path / "other.pem"
    public = make_key(key)
    make_key(other)
    path = setup.flash_path(f"{SESSION}-own")

    def prepare() -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        signed_flash(key, Identity.random()).save(path)

    job = booted(prepare, extra=["-global", f"essd-sysctl.boot-key={public.hex()}"])
    steps.connect(job)
    unsigned = Image.of_file(new_firmware())
    download(job, unsigned.file())
    assert "invalid" in commit(job, 2, 1).lower()
    assert "is not signed with the key of this drive" in console(job)
    download(job, unsigned.sign(other).file())
    assert "invalid" in commit(job, 2, 1).lower()
    download(job, unsigned.sign(key).file())
    assert NEEDS_SUBSYSTEM_RESET in commit(job, 2, 1).lower()
    job.run(f"nvme subsystem-reset {job.controller()}")
    wait_version(job, NEW)
    # Somebody writes an image with another signature into the flash.
    job.instance.ask("power-cut")
    file = FlashImage.load(path)
    image = file.image("B")
    assert image
    file.set_image("B", image.sign(other))
    file.save(path)
    job.instance.ask("power-on")
    steps.wait_target(job)
    assert "slot B: firmware 0.9.9" in console(job)
    assert "not signed with this drive's key" in console(job)
    assert "starting slot A" in console(job)[console(job).rindex("mask ROM"):]
    steps.clean_host(job)


@pytest.mark.parametrize("fault,reason", [
    ("crc", "has a wrong CRC"), ("board", "is made for another board"),
    ("short", "has another length")])
@pytest.mark.long
def test_a_bad_image_is_refused_with_its_reason(job: Job, fault: str,
                                                reason: str) -> None:
    steps.connect(job)
    good = Image(HANG * 2048, "9.9.9")
    file = bytearray(good.file())
    if fault == "crc":
        file[5000] ^= 1
    elif fault == "board":
        file = bytearray(Image(good.data, "9.9.9", board=1).file())
    else:
        file = file[:-4096]
    download(job, bytes(file))
    output = commit(job, 2, 1)
    assert "invalid firmware image" in output.lower() or "image is invalid" in \
        output.lower(), output
    assert reason in console(job)
    assert active(job) == 1
    steps.clean_host(job)
