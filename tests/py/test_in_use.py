# SPDX-License-Identifier: BSD-2-Clause
"""Guests and builds that a running instance uses are not deleted."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from essd import clean, guest_build, in_use, paths, qemu_build, supervisor
from essd.config import Config, Host, Link

HOLDER = """
import sys
from pathlib import Path
from essd import in_use
assert in_use.hold(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""
KEYS = [f"{number:016x}" for number in range(5)]


@contextmanager
def holder(folder: Path) -> Iterator[None]:
    """Another process that uses a folder."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, folder], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE,
                          env={**os.environ, "PYTHONPATH": str(paths.PACKAGE.parent)}
                          ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.stdin.close()
        process.wait(30)


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
