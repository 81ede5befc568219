# SPDX-License-Identifier: BSD-2-Clause
"""Checkouts that were copied or cannot be written, and folders in which nothing can be
built: each is repaired, or refused before anything is downloaded or built."""

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from essd.base import paths
from essd.base.errors import EssdError
from essd.build import fw_build, native_build
from essd.build.fw_build import BuildError, first_error, forget_moved, run_logged
from essd.setup import doctor, prepare, setup
from essd.topology import setup as topology_setup
from essd.topology.topology import Topology

PROJECT = """cmake_minimum_required(VERSION 3.20)
project(sample NONE)
add_custom_target(sample ALL COMMAND ${CMAKE_COMMAND} -E echo built)
"""


def configure(top: Path) -> None:
    build = top / "build"
    forget_moved(build, top)
    run_logged(["cmake", "-G", "Ninja", "-S", str(top), "-B", str(build)], top / "log", "it")
    run_logged(["cmake", "--build", str(build)], top / "log", "it")


def make_project(top: Path) -> None:
    top.mkdir()
    (top / "CMakeLists.txt").write_text(PROJECT)
    configure(top)


def test_a_copied_build_folder_is_configured_again(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_project(tmp_path / "one")
    before = (tmp_path / "one/build/CMakeCache.txt").stat().st_mtime_ns
    forget_moved(tmp_path / "one/build", tmp_path / "one")
    assert (tmp_path / "one/build/CMakeCache.txt").stat().st_mtime_ns == before
    shutil.copytree(tmp_path / "one", tmp_path / "two", symlinks=True)
    with monkeypatch.context() as patched, pytest.raises(
            BuildError, match=r"it failed: CMake Error: The (current CMakeCache.txt|source) "):
        patched.setitem(globals(), "forget_moved", lambda *_: None)
        configure(tmp_path / "two")
    configure(tmp_path / "two")
    (tmp_path / "two").rename(tmp_path / "three")
    configure(tmp_path / "three")


def test_a_program_of_a_copied_checkout_is_built(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[tuple[Path, Path]] = []
    monkeypatch.setattr(fw_build, "forget_moved", lambda *both: forgotten.append(both))
    monkeypatch.setattr(fw_build, "run_logged", lambda *_: None)
    monkeypatch.setattr(paths, "build", lambda: tmp_path)
    native_build.native_program("fast", "tools/x", "it")
    assert forgotten == [(tmp_path / "fast", paths.TOP)]


def test_a_checkout_that_is_moved_while_it_is_built_waits_for_the_build(tmp_path: Path) -> None:
    """What the build still writes must not be deleted under it."""
    make_project(tmp_path / "one")
    seen: list[bool] = []
    began = threading.Event()

    def look() -> None:
        began.set()
        with fw_build.alone(tmp_path / "two/build", tmp_path / "two"):
            seen.append((tmp_path / "two/built").exists())

    later = threading.Thread(target=look)
    with fw_build.alone(tmp_path / "one/build", tmp_path / "one"):
        (tmp_path / "one").rename(tmp_path / "two")
        later.start()
        assert began.wait(30)
        later.join(0.3)
        assert (tmp_path / "two/build/CMakeCache.txt").exists()
        (tmp_path / "two/built").touch()
    later.join(30)
    assert seen == [True] and not (tmp_path / "two/build/CMakeCache.txt").exists()


def test_every_command_that_builds_with_cmake_locks_its_folder() -> None:
    """forget_moved() deletes what another command may be writing."""
    callers = [paths.source_name(path) for path in (*paths.PACKAGE.rglob("*.py"),
                                                    *(paths.TOP / "tools").glob("*.py"))
               if "forget_moved(" in path.read_text(encoding="utf-8")]
    assert callers == ["tools/essd/build/fw_build.py"]
    for path in (*paths.PACKAGE.rglob("*.py"), *(paths.TOP / "tools").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if '"cmake", ' in text:
            assert "alone(" in text or "is_configured(" in text, path


LIBRARY = """cmake_minimum_required(VERSION 3.25)
project(sample NONE)
include({real}/cmake/libraries.cmake)
essd_foreign_folder(${{CMAKE_SOURCE_DIR}} sample dir)
add_custom_target(sample ALL COMMAND ${{CMAKE_COMMAND}} -E echo ${{dir}})
"""


def library_project(top: Path, fetch: str) -> None:
    """A project with a library of others, which a script in place of ours fetches."""
    module = top / "tools/essd/build/libraries.py"
    module.parent.mkdir(parents=True)
    for folder in (module.parent, module.parents[1]):
        (folder / "__init__.py").touch()
    module.write_text(f"import pathlib, sys\nfolder = pathlib.Path({str(top / 'library')!r})\n"
                      f"{fetch}\nfolder.mkdir(exist_ok=True)\nprint(folder)\n")
    (top / "CMakeLists.txt").write_text(LIBRARY.format(real=paths.TOP))


def test_a_library_that_was_deleted_is_fetched_again_by_the_next_build(tmp_path: Path) -> None:
    library_project(tmp_path, "")
    configure(tmp_path)
    (tmp_path / "library").rmdir()
    run_logged(["cmake", "--build", str(tmp_path / "build")], tmp_path / "log", "it")
    assert (tmp_path / "library").is_dir()


def test_why_a_library_cannot_be_fetched_is_named(tmp_path: Path) -> None:
    why = "there is no such folder as that for what is fetched; take another one for all of it"
    library_project(tmp_path, f"sys.exit('fetching sample\\n{why}')")
    with pytest.raises(BuildError, match=f"sample cannot be fetched: {why}"):
        configure(tmp_path)


def test_a_damaged_cache_of_cmake_is_configured_again(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the folder that a missing line would stand for."""
    (tmp_path / "CMakeCache.txt").write_text("# cut\n")
    monkeypatch.chdir(tmp_path)
    forget_moved(tmp_path, tmp_path)
    assert not (tmp_path / "CMakeCache.txt").exists()


def test_the_first_error_of_cmake_is_named_with_its_text(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("-- a\nCMake Error at CMakeLists.txt:3 (message):\n  no compiler\n\n"
                   "-- Configuring incomplete, errors occurred!\n")
    assert first_error(log) == "CMake Error at CMakeLists.txt:3 (message): no compiler"
    log.write_text('CMake Error: The source "/b" does not match\nsee the log\n')
    assert first_error(log) == 'CMake Error: The source "/b" does not match'


def test_a_defect_that_no_longer_fits_is_named_without_the_list_of_files(tmp_path: Path) -> None:
    log = tmp_path / "log"
    files = " ".join(f"mutated/firmware/app/file{n}.c" for n in range(1000))
    why = "generate.py: defect 1: its text occurs 0 times in a.c: the source has changed"
    log.write_text(f"FAILED: {files}\ncd build && python3 generate.py\n{why}\n"
                   "ninja: build stopped: subcommand failed.\n")
    assert first_error(log) == why
    log.write_text(f"FAILED: {files}\ncd build && another\n")
    assert first_error(log).startswith("FAILED: mutated/firmware/app/file0.c")
    assert len(first_error(log)) < 500


def mount_read_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel's answer be what it is on a file system that is mounted read-only."""
    real = os.access
    monkeypatch.setattr(os, "access", lambda one, mode, **more: real(one, mode, **more) and not (
        mode & os.W_OK and Path(one).is_relative_to(path)))


def test_a_checkout_that_cannot_be_written_is_built_in_the_cache(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(paths, "TOP", tmp_path / "top")
    (tmp_path / "top").mkdir()
    assert paths.build() == tmp_path / "top/build"
    mount_read_only(tmp_path / "top", monkeypatch)
    assert paths.build().is_relative_to(tmp_path / "cache/build")


@pytest.mark.parametrize("variable", ["ESSD_CACHE", "ESSD_DATA"])
def test_a_folder_that_cannot_be_written_is_refused_first_and_found_by_doctor(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv(variable, str(tmp_path / "there/new/one"))
    prepare.check_folders()
    assert all(one.ok for one in doctor.folders())
    (tmp_path / "there").mkdir()
    mount_read_only(tmp_path / "there", monkeypatch)
    with pytest.raises(EssdError, match=rf"{tmp_path}/there cannot be written; {variable} names "):
        prepare.prepare()
    assert [one.remedy for one in doctor.examine() if f"{tmp_path}/there/new" in one.text
            and not one.ok] == [f"set {variable} to another folder"]


@pytest.mark.parametrize("name", ["a b", "a:b", "a'b", "a$b"])
def test_a_cache_in_which_nothing_can_be_built_is_refused_before_downloads(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / name))
    def build() -> None:
        fw_build.build_targets(lambda text: None, tmp_path / "build", "", "it", "it", tmp_path)

    def native() -> None:
        native_build.native_program("native", "none", "it")
    wish = setup.Wish(name="unit")
    for act in (paths.cache, prepare.prepare, build, native, lambda: setup.made(wish, None, False),
                lambda: topology_setup.start(Topology("x"), "unit", False, False, 0)):
        with pytest.raises(EssdError, match="with which QEMU cannot be built; ESSD_CACHE names"):
            act()
    assert [one for one in doctor.examine() if not one.ok and "cannot be built" in one.text]
    done = subprocess.run([paths.TOP / "essd", "up"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "ESSD_INSTALL": "no"})
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"the folder {tmp_path / name} cannot be used: nothing can be built" in done.stderr
    assert not (tmp_path / name).exists()


def test_a_build_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EssdError, match=r"file/x/lock cannot be written: Not a directory"), \
            paths.locked(tmp_path / "file/x/lock"):
        pass
