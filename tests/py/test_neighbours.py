# SPDX-License-Identifier: BSD-2-Clause
"""What is made of the drive's answer about neighbours, and of the console's lines."""

import json
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from essd import console, mgmt, neighbours, port, show
from essd.cli.commands import disturb
from essd.errors import EssdError
from essd.instance import Instance

LEAF = {"chassis": "52:54:00:12:34:56", "port": "52:54:00:12:34:57",
        "port-description": "Ethernet1/7: the drive's", "system": "leaf3",
        "addresses": ["10.0.0.1", "fe80::1"], "capabilities": ["bridge", "router"],
        "vlan": 100, "forgotten-in": 117}
PHONE = {"chassis": "phone", "port": "1", "addresses": [], "capabilities": [],
         "forgotten-in": 3}
PORTS: list[dict[str, Any]] = [
    {"port": 0, "neighbours": [LEAF, PHONE]},
    {"port": 1, "neighbours": [], "why": "nothing heard yet"}]


def test_one_port_or_both_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mgmt, "ask", lambda _instance, request: {"ports": PORTS}
                        if request == "neighbours" else {})
    monkeypatch.setattr(port, "states", lambda _instance, _number: [])
    instance = Instance("unit")
    assert neighbours.read(instance, None) == PORTS
    assert neighbours.read(instance, 1) == PORTS[1:]


def test_the_table_and_the_line_about_silence(
        capsys: pytest.CaptureFixture[str]) -> None:
    with show.console.capture() as captured:
        disturb.show_neighbours(PORTS, False)
    text = captured.get()
    rows = [line.split() for line in text.splitlines()]
    assert rows[0][:2] == ["port", "system"]
    assert rows[1][:2] == ["0", "leaf3"] and "117" in rows[1]
    assert "nothing heard on port 1 yet (LLDP: usually every 30 s)" in text
    disturb.show_neighbours([
        {"port": 1, "neighbours": [], "why": "nothing heard: the link is down"}],
                        True)
    assert json.loads(capsys.readouterr().out)[0]["why"] == (
        "nothing heard: the link is down")


def talk(folder: Path, *replies: bytes) -> SimpleNamespace:
    """A console that says these: one when Ctrl-C is typed, one for the command."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "console.sock"))
    listener.listen(1)

    def run() -> None:
        with listener, listener.accept()[0] as uart:
            for number, reply in enumerate(replies):
                if number < 2:      # the rest comes without being asked for
                    uart.recv(256)
                uart.sendall(reply)
            if replies:
                uart.recv(1)

    threading.Thread(target=run, daemon=True).start()
    return SimpleNamespace(is_running=True, drive="drive", file=lambda name: folder / name)


def test_an_answer_is_told_from_echo_log_and_prompts(tmp_path: Path) -> None:
    instance = talk(tmp_path, b"half a li\r\nessd> ",
                    b"port\r\n[  12.345678] lldp: port 0: x\r\nport 0: up\r\nessd> ")
    assert console.ask(instance, "port") == ["port 0: up"]


def test_what_somebody_left_typed_is_forgotten_and_its_answer_skipped(
        tmp_path: Path) -> None:
    instance = talk(tmp_path, b"essd> config set x\r\nessd> ",
                    b"config\r\na 1\r\nessd> port\r\nport 0: up\r\nessd> ")
    assert console.ask(instance, "port") == ["port 0: up"]


def test_neighbour_named_like_the_prompt_or_a_command_ends_no_answer(
        tmp_path: Path) -> None:
    name = b"port 0: neighbour 0: system essd> neighbours\r\n"
    instance = talk(
        tmp_path, b"\r\nessd> ", b"neighbours\r\n" + name,
        b"[   1.000000] lldp: port 0: essd> neighbours\r\n" + name + b"essd> ")
    assert console.ask(instance, "neighbours") == [
        "port 0: neighbour 0: system essd> neighbours"] * 2


def test_log_line_in_the_middle_of_the_echo_is_left_out(tmp_path: Path) -> None:
    instance = talk(tmp_path, b"\r\nessd> ",
                    b"po\r\n[   1.000000] x\r\nrt\r\nport 0: up\r\nessd> ")
    assert console.ask(instance, "port") == ["port 0: up"]


def test_a_refusal_is_an_error(tmp_path: Path) -> None:
    instance = talk(tmp_path, b"\r\nessd> ", b"x\r\nerror: no command x\r\nessd> ")
    with pytest.raises(EssdError, match="the drive's console reports: no command x"):
        console.ask(instance, "x")


def test_an_end_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EssdError, match="powered off|gone"):
        console.ask(talk(tmp_path), "port")


def test_silence_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "ANSWER_S", 0.2)
    with pytest.raises(EssdError, match="in use elsewhere"):
        console.ask(talk(tmp_path, b"\r\n"), "port")
