# SPDX-License-Identifier: BSD-2-Clause
"""What every test of the tools begins with, and which of them are in real time."""

import sys
from pathlib import Path

import pytest

from essd.base import show
from essd.testrun import repeat as testrun_repeat

# Python's audit events of a test that depends on other programs, and so on real time.
OUTSIDE = frozenset(("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty",
                     "socket.bind", "socket.connect"))


class Outside:
    """The files of tests of which one has used other programs or sockets in this process.

    All later tests of such a file count, too: its fixtures may keep the program.
    """

    def __init__(self) -> None:
        self.now = ""
        self.files: set[str] = set()

    def see(self, event: str, _arguments: tuple[object, ...]) -> None:
        if event in OUTSIDE:
            self.files.add(self.now)


outside = Outside()
sys.addaudithook(outside.see)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    outside.now = str(item.path)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> None:
    """`essd test` finds this property in the JUnit report."""
    if str(item.path) in outside.files and testrun_repeat.REAL_TIME not in item.user_properties:
        item.user_properties.append(testrun_repeat.REAL_TIME)


@pytest.fixture(autouse=True)
def plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands such as --json and --quiet change where this process writes."""
    monkeypatch.setattr(show.console, "stderr", False)
    monkeypatch.setattr(show, "is_quiet", False)


@pytest.fixture(autouse=True)
def no_drives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees, changes or deletes the drives of whoever runs it."""
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "drives"))
