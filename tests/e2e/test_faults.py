# SPDX-License-Identifier: BSD-2-Clause
"""Fault rules (docs/faults.md), as a Linux host experiences them.

These tests use the public Python interface only (docs/python.md).
"""

import time
from collections.abc import Iterator

import pytest

import essd
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]
BLOCK = 512


@pytest.fixture
def drive(connected: Job, essd_drive: essd.Drive) -> Iterator[essd.Drive]:
    """A drive that its host is connected to; a test's rules are gone after it."""
    yield essd_drive
    essd_drive.faults.remove()


def read_block(drive: essd.Drive, lba: int, options: str = "") -> int:
    """The exit status of a read of 4 KiB at this LBA."""
    host = drive.system.host
    return host.run(f"{options} dd if={host.device(drive)} of=/dev/null bs=4k count=1 "
                    f"skip={lba * BLOCK} iflag=direct,skip_bytes status=none",
                    check=False).status


def test_a_command_fails_with_the_status_of_a_rule(drive: essd.Drive) -> None:
    drive.faults.add("nvme queue=io opcode=read lba=1000-1007 "
                     "do status=unrecovered-read-error", "bad")
    assert read_block(drive, 992) == 0
    assert read_block(drive, 1000) != 0
    assert "sct 0x2 / sc 0x81" in drive.system.host.run("dmesg | tail -20").output
    assert drive.faults["bad"].fired == 6        # Linux tries again five times.
    drive.faults.remove("bad")
    drive.faults.add("nvme queue=io opcode=read lba=1000-1007 "
                     "do status=unrecovered-read-error,dnr", "final")
    assert read_block(drive, 1000) != 0
    assert drive.faults["final"].fired == 1
    drive.faults.turn_off("final")
    assert read_block(drive, 1000) == 0


@pytest.mark.rnr
def test_a_lost_command_and_an_rnr_are_repaired_by_the_transport(drive: essd.Drive) -> None:
    host = drive.system.host
    drive.faults.add("wire direction=in nvme.opcode=read when nth=3 do drop", "lost")
    drive.faults.add("rdma request=send when every=4 do rnr", "busy")
    host.run(f"dd if={host.device(drive)} of=/dev/null bs=4k count=20 iflag=direct "
             "status=none")
    assert drive.faults["lost"].fired == 1
    assert drive.faults["busy"].fired >= 5


def test_a_rule_cuts_the_power_at_an_event_and_survives_it(drive: essd.Drive) -> None:
    host = drive.system.host
    drive.faults.add("nand operation=program when nth=1 do power-cut", "cut")
    drive.faults.add("nvme opcode=read lba=1000 do status=internal-error", "kept")
    host.run(f"dd if=/dev/zero of={host.device(drive)} bs=4k count=1 seek=512 oflag=direct "
             "conv=fsync status=none & sleep 1; kill $! 2>/dev/null", check=False)
    deadline = time.monotonic() + 30
    while drive.is_on:
        assert time.monotonic() < deadline, "the rule did not cut the power"
        time.sleep(0.1)
    assert drive.status()["state"] == "off"
    assert drive.status()["why"] == "the fault rule cut has cut the power"
    cut = drive.faults["cut"]
    assert (cut.is_on, cut.fired) == (False, 1)
    drive.power_on()
    assert read_block(drive, 992) == 0          # the host has connected again
    assert read_block(drive, 1000) != 0
