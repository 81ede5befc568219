# SPDX-License-Identifier: BSD-2-Clause
"""Strap pins: what a user writes, and what QEMU gets."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import essd
from essd import cli
from essd.base import persisted
from essd.base.errors import EssdError, Mistakes
from essd.instance.config import Config, Drive
from essd.machine import straps
from essd.machine.drive import drive_command
from essd.setup import setup
from essd.setup.setup import Wish
from essd.storage import snapshots
from essd.topology import reader as topology_yaml, setup as topology_setup, topology

DRIVE = Drive("q", "/flash", "/media", "raw", "nqn.x")


def config_with(level: int) -> Config:
    return Config("x", "", "tcg", [], {"drive": replace(DRIVE, straps=level)})


@pytest.mark.parametrize(("text", "level"), [
    ("0", 1), ("5,6", 0x60), ("7, 7", 0x80), ("0,1,2,3,4,5,6,7", 0xff)])
def test_the_pins_that_are_high_are_named(text: str, level: int) -> None:
    assert straps.level(straps.parse(text)) == level


@pytest.mark.parametrize(("text", "why"), [
    ("8", "no strap pin 8: the pins are 0 to 7"), ("0x30", "'0x30' names no strap pins"),
    ("", "'' names no strap pins"), ("5,", "'5,' names no"), ("-1", "such as 5,6"),
    ("²", "such as 5,6")])
def test_what_is_no_pin_is_refused(text: str, why: str) -> None:
    with pytest.raises(EssdError, match=why):
        straps.parse(text)


def test_a_drive_gets_its_straps_as_a_number(tmp_path: Path) -> None:
    def machine(level: int) -> list[str]:
        words = drive_command(config_with(level), tmp_path)
        return [word for word in words[words.index("-M") + 1].split(",") if "straps" in word]

    assert machine(0x60) == ["straps=96"]
    assert machine(0) == []


def test_a_snapshot_belongs_to_a_drive_with_the_same_straps() -> None:
    assert snapshots.shape(config_with(1)) != snapshots.shape(config_with(2))
    assert "straps" not in snapshots.shape(config_with(0))["drives"]["drive"]
    old = asdict(config_with(0))
    del old["drives"]["drive"]["straps"]
    assert persisted.fill(Config, old) == config_with(0)


def test_each_drive_of_a_topology_has_its_straps() -> None:
    text = ("drives:\n  a: {straps: \"5,6\"}\n  b: {straps: 3}\n  c: {}\n"
            "hosts:\n  h: {}\ncables:\n" + "".join(f"  - h - {name}:0\n" for name in "abc"))
    found = topology_setup.wishes(topology_yaml.load(text, "t.yaml", Path.cwd()), "x")
    assert {name: list(wish.straps) for name, wish in found.items()} == {
        "a": [5, 6], "b": [3], "c": []}
    with pytest.raises(Mistakes, match="1:22: a drive: there is no strap pin 9"):
        topology_yaml.load("drives: {a: {straps: 9}}\n", "t.yaml", Path.cwd())


def test_all_drives_of_an_option_have_the_same_straps() -> None:
    text = topology.of_drives(2, None, None, 1, 1, straps=[4, 0])
    found = topology_yaml.load(text, "t.yaml", Path.cwd())
    assert [drive.straps for drive in found.drives.values()] == [[4, 0]] * 2


def test_straps_are_refused_where_they_have_no_effect() -> None:
    with pytest.raises(EssdError, match="--straps is for a drive, not for --target nvmet"):
        setup.configure(Wish(name="x", target="nvmet", straps=[3]))
    with pytest.raises(EssdError, match="write them into x.yaml"):
        essd.up(topology="x.yaml", straps=[3])
    done = CliRunner().invoke(cli.app, ["up", "--topology", "x.yaml", "--straps", "3"])
    assert "--straps" in str(done.exception) and "x.yaml" in str(done.exception)
    done = CliRunner().invoke(cli.app, ["up", "--straps", "8"])
    assert "there is no strap pin 8" in str(done.exception)


def test_up_asks_for_a_drive_with_these_straps(tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Wish] = []

    def configure(wish: Wish) -> Config:
        asked.append(wish)
        raise EssdError("this is far enough")

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(setup, "configure", configure)
    CliRunner().invoke(cli.app, ["up", "--straps", "5,6"])
    CliRunner().invoke(cli.app, ["up"])
    with pytest.raises(EssdError, match="this is far enough"):
        essd.up(straps=[2])
    assert [list(wish.straps) for wish in asked] == [[5, 6], [], [2]]
