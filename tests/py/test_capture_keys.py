# SPDX-License-Identifier: BSD-2-Clause
"""`up --capture-keys`: when a drive's QEMU gets a file for the secrets of TLS, and which."""

import os
from pathlib import Path

import pytest

import essd
from essd.base import show
from essd.base.errors import EssdError
from essd.instance.config import Config, Drive, Link
from essd.machine import key_log
from essd.machine.drive import drive_command
from essd.setup import setup
from essd.storage import snapshots
from essd.topology import reader as topology_yaml, setup as topology_setup
from essd.topology.topology import of_drives


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


def test_a_snapshot_fits_with_and_without_a_key_log() -> None:
    assert snapshots.belongs_to(config("/keys")) == snapshots.belongs_to(config())
