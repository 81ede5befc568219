# SPDX-License-Identifier: BSD-2-Clause
"""A damaged firmware image: the other slot boots, and the host can find out."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from essd.instance import steps
from essd.instance.steps import Job
from essd.storage.flash import FlashImage

pytestmark = pytest.mark.uml

INVALID_FIRMWARE_IMAGE = 0x107      # command specific status 07h


@pytest.mark.drive
def test_a_host_reads_in_the_error_log_that_a_slot_is_damaged(
        booted: Callable[..., Job]) -> None:
    job = booted()
    flash = Path(job.instance.config.drive.flash)
    job.instance.ask("power-cut")
    image = FlashImage.load(flash)
    image.corrupt_slot("A")
    image.save(flash)
    job.instance.ask("power-on")
    steps.wait_target(job)
    console = (job.instance.folder / "drive/console.log").read_text(errors="replace")
    assert "starting slot B" in console
    assert "firmware image in slot 1 is damaged" in console
    steps.connect(job)
    log = json.loads(job.instance.run(
        f"nvme error-log {job.controller()} -o json", apart=True).output)
    found = [entry for entry in log["errors"]
             if entry["status_field"] & 0x7ff == INVALID_FIRMWARE_IMAGE]
    assert found, log["errors"][:3]
    slots = job.instance.run(f"nvme fw-log {job.controller()} -o json", apart=True).output
    assert '"Active Firmware Slot (afi)":2' in slots.replace(": ", ":"), slots
