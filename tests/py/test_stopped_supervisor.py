# SPDX-License-Identifier: BSD-2-Clause
"""A supervisor that is stopped (SIGSTOP): commands say so, and go on with the others."""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_qemu import make_fake

from essd.base import chosen, process
from essd.cli import app
from essd.instance.config import Config, Drive
from essd.instance.instance import Instance, NotAnsweringError
from essd.observe import capture, trace
from essd.observe.capture import Client
from essd.setup import instances
from typer.testing import CliRunner

SOON_S = 30         # far below the time limits of answers, for a busy machine


def start(folder: Path, name: str, bound: bool = False) -> Instance:
    fake = make_fake(folder / "qemu")
    instance = Instance(name)
    instance.start(Config(name, "", "tcg", [], {
        "drive": Drive(str(fake), "flash", "media", "raw", f"nqn.{name}")}), bound=bound)
    instance.wait_started()
    return instance


def supervisor_of(instance: Instance) -> int:
    (text,) = [line for line in (instance.folder / "state.json").read_text().split("}")
               if line.startswith("[")]
    return int(text.split(":")[1].partition(",")[0])


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Instance]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "data"))
    one, other = start(tmp_path, "one"), start(tmp_path, "two")
    pid = supervisor_of(one)
    os.kill(pid, signal.SIGSTOP)
    while not process.is_stopped(pid):
        time.sleep(0.01)
    yield one
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    one.stop()
    other.stop()


def test_list_says_who_does_not_answer(stopped: Instance) -> None:
    begin = time.monotonic()
    found = {entry["name"]: entry["state"] for entry in instances.all_facts()}
    assert found == {"one": "does not answer", "two": "running"}
    assert time.monotonic() - begin < SOON_S


def test_down_says_what_to_do_and_stops_the_others(stopped: Instance) -> None:
    pid = supervisor_of(stopped)
    done = CliRunner().invoke(app, ["down", "--all"])
    assert done.exit_code == 1
    assert " ".join(done.output.split()) == (
        f"essd: the supervisor of one (process {pid}) is stopped and does not answer: continue "
        f"it with kill -CONT {pid}, or end it and its drives, as a power cut does, with kill "
        f"-KILL {pid} two: ended")
    assert chosen.running() == ["one"]
    os.kill(pid, signal.SIGCONT)
    assert stopped.stop()


def test_every_command_ends_that_needs_the_supervisor(stopped: Instance) -> None:
    for act in (lambda: stopped.is_running, stopped.status, lambda: stopped.ask("reset"),
                lambda: trace.Stream(stopped.of("drive"), ["part"]),
                lambda: Client(stopped.of("drive"), 0)):
        with pytest.raises(NotAnsweringError, match=r"continue it with kill -CONT \d+, or end"):
            act()


@pytest.mark.parametrize("ask", [
    lambda instance: trace.Stream(instance.of("drive"), ["part"]),
    lambda instance: Client(instance.of("drive"), 0)])
def test_a_supervisor_that_runs_and_says_nothing_is_given_up(
        ask: Callable[[Instance], object], tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen container, or a file system that does not answer."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for module, limit in ((trace, "SUBSCRIBED_S"), (capture, "STARTED_S")):
        monkeypatch.setattr(module, limit, 1)
    instance = Instance("mute")
    instance.folder.mkdir()
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(instance.folder / "control.sock"))
        mute.listen()
        caught: list[BaseException] = []

        def attempt() -> None:
            try:
                ask(instance)
            except NotAnsweringError as error:
                caught.append(error)
        attempting = threading.Thread(target=attempt, daemon=True)
        attempting.start()
        attempting.join(SOON_S)
        assert not attempting.is_alive(), "it waits for ever"
    assert "the supervisor of mute" in str(caught[0]) and "does not answer" in str(caught[0])


def test_a_supervisor_with_a_full_queue_of_clients_does_not_hang_anybody(
        stopped: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen, "CONNECT_S", 1)
    clients = []
    with pytest.raises(NotAnsweringError, match="the supervisor of one does not answer"):
        while len(clients) < 1000:
            clients.append(stopped.connect())
    assert chosen.answers("one")
    for client in clients:
        client.close()


def test_a_supervisor_that_goes_on_after_a_stall_is_not_given_up(
        stopped: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may stand still for longer than the limit, with both programs on it."""
    pid = supervisor_of(stopped)
    clock = time.monotonic

    def look(*words: object) -> tuple[list[object], ...]:
        monkeypatch.undo()
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 7200)
        os.kill(pid, signal.SIGCONT)
        return [], [], []
    monkeypatch.setattr(select, "select", look)
    assert stopped.call("status")["parts"]


def test_a_stop_after_a_short_stop_of_the_supervisor_ends_everything(
        stopped: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    pid, drive = supervisor_of(stopped), stopped_drive(stopped)
    look = select.select

    def go_on(*words: object) -> object:
        found = look(*words)        # type: ignore[call-overload]
        os.kill(pid, signal.SIGCONT)
        return found
    is_first = iter([True, False])
    monkeypatch.setattr("essd.instance.instance.is_stopped", lambda pid: next(is_first, False))
    monkeypatch.setattr(select, "select", go_on)
    assert stopped.stop()
    assert not process.start_time(pid) and not process.start_time(drive)


def stopped_drive(instance: Instance) -> int:
    state = json.loads((instance.folder / "state.json").read_text())
    return int(state[1]["pid"])


@pytest.mark.parametrize("lost", ["nothing", "control.sock", "folder"])
def test_what_is_bound_to_this_process_is_ended_although_it_does_not_answer(
        lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "data"))
    instance = start(tmp_path, "one", bound=True)
    pid, drive = supervisor_of(instance), stopped_drive(instance)
    os.kill(pid, signal.SIGSTOP)
    while not process.is_stopped(pid):
        time.sleep(0.01)
    if lost == "folder":
        shutil.rmtree(instance.folder)
    else:
        (instance.folder / lost).unlink(missing_ok=True)
    with open(os.pidfd_open(drive), "rb", buffering=0) as ending:
        assert instance.stop()
        if lost == "folder":    # Only the claim is waited for, which the kernel frees first.
            assert select.select([ending], [], [], SOON_S)[0]
    assert not process.start_time(pid) and not process.start_time(drive)
    assert instance.bond is None and chosen.running() == []
