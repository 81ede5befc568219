# SPDX-License-Identifier: BSD-2-Clause
"""The output of `essd port --neighbours`, and how answers of the console are read."""

import json
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uart_dialogue

from essd.base import show
from essd.base.errors import EssdError
from essd.cli.commands import disturb
from essd.drive import mgmt, neighbours, port
from essd.instance.instance import Instance

LEAF = {"chassis": "52:54:00:12:34:56", "port": "52:54:00:12:34:57",
        "port-description": "Ethernet1/7: the drive's", "system": "leaf3",
        "addresses": ["10.0.0.1", "fe80::1"], "capabilities": ["bridge", "router"],
        "vlan": 100, "forgotten-in": 117}
PHONE = {"chassis": "phone", "port": "1", "addresses": [], "capabilities": [],
         "forgotten-in": 3}
PORTS: list[dict[str, Any]] = [
    {"port": 0, "neighbours": [LEAF, PHONE]},
    {"port": 1, "neighbours": [], "why": "nothing heard yet"}]


def test_the_answer_has_one_port_or_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mgmt, "ask", lambda _instance, request: {"ports": PORTS}
                        if request == "neighbours" else {})
    monkeypatch.setattr(port, "states", lambda _instance, _number: [])
    instance = Instance("unit")
    assert neighbours.read(instance, None) == PORTS
    assert neighbours.read(instance, 1) == PORTS[1:]


def test_ports_with_and_without_neighbours_are_shown(
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
    """A fake console with these answers: one to Ctrl-C, one to the command."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "console"))
    listener.listen(1)

    def run() -> None:
        with listener, listener.accept()[0] as uart:
            for number, reply in enumerate(replies):
                if number < 2:      # the console prints further answers unasked
                    uart.recv(256)
                uart.sendall(reply)
            if replies:
                uart.recv(1)

    threading.Thread(target=run, daemon=True).start()
    return SimpleNamespace(is_running=True, drive="drive", file=lambda name: folder / name)


def test_an_answer_is_separated_from_echo_log_and_prompts(tmp_path: Path) -> None:
    instance = talk(tmp_path, b"half a li\r\nessd> ",
                    b"port\r\n[  12.345678] lldp: port 0: x\r\nport 0: up\r\nessd> ")
    assert uart_dialogue.ask(instance, "port") == ["port 0: up"]


def test_a_half_typed_line_is_discarded_and_its_answer_skipped(
        tmp_path: Path) -> None:
    instance = talk(tmp_path, b"essd> config set x\r\nessd> ",
                    b"config\r\na 1\r\nessd> port\r\nport 0: up\r\nessd> ")
    assert uart_dialogue.ask(instance, "port") == ["port 0: up"]


def test_a_neighbour_named_like_the_prompt_does_not_end_the_answer(
        tmp_path: Path) -> None:
    name = b"port 0: neighbour 0: system essd> neighbours\r\n"
    instance = talk(
        tmp_path, b"\r\nessd> ", b"neighbours\r\n" + name,
        b"[   1.000000] lldp: port 0: essd> neighbours\r\n" + name + b"essd> ")
    assert uart_dialogue.ask(instance, "neighbours") == [
        "port 0: neighbour 0: system essd> neighbours"] * 2


def test_a_log_line_inside_the_echo_is_skipped(tmp_path: Path) -> None:
    instance = talk(tmp_path, b"\r\nessd> ",
                    b"po\r\n[   1.000000] x\r\nrt\r\nport 0: up\r\nessd> ")
    assert uart_dialogue.ask(instance, "port") == ["port 0: up"]


def test_a_refusal_is_an_error(tmp_path: Path) -> None:
    instance = talk(tmp_path, b"\r\nessd> ", b"x\r\nerror: no command x\r\nessd> ")
    with pytest.raises(EssdError, match="the drive's console reports: no command x"):
        uart_dialogue.ask(instance, "x")


def test_a_closed_console_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EssdError, match="powered off|gone"):
        uart_dialogue.ask(talk(tmp_path), "port")


def test_a_console_that_does_not_answer_is_an_error(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uart_dialogue, "ANSWER_S", 0.2)
    with pytest.raises(EssdError, match="in use elsewhere"):
        uart_dialogue.ask(talk(tmp_path, b"\r\n"), "port")
