# SPDX-License-Identifier: BSD-2-Clause
"""The discovery service as nvme-cli on a stock host sees it."""

import re
from collections.abc import Iterator

import pytest

from essd.drive import mgmt
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.long]
OTHER = "192.0.2.20"


@pytest.fixture
def discovery(job: Job) -> Iterator[Job]:
    """The session's drive; afterwards without referrals, and the host is clean."""
    yield job
    for entry in mgmt.ask(job.instance, "referrals")["referrals"]:
        mgmt.ask(job.instance, "referral-remove", address=entry["address"],
                 service=int(entry["service"]))
    steps.clean_host(job)


def discover(job: Job, options: str = "") -> str:
    return job.run(f"nvme discover -t rdma -a {job.addresses[0]} -s 4420 {options}")


def generation(log: str) -> int:
    match = re.search(r"Generation counter (\d+)", log)
    assert match, log
    return int(match[1])


def test_the_unique_name_is_listed_and_can_be_used(discovery: Job) -> None:
    unique = f"{discovery.nqn}:discovery"
    log = discover(discovery)
    assert log.count(unique) == len(discovery.addresses), log
    assert discovery.nqn in discover(discovery, f"-n {unique}")


def test_a_referral_is_listed_and_moves_the_generation(discovery: Job) -> None:
    before = generation(discover(discovery))
    assert generation(discover(discovery)) == before
    mgmt.ask(discovery.instance, "referral-add", address=OTHER)
    log = discover(discovery)
    assert generation(log) == before + 1
    assert re.search(rf"subtype:\s+discovery subsystem referral.*?traddr:\s+{OTHER}", log,
                     re.S), log


def test_a_persistent_controller_stays_and_reads_the_new_log(discovery: Job) -> None:
    discover(discovery, "--persistent --keep-alive-tmo=5")
    names = discovery.quiet("for c in /sys/class/nvme/nvme*; do [ $(cat $c/cntrltype) = "
                            "discovery ] && echo ${c##*/}; done; true").split()
    assert len(names) == 1
    first = generation(discovery.run(f"nvme discover -t rdma -a {discovery.addresses[0]} "
                                     f"-s 4420 -d {names[0]}"))
    mgmt.ask(discovery.instance, "referral-add", address=OTHER)
    discovery.quiet("sleep 12")     # longer than the keep-alive time-out, twice
    assert discovery.quiet(f"cat /sys/class/nvme/{names[0]}/state").strip() == "live"
    assert generation(discovery.run(f"nvme discover -t rdma -a {discovery.addresses[0]} "
                                    f"-s 4420 -d {names[0]}")) == first + 1


def test_connect_all_makes_a_path_of_each_port(discovery: Job) -> None:
    discovery.run(f"nvme connect-all -t rdma -a {discovery.addresses[1]} -s 4420")
    states = discovery.quiet("cat /sys/class/nvme/nvme*/state").split()
    assert states == ["live"] * len(discovery.addresses)
    assert discovery.device()
