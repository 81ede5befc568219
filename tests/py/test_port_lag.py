# SPDX-License-Identifier: BSD-2-Clause
"""What is made of the console's answer about link aggregation."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from essd import cli, console, port_lag, show
from essd.errors import EssdError
from essd.instance import Instance

PARTNER = ("port {0}: partner 52:54:00:12:34:56, priority 65535, key 15, port {1}, "
           "state 3f")
LACP = f"""lag: LACP, up
port 0: active
port 0: LACP current, collecting, distributing, state 3f
{PARTNER.format(0, 1)}
port 0: LACPDUs 31 in, 33 out, 0 illegal
port 0: RoCE frames 700 out, 1 dropped; raw 2 dropped
port 1: active
port 1: LACP current, collecting, distributing, state 3f
{PARTNER.format(1, 2)}
port 1: LACPDUs 30 in, 32 out, 1 illegal
port 1: RoCE frames 600 out, 0 dropped; raw 0 dropped
moved 0 times by itself, 4 frames had no port""".splitlines()
ALONE = """lag: LACP, up
port 0: active
port 0: LACP no partner, collecting, distributing, state 7d
port 0: LACPDUs 0 in, 33 out, 0 illegal
port 0: RoCE frames 700 out, 0 dropped; raw 0 dropped
port 1: link down
port 1: LACP no link, detached, state 45
port 1: LACPDUs 0 in, 0 out, 0 illegal
port 1: RoCE frames 0 out, 0 dropped; raw 0 dropped
moved 0 times by itself, 0 frames had no port""".splitlines()
STANDBY = """lag: active/standby, up
port 0: standby
port 0: RoCE frames 9 out, 0 dropped; raw 0 dropped
port 1: active
port 1: RoCE frames 10 out, 0 dropped; raw 0 dropped
moved 3 times by itself, 0 frames had no port""".splitlines()


def changed(lines: list[str], old: str, new: str) -> list[str]:
    assert any(old in line for line in lines)
    return [line.replace(old, new) for line in lines]


def shown(lag: dict[str, Any]) -> list[list[str]]:
    with show.console.capture() as captured:
        show.console.print(port_lag.table(lag))
    return [line.split() for line in captured.get().splitlines()]


def test_lacp_with_both_ports_in_it() -> None:
    lag = port_lag.parse(LACP)
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


def test_lacp_with_nobody_there_is_not_aggregated() -> None:
    lag = port_lag.parse(ALONE)
    assert (lag["up"], lag["aggregated"], lag["active"]) == (True, False, [0])
    assert lag["partner-system"] is None
    assert "defaulted" in lag["ports"][0]["lacp"]["state-words"]
    assert lag["ports"][1]["lacp"] == {
        "receive": "no link", "mux": "detached", "state": "45",
        "state-words": ["active", "aggregatable", "defaulted"]}
    assert port_lag.line(lag) == "LAG: LACP, up, not aggregated, partner none, active: 0"
    assert shown(lag)[2][:3] == ["1", "link", "down"]


def test_ports_of_two_partners_or_without_one_are_not_aggregated() -> None:
    two = changed(LACP, PARTNER.format(1, 2), PARTNER.format(1, 2).replace("56", "57"))
    assert not port_lag.parse(two)["aggregated"]
    one = changed(LACP, "port 1: active", "port 1: out")
    assert port_lag.parse(one)["aggregated"] is False
    assert port_lag.parse(one)["active"] == [0]
    silent = [line for line in LACP if "partner" not in line]
    assert not port_lag.parse(silent)["aggregated"]


def test_standby_has_one_active_port_and_no_partner() -> None:
    lag = port_lag.parse(STANDBY)
    assert (lag["mode"], lag["aggregated"], lag["active"]) == (
        "active-standby", True, [1])
    assert lag["moves"] == 3
    assert port_lag.line(lag) == "LAG: active/standby, up, aggregated, active: 1"
    assert shown(lag)[0] == ["port", "role", "RoCE", "out", "dropped"]
    down = changed(changed(STANDBY, "standby, up", "standby, down"), "1: active",
                   "1: link down")
    assert port_lag.line(port_lag.parse(down)).endswith(
        "down, not aggregated, active: none")


def test_off_is_one_line() -> None:
    assert port_lag.line(port_lag.parse(["lag: off"])) == "LAG: off"


@pytest.mark.parametrize("lines", [
    [], ["lag: LACP"], LACP[:-1], LACP[1:], changed(LACP, "LACPDUs 31", "LACPDUs many")])
def test_what_is_not_understood_is_an_error(lines: list[str]) -> None:
    with pytest.raises(EssdError, match="is not understood"):
        port_lag.parse(lines)


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
                        "console": "c", "ready": True}},
    "cables": {"0": {"plugged": True, "carrier": True}}}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The commands, with a drive whose console gives `says.answer`."""
    says = SimpleNamespace(answer=LACP)

    def ask(_instance: Instance, command: str, _timeout_s: float) -> list[str]:
        assert command == "lag"
        if isinstance(says.answer, EssdError):
            raise says.answer
        return says.answer  # type: ignore[no-any-return]

    def run(*words: str) -> str:
        result = CliRunner().invoke(cli.app, list(words), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    monkeypatch.setattr(console, "ask", ask)
    monkeypatch.setattr(Instance, "status", lambda _self: json.loads(json.dumps(STATUS)))
    monkeypatch.setattr(cli.port_module, "number_of", lambda _instance, number: number)
    monkeypatch.setattr(cli.port_module, "states", lambda _instance, number: [
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
    assert json.loads(run.run("status", "--json"))["lag"] == port_lag.parse(LACP)


def test_port_and_status_show_it_as_text(
        run: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (("port",), ("status",)):
        with show.console.capture() as captured:
            run.run(*words)
        assert port_lag.line(port_lag.parse(LACP)) in captured.get()
    run.answer = ["lag: off"]
    with show.console.capture() as captured:
        run.run("port")
    assert captured.get().splitlines()[-1] == "LAG: off"


def test_a_console_that_is_in_use_hides_no_ports(run: SimpleNamespace) -> None:
    run.answer = EssdError("the drive's console did not answer within 3 s")
    with show.console.capture() as captured:
        run.run("port")
    assert "LAG: not known: the drive's console did not answer" in captured.get()
    lag = json.loads(run.run("port", "--json"))[0]["lag"]
    assert lag["mode"] is None and "did not answer" in lag["why"]


def test_a_drive_without_power_is_not_asked(
        run: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STATUS["parts"]["drive"], "state", "off")
    assert "lag" not in json.loads(run.run("status", "--json"))
