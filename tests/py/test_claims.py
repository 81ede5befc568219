# SPDX-License-Identifier: BSD-2-Clause
"""Claims: several processes that want the same drive, and who is refused."""

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from fake_qemu import make_fake
from typer.testing import CliRunner

from essd import cli
from essd.api import system
from essd.base import claims, paths
from essd.base.errors import EssdError
from essd.base.process import start_time
from essd.bench import bench, mount
from essd.demo import demo
from essd.instance.config import Config, Drive, Link, flash_lock
from essd.instance.instance import Instance
from essd.settings import block as config_block, settings
from essd.setup import instances, settings_cmd, setup
from essd.setup.temporary import Temporary
from essd.storage import flash, snapshots
from essd.supervisor.supervisor import Supervisor

# A process that claims a name, says so, and keeps the claim until its input ends.
KEEPER = """\
import sys
from essd.base import claims
with claims.claimed(sys.argv[1], "essd test"):
    print("claimed", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """With a short path for sockets: those of pytest grow with the number of its runs."""
    with tempfile.TemporaryDirectory(prefix="run-") as run:
        monkeypatch.setenv("XDG_RUNTIME_DIR", run)
        monkeypatch.setenv("PYTHONPATH", str(paths.TOP / "tools"))
        yield tmp_path


@contextlib.contextmanager
def claimed_elsewhere(name: str) -> Iterator["subprocess.Popen[str]"]:
    """Another process holds the claim."""
    with subprocess.Popen([sys.executable, "-c", KEEPER, name], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == "claimed\n"
        try:
            yield keeper
        finally:
            keeper.kill()


def make_drive(name: str) -> Path:
    """The files of a drive that is not running."""
    folder = paths.drives() / name
    folder.mkdir(parents=True)
    image = flash.FlashImage()
    image.identity = flash.Identity.random()
    image.config = config_block.Config()
    image.save(folder / "flash.img")
    (folder / "media.raw").write_bytes(b"data")
    return folder


def fake_config(home: Path, name: str) -> Config:
    fake = home / "qemu"
    if not fake.exists():
        make_fake(fake)
    folder = paths.drives() / name
    return Config(name, "", "tcg", [Link(0, ["10.0.0.10/24"]), Link(1, ["10.0.1.10/24"])],
                  drives={"drive": Drive(str(fake), str(folder / "flash.img"),
                                         str(folder / "media.raw"), "raw", "nqn")})


def test_a_claim_names_its_holder_and_ends_with_it(home: Path) -> None:
    assert claims.holder("lab") is None
    with claimed_elsewhere("lab") as keeper:
        assert claims.holder("lab") == claims.Holder(keeper.pid, "essd test")
        with pytest.raises(claims.ClaimedError, match=re.escape(
                f"essd test (process {keeper.pid}) uses the drive lab now: try again when it "
                "has ended")), claims.claimed("lab", "essd up"):
            raise AssertionError
        with claims.claimed("other", "essd up"):
            pass
        keeper.kill()       # It cannot release anything itself.
        keeper.wait()
        with claims.claimed("lab", "essd up"):
            assert claims.is_ours("lab")
    assert claims.holder("lab") is None and not claims.is_ours("lab")


def test_nested_claims_end_with_the_outermost(home: Path) -> None:
    with claims.claimed("lab", "essd up"):
        with claims.claimed("lab", "essd config"):
            pass
        assert claims.holder("lab") == claims.Holder(os.getpid(), "essd up")
    assert claims.holder("lab") is None


def test_a_thread_does_not_share_the_claim_of_another(home: Path) -> None:
    said: list[str] = []

    def claim() -> None:
        try:
            with claims.claimed("lab", "essd up"):
                said.append("claimed")
        except claims.ClaimedError as error:
            said.append(error.holder.what)

    with claims.claimed("lab", "essd rm"):
        thread = threading.Thread(target=claim)
        thread.start()
        thread.join()
    assert said == ["essd rm"]


def test_looking_for_the_holder_refuses_no_claim(home: Path) -> None:
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            claims.holder("lab")

    with claims.claimed("lab", "essd up"):
        pass
    looker = threading.Thread(target=look)
    looker.start()
    try:
        for _ in range(2000):
            with claims.claimed("lab", "essd up"):
                pass
    finally:
        is_over.set()
        looker.join()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1, "colour": "red"}'])
def test_a_lock_file_that_says_nothing_still_refuses(home: Path, text: str) -> None:
    with claimed_elsewhere("lab"):
        claims.lock_file("lab").write_text(text)
        with pytest.raises(claims.ClaimedError, match="^another essd command uses the "
                           "drive lab now"), \
                claims.claimed("lab", "essd up"):
            raise AssertionError


def test_a_lock_file_that_cannot_be_read_is_named(home: Path) -> None:
    claims.lock_file("lab").mkdir(parents=True)     # also root cannot open it as a file
    make_drive("other")
    assert claims.holder("lab") is None
    assert claims.folder("lab") == paths.instance("lab")
    assert [entry["name"] for entry in json.loads(
        CliRunner().invoke(cli.app, ["list", "--json"]).output)] == ["other"]
    with pytest.raises(EssdError, match=r"cannot lock the drive lab: \S+/.lab.lock: Is a dir"), \
            claims.claimed("lab", "essd up"):
        raise AssertionError


def test_a_file_system_without_locks_is_named(home: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with claims.claimed("lab", "essd up"):
        pass
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    assert claims.holder("lab") is None
    with pytest.raises(EssdError, match=r"cannot lock the drive lab: \S+: No locks available; "
                       "ESSD_DATA names another folder"), claims.claimed("lab", "essd up"):
        raise AssertionError
    assert not claims.is_ours("lab")


def test_a_lock_file_that_is_deleted_before_it_is_locked_does_not_count(
        home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = claims.lock_request
    deleted: list[Path] = []

    def delete_first(file: IO[str], command: int, kind: int) -> int:
        if not deleted:
            deleted.append(claims.lock_file("lab"))
            deleted[0].unlink()
        return request(file, command, kind)

    monkeypatch.setattr(claims, "lock_request", delete_first)
    with claims.claimed("lab", "essd up"):
        assert run_in_another_process("lab") == "essd up"
    assert deleted


def test_a_temporary_name_leaves_no_lock_file(home: Path) -> None:
    owner = Temporary("py-")
    with claims.claimed(owner.name, "a Python program"):
        assert claims.lock_file(owner.name).exists()
    owner.delete()
    assert not list(paths.drives().glob(".py-*.lock"))


def run_words(*words: str) -> str:
    """What a command says when it refuses."""
    done = CliRunner().invoke(cli.app, list(words))
    assert done.exception is not None, done.output
    return str(done.exception)


def test_commands_that_write_a_drive_refuse_while_it_is_claimed(home: Path) -> None:
    folder = make_drive("lab")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with claimed_elsewhere("lab") as keeper:
        holder = f"essd test (process {keeper.pid}) uses the drive lab now"
        for words in (["rm", "lab", "--yes"], ["config", "--name", "lab", "--set", "echo=on"],
                      ["up", "--name", "lab"], ["up", "--name", "lab", "--new"],
                      ["firmware", "activate", "A", "--name", "lab"],
                      ["up", "--name", "lab", "--drives", "2"]):
            assert holder in run_words(*words), words
        with pytest.raises(claims.ClaimedError):
            setup.forget("lab")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_claim_outlives_the_deletion_of_the_drive(home: Path) -> None:
    make_drive("lab")
    with claims.claimed("lab", "essd rm"):
        instances.remove("lab")
        assert claims.holder("lab") == claims.Holder(os.getpid(), "essd rm")
        assert run_in_another_process("lab") == "essd rm"


def run_in_another_process(name: str) -> str:
    """The command that another process is refused for, or "" if it gets the claim."""
    done = subprocess.run([sys.executable, "-c", (
        "import sys\nfrom essd.base import claims\n"
        "try:\n    with claims.claimed(sys.argv[1], 'x'): pass\n"
        "except claims.ClaimedError as error: print(error.holder.what, end='')"), name],
        text=True, check=True, stdout=subprocess.PIPE, timeout=60)
    return done.stdout


# Instances that run

@pytest.fixture
def lab(home: Path) -> Iterator[Instance]:
    """A running instance with a fake drive."""
    make_drive("lab")
    instance = Instance("lab")
    instance.start(fake_config(home, "lab"))
    instance.wait_started()
    yield instance
    instance.stop()


def test_the_loser_of_two_starts_leaves_the_winner_alone(lab: Instance, home: Path) -> None:
    pids = {part["pid"] for part in lab.status()["parts"].values()}
    with pytest.raises(claims.ClaimedError, match=r"^instance lab is running already: stop it "
                       r"with ./essd down --name lab$"), setup.half_made("lab"):
        raise AssertionError
    with pytest.raises(EssdError, match="running already"):
        Instance("lab").start(fake_config(home, "lab"))
    with pytest.raises(claims.ClaimedError):
        setup.forget("lab")
    assert {part["pid"] for part in lab.status()["parts"].values()} == pids
    assert (paths.drives() / "lab/media.raw").read_bytes() == b"data"


def test_an_instance_is_found_from_another_runtime_folder(
        lab: Instance, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "elsewhere").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "elsewhere"))
    assert Instance("lab").folder == lab.folder != paths.instance("lab")
    (listed,) = json.loads(CliRunner().invoke(cli.app, ["list", "--json"]).output)
    assert (listed["name"], listed["state"], listed["folder"]) == (
        "lab", "running", str(lab.folder))
    assert "lab is running: stop it" in run_words("rm", "lab", "--yes")
    assert "running already" in run_words("up", "--name", "lab", "--new")
    assert Instance("lab").stop()
    assert claims.holder("lab") is None and not lab.is_running
    assert Instance("lab").folder == paths.instance("lab")


@pytest.mark.parametrize("words", [["--name", "lab"], ["--all"], []], ids=" ".join)
def test_an_instance_is_found_after_its_runtime_folder_was_deleted(
        lab: Instance, words: list[str]) -> None:
    """As systemd does at the end of a login."""
    pids = [entry["pid"] for entry in json.loads((lab.folder / "state.json").read_text())]
    shutil.rmtree(lab.folder.parent)
    (listed,) = json.loads(CliRunner().invoke(cli.app, ["list", "--json"]).output)
    assert (listed["name"], listed["state"]) == ("lab", "does not answer")
    assert "lab runs and cannot be reached" in run_words("status", "--name", "lab")
    assert "running already" in run_words("up", "--name", "lab")
    assert "lab is running: stop it" in run_words("rm", "lab")
    done = CliRunner().invoke(cli.app, ["down", *words])
    assert done.exit_code == 0 and "lab: ended" in done.output
    assert not any(map(start_time, pids)) and claims.holder("lab") is None
    assert json.loads(CliRunner().invoke(cli.app, ["list", "--json"]).output)[0][
        "state"] == "stopped"


def test_a_process_that_has_the_id_of_a_supervisor_that_has_ended_is_left_alone(
        home: Path) -> None:
    instance = Instance("lab")
    with subprocess.Popen(["sleep", "60"]) as other, claims.claimed("lab", "essd up") as file:
        claims.write_holder(file, claims.Holder(other.pid, "essd up", str(instance.folder)))
        try:
            assert not instance.stop() and other.poll() is None
        finally:
            other.kill()


def test_a_supervisor_that_ends_while_it_is_looked_at_is_not_waited_for(
        home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance("lab")
    with subprocess.Popen(["sleep", "60"]) as other, claims.claimed("lab", "essd up") as file:
        claims.write_holder(file, claims.Holder(other.pid, "essd up", str(instance.folder)))

        def end(pid: int, name: str) -> bool:
            other.kill()
            other.wait(60)
            return True
        monkeypatch.setattr(claims, "has_open", end)
        assert instance.stop()


@pytest.mark.parametrize("name", ["demo", "bench"])
def test_an_instance_with_other_data_is_not_ended(
        home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Another data folder has other claims, and the runtime folder is the same."""
    monkeypatch.setattr(setup, "configure", lambda wish: fake_config(home, wish.name))
    make_drive(name)
    instance = Instance(name)
    instance.start(fake_config(home, name))
    try:
        instance.wait_started()
        monkeypatch.setenv("ESSD_DATA", str(home / "other"))
        with pytest.raises(EssdError, match=f"instance {name} is running already"):
            if name == "demo":
                demo.run_demo("drive", keep=False, folder=home / "report")
            else:
                bench.command(native=False, seconds=1, rounds=1, only="", mtu=1500,
                              target="drive", silent=0, nand=None, block=False,
                              output=bench.Output(), timing=bench.Timing())
        assert instance.is_running
    finally:
        instance.stop()


@pytest.mark.parametrize("start", ["api", "bench", "demo", "fork", "mount"])
def test_an_instance_with_other_data_that_starts_meanwhile_is_not_ended(
        home: Path, monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    """It starts while the loser builds, or copies files."""
    started: list[Instance] = []

    def start_other(config: Config) -> Config:
        """What the winner does, before the loser has looked a second time."""
        with monkeypatch.context() as patch:
            patch.setenv("ESSD_DATA", str(home / "other"))
            make_drive(config.name)
            started.append(Instance(config.name))
            started[0].start(fake_config(home, config.name))
            started[0].wait_started()
        return config

    def begin() -> None:
        name = "lab"
        if start == "api":
            system.up(name=name)
        elif start == "fork":
            monkeypatch.setattr(snapshots, "copy", lambda *_: started or start_other(
                fake_config(home, "copy")))
            folder = paths.drives() / "lab/snapshots/before"
            folder.mkdir(parents=True)
            (folder / "snapshot.json").write_text(
                snapshots.describe(fake_config(home, "lab"), "before"))
            snapshots.fork("lab", "before", "copy")
        elif start == "demo":
            demo.run_demo("drive", keep=False, folder=home / "report")
        elif start == "mount":
            mount.command(1, None, bench.Output())
        elif start == "bench":
            bench.command(native=False, seconds=1, rounds=1, only="", mtu=1500,
                          target="drive", silent=0, nand=None, block=False,
                          output=bench.Output(), timing=bench.Timing())

    monkeypatch.setattr(setup, "configure", lambda wish: start_other(
        fake_config(home, wish.name)))
    monkeypatch.setattr(system, "_configure", lambda name, *_: start_other(
        fake_config(home, name)))
    monkeypatch.setattr(mount, "build_initiator", lambda: home)
    try:
        with pytest.raises(EssdError, match="is running already"):
            begin()
        assert started[0].is_running
    finally:
        started[0].stop()


def test_two_starts_of_one_name_with_other_data_do_not_wait(
        home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_drive("lab")
    with paths.locked(paths.runtime() / ".lab.lock"), \
            pytest.raises(EssdError, match="another essd command is starting an instance lab"):
        Instance("lab").start(fake_config(home, "lab"))


def test_a_start_that_is_interrupted_leaves_no_supervisor(
        home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt comes before subprocess.Popen() has returned."""
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def interrupted(*words: Any, **options: Any) -> None:
        started.append(popen(*words, **options))
        raise KeyboardInterrupt

    make_drive("lab")
    instance = Instance("lab")
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", interrupted)
        with pytest.raises(KeyboardInterrupt):
            instance.start(fake_config(home, "lab"), bound=True)
    try:
        instance.stop()
        started[0].wait(30)
    finally:
        started[0].kill()
    assert claims.holder("lab") is None


def test_a_drive_holds_the_claim_until_its_process_has_ended(lab: Instance) -> None:
    """Even if its supervisor was killed."""
    state = json.loads((lab.folder / "state.json").read_text())
    supervisor, drive = (entry["pid"] for entry in state)
    os.kill(drive, signal.SIGSTOP)      # SIGKILL, which follows, is all that ends it.
    assert "/.lab.lock" in " ".join(
        os.readlink(path) for path in Path(f"/proc/{drive}/fd").iterdir())
    os.kill(supervisor, signal.SIGKILL)
    deadline = time.monotonic() + 60
    # The first thread of a process that was killed may have ended before another one,
    # which has the same files.
    while start_time(supervisor) or start_time(drive) or claims.holder("lab"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with claims.claimed("lab", "essd up"):
        pass


def test_an_instance_of_a_version_without_claims_is_refused_and_stops(
        lab: Instance, home: Path) -> None:
    claims.lock_file("lab").unlink()        # Nobody finds the lock of this one any more.
    with pytest.raises(EssdError, match="instance lab is running already"):
        Instance("lab").start(fake_config(home, "lab"))
    assert "lab is running: stop it" in run_words("rm", "lab", "--yes")
    assert Instance("lab").stop()
    assert not lab.is_running


# Writers of a drive that is off

def test_a_drive_that_is_off_is_not_powered_on_while_it_is_written(lab: Instance) -> None:
    lab.ask("power-cut", part="drive")
    with lab.writable("essd config"):
        with pytest.raises(EssdError, match="another essd command writes the flash of the "
                           "drive now: wait until it has ended"):
            lab.ask("power-on", part="drive")
        with pytest.raises(EssdError, match="another command writes the files of the drive"), \
                Instance("lab").writable("essd firmware update"):
            raise AssertionError
    lab.ask("power-on", part="drive")
    with pytest.raises(EssdError, match="the drive is powered: stop it with"), \
            lab.writable("essd config"):
        raise AssertionError


SAVES = """
def answer(command, told):
    if command == "migrate":
        open(told["uri"].removeprefix("file:"), "w").close()
    return {"status": "completed"} if command == "query-migrate" else {}
"""


def test_the_files_of_a_drive_whose_state_is_saved_are_not_changed(home: Path) -> None:
    make_drive("lab")
    make_fake(home / "qemu", SAVES)
    instance = Instance("lab")
    instance.start(fake_config(home, "lab"))
    try:
        instance.wait_started()
        instance.ask("save", part="drive")
        with pytest.raises(EssdError, match="the state of the drive is saved: resume it with "
                           "./essd load --name lab, or"), instance.writable("essd media age"):
            raise AssertionError
        instance.ask("power-on", part="drive")
        instance.ask("power-cut", part="drive")
        with instance.writable("essd media age"):
            pass
    finally:
        instance.stop()


def test_changes_keep_what_another_command_has_changed_meanwhile(home: Path) -> None:
    make_drive("lab")
    instance = Instance("lab")
    first, second = (settings_cmd.wanted(settings_cmd.read(instance), None, [word])
                     for word in ("echo=on", "mdns=on"))
    for whole in (first, second):
        settings_cmd.write(instance, settings.changed(settings.DEFAULTS, whole))
    assert settings_cmd.read(instance) == settings.DEFAULTS | {"echo": "on", "mdns": "on"}


def test_changes_that_do_not_go_with_the_values_of_now_are_refused(home: Path) -> None:
    make_drive("lab")
    instance = Instance("lab")
    settings_cmd.write(instance, {"port.0.ipv4": "10.0.0.9/24"})
    with pytest.raises(EssdError, match="port.0.ipv4"):
        settings_cmd.write(instance, {"address.1.port": "0", "address.1.ip": "10.0.0.9/24"})


def test_a_fork_to_a_name_that_is_being_made_leaves_its_files_alone(home: Path) -> None:
    folder = paths.drives() / "lab/snapshots/before"
    folder.mkdir(parents=True)
    (folder / "snapshot.json").write_text(
        snapshots.describe(fake_config(home, "lab"), "before"))
    with claimed_elsewhere("copy"):
        there = make_drive("copy")
        with pytest.raises(claims.ClaimedError, match="essd test .* uses the drive copy now"):
            snapshots.fork("lab", "before", "copy")
    assert (there / "media.raw").read_bytes() == b"data"


def test_nobody_writes_a_drive_whose_instance_is_starting(
        home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor answers already, and the drive is off until its turn comes."""
    supervisor = Supervisor(home, fake_config(home, "lab"))
    refused: list[str] = []

    async def start_part(name: str, *_: str) -> None:
        with contextlib.suppress(EssdError), paths.locked_or("", flash_lock(home, name)):
            return
        refused.append(name)

    monkeypatch.setattr(supervisor, "start_part", start_part)
    asyncio.run(supervisor.start_parts())
    assert refused == ["drive"]


# Settings of a drive that runs

class Firmware:
    """Answers the requests about settings as the firmware does, with one set of changes."""

    def __init__(self) -> None:
        self.saved: dict[str, object] = {}
        self.changes: dict[str, object] = {}
        self.refused = ""       # a key that is not taken

    async def ask(self, request: str, arguments: dict[str, object],
                  timeout_s: float) -> dict[str, object]:
        await asyncio.sleep(0)
        if request == "config-discard":
            self.changes = {}
        elif request == "config-set":
            if arguments["key"] == self.refused:
                raise EssdError(f"the drive refuses {self.refused}")
            self.changes[str(arguments["key"])] = arguments["value"]
        elif request == "config-save":
            self.saved |= self.changes
            self.changes = {}
        return {"later": sorted(self.saved)}


@pytest.fixture
def firmware(home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Firmware, Supervisor]:
    supervisor = Supervisor(home, fake_config(home, "lab"))
    supervisor.parts["drive"].state = "running"
    firmware = Firmware()
    monkeypatch.setattr(supervisor.messages["drive"], "ask", firmware.ask)
    return firmware, supervisor


def test_changes_of_several_commands_at_once_are_all_saved(
        firmware: tuple[Firmware, Supervisor]) -> None:
    there, supervisor = firmware

    async def change_all() -> None:
        await asyncio.gather(*(supervisor.command(
            {"command": "configure", "changes": {f"a{n}": n, f"b{n}": n}}) for n in range(6)))

    asyncio.run(change_all())
    assert there.saved == {f"{key}{n}": n for n in range(6) for key in "ab"}


def test_a_refused_change_saves_nothing_and_leaves_nothing_behind(
        firmware: tuple[Firmware, Supervisor]) -> None:
    there, supervisor = firmware
    there.refused = "wrong"
    with pytest.raises(EssdError, match="refuses wrong"):
        asyncio.run(supervisor.command({
            "command": "configure", "changes": {"echo": "on", "wrong": "1"}}))
    assert there.saved == {} and there.changes == {}
    asyncio.run(supervisor.command({"command": "configure", "changes": {"mdns": True}}))
    assert there.saved == {"mdns": True}
