# SPDX-License-Identifier: BSD-2-Clause
"""Fault rules (docs/faults.md), as a stock Linux host experiences them."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from essd.steps import Job

pytestmark = pytest.mark.drive
BLOCK = 512


@pytest.fixture
def faulty(connected: Job) -> Iterator[Job]:
    """A connected host; the rules that the test adds are gone after it."""
    yield connected
    connected.instance.ask("faults", do="remove")


def add_rule(job: Job, rule: str, name: str) -> None:
    job.instance.ask("faults", do="add", rules=[{"rule": rule, "name": name}])


def rule_counters(job: Job, name: str) -> dict[str, Any]:
    rules = job.instance.ask("faults")
    return dict(next(rule for rule in rules if rule["name"] == name))


def read_block(job: Job, lba: int, options: str = "") -> int:
    """The exit status of a read of 4 KiB at this LBA."""
    return job.instance.run(
        f"{options} dd if={job.device()} of=/dev/null bs=4k count=1 "
        f"skip={lba * BLOCK} iflag=direct,skip_bytes status=none", check=False).status


def test_a_command_fails_with_the_status_of_a_rule(faulty: Job) -> None:
    add_rule(faulty, "nvme queue=io opcode=read lba=1000-1007 "
                     "do status=unrecovered-read-error", "bad")
    assert read_block(faulty, 992) == 0
    assert read_block(faulty, 1000) != 0
    assert "sct 0x2 / sc 0x81" in faulty.instance.run("dmesg | tail -20").output
    faulty.instance.ask("faults", do="off", names=["bad"])
    assert read_block(faulty, 1000) == 0
    assert rule_counters(faulty, "bad")["fired"] > 0


def test_a_lost_command_and_an_rnr_are_repaired_by_the_transport(faulty: Job) -> None:
    add_rule(faulty, "wire direction=in nvme.opcode=read when nth=3 do drop", "lost")
    add_rule(faulty, "rdma request=send when every=4 do rnr", "busy")
    faulty.instance.run(f"dd if={faulty.device()} of=/dev/null bs=4k count=20 "
                        "iflag=direct status=none")
    assert rule_counters(faulty, "lost")["fired"] == 1
    assert rule_counters(faulty, "busy")["fired"] >= 5


def test_a_stuck_medium_goes_on_when_its_rule_is_removed(faulty: Job) -> None:
    add_rule(faulty, "media operation=read lba=4000-4007 do stuck", "stuck")
    assert read_block(faulty, 4000, "timeout -s KILL 2") != 0
    assert read_block(faulty, 5000) == 0
    faulty.instance.ask("faults", do="remove", names=["stuck"])
    assert read_block(faulty, 4000) == 0


def test_a_rule_cuts_the_power_at_an_event_and_survives_it(faulty: Job) -> None:
    add_rule(faulty, "media operation=flush when nth=1 do power-cut", "cut")
    add_rule(faulty, "nvme opcode=read lba=1000 do status=internal-error", "kept")
    faulty.instance.run(
        f"dd if=/dev/zero of={faulty.device()} bs=4k count=1 seek=512 oflag=direct "
        "conv=fsync status=none & sleep 1; kill $! 2>/dev/null", check=False)
    deadline = time.monotonic() + 30
    while faulty.instance.status()["parts"]["drive"]["state"] == "running":
        assert time.monotonic() < deadline, "the rule did not cut the power"
        time.sleep(0.1)
    drive = faulty.instance.status()["parts"]["drive"]
    assert (drive["state"], drive["why"]) == ("off", "the fault rule cut has cut the power")
    cut = rule_counters(faulty, "cut")
    assert (cut["on"], cut["fired"]) == (False, 1)
    faulty.instance.ask("power-on")
    assert read_block(faulty, 992) == 0         # the host has connected again
    assert read_block(faulty, 1000) != 0
