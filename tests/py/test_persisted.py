# SPDX-License-Identifier: BSD-2-Clause
"""Files of another version, or that are cut, damaged or missing: one line says so."""

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_claims import make_drive
from typer.testing import CliRunner

from essd import cli
from essd.base import claims, disk_swap, paths, persisted
from essd.base.errors import EssdError
from essd.build.guest_build import Guest
from essd.instance.config import BootKey, Config, Drive, End, Link, Nand, Switch, VERSION
from essd.instance.instance import Instance
from essd.machine import vm
from essd.setup import instances
from essd.storage import boot_key, media, nand, snapshots

ARRAY = Nand("/x/nand.img", "8G", "tlc2021", 4, 2, 1)
CONFIG = Config("lab", "/guest", "tcg",
                [Link(0, ["10.0.0.10/24"], ends=[End("switch", 0), End("drive", 0)])],
                {"drive": Drive("/qemu", "/flash", "/media", "raw", "nqn", nand=ARRAY,
                                boot_key=BootKey(64 * "0", "/key.pem"))},
                switches={"switch": Switch("/switch", words={3: "vlan=2"})})


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for name in ("ESSD_DATA", "ESSD_CACHE"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))


def snapshot(name: str) -> Path:
    folder = snapshots.folder("lab", name)
    folder.mkdir(parents=True)
    (folder / snapshots.FACTS).write_text(snapshots.describe(CONFIG, name))
    return folder


def run(*words: str) -> str:
    done = CliRunner().invoke(cli.app, words)
    return " ".join((done.output + str(done.exception or "")).split())


def changed(text: str, **members: object) -> str:
    """The JSON object with other members; None removes one."""
    data = {**json.loads(text), **members}
    return json.dumps({name: value for name, value in data.items() if value is not None})


def cut(text: str) -> str:
    return text[:len(text) // 2]


DAMAGES: dict[str, tuple[Callable[[str], str], str]] = {
    "cut": (cut, "it is not JSON from line "),
    "empty": (lambda _: "", "it is empty"),
    "a list": (lambda _: "[]", r"the content is \[\], which is no object"),
    "deep": (lambda _: 100000 * "[", "it is n"),
    "another version": (lambda text: changed(text, version=9),
                        "its version is 9, and this essd reads 1"),
    "no version": (lambda text: changed(text, version=None), "its version is null"),
    "one more": (lambda text: changed(text, colour="red"),
                 "the content has an unknown member colour"),
    "one less": (lambda text: changed(text, parts=None), "the content has no member parts"),
    "another type": (lambda text: changed(text, time="noon"),
                     'time is "noon", which is no number'),
    "deep inside": (lambda text: text.replace('"channels": 4', '"channels": true'),
                    r"config.drives.drive.nand.channels is true, which is no whole"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_snapshot_that_cannot_be_used_is_listed_and_removed(damage: str) -> None:
    good, bad = snapshot("good"), snapshot("bad")
    damaged, why = DAMAGES[damage]
    (bad / snapshots.FACTS).write_text(damaged((bad / snapshots.FACTS).read_text()))
    with pytest.raises(EssdError, match=f"{bad}/snapshot.json, the description of a snapshot, "
                       f"cannot be used: {why}.*: ./essd snapshots --name lab --remove bad"):
        snapshots.read(bad)
    assert snapshots.read(good).config == CONFIG
    entries = {entry["name"]: entry["why"] for entry in snapshots.list_all("lab")}
    assert entries["good"] == "" and "cannot be used" in entries["bad"]
    year = time.strftime(" bad %Y-")        # The path in the reason has the name, too.
    assert year in run("snapshots", "--name", "lab")
    with pytest.raises(EssdError, match="cannot be used"):
        snapshots.fork("lab", "bad", "new")
    assert "bad: deleted" in run("snapshots", "--name", "lab", "--remove", "bad")
    assert [entry["name"] for entry in snapshots.list_all("lab")] == ["good"]


def test_a_snapshot_without_a_description_is_removed_too() -> None:
    (snapshot("bad") / snapshots.FACTS).unlink()
    (entry,) = snapshots.list_all("lab")
    assert "the snapshot bad has no file snapshot.json" in entry["why"]
    snapshots.remove("lab", "bad")
    assert snapshots.list_all("lab") == []


def test_a_configuration_survives_json() -> None:
    text = CONFIG.to_json()
    assert Config.from_json(text) == CONFIG and json.loads(text)["version"] == VERSION
    for wrong in (cut(text), "", "[]", changed(text, version=1), changed(text, links=[5]),
                  changed(text, drives={"drive": 5}), changed(text, colour=1)):
        with pytest.raises(persisted.ShapeError):
            Config.from_json(wrong)


# For each file of a drive or an instance: the file, good content, and who reads it.
FILES: dict[str, tuple[Callable[[], Path], Callable[[], str], Callable[[], object]]] = {
    "the record of an array": (
        lambda: media.record_path(paths.drive("lab") / nand.FILE),
        lambda: json.dumps({"format": "nand", **{
            name: value for name, value in dataclasses.asdict(ARRAY).items()
            if name != "path"}}),
        lambda: nand.recorded(paths.drive("lab") / nand.FILE)),
    "the record of a medium": (
        lambda: media.record_path(paths.drive("lab") / "media.raw"),
        lambda: '{"format": "raw"}',
        lambda: media.recorded_format(paths.drive("lab") / "media.raw")),
    "the record of a boot key": (
        lambda: paths.drive("lab") / boot_key.FILE,
        lambda: json.dumps({"public": 64 * "0", "file": "/key.pem"}),
        lambda: boot_key.recorded(paths.drive("lab"))),
    "the list of a load's files": (
        lambda: paths.drive("lab") / disk_swap.JOURNAL, lambda: "[]",
        lambda: disk_swap.recover(paths.drive("lab"))),
}
WRONG: tuple[Callable[[str], str], ...] = (
    cut, lambda _: "", lambda _: "5", lambda _: "null", lambda _: '{"format": 5}', lambda _: "[5]",
    lambda _: '{"public": 5, "file": "x"}', lambda text: text.replace('"size"', '"sizes"'))


@pytest.mark.parametrize("what", FILES)
def test_a_drive_with_a_damaged_file_is_listed_and_removed(what: str) -> None:
    path, content, read = FILES[what]
    for number, wrong in enumerate(WRONG):
        text = wrong(content())
        if text == content():
            continue
        make_drive("lab")
        path().write_text(content())
        read()
        path().write_text(text)
        with pytest.raises(EssdError) as refused:
            read()
        assert str(path()) in str(refused.value) and "\n" not in str(refused.value), number
        assert [entry["name"] for entry in instances.all_facts()] == ["lab"]
        assert instances.remove("lab") > 0


@pytest.mark.parametrize("text", ["", "[", "5", "[5]", "{}", '[{"pid": "x"}]', '[{"pid": 1}]'])
def test_a_damaged_state_file_stops_nobody(text: str) -> None:
    folder = paths.instance("lab")
    folder.mkdir()
    (folder / "state.json").write_text(text)
    assert instances.uptime_s(folder) is None
    assert not Instance("lab").stop()


@pytest.mark.parametrize("text", ["", "[", "5", '{"pid": "x"}', '{"folder": 5}', '{"a": 1}'])
def test_a_damaged_lock_file_names_nobody(text: str) -> None:
    assert claims.read_holder(text) == claims.Holder()


@pytest.mark.parametrize("text", ["", "[]", "5", '{"key": 5}', '{"key": "x", "works": 1}'])
def test_a_damaged_result_of_the_test_of_kvm_is_made_again(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.delenv("ESSD_ACCEL", raising=False)
    monkeypatch.setattr(vm.os, "access", lambda *_: True)
    monkeypatch.setattr(vm, "try_kvm", lambda _guest: True)
    file = paths.cache() / "kvm.json"
    file.write_text(text)
    assert vm.kvm_verdict(Guest(tmp_path))[0]
    assert json.loads(file.read_text())["works"] is True
    monkeypatch.setattr(vm, "try_kvm", lambda _guest: False)
    assert vm.kvm_verdict(Guest(tmp_path))[0]       # It was kept.


@dataclasses.dataclass
class Sample:
    number: int
    share: float = 0.5
    names: list[str] | None = None
    by_port: dict[int, Any] = dataclasses.field(default_factory=dict)


def test_types_are_checked() -> None:
    text = '{"number": 1, "share": 2, "names": ["a"], "by_port": {"3": {"x": 1}}}'
    assert persisted.parse(text, Sample) == Sample(1, 2.0, ["a"], {3: {"x": 1}})
    assert persisted.parse('{"number": 1, "names": null}', Sample) == Sample(1)
    for wrong, why in (('{"number": true}', "number is true, which is no whole number"),
                       ('{"number": 1.5}', "number is 1.5"),
                       ('{"number": 1, "names": [2]}', r"names\[0\] is 2, which is no text"),
                       ('{"number": 1, "by_port": []}', r"by_port is \[\], which is no object"),
                       ('{"number": 1, "by_port": {"x": 1}}', "by_port has a member x")):
        with pytest.raises(persisted.ShapeError, match=why):
            persisted.parse(wrong, Sample)
