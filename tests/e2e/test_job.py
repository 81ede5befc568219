# SPDX-License-Identifier: BSD-2-Clause
"""The steps of `essd demo`, run as tests."""

from collections.abc import Callable, Iterator

import pytest
from conftest import SESSION

from essd.demo import demo, subsystem_steps
from essd.demo.transcript import Transcript
from essd.instance import steps
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.setup import setup


def test_both_ports_answer_pings(job: Job) -> None:
    steps.ping(job)


def test_discovery_names_the_subsystem_on_both_ports(job: Job) -> None:
    steps.discover(job)


def test_host_identifies_controller_and_namespace(connected: Job) -> None:
    steps.identify(connected)


@pytest.mark.parametrize("part", [4, pytest.param(1, marks=pytest.mark.long)])
def test_fio_reads_back_what_it_wrote(connected: Job, part: int) -> None:
    """A quarter of the usual 152 MB; all of it, as in the demo, with --all."""
    steps.fio_verify(connected, part)


def test_files_survive_the_other_port_and_a_power_cycle(connected: Job) -> None:
    steps.file_system(connected)
    steps.other_port(connected)
    steps.power_cycle(connected)


def test_verified_io_survives_a_pulled_cable(connected: Job) -> None:
    steps.cable_pull(connected)


def test_the_data_sheets_commands_work_unchanged(booted: Callable[..., Job]) -> None:
    steps.datasheet_commands(booted(nqn="testsubsystem"))


@pytest.mark.drive
@pytest.mark.long
def test_verified_io_fails_over_to_the_other_port(connected: Job) -> None:
    subsystem_steps.fail_over(connected)


@pytest.fixture
def shared() -> Iterator[Job]:
    """A drive with two hosts, as the demo starts them."""
    instance = Instance(f"{SESSION}-shared")
    setup.forget(instance.name)
    try:
        yield demo.boot(instance, demo.two_hosts(instance.name), Transcript())
    finally:
        instance.stop()
        setup.forget(instance.name)


@pytest.mark.drive
@pytest.mark.long
def test_two_hosts_share_four_namespaces_and_reserve_one(shared: Job) -> None:
    subsystem_steps.four_namespaces(shared)
    subsystem_steps.reservation_conflict(shared)
    assert len(shared.proven) == 2
