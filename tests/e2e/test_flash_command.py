# SPDX-License-Identifier: BSD-2-Clause
"""`essd flash` beside a connected host, and a drive that is halted at its reset."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from essd.debug import debugger, reflash
from essd.instance import steps
from essd.instance.steps import Job
from essd.observe import status
from essd.storage.flash import FlashImage

pytestmark = [pytest.mark.drive, pytest.mark.uml]

RESET_VECTOR = "0x10000"


def test_the_host_stays_connected_while_the_drive_gets_a_new_image(
        booted: Callable[..., Job]) -> None:
    job = booted()
    steps.connect(job)
    device = job.device()
    read = f"dd if={device} bs=64k count=4 iflag=direct status=none | sha256sum"
    job.quiet(f"dd if=/dev/urandom of={device} bs=64k count=4 oflag=direct && sync {device}")
    before = job.quiet(read)
    booted_at = job.quiet("cat /proc/sys/kernel/random/boot_id")

    done = reflash.run(job.instance, "", False, print)

    assert done.slot == reflash.running_slot(job.instance) == "B"
    assert done.build_id == debugger.running_build_id(job.instance)
    image = FlashImage.load(Path(job.instance.config.drives["drive"].flash))
    assert image.image("A") is not None, "the image that ran before is kept"
    steps.wait_target(job)
    # The host connects again by itself, and reads what it had written.
    assert job.quiet(read) == before
    assert job.quiet("cat /proc/sys/kernel/random/boot_id") == booted_at
    said = status.facts(job.instance)
    assert said["drive"]["build-id"] == done.build_id and said["drive"]["slot"] == "B"
    console = (job.instance.folder / "drive/console.log").read_text(errors="replace")
    assert f"drive: firmware {done.version}, build {done.build_id[:12]}, reset by power-on, " \
           "slot B" in console

    job.instance.ask("reset", part="drive", halt=True)
    parts = job.instance.status()["parts"]
    assert parts["drive"]["halted"] and parts["host"]["halted"]
    words = debugger.command(job.instance, None, [
        "-batch", "-ex", "p/x $pc", "-ex", "info symbol $pc", "-ex", "detach"])
    output = subprocess.run(words, check=True, text=True, timeout=120,
                            capture_output=True).stdout
    assert f"= {RESET_VECTOR}\n" in output and "_start in section .text" in output
    steps.wait_target(job)
    assert not job.instance.status()["parts"]["host"]["halted"]
