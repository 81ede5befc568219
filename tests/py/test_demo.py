# SPDX-License-Identifier: BSD-2-Clause
"""The demo's order, and its steps with two ports or two hosts, without machines."""

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from essd import demo, show, steps, subsystem_steps, topology_setup, topology_yaml
from essd.api import Drive, Host
from essd.config import Config
from essd.errors import EssdError
from essd.instance import Instance, Result
from essd.steps import Job
from essd.subsystem_steps import SECOND_HOST

EBADE = "dd: error writing '/dev/nvme0n1': Invalid exchange"


class FakeHosts:
    """Two hosts that share a drive with reservations, as far as the demo uses them."""

    def __init__(self) -> None:
        self.holder = ""
        self.refusal = EBADE
        self.enforces = True

    def run(self, command: str, part: str, timeout_s: float = 300, check: bool = True,
            apart: bool = False) -> Result:
        status, output = self.answer(command, part)
        assert status == 0 or not check, command
        return Result(command, status, output, part)

    def answer(self, command: str, part: str) -> tuple[int, str]:
        is_barred = self.enforces and self.holder not in ("", part)
        if "nvme-subsystem" in command:
            return 0, "nvme0n1 nvme0n2"
        if command.startswith("cd /sys/block"):
            # The second host has seen the namespaces in another order.
            return 0, ("nvme0n1 1\nnvme0n2 2" if part == "host" else "nvme0n1 2\nnvme0n2 1")
        if "resv-acquire" in command:
            if is_barred:
                return 1, "NVMe status: Reservation Conflict(0x83)"
            self.holder = part
        if "resv-release" in command:
            self.holder = ""
        if "of=/dev/nvme" in command and is_barred:
            return 1, self.refusal
        return 0, ""


@pytest.fixture
def hosts() -> FakeHosts:
    return FakeHosts()


@pytest.fixture
def shown() -> list[Result]:
    return []


@pytest.fixture
def job(hosts: FakeHosts, shown: list[Result], monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setattr(steps, "disconnect", lambda job: None)
    return Job(cast(Instance, hosts), "drive", "nqn", ["10.0.0.10", "10.0.1.10"],
               show_result=shown.append)


def test_a_reservation_conflict_becomes_a_result(job: Job, shown: list[Result]) -> None:
    subsystem_steps.reservation_conflict(job)
    assert len(job.proven) == 1
    refused = [result for result in shown if result.status != 0]
    assert [result.part for result in refused] == [SECOND_HOST, SECOND_HOST]
    # The same namespace is another device there.
    assert "/dev/nvme0n2" in refused[0].command


def test_a_drive_that_ignores_its_reservation_fails_the_step(
        job: Job, hosts: FakeHosts) -> None:
    hosts.enforces = False
    with pytest.raises(EssdError, match=f"{SECOND_HOST} could write, though a reservation"):
        subsystem_steps.reservation_conflict(job)
    assert not job.proven


def test_a_write_that_fails_for_another_reason_is_no_conflict(
        job: Job, hosts: FakeHosts) -> None:
    hosts.refusal = "dd: error writing '/dev/nvme0n1': Input/output error"
    with pytest.raises(EssdError, match="not because of a reservation"):
        subsystem_steps.reservation_conflict(job)


@pytest.mark.parametrize(("received", "expected"), [
    ((900, 12), None), ((900, 800), "port 1 has received 800"),
    ((12, 12), "port 0 has received 12")])
def test_frames_tell_which_port_carries_io(
        job: Job, monkeypatch: pytest.MonkeyPatch, received: tuple[int, int],
        expected: str | None) -> None:
    counters: Iterator[tuple[int, int]] = iter([(5, 5), (5 + received[0], 5 + received[1])])
    monkeypatch.setattr(subsystem_steps, "frames", lambda job: next(counters))
    monkeypatch.setattr(subsystem_steps, "LOOK_S", 0)
    if expected is None:
        subsystem_steps.look(job, (0,))
        return
    with pytest.raises(EssdError, match=expected):
        subsystem_steps.look(job, (0,))


def test_the_second_boot_has_two_hosts_that_reach_both_ports(tmp_path: Path) -> None:
    topology = topology_yaml.load(subsystem_steps.TWO_HOSTS, "two hosts", tmp_path)
    assert list(topology.hosts) == ["host", SECOND_HOST]
    topology.drives["drive"].nqn = demo.DATASHEET_NQN
    assert topology_setup.wishes(topology, "demo")["drive"].nqn == demo.DATASHEET_NQN
    networks = topology.segments()
    for port in (0, 1):
        segment = next(ends for ends in networks if ("drive", port) in ends)
        assert {("host", port), (SECOND_HOST, port)} <= segment


class DeadPath:
    """A host with a path that does not come back."""

    def wait_paths(self, drive: Drive, live: int) -> None:
        raise EssdError(f"host has 1 live paths to drive; expected {live}")


@pytest.mark.parametrize(("state", "expected"), [
    ("ERR", r"expected 2\. QP 1 of the host's rxe0 is in error.*a defect of Linux's rxe"),
    ("RTS", r"expected 2$")])
def test_a_host_that_cannot_reconnect_any_more_is_named(
        job: Job, monkeypatch: pytest.MonkeyPatch, state: str, expected: str) -> None:
    """What Linux 6.12 has shown of its queue pairs after such a failure."""
    shown = ("link rxe0/1 lqpn 55 rqpn 0 type RC state INIT rq-psn 0 sq-psn 0 comm [rdma_cm] \n"
             f"link rxe0/1 lqpn 1 type GSI state {state} sq-psn 138 comm [ib_core] \n"
             "link rxe1/1 lqpn 17 rqpn 10369034 type RC state RTS comm [rdma_cm] \n"
             "link rxe1/1 lqpn 1 type GSI state RTS sq-psn 4 comm [ib_core] \n")
    monkeypatch.setattr(Job, "quiet", lambda job, command, check: shown)
    with pytest.raises(EssdError, match=expected):
        subsystem_steps.wait_reconnected(job, cast(Host, DeadPath()), cast(Drive, None))


class FakeInstance:
    """An instance that is never started."""

    def __init__(self, name: str) -> None:
        self.name = name

    def claimed(self, _what: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def stop(self) -> None:
        pass


@pytest.fixture
def demo_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the steps that the demo runs; each of them has a result."""
    names: list[str] = []

    def boot(instance: Any, config: Any) -> Job:
        return Job(cast(Instance, instance), "drive", "nqn", [])

    def run_step(name: str, action: Callable[[Job], object], job: Job) -> None:
        names.append(name)
        job.claim(name, "a command")

    monkeypatch.setattr(demo, "Instance", FakeInstance)
    monkeypatch.setattr(demo, "boot", boot)
    monkeypatch.setattr(demo, "run_step", run_step)
    monkeypatch.setattr(demo, "show_boot_log", lambda instance: None)
    monkeypatch.setattr(demo, "two_hosts", lambda name: cast(Config, None))
    monkeypatch.setattr(demo.setup, "configure", lambda wish: None)
    monkeypatch.setattr(demo.setup, "forget", lambda name: None)
    return names


def test_each_step_of_the_demo_is_a_row_of_its_table(demo_steps: list[str]) -> None:
    with show.console.capture() as captured:
        demo.run_demo("drive", False)
    text = captured.get()
    for name in demo_steps:
        assert re.search(rf"{re.escape(name)} +│ a command", text), text
    for words in ("fail over", "Four namespaces", "reserves"):
        assert any(words in name for name in demo_steps)


def test_the_demo_with_nvmet_leaves_out_what_only_the_drive_has(
        demo_steps: list[str]) -> None:
    demo.run_demo("nvmet", False)
    only_drive = {name for name, _ in [*demo.DRIVE_ONLY, *demo.TWO_HOSTS]}
    assert not only_drive & set(demo_steps)
    assert {name for name, _ in demo.SECOND_BOOT} <= set(demo_steps)


def test_the_first_error_is_told_when_undoing_fails_too() -> None:
    def undo() -> None:
        raise EssdError("the drive is gone")

    with pytest.raises(EssdError, match="no path"), subsystem_steps.undone_by(undo):
        raise EssdError("no path")
    with pytest.raises(EssdError, match="the drive is gone"), subsystem_steps.undone_by(undo):
        pass
