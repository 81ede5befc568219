# SPDX-License-Identifier: BSD-2-Clause
"""A supervisor with a script instead of each virtual machine."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_qemu import make_fake
from qemu.qmp import QMPClient

from essd.base import paths
from essd.base.errors import EssdError
from essd.base.process import start_time
from essd.drive import modules, port
from essd.instance.config import VHOST_USER, Config, Drive, Host, Link
from essd.instance.instance import Instance
from essd.machine.vm import QEMU, cables_connected
from essd.supervisor import control
from essd.supervisor.cable_keeper import Cable
from essd.supervisor.supervisor import Supervisor

@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Instance]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    fake = make_fake(tmp_path / "qemu")
    instance = Instance("unit")
    instance.start(Config(
        "unit", "", "tcg", [Link(0, ["10.0.0.10/24"]), Link(1, ["10.0.1.10/24"])],
        drives={"drive": Drive(str(fake), "flash", "media", "raw", "nqn")}))
    wait_monitor(instance)
    yield instance
    instance.stop()


def wait_monitor(instance: Instance) -> None:
    for _ in range(100):
        with contextlib.suppress(EssdError):
            instance.ask("qmp", part="drive", execute="anything")
            return
        time.sleep(0.05)
    raise AssertionError("no monitor")


def wait_state(instance: Instance, state: str) -> dict[str, object]:
    for _ in range(100):
        drive = instance.status()["parts"]["drive"]
        if drive["state"] == state:
            return dict(drive)
        time.sleep(0.05)
    raise AssertionError(instance.status())


def test_only_the_user_can_open_folder_and_socket(instance: Instance) -> None:
    wait_state(instance, "running")
    assert instance.folder.stat().st_mode & 0o77 == 0
    assert (instance.folder / "control.sock").stat().st_mode & 0o77 == 0


def test_stop_ends_every_process(instance: Instance) -> None:
    pids = [p["pid"] for p in json.loads((instance.folder / "state.json").read_text())]
    assert len(pids) == 2
    assert instance.stop()
    assert not any(start_time(pid) for pid in pids)
    assert not instance.is_running
    assert not instance.stop()


def test_the_drive_is_killed_when_its_supervisor_is_killed(instance: Instance) -> None:
    state = json.loads((instance.folder / "state.json").read_text())
    os.kill(state[0]["pid"], signal.SIGKILL)
    for _ in range(100):
        if not start_time(state[1]["pid"]):
            break
        time.sleep(0.02)
    else:
        raise AssertionError("the drive is still running")
    with pytest.raises(EssdError, match="nothing is running"):
        instance.status()


def test_a_supervisor_whose_folder_was_deleted_ends_at_sigterm(instance: Instance) -> None:
    wait_state(instance, "running")
    pids = [p["pid"] for p in json.loads((instance.folder / "state.json").read_text())]
    shutil.rmtree(instance.folder)
    os.kill(pids[0], signal.SIGTERM)
    for _ in range(100):
        if not any(start_time(pid) for pid in pids):
            break
        time.sleep(0.05)
    else:
        os.kill(pids[0], signal.SIGKILL)
        raise AssertionError("the supervisor is still running")


def test_a_crash_is_reported_with_its_last_log_line(instance: Instance) -> None:
    wait_state(instance, "running")
    with pytest.raises(EssdError):
        instance.ask("qmp", part="drive", execute="quit-badly")
    drive = wait_state(instance, "crashed")
    assert "status 3" in str(drive["why"])
    assert "something broke" in str(drive["why"])
    with pytest.raises(EssdError, match="something broke.*log"):
        instance.check()


def test_a_power_cut_and_power_on_start_a_new_process(instance: Instance) -> None:
    first = wait_state(instance, "running")["pid"]
    instance.ask("power-cut")
    wait_state(instance, "off")
    with pytest.raises(EssdError, match="not powered"):
        instance.ask("power-cut")
    instance.ask("power-on")
    assert wait_state(instance, "running")["pid"] != first
    with pytest.raises(EssdError, match="powered already"):
        instance.ask("power-on")


def test_no_task_is_left_over_when_the_power_goes_off_and_on(
        instance: Instance) -> None:
    for _ in range(3):
        instance.ask("power-cut")
        instance.ask("power-on")
        wait_monitor(instance)
    instance.stop()
    assert "was destroyed" not in (instance.folder / "supervisor.log").read_text()


def test_a_cable_is_connected_although_its_event_was_lost(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake QEMU sends no events; its "info network" shows cable 0 connected."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    make_fake(tmp_path / QEMU)
    instance = Instance("unit")
    links = [Link(0, ["10.0.0.10/24"]), Link(1, ["10.0.1.10/24"])]
    instance.start(Config("unit", str(tmp_path), "tcg", links,
                          hosts={"host": Host()}))
    try:
        for _ in range(100):
            cables = instance.status()["cables"]
            if cables["0"]["connected"]:
                break
            time.sleep(0.05)
        assert [cables[n]["connected"] for n in "01"] == [True, False]
    finally:
        instance.stop()


@pytest.mark.parametrize("state, connected", [
    ("unix:/run/a b/port0.sock", True), ("tcp:127.0.0.1:4000", True), ("fd:7", True),
    ("", False), ("listening", False), ("connecting", False), ("initializing", False),
    ("error: No such file", False), ("can't use file descriptor 7", False)])
def test_the_monitor_shows_whether_a_cable_is_connected(state: str,
                                                        connected: bool) -> None:
    text = f"port12: index=0,type=nic\r\n \\ cable12: index=0,type=stream,{state}\r\n"
    assert cables_connected(text) == {12: connected}


def test_a_link_partner_keeps_its_settings_over_a_power_cut(instance: Instance) -> None:
    wait_state(instance, "running")
    port.change(instance, 1, port.Wish(partner_fec="rs", partner_speed=10))
    instance.ask("power-cut")
    wait_state(instance, "off")
    with pytest.raises(EssdError, match="not powered"):
        port.change(instance, 1, port.Wish(partner_fec="fc"))
    instance.ask("power-on")
    wait_monitor(instance)
    log = (instance.folder / "drive/process.log").read_text()
    assert re.findall(r"^/machine/(.*)$", log, re.M) == [
        "port1 partner-fec rs", "port1 partner-speed 10"] * 2


def module_options(instance: Instance) -> list[list[str]]:
    """The options about modules in the command line of each process of the drive."""
    return [re.findall(r"-global (essd-module\S+)", line)
            for line in (instance.folder / "drive/process.log").read_text().splitlines()
            if line.startswith("$ ")]


def test_a_module_stays_as_it_is_over_a_power_cut(instance: Instance) -> None:
    """The next process of the drive begins with it, so firmware sees no other module."""
    wait_state(instance, "running")
    modules.insert(instance, 1, False)
    modules.measure(instance, 0, [modules.measurement("rx-power=0.08"),
                                  modules.measurement("temperature=-5.5")])
    modules.measure(instance, 1, [])
    with pytest.raises(EssdError, match="no port 2: there are 0, 1"):
        modules.insert(instance, 2, False)
    instance.ask("power-cut")
    wait_state(instance, "off")
    with pytest.raises(EssdError, match="not powered"):
        modules.insert(instance, 1, True)
    instance.ask("power-on")
    wait_monitor(instance)
    kept = ["essd-module0.rx-power=80000", "essd-module0.temperature=-5500"]
    assert module_options(instance) == [[], [*kept, "essd-module1.present=off"]]
    modules.insert(instance, 1, True)
    instance.ask("power-cut")
    wait_state(instance, "off")
    instance.ask("power-on")
    wait_monitor(instance)
    assert module_options(instance)[2:] == [[*kept, "essd-module1.present=on"]]


def test_a_supervisor_that_ends_as_it_starts_is_reported_at_once(
        instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    config = instance.config
    instance.stop()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    began = time.monotonic()
    with pytest.raises(EssdError, match="ended while it started; see .*supervisor.log"):
        Instance("unit").start(config)
    assert time.monotonic() - began < 20


def test_one_of_two_simultaneous_starts_is_refused(instance: Instance) -> None:
    config = instance.config
    instance.stop()
    said: list[str] = []

    def start() -> None:
        try:
            Instance("unit").start(config)
            said.append("")
        except EssdError as error:
            said.append(str(error))

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(bool, said)) == [False, True]
    assert re.search("running already|essd( up| command).* uses the drive unit now", max(said))


def test_an_unknown_port_is_refused(instance: Instance) -> None:
    with pytest.raises(EssdError, match="no port 7"):
        instance.ask("port", port=7, plugged=False)


@pytest.mark.parametrize("text", [
    '{"links": []}', '{"links": [{"unknown": 1}]}', "no JSON"])
def test_an_instance_of_another_version_of_essd_is_named(
        text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    instance = Instance("unit")
    instance.folder.mkdir(parents=True)
    (instance.folder / "config.json").write_text(text)
    with pytest.raises(EssdError, match="another version of essd started the instance unit"):
        _ = instance.config


@pytest.mark.parametrize(("line", "error"), [
    (b"nonsense\n", "a request is one line"),
    (b"[]\n", "a request is one line"),
    (b"{}\n", "a request is one line"),
    (b'{"command": ["status"]}\n', "a request is one line"),
    (b"[" * 60000 + b"\n", "a request is one line"),
    (b"x" * 200000 + b"\n", "a request is one line"),
    (bytes(range(128, 256)) + b"\n", "a request is one line"),
    (b'{"command": "no"}\n', "unknown command no"),
    (b'{"command": "port"}\n', "the request has no member 'port'"),
    (b'{"command": "reset", "hold": true}\n', "reset: a request has no member 'hold'"),
    (b'{"command": "reset", "halt": "no"}\n', "reset: halt has to be true or false"),
    (b'{"command": "port", "port": 0, "plugged": 0}\n', "plugged has to be true or false"),
    (b'{"command": "stop", "drive": "drive"}\n', "stop: a request has no member 'drive'"),
    (b'{"command": "subscribe", "event": ["trace"]}\n', "no member 'event'"),
    (b'{"command": "capture", "port": 0, "file": "x"}\n', "no member 'file'"),
    (b'{"command": "faults", "do": "removed"}\n', "faults: do is 'removed'"),
    (b'{"command": "faults", "do": "remove", "name": ["x"]}\n', "no member 'name'"),
    (b'{"command": "several", "parts": ["drive"], "requests":'
     b' [{"command": "power-cut", "prt": "host"}]}\n', "no member 'prt'"),
    (b'{"command": "subscribe", "events": ["trace"], "mask": -1}\n', "mask -1: use"),
    (b'{"command": "subscribe", "events": ["trace"], "mask": 4294967296}\n',
     "mask 4294967296: use"),
])
def test_nonsense_on_the_control_socket_is_answered(instance: Instance, line: bytes,
                                                    error: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(instance.folder / "control.sock"))
        with contextlib.suppress(BrokenPipeError):
            connection.sendall(line)
        reply = json.loads(connection.makefile("rb").readline())
    assert error in reply["error"]
    assert "Traceback" not in (instance.folder / "supervisor.log").read_text()


def test_every_command_has_its_members_listed() -> None:
    """Those in the source of each command are those that its requests may have."""
    source = "".join((paths.TOP / "tools/essd/supervisor" / name).read_text(encoding="utf-8")
                     for name in ("supervisor.py", "control.py", "cable_keeper.py",
                                  "capture_keeper.py"))
    used = set(re.findall(r'request(?:\.get\(|\[)"(\w+)"', source))
    assert used == {"command", "part"}.union(*control.MEMBERS.values())
    assert control.MEMBERS.keys() == {"subscribe", "capture"} | set(
        re.findall(r'"([a-z-]+)": self\.(?:do_\w+|control\.several)', source))


def test_a_subscriber_that_goes_without_reading_leaves_nothing_in_the_log(
        instance: Instance) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(instance.folder / "control.sock"))
        connection.sendall(b'{"command": "subscribe", "events": ["cable"]}\n')
        assert b"version" in connection.recv(100)
        instance.ask("port", port=0, plugged=False)
        time.sleep(0.1)
    instance.ask("port", port=0, plugged=True)
    instance.status()
    assert "Traceback" not in (instance.folder / "supervisor.log").read_text()


@pytest.mark.parametrize(("plugged", "connected", "port_up", "carrier"), [
    (True, True, None, True), (True, True, True, True), (True, True, False, False),
    (False, True, True, False), (True, False, True, False)])
def test_a_carrier_needs_a_cable_a_peer_and_a_port_that_is_up(plugged: bool, connected: bool,
                                           port_up: bool | None,
                                           carrier: bool) -> None:
    cable = Cable()
    cable.plugged, cable.connected, cable.port_up = plugged, connected, port_up
    assert cable.carrier == carrier


def test_a_cable_in_shared_memory_is_connected_while_the_drive_runs(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's QEMU says the same with and without a drive."""
    config = Config("unit", "", "tcg", [Link(0, ["10.0.0.10/24"], kind=VHOST_USER)],
                    drives={"drive": Drive("qemu", "flash", "media", "raw", "nqn")},
                    hosts={"host": Host()})

    async def connected(drive_state: str) -> bool:
        supervisor = Supervisor(tmp_path, config)
        host = supervisor.parts["host"]

        async def execute(*_words: object) -> str:
            return "cable0: index=0,type=vhost-user,vhost-user0 to vhost0\r\n"

        monkeypatch.setattr(host, "execute", execute)
        supervisor.parts["drive"].state = drive_state
        await host.read_cables()
        return supervisor.cables[0].connected

    assert asyncio.run(connected("running"))
    assert not asyncio.run(connected("off")) and not asyncio.run(connected("crashed"))


def test_a_runtime_folder_that_others_can_read_is_refused(tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "essd").mkdir(mode=0o755)
    (tmp_path / "essd").chmod(0o755)
    with pytest.raises(EssdError, match="not a folder that only you can access"):
        paths.runtime()


def test_a_bound_supervisor_that_cannot_start_a_part_leaves_no_sockets(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    supervisor = Supervisor(tmp_path, Config("unit", "", "tcg", [], hosts={"host": Host()}),
                            reader)

    async def fail(*_arguments: object) -> None:
        raise OSError("the part ended while it was started")

    monkeypatch.setattr(supervisor, "start_part", fail)
    with pytest.raises(OSError, match="the part ended"):
        asyncio.run(supervisor.run())
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []
    os.close(reader)
    os.close(writer)


def test_a_drive_that_is_powered_off_while_it_is_connected_leaves_no_task(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    fake = make_fake(tmp_path / "qemu")
    config = Config("unit", "", "tcg", [Link(0, ["10.0.0.10/24"])],
                    drives={"drive": Drive(str(fake), "flash", "media", "raw", "nqn")})

    async def power_off_and_on() -> None:
        supervisor = Supervisor(tmp_path, config)
        drive = supervisor.parts["drive"]
        connect = QMPClient.connect

        async def slow(client: QMPClient, *words: Any, **more: Any) -> None:
            await connect(client, *words, **more)
            monkeypatch.setattr(QMPClient, "connect", connect)
            await drive.kill()

        monkeypatch.setattr(QMPClient, "connect", slow)
        before = asyncio.all_tasks()
        await supervisor.start_part("drive")
        assert (drive.state, drive.qmp, drive.tasks) == ("off", None, [])
        assert asyncio.all_tasks() == before
        await supervisor.start_part("drive")
        assert drive.qmp is not None and len(drive.tasks) == 2
        await drive.kill()

    asyncio.run(power_off_and_on())
