# SPDX-License-Identifier: BSD-2-Clause
"""tests/e2e/fresh.py: after a failed test, the next one gets other drives and hosts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from essd.base import paths

CONFTEST = '''
import functools
from types import SimpleNamespace
import pytest
from essd.instance.instance import Instance
from fresh import pytest_runtest_makereport, pytest_runtest_teardown

numbers, ended = iter(range(1, 100)), []

class Fake(Instance):
    def __init__(self):
        self.number = next(numbers)

    def stop(self):
        ended.append(self.number)
        return True

def pytest_addoption(parser):
    parser.addoption("--target", default="drive")

@pytest.fixture(scope="session")
def drives():
    @functools.cache
    def drive(kind):
        return SimpleNamespace(instance=Fake())
    yield drive

@pytest.fixture(scope="module")
def session_job(request):
    return SimpleNamespace(instance=request.getfixturevalue("drives")("uml").instance)

@pytest.fixture(scope="module")
def configured(session_job):
    yield SimpleNamespace(job=session_job)
    if session_job.instance.number in ended:
        raise OSError("the host is not running")

@pytest.fixture(autouse=True)
def counters(request):
    request.getfixturevalue("drives")
    yield
'''
TESTS = '''
import pytest
from conftest import ended

def test_1_fails(configured):
    assert configured.job.instance.number != 1

def test_2_has_another_system(configured):
    assert configured.job.instance.number == 2 and ended.count(1) >= 1

def test_3_has_the_same(configured):
    assert configured.job.instance.number == 2 and 2 not in ended

@pytest.fixture
def wedged(configured):
    yield
    raise OSError("the host does not answer")

def test_4_has_an_error_at_its_end(wedged):
    pass

def test_5_has_another_system(configured):
    assert configured.job.instance.number == 3
'''


def run(folder: Path, tests: str, *more: str) -> str:
    """What pytest says of the tests, and of those of further files."""
    (folder / "conftest.py").write_text(CONFTEST)
    files = [folder / f"test_{number}.py" for number in range(1 + len(more))]
    for file, text in zip(files, (tests, *more), strict=True):
        file.write_text(text)
    tree = [str(paths.TOP / "tools"), str(paths.TOP / "tests/e2e")]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no", "--rootdir",
         folder, *files],
        text=True, capture_output=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(tree)}).stdout


def test_a_failure_leaves_no_system_to_the_next_test(tmp_path: Path) -> None:
    said = run(tmp_path, TESTS)
    assert "1 failed, 4 passed, 1 error" in said, said
    assert "after the failure of test_1_fails: the host is not running" in said


FAILS = """
import pytest

def test_fails(configured):
    assert configured.job.instance.number != 1
"""
ERRS = """
import pytest

@pytest.fixture
def wedged(configured):
    yield
    raise OSError("the host does not answer")

def test_has_an_error_at_its_end(wedged):
    pass
"""


@pytest.mark.parametrize("first, counted", [(FAILS, "1 failed, 1 passed"),
                                            (ERRS, "2 passed, 1 error")])
def test_the_last_failure_of_a_file_leaves_no_system_to_the_next_file(
        first: str, counted: str, tmp_path: Path) -> None:
    said = run(tmp_path, first, "from conftest import ended\n"
                                "def test_has_another(configured):\n"
                                "    assert configured.job.instance.number == 2 and 1 in ended\n")
    assert counted in said, said


def test_files_without_a_failure_share_a_system(tmp_path: Path) -> None:
    one = "def test_it(configured): assert configured.job.instance.number == 1\n"
    said = run(tmp_path, one, one)
    assert "2 passed in" in said, said


def test_without_a_failure_the_system_is_kept(tmp_path: Path) -> None:
    said = run(tmp_path, "import pytest\n@pytest.mark.parametrize('n', range(3))\n"
                         "def test_it(configured, n): "
                         "assert configured.job.instance.number == 1\n")
    assert "3 passed in" in said, said


def test_if_everything_fails_no_more_systems_are_started(tmp_path: Path) -> None:
    said = run(tmp_path, "import pytest\n@pytest.mark.parametrize('n', range(14))\n"
                         "def test_it(configured, n): "
                         "assert configured.job.instance.number == 11\n")
    assert "10 failed, 4 passed" in said, said


def test_a_test_that_is_skipped_has_not_failed(tmp_path: Path) -> None:
    said = run(tmp_path, "import pytest\ndef test_a(configured): pytest.skip('x')\n"
                         "def test_b(configured): assert configured.job.instance.number == 1\n")
    assert "1 passed, 1 skipped" in said, said
