# SPDX-License-Identifier: BSD-2-Clause
"""A host that connects many times, and one that connects right after a reset."""

import json
import time

import pytest
from watching import until

from essd.drive import mgmt
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = pytest.mark.uml

FABRICS = 0x7f              # opcode of Connect
CONTROLLER_BUSY = 0x181     # status of a Connect that the host is to repeat


def cycles(job: Job, count: int) -> None:
    job.instance.run(
        f"for i in $(seq {count}); do "
        f"nvme connect -t rdma -a {job.addresses[0]} -s 4420 -n {job.nqn} >/dev/null && "
        f"nvme disconnect -n {job.nqn} >/dev/null || {{ echo cycle $i; exit 1; }}; done",
        timeout_s=60 + count * 5)


def test_twenty_connect_cycles_succeed(job: Job) -> None:
    cycles(job, 20)


@pytest.mark.long
def test_two_hundred_connect_cycles_succeed(job: Job) -> None:
    cycles(job, 200)


def check_that_connecting_is_no_error(job: Job, count: int) -> None:
    """The commands of a stock host at each connect leave no entry in the error log."""
    def entries() -> int:
        steps.connect(job)
        said = job.quiet(f"nvme smart-log {job.controller()} -o json")
        steps.disconnect(job)
        return int(json.loads(said)["num_err_log_entries"])

    before = entries()
    cycles(job, count)
    steps.connect(job)
    job.quiet(f"nvme list -v; nvme id-ctrl {job.controller()}; "
              f"nvme id-ns {job.device()}; nvme error-log {job.controller()}; true")
    steps.disconnect(job)
    assert entries() == before


@pytest.mark.drive
def test_twenty_connects_leave_no_entry_in_the_error_log(job: Job) -> None:
    check_that_connecting_is_no_error(job, 20)


@pytest.mark.drive
@pytest.mark.long
def test_a_hundred_connects_leave_no_entry_in_the_error_log(job: Job) -> None:
    check_that_connecting_is_no_error(job, 100)


def wait_paths(job: Job, count: int) -> None:
    """Return when the host has found the namespace through this many controllers.

    The scan of a new controller goes on after nvme connect has ended.  If the host removes a
    controller during that scan, Linux 6.12 can add the disk of the namespace a second time,
    which it reports as a warning in device_add_disk().
    """
    deadline = time.monotonic() + 30
    while len(job.quiet("ls -d /sys/block/nvme*c*n* 2>/dev/null; true").split()) < count:
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.drive
def test_connect_right_after_a_reset_with_live_associations(job: Job) -> None:
    """The host still has its associations, whose QPNs the drive does not know any more."""
    steps.connect(job, port=0)
    job.instance.run(f"nvme connect -t rdma -a {job.addresses[1]} -s 4420 -n {job.nqn} "
                     f"-D")
    wait_paths(job, 2)
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.clean_host(job)
    deadline = time.monotonic() + 30
    while job.instance.run(f"ping -c 1 -W 1 {job.addresses[0]}", check=False).status:
        assert time.monotonic() < deadline
    steps.connect(job)


@pytest.mark.drive
def test_a_wrong_subsystem_name_is_refused(job: Job) -> None:
    result = job.instance.run(
        f"nvme connect -t rdma -a {job.addresses[0]} -s 4420 -n {job.nqn}x", check=False)
    assert result.status != 0
    log = job.instance.run("dmesg | tail -n 5").output
    assert "subsysnqn" in log or "Connect" in log, log


@pytest.mark.drive
def test_an_operator_ends_an_association_and_the_host_connects_again(job: Job) -> None:
    """No cable is pulled: that may cost a busy host its connection manager's queue pair."""
    steps.connect(job, options="--reconnect-delay=1")
    device = job.device()
    state = f"cat /sys/class/nvme/{job.controller()[5:]}/state"
    mgmt.ask(job.instance, "fault-add", rule=1, do="status", queue="admin", opcode=FABRICS,
             status=CONTROLLER_BUSY)
    try:
        assert mgmt.ask(job.instance, "disconnect", hostnqn="nqn.2014-08.org.example:x"
                        )["ended"] == 0
        assert mgmt.ask(job.instance, "disconnect", all=True)["ended"] == 1
        until(lambda: "connecting" in job.quiet(state))
        until(lambda: "controller is busy" in job.quiet("dmesg | tail -n 5"))
    finally:
        mgmt.ask(job.instance, "fault-remove", rule=1)
    until(lambda: "live" in job.quiet(state))
    job.run(f"dd if={device} of=/dev/null bs=4k count=16 iflag=direct status=none")
    assert "type GSI state ERR" not in job.quiet("rdma resource show qp")
    steps.clean_host(job)
