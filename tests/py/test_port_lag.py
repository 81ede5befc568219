# SPDX-License-Identifier: BSD-2-Clause
"""The output about link aggregation, from the drive's answer."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from essd import cli
from essd.base import show
from essd.base.errors import EssdError
from essd.drive import mgmt, port, port_lag
from essd.instance.instance import Instance

def member(port: int, role: str, out: int = 0, dropped: int = 0,
           **more: Any) -> dict[str, Any]:
    return {"port": port, "role": role, **more, "roce-out": out,
            "roce-dropped": dropped, "raw-dropped": 2 * dropped}


def lacp_member(port: int, role: str, receive: str, mux: str, state: int,
                partner: bool = True, **more: Any) -> dict[str, Any]:
    told = {"partner": {"system": "52:54:00:12:34:56", "priority": 65535, "key": 15,
                        "port": port + 1, "state": 0x3f}} if partner else {}
    return member(port, role, lacp={"receive": receive, "mux": mux, "state": state},
                  **told, **{"lacpdus-in": 31 - port, "lacpdus-out": 33 - port,
                             "lacpdus-illegal": port}, **more)


def reply(mode: str, *ports: dict[str, Any], up: bool = True, moves: int = 0,
          lost: int = 0) -> dict[str, Any]:
    """An answer of the management channel."""
    return {"mode": mode, "up": up, "ports": list(ports), "moves": moves,
            "frames-without-port": lost}


WORKING = "collecting, distributing"


def lacp() -> dict[str, Any]:
    return reply("lacp", lacp_member(0, "active", "current", WORKING, 0x3f, out=700,
                                     dropped=1),
                 lacp_member(1, "active", "current", WORKING, 0x3f, out=600), lost=4)


def alone() -> dict[str, Any]:
    return reply("lacp", lacp_member(0, "active", "no partner", WORKING, 0x7d, False,
                                     out=700),
                 lacp_member(1, "link down", "no link", "detached", 0x45, False))


def standby() -> dict[str, Any]:
    return reply("active-standby", member(0, "standby", 9), member(1, "active", 10),
                 moves=3)


def shown(lag: dict[str, Any]) -> list[list[str]]:
    with show.console.capture() as captured:
        show.console.print(port_lag.table(lag))
    return [line.split() for line in captured.get().splitlines()]


def test_lacp_with_both_ports_aggregated() -> None:
    lag = port_lag.from_reply(lacp())
    assert (lag["mode"], lag["up"], lag["aggregated"]) == ("lacp", True, True)
    assert (lag["active"], lag["partner-system"]) == ([0, 1], "52:54:00:12:34:56")
    assert lag["frames-without-port"] == 4
    first = lag["ports"][0]
    assert first["lacp"]["receive"] == "current"
    assert first["lacp"]["mux"] == "collecting, distributing"
    assert first["lacp"]["state-words"] == [
        "active", "short-timeout", "aggregatable", "in-sync", "collecting",
        "distributing"]
    assert (first["partner"]["key"], first["partner"]["port"]) == (15, 1)
    assert (first["roce-out"], first["roce-dropped"], first["raw-dropped"]) == (700, 1, 2)
    assert lag["ports"][1]["lacpdus-illegal"] == 1
    assert port_lag.line(lag) == ("LAG: LACP, up, aggregated, partner 52:54:00:12:34:56, "
                                  "active: 0 and 1")
    rows = shown(lag)
    assert rows[1] == ["0", "active", "current,", "collecting,", "distributing", "3f",
                       "52:54:00:12:34:56", "1", "15", "3f", "700", "3"]


def test_lacp_without_a_partner_is_not_aggregated() -> None:
    lag = port_lag.from_reply(alone())
    assert (lag["up"], lag["aggregated"], lag["active"]) == (True, False, [0])
    assert lag["partner-system"] is None
    assert "defaulted" in lag["ports"][0]["lacp"]["state-words"]
    assert lag["ports"][1]["lacp"] == {
        "receive": "no link", "mux": "detached", "state": "45",
        "state-words": ["active", "aggregatable", "defaulted"]}
    assert port_lag.line(lag) == "LAG: LACP, up, not aggregated, partner none, active: 0"
    assert shown(lag)[2][:3] == ["1", "link", "down"]


def test_ports_of_two_partners_or_without_one_are_not_aggregated() -> None:
    two = lacp()
    two["ports"][1]["partner"]["system"] = "52:54:00:12:34:57"
    assert not port_lag.from_reply(two)["aggregated"]
    one = lacp()
    one["ports"][1]["role"] = "out"
    assert port_lag.from_reply(one)["aggregated"] is False
    assert port_lag.from_reply(one)["active"] == [0]
    silent = lacp()
    for entry in silent["ports"]:
        del entry["partner"]
    assert not port_lag.from_reply(silent)["aggregated"]


def test_standby_has_one_active_port_and_no_partner() -> None:
    lag = port_lag.from_reply(standby())
    assert (lag["mode"], lag["aggregated"], lag["active"]) == (
        "active-standby", True, [1])
    assert lag["moves"] == 3
    assert port_lag.line(lag) == "LAG: active/standby, up, aggregated, active: 1"
    assert shown(lag)[0] == ["port", "role", "RoCE", "out", "dropped"]
    down = standby() | {"up": False}
    down["ports"][1]["role"] = "link down"
    assert port_lag.line(port_lag.from_reply(down)).endswith(
        "down, not aggregated, active: none")


def test_no_aggregation_is_shown_in_one_line() -> None:
    assert port_lag.line(port_lag.from_reply({"mode": "off"})) == "LAG: off"


# The commands

PORTS = [{
    "port": number, "up": True, "reason": "", "speed": 25, "fec": "rs",
    "present": True, "partner-speed": 25, "partner-fec": "rs", "partner-fault": False,
    "ber": 0.0, "counters": dict.fromkeys((
        "aFramesReceivedOK", "aFramesTransmittedOK", "aFrameCheckSequenceErrors",
        "aFECCorrectedBlocks", "aFECUncorrectableBlocks", "linkChanges"), 0),
} for number in (0, 1)]
STATUS = {
    "parts": {"drive": {"state": "running", "why": "", "pid": None, "restarts": [],
                        "console": "c", "ready": True, "halted": False}},
    "cables": {"0": {"plugged": True, "carrier": True}}}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """Run commands with a drive whose answer about its aggregation is `says.answer`."""
    says = SimpleNamespace(answer=None)
    # The instances of whoever runs the tests are not there.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "essd").mkdir(mode=0o700)

    def ask(_instance: Instance, request: str, _timeout_s: float = 0) -> dict[str, Any]:
        if isinstance(says.answer, EssdError):
            raise says.answer
        if request == "status":
            return {"firmware": "0.1.0"}
        if request == "ana":
            return {"groups": []}
        if request == "modules":
            return {"modules": [{"port": port, "state": "absent"} for port in (0, 1)]}
        assert request == "lag"
        return says.answer or lacp()

    def run(*words: str) -> str:
        result = CliRunner().invoke(cli.app, list(words), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    monkeypatch.setattr(mgmt, "ask", ask)
    monkeypatch.setattr(Instance, "status", lambda _self: json.loads(json.dumps(STATUS)))
    monkeypatch.setattr(port, "number_of", lambda _instance, number: number)
    monkeypatch.setattr(port, "states", lambda _instance, number: [
        entry for entry in PORTS if number in (None, entry["port"])])
    says.run = run
    return says


def test_port_and_status_show_it_as_json(run: SimpleNamespace) -> None:
    both = json.loads(run.run("port", "--json"))
    assert [entry["port"] for entry in both] == [0, 1]
    assert [entry["lag"]["partner"]["port"] for entry in both] == [1, 2]
    assert all(entry["lag"]["mode"] == "lacp" and entry["lag"]["aggregated"]
               for entry in both)
    one = json.loads(run.run("port", "1", "--json"))
    assert [entry["lag"]["lacpdus-in"] for entry in one] == [30]
    assert json.loads(run.run("status", "--json"))["lag"] == \
        port_lag.from_reply(lacp())


def test_port_and_status_show_it_as_text(
        run: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (("port",), ("status",)):
        with show.console.capture() as captured:
            run.run(*words)
        assert port_lag.line(port_lag.from_reply(lacp())) in captured.get()
    run.answer = {"mode": "off"}
    with show.console.capture() as captured:
        run.run("port")
    assert "LAG: off" in captured.get().splitlines()


def test_ports_are_shown_although_the_drive_does_not_answer(run: SimpleNamespace) -> None:
    run.answer = EssdError("the drive did not answer lag within 3 s")
    with show.console.capture() as captured:
        run.run("port")
    assert "LAG: unknown: the drive did not answer" in captured.get()
    lag = json.loads(run.run("port", "--json"))[0]["lag"]
    assert lag["mode"] is None and "did not answer" in lag["why"]


def test_a_drive_without_power_gets_no_request(
        run: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STATUS["parts"]["drive"], "state", "off")
    assert "lag" not in json.loads(run.run("status", "--json"))
