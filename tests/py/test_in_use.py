# SPDX-License-Identifier: BSD-2-Clause
"""Guests and builds that a running instance uses are not deleted."""

import fcntl
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import IO

import pytest
from holding import holder

from essd.base import chosen, in_use, paths
from essd.build import guest_build, qemu_build
from essd.instance.config import Config, Host, Link
from essd.setup import clean, instances
from essd.supervisor import supervisor

KEYS = [f"{number:016x}" for number in range(5)]


def made(folder: Path, names: list[str]) -> list[Path]:
    """Folders with a file, each older than the one before."""
    found = [folder / name for name in names]
    for age, path in enumerate(found):
        path.mkdir(parents=True)
        (path / "vmlinux").touch()
        os.utime(path, (10**9 - age, 10**9 - age))
    return found


def test_a_guest_that_another_instance_uses_is_kept(tmp_path: Path) -> None:
    guests = made(tmp_path, KEYS)
    (tmp_path / "apt").mkdir()
    with holder(guests[3]):
        guest_build.forget_old(tmp_path, guests[0])
        assert [path for path in guests if path.exists()] == [guests[0], guests[1], guests[3]]
    guest_build.forget_old(tmp_path, guests[0])
    assert [path for path in guests if path.exists()] == guests[:2]
    assert (tmp_path / "apt").exists()      # the package lists of the variants


def test_a_guest_that_was_looked_up_is_not_deleted_before_its_instance_runs(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_use, "_held", {})
    guests = made(tmp_path, KEYS)

    def refuse() -> None:
        raise AssertionError("this guest exists")

    assert guest_build.ensure_built(tmp_path, guests[4], refuse) == guests[4]
    guest_build.forget_old(tmp_path, guests[0])
    assert guests[4].exists() and not guests[3].exists()
    new = tmp_path / "f"
    built: list[Path] = []
    assert guest_build.ensure_built(tmp_path, new, lambda: built.append(new)) == new
    assert built == [new]


def test_the_supervisor_holds_what_its_instance_boots_from(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_use, "_held", {})
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    guests = made(tmp_path / "guests", KEYS)
    folder = paths.runtime() / "lab"
    folder.mkdir()
    config = Config("lab", str(guests[1]), "tcg", [Link(0, ["10.0.0.10/24"])],
                    hosts={"host": Host(), "other": Host(guest=str(guests[2]))})
    (folder / "config.json").write_text(config.to_json())
    monkeypatch.setattr(sys, "argv", ["supervisor", str(folder), "0"])
    monkeypatch.setattr(supervisor.claims, "inherit", lambda claim, folder: None)
    monkeypatch.setattr(supervisor.asyncio, "run", lambda what: what.close())
    supervisor.main()
    assert [path for path in guests if in_use.is_held(path)] == guests[1:3]


def test_a_qemu_that_is_in_use_is_kept_with_its_build(tmp_path: Path) -> None:
    current, older, used = (tmp_path / name for name in ("current", "older", "used"))
    for tree in (current, older, used):
        made(tree / "bin", ["1"])
        (tree / "lock").touch()
    os.utime(used / "bin", (1, 1))
    with holder(used / "bin/1"):
        qemu_build.drop_old_trees(current)
        assert used.exists()
        assert clean.is_used(used, [])
    qemu_build.drop_old_trees(current)
    assert not used.exists() and older.exists()
    assert not clean.is_used(older, [])


def test_a_removal_that_is_interrupted_leaves_nothing_that_counts_as_complete(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guests = made(tmp_path, KEYS)
    monkeypatch.setattr(in_use, "_held", {})

    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", interrupted)
        in_use.delete(guests[4])
    assert not guests[4].exists() and not in_use.hold(guests[4])
    (left,) = tmp_path.glob(".deleted-*")
    assert (left / "vmlinux").exists()
    guest_build.forget_old(tmp_path, guests[0])
    assert not list(tmp_path.glob(".deleted-*"))
    assert guests[0].exists()


def test_what_another_process_is_deleting_is_left_to_it(tmp_path: Path) -> None:
    guests = made(tmp_path, [".deleted-1-a", ".deleted-2-b"])
    with holder(guests[0]):
        in_use.sweep(tmp_path)
    assert [path.exists() for path in guests] == [True, False]


def test_whoever_waits_for_a_folder_that_is_deleted_does_not_get_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_use, "_held", {})
    guest, = made(tmp_path, KEYS[:1])
    found: list[bool] = []
    waiting = threading.Thread(target=lambda: found.append(in_use.hold(guest)))
    rmtree = shutil.rmtree

    def delete_while_one_waits(path: Path) -> None:
        waiting.start()
        rmtree(path)

    monkeypatch.setattr(shutil, "rmtree", delete_while_one_waits)
    assert in_use.delete(guest)
    waiting.join(30)
    assert found == [False]


def test_a_build_that_waited_for_a_deleted_folder_locks_the_new_one(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    is_in, may_end, asks = (threading.Event() for _ in range(3))
    flock = fcntl.flock

    def ask(file: IO[str], kind: int) -> None:
        if threading.current_thread() is waiting:
            asks.set()
        flock(file, kind)

    def build() -> None:
        with paths.locked(tree / "lock"):
            is_in.set()
            may_end.wait(30)

    waiting = threading.Thread(target=build)
    monkeypatch.setattr(fcntl, "flock", ask)
    with paths.locked(tree / "lock"):
        waiting.start()
        assert asks.wait(30)
        shutil.rmtree(tree)
    assert is_in.wait(30)
    assert paths.is_locked(tree / "lock")
    may_end.set()
    waiting.join(30)


def test_a_qemu_that_is_deleted_before_it_is_held_is_built_again(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_use, "_held", {})
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path))
    monkeypatch.setattr(qemu_build, "ensure_rom", lambda progress: Path(os.devnull))
    monkeypatch.setattr(qemu_build.elf, "copy", lambda path, to: None)
    built: list[Path] = []

    def build(tree: Path, sources: dict[str, bytes], progress: object) -> None:
        built.append(qemu_build.binary(tree, sources))
        built[-1].parent.mkdir(parents=True, exist_ok=True)
        built[-1].touch()

    monkeypatch.setattr(qemu_build, "build", build)
    found = qemu_build.ensure_qemu()
    assert built == [found] and in_use.is_held(found.parent)
    hold = in_use.hold

    def deleted_first(folder: Path) -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        monkeypatch.setattr(in_use, "hold", hold)
        return hold(folder)

    monkeypatch.setattr(in_use, "hold", deleted_first)
    assert qemu_build.ensure_qemu() == found
    assert built == [found, found] and found.exists() and in_use.is_held(found.parent)


def test_a_drive_whose_removal_is_interrupted_is_gone(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    drive = paths.drives() / "lab"
    drive.mkdir(parents=True)
    for name in ("flash.img", "owner.lock"):
        (drive / name).touch()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
        instances.remove("lab")
    assert not drive.exists() and chosen.known() == []
    drive.mkdir()
    (drive / "flash.img").touch()
    assert chosen.known() == ["lab"]
    instances.remove("lab")
    assert not list(paths.drives().glob(".deleted-*"))
