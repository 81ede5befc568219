# SPDX-License-Identifier: BSD-2-Clause
"""How essd's command line starts: its groups, its speed, and the instance it means."""

import os
import re
import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from essd import cli
from essd.base import chosen, paths
from essd.base.errors import EssdError
from essd.cli import base, completion


@pytest.fixture
def runtime(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """An empty runtime folder."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return paths.runtime()


def listen(name: str) -> socket.socket:
    """A supervisor that only accepts connections."""
    folder = paths.instance(name)
    folder.mkdir()
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / "control.sock"))
    server.listen()
    return server


def test_the_help_shows_every_command_in_a_known_group() -> None:
    said = CliRunner().invoke(cli.app, ["--help"]).output
    headings = re.findall(r"─ (\w[\w ]*) ─", said)
    assert headings == ["Options", *base.PANELS]
    for command in cli.app.registered_commands:
        assert command.rich_help_panel in base.PANELS


def test_without_name_the_only_running_instance_is_used(runtime) -> None:
    assert chosen.instance() == "default"
    (runtime / "ended").mkdir()
    (runtime / "ended" / "control.sock").touch()
    with listen("lab"):
        assert chosen.instance() == "lab"
        assert chosen.instance("other") == "other"
        with listen("bench"), pytest.raises(EssdError, match="bench or --name lab"):
            chosen.instance()
    assert chosen.instance() == "default"


def test_what_is_slow_to_load_is_loaded_by_the_commands_that_use_it() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, essd.cli; print(*sys.modules)"], check=True,
        cwd=paths.TOP / "tools", text=True, capture_output=True, timeout=120
    ).stdout.split()
    assert not {"asyncio", "logging", "concurrent.futures", "yaml", "jinja2", "qemu",
                "essd.storage.flash", "essd.setup.setup", "essd.supervisor"} & set(loaded)


# Completion

def complete(*words: str, shell: str = "bash") -> list[str]:
    """The words that essd offers for the last of these words."""
    line = ["./essd", *words]
    asked = ({"COMP_WORDS": "\n".join(line), "COMP_CWORD": str(len(words))}
             if shell == "bash" else {"_TYPER_COMPLETE_ARGS": " ".join(line),
                                      "_TYPER_COMPLETE_FISH_ACTION": "get-args"})
    done = subprocess.run(
        [sys.executable, "-m", "essd"], check=False, text=True, capture_output=True,
        cwd=paths.TOP / "tools", timeout=120,
        env={**os.environ, **asked, "_ESSD_COMPLETE": f"complete_{shell}"})
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_commands_and_names_are_completed(runtime, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "drives"))
    (tmp_path / "drives" / "shelf").mkdir(parents=True)
    (tmp_path / "drives" / "shelf" / "flash.img").touch()
    assert complete("power-c") == ["power-cut", "power-cycle"]
    with listen("lab"):
        assert complete("status", "--name", "") == ["lab", "shelf"]
        assert complete("rm", "") == ["shelf"]
    assert complete("qmp", "x", "--part", "h") == ["host"]
    assert complete("config", "--set", "port.0.m") == ["port.0.mtu="]
    assert complete("test", "--only", "co") == ["conform", "coverage"]
    assert complete("trace", "--events", "qp,co") == ["qp,commands"]
    assert complete("--show-completion", "z") == ["zsh"]


def test_words_are_completed_also_while_several_instances_run(
        runtime) -> None:
    with listen("lab"), listen("other"):
        assert complete("status", "--na") == ["--name"]
        assert complete("status", "--name", "o") == ["other"]


def test_zsh_and_fish_get_the_commands_with_their_help(runtime) -> None:
    (line,) = complete("power-on", shell="fish")
    assert line.startswith("power-on\tPower the drive on")
    assert '"power-on":"Power the drive on' in "".join(complete("power-on", shell="zsh"))


def test_bash_completes_the_program_as_it_was_typed(runtime) -> None:
    script = subprocess.run(
        [sys.executable, "-m", "essd", "--show-completion", "bash"], check=True, text=True,
        cwd=paths.TOP / "tools", capture_output=True, timeout=120).stdout
    program = runtime / "essd"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -m essd\n")
    program.chmod(0o755)
    done = subprocess.run(
        ["bash", "--norc", "-c", script + "COMP_WORDS=(./essd power-cy); COMP_CWORD=1\n"
         "_essd_completion ./essd power-cy ./essd; echo ${COMPREPLY[@]}"],
        check=True, text=True, capture_output=True, cwd=runtime, timeout=120,
        env={**os.environ, "PYTHONPATH": str(paths.TOP / "tools")})
    assert done.stdout == "power-cycle\n"


@pytest.mark.parametrize("shell", completion.SCRIPTS)
def test_completion_is_installed_where_the_shell_looks_for_it(
        tmp_path, monkeypatch, shell: str) -> None:
    place, start_up, line = completion.PLACES[shell]
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    if start_up:
        (tmp_path / start_up).write_text("alias x=y")
    for _ in range(2):
        done = CliRunner().invoke(cli.app, ["--install-completion", "auto"])
        assert done.exit_code == 0, done.output
    assert (tmp_path / place).read_text() == completion.SCRIPTS[shell]
    if start_up:
        assert (tmp_path / start_up).read_text() == f"alias x=y\n{line}\n"
