# SPDX-License-Identifier: BSD-2-Clause
"""IPv6, and links with unusual MTUs."""

import re
from collections.abc import Callable, Iterator

import pytest

from essd.instance import steps
from essd.instance.steps import Job
from essd.setup import setup
from essd.setup.setup import Wish

pytestmark = pytest.mark.uml

VERIFIED = "--rw=randwrite --bsrange=4k-64k --iodepth=8 --size=6m"


def verify(job: Job) -> None:
    command = steps.FIO.format(device=job.device(), name="link", options=VERIFIED)
    result = job.instance.run(command, timeout_s=300)
    assert "err= 0" in result.output, result.output


@pytest.mark.drive
def test_ipv6_is_discovered_connected_and_verified(booted: Callable[..., Job]) -> None:
    """One port has addresses of both families, the other one has IPv6 only."""
    job = booted(ports=["10.0.0.10/24,fd00:0:0:1::10/64", "fd00:0:0:2::10/64"])
    for via in ("10.0.0.10", "fd00:0:0:1::10", "fd00:0:0:2::10"):
        log = job.run(f"nvme discover -t rdma -a {via} -s 4420")
        found = re.findall(r"adrfam:\s+(\S+)\n.*?traddr:\s+(\S+)", log, re.S)
        assert {("ipv4", "10.0.0.10"), ("ipv6", "fd00:0:0:1::10"),
                ("ipv6", "fd00:0:0:2::10")} <= set(found), log
    for via in ("fd00:0:0:1::10", "fd00:0:0:2::10"):
        job.run(f"nvme connect -t rdma -a {via} -s 4420 -n {job.nqn}")
        verify(job)
        steps.disconnect(job)
    # The host can connect to every address in the discovery log.
    job.run("nvme connect-all -t rdma -a fd00:0:0:2::10 -s 4420")
    assert job.quiet("cat /sys/class/nvme/nvme*/state").split() == ["live"] * 3
    steps.clean_host(job)


@pytest.mark.drive
def test_a_configured_link_local_address_serves_nvme_of(
        booted: Callable[..., Job]) -> None:
    """A configured link-local address serves NVMe-oF; the automatic one answers pings only.

    Hosts that come in through another address are not told of it.
    """
    job = booted(ports=["10.0.0.10/24,fe80::10/64", "10.0.1.10/24"])
    job.run("ping -6 -c 1 -W 5 fe80::10%eth0")
    log = job.run("nvme discover -t rdma -a fe80::10%eth0 -s 4420")
    assert job.nqn in log
    assert "traddr:  fe80::10\n" in log
    for other in ("10.0.0.10", "10.0.1.10"):
        log = job.run(f"nvme discover -t rdma -a {other} -s 4420")
        assert job.nqn in log
        assert "fe80" not in log
    job.run(f"nvme connect -t rdma -a fe80::10%eth0 -s 4420 -n {job.nqn}")
    verify(job)
    steps.disconnect(job)


def active_mtu(job: Job) -> int:
    return int(re.search(r"active_mtu:\s+(\d+)",
                         job.run("ibv_devinfo -d rxe0"))[1])  # type: ignore[index]


@pytest.fixture(scope="module")
def jumbo(target: str, host_kind: str) -> Iterator[Job]:
    """A drive and a host on links with an MTU of 9000, for several tests."""
    from conftest import SESSION, boot
    job = boot(Wish(name=f"{SESSION}-jumbo", target=target, size="512M", mtu=9000,
                    host_kind=host_kind))
    yield job
    job.instance.stop()
    setup.forget(job.instance.name)


@pytest.mark.drive
@pytest.mark.parametrize("mtu, path", [
    pytest.param(1280, 1024, marks=pytest.mark.long), (1500, 1024),
    pytest.param(4200, 4096, marks=pytest.mark.long), (9000, 4096)])
def test_path_mtu_follows_from_the_link_mtu(request: pytest.FixtureRequest, mtu: int,
                                            path: int) -> None:
    kept = {1500: "job", 9000: "jumbo"}     # Others boot a pair for this test.
    job: Job = (request.getfixturevalue(kept[mtu]) if mtu in kept else
                request.getfixturevalue("booted")(mtu=mtu))
    assert active_mtu(job) == path
    steps.connect(job)
    verify(job)
    steps.disconnect(job)


@pytest.mark.drive
def test_a_host_with_the_smaller_mtu_is_served(jumbo: Job) -> None:
    """Drive 9000, host 1500: the path MTU that the host requests is used."""
    jumbo.run("ip link set eth0 mtu 1500")
    assert active_mtu(jumbo) == 1024
    steps.connect(jumbo)
    verify(jumbo)
    steps.disconnect(jumbo)
    jumbo.run("ip link set eth0 mtu 9000")


@pytest.mark.drive
def test_a_host_with_the_larger_mtu_is_refused_with_the_reason(
        booted: Callable[..., Job]) -> None:
    """Drive 1500, host 9000: REJ 26 (invalid MTU), until the host's MTU is reduced."""
    job = booted(mtu=1500, host_mtu=9000)
    job.run(f"ping -c 1 -W 30 {job.addresses[0]}")
    assert active_mtu(job) == 4096
    job.quiet("dmesg -C")
    result = job.instance.run(f"nvme connect -t rdma -a {job.addresses[0]} -s 4420 "
                              f"-n {job.nqn}", check=False)
    assert result.status != 0
    log = job.quiet("dmesg")
    assert re.search(r"status 26 \(invalid MTU\)", log), log
    job.run("ip link set eth0 mtu 1500")
    steps.connect(job)
    verify(job)
    steps.disconnect(job)
