# SPDX-License-Identifier: BSD-2-Clause
"""A stock host uses the drive at both levels of NVM Express (docs/nvme.md)."""

from collections.abc import Iterator

import pytest
import uart_dialogue

from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]
BLOCK = 4096


def choose(job: Job, profile: str) -> None:
    steps.clean_host(job)
    for line in (f"config set nvme.profile {profile}", "config save"):
        assert uart_dialogue.ask(job.instance, line)[-1].startswith("ok")
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.wait_target(job)


@pytest.fixture
def datasheet(job: Job) -> Iterator[Job]:
    choose(job, "datasheet")
    yield job
    choose(job, "newest")


def fields(job: Job, command: str) -> dict[str, str]:
    """The fields that nvme-cli prints."""
    lines = job.quiet(command).splitlines()
    return {name.strip(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)}


def write_and_verify(job: Job) -> None:
    device = job.device()
    job.quiet(f"head -c {BLOCK} /dev/urandom > /tmp/data && "
              f"dd if=/tmp/data of={device} bs={BLOCK} seek=9 oflag=direct status=none && "
              f"dd if={device} bs={BLOCK} skip=9 count=1 iflag=direct status=none | "
              "cmp - /tmp/data")


def test_a_host_uses_a_drive_of_the_data_sheets_level(datasheet: Job) -> None:
    job = datasheet
    steps.connect(job)
    found = fields(job, f"nvme id-ctrl {job.controller()}")
    assert found["ver"] == "0x10201", found
    assert int(found["ocfs"], 0) == 0
    assert int(found["oncs"], 0) & 0x1c0 == 0
    assert int(found["lpa"], 0) & 0xf8 == 0
    write_and_verify(job)
    said = job.quiet(f"nvme verify {job.device()} --start-block=0 --block-count=0 2>&1; true",
                     check=False)
    assert "Invalid Command Opcode" in said or "INVALID_OPCODE" in said, said
    steps.disconnect(job)


def test_a_host_uses_a_drive_of_level_2_0(connected: Job) -> None:
    job = connected
    found = fields(job, f"nvme id-ctrl {job.controller()}")
    assert found["ver"] == "0x20000", found
    # Linux reads these data (CNS 08h) from a drive of 2.0 before it uses a namespace.
    job.quiet(f"nvme cmdset-ind-id-ns {job.controller()} -n 1")
    registers = job.quiet(f"nvme show-regs {job.controller()}")
    assert "20000" in registers, registers
    write_and_verify(job)
