# SPDX-License-Identifier: BSD-2-Clause
"""Ctrl-C and SIGTERM end everything that a command has started.

The commands run as real processes, with programs in QEMU's place that only keep
their monitor open.  tests/e2e/test_interrupts.py does it with a real drive.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from marked import STATUS, Command
from fake_qemu import make_fake

from essd.base import paths
from essd.instance.instance import Instance

# Makes `essd` use the fakes: a configuration without a build, and a suite that sleeps.
PRELUDE = """\
import os, signal, subprocess, sys, threading, time
from pathlib import Path
from essd import cli
from essd.base import paths
from essd.conform import conform
from essd.setup import setup
from essd.storage import flash
from essd.testrun import testrun
from essd.instance.config import Config, Drive, End, Host, Link

FAKE = sys.argv.pop(1)

def configure(wish):
    folder = setup.data_folder(wish.name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "media.raw").touch()
    if wish.nqn == "build":
        subprocess.run(["sh", "-c", "sleep 1000; true"])
    image = flash.FlashImage()
    image.identity = flash.Identity.random()
    image.save(folder / "flash.img")
    links = [Link(n, [f"10.0.{n}.10/24"], ends=[End("host", n), End("drive", n)])
             for n in (0, 1)]
    return Config(wish.name, "/guest", "tcg", links,
                  {"drive": Drive(FAKE, str(folder / "flash.img"), "media", "raw", "nqn")},
                  {"host": Host()} if wish.host else {})

def sleep(run):
    run.command("sh", "-c", "trap 'echo interrupted; exit 1' INT; sleep 1000; true")

setup.configure = configure
conform.build = lambda preset: Path(FAKE).with_name("suite")
conform.wait_for_drive = lambda instance: None
testrun.STAGES = {"lint": sleep}
if os.environ.get("EARLY"):
    # The signal comes while the timer that watches the stage's program is starting.
    start = threading.Thread.start
    def start_and_interrupt(self):
        start(self)
        if isinstance(self, threading.Timer):
            time.sleep(0.5)     # The program installs its trap.
            signal.raise_signal(int(os.environ["EARLY"]))
    threading.Thread.start = start_and_interrupt
testrun.BACKGROUND = {"qemu": (("lint",), lambda progress: subprocess.run(
    ["sh", "-c", "sleep 1000; true"], check=True))}
testrun.LOGS = Path(FAKE).with_name("logs")
cli.main()
"""
SUITE = """\
#!/bin/sh
case $* in *--list*) echo 'smoke.first  1.2  a test'; exit ;; esac
exec sleep 1000
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
          ) -> Iterator[Callable[..., Command]]:
    """Starts a command with the fakes."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "drives"))
    make_fake(tmp_path / "qemu")
    make_fake(tmp_path / "qemu-system-x86_64")
    (tmp_path / "with_fakes.py").write_text(PRELUDE)
    (tmp_path / "suite").write_text(SUITE)
    (tmp_path / "suite").chmod(0o755)
    commands = []

    def command(*words: str) -> Command:
        commands.append(Command(
            [sys.executable, tmp_path / "with_fakes.py", tmp_path / "qemu", *words],
            tmp_path, tmp_path / "output", f"{tmp_path}:{os.environ['PATH']}"))
        return commands[-1]

    yield command
    for one in commands:
        one.end()


def check_nothing_left(command: Command) -> None:
    command.check_nothing_left()
    assert [path for path in paths.runtime().rglob("*") if path.is_socket()] == []


def sleeping(command: Command) -> int:
    """How many programs of a build or a suite are running.

    A shell counts only when it has started its program: Ctrl-C that comes just before
    that ends the shell, but not the program (dash blocks signals around vfork()).
    """
    return sum(text.split(": ", 1)[1].startswith("sleep 1000") for text in command.left())


def is_up(command: Command, count: int) -> Callable[[], bool]:
    """Whether so many programs in QEMU's place are running."""
    return lambda: sum("qemu" in text.split(":")[1].split(" -c ")[0]
                       and "nodefaults" in text for text in command.left()) == count


@pytest.mark.parametrize("how", STATUS)
def test_an_interrupted_up_ends_what_it_has_started(start, how: str) -> None:
    up = start("up", "--name", "lab")
    up.wait_for(is_up(up, 2))
    assert up.interrupt(how) == STATUS[how]
    check_nothing_left(up)
    assert not Instance("lab").is_running
    if how != "SIGKILL":
        assert ("interrupted: ended what this command had started (host, drive); the "
                "drive lab keeps its data") in up.output()
    assert (paths.drives() / "lab" / "flash.img").exists()


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM"])
def test_an_up_that_is_interrupted_during_a_build_leaves_no_half_drive(
        start, how: str) -> None:
    up = start("up", "--nqn", "build")
    up.wait_for(lambda: sleeping(up) == 1)
    assert up.interrupt(how) == STATUS[how]
    check_nothing_left(up)
    assert not (paths.drives() / "default").exists()


def test_a_drive_that_existed_is_kept_when_a_build_is_interrupted(start) -> None:
    folder = paths.drives() / "default"
    folder.mkdir(parents=True)
    (folder / "media.raw").write_text("data")
    up = start("up", "--nqn", "build")
    up.wait_for(lambda: sleeping(up) == 1)
    up.interrupt("Ctrl-C")
    assert (folder / "media.raw").exists()


def test_what_up_has_started_goes_on_running_when_up_has_ended(start) -> None:
    up = start("up", "--no-host", "--name", "lab")
    assert up.process.wait(60) == 0, up.output()
    time.sleep(0.5)
    assert is_up(up, 1)()
    assert Instance("lab").is_running
    Instance("lab").stop()
    check_nothing_left(up)


@pytest.mark.parametrize("words, name, how", [
    (("demo",), "demo", "Ctrl-C"), (("demo", "--keep"), "demo", "SIGTERM"),
    (("demo", "--keep"), "demo", "SIGKILL"),
    (("bench", "--target", "drive"), "bench", "Ctrl-C"),
    (("bench", "--target", "drive"), "bench", "SIGTERM")])
def test_an_interrupted_demo_or_bench_leaves_nothing(
        start, how: str, words: tuple[str, ...], name: str) -> None:
    command = start(*words)
    command.wait_for(is_up(command, 2))
    assert command.interrupt(how) == STATUS[how]
    check_nothing_left(command)
    if how != "SIGKILL":
        assert not (paths.drives() / name).exists()


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM"])
def test_an_interrupted_conform_leaves_nothing(start, how: str) -> None:
    conform = start("conform")
    conform.wait_for(lambda: sleeping(conform) == 1)
    assert conform.interrupt(how) == STATUS[how]
    check_nothing_left(conform)
    assert not list(paths.drives().glob("conform-*"))
    assert not list(paths.runtime().glob("conform-*"))


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM"])
def test_an_interrupted_test_ends_its_stage_and_its_builds(start, how: str) -> None:
    test = start("test")
    test.wait_for(lambda: sleeping(test) == 2)
    assert test.interrupt(how) == STATUS[how]
    check_nothing_left(test)


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
def test_a_test_that_is_interrupted_while_a_stage_starts_ends_it(
        start, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EARLY", str(int(signal.Signals[how])))
    test = start("test")
    assert test.process.wait(60) == STATUS[how], test.output()
    check_nothing_left(test)
