# SPDX-License-Identifier: BSD-2-Clause
"""Long-running operations (docs/nvme.md), started and watched with nvme-cli on a stock host."""

import json
import time
from collections.abc import Iterator

import pytest
from sanitizing import DONE, IN_PROGRESS, sanitize_status, wait_sanitize

import essd
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml, pytest.mark.long]
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


def test_a_self_test_reads_the_medium_and_goes_on_after_a_power_cut(connected: Job) -> None:
    job = connected
    controller = job.controller()
    job.run(f"nvme device-self-test {controller} -n {ALL} -s 1")
    newest = wait_self_test(job)[0]
    assert (int(newest["Self test code"]), int(newest["Self test result"])) == (1, 0), newest

    # A second test is refused while one is in progress, which can be aborted.
    job.run(f"nvme device-self-test {controller} -n 1 -s 2")
    refused = job.run(f"nvme device-self-test {controller} -n 1 -s 1", check=False)
    assert "elf-test" in refused and "rogress" in refused, refused
    job.run(f"nvme device-self-test {controller} -n 1 -s 0xf")
    newest = wait_self_test(job)[0]
    assert (int(newest["Self test code"]), int(newest["Self test result"])) == (2, 1), newest

    # I/O goes on while the drive tests itself.
    job.run(f"nvme device-self-test {controller} -n 1 -s 2")
    job.run(f"fio --name=j --filename={job.device()} --direct=1 --ioengine=libaio --iodepth=4 "
            "--rw=randwrite --bs=4k --size=4m --verify=crc32c --minimal > /dev/null")
    newest = wait_self_test(job)[0]
    assert (int(newest["Self test code"]), int(newest["Self test result"])) == (2, 0), newest

    # An extended test goes on after a power cut.
    job.run(f"nvme device-self-test {controller} -n 1 -s 2")
    steps.disconnect(job)
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.wait_target(job)
    steps.connect(job)
    found = wait_self_test(job)
    assert (int(found[0]["Self test code"]), int(found[0]["Self test result"])) == (2, 0), found


def holds_only(job: Job, character: str) -> bool:
    """Whether every 16th MiB of the medium, and the last one, consists of this byte.

    An emulated host would need three minutes for the whole medium.
    """
    device = job.device()
    last = (int(job.quiet(f"blockdev --getsize64 {device}")) >> 20) - 1
    places = [*range(0, last, 16), last]
    found = job.quiet(f"for i in {' '.join(map(str, places))}; do dd if={device} bs=1M skip=$i "
                      f"count=1 iflag=direct status=none; done | tr -cd '{character}' | wc -c")
    return int(found) == len(places) << 20


def test_a_sanitize_erases_the_medium_and_goes_on_after_a_power_cut(
        connected: Job, drive: essd.Drive) -> None:
    job = connected
    assert drive is not None
    device = job.device()
    job.run(f"tr '\\0' 'x' < /dev/zero | dd of={device} bs=1M count=16 iflag=fullblock "
            "oflag=direct conv=fsync status=none")

    # An overwrite with 16 passes goes on after a power cut; reads are refused meanwhile.
    job.run(f"nvme sanitize {job.controller()} --sanact=start-overwrite --owpass=0 "
            "--ovrpat=0x61616161 --no-dealloc")
    assert sanitize_status(job) == IN_PROGRESS
    assert "0" != job.run(f"dd if={device} of=/dev/null bs=4k count=1 iflag=direct "
                          "status=none; echo $?", check=False).split()[-1]
    steps.disconnect(job)
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.wait_target(job)
    job.run(f"nvme connect -t rdma -a {job.addresses[0]} -s {steps.SERVICE} -n {job.nqn}")
    assert wait_sanitize(job) == DONE
    steps.disconnect(job)
    steps.connect(job)
    assert holds_only(job, "a"), "not all of the medium has the pattern"

    # A block erase leaves zeroes everywhere.
    job.run(f"nvme sanitize {job.controller()} --sanact=start-block-erase")
    assert wait_sanitize(job) == DONE
    assert holds_only(job, "\\0")

    refused = job.run(f"nvme sanitize {job.controller()} --sanact=start-crypto-erase",
                      check=False)
    assert "Invalid Field" in refused or "INVALID_FIELD" in refused or "0x4002" in refused, refused
    job.run(f"fio --name=j --filename={job.device()} --direct=1 --ioengine=libaio --iodepth=4 "
            "--rw=randwrite --bs=4k --size=4m --verify=crc32c --minimal > /dev/null")
