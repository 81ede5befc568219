# SPDX-License-Identifier: BSD-2-Clause
"""Programs for this machine: CMake configures their build folder only when it has to."""

import os
from pathlib import Path

import pytest

from essd.base import paths
from essd.build import fw_build, native_build


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the steps of a build in a checkout of the test's own."""
    steps: list[str] = []
    monkeypatch.setattr(paths, "TOP", tmp_path)
    (tmp_path / "CMakePresets.json").write_text("{}")
    os.utime(tmp_path / "CMakePresets.json", (0, 0))

    def run(command: list[str], _log: Path, what: str) -> None:
        steps.append(what)
        if "--preset" in command:
            configure(paths.TOP)
    monkeypatch.setattr(fw_build, "run_logged", run)
    return steps


def configure(source: Path) -> None:
    """What CMake leaves in a build folder."""
    build = paths.build() / "fast"
    build.mkdir(parents=True, exist_ok=True)
    (build / "CMakeCache.txt").write_text(f"x=1\nCMAKE_HOME_DIRECTORY:INTERNAL={source}\n"
                                          f"CMAKE_CACHEFILE_DIR:INTERNAL={build}\n")
    (build / "build.ninja").write_text("")


def build_tool() -> Path:
    return native_build.native_program("fast", "tools/nand/essd-nand", "the tool")


def test_a_second_build_is_not_configured_again(said: list[str], tmp_path: Path) -> None:
    assert build_tool() == tmp_path / "build/fast/tools/nand/essd-nand"
    assert said == ["configuring the tool", "building the tool"]
    build_tool()
    assert said[2:] == ["building the tool"]


def test_a_change_of_the_presets_is_configured(said: list[str], tmp_path: Path) -> None:
    configure(tmp_path)
    os.utime(tmp_path / "build/fast/build.ninja", (1, 1))
    (tmp_path / "CMakePresets.json").touch()
    build_tool()
    assert said == ["configuring the tool", "building the tool"]


def test_the_folder_of_a_checkout_that_was_copied_is_configured_anew(
        said: list[str], tmp_path: Path) -> None:
    configure(tmp_path.with_name("elsewhere"))
    assert not fw_build.is_configured(tmp_path / "build/fast", tmp_path)
    # CMake would refuse the cache of another folder.
    assert not (tmp_path / "build/fast/CMakeCache.txt").exists()
    build_tool()
    assert said == ["configuring the tool", "building the tool"]


def test_a_configuration_that_broke_off_is_repeated(said: list[str], tmp_path: Path) -> None:
    configure(tmp_path)
    (tmp_path / "build/fast/build.ninja").unlink()
    build_tool()
    assert said == ["configuring the tool", "building the tool"]
