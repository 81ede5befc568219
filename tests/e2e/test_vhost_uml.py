# SPDX-License-Identifier: BSD-2-Clause
"""Cables of kind vhost-user between a drive and user-mode Linux, whose kernel is the front-end.

What the front-end of QEMU does is in test_vhost_user.py.
"""

import time
from collections.abc import Iterator

import pytest
import test_lag as lag
import vhost_links
from conftest import SESSION
from test_lag import wait

from essd.base.errors import EssdError
from essd.instance import steps
from essd.instance.config import UML, console_log
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml, pytest.mark.long]

NAME = f"{SESSION}-vhost-uml"
REFUSING_S = 15.0


@pytest.fixture(scope="module")
def job(host_kind: str) -> Iterator[Job]:
    if host_kind != UML:
        pytest.skip("user-mode Linux is not used")
    with vhost_links.connected(NAME, UML) as job:
        yield job


def test_frames_pass_no_socket_and_are_recorded(job: Job) -> None:
    vhost_links.check_record(job)
    log = (job.instance.folder / "host/process.log").read_text()
    assert "virtio_uml.device=../port0.sock" in log and "stream," not in log
    assert job.quiet("ethtool -i eth0").startswith("driver: virtio_net")
    assert "Speed: 25000Mb/s" in job.quiet("ethtool eth0")


def test_io_survives_stop_and_continue_of_both_machines(job: Job) -> None:
    vhost_links.stop_and_continue(job)


def test_io_survives_a_pulled_cable(job: Job) -> None:
    steps.cable_pull(job, 3)


def test_io_survives_a_card_without_a_carrier(job: Job) -> None:
    def down_and_up() -> None:
        lag.card_off(job, 0)
        wait(lambda: not steps.carrier(job, 0), "the card keeps its carrier")
        time.sleep(1)
        lag.card_on(job, 0)
        wait(lambda: steps.carrier(job, 0), "the card gets no carrier")
    vhost_links.meanwhile(job, down_and_up)


def test_io_survives_power_cuts_and_new_connections(job: Job) -> None:
    def cut() -> None:
        for _ in range(2):
            vhost_links.cut_power(job)
            vhost_links.wait_carriers(job)
    vhost_links.meanwhile(job, cut)
    vhost_links.verify(job, vhost_links.WRITE)


def test_a_back_end_that_ends_all_connections_is_asked_rarely(job: Job) -> None:
    cable = job.instance.config.link(0).socket(job.instance.folder)
    console = console_log(job.instance.folder, "host")
    counts: list[int] = []
    vhost_links.cut_power(job, lambda: counts.append(
        vhost_links.refuse_connections(cable, REFUSING_S)))
    # After 0.2, 0.4, 0.8, 1.6, 3.2 s, and then every 5 s.
    assert 3 <= counts[0] <= 10
    assert console.read_text().count("the back-end ends all connections soon") == 1
    vhost_links.wait_carriers(job)
    vhost_links.verify(job, vhost_links.WRITE)


def test_io_survives_a_bad_cable(job: Job) -> None:
    vhost_links.survive_faults(job)


def test_drive_is_saved_and_loaded_under_io(job: Job) -> None:
    vhost_links.save_and_load(job)


def test_snapshots_are_refused_in_one_line(job: Job) -> None:
    with pytest.raises(EssdError, match="is user-mode Linux, whose state cannot be saved"):
        job.instance.ask("save-all", name="one")


def test_ports_are_aggregated(host_kind: str) -> None:
    vhost_links.aggregate(f"{NAME}-lag", host_kind)
