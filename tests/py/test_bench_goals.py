# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --goals`, with stand-ins for drives and initiator: nothing is measured."""

import json
import os
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from test_json import check as check_fields
from typer.testing import CliRunner

from essd import cli
from essd.base import paths, show
from essd.base.cpu import Spent
from essd.base.errors import EssdError
from essd.bench import (base as bench_base, bench, goals, goals_report,
                        native as bench_native, turns)
from essd.bench.goals import BASE, FLASH, GOALS, HART, NEW, NOT_IN_BASE, Goal, Plan
from essd.instance.config import Config, Drive, Link
from essd.setup.setup import Binaries

NAND_ROWS = [goal.name for goal in GOALS if "NAND" in goal.name]
FIRMWARE: Any = SimpleNamespace(version="0")
EARLIER = Binaries(Path("/earlier/qemu"), FIRMWARE, Path("/earlier/native"))


def goal_of(text: str) -> Goal:
    return next(goal for goal in GOALS if text in goal.name)


def round_of(cpu: float, iops: float = 1000) -> goals.Round:
    return {"drive_cpu": cpu, "iops": iops, "mean_us": 10.0, "gb_s": 1.0}


def text_of(rows: list[goals.Row], has_base: bool) -> list[str]:
    console = Console(width=140, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(goals_report.table_of(rows, has_base))
    return console.export_text().splitlines()


# What is asked for

def test_every_goal_is_about_figures_that_are_measured() -> None:
    assert len({goal.name for goal in GOALS}) == len(GOALS) == 12
    for goal in GOALS:
        assert goal.drive in goals.KINDS and goal.asked.keys() <= goals.FIGURES.keys()
        assert ("share" in goal.asked) == (goal.few is not None)
    many = goal_of("960")
    assert many.load.hosts * many.load.queues == 960 and many.few is not None
    assert many.load.depth == many.few.depth, "as many commands are outstanding"


@pytest.mark.parametrize("only, names", [
    ("", [goal.name for goal in GOALS]), ("nand", NAND_ROWS), ("4420", [GOALS[-1].name])])
def test_rows_are_chosen_by_a_part_of_their_names(only: str, names: list[str]) -> None:
    assert [goal.name for goal in goals.wanted_goals(only)] == names


@pytest.mark.parametrize("words, said", [
    (("--only", "tape"), "--only tape: no goal contains this text; use a part of block 4K"),
    (("--rounds", "0"), "--rounds 0: use 1 or more"),
    (("--seconds", "0"), "--seconds 0: use more than 0"),
    (("--nand", "1G"), "--nand does not go with --goals"),
    (("--block",), "--block does not go with --goals"),
    (("--native",), "--native does not go with --goals"),
    (("--growth",), "--growth does not go with --goals"),
    (("--mount",), "--mount does not go with --goals"),
    (("--html", "x"), "--html does not go with --goals"),
    (("--compare", __file__), "--compare FILE does not go with --goals")])
def test_mistakes_are_refused_before_anything_is_built(
        monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str) -> None:
    monkeypatch.setattr(goals_report, "build_initiator", None)
    monkeypatch.setattr(bench_base, "binaries", None)
    done = CliRunner().invoke(cli.app, ["bench", "--goals", *words])
    assert isinstance(done.exception, EssdError) and str(done.exception).startswith(said)


def test_parts_of_a_second_are_for_essds_own_initiator() -> None:
    done = CliRunner().invoke(cli.app, ["bench", "--seconds", "0.5"])
    assert isinstance(done.exception, EssdError)
    assert str(done.exception).startswith("--seconds 0.5: use whole seconds, except with")


def test_sequential_workloads_come_before_random_writes() -> None:
    plan = Plan(GOALS, 1, 1, 9000, Path("x"))
    workloads = [goal.workload for goal in plan.of(FLASH)]
    assert workloads[:2] == ["128k-read-qd64", "128k-write-qd64"]
    assert workloads[-1] == "4k-randwrite-qd64"


def test_the_time_that_is_told_grows_with_what_is_measured() -> None:
    def about(goals_of: Any = GOALS, seconds: float = 1, rounds: int = 1, earlier: Any = None,
              ) -> float:
        return Plan(goals_of, seconds, rounds, 9000, Path("x"), earlier).about_s()
    assert about(GOALS[:1]) < about() < about(seconds=2) < about(rounds=3)
    assert about(earlier=EARLIER) == 2 * about()


def test_both_sides_differ_in_nothing_but_their_programs() -> None:
    for kind in goals.KINDS:
        new, base = Plan(GOALS, 1, 1, 9000, Path("x"), EARLIER).sides(kind)
        assert (new.name, base.name, base.wish.binaries) == (NEW, BASE, EARLIER)
        assert vars(new.wish) | {"binaries": EARLIER} == vars(base.wish)
        assert new.wish.mtu == 9000 and (new.wish.hart == "native") == (kind == HART)


# Rows

def test_a_goal_is_met_by_the_median_or_by_the_best_round_only() -> None:
    goal = goal_of("block 4K random read, depth 64")
    row = goals.row_of(goal, [round_of(5, 200_000), round_of(7, 160_000),
                              round_of(9, 100_000)], [], "")
    assert (row.median["drive_cpu"], row.best["drive_cpu"]) == (7, 5)
    assert (row.median["iops"], row.best["iops"]) == (160_000, 200_000)
    assert row.met == {"drive_cpu": "best", "iops": "yes"} and row.ratio == {}
    assert goals.row_of(goal, [round_of(9, 1)], [], "").met == {"drive_cpu": "no", "iops": "no"}


def test_ratios_to_base_are_those_of_a_round() -> None:
    row = goals.row_of(goal_of("block 128K read"), [round_of(10), round_of(100), round_of(12)],
                       [round_of(20), round_of(400), round_of(48)], "")
    assert (row.ratio["drive_cpu"], row.ratio_low["drive_cpu"], row.ratio_high["drive_cpu"]
            ) == (0.25, 0.25, 0.5)
    assert row.base["drive_cpu"] == 48


def test_the_table_has_one_line_for_each_goal_and_fits() -> None:
    rows = [goals.row_of(goal, [round_of(1234.5, 200_000) | {"share": 0.5, "start_s": 0.25}],
                         [round_of(100) | {"share": 1, "start_s": 0.5}], "") for goal in GOALS]
    rows[1] = goals.Row(rows[1].goal, "w", rows[1].asked, reason="the drive is gone")
    lines = text_of(rows, True)
    assert len(lines) == 1 + len(GOALS) and not any("…" in line for line in lines)
    assert "CPU no, IOPS yes" in lines[1] and lines[2].rstrip().endswith("failed")
    assert "0.25 s" in lines[-1] and "0.50" in lines[-1] and lines[-1].rstrip().endswith("yes")
    assert "50% of 1 pair" in lines[-3]
    assert "/ BASE" not in text_of(rows, False)[0]


# Measuring, with rounds that are given

def rows_of(monkeypatch: pytest.MonkeyPatch, parts: dict[str, Any], starts: list[str],
            rounds: int = 2, only: str = "NAND") -> list[goals.Row]:
    """Measure with `parts`, for each side a function of goal and round, or an EssdError if
    its drive cannot be started."""
    @contextmanager
    def running(side: turns.Side, *_: Any) -> Any:
        starts.append(side.name)
        if isinstance(parts[side.name], EssdError):
            raise parts[side.name]
        yield side.name

    monkeypatch.setattr(turns, "running", running)
    monkeypatch.setattr(goals, "part_of", lambda goal, name, _: lambda _: parts[name](goal))
    plan = Plan(goals.wanted_goals(only), 1, rounds, 9000, Path("x"),
                EARLIER if BASE in parts else None)
    return goals.measured(plan, lambda _: None)


def good(_goal: Goal) -> goals.Round:
    return round_of(10) | {"share": 0.9}


def test_a_row_that_fails_has_its_reason_and_the_others_go_on_with_new_drives(
        monkeypatch: pytest.MonkeyPatch) -> None:
    def bad(goal: Goal) -> goals.Round:
        if goal.name == "NAND 4K random read, depth 64":
            raise EssdError("new: the initiator\nfailed")
        return good(goal)

    starts: list[str] = []
    rows = rows_of(monkeypatch, {NEW: bad, BASE: good}, starts)
    assert [row.goal for row in rows] == NAND_ROWS
    assert [row.reason for row in rows if row.has_failed] == ["new: the initiator failed"]
    assert starts == [NEW, BASE, NEW, BASE]


def test_a_drive_that_does_not_start_is_the_reason_of_all_its_rows(
        monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[str] = []
    rows = rows_of(monkeypatch, {NEW: EssdError("no QEMU")}, starts)
    assert {row.reason for row in rows} == {"no QEMU"} and starts == [NEW]


def test_this_drive_is_measured_although_that_of_base_fails(
        monkeypatch: pytest.MonkeyPatch) -> None:
    def bad(_goal: Goal) -> goals.Round:
        raise EssdError("base: the initiator failed")

    for base in (EssdError("the drive's QEMU has ended: no memory"), bad):
        rows = rows_of(monkeypatch, {NEW: good, BASE: base}, [])
        assert all(row.median and row.base_reason and not row.reason and not row.ratio
                   and row.has_failed for row in rows)
        assert "failed" in text_of(rows, True)[1]


@pytest.mark.parametrize("said", [
    "the drive's QEMU has ended: qemu-system-riscv64: Property 'essd-machine.bmc' not found",
    "the drive's QEMU has ended: Parameter 'driver' is not a valid device model name"])
def test_what_an_earlier_drive_did_not_have_yet_is_no_failure(
        monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    rows = rows_of(monkeypatch, {NEW: good, BASE: EssdError(said)}, [])
    assert {row.base_reason for row in rows} == {NOT_IN_BASE}
    assert not any(row.has_failed for row in rows) and NOT_IN_BASE in text_of(rows, True)[1]


def test_a_native_hart_that_base_does_not_have_is_not_started(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(__name__ + ".EARLIER", Binaries(Path("q"), FIRMWARE))
    starts: list[str] = []
    row, = rows_of(monkeypatch, {NEW: good, BASE: good}, starts, only="hart=native")
    assert row.base_reason == NOT_IN_BASE and starts == [NEW]


# The command, with programs that stand for QEMU and for the initiator

INITIATOR = """#!/bin/sh
while [ "$1" != --listen ]; do shift; done
touch "$2"
while [ "$1" != --only ]; do shift; done
%s
echo '{"connected_s": '$(cut -d' ' -f1 /proc/uptime)', "workloads": ['
echo '{"name": "'$2'", "ios": 1000, "iops": 2000, "mb_per_s": 8.0, "mean_us": 20.0,'
echo ' "p99_us": 30.0, "errors": 0, "mismatches": 0, "cpu_s": 0.5}'
echo ']}'
"""


@pytest.fixture
def bed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A drive that is only a process which sleeps; its number goes to the file "pids"."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "drives"))
    monkeypatch.setattr(show.console, "stderr", False)
    paths.runtime()

    def configure(wish: Any) -> Config:
        config = Config(wish.name, "", "tcg", [Link(0, ["10.0.0.10/24"])])
        config.drives["drive"] = Drive("", "", "", "raw", "nqn.x")
        return config

    monkeypatch.setattr(turns.setup, "configure", configure)
    monkeypatch.setattr(bench_native, "drive_command", lambda *_: [
        "sh", "-c", f"echo $$ >> {tmp_path}/pids; exec sleep 1000"])
    monkeypatch.setattr(turns.cpu, "spent", lambda _pid: Spent(time.monotonic()))
    monkeypatch.setattr(goals_report, "build_initiator", lambda: tmp_path / "initiator")
    monkeypatch.setattr(bench_base, "is_base", lambda _text: True)
    monkeypatch.setattr(bench_base, "binaries", lambda *_: Binaries(Path("q"), FIRMWARE))
    write_initiator(tmp_path)
    return tmp_path


def write_initiator(folder: Path, first: str = "sleep 0.1") -> None:
    program = folder / "initiator"
    program.write_text(INITIATOR % first)
    program.chmod(0o755)


def pids(folder: Path) -> list[int]:
    return [int(word) for word in (folder / "pids").read_text().split()]


def check_ended(folder: Path, count: int) -> None:
    found = pids(folder)
    assert len(found) == count
    assert not any(Path(f"/proc/{pid}").exists() for pid in found)
    assert not [one for one in (folder / "drives").glob("*") if one.suffix != ".lock"]


def test_all_rows_are_printed_and_every_drive_ends(bed: Path) -> None:
    done = CliRunner().invoke(cli.app, ["bench", "--goals", "--rounds", "2", "--seconds", "0.1"])
    assert done.exception is None, done.output
    assert done.output.startswith("12 rows, 2 rounds of 0.1 s: about ")
    assert "load average now " in done.output and "at the end" in done.output
    assert "./essd compare" in done.output
    assert [line for goal in GOALS for line in done.output.splitlines()
            if line.startswith(goal.name) and ":" not in line.split("  ")[0]]
    check_ended(bed, 3 + 3)     # three kinds that run; a first start and two that count


def test_the_fields_are_those_that_are_documented(bed: Path) -> None:
    done = CliRunner().invoke(cli.app, ["bench", "--goals", "--json", "--rounds", "1",
                                        "--seconds", "0.1", "--compare", "HEAD"])
    assert done.exception is None, done.output
    found = json.loads(done.stdout)
    check_fields("bench --goals", found)
    assert [row["goal"] for row in found["goals"]] == [goal.name for goal in GOALS]
    assert {row["base_reason"] for row in found["goals"]} == {"", NOT_IN_BASE}


def test_a_failed_row_makes_the_exit_status_1(bed: Path) -> None:
    write_initiator(bed, 'if [ "$2" = 128k-read-qd64 ]; then echo no answer >&2; exit 1; fi')
    done = CliRunner().invoke(cli.app, ["bench", "--goals", "--only", "NAND", "--rounds", "1",
                                        "--seconds", "0.1"])
    assert isinstance(done.exception, EssdError)
    assert str(done.exception) == "1 of 6 rows could not be measured: NAND 128K read"
    assert "NAND 128K read: new: the initiator failed: no answer; see " in done.output
    check_ended(bed, 2)


@pytest.mark.parametrize("row", ["NAND", "4420"])
def test_ctrl_c_ends_all_drives(bed: Path, row: str) -> None:
    write_initiator(bed, f'sleep 0.2; if [ $(wc -l < {bed}/pids) = 2 ]; then echo $$ > {bed}/last; '
                    f"kill -INT {os.getpid()}; exec sleep 1000; fi")
    with pytest.raises(KeyboardInterrupt):
        goals_report.command(4, None, row, None, bench.Output(compare="HEAD"))
    check_ended(bed, 2)
    assert not Path("/proc", (bed / "last").read_text().strip()).exists()


def test_a_drive_that_ends_is_noticed_at_once(bed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_native, "drive_command", lambda *_: [
        "sh", "-c", "echo 'Property x not found' >&2; exit 1"])
    write_initiator(bed, "exec sleep 1000")
    with pytest.raises(EssdError) as caught:
        cli.app(["bench", "--goals", "--only", "NAND 128K"], standalone_mode=False)
    assert str(caught.value).startswith("2 of 2 rows could not be measured")


def test_the_native_hart_of_an_earlier_drive_is_its_own(bed: Path) -> None:
    from essd.setup import native_hart
    from essd.setup.setup import Wish
    built = Path("built now")
    assert native_hart.chosen(Wish(hart="native"), built) == built
    assert native_hart.chosen(Wish(), None) is None
    assert native_hart.chosen(Wish(hart="native", binaries=EARLIER), built) == (
        EARLIER.native_hart)
    with pytest.raises(EssdError, match="the earlier revision has no native hart"):
        native_hart.chosen(Wish(hart="native", binaries=Binaries(Path("q"), FIRMWARE)), built)
