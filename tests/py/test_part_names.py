# SPDX-License-Identifier: BSD-2-Clause
"""Names of parts: no name makes two things share a file, a socket or a folder."""

import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_qemu import make_fake
from test_supervisor_fleet import FAKE_SWITCH

from essd.base import chosen, paths
from essd.base.errors import EssdError
from essd.instance.config import Config, Drive, End, Link, Switch
from essd.instance.instance import Instance
from essd.setup import setup
from essd.storage import snapshots
from essd.topology import reader as topology_yaml, setup as topology_setup

ANSWERS = """
def answer(command, told):
    if command == "system_reset":
        print("reset", flush=True)
    return {}
"""
# Each of them once took a file that belonged to another part or to the instance.
NAMES = ("drive", "drive-user", "snapshots", "drives", "supervisor", "ssh", "port0")


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "data"))


def start(folder: Path, drives: tuple[str, ...], switch: str) -> Instance:
    fake = make_fake(folder / "qemu", ANSWERS)
    program = folder / "switch"
    program.write_text(FAKE_SWITCH.format(python=sys.executable))
    program.chmod(0o755)
    instance = Instance("unit")
    instance.start(Config(
        "unit", "", "tcg",
        [Link(n, [f"10.0.0.{10 + n}/24"], ends=[End(switch, n), End(drive, 0)])
         for n, drive in enumerate(drives)],
        {name: Drive(str(fake), "flash", "media", "raw", f"nqn.{name}") for name in drives},
        switches={switch: Switch(str(program))}))
    instance.wait_started()
    return instance


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Instance]:
    instance = start(tmp_path, NAMES, "control")
    yield instance
    instance.stop()


def test_a_command_reaches_the_drive_that_it_names(lab: Instance) -> None:
    for name in NAMES:
        lab.ask("reset", part=name)
    for name in NAMES:
        assert lab.of(name).file("process.log").read_text().splitlines()[1:] == ["reset"], name


def test_no_two_options_of_the_parts_name_the_same_file(lab: Instance) -> None:
    found = []
    for name in lab.config.parts():
        command = lab.of(name).file("process.log").read_text().splitlines()[0]
        found += [text for word in command.split() for text in word.split(",")
                  if str(lab.folder) in text and not text.startswith("addr.path=")]
    files = [text.partition("=")[2] for text in found if text.startswith(("path=", "logfile="))]
    assert len(files) == len(set(files)) == 8 * len(NAMES)


def test_a_switch_called_drive_leaves_the_supervisor_its_socket(tmp_path: Path) -> None:
    instance = start(tmp_path, ("drive0",), "drive")
    try:
        assert set(instance.status()["parts"]) == {"drive", "drive0"}
        assert instance.ask("switch", part="drive", request="show") == {}
    finally:
        instance.stop()


def test_no_drive_has_the_folder_of_the_snapshots_or_of_another_drive() -> None:
    folders = [paths.drive("unit", name) for name in NAMES]
    folders.append(snapshots.folder("unit", "one").parent)
    assert len(set(folders)) == len(folders)
    for name in NAMES:
        (paths.drive("unit", name)).mkdir(parents=True, exist_ok=True)
        (paths.drive("unit", name) / "flash.img").touch()
    assert paths.kept_drives("unit") == sorted(NAMES)
    assert chosen.kept() == ["unit"]
    assert snapshots.list_all("unit") == []


def test_a_snapshot_with_the_name_of_the_flash_file_is_no_drive() -> None:
    snapshot = snapshots.folder("unit", "flash.img")
    snapshot.mkdir(parents=True)
    assert paths.kept_drives("unit") == [] and chosen.kept() == []
    assert paths.drive("unit", "snapshots") == paths.drives() / "unit/drives/snapshots"
    (paths.drives() / "unit/flash.img").touch()
    assert paths.kept_drives("unit") == ["drive"] and Instance("unit").drive == "drive"


def test_a_drive_is_found_where_an_older_version_has_put_it() -> None:
    for name in ("drive0", "drives"):
        (paths.drives() / "unit" / name).mkdir(parents=True)
        (paths.drives() / "unit" / name / "flash.img").touch()
    assert paths.drive("unit", "drive0") == setup.data_folder("unit", "drive0") \
        == paths.drives() / "unit/drive0"
    new = paths.drive("unit", "drive1")
    assert new == paths.drives() / "unit/drives/drive1"
    new.mkdir()
    (new / "flash.img").touch()
    assert paths.kept_drives("unit") == ["drive0", "drive1", "drives"]
    assert chosen.kept() == ["unit"]


def test_an_instance_of_an_older_version_can_be_stopped(lab: Instance) -> None:
    text = (lab.folder / "config.json").read_text()
    (lab.folder / "config.json").write_text(text.replace('"version": 2,', ""))
    with pytest.raises(EssdError, match="another version of essd started the instance unit"):
        _ = lab.config
    assert lab.stop()


TOPOLOGY = """
drives: {a-drive-with-a-name0: {block: yes}}
hosts: {host: {}}
cables: ["a-drive-with-a-name0:0 - host"]
"""


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Shorter than tmp_path, whose length depends on earlier runs of the tests."""
    with tempfile.TemporaryDirectory(prefix="e") as folder:
        yield Path(folder)


def test_sockets_whose_paths_are_too_long_are_refused_before_anything_is_made(
        tmp_path: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = chosen.SOCKET_MAX - len("/essd/x/host/" + chosen.SSH_DRAFT)
    base = short_path / ("r" * (room - len(str(short_path)) - 1))
    base.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    chosen.check_sockets("x", ["host"], ["drive"])
    with socket.socket(socket.AF_UNIX) as listener:
        (paths.instance("x") / "host").mkdir(parents=True)
        listener.bind(str(paths.instance("x") / "host" / chosen.SSH_DRAFT))
    for act in (lambda: setup.configure(setup.Wish(name="xy")),
                lambda: topology_setup.configure(
                    topology_yaml.load(TOPOLOGY, "t", tmp_path), "x")):
        with pytest.raises(EssdError, match=r"a socket has 1\d\d characters, and at most 107"):
            act()
    assert not list(paths.drives().glob("[!.]*"))
