# SPDX-License-Identifier: BSD-2-Clause
"""Long-running operations (docs/nvme.md), started and watched with nvme-cli on a stock host."""

import json
import time
from collections.abc import Iterator

import pytest

import essd
from essd import steps
from essd.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.long]
WAIT_S = 120
ALL = "0xffffffff"


@pytest.fixture
def drive(connected: Job, essd_drive: essd.Drive) -> Iterator[essd.Drive]:
    """A drive that its host is connected to; a test's rules are gone after it."""
    yield essd_drive
    essd_drive.faults.remove()


def self_test_log(job: Job) -> dict:
    return json.loads(job.quiet(f"nvme self-test-log {job.controller()} -o json"))


def current(log: dict) -> int:
    return int(log["Current Device Self-Test Operation"])


def results(log: dict) -> list[dict]:
    return log["List of Valid Reports"]


def wait_self_test(job: Job) -> list[dict]:
    """Wait until no test is in progress; return the results, newest first."""
    deadline = time.monotonic() + WAIT_S
    while current(log := self_test_log(job)) != 0:
        assert time.monotonic() < deadline, log
        time.sleep(0.5)
    return results(log)


def test_a_self_test_reads_the_medium_and_names_the_block_that_fails(
        connected: Job, drive: essd.Drive) -> None:
    job = connected
    controller = job.controller()
    job.run(f"nvme device-self-test {controller} -n {ALL} -s 1")
    newest = wait_self_test(job)[0]
    assert (int(newest["Self test code"]), int(newest["Self test result"])) == (1, 0), newest

    # Another host's I/O, here our own, goes on meanwhile; a second test is refused.
    job.run(f"nvme device-self-test {controller} -n 1 -s 2")
    refused = job.run(f"nvme device-self-test {controller} -n 1 -s 1", check=False)
    assert "elf-test" in refused and "rogress" in refused, refused
    job.run(f"fio --name=j --filename={job.device()} --direct=1 --ioengine=libaio --iodepth=4 "
            "--rw=randwrite --bs=4k --size=4m --verify=crc32c --minimal > /dev/null")
    job.run(f"nvme device-self-test {controller} -n 1 -s 0xf")
    newest = wait_self_test(job)[0]
    assert (int(newest["Self test code"]), int(newest["Self test result"])) == (2, 1), newest

    # LBA 100001 of the medium cannot be read any more.
    drive.faults.add("media operation=read lba=100001-100001 do error", "bad")
    job.run(f"nvme device-self-test {controller} -n 1 -s 2")
    newest = wait_self_test(job)[0]
    assert int(newest["Self test result"]) == 7, newest
    assert int(newest["Segment number"]) == 3, newest
    assert int(newest["Failing LBA"]) == 100001, newest
    assert int(newest["Namespace Identifier (NSID)"]) == 1, newest
    drive.faults.remove("bad")

    # An extended test goes on after a power cut.
    job.run(f"nvme device-self-test {controller} -n 1 -s 2")
    before = len(results(self_test_log(job)))
    steps.disconnect(job)
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.wait_target(job)
    steps.connect(job)
    found = wait_self_test(job)
    assert len(found) == before + 1
    assert (int(found[0]["Self test code"]), int(found[0]["Self test result"])) == (2, 0), found
