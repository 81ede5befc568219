# SPDX-License-Identifier: BSD-2-Clause
"""Each scenario runs by its command, and everything that it checks holds."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from marked import Command

from essd.api import scenarios
from essd.base import paths

pytestmark = [pytest.mark.drive, pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    """A function that starts a command of essd; what it leaves over is ended."""
    commands = []

    def essd(*words: str | Path) -> Command:
        commands.append(Command([sys.executable, "-m", "essd", *words], tmp_path,
                                tmp_path / "output"))
        return commands[-1]

    yield essd
    for command in commands:
        command.end()


@pytest.mark.parametrize("name", scenarios.names())
def test_everything_that_a_scenario_checks_holds(name: str, start, tmp_path: Path) -> None:
    command = start("scenario", "run", name, "--out", tmp_path / "report")
    status = command.process.wait(1700)
    assert status == 0, command.output()
    command.check_nothing_left()
    report = json.loads((tmp_path / "report/report.json").read_text())
    assert report["verdict"] == "passed" and len(report["checks"]) >= 3
    assert report["figures"] and report["counters"]


def test_a_copied_scenario_runs_as_a_program(tmp_path: Path) -> None:
    copy = tmp_path / "my_failover.py"
    copy.write_text((scenarios.FOLDER / "failover.py").read_text())
    command = Command([sys.executable, copy, "--out", tmp_path / "report"], tmp_path,
                      tmp_path / "output")
    try:
        assert command.process.wait(1700) == 0, command.output()
        command.check_nothing_left()
    finally:
        command.end()
    assert "my_failover.py" in (tmp_path / "report/report.md").read_text()


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM"])
def test_an_interrupted_scenario_leaves_nothing(how: str, start, tmp_path: Path) -> None:
    command = start("scenario", "run", "failover", "--out", tmp_path / "report")
    command.wait_for(lambda: "fio writes" in command.output(), 900)
    data = paths.drives() / f"py-{command.process.pid}"
    assert data.exists()
    assert command.interrupt(how) in (130, 143)
    command.check_nothing_left()
    assert not data.exists()
    assert not list((tmp_path / "report").iterdir())
