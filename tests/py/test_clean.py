# SPDX-License-Identifier: BSD-2-Clause
"""`essd clean`: what it deletes, and what it keeps."""

import fcntl
import fnmatch
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fake_supervisor import FakeSupervisor
from holding import holder
from typer.testing import CliRunner

from essd import cli
from essd.base import claims, paths
from essd.build import fw_build
from essd.build.libraries import LIBRARIES
from essd.setup import clean

SOURCES = sorted(f"{name}/key" for name in LIBRARIES)      # libsodium, lwip, mbedtls


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a folder of every kind; this program uses python-new."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "drives"))
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "cache" / "python-new"))
    (tmp_path / "cache/qemu/two/bin/1").mkdir(parents=True)
    for name in ("qemu/one/bin", "qemu/two/bin", "guest/linux", "python-old", "python-new",
                 "download", "log", "own-files", *(f"{name}/key" for name in LIBRARIES)):
        (tmp_path / "cache" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "cache" / name / "file").write_bytes(b"x" * 5000)
    return tmp_path / "cache"


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, ["clean", *words])
    return done.exit_code, done.output + str(done.exception or "")


def left(cache: Path) -> list[str]:
    return sorted(path.parent.relative_to(cache).as_posix()
                  for path in cache.rglob("file"))


def test_without_yes_and_without_a_terminal_nothing_is_deleted(cache: Path) -> None:
    before = left(cache)
    status, said = run()
    assert status == 1 and "give --yes" in said
    status, said = run("--json")
    assert status == 0
    assert left(cache) == before


def test_everything_goes_that_nothing_uses_and_that_essd_has_made(cache: Path) -> None:
    assert run("--yes")[0] == 0
    assert left(cache) == ["own-files", "python-new"]


def test_only_the_kinds_that_are_named_go(cache: Path) -> None:
    assert run("--yes", "python", "logs")[0] == 0
    assert left(cache) == ["download", "guest/linux", *SOURCES, "own-files", "python-new",
                           "qemu/one/bin", "qemu/two/bin"]
    status, said = run("--yes", "gust")
    assert status == 1 and "did you mean guest" in said


def test_what_a_running_instance_uses_is_kept(cache: Path) -> None:
    with FakeSupervisor("lab") as lab:
        config = (lab.folder / "config.json")
        config.write_text(config.read_text().replace("/qemu", str(cache / "qemu/two/bin/q"))
                          .replace("/guest", str(cache / "guest/linux")))
        assert run("--yes")[0] == 0
    assert left(cache) == ["guest/linux", "own-files", "python-new", "qemu/two/bin"]


def test_what_an_instance_of_another_version_uses_is_kept(cache: Path) -> None:
    with FakeSupervisor("lab") as lab:
        (lab.folder / "config.json").write_text(json.dumps({
            "version": 99, "machines": [{"program": str(cache / "qemu/two/bin/q"),
                                         "images": [str(cache / "guest/linux/root")]}]}))
        assert run("--yes")[0] == 0
    assert left(cache) == ["guest/linux", "own-files", "python-new", "qemu/two/bin"]


def test_what_is_being_built_is_kept(cache: Path) -> None:
    with paths.locked(cache / "guest/lock"), paths.locked(cache / "qemu/one/lock"):
        assert run("--yes", "guest", "qemu")[0] == 0
    assert {"guest/linux", "qemu/one/bin"} <= set(left(cache))


def test_an_earlier_drive_that_the_bench_has_unpacked_is_a_build(cache: Path) -> None:
    unpacked = cache / "base/0123456789abcdef"
    (unpacked / "tools").mkdir(parents=True)
    with holder(unpacked):
        assert run("--yes", "build")[0] == 0
        assert unpacked.exists()
    assert run("--yes", "build")[0] == 0
    assert not unpacked.exists()


def test_the_sizes_are_those_of_the_files(cache: Path) -> None:
    found = json.loads(run("--json", "qemu", "python")[1])
    assert [entry["kind"] for entry in found] == ["qemu", "python"]
    assert 2 * 5000 <= found[0]["bytes"] <= 2 * (5000 + 4 * 8192)
    assert found[1]["used"] == [str(cache / "python-new")]


def test_every_kind_of_the_help_exists(cache: Path) -> None:
    for kind in clean.KINDS:
        assert kind in CliRunner().invoke(cli.app, ["clean", "--help"]).output


def test_what_is_taken_into_use_while_the_question_stands_is_kept(cache: Path) -> None:
    found = clean.find(["qemu", "guest"])
    with holder(cache / "qemu/two/bin/1"):
        assert clean.delete(found) == [
            f"{cache}/qemu/two: it was taken into use just now, and is kept"]
    assert [x for x in left(cache) if x.startswith(("qemu/", "guest/"))] == ["qemu/two/bin"]


def test_what_a_drive_that_is_started_while_the_question_stands_uses_is_kept(
        cache: Path) -> None:
    found = clean.find(["qemu", "guest"])
    with FakeSupervisor("lab") as lab:
        (lab.folder / "config.json").write_text(json.dumps({
            "version": 99, "machines": [{"images": [str(cache / "guest/linux/root")]}]}))
        assert len(clean.delete(found)) == 1
    assert [x for x in left(cache) if x.startswith(("qemu/", "guest/"))] == ["guest/linux"]


def test_what_is_being_built_when_the_question_was_answered_is_kept(cache: Path) -> None:
    found = clean.find(clean.KINDS)
    with paths.locked(cache / "guest/lock"):
        said = clean.delete(found)
        assert any("guests" in line and "being made" in line for line in said)
    # Downloads, logs and the Python environment of QEMU's build belong to all builds.
    assert left(cache) == ["download", "guest/linux", *SOURCES[:1], "log", *SOURCES[1:],
                           "own-files", "python-new", "python-old"]


def test_every_folder_of_the_cache_has_a_kind(cache: Path) -> None:
    """What the sources name in the cache is deleted by one of the kinds."""
    text = "".join(path.read_text(encoding="utf-8") for path in paths.PACKAGE.rglob("*.py"))
    named = {*re.findall(r'\bcache\(\) / "([\w-]+)"', text), *LIBRARIES}
    known = [name for _, names in clean.KINDS.values() for name in names]
    assert len(named) > 10
    assert [name for name in sorted(named)
            if not any(fnmatch.fnmatch(name, one) for one in known)] == []


def test_libraries_are_kept_while_anything_is_compiled_with_them(
        cache: Path, tmp_path: Path) -> None:
    """Also if that is not in the cache: CMake knows their files by name."""
    with fw_build.locked_build(tmp_path / "checkout/build"):
        assert run("--yes", "downloads")[0] == 0
    assert {"download", *SOURCES} <= set(left(cache))
    assert run("--yes", "downloads")[0] == 0
    assert not {"download", *SOURCES} & set(left(cache))


def test_an_environment_that_the_launcher_fills_is_kept(cache: Path) -> None:
    with paths.flocked(cache / "venv.lock", fcntl.LOCK_EX):
        assert run("--yes", "python")[0] == 0
        assert "python-old" in left(cache)
        assert clean.delete([clean.Found("python", [cache / "python-old"], [], 1)])
    assert "python-old" in left(cache)


def test_what_another_clean_has_left_half_is_deleted(cache: Path) -> None:
    for folder in (cache, cache / "qemu", cache / "guest"):
        (folder / ".deleted-1-x").mkdir()
        (folder / ".deleted-1-x/file").touch()
    assert ".deleted" not in str(clean.find(["qemu", "guest"]))
    assert run("--yes")[0] == 0
    assert left(cache) == ["own-files", "python-new"]


def test_the_python_of_an_older_supervisor_is_kept(cache: Path) -> None:
    old = cache / "python-old/bin/python"
    old.parent.mkdir()
    old.symlink_to(Path(sys.executable).resolve())
    with subprocess.Popen([old, "-c", "input()"], stdin=subprocess.PIPE) as process:
        with FakeSupervisor("lab") as lab, claims.claimed("lab", "essd up") as claim:
            claims.write_holder(claim, claims.Holder(process.pid, "essd up", str(lab.folder)))
            assert run("--yes", "python")[0] == 0
            assert "python-old" in left(cache)
        process.communicate(b"\n", timeout=30)
