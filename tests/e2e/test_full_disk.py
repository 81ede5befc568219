# SPDX-License-Identifier: BSD-2-Clause
"""A drive whose array is on a disk that is full for a while (docs/nand.md, "A full disk")."""

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import watching

from essd.demo import nand_steps
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]
# The smallest array there is.
SMALL = "100M,channels=1,profile=slc"
RELIABILITY = 1 << 2            # in SMART's critical warning
LOST = "nand: the array's file cannot be written"
FOUND = "nand: the array's file can be written again"


@pytest.fixture
def job(booted: Callable[..., Job]) -> Iterator[Job]:
    job = booted(nand=SMALL, size=None)
    steps.connect(job)
    yield job


def qmp(job: Job, execute: str, **arguments: object) -> Any:
    return job.instance.ask("qmp", part=job.target, execute=execute, arguments=arguments)


class Disk:
    """The disk of the array: while it is full, QEMU's writes to the file fail."""

    def __init__(self, job: Job) -> None:
        self.job = job
        nodes = qmp(job, "query-named-block-nodes")
        path = job.instance.config.drives[job.target].nand.path
        self.file = next(node["node-name"] for node in nodes
                         if node["drv"] == "file" and node["file"] == str(path))
        qmp(job, "blockdev-add", **{
            "driver": "blkdebug", "node-name": "full", "image": self.file,
            "inject-error": [{"event": "none", "iotype": "write", "errno": errno.ENOSPC,
                              "once": False, "immediately": True}]})

    def fill(self, is_full: bool = True) -> None:
        qmp(self.job, "blockdev-reopen", options=[
            {"driver": "raw", "node-name": "nand", "discard": "unmap",
             "file": "full" if is_full else self.file}])


def write(job: Job, text: str, unit: int) -> bool:
    """Fill 256 KiB with a line, and return whether that was possible."""
    return job.result(f"yes {text} | dd of={job.device()} bs=256k seek={unit} count=1 "
                      "iflag=fullblock oflag=direct status=none", check=False).status == 0


def expect(job: Job, text: str, unit: int) -> None:
    found = job.quiet(f"dd if={job.device()} bs=256k skip={unit} count=1 iflag=direct "
                      "status=none | sort -u")
    assert text in found.split()


def warning(job: Job) -> int:
    return int(nand_steps.smart(job)["critical_warning"])


def console(job: Job) -> str:
    return Path(job.instance.folder, f"{job.target}/console.log").read_text(errors="replace")


def test_a_drive_on_a_full_disk_goes_on_when_there_is_space(job: Job) -> None:
    disk = Disk(job)
    assert write(job, "first", 0) and write(job, "first", 1)
    job.run(f"nvme flush {job.device()}")
    disk.fill()
    write(job, "second", 0)
    assert job.result(f"nvme flush {job.device()}", check=False).status != 0
    assert warning(job) == RELIABILITY
    assert "Write Fault" in job.quiet(f"nvme flush {job.device()} 2>&1 || true")
    expect(job, "second", 0)
    expect(job, "first", 1)
    disk.fill(False)
    assert watching.until(lambda: FOUND in console(job))
    assert warning(job) == 0
    assert console(job).count(LOST) == console(job).count(FOUND) == 1
    job.run(f"nvme flush {job.device()}")
    assert write(job, "third", 1)
    job.run(f"nvme flush {job.device()}")
    job.instance.ask("power-cut")
    steps.forget_target(job)
    job.instance.ask("power-on")
    steps.wait_target(job)
    steps.connect(job)
    expect(job, "second", 0)
    expect(job, "third", 1)
