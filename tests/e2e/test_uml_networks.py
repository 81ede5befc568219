# SPDX-License-Identifier: BSD-2-Clause
"""What a host of user-mode Linux does with its cards: bonding (all transports), MTU, netem.

VLANs are in test_tcp_echo.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import uart_dialogue
from conftest import SESSION
from test_aoe import BLOCK, DISK, FIO, restart
from test_lag import LACP, bonded, boot, plug, status, unplug, wait

from essd.drive import tcp
from essd.instance import steps
from essd.instance.config import UML
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.setup import setup

pytestmark = [pytest.mark.drive, pytest.mark.uml]

NAME = f"{SESSION}-bond"
TRANSFER = 24_000_000
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
    verify_by_either_cable(job)
    steps.disconnect(job)


def verify_by_either_cable(job: Job) -> None:
    verify(job)
    for port in (0, 1):
        unplug(job, port)
        wait(lambda: status(job).count("MII Status: up") == 2, f"port {port} is still up")
        verify(job)
        plug(job, port)
        wait(lambda: bonded(job), f"port {port} is not back")
    verify(job)


@pytest.mark.long
@pytest.mark.parametrize(("setting", "transport"), [("nvme.iwarp", "rdma"), ("nvme.tcp", "tcp")])
def test_nvme_over_tcp_and_iwarp_goes_on_with_one_cable(aggregated: Job, setting: str,
                                                        transport: str) -> None:
    job = aggregated
    restart(job, f"{setting} on")
    wait(lambda: bonded(job), status(job))
    if transport == "rdma":
        job.run("rdma link delete rxe0")
        job.run("rdma link add siw0 type siw netdev bond0")
    job.run(f"nvme connect -t {transport} -a {job.addresses[0]} -s {steps.SERVICE} -n {job.nqn} "
            "--reconnect-delay=1")
    verify_by_either_cable(job)
    steps.disconnect(job)


@pytest.mark.long
def test_a_transfer_over_tcp_goes_on_with_one_cable(aggregated: Job,
                                                    host_programs: dict[str, Path]) -> None:
    """The connection's path is the aggregate: every byte comes back by the other cable."""
    job = aggregated
    wait(lambda: bonded(job), status(job))
    for line in ("config set tcp.echo on", "config save"):
        assert uart_dialogue.ask(job.instance, line)[-1].startswith("ok")
    job.instance.put(host_programs["tcp_load"], "/tmp/tcp_load")
    job.quiet("tc qdisc add dev bond0 root netem delay 5ms")    # so that it takes half a minute
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(job.quiet, f"/tmp/tcp_load {job.addresses[0]} 7 {TRANSFER} 1")
        for port in (0, 1):
            wait(lambda: sent_bytes(job) > 0, "nothing is sent")
            unplug(job, port)
            wait(lambda: status(job).count("MII Status: up") == 2, f"port {port} is still up")
            before = sent_bytes(job)
            wait(lambda at=before: sent_bytes(job) > at + 100_000, "the transfer stands still")
            assert not load.done(), load.result()
            plug(job, port)
            wait(lambda: bonded(job), f"port {port} is not back")
        assert json.loads(load.result())["bytes"] == TRANSFER


def sent_bytes(job: Job) -> int:
    """What the drive has sent by its only connection that is open."""
    return sum(entry["sent-bytes"] for entry in tcp.read(job.instance)
               if entry["state"] == "ESTABLISHED")


def test_an_aoe_disk_goes_on_with_one_cable(aggregated: Job) -> None:
    """The aggregate is the disk's only path: each port answers what comes to it."""
    job = aggregated
    restart(job, "aoe.export 1", "aoe.shelf 7")
    wait(lambda: bonded(job), status(job))
    job.quiet("echo bond0 > /sys/module/aoe/parameters/aoe_iflist; for n in $(seq 300); do "
              f"echo > /dev/etherd/discover; grep -qx up '{BLOCK}/state' 2>/dev/null && exit 0; "
              "sleep 0.1; done; exit 1")
    assert job.quiet(f"cat '{BLOCK}/netif'").strip() == "bond0"
    job.quiet(FIO.format(device=DISK, size="2m"))
    for port in (0, 1):
        unplug(job, port)
        wait(lambda: status(job).count("MII Status: up") == 2, f"port {port} is still up")
        job.quiet(FIO.format(device=DISK, size="2m"))
        plug(job, port)
        wait(lambda: bonded(job), f"port {port} is not back")
    job.quiet(FIO.format(device=DISK, size="2m"))


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
