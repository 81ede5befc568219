# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the demo's steps for NAND flash, with a fake host and a fake drive."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from essd.base.errors import EssdError
from essd.demo import nand_steps
from essd.instance import steps
from essd.instance.instance import Instance, Result
from essd.instance.steps import Job
from essd.storage.nand_look import Result as Look

OCP = """\
Physical media units written -              0 {programmed}
Bad user nand blocks - Raw                  3
PLP start count                             7
"""


class FakeDrive:
    """A drive whose logs say what a test wants, and whose die can survive a fault rule."""

    def __init__(self) -> None:
        self.written = 1000             # data units
        self.programmed = 700_000_000   # bytes
        self.warns = True
        self.rule_fires = True
        self.has_rule = False
        self.is_dead = False

    name = "demo"

    def hint(self, *words: str) -> str:
        return " ".join(("./essd", *words))

    def ask(self, what: str, **arguments: object) -> None:
        assert what == "power-cut"

    def run(self, command: str, part: str, timeout_s: float = 300, check: bool = True,
            apart: bool = False) -> Result:
        return Result(command, 0, self.answer(command), part)

    def answer(self, command: str) -> str:
        if command.startswith("fio"):
            self.is_dead = self.has_rule and self.rule_fires
            return "err= 0"
        if "ocp" in command:
            return OCP.format(programmed=self.programmed)
        if "smart-log" in command:
            return json.dumps({"data_units_written": self.written, "media_errors": 0,
                               "critical_warning": int(self.is_dead and self.warns)})
        return "nvme0n1" if "nvme-subsystem" in command else "nvme0"

    # The fault rules

    def add(self, rule: str) -> str:
        self.has_rule = True
        return "rule-1"

    def remove(self, name: str) -> None:
        self.has_rule = False

    def __getitem__(self, name: str) -> Any:
        return SimpleNamespace(fired=int(self.is_dead))


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> FakeDrive:
    fake = FakeDrive()
    monkeypatch.setattr(nand_steps, "Drive",
                        lambda instance, name: SimpleNamespace(faults=fake))
    monkeypatch.setattr(steps, "fio_summary", lambda output: output)
    return fake


@pytest.fixture
def job(drive: FakeDrive) -> Job:
    return Job(cast(Instance, drive), "drive", "nqn", [])


def test_write_amplification_is_what_the_flash_programs_for_what_hosts_write(
        job: Job) -> None:
    nand_steps.flash_health(job)
    assert "1.37 times what hosts wrote" in job.proven[0][0]


def test_a_flash_that_programs_less_than_hosts_write_fails_the_step(
        job: Job, drive: FakeDrive) -> None:
    drive.programmed = 1000
    with pytest.raises(EssdError, match="programmed 1000 bytes"):
        nand_steps.flash_health(job)


def test_a_line_that_nvme_cli_does_not_show_is_named() -> None:
    with pytest.raises(EssdError, match="shows no Percent free"):
        nand_steps.number_of(OCP, "Percent free blocks")
    assert nand_steps.number_of(OCP, "Bad user nand blocks") == 3


def test_a_die_dies_while_fio_writes_and_its_rule_is_removed(
        job: Job, drive: FakeDrive) -> None:
    nand_steps.die_dies(job)
    assert drive.is_dead
    assert not drive.has_rule
    assert "nothing is lost" in job.proven[0][0]


def test_a_drive_that_does_not_warn_of_a_dead_die_fails_the_step(
        job: Job, drive: FakeDrive) -> None:
    drive.warns = False
    with pytest.raises(EssdError, match="SMART does not warn"):
        nand_steps.die_dies(job)
    assert not drive.has_rule


def test_a_die_that_survives_fails_the_step(job: Job, drive: FakeDrive) -> None:
    drive.rule_fires = False
    with pytest.raises(EssdError, match="did not die"):
        nand_steps.die_dies(job)


def test_what_is_damaged_in_the_array_fails_the_step(
        job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nand_steps.nand_look, "run",
                        lambda *words: Look("a drawing", {}, "a block is damaged"))
    with pytest.raises(EssdError, match="a block is damaged"):
        nand_steps.look_inside(job)
