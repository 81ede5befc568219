# SPDX-License-Identifier: BSD-2-Clause
"""`up --capture-keys`: when a drive's QEMU gets a file for the secrets of TLS, and which."""

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_qemu import make_fake

import essd
from essd.base import show
from essd.base.errors import EssdError
from essd.instance.config import Config, Drive, Link
from essd.instance.instance import Instance
from essd.machine import key_log
from essd.machine.drive import drive_command
from essd.setup import setup
from essd.storage import snapshots
from essd.supervisor import snapshot_keeper
from essd.supervisor.supervisor import Supervisor
from essd.topology import reader as topology_yaml, setup as topology_setup
from essd.topology.topology import of_drives

# A QEMU that saves and loads.
ANSWERS = """
def answer(command, told):
    if command == "migrate":
        open(told["uri"].removeprefix("file:"), "w").close()
    return {"status": "completed"} if command in ("query-migrate", "query-status") else {}
"""


def config(keys: str = "") -> Config:
    return Config("unit", "/guest", "tcg", [Link(0, ["10.0.0.10/24"], capture=True)],
                  {"drive": Drive("/qemu", "/flash", "/media", "raw", "nqn")},
                  capture_keys=keys)


def test_a_drive_has_a_key_log_only_when_it_was_asked_for(tmp_path: Path) -> None:
    assert "key-log" not in " ".join(drive_command(config(), tmp_path))
    words = drive_command(config("/keys,x"), tmp_path)
    assert "file,id=key-log,path=/keys,,x,append=on" in words
    assert "essd-sysctl.key-log=key-log" in words


def test_the_file_is_private_and_the_user_is_warned(tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(show, "note", lambda text, style: said.append(text))
    mask = os.umask(0)
    try:
        file = key_log.create(tmp_path / "keys")
    finally:
        os.umask(mask)
    assert file.stat().st_mode & 0o777 == 0o600
    assert said[0].startswith(f"warning: the secrets of TLS connections are written to {file}")
    file.write_text("LABEL 1 2\n")
    key_log.create(file)
    assert file.read_text() == "LABEL 1 2\n"


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("")
    file.chmod(0o640)
    with pytest.raises(EssdError, match="others may read it"):
        key_log.create(file)


@pytest.mark.parametrize("what", ["folder", "pipe", "link", "nowhere"])
def test_what_is_no_file_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "keys"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path, 0o600)
    elif what == "link":
        path.symlink_to(tmp_path / "other")
    else:
        path = path / "x"
    with pytest.raises(EssdError, match="cannot be written|is not a file"):
        key_log.create(path)
    assert not (tmp_path / "other").exists()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a drive that `--new` would delete."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "drives"))
    folder = tmp_path / "drives" / "lab" / "drive"
    folder.mkdir(parents=True)
    for module in (setup, topology_setup):
        monkeypatch.setattr(module, "configure", lambda *_: pytest.fail("it goes on"))
    return folder


def test_a_bad_file_is_refused_before_a_drive_is_deleted(kept: Path, tmp_path: Path) -> None:
    bad = tmp_path / "none" / "keys"
    wish = setup.Wish(name="lab", capture=True, capture_keys=bad)
    found = topology_yaml.load(of_drives(2, None, None, 1, True, None, False, (), (), None,
                                         "stock", "riscv"), "two", tmp_path)
    for start in (lambda: setup.made(wish, None, True),
                  lambda: topology_setup.start(found, "lab", True, True, 0, capture_keys=bad),
                  lambda: essd.up(name="lab", new=True, capture=True, capture_keys=bad)):
        with pytest.raises(EssdError, match="keys cannot be written"):
            start()
        assert kept.exists()


def test_without_a_capture_or_a_drive_it_is_refused() -> None:
    key_log.check(captured=True, drives=True)
    with pytest.raises(EssdError, match="goes with --capture"):
        key_log.check(captured=False, drives=True)
    with pytest.raises(EssdError, match="is for a drive"):
        key_log.check(captured=True, drives=False)


def test_a_snapshot_does_not_keep_where_the_secrets_went() -> None:
    assert "/secret" not in snapshots.describe(config("/secret/keys"), "one")


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Instance]:
    """One with a drive whose QEMU is a script, which opens no file."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    known = config(str(tmp_path / "keys"))
    known.drives["drive"].qemu = str(make_fake(tmp_path / "qemu", ANSWERS))
    instance = Instance("unit")
    instance.start(known)
    instance.wait_started()
    yield instance
    instance.stop()


def make_link(keys: Path) -> Path:
    keys.unlink()
    other = keys.with_name("other")
    keys.symlink_to(other)
    return other


@pytest.mark.parametrize(("off", "on"), [("power-cut", "power-on"), ("save", "load")])
def test_the_file_is_looked_at_whenever_a_drive_starts(instance: Instance, tmp_path: Path,
                                                       off: str, on: str) -> None:
    keys = tmp_path / "keys"
    assert keys.stat().st_mode & 0o777 == 0o600
    instance.ask(off)
    cables = instance.status()["cables"]
    other = make_link(keys)
    with pytest.raises(EssdError, match=f"^{keys} cannot be written: .*$"):
        instance.ask(on)
    found = instance.status()
    assert found["parts"]["drive"]["state"] == "off" and found["cables"] == cables
    assert not other.exists()
    keys.unlink()
    instance.ask(on)
    assert instance.status()["parts"]["drive"]["state"] == "running"
    assert keys.stat().st_mode & 0o777 == 0o600


def test_a_saved_state_outlives_a_start_that_is_refused(instance: Instance,
                                                        tmp_path: Path) -> None:
    instance.ask("save")
    make_link(tmp_path / "keys")
    with pytest.raises(EssdError, match="cannot be written"):
        instance.ask("power-on")
    assert instance.status()["parts"]["drive"]["saved"]


def supervisor(tmp_path: Path) -> Supervisor:
    keys = tmp_path / "keys"
    keys.symlink_to(tmp_path / "other")
    return Supervisor(tmp_path, config(str(keys)))


def test_a_snapshot_is_not_loaded_if_no_drive_could_start(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "read", lambda folder: None)
    monkeypatch.setattr(snapshots, "check", lambda *words: None)
    monkeypatch.setattr(snapshot_keeper, "replace_disks", None)
    with pytest.raises(EssdError, match="cannot be written"):
        asyncio.run(snapshot_keeper.load(supervisor(tmp_path), "one"))


def test_a_start_that_is_refused_late_says_that_the_machines_are_off(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def no_swap(*words: Any) -> Iterator[Any]:
        class Nothing:
            def swap(self) -> None:
                pass

        yield Nothing()

    monkeypatch.setattr(snapshot_keeper, "Swap", no_swap)
    with pytest.raises(ValueError, match="keys cannot be written: .*all machines are off"):
        asyncio.run(snapshot_keeper.replace_disks(supervisor(tmp_path), tmp_path, []))


def test_a_snapshot_fits_with_and_without_a_key_log() -> None:
    assert snapshots.belongs_to(config("/keys")) == snapshots.belongs_to(config())
