# SPDX-License-Identifier: BSD-2-Clause
"""`essd clean`: what it deletes, and what it keeps."""

import json
import sys
from pathlib import Path

import pytest
from fake_supervisor import FakeSupervisor
from typer.testing import CliRunner

from essd import clean, cli, paths


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a folder of every kind; this program uses python-new."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "drives"))
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "cache" / "python-new"))
    for name in ("qemu/one/bin", "qemu/two/bin", "guest/linux", "python-old", "python-new",
                 "download", "log", "own-files"):
        (tmp_path / "cache" / name).mkdir(parents=True)
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
    assert left(cache) == ["download", "guest/linux", "own-files", "python-new",
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


def test_the_sizes_are_those_of_the_files(cache: Path) -> None:
    found = json.loads(run("--json", "qemu", "python")[1])
    assert [entry["kind"] for entry in found] == ["qemu", "python"]
    assert 2 * 5000 <= found[0]["bytes"] <= 2 * (5000 + 4 * 8192)
    assert found[1]["used"] == [str(cache / "python-new")]


def test_every_kind_of_the_help_exists(cache: Path) -> None:
    for kind in clean.KINDS:
        assert kind in CliRunner().invoke(cli.app, ["clean", "--help"]).output
