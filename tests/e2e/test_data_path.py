# SPDX-License-Identifier: BSD-2-Clause
"""Bits that flip in a drive's DRAM under the data of a Linux host (decision 17)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from essd.api import Drive
from essd.demo import nand_steps
from essd.drive import mgmt
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]
# The smallest array there is: two dies, so it has no parity, with one bit in a cell.
SMALL = "100M,channels=1,profile=slc"
DRAM = 0x8000_0000
KEPT = 64 << 20                 # The write buffer is in this last part of the DRAM.
UNIT = 4096
LINES = "".join(f"{i:015}\n" for i in range(1, UNIT // 16 + 1))


@pytest.fixture
def job(booted: Callable[..., Job]) -> Iterator[Job]:
    job = booted(nand=SMALL, size=None)
    steps.connect(job)
    yield job


def qmp(job: Job, execute: str, **arguments: object) -> Any:
    return job.instance.ask("qmp", part=job.target, execute=execute, arguments=arguments)


def write(job: Job, unit: int) -> None:
    job.run(f"seq -f %015g {UNIT // 16} | dd of={job.device()} bs={UNIT} seek={unit} count=1 "
            "oflag=direct iflag=fullblock status=none")


def read(job: Job, unit: int, block: int | None = None) -> bool:
    """Read a unit, or one block of it; return whether it is good.  It must not be wrong."""
    size, skip = (UNIT, unit) if block is None else (512, unit * 8 + block)
    result = job.result(f"dd if={job.device()} bs={size} skip={skip} count=1 iflag=direct "
                        "status=none", check=False)
    if result.status == 0:
        assert result.output.split() == LINES[(block or 0) * 512:][:size].split()
    return result.status == 0


def buffered(job: Job, folder: Path) -> int:
    """The address of the pattern in the write buffer."""
    size = int(qmp(job, "query-memory-size-summary")["base-memory"])
    path = folder / "dram"
    qmp(job, "pmemsave", val=DRAM + size - KEPT, size=KEPT, filename=str(path))
    at = path.read_bytes().rfind(LINES.encode())
    assert at >= 0
    return DRAM + size - KEPT + at


def reset(job: Job) -> None:
    """Reset the drive with power on: the next start adopts the write buffer."""
    qmp(job, "system_reset")
    steps.forget_target(job)
    steps.wait_target(job)
    steps.connect(job)


def flip(job: Job, address: int, bits: int) -> None:
    qmp(job, "qom-set", path="/machine/ecc", property="inject", value=f"{address:x} {bits:x}")


def console(job: Job) -> str:
    return Path(job.instance.folder, f"{job.target}/console.log").read_text(errors="replace")


def test_wrong_bits_in_the_write_buffer_are_corrected_or_the_block_cannot_be_read(
        job: Job, tmp_path: Path) -> None:
    # While nothing can be programmed, the data stays in the write buffer.
    job.instance.ask("faults", part=job.target, do="add", rules=[
        {"rule": "nand operation=program do transfer", "name": "hold"}])
    write(job, 5)
    address = buffered(job, tmp_path)
    flip(job, address + 512, 1 << 7)
    assert read(job, 5)
    flip(job, address + 3 * 512, 3)
    assert not read(job, 5, block=3)
    assert read(job, 5, block=2)
    assert "sct 0x2 / sc 0x81" in job.quiet("dmesg | tail -20")
    job.instance.ask("faults", part=job.target, do="remove", names=["hold"])
    reset(job)
    assert not read(job, 5, block=3)
    assert read(job, 5, block=4)
    job.run(f"nvme flush {job.device()}")
    assert not read(job, 5, block=3)
    write(job, 5)
    assert read(job, 5)
    job.run(f"nvme flush {job.device()}")
    assert read(job, 5)
    text = console(job)
    assert "its block in the write buffer is lost" in text and "panic" not in text


def logged(job: Job) -> list[dict[str, Any]]:
    """The parity errors of the RNIC that the drive has logged, the oldest first."""
    errors = mgmt.ask(job.instance, "hardware-errors")["errors"]
    return [error for error in reversed(errors) if error["kind"] == "rnic-transfer"]


def test_a_host_repeats_what_a_parity_error_of_the_rnic_has_ended(job: Job) -> None:
    steps.clean_host(job)
    steps.connect(job, options="--reconnect-delay=1")
    rules = Drive(job.instance, job.target).faults
    for unit, direction in enumerate(("in", "out")):
        write(job, unit)
        name = rules.add(f"rdma direction={direction} when nth=1 do transfer")
        write(job, unit + 2)
        assert read(job, unit) and read(job, unit + 2)
        assert rules[name].fired == 1
    text = console(job)
    assert "had a parity error on its way to DRAM; its connection ends; 1 such" in text
    errors = logged(job)
    assert [error["address"] >> 32 for error in errors] == [0, 1]
    assert all(error["fatal"] for error in errors)
    found = nand_steps.number_of(job.quiet(f"nvme ocp smart-add-log {job.controller()}"),
                                 "End to end detected errors")
    assert found == 2
    reset(job)      # This stops nothing in order: the errors are in the SPI flash already.
    assert logged(job) == errors
