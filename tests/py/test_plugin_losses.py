# SPDX-License-Identifier: BSD-2-Clause
"""The pytest plug-in says which frames got lost during a test (docs/python.md)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from essd.base import paths

# A system without parts, whose counters grow as the tests say.
CONFTEST = '''
from types import SimpleNamespace
import pytest
import essd
from essd.api import system
from essd.base.errors import EssdError
from essd.observe import losses

COUNTS = {"lab": {"host: eth0 pfifo": 4}}
OFF, HUNG, LOOKS = set(), set(), []

class Lab(system.System):
    def __init__(self, name, is_ours):
        stop = lambda: COUNTS.pop(name)
        self.name, self._is_ours, self._owner = name, is_ours, None
        self.instance = SimpleNamespace(name=name, stop=stop)
        COUNTS.setdefault(name, {"host: eth0 pfifo": 0})
        if is_ours:
            system._open.append(self)

    def lose(self, count):
        COUNTS[self.name]["host: eth0 pfifo"] += count

def read(instance):
    if instance.name not in COUNTS:
        raise EssdError("it does not run")
    LOOKS.append(instance.name)
    if instance.name in OFF:
        return losses.Losses(unasked={"host": "off"})
    if instance.name in HUNG:
        return losses.Losses(unknown={"host": "no answer"})
    return losses.Losses(dict(COUNTS[instance.name]))

losses.read = read
system.mgmt.shut_down = lambda instance: None

@pytest.fixture(scope="session")
def ours():
    with Lab("ours", True) as lab:
        yield lab
        lab.lose(9)

@pytest.fixture(scope="session")
def lab():
    return SimpleNamespace(system=Lab("lab", False))     # as a part of a system
'''
OURS, LAB = "ours: frames lost between drive and host: host: eth0 pfifo {}", \
    "lab: frames lost between drive and host: host: eth0 pfifo {}"


def run(folder: Path, text: str, *words: str, conftest: str = CONFTEST) -> str:
    (folder / "conftest.py").write_text(conftest)
    (folder / "test_it.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "essd.pytest_plugin", "-p", "no:cacheprovider",
         "--color=no", "--rootdir", folder, *words, folder / "test_it.py"],
        text=True, capture_output=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": str(paths.TOP / "tools")}).stdout


TWO = '''
from conftest import Lab

def test_first(ours):
    ours.lose(3)

def test_second(ours):
    pass

def test_of_somebody_elses_system(lab):
    lab.system.lose(2)

def test_that_ends_its_own_system():
    with Lab("short", True) as short:
        short.lose(5)
'''


def test_each_test_is_told_what_it_has_lost(tmp_path: Path) -> None:
    said = run(tmp_path, TWO)
    assert "4 passed, 4 warnings" in said, said
    assert OURS.format(3) in said and "test_it.py:4" in said
    assert LAB.format(2) in said        # The four that were lost before are not the test's.
    assert "short: frames lost between drive and host: host: eth0 pfifo 5" in said
    assert OURS.format(9) in said       # The session's fixture has lost them at its end.


def test_nothing_is_said_of_systems_that_lose_nothing(tmp_path: Path) -> None:
    said = run(tmp_path, "def test_it(lab): pass\ndef test_other(): pass\n")
    assert "2 passed in" in said, said


@pytest.mark.parametrize("words, mark, result", [
    (("-W", "error::essd.pytest_plugin.LossWarning"), "", "1 failed"),
    ((), "@pytest.mark.filterwarnings('ignore::essd.pytest_plugin.LossWarning')", "1 passed in")])
def test_a_loss_can_fail_a_test_and_can_be_meant(words: tuple[str, ...], mark: str, result: str,
                                                 tmp_path: Path) -> None:
    said = run(tmp_path, f"import pytest\n{mark}\ndef test_it(lab): lab.system.lose(1)\n", *words)
    assert result in said, said


def test_the_report_of_a_failed_test_has_its_losses(tmp_path: Path) -> None:
    said = run(tmp_path, "def test_it(lab):\n    lab.system.lose(1)\n    assert False\n")
    assert "assert False" in said and "1 failed in" in said, said
    assert LAB.partition(": ")[2].format(1) in said


def test_a_system_that_does_not_answer_is_not_counted(tmp_path: Path) -> None:
    said = run(tmp_path, "from conftest import COUNTS\n"
                         "def test_it(lab):\n    lab.system.lose(1)\n    COUNTS.clear()\n")
    assert "1 passed in" in said, said


def test_what_was_lost_before_a_host_was_off_is_not_said_again(tmp_path: Path) -> None:
    said = run(tmp_path, "from conftest import OFF\n"
                         "def test_first(lab): lab.system.lose(3)\n"
                         "def test_turns_it_off(lab): OFF.add('lab')\n"
                         "def test_turns_it_on(lab): OFF.clear()\n"
                         "def test_last(lab): lab.system.lose(2)\n")
    assert "4 passed, 2 warnings" in said, said
    assert LAB.format(3) in said and LAB.format(2) in said


def test_a_host_that_hangs_is_asked_once(tmp_path: Path) -> None:
    said = run(tmp_path, "from conftest import HUNG, LOOKS\n"
                         "def test_hangs(ours): HUNG.add('ours')\n"
                         "def test_of_another(): assert LOOKS == ['ours']\n",
               conftest=CONFTEST + ("\ndef pytest_unconfigure():\n"
                                    "    print('looks:', LOOKS)\n"))
    assert "2 passed, 1 warning" in said and "host unknown (no answer)" in said, said
    assert "looks: ['ours']" in said, said


def test_who_looks_in_another_way_turns_it_off(tmp_path: Path) -> None:
    off = CONFTEST + ("\n@pytest.fixture(scope='session', autouse=True)\n"
                      "def essd_losses(): return None\n")
    said = run(tmp_path, TWO, conftest=off)
    assert "4 passed in" in said, said
