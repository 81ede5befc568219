# SPDX-License-Identifier: BSD-2-Clause
"""Cables of kind vhost-user between a drive and user-mode Linux, whose kernel is the front-end.

What the front-end of QEMU does is in test_vhost_user.py.
"""

import time
from collections.abc import Iterator

import pytest
import test_lag as lag
from conftest import SESSION
from test_lag import wait
from test_vhost_user import WRITE, aggregate, meanwhile, survive_faults, verify

from essd.base.errors import EssdError
from essd.instance import steps
from essd.instance.config import UML, VHOST_USER
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.setup import setup
from essd.setup.setup import Wish
from essd.testrun import pcap_check

pytestmark = [pytest.mark.drive, pytest.mark.uml, pytest.mark.long]

NAME = f"{SESSION}-vhost-uml"


@pytest.fixture(scope="module")
def job(host_kind: str) -> Iterator[Job]:
    if host_kind != UML:
        pytest.skip("user-mode Linux is not used")
    instance = Instance(NAME)
    instance.stop()
    setup.forget(NAME)
    try:
        instance.start(setup.configure(Wish(name=NAME, size="256M", block=True, capture=True,
                                            mtu=9000, host_kind=UML, link=VHOST_USER)))
        instance.wait_ready("host")
        job = Job.of(instance)
        steps.wait_target(job)
        steps.connect(job, options="--reconnect-delay=1")
        yield job
    finally:
        instance.stop()
        setup.forget(NAME)


def test_frames_pass_no_socket_and_are_recorded(job: Job) -> None:
    verify(job, WRITE)
    pcap = job.instance.folder / "link0.pcap"
    sizes = pcap_check._tshark(pcap, "-Y", "infiniband", "-T", "fields", "-e", "frame.len")
    assert len(sizes) > 1000
    assert max(map(int, sizes)) > 4096      # path MTU 4096, in frames of up to 9000 bytes
    log = (job.instance.folder / "host/process.log").read_text()
    assert "virtio_uml.device=../port0.sock" in log and "stream," not in log
    assert job.quiet("ethtool -i eth0").startswith("driver: virtio_net")
    assert "Speed: 25000Mb/s" in job.quiet("ethtool eth0")


def test_io_survives_stop_and_continue_of_both_machines(job: Job) -> None:
    def stop() -> None:
        for part in ("drive", "host"):
            job.instance.ask("qmp", part=part, execute="stop", arguments={})
            time.sleep(0.5)
            job.instance.ask("qmp", part=part, execute="cont", arguments={})
    meanwhile(job, stop)


def test_io_survives_a_pulled_cable(job: Job) -> None:
    steps.cable_pull(job, 3)


def test_io_survives_a_card_without_a_carrier(job: Job) -> None:
    def down_and_up() -> None:
        lag.card_off(job, 0)
        wait(lambda: not steps.carrier(job, 0), "the card keeps its carrier")
        time.sleep(1)
        lag.card_on(job, 0)
        wait(lambda: steps.carrier(job, 0), "the card gets no carrier")
    meanwhile(job, down_and_up)


def test_io_survives_power_cuts_and_new_connections(job: Job) -> None:
    def cut() -> None:
        for _ in range(2):
            job.instance.ask("power-cut", part="drive")
            wait(lambda: not steps.carrier(job, 0), "the host's card keeps its carrier")
            job.instance.ask("power-on", part="drive")
            wait(lambda: steps.carrier(job, 0) and steps.carrier(job, 1),
                 "a card has no carrier")
    meanwhile(job, cut)
    verify(job, WRITE)


def test_io_survives_a_bad_cable(job: Job) -> None:
    survive_faults(job)


def test_drive_is_saved_and_loaded_under_io(job: Job) -> None:
    def save_and_load() -> None:
        job.instance.ask("save")
        job.instance.ask("load")
    meanwhile(job, save_and_load)
    verify(job, WRITE)


def test_snapshots_are_refused_in_one_line(job: Job) -> None:
    with pytest.raises(EssdError, match="is user-mode Linux, whose state cannot be saved"):
        job.instance.ask("save-all", name="one")


def test_ports_are_aggregated(host_kind: str) -> None:
    aggregate(f"{NAME}-lag", host_kind)
