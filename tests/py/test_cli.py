# SPDX-License-Identifier: BSD-2-Clause
"""A mistake on the command line gives one line on stderr and a status other than 0."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from essd.base import paths
from essd.cli.base import FIRST


@pytest.fixture(autouse=True)
def no_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No instance is running, whatever other tests do at the same time."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def essd(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "essd", *words], check=False,
                          cwd=paths.TOP / "tools", text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=120, env=os.environ)


@pytest.mark.parametrize("words, said", [
    (("port", "x"), "invalid value for '[N]'"),
    (("port", "-1"), "no such option: -1"),
    (("port", "0", "--ber", "foo"), "invalid value for '--ber'"),
    (("port", "0", "--flap", "-1"), "invalid value for '--flap'"),
    (("port", "0", "1"), "unexpected extra argument"),
    (("ports",), "no such command 'ports'"),
    (("qmp",), "missing argument"),
    (("up", "--mtu", "1279"), "the MTU 1279 is outside 1280 to 9000"),
    (("port", "0", "--name", "nobody"), "nothing is running"),
    (("config", "--name", "nobody"), "there is no drive nobody yet"),
    (("config", "--check", "/nowhere.yaml"), "/nowhere.yaml: No such file"),
    (("config", "--check", "/"), "/: Is a directory"),
    (("config", "--check", "--set", "port.0.mtu="), "write KEY=VALUE"),
    (("config", "--check", "--set", "name"), "write KEY=VALUE"),
    (("config", "--restart"), "--restart goes with changes"),
])
def test_a_mistake_on_the_command_line_is_reported_in_one_line(
        words: tuple[str, ...], said: str) -> None:
    done = essd(*words)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("essd: ") and said in line


@pytest.mark.parametrize("text, said", [
    (b"port:\n  0: {mtu: 1500\n", ":3: not valid YAML"),
    (b"\tname: x\n", ":1: not valid YAML"),
    (b"name: a\nname: \0", ":2: not valid YAML: the character #x0000 is not allowed"),
    (b"\xff\xfe\0", ": not valid YAML: the file is not UTF-8 text"),
    (b"only words", ":1: a configuration consists of keys and values"),
    (b"name: a\n---\nname: b\n", ": not valid YAML"),
    (b"port: {1: {speed: 10}}", ": port.1.speed: 10 differs from port.0.speed, 25"),
])
def test_a_mistake_in_a_configuration_file_is_reported_in_one_line(
        tmp_path, text: bytes, said: str) -> None:
    path = tmp_path / "drive.yaml"
    path.write_bytes(text)
    done = essd("config", "--check", "--name", "nobody", str(path))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"essd: {path}") and said in line


def test_a_call_without_arguments_prints_the_help() -> None:
    done = essd()
    assert "Usage: essd" in done.stdout + done.stderr


@pytest.mark.parametrize("words", ["list", "--version", "conform --help"])
def test_output_to_a_full_disk_is_reported_in_one_line(words: str) -> None:
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m essd {words} > /dev/full"],
                          check=False, cwd=paths.TOP / "tools", text=True,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 1
    assert done.stderr == ("essd: standard output cannot be written: "
                           "No space left on device\n")


def test_a_command_runs_with_closed_output() -> None:
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m essd --version >&-"],
                          check=False, cwd=paths.TOP / "tools", text=True,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_help_begins_with_what_a_newcomer_needs() -> None:
    shown = essd("--help").stdout
    places = [shown.index(f"│ {name} ") for name in FIRST]
    assert places == sorted(places)
    assert shown.index("│ config ") > places[-1]


@pytest.mark.parametrize("words", [
    ("firmware", "key", "/nonexistent/key.pem"),
    ("man", "/proc/essd")])
def test_a_file_that_cannot_be_written_is_named_in_one_line(words: tuple[str, ...]) -> None:
    done = essd(*words)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"essd: {words[-1]}"), line


def test_a_runtime_folder_that_others_can_read_is_named(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "essd").mkdir(mode=0o755)
    for word in ("list", "clean"):
        done = essd(word)
        assert (done.returncode, done.stderr) == (
            1, f"essd: {tmp_path / 'essd'} is not a folder that only you can access: "
               "remove it\n")
    assert "only you can access" in essd("doctor").stdout
