# SPDX-License-Identifier: BSD-2-Clause
"""`essd console` on a terminal: a drive that is off, and a console that is in use."""

import os
import pty
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_supervisor import FakeSupervisor

from essd.base import paths


class Terminal:
    """`essd console` on a pseudo-terminal."""

    def __init__(self, *words: str) -> None:
        self.screen, keyboard = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "essd", "console", *words], stdin=keyboard,
            stdout=keyboard, stderr=keyboard, cwd=paths.TOP / "tools")
        os.close(keyboard)
        self.seen = ""

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 60
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            ready, _, _ = select.select([self.screen], [], [], 0.2)
            if ready:
                try:
                    self.seen += os.read(self.screen, 4096).decode()
                except OSError:         # The program has ended.
                    assert text in self.seen, self.seen
                    return

    def type(self, text: str) -> None:
        os.write(self.screen, text.encode())

    def leave(self) -> int:
        self.type("\x1d")
        return self.process.wait(60)


class Uart:
    """Listens where QEMU does; accepts one connection at a time, as QEMU does."""

    def __init__(self, folder: Path) -> None:
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(folder / "drive/console"))
        self.server.listen()

    def accept(self) -> socket.socket:
        self.server.settimeout(60)
        connection, _ = self.server.accept()
        connection.settimeout(60)
        return connection


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSupervisor]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    paths.runtime()
    with FakeSupervisor("lab") as lab:
        yield lab


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    terminals: list[Terminal] = []

    def make(*words: str) -> Terminal:
        terminals.append(Terminal(*words))
        return terminals[-1]

    yield make
    for one in terminals:
        one.process.kill()
        one.process.wait(60)
        os.close(one.screen)


@pytest.mark.parametrize("changes, said", [
    ({"state": "off"}, "[the drive is off: ./essd power-on --name lab starts it; waiting]"),
    ({"state": "off", "saved": True},
     "[the drive is saved: ./essd load --name lab resumes it; waiting]"),
    ({"state": "crashed", "why": "ended unexpectedly (signal 9)"},
     "[the drive is off (ended unexpectedly (signal 9)): ./essd power-on --name lab "
     "starts it; waiting]"),
    ({"halted": True}, "[the drive is halted: ./essd gdb --name lab or ./essd qmp --name lab "
     "cont continues it; waiting]")])
def test_a_drive_without_a_console_says_why_and_what_to_do(
        lab, terminal, changes: dict[str, Any], said: str) -> None:
    lab.parts["drive"] |= changes
    console = terminal()
    console.wait_for(said)
    assert console.leave() == 0
    assert console.seen.count("[the drive is") == 1


def test_the_console_is_attached_when_the_drive_comes_on(lab, terminal) -> None:
    lab.parts["drive"] |= {"state": "off"}
    console = terminal()
    console.wait_for("the drive is off")
    uart = Uart(lab.folder)
    lab.parts["drive"] |= {"state": "running"}
    with uart.accept() as connection:
        connection.sendall(b"essd> ")
        console.wait_for("essd> ")
        console.type("port\r")
        assert connection.recv(100) == b"port\r"
        lab.parts["drive"] |= {"state": "off"}
        uart.server.close()
        (lab.folder / "drive/console").unlink()
    seen = len(console.seen)
    console.wait_for("\n[the drive is off: ")
    assert console.leave() == 0
    assert seen


def test_a_second_console_names_the_first_one_and_types_nothing(lab, terminal) -> None:
    uart = Uart(lab.folder)
    first = terminal()
    with uart.accept() as connection:
        second = terminal()
        second.wait_for("--log")
        assert second.process.wait(60) == 1
        text = " ".join(second.seen.split())
        assert re.search(r"essd: the console of the drive is in use by essd console, process "
                         rf"{first.process.pid} on /dev/pts/\d+; leave that one first, with "
                         r"Ctrl-\]\. To read along, use ./essd console --name lab --log", text)
        first.type("x")
        assert connection.recv(100) == b"x"
        assert first.leave() == 0
    third = terminal()
    with uart.accept():
        assert third.leave() == 0


def test_a_console_that_another_program_uses_is_refused(lab, terminal) -> None:
    lab.replies["qmp"] = [{"label": "console", "filename": "unix:/x/console,server=on"}]
    console = terminal()
    console.wait_for("drive/console")
    assert console.process.wait(60) == 1
    assert "in use by a program that is connected to" in " ".join(console.seen.split())


def test_the_tools_type_on_no_uart_of_a_user() -> None:
    users = [f"{path.parent.name}/{path.name}" for path in (paths.TOP / "tools/essd").rglob("*.py")
             if re.search(r'connect\([^\n]*"console"\)', path.read_text(encoding="utf-8"))]
    # The conformance suite has a drive of its own.
    assert sorted(users) == ["conform/control.py", "drive/console.py"]
