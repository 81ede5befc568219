# SPDX-License-Identifier: BSD-2-Clause
"""`essd conform --drives N`: the chapters are shared among several drives.

A script takes the place of the conformance program; it runs what
--chapters names.
"""

import contextlib
import itertools
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from essd import cli
from essd.base import paths, show
from essd.conform import conform, drives as conform_drives, report as conform_report
from essd.conform.results import Results
from essd.testrun import testrun

IDS = ["smoke.a", "eth.a", "net.a", "net.b", "nvmf.a", "robust.a"]
PROGRAM = """#!{python}
import json, sys
words = sys.argv[1:]
ids = {ids}
if "--list" in words:
    print("\\n".join(one + "  clause  text" for one in ids))
    sys.exit()
assert "--only" not in words  # it would add the long tests
chosen = words[words.index("--chapters") + 1].split(",")
ids = [one for one in ids if one.partition(".")[0] in chosen]
out = open(words[words.index("--results") + 1], "w")
def tell(**event):
    print(json.dumps(event), file=out, flush=True)
tell(event="run", target="fake", seed=1, tests=len(ids))
for one in ids:
    verdict = "fail" if one == "{fails}" else "pass"
    tell(event="test", id=one, chapter=one.partition(".")[0], verdict=verdict, seconds=1)
tell(event="end", seconds=1)
sys.exit("{fails}" in ids)
"""


@pytest.fixture
def stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is run on each drive; there is no drive."""
    found: list[list[str]] = []
    numbers = itertools.count()

    @contextlib.contextmanager
    def emulated() -> Iterator[conform.Stand]:
        yield conform.Stand("qemu", ["--drive", str(next(numbers))],
                            complaints=lambda: found.append([]) or [])

    monkeypatch.setattr(conform, "emulated", emulated)
    monkeypatch.setattr(conform, "build", lambda preset: tmp_path / "program")
    (tmp_path / "top").mkdir()
    monkeypatch.setattr(paths, "TOP", tmp_path / "top")
    return found


def write_program(folder: Path, fails: str = "") -> None:
    program = folder / "program"
    program.write_text(PROGRAM.format(python=sys.executable, ids=IDS, fails=fails))
    program.chmod(0o755)


def command(*words: str) -> tuple[int, str]:
    with show.console.capture() as captured, show.errors.capture() as errors:
        done = CliRunner().invoke(cli.app, ["conform", *words])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, captured.get() + errors.get() + done.output


def test_each_chapter_goes_to_one_drive_and_the_longest_has_least_beside_it():
    shares = conform_drives.share(IDS, 2)
    assert sorted(sum(shares, [])) == ["eth", "net", "nvmf", "robust", "smoke"]
    assert ["net"] in shares


def test_three_drives_take_no_longer_than_the_longest_chapter():
    """`essd test` shares the whole suite among as many."""
    chapters = ["smoke", "eth", "net", "roce", "cm", "nvmf", "nvme", "limits", "robust"]
    shares = conform_drives.share([f"{one}.a" for one in chapters],
                                  int(testrun.CONFORM_DRIVES))
    assert ["net"] in shares
    seconds = [conform_drives.seconds_of(share) for share in shares]
    assert sorted(sum(shares, [])) == sorted(chapters)
    assert max(seconds) == conform_drives.seconds_of(["net"]) < 1.2 * sum(seconds) / 3


def test_no_drive_is_started_without_a_chapter():
    assert conform_drives.share(["net.a", "net.b", "eth.c"], 8) == [["net"], ["eth"]]


def test_a_drive_whose_program_broke_off_makes_the_whole_run_inconclusive():
    results, parts = Results(), [Results(is_over=True), Results(complaints=["x broke off"])]
    conform_drives.join(results, parts, [])
    assert not results.is_over and results.complaints == ["x broke off"]


def test_two_drives_run_every_test_once_and_report_in_the_usual_order(stands, tmp_path):
    write_program(tmp_path)
    status, output = command("--drives", "2", "--json")
    assert status == 0 and len(stands) == 2
    assert [test["id"] for test in json.loads(output[output.index("{\n"):])["tests"]] == IDS
    kept = paths.TOP / "build/conform/qemu"
    events = [json.loads(line) for line in
              (kept / "results.jsonl").read_text().splitlines()]
    assert sorted(e["id"] for e in events if e["event"] == "test") == sorted(IDS)
    assert "--drive 1" in (kept / "drive1/program.log").read_text()


def test_a_failure_on_either_drive_is_reported(stands, tmp_path):
    write_program(tmp_path, fails="robust.a")
    status, output = command("--drives", "2")
    assert status == 1 and "FAILED robust.a" in output
    assert "5 passed, 1 failed, 0 not applicable, 0 not run: not conforming" in output
    assert len(re.findall(r"^net +2\.0 s  2 passed$", output, re.M)) == 1


@pytest.mark.parametrize("words", [["--native"], ["--peer", "nvmet"]])
def test_only_drives_in_qemu_can_be_several(words):
    status, output = command(*words, "--drives", "2")
    assert status == 2 and "--drives N is for drives in QEMU" in output


def test_reports_during_a_run_count_each_drive_once() -> None:
    run = conform.Run(conform.Options(), [], Results(), conform_report.Facts())
    run.parts = [Results(transport=["timeouts 2"], complaints=["restarted"]),
                 Results(transport=["timeouts 3"])]
    for _ in range(3):
        found = run.now()
        assert found.transport == ["timeouts 2", "timeouts 3"]
        assert found.complaints == ["restarted"]


def test_runs_that_end_at_once_keep_their_logs_one_after_the_other(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second would delete the folder into which the first one copies."""
    monkeypatch.setattr(paths, "build", lambda: tmp_path / "build")
    copy = shutil.copy

    def copy_locked(source: Path, target: Path) -> None:
        assert paths.is_locked(tmp_path / "build/conform/qemu.lock")
        copy(source, target)
    monkeypatch.setattr(shutil, "copy", copy_locked)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/results.jsonl").write_text("{}")
    kept = conform.keep_logs(tmp_path / "run", conform.Stand("qemu", []))
    assert (kept / "results.jsonl").read_text() == "{}"


def test_the_logs_of_several_drives_are_replaced_by_one_run_at_a_time(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run would delete the folder while the results of all drives are written there."""
    monkeypatch.setattr(paths, "build", lambda: tmp_path / "build")
    monkeypatch.setattr(conform, "emulated",
                        lambda: contextlib.nullcontext(conform.Stand("qemu", [])))
    monkeypatch.setattr(conform.provenance, "versions", lambda qemu: {})
    (tmp_path / "run").mkdir()

    def run_stand(_program: Path, _options: object, stand: conform.Stand, folder: Path,
                  *_: object) -> bool:
        (folder / "results.jsonl").write_text(f"{stand.name}\n")
        return True
    removed = []

    def remove_locked(folder: Path, **_: object) -> None:
        assert paths.is_locked(tmp_path / "build/conform/qemu.lock")
        removed.append(folder)
    monkeypatch.setattr(conform, "run_stand", run_stand)
    monkeypatch.setattr(shutil, "rmtree", remove_locked)
    run = conform.Run(conform.Options(), IDS, Results(), conform_report.Facts())
    screen: Any = None
    kept = conform.run_drives(tmp_path, conform.Options(drives=2), IDS, tmp_path / "run", run,
                              screen)
    assert removed[0] == kept
    assert (kept / "results.jsonl").read_text() == "qemu/drive0\nqemu/drive1\n"
