# SPDX-License-Identifier: BSD-2-Clause
"""Named snapshots with the real supervisor, and scripts instead of two drives' QEMU."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_qemu import make_fake
from test_json import check

from essd import paths, snapshots
from essd.config import Config, Drive, End, Link
from essd.errors import EssdError
from essd.instance import Instance

# It writes "state of NAME" when it migrates, and what it loads to its log.
ANSWERS = """
import os
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
        if os.path.exists(f"{folder}/fail-{name}"):
            return {"status": "failed", "error-desc": "No space left on device"}
        return {"status": "completed"}
    elif command == "migrate-incoming":
        print("loaded:", os.read(files.pop(), 1000).decode(), flush=True)
        status = "paused"
    elif command == "query-status":
        return {"status": status}
    return {}
"""


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
            drives[name] = Drive(str(fake), str(place / "flash.img"),
                                 str(place / "media.raw"), "raw", "nqn")
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
    assert lab.running() and lab.hidden() == []
    with pytest.raises(EssdError, match="there is a snapshot one already"):
        lab.instance.ask("save-all", name="one")


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
    assert "loaded: state of drive0" in (lab.instance.folder / "drive0.log").read_text()


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


def test_machines_outside_are_refused(tmp_path: Path) -> None:
    lab = Lab(tmp_path, End(outside=f"listen={tmp_path}/x.sock"))
    try:
        with pytest.raises(EssdError, match="a machine outside cannot be saved"):
            lab.instance.ask("save-all", name="one")
        assert lab.running()
    finally:
        lab.instance.stop()


def test_a_fork_has_files_of_its_own(lab: Lab) -> None:
    lab.instance.ask("save-all", name="one")
    copy = snapshots.fork("unit", "one", "copy")
    paths.drive("copy", "drive0").joinpath("media.raw").write_text("forked")
    assert lab.file("drive0", "media.raw").read_text() == "media of drive0"
    assert "loaded: state of drive1" in (copy.folder / "drive1.log").read_text()
    with pytest.raises(EssdError, match="there is an instance copy already"):
        snapshots.fork("unit", "one", "copy")


def test_a_snapshot_is_removed(lab: Lab) -> None:
    lab.instance.ask("save-all", name="one")
    snapshots.remove("unit", "one")
    assert snapshots.list_all("unit") == [] and lab.hidden() == []
    with pytest.raises(EssdError, match="there is no snapshot one"):
        snapshots.remove("unit", "one")
