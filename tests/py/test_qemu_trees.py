# SPDX-License-Identifier: BSD-2-Clause
"""Which of QEMU's builds are deleted after a new one has been made."""

import os
from pathlib import Path

import pytest

from essd.base.paths import locked
from essd.build import qemu_build


def tree(folder: Path, name: str, age_s: int | None) -> Path:
    """Make a build's folder: finished `age_s` seconds ago, or never finished."""
    made = folder / name
    made.mkdir()
    (made / "lock").touch()
    if age_s is not None:
        (made / "bin").mkdir()
        os.utime(made / "bin", (10**9 - age_s, 10**9 - age_s))
    return made


def test_the_newest_builds_and_unfinished_builds_are_kept(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu_build, "KEPT_TREES", 2)
    current = tree(tmp_path, "current", 0)
    tree(tmp_path, "older", 1)
    tree(tmp_path, "oldest", 2)
    tree(tmp_path, "left-behind", None)
    building = tree(tmp_path, "building", None)
    (tmp_path / "no-tree").mkdir()
    with locked(building / "lock"):
        qemu_build.drop_old_trees(current)
    assert {path.name for path in tmp_path.iterdir()} == {
        "current", "older", "building", "no-tree"}
    qemu_build.drop_old_trees(current)
    assert not building.exists()


def test_a_developer_adds_options_to_a_build_beside_the_usual_one(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(qemu_build.CONFIGURE_VARIABLE, raising=False)
    usual = qemu_build.stock_key()
    monkeypatch.setenv(qemu_build.CONFIGURE_VARIABLE,
                       "--enable-debug-tcg '--extra-ldflags=-a -b'")
    assert qemu_build.options() == (*qemu_build.CONFIGURE, "--enable-debug-tcg",
                                    "--extra-ldflags=-a -b")
    assert qemu_build.stock_key() != usual
