# SPDX-License-Identifier: BSD-2-Clause
"""Named snapshots with the real supervisor, and scripts instead of two drives' QEMU."""

import contextlib
import json
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fake_qemu import make_fake
from test_json import check

from essd.base import chosen, claims, disk_swap, paths
from essd.base.errors import EssdError
from essd.drive import modules
from essd.instance.config import (STREAM, VHOST_USER, Config, Drive, End, Host, Link, Nand, Switch,
                                  flash_lock)
from essd.instance.instance import Instance
from essd.setup import setup
from essd.storage import nand, snapshots
from essd.supervisor import snapshot_keeper
from essd.supervisor.supervisor import Supervisor

# It writes "state of NAME" when it migrates, and what it loads to its log.
ANSWERS = """
import fcntl
import os
import time
status = "inmigrate" if "-incoming" in sys.argv else "running"
order = open(f"{folder}/order", "a")
def answer(command, told):
    global status
    if command in ("stop", "cont", "migrate", "migrate-incoming"):
        order.write(f"{command} {name}\\n")
        order.flush()
    if command == "stop":
        status = "paused"
    elif command == "cont":
        status = "running"
    elif command == "migrate":
        os.write(files.pop(), f"state of {name}".encode())
    elif command == "query-migrate":
        if os.path.exists(f"{folder}/slow-{name}"):
            return {"status": "active"}
        if os.path.exists(f"{folder}/fail-{name}"):
            return {"status": "failed", "error-desc": "No space left on device"}
        return {"status": "completed"}
    elif command == "migrate-incoming" and os.path.exists(f"{folder}/end-{name}"):
        sys.exit(1)
    elif command == "migrate-incoming":
        if os.path.exists(f"{folder}/locks"):
            with open(f"{folder}/essd/unit/{name}/flash.lock") as lock, \\
                    open(f"{folder}/locks", "a") as found:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    found.write(f"{name} free\\n")
                except BlockingIOError:
                    found.write(f"{name} held\\n")
        if os.path.exists(f"{folder}/kill-{name}"):
            os.kill(os.getppid(), 9)
        while os.path.exists(f"{folder}/wait-{name}"):
            open(f"{folder}/waits-{name}", "w").close()
            time.sleep(0.01)
        print("loaded:", os.read(files.pop(), 1000).decode(), flush=True)
        status = "paused"
    elif command == "query-status":
        return {"status": status}
    elif command == "qom-get" and told["path"] == "/machine/module1":
        return told["property"] != "present" and 71000      # as in the loaded state
    return {}
"""


FILES = ("flash.img", "media.raw", "nand.img")      # of each drive


class Lab:
    def __init__(self, folder: Path, *ends: End) -> None:
        self.folder = folder
        fake = make_fake(folder / "qemu", ANSWERS, folder=str(folder))
        drives = {}
        for name in ("drive0", "drive1"):
            place = paths.drive("unit", name)
            place.mkdir(parents=True)
            (place / "flash.img").write_text(f"flash of {name}")
            (place / "media.raw").write_text(f"media of {name}")
            (place / "nand.img").write_text(f"array of {name}")
            drives[name] = Drive(str(fake), str(place / "flash.img"),
                                 str(place / "media.raw"), "raw", "nqn", nand=Nand(
                                     str(place / "nand.img"), "8G", "tlc2021", 4, 2, 1))
        self.instance = Instance("unit")
        self.instance.start(Config(
            "unit", "", "tcg", [Link(0, ["10.0.0.10/24"], ends=[
                *(ends or [End("drive0", 0)]), End("drive1", 0)])], drives=drives))
        self.instance.wait_started()

    def file(self, part: str, name: str) -> Path:
        return paths.drive("unit", part) / name

    def order(self) -> list[str]:
        """What the machines were told since the last call."""
        file = self.folder / "order"
        lines = file.read_text().splitlines()
        file.write_text("")
        return lines

    def running(self) -> bool:
        return all(self.instance.ask("qmp", part=part, execute="query-status")["status"]
                   == "running" for part in ("drive0", "drive1"))

    def hidden(self) -> list[Path]:
        return list((paths.drives() / "unit").rglob(".*"))


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "data"))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.instance.stop()
    Instance("copy").stop()


def test_all_machines_are_stopped_before_any_is_saved_and_run_on(lab: Lab) -> None:
    lab.order()
    lab.instance.ask("save-all", name="one")
    order = lab.order()
    assert {line.split()[0] for line in order[:2]} == {"stop"}
    assert order[2:] == ["migrate drive0", "migrate drive1", "cont drive0", "cont drive1"]
    (entry,) = snapshots.list_all("unit")
    check("snapshots", [entry])
    assert entry["name"] == "one" and entry["parts"] == ["drive0", "drive1"]
    folder = snapshots.folder("unit", "one")
    assert (folder / "drive1.state").read_text() == "state of drive1"
    assert (folder / "drive1.media").read_text() == "media of drive1"
    assert (folder / "drive1.nand").read_text() == "array of drive1"
    assert lab.running() and lab.hidden() == []
    with pytest.raises(EssdError, match="there is a snapshot one already"):
        lab.instance.ask("save-all", name="one")


@pytest.mark.parametrize("kind, first", [(STREAM, "h"), (VHOST_USER, "d")])
def test_a_host_whose_memory_is_a_cable_is_loaded_after_the_drive(
        tmp_path: Path, kind: str, first: str) -> None:
    """Its QEMU does nothing before the drive listens."""
    config = Config("unit", "", "tcg", [Link(0, [], ends=[End("d", 0), End("h", 0)], kind=kind)],
                    {"d": Drive("", "", "", "raw", "nqn")}, {"h": Host()},
                    switches={"s": Switch("")})
    assert snapshot_keeper.machines(Supervisor(tmp_path, config))[0].name == first


def test_a_drive_keeps_the_modules_of_the_snapshot_that_it_has_loaded(lab: Lab) -> None:
    modules.change(Instance("unit", "drive0"), 1, {"present": True, "bias": 7000})
    lab.instance.ask("save-all", name="one")
    lab.instance.ask("load-all", name="one")
    lab.instance.ask("power-cut", part="drive0")
    lab.instance.ask("power-on", part="drive0")
    log = lab.instance.folder / "drive0/process.log"
    started = [line for line in log.read_text().splitlines()
               if line.startswith("$ ")][-1]
    assert re.findall(r"-global essd-module(\S+)", started) == [
        "1.present=off", "1.bias=71000", "1.temperature=71000", "1.voltage=71000",
        "1.tx-power=71000", "1.rx-power=71000"]



def test_a_failure_leaves_the_system_as_it_was_and_no_snapshot(lab: Lab) -> None:
    (lab.folder / "fail-drive1").touch()
    with pytest.raises(EssdError, match="drive1 could not be written: No space left"):
        lab.instance.ask("save-all", name="one")
    assert lab.running() and lab.hidden() == []
    assert snapshots.list_all("unit") == []


def test_what_a_killed_supervisor_left_is_not_listed_and_is_removed(lab: Lab) -> None:
    half = snapshots.folder("unit", "x").with_name(".x")
    half.mkdir(parents=True)
    (half / snapshots.FACTS).write_text("{}")
    assert snapshots.list_all("unit") == []
    lab.instance.ask("save-all", name="y")
    assert not half.exists()


def test_loading_restores_states_and_disks(lab: Lab) -> None:
    lab.instance.ask("save-all", name="one")
    lab.file("drive0", "media.raw").write_text("changed")
    lab.instance.ask("load-all", name="one")
    assert lab.file("drive0", "media.raw").read_text() == "media of drive0"
    assert lab.running() and lab.hidden() == []
    assert "loaded: state of drive0" in (lab.instance.folder / "drive0/process.log").read_text()


def contents(lab: Lab) -> set[str]:
    """Whether the drives' files are as saved, as changed later, or a mixture."""
    return {word for name in ("drive0", "drive1") for file in FILES
            for word in [lab.file(name, file).read_text().split()[0]]}


def saved_and_changed(lab: Lab) -> None:
    for name in ("drive0", "drive1"):
        for file in FILES:
            lab.file(name, file).write_text("saved")
    lab.instance.ask("save-all", name="one")
    for name in ("drive0", "drive1"):
        for file in FILES:
            lab.file(name, file).write_text("changed")


def test_a_load_that_fails_with_the_last_machine_changes_no_file(lab: Lab) -> None:
    saved_and_changed(lab)
    (lab.folder / "end-drive1").touch()
    with pytest.raises(EssdError, match="drive1 (could|ended).*; all machines are off, and "
                                        "the drives have the data from before the load"):
        lab.instance.ask("load-all", name="one")
    assert contents(lab) == {"changed"} and lab.hidden() == []
    parts = lab.instance.status()["parts"]
    assert {part["state"] for part in parts.values()} == {"off"}
    # The same load succeeds when its cause of failure is gone.
    (lab.folder / "end-drive1").unlink()
    lab.instance.ask("load-all", name="one")
    assert contents(lab) == {"saved"} and lab.hidden() == [] and lab.running()


def test_a_load_during_which_the_supervisor_is_killed_changes_no_file(lab: Lab) -> None:
    saved_and_changed(lab)
    (lab.folder / "kill-drive1").touch()
    with pytest.raises(EssdError, match="the supervisor of unit ended|nothing is running"):
        lab.instance.ask("load-all", name="one")
    # The last of its threads may end after its connection.
    journal = paths.drives() / "unit" / disk_swap.JOURNAL
    deadline = time.monotonic() + 60
    while paths.is_locked(journal) or claims.holder("unit"):
        assert time.monotonic() < deadline, "the supervisor runs on"
        time.sleep(0.01)
    assert contents(lab) == {"saved"}
    with ThreadPoolExecutor(1) as pool, claims.claimed("unit", "essd rm"):
        pool.submit(setup.flash_path, "unit", "drive0").result(60)
        assert contents(lab) == {"saved"}   # Another command has the drive.
    setup.flash_path("unit", "drive0")      # as the next `up` does
    assert contents(lab) == {"changed"} and lab.hidden() == []


def test_a_load_goes_on_when_the_tool_that_asked_for_it_is_killed(lab: Lab) -> None:
    saved_and_changed(lab)
    with socket.socket(socket.AF_UNIX) as tool:
        tool.connect(str(lab.instance.folder / "control.sock"))
        tool.sendall(b'{"command": "load-all", "name": "one"}\n')
    log = lab.instance.folder / "supervisor.log"
    deadline = time.monotonic() + 60
    while "snapshot one loaded" not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    assert contents(lab) == {"saved"} and lab.hidden() == [] and lab.running()


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("ends_by", [Killed, OSError])
def test_files_are_all_old_or_all_new_whichever_step_is_the_last(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_by: type) -> None:
    files = [tmp_path / "flash.img", tmp_path / "media.raw", tmp_path / "other" / "media"]
    files[2].parent.mkdir()
    replace, unlink, steps = Path.replace, Path.unlink, [0]

    def step(action: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*words: Any, **more: Any) -> Any:
            steps[0] -= 1
            if steps[0] == 0:
                raise ends_by
            if steps[0] < 0 and ends_by is Killed and steps[0] > -1000:
                raise Killed        # Nothing more happens after the end.
            return action(*words, **more)
        return counted

    monkeypatch.setattr(Path, "replace", step(replace))
    monkeypatch.setattr(Path, "unlink", step(unlink))
    ends = set()
    for last in range(1, 100):
        steps[0] = 10000
        for file in files:
            file.write_text("old")
        try:
            with disk_swap.Swap(tmp_path, files) as swap:
                for file in files:
                    disk_swap.fresh_of(file).write_text("new")
                steps[0] = last
                swap.swap()
                swap.keep()
            is_over = steps[0] > 0
        except ends_by:
            is_over = False
        steps[0] = 10000
        if swap.lock is not None:
            swap.lock.close()
        disk_swap.recover(tmp_path)
        found = {file.read_text() for file in files}
        assert len(found) == 1, (last, found)
        ends |= found
        if is_over:
            break
    assert ends == {"old", "new"} and last > 8


def test_files_that_are_being_replaced_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "flash.img"
    file.write_text("old")
    with disk_swap.Swap(tmp_path, [file]) as swap:
        disk_swap.fresh_of(file).write_text("new")
        swap.swap()
        disk_swap.recover(tmp_path)
        assert file.read_text() == "new"
    assert file.read_text() == "old"


def test_a_snapshot_of_something_else_is_refused_and_nothing_ends(lab: Lab) -> None:
    lab.instance.ask("save-all", name="one")
    file = snapshots.folder("unit", "one") / snapshots.FACTS
    facts = json.loads(file.read_text())
    facts["belongs_to"]["accelerator"] = "kvm"
    file.write_text(json.dumps(facts))
    pids = [part["pid"] for part in lab.instance.status()["parts"].values()]
    with pytest.raises(EssdError, match="belongs to another accelerator: kvm, not tcg"):
        lab.instance.ask("load-all", name="one")
    with pytest.raises(EssdError, match="there is no snapshot two; there are: one"):
        lab.instance.ask("load-all", name="two")
    with pytest.raises(EssdError, match="has up to 64 letters"):
        lab.instance.ask("save-all", name="../x")
    assert pids == [part["pid"] for part in lab.instance.status()["parts"].values()]


def test_a_drive_that_is_off_is_refused(lab: Lab) -> None:
    lab.instance.ask("power-cut", part="drive1")
    with pytest.raises(EssdError, match="drive1 is not running"):
        lab.instance.ask("save-all", name="one")
    assert snapshots.list_all("unit") == []


def test_a_power_cut_waits_until_a_snapshot_is_saved(lab: Lab) -> None:
    slow = lab.folder / "slow-drive1"
    slow.touch()
    with ThreadPoolExecutor(2) as pool:
        saving = pool.submit(lab.instance.ask, "save-all", name="one")
        deadline = time.monotonic() + 60
        while lab.running():
            assert time.monotonic() < deadline, "the machines were not stopped"
        cutting = pool.submit(lab.instance.ask, "power-cut", part="drive0")
        time.sleep(0.3)
        assert not saving.done() and not cutting.done()
        slow.unlink()
        assert saving.result(60)["name"] == "one"
        cutting.result(60)
    assert lab.instance.status()["parts"]["drive0"]["state"] == "off"


def test_a_drive_is_neither_saved_nor_started_while_its_flash_is_written(lab: Lab) -> None:
    lab.instance.ask("save-all", name="one")
    requests = ({"command": "save-all", "name": "two"}, {"command": "load-all", "name": "one"},
                {"command": "save", "part": "drive1"},
                {"command": "power-on", "part": "drive1"})
    with paths.locked(flash_lock(lab.instance.folder, "drive1")):
        for request in requests:
            if request["command"] == "power-on":
                lab.instance.ask("power-cut", part="drive1")
            with pytest.raises(EssdError, match="another essd command writes the flash of "
                               "drive1 now"):
                lab.instance.ask(**request)
        lab.instance.ask("power-on", part="drive1", flashing=True)
    lab.instance.ask("power-cut", part="drive1")
    lab.instance.ask("power-on", part="drive1")


def test_nobody_writes_a_drive_while_a_snapshot_is_loaded(lab: Lab) -> None:
    """Its machines are off for a moment, and their files are replaced."""
    lab.instance.ask("save-all", name="one")
    (lab.folder / "locks").touch()
    lab.instance.ask("load-all", name="one")
    assert (lab.folder / "locks").read_text() == "drive0 held\ndrive1 held\n"
    with paths.locked_or("held", flash_lock(lab.instance.folder, "drive0")):
        pass


def test_machines_outside_are_refused(tmp_path: Path) -> None:
    lab = Lab(tmp_path, End(outside=f"listen={tmp_path}/x.sock"))
    try:
        with pytest.raises(EssdError, match="a machine outside cannot be saved"):
            lab.instance.ask("save-all", name="one")
        assert lab.running()
    finally:
        lab.instance.stop()


def test_a_fork_of_a_snapshot_that_is_replaced_meanwhile_fails(
        lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = snapshots.copy

    def replace_after(source: Path, target: Path) -> None:
        copy(source, target)
        monkeypatch.setattr(snapshots, "copy", copy)
        snapshots.remove("unit", "one")
        lab.instance.ask("save-all", name="one")

    lab.instance.ask("save-all", name="one")
    monkeypatch.setattr(snapshots, "copy", replace_after)
    with pytest.raises(EssdError, match="the snapshot one was replaced by another one"):
        snapshots.fork("unit", "one", "copy")
    assert not (paths.drives() / "copy").exists() and not Instance("copy").is_running
    snapshots.fork("unit", "one", "copy")


def test_a_fork_has_files_of_its_own(lab: Lab) -> None:
    lab.instance.ask("save-all", name="one")
    copy = snapshots.fork("unit", "one", "copy")
    paths.drive("copy", "drive0").joinpath("media.raw").write_text("forked")
    assert lab.file("drive0", "media.raw").read_text() == "media of drive0"
    array = paths.drive("copy", "drive1") / nand.FILE
    assert array.read_text() == "array of drive1"
    assert nand.recorded(array) == copy.config.drives["drive1"].nand
    assert "loaded: state of drive1" in (copy.folder / "drive1/process.log").read_text()
    with pytest.raises(EssdError, match="there is an instance copy already"):
        snapshots.fork("unit", "one", "copy")


def test_a_fork_whose_sockets_would_have_too_long_paths_is_refused(lab: Lab) -> None:
    lab.instance.ask("save-all", name="one")
    most = chosen.SOCKET_MAX - len(f"{paths.instance('')}/drive/{chosen.LONGEST_SOCKET}") - 1
    new = "n" * most            # check_name() takes it, and drive0 is longer than drive.
    with pytest.raises(EssdError, match=f"--name {new}: the path .* choose a shorter --name"):
        snapshots.fork("unit", "one", new)
    assert not (paths.drives() / new).exists()


def test_a_fork_writes_no_secrets(lab: Lab, tmp_path: Path) -> None:
    config = lab.instance.config
    lab.instance.stop()
    config.capture_keys = str(tmp_path / "keys")
    lab.instance.start(config)
    lab.instance.wait_started()
    lab.instance.ask("save-all", name="one")
    assert snapshots.fork("unit", "one", "copy").config.capture_keys == ""


def test_of_two_forks_to_one_name_at_once_one_runs_and_keeps_its_files(
        lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.instance.ask("save-all", name="one")
    both = threading.Barrier(2)
    read = snapshots.read

    def read_together(of: Path) -> snapshots.Facts:
        """Let both forks pass everything that they look at before they claim the name."""
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(10)
        both.abort()
        return read(of)

    def fork(_: int) -> str:
        try:
            return snapshots.fork("unit", "one", "copy").name
        except EssdError as error:
            return str(error)

    monkeypatch.setattr(snapshots, "read", read_together)
    with ThreadPoolExecutor(2) as pool:
        said = sorted(pool.map(fork, range(2)), key=len)
    assert said[0] == "copy"
    assert re.search("essd fork .* uses the drive copy now|copy is running already|"
                     "there is an instance copy already", said[1])
    copy = Instance("copy")
    assert {part["state"] for part in copy.status()["parts"].values()} == {"running"}
    for name in ("drive0", "drive1"):
        assert (paths.drive("copy", name) / "media.raw").read_text() == f"media of {name}"


def test_a_snapshot_that_is_loaded_is_not_removed(lab: Lab) -> None:
    saved_and_changed(lab)
    (lab.folder / "wait-drive1").touch()        # The load waits for this drive.
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(lab.instance.ask, "load-all", name="one")
        deadline = time.monotonic() + 60
        while not (lab.folder / "waits-drive1").exists():
            assert time.monotonic() < deadline and not load.done()
            time.sleep(0.01)
        with pytest.raises(EssdError, match="another essd command uses the snapshot one now"):
            snapshots.remove("unit", "one")
        (lab.folder / "wait-drive1").unlink()
        load.result(60)
    assert contents(lab) == {"saved"}
    snapshots.remove("unit", "one")
    assert snapshots.list_all("unit") == [] and lab.hidden() == []


def test_removals_that_were_interrupted_hinder_nobody(
        lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        lab.instance.ask("save-all", name="one")
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", interrupt)
            with pytest.raises(KeyboardInterrupt):
                snapshots.remove("unit", "one")
        assert snapshots.list_all("unit") == [] and lab.hidden() != []
    lab.instance.ask("save-all", name="one")
    assert lab.hidden() == []
    snapshots.remove("unit", "one")
    assert snapshots.list_all("unit") == [] and lab.hidden() == []


def test_a_save_leaves_a_removal_alone(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    rmtree = shutil.rmtree

    def save_first(path: Path) -> None:
        lab.instance.ask("save-all", name="two")
        assert path.is_dir()
        rmtree(path)

    lab.instance.ask("save-all", name="one")
    monkeypatch.setattr(shutil, "rmtree", save_first)
    snapshots.remove("unit", "one")
    assert [entry["name"] for entry in snapshots.list_all("unit")] == ["two"]
    assert lab.hidden() == []


def test_a_snapshot_is_removed(lab: Lab) -> None:
    lab.instance.ask("save-all", name="one")
    snapshots.remove("unit", "one")
    assert snapshots.list_all("unit") == [] and lab.hidden() == []
    with pytest.raises(EssdError, match="there is no snapshot one"):
        snapshots.remove("unit", "one")
