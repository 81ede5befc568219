# SPDX-License-Identifier: BSD-2-Clause
"""How essd's command line starts: its groups, its speed, and the instance it means."""

import re
import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from essd import chosen, cli, paths
from essd.cli import base
from essd.errors import EssdError


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
    assert not {"asyncio", "yaml", "jinja2", "qemu", "essd.flash", "essd.setup",
                "essd.supervisor"} & set(loaded)
