# SPDX-License-Identifier: BSD-2-Clause
"""Cables of kind vhost-user, between a drive and a stock host in a virtual machine.

Each cable is recorded by the drive, since the host's QEMU cannot.
"""

import time
from collections.abc import Iterator

import pytest
import vhost_links
from conftest import SESSION

from essd.instance import steps
from essd.instance.config import STOCK
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.long]

NAME = f"{SESSION}-vhost"


@pytest.fixture(scope="module")
def job() -> Iterator[Job]:
    with vhost_links.connected(NAME, STOCK) as job:
        yield job


def test_frames_pass_and_are_recorded(job: Job) -> None:
    vhost_links.check_record(job)


def test_no_frame_passes_a_socket(job: Job) -> None:
    command = (job.instance.folder / "drive/process.log").read_text()
    assert "vhost-user,id=port0" in command and "stream," not in command


def test_io_survives_stop_and_continue_of_both_machines(job: Job) -> None:
    vhost_links.stop_and_continue(job)


def test_io_survives_a_pulled_cable(job: Job) -> None:
    steps.cable_pull(job, 3)


def test_io_survives_set_link_at_the_host(job: Job) -> None:
    def down_and_up() -> None:
        for is_up in (False, True):
            job.instance.ask("qmp", part="host", execute="set_link",
                             arguments={"name": "port0", "up": is_up})
            time.sleep(1)
    vhost_links.meanwhile(job, down_and_up)


def test_io_survives_a_power_cut_and_a_new_connection(job: Job) -> None:
    vhost_links.meanwhile(job, lambda: vhost_links.cut_power(job))
    vhost_links.wait_carriers(job)


def test_drive_is_saved_and_loaded_under_io(job: Job) -> None:
    vhost_links.save_and_load(job)


def test_io_survives_a_bad_cable(job: Job) -> None:
    vhost_links.survive_faults(job)


def test_ports_are_aggregated() -> None:
    vhost_links.aggregate(f"{NAME}-lag", STOCK)
