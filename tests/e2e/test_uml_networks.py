# SPDX-License-Identifier: BSD-2-Clause
"""What a host of user-mode Linux does with its cards: bonding, MTU, netem.

VLANs are in test_tcp_echo.
"""

from collections.abc import Iterator

import pytest
from conftest import SESSION
from test_lag import LACP, bonded, boot, plug, status, unplug, wait

from essd.instance import steps
from essd.instance.config import UML
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.setup import setup

pytestmark = [pytest.mark.drive, pytest.mark.uml]

NAME = f"{SESSION}-bond"
VERIFIED = "--rw=randwrite --bsrange=4k-64k --iodepth=8 --size=4m"


@pytest.fixture(autouse=True)
def only_there(host_kind: str) -> None:
    if host_kind != UML:
        pytest.skip("user-mode Linux is not used")


@pytest.fixture
def aggregated() -> Iterator[Job]:
    """A drive with LACP, and a host whose two cards are a bond."""
    try:
        yield boot("lacp", LACP, NAME, UML)
    finally:
        Instance(NAME).stop()
        setup.forget(NAME)


def verify(job: Job) -> None:
    steps.run_fio(job, steps.FIO.format(device=job.device(), name="own", options=VERIFIED))


def test_a_bond_of_both_cards_goes_on_with_one_cable(aggregated: Job) -> None:
    """A card that joins a bond is set down first, and up again by the bond."""
    job = aggregated
    wait(lambda: bonded(job), status(job))
    steps.connect(job, options="--reconnect-delay=1")
    verify(job)
    for port in (0, 1):
        unplug(job, port)
        wait(lambda: status(job).count("MII Status: up") == 2, f"port {port} is still up")
        verify(job)
        plug(job, port)
        wait(lambda: bonded(job), f"port {port} is not back")
    verify(job)
    steps.disconnect(job)


def test_a_card_gets_its_mtu_back_and_comes_up_again(job: Job) -> None:
    mtu = job.quiet("cat /sys/class/net/eth0/mtu").strip()
    job.run("ip link set eth0 mtu 1280")
    job.run(f"ip link set eth0 mtu {mtu}")
    job.run("ip link set eth1 down")
    job.run("ip link set eth1 up")
    steps.wait_target(job)


def test_netem_makes_each_frame_of_the_host_late(connected: Job) -> None:
    job = connected
    job.run("tc qdisc add dev eth0 root netem delay 4ms")
    try:
        least_ms = float(job.run(f"/usr/bin/ping -c 5 -i 0.2 {job.addresses[0]}").split(" = ")[1]
                         .split("/")[0])
        assert least_ms >= 4
        steps.run_fio(job, steps.FIO.format(device=job.device(), name="late", options=(
            "--rw=randwrite --bsrange=4k-64k --iodepth=8 --size=1m")))
    finally:
        job.run("tc qdisc del dev eth0 root")
