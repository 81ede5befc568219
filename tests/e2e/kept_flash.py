# SPDX-License-Identifier: BSD-2-Clause
"""What a test writes into a drive's flash, and what it makes of its namespaces, is undone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from essd.instance import steps
from essd.instance.steps import Job


@contextmanager
def kept_flash(job: Job) -> Iterator[Job]:
    """After this, the drive starts with the flash of before, and no host is connected."""
    flash = Path(job.instance.config.drive.flash)
    before = flash.read_bytes()
    yield job
    steps.clean_host(job)
    job.instance.ask("power-cut")
    flash.write_bytes(before)
    job.instance.ask("power-on")
    steps.wait_target(job)
