# SPDX-License-Identifier: BSD-2-Clause
"""`essd gdb`: its command, its symbols, its end; and guests that halt with the drive."""

import asyncio
import contextlib
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from essd.base.errors import EssdError
from essd.build import elf
from essd.debug import debugger
from essd.instance.config import Config, Drive, Host, Link, Peer
from essd.instance.instance import Instance
from essd.machine import drive
from essd.supervisor.supervisor import Supervisor


def image(number: int, content: bytes = b"") -> bytes:
    return b"\x6f\0\0\0" * 9 + elf.NOTE + bytes([number]) * elf.ID_LEN + content


def test_a_build_id_is_found_in_an_image() -> None:
    assert elf.build_id(image(0x5a)) == "5a" * 20
    assert elf.build_id(b"no note") is None
    assert elf.build_id(image(1)[:-1]) is None


def test_the_next_build_does_not_overwrite_a_kept_elf(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    built = tmp_path / "firmware.elf"
    built.write_bytes(image(1, b"first"))
    elf.keep(built)
    built.write_bytes(image(2, b"second"))
    elf.keep(built)
    assert elf.find("01" * 20).read_bytes().endswith(b"first")
    assert elf.find("02" * 20).read_bytes().endswith(b"second")
    with pytest.raises(EssdError, match=f"{'03' * 20}.*--elf"):
        elf.find("03" * 20)


def test_an_elf_that_is_still_used_is_kept_for_longer(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    built = tmp_path / "firmware.elf"
    long_ago = time.time() - (elf.UNUSED_DAYS + 1) * 24 * 3600
    for number in (1, 2):
        built.write_bytes(image(number))
        elf.keep(built)
    for number in ("01", "02"):
        os.utime(elf.kept(number * 20).parent, (long_ago, long_ago))
    elf.find("01" * 20)         # by a debugger
    built.write_bytes(image(3))
    elf.keep(built)
    assert elf.kept("01" * 20).exists()
    assert not elf.kept("02" * 20).exists()


def test_an_elf_without_a_build_id_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.elf").write_bytes(b"nothing")
    with pytest.raises(EssdError, match="no build ID"):
        elf.keep(tmp_path / "x.elf")


def test_gdb_loads_both_symbol_files_before_it_attaches(tmp_path: Path) -> None:
    rom = tmp_path / "rom.elf"
    rom.write_bytes(b"")
    server = drive.gdb_socket(tmp_path)
    words = debugger.words(server, rom, Path("/kept/firmware.elf"), ["-batch"])
    assert words[0] == "gdb-multiarch" and words[-1] == "-batch"
    commands = [b for a, b in zip(words, words[1:], strict=False) if a == "-ex"]
    places = [commands.index(text) for text in (
        f"source {debugger.HELPERS}", "file /kept/firmware.elf",
        f"add-symbol-file {rom}", f"target remote {server}")]
    assert places == sorted(places)
    without = debugger.words(server, tmp_path / "none.elf", None, [])
    assert not any("file " in word for word in without)


def test_gdb_finds_sources_whether_or_not_the_build_used_ccache(tmp_path: Path) -> None:
    """The ELF names ../../nvmeof/limits.h with ccache, and nvmeof/limits.h without."""
    words = debugger.words(tmp_path, tmp_path / "none.elf", None, [])
    (folders,) = [w.removeprefix("directory ") for w in words if w.startswith("directory ")]
    one, other = map(Path, folders.split(":"))
    assert (one.parent.parent / "nvmeof/limits.h").exists()
    assert (other / "nvmeof/limits.h").exists()


class GdbServer:
    """Stands for QEMU's gdb server: answers a detach, and remembers what it received."""

    def __init__(self, folder: Path) -> None:
        self.received = b""
        self.server = socket.socket(socket.AF_UNIX)
        self.server.settimeout(10)
        drive.gdb_socket(folder).parent.mkdir(exist_ok=True)
        self.server.bind(str(drive.gdb_socket(folder)))
        self.server.listen()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self) -> None:
        with contextlib.suppress(TimeoutError), self.server.accept()[0] as connection:
            while data := connection.recv(100):
                self.received += data
                connection.sendall(b"+$T05thread:01;#07+$OK#9a")

    def end(self) -> bytes:
        self.thread.join(20)
        self.server.close()
        return self.received


def instance_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Instance:
    monkeypatch.setattr(debugger, "is_attached", lambda instance: False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    instance = Instance("unit")
    instance.folder.mkdir(parents=True)
    return instance


def test_a_drive_whose_gdb_was_killed_is_released(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    instance = instance_in(tmp_path, monkeypatch)
    server = GdbServer(instance.folder)
    assert debugger.run(instance, ["sh", "-c", "kill -9 $$"]) == 128 + signal.SIGKILL
    assert server.end() == debugger.DETACH
    assert "gdb was killed" in capsys.readouterr().out


def test_a_drive_is_released_when_essd_gdb_itself_is_ended(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = instance_in(tmp_path, monkeypatch)
    server = GdbServer(instance.folder)

    def exit_now(*_: object) -> None:
        raise SystemExit(3)

    before = signal.signal(signal.SIGALRM, exit_now)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(SystemExit):
            debugger.run(instance, ["sleep", "60"])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert server.end() == debugger.DETACH


@pytest.mark.parametrize("program, status", [("true", 0), ("false", 1)])
def test_a_drive_is_released_whatever_the_status_of_gdb_is(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, status: int) -> None:
    instance = instance_in(tmp_path, monkeypatch)
    server = GdbServer(instance.folder)
    assert debugger.run(instance, [program]) == status
    assert server.end() == debugger.DETACH


def test_a_drive_without_power_needs_no_release(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    instance = instance_in(tmp_path, monkeypatch)   # nobody listens
    assert debugger.run(instance, ["true"]) == 0
    assert not capsys.readouterr().out


def test_a_drive_that_may_be_halted_is_reported(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    instance = instance_in(tmp_path, monkeypatch)
    monkeypatch.setattr(debugger, "RELEASE_S", 0.1)
    with socket.socket(socket.AF_UNIX) as silent:
        drive.gdb_socket(instance.folder).parent.mkdir(exist_ok=True)
        silent.bind(str(drive.gdb_socket(instance.folder)))
        silent.listen()
        assert debugger.run(instance, ["true"]) == 0
    assert "may be halted or have breakpoints; continue it" in capsys.readouterr().out


def test_the_end_of_gdb_is_that_which_qemu_has_noticed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = instance_in(tmp_path, monkeypatch)
    answers = [True, True, False]
    monkeypatch.setattr(debugger, "is_attached", lambda instance: answers.pop(0))
    assert debugger.run(instance, ["true"]) == 0
    assert not answers


def test_a_second_gdb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)

    class Attached(Instance):
        def ask(self, command: str, **arguments: Any) -> Any:
            if command == "status":
                return {"parts": {"drive": {"state": "running"}}}
            assert arguments["execute"] == "query-chardev"
            return [{"label": "console", "filename": "unix:/x"},
                    {"label": "gdb", "filename": "unix:/y,server=on <-> z"}]

    with pytest.raises(EssdError, match="another gdb is attached"):
        debugger.command(Attached("unit"), None, [])


def test_the_drive_listens_for_gdb_where_gdb_looks(tmp_path: Path) -> None:
    command = drive.drive_command(config(), tmp_path)
    device = command[command.index("-gdb") + 1].removeprefix("chardev:")
    chardev = next(word for word in command if f"id={device}," in word)
    assert f"path={drive.gdb_socket(tmp_path)}," in chardev
    assert "server=on,wait=off" in chardev      # the drive runs without a debugger


# Guests that halt with the drive

def config() -> Config:
    return Config("unit", "/guest", "tcg", [Link(n, [f"10.0.{n}.10/24"]) for n in (0, 1)],
                  {"drive": Drive("q", "f", "m", "raw", "nqn")}, {"host": Host()}, Peer())


class Monitor:
    """A fake QMP connection that records its commands."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = False

    async def execute(self, command: str, arguments: dict[str, Any]) -> object:
        if self.fails:
            raise ValueError("no answer")
        self.asked.append(command)
        return {}

    async def disconnect(self) -> None:
        pass


class Halting:
    """A supervisor whose machines are fake QMP connections."""

    def __init__(self, folder: Path) -> None:
        self.supervisor = Supervisor(folder, config())
        self.monitors = {name: Monitor() for name in self.supervisor.parts}
        for name, part in self.supervisor.parts.items():
            part.qmp = self.monitors[name]      # type: ignore[assignment]

    async def event(self, name: str, part: str = "drive") -> None:
        now = time.time()
        await self.supervisor.parts[part].on_event({
            "event": name, "timestamp": {"seconds": int(now),
                                         "microseconds": int(now % 1 * 1e6)}})

    @property
    def asked(self) -> dict[str, list[str]]:
        return {name: monitor.asked for name, monitor in self.monitors.items()}


def test_every_guest_stops_and_continues_with_the_drive(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    halting = Halting(tmp_path)

    async def run() -> None:
        await halting.event("STOP")
        assert halting.supervisor.parts["host"].status()["halted"]
        assert halting.supervisor.parts["drive"].status()["halted"]
        await halting.event("RESUME")

    asyncio.run(run())
    assert halting.asked == {"host": ["stop", "cont"], "peer": ["stop", "cont"],
                             "drive": []}
    assert not halting.supervisor.parts["host"].halted
    said = capsys.readouterr().out
    assert "host halted" in said and "ms after the drive" in said


def test_a_guest_is_continued_only_if_it_was_stopped_with_the_drive(
        tmp_path: Path) -> None:
    halting = Halting(tmp_path)
    asyncio.run(halting.event("RESUME"))
    assert halting.asked["host"] == []


def test_a_halted_guest_does_not_halt_the_others(tmp_path: Path) -> None:
    halting = Halting(tmp_path)
    asyncio.run(halting.event("STOP", part="host"))
    assert halting.asked == {"host": [], "drive": [], "peer": []}


def test_guests_run_while_the_drive_is_saved(tmp_path: Path) -> None:
    halting = Halting(tmp_path)
    halting.supervisor.parts["drive"].is_saving = True
    asyncio.run(halting.event("STOP"))
    assert halting.asked["host"] == []


def test_guests_go_on_when_a_halted_drive_loses_its_power(tmp_path: Path) -> None:
    halting = Halting(tmp_path)

    async def run() -> None:
        await halting.event("STOP")
        await halting.supervisor.parts["drive"].gone()

    asyncio.run(run())
    assert halting.asked["host"] == ["stop", "cont"]
    assert not halting.supervisor.parts["drive"].halted


def test_a_guest_that_does_not_answer_does_not_prevent_the_others_from_halting(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    halting = Halting(tmp_path)
    halting.monitors["host"].fails = True
    asyncio.run(halting.event("STOP"))
    assert halting.asked["peer"] == ["stop"]
    assert "host could not be halted with the drive: no answer" in capsys.readouterr().out
