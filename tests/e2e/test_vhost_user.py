# SPDX-License-Identifier: BSD-2-Clause
"""Cables of kind vhost-user, between a drive and a stock host in a virtual machine.

Each cable is recorded by the drive, since the host's QEMU cannot.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import test_lag as lag
from conftest import SESSION
from test_lag import wait

import essd
from essd.instance import steps
from essd.instance.config import STOCK, VHOST_USER
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.setup import setup
from essd.setup.setup import Wish
from essd.testrun import pcap_check

pytestmark = [pytest.mark.drive, pytest.mark.long]

NAME = f"{SESSION}-vhost"
# What cables do to about one frame of 300.
FAULTS = {"lost": "wire direction=in when every=300 do drop",
          "bad": "wire direction=out when every=300 do corrupt",
          "twice": "wire direction=out when every=250 do duplicate"}
WRITE = "--rw=randwrite --bsrange=4k-128k --iodepth=16 --size=16m"
# About 10 s of I/O at a low rate, during which something happens.
LONG = "--rw=randwrite --bs=4k --iodepth=8 --size=12m --rate_iops=300"


@pytest.fixture(scope="module")
def job() -> Iterator[Job]:
    instance = Instance(NAME)
    instance.stop()
    setup.forget(NAME)
    try:
        instance.start(setup.configure(Wish(name=NAME, size="256M", block=True, capture=True,
                                            mtu=9000, link=VHOST_USER)))
        instance.wait_ready("host")
        job = Job.of(instance)
        steps.wait_target(job)
        steps.connect(job, options="--reconnect-delay=1")
        yield job
    finally:
        instance.stop()
        setup.forget(NAME)


def verify(job: Job, options: str) -> None:
    steps.run_fio(job, steps.FIO.format(device=job.device(), name="own", options=options))


def meanwhile(job: Job, act: Callable[[], object]) -> None:
    """Verified I/O, and something that happens during it."""
    with ThreadPoolExecutor(1) as pool:
        fio = pool.submit(verify, job, LONG)
        time.sleep(2)
        assert not fio.done()
        act()
        fio.result()


def test_frames_pass_and_are_recorded(job: Job) -> None:
    verify(job, WRITE)
    pcap = job.instance.folder / "link0.pcap"
    sizes = pcap_check._tshark(pcap, "-Y", "infiniband", "-T", "fields", "-e", "frame.len")
    assert len(sizes) > 1000
    assert max(map(int, sizes)) > 4096      # path MTU 4096, in frames of up to 9000 bytes


def test_no_frame_passes_a_socket(job: Job) -> None:
    command = (job.instance.folder / "drive/process.log").read_text()
    assert "vhost-user,id=port0" in command and "stream," not in command


def test_io_survives_stop_and_continue_of_both_machines(job: Job) -> None:
    def stop() -> None:
        for part in ("drive", "host"):
            job.instance.ask("qmp", part=part, execute="stop", arguments={})
            time.sleep(0.5)
            job.instance.ask("qmp", part=part, execute="cont", arguments={})
    meanwhile(job, stop)


def test_io_survives_a_pulled_cable(job: Job) -> None:
    steps.cable_pull(job, 3)


def test_io_survives_set_link_at_the_host(job: Job) -> None:
    def down_and_up() -> None:
        for is_up in (False, True):
            job.instance.ask("qmp", part="host", execute="set_link",
                             arguments={"name": "port0", "up": is_up})
            time.sleep(1)
    meanwhile(job, down_and_up)


def test_io_survives_a_power_cut_and_a_new_connection(job: Job) -> None:
    def cut() -> None:
        job.instance.ask("power-cut", part="drive")
        wait(lambda: not steps.carrier(job, 0), "the host's card keeps its carrier")
        job.instance.ask("power-on", part="drive")
    meanwhile(job, cut)
    wait(lambda: steps.carrier(job, 0) and steps.carrier(job, 1), "a card has no carrier")


def test_drive_is_saved_and_loaded_under_io(job: Job) -> None:
    def save_and_load() -> None:
        job.instance.ask("save")
        job.instance.ask("load")
    meanwhile(job, save_and_load)
    verify(job, WRITE)


def survive_faults(job: Job) -> None:
    """Verified I/O over cables that lose, change and repeat frames."""
    faults = essd.attach(job.instance.name).drives[0].faults
    for name, rule in FAULTS.items():
        faults.add(rule, name)
    try:
        verify(job, LONG)
        assert all(faults[name].fired > 3 for name in FAULTS)
    finally:
        faults.remove()


def test_io_survives_a_bad_cable(job: Job) -> None:
    survive_faults(job)


def aggregate(name: str, host_kind: str) -> None:
    """LACP over two cables: each of them fails in each way during verified I/O."""
    try:
        bond = lag.boot("lacp", lag.LACP, name, host_kind, VHOST_USER)
        steps.discover(bond)
        steps.connect(bond, options="--nr-io-queues=4 --reconnect-delay=1")
        wait(lambda: lag.bonded(bond), lag.status(bond))
        before = [lag.tx_frames(bond, port) for port in (0, 1)]
        lag.survive(bond, lambda: lag.bonded(bond), lag.CABLE, lag.SLAVE)
        for port in (0, 1):
            assert lag.tx_frames(bond, port) - before[port] > 500, "a port had no part in it"
    finally:
        Instance(name).stop()
        setup.forget(name)


def test_ports_are_aggregated() -> None:
    aggregate(f"{NAME}-lag", STOCK)
