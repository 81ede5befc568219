# SPDX-License-Identifier: BSD-2-Clause
"""A supervisor with several drives and a switch; programs of the test's stand for them."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_debugger import Monitor
from fake_qemu import make_fake

from essd.base import show
from essd.base.errors import EssdError, Mistakes
from essd.instance import fleet as essd_fleet
from essd.instance.config import Config, Drive, End, Host, Link, Switch
from essd.instance.instance import Instance
from essd.observe import status
from essd.supervisor import drive_part, supervisor as supervisors, switch_part
from essd.supervisor.supervisor import Supervisor

# Answers each request on its control socket, and writes the requests to its log.
FAKE_SWITCH = """#!{python}
import os, socket, sys
path = sys.argv[sys.argv.index("--control") + 1]
if os.path.exists(path):
    os.unlink(path)
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen()
while True:
    connection = server.accept()[0]
    for line in connection.makefile():
        print("asked:", line.partition(" ")[2], end="", flush=True)
        number, _, request = line[1:].rstrip().partition(" ")
        reply = '"error": "no such port"' if "port=9" in request else '"return": {{}}'
        if request == "show port=3":
            reply = '"return": {{"connected": true}}'
        if request == "macs":       # more than anybody reads
            reply = '"return": "' + 3000000 * "x" + '"'
        if request == "another":
            number = int(number) - 1
        try:
            connection.sendall(f'{{{{"id": {{number}}, {{reply}}}}}}\\n'.encode())
        except OSError:
            break
        if request == "leave":
            connection.shutdown(socket.SHUT_RDWR)
            break
"""


def fleet_config(folder: Path) -> Config:
    fake = make_fake(folder / "qemu")
    switch = folder / "switch"
    switch.write_text(FAKE_SWITCH.format(python=sys.executable))
    switch.chmod(0o755)
    links = [Link(n, [f"10.0.0.{10 + n}/24"],
                  ends=[End("switch0", n), End(f"drive{n}", 0)]) for n in range(3)]
    links += [Link(n, [], ends=[End("switch0", n), End(outside=f"dial=/x{n}")])
              for n in (3, 4)]
    return Config("fleet", "", "tcg", links,
                  {f"drive{n}": Drive(str(fake), "flash", "media", "raw", f"nqn{n}")
                   for n in range(3)}, switches={"switch0": Switch(str(switch))})


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Instance]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    instance = Instance("fleet")
    instance.start(fleet_config(tmp_path))
    instance.wait_started()
    yield instance
    instance.stop()


def states(instance: Instance) -> dict[str, str]:
    return {name: part["state"] for name, part in instance.status()["parts"].items()}


def test_several_requests_are_carried_out_for_several_parts(fleet: Instance) -> None:
    requests = [{"command": "qmp", "execute": "first"}, {"command": "port", "port": 7,
                                                         "plugged": True},
                {"command": "qmp", "execute": "last"}]
    found = fleet.ask("several", parts=["drive2", "drive0", "nobody"], requests=requests)
    assert list(found) == ["drive2", "drive0", "nobody"]
    for name in ("drive2", "drive0"):       # The second request fails, and ends the list.
        first, second = found[name]
        assert first == {"return": {}} and f"{name} has no cable" in second["error"]
    assert "this instance has no nobody" in found["nobody"][0]["error"]
    with pytest.raises(EssdError, match="cannot be several again"):
        fleet.ask("several", parts=["drive0"], requests=[{"command": "several"}])
    with pytest.raises(EssdError, match="the request has no member 'parts'"):
        fleet.ask("several", requests=[])


def test_a_power_cut_of_one_drive_leaves_the_others(fleet: Instance) -> None:
    pids = {name: part["pid"] for name, part in fleet.status()["parts"].items()}
    fleet.ask("power-cut", part="drive1")
    assert states(fleet) == {"switch0": "running", "drive0": "running", "drive1": "off",
                             "drive2": "running"}
    fleet.ask("power-on", part="drive1")
    now = {name: part["pid"] for name, part in fleet.status()["parts"].items()}
    assert now.pop("drive1") != pids.pop("drive1")
    assert now == pids


def test_a_command_has_to_name_one_of_several_drives(fleet: Instance) -> None:
    with pytest.raises(EssdError, match="several drives: name one of drive0, drive1"):
        fleet.ask("power-cut")
    with pytest.raises(EssdError, match="has no drive7: its parts are"):
        fleet.ask("power-cut", part="drive7")
    with pytest.raises(EssdError, match="switch0 is not a drive"):
        fleet.ask("reset", part="switch0")
    with pytest.raises(EssdError, match="drive0 has no cable at port 1"):
        fleet.ask("port", part="drive0", port=1, plugged=False)
    assert set(states(fleet).values()) == {"running"}


def requests(fleet: Instance) -> list[str]:
    text = (fleet.folder / "switch0/process.log").read_text()
    return [line.removeprefix("asked: ") for line in text.splitlines()
            if line.startswith("asked: set")]


def test_a_pulled_cable_is_down_at_the_switch_and_stays_so(fleet: Instance) -> None:
    fleet.ask("port", part="drive2", port=0, plugged=False)
    assert requests(fleet) == ["set port=2 link=down"]
    fleet.ask("power-cut", part="switch0")
    fleet.ask("power-on", part="switch0")
    assert requests(fleet) == ["set port=2 link=down"] * 2
    fleet.ask("port", part="drive2", port=0, plugged=True)
    assert requests(fleet)[-1] == "set port=2 link=up"


def test_a_request_goes_to_the_switch_and_its_answer_comes_back(fleet: Instance) -> None:
    assert fleet.ask("switch", part="switch0", request="show") == {}
    with pytest.raises(EssdError, match="switch0: no such port"):
        fleet.ask("switch", part="switch0", request="show port=9")
    with pytest.raises(EssdError, match="drive0 is not a switch: there are switch0"):
        fleet.ask("switch", part="drive0", request="show")
    with pytest.raises(EssdError, match="is one line of at most"):
        fleet.ask("switch", part="switch0", request="show\nmacs")
    fleet.ask("power-cut", part="switch0")
    with pytest.raises(EssdError, match="switch0 is not running"):
        fleet.ask("switch", part="switch0", request="show")


def test_the_status_shows_whether_a_cable_to_the_outside_is_connected(
        fleet: Instance) -> None:
    lines = status.cable_lines(fleet.status())
    assert lines[3:] == [
        "switch0:3 - dial=/x3: plugged, connected",
        "switch0:4 - dial=/x4: plugged, not connected"]


def test_a_supervisor_that_is_killed_in_a_fleet_command_is_listed_for_the_rest(
        fleet: Instance) -> None:
    pid = json.loads((fleet.folder / "state.json").read_text())[0]["pid"]

    def act(one: Instance) -> str:
        if one.part == "drive1":
            os.kill(pid, signal.SIGKILL)
        one.ask("power-cut", part=one.part)
        return "power is off"

    with show.console.capture() as captured, pytest.raises(Mistakes) as failed:
        essd_fleet.run(fleet, "drive*", act)
    assert captured.get().splitlines() == ["drive0: power is off"]
    assert [line.partition(":")[0] for line in failed.value.lines] == [
        "drive1", "drive2", "2 of 3 parts failed"]


def test_each_drive_has_files_of_its_own(fleet: Instance) -> None:
    command = (fleet.folder / "drive1/process.log").read_text().splitlines()[0]
    for name in ("console", "mgmt", "trace", "gdb"):
        assert f"path={fleet.folder}/drive1/{name}" in command
    assert f"logfile={fleet.folder}/drive1/console.log" in command
    assert fleet.of("drive1").file("console") == fleet.folder / "drive1/console"


def test_an_answer_that_is_not_read_is_not_taken_for_that_of_the_next_request(
        fleet: Instance) -> None:
    for request, why in (("macs", "."), ("another", "this is no answer to the request")):
        with pytest.raises(EssdError, match=f"switch0: {request}: {why}"):
            fleet.ask("switch", part="switch0", request=request)
        assert fleet.ask("switch", part="switch0", request="show port=3") == {
            "connected": True}
    fleet.ask("switch", part="switch0", request="leave")
    with pytest.raises(EssdError, match="switch0: show port=3: "):
        fleet.ask("switch", part="switch0", request="show port=3")
    assert fleet.ask("switch", part="switch0", request="show port=3") == {"connected": True}


def test_a_switch_that_does_not_answer_loses_the_connection(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch_part, "SWITCH_ANSWER_S", 0.2)
    switch = Supervisor(tmp_path, fleet_config(tmp_path)).parts["switch0"]
    assert isinstance(switch, switch_part.SwitchPart)

    async def run() -> None:
        ended = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()         # until the other end has closed
            writer.close()
            ended.set()
        async with await asyncio.start_unix_server(silent, tmp_path / "switch.sock"):
            switch.reader, switch.writer = await asyncio.open_unix_connection(
                tmp_path / "switch.sock")
            with pytest.raises(ValueError, match="switch0: show: no answer within 0 s"):
                await switch.ask("show")
            await asyncio.wait_for(ended.wait(), 30)
        assert switch.is_lost and switch.writer is None
    asyncio.run(run())


class Halting:
    """A supervisor whose machines are monitors only."""

    def __init__(self, folder: Path) -> None:
        config = fleet_config(folder)
        config.hosts["host"] = Host()
        self.supervisor = Supervisor(folder, config)
        self.monitors = {name: Monitor() for name in ("host", *config.drives)}
        for name, monitor in self.monitors.items():
            self.supervisor.parts[name].qmp = monitor       # type: ignore[assignment]

    async def event(self, name: str, part: str) -> None:
        now = time.time()
        event: dict[str, Any] = {"event": name, "timestamp": {
            "seconds": int(now), "microseconds": int(now % 1 * 1e6)}}
        await self.supervisor.parts[part].on_event(event)

    @property
    def asked(self) -> dict[str, list[str]]:
        return {name: monitor.asked for name, monitor in self.monitors.items()}


def test_all_other_drives_and_the_host_halt_and_go_on_with_a_drive(tmp_path: Path) -> None:
    halting = Halting(tmp_path)

    async def run() -> None:
        await halting.event("STOP", "drive1")
        # QEMU reports that the others have stopped, which halts nobody again.
        for name in ("drive0", "drive2"):
            await halting.event("STOP", name)
        assert halting.asked == {"host": ["stop"], "drive0": ["stop"], "drive1": [],
                                 "drive2": ["stop"]}
        await halting.event("RESUME", "drive1")
        for name in ("drive0", "drive2"):
            await halting.event("RESUME", name)

    asyncio.run(run())
    assert halting.asked == {"host": ["stop", "cont"], "drive0": ["stop", "cont"],
                             "drive1": [], "drive2": ["stop", "cont"]}
    assert not any(part.halted for part in halting.supervisor.parts.values())


def test_a_halted_drive_that_loses_its_power_lets_the_others_go_on(tmp_path: Path) -> None:
    halting = Halting(tmp_path)

    async def run() -> None:
        await halting.event("STOP", "drive0")
        await halting.supervisor.parts["drive0"].gone()

    asyncio.run(run())
    assert halting.asked["drive2"] == ["stop", "cont"]
    assert halting.asked["host"] == ["stop", "cont"]
    assert not halting.supervisor.parts["drive0"].halted


class Silent(Monitor):
    """The monitor of a QEMU that is stopped: it never answers."""

    async def execute(self, *_words: object) -> object:
        await asyncio.Event().wait()
        raise AssertionError


def test_the_power_of_a_drive_that_does_not_answer_can_be_cut(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its capacitors would keep it alive until it has saved its write buffer."""
    monkeypatch.setattr(drive_part, "POWER_FAIL_S", 0.2)
    drive = Supervisor(tmp_path, fleet_config(tmp_path)).parts["drive0"]
    drive.qmp = Silent()        # type: ignore[assignment]

    async def run() -> int | None:
        process = await asyncio.create_subprocess_exec("sleep", "1000")
        drive.process, drive.state = process, "running"
        await asyncio.wait_for(drive.fail_power(), 60)
        return process.returncode

    assert asyncio.run(run()) == -signal.SIGKILL
    assert (drive.state, drive.process) == ("off", None)


@pytest.mark.parametrize("does_stop", [False, True])
def test_a_part_that_does_not_answer_keeps_nobody_from_ending(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does_stop: bool) -> None:
    """When the drive that halted the others has ended, they are to go on."""
    monkeypatch.setattr(supervisors, "MONITOR_S", 1000 if does_stop else 0.2)
    halting = Halting(tmp_path)
    supervisor = halting.supervisor

    async def run() -> None:
        await halting.event("STOP", "drive0")
        supervisor.parts["drive2"].qmp = Silent()       # type: ignore[assignment]
        drive = supervisor.parts["drive0"]
        drive.process = await asyncio.create_subprocess_exec("sleep", "1000")
        drive.state = "running"
        await asyncio.wait_for(supervisor.command(
            {"command": "stop"} if does_stop else {"command": "power-cut", "part": "drive0"}), 60)

    asyncio.run(run())
    assert supervisor.parts["drive0"].state == "off" and supervisor.halter is None
    assert does_stop or halting.asked["host"] == ["stop", "cont"]
