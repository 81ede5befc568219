# SPDX-License-Identifier: BSD-2-Clause
"""The programs of examples/python and of docs/python.md do what they say."""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import essd
from essd.base import paths
from essd.instance.steps import Job

pytestmark = pytest.mark.drive
FOLDER = paths.TOP / "examples/python"
NAMES = sorted(path.name for path in FOLDER.glob("*.py"))
BLOCKS = re.findall(r"^```python\n(.*?)^```", (paths.TOP / "docs/python.md").read_text(),
                    re.M | re.S)


@pytest.fixture
def system(job: Job, essd_drive: essd.Drive) -> Iterator[essd.System]:
    """The session's system, without connections and fault rules before and after."""
    yield essd_drive.system
    essd_drive.faults.remove()


def example(name: str) -> dict[str, Any]:
    """The functions of an example."""
    return runpy.run_path(str(FOLDER / name))


def program(*words: str | Path) -> str:
    """What a Python program prints that starts a system of its own."""
    done = subprocess.run(
        [sys.executable, *map(str, words)], text=True, check=False, timeout=900,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(paths.TOP / "tools")})
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_fault_experiment_drops_frames_by_its_rule_only(system: essd.System) -> None:
    dropped = example("fault_experiment.py")["run"](system, mib=1)
    assert dropped[0.0] == 0
    assert dropped[0.03] > 0


def test_the_test_in_the_documents_passes(system: essd.System) -> None:
    (text,) = [block for block in BLOCKS if "def test_" in block]
    found: dict[str, Any] = {}
    exec(text, found)
    found["test_a_bad_block_is_an_error"](system.drives[0])


@pytest.mark.long
def test_io_goes_on_through_the_other_port(
        system: essd.System, capsys: pytest.CaptureFixture[str]) -> None:
    example("failover.py")["run"](system)
    assert "fio saw no error" in capsys.readouterr().out


@pytest.mark.long
def test_flushed_blocks_survive_power_cuts(system: essd.System) -> None:
    assert example("power_cut_loop.py")["run"](system, cuts=2) > 0


@pytest.mark.long
def test_a_copy_by_the_drive_sends_next_to_nothing_over_the_cable(
        system: essd.System) -> None:
    found = example("copy_offload.py")["run"](system, times=(3, 1))
    for shape, (by_drive, by_host) in found.items():
        assert by_drive.received + by_drive.sent < (by_host.received + by_host.sent) / 3, shape


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_by_itself(name: str) -> None:
    assert program(FOLDER / name)


@pytest.mark.long
def test_the_five_lines_of_the_documents_run(tmp_path: Path) -> None:
    (tmp_path / "five.py").write_text(BLOCKS[0])
    assert "copied" in program(tmp_path / "five.py")


@pytest.mark.long
def test_the_test_in_the_documents_runs_with_the_plug_in(tmp_path: Path) -> None:
    (text,) = [block for block in BLOCKS if "def test_" in block]
    (tmp_path / "test_bad_block.py").write_text(text)
    said = program("-m", "essd", "python", "-m", "pytest", "-p", "no:cacheprovider",
                   "--essd-size", "128M", "--rootdir", tmp_path, tmp_path)
    assert "1 passed" in said
