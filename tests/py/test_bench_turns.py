# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --compare BASE` and `--growth`: drives that are measured in turns."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from essd.base import cpu, paths
from essd.base.cpu import Spent
from essd.base.errors import EssdError, LOOK_UP_S
from essd.bench import base as bench_base, bench, growth, report as bench_report, turns
from essd.bench.native import Load
from essd.instance.config import Config, Drive, Link
from essd.setup.setup import Wish

TURN = turns.Turn(1000.0, 4.1, 500.0, 900.0, 20.0, 5.0, 0.5)


def text_of(table: object) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    return console.export_text()


def turned(*cpus: float) -> list[turns.Turn]:
    return [dataclasses.replace(TURN, drive_cpu=one) for one in cpus]


def test_ratios_are_those_of_a_round() -> None:
    """Load that comes and goes changes both sides of a round alike."""
    first, second = turned(10, 100, 12), turned(8, 80, 6)
    row = turns.row("w", "new", first, second, None)
    assert (row.drive_cpu, row.cpu_ratio) == (8, 0.8)
    assert (row.cpu_ratio_low, row.cpu_ratio_high) == (0.5, 0.8)
    assert turns.row("w", "base", first, first, 4.0).cpu_ratio == 1


def test_the_table_shows_cpu_and_ratios_first() -> None:
    rows = [turns.row("w", "base", turned(10), turned(10), 4.0),
            turns.row("w", "new", turned(10), turned(5), None)]
    lines = text_of(turns.table_of(rows, "drive", "base")).splitlines()
    assert lines[0].split()[:5] == ["workload", "drive", "CPU", "/", "base"]
    assert lines[1].split()[:3] == ["w", "base", "10.0"]
    assert lines[2].split()[:4] == ["new", "5.0", "0.50", "0.50-0.50"]
    found = bench_report.results_of({"workloads": [dataclasses.asdict(row) for row in rows]})
    assert [result.target for result in found] == ["base", "new"]


def test_what_all_threads_of_a_process_use_is_counted() -> None:
    script = ("import sys, threading, time\n"
              "def turn():\n"
              "    end = time.thread_time() + 0.1\n"
              "    while time.thread_time() < end: pass\n"
              "    print(flush=True)\n"
              "    sys.stdin.read()\n"
              "for _ in range(2): threading.Thread(target=turn).start()\n")
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        process.stdout.readline()
        used = cpu.spent(process.pid)
        process.stdin.close()
    assert used.cpu_s >= 0.2 and used.switches > 0
    found = Spent(2.0, {1: 3}) + Spent(1.0, {2: 1}) - Spent(0.5, {1: 2, 3: 9})
    assert (found.cpu_s, found.switches) == (2.5, 2)


def test_a_thread_that_ends_between_two_readings_keeps_its_share() -> None:
    """QEMU's worker threads end when they have had nothing to do for a while.  What they
    had used before then made the CPU time of a turn negative."""
    script = ("import threading, time\n"
              "def turn():\n"
              "    end = time.thread_time() + 0.2\n"
              "    while time.thread_time() < end: pass\n"
              "    print(flush=True)\n"
              "    input()\n"
              "one = threading.Thread(target=turn)\n"
              "one.start(); one.join()\n"
              "print(flush=True)\n"
              "input()\n")
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        before = cpu.spent(process.pid)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        used = cpu.spent(process.pid) - before
        process.stdin.close()
    assert before.cpu_s >= 0.2
    assert 0 < used.cpu_s < 0.2 and used.switches >= 0


def test_the_table_of_strace_is_read(tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    assert turns.total_calls(counts) is None
    counts.write_text("strace: attach: Operation not permitted\n")
    assert turns.total_calls(counts) is None
    counts.write_text(
        "% time     seconds  usecs/call     calls    errors syscall\n"
        "------ ----------- ----------- --------- --------- ----------------\n"
        " 71.71    0.000161           5        30         2 futex\n"
        " 28.29    0.000063           2        24           sendmsg\n"
        "------ ----------- ----------- --------- --------- ----------------\n"
        "100.00    0.000224           4        54         2 total\n")
    assert turns.total_calls(counts) == 54


class Initiator(subprocess.Popen[str]):
    """A program that prints what the initiator does."""

    def __init__(self, *lines: str, status: int = 0) -> None:
        super().__init__([sys.executable, "-c", f"print({chr(10).join(lines)!r}); "
                          f"raise SystemExit({status})"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ran(monkeypatch: pytest.MonkeyPatch, *initiators: Callable[[], Initiator]
        ) -> turns.Running:
    config = Config("bench", "", "tcg", [Link(0, ["10.0.0.10/24"])])
    benches = []
    for start in initiators:
        one = turns.Bench.__new__(turns.Bench)
        one.folder, one.config = Path("/none"), config
        monkeypatch.setattr(one, "initiator", lambda *_, start=start, **__: start())
        benches.append(one)
    return turns.Running(turns.Side("new"), benches, [os.getpid()])


def output(ios: int) -> tuple[str, ...]:
    return ('{"connected_s": 1.5,', '"workloads": [', "  " + json.dumps(
        {"name": "w", "ios": ios, "iops": ios / 2, "mb_per_s": 1.0, "mean_us": 100.0 * ios,
         "p99_us": 1000.0 + ios, "errors": 0, "mismatches": 0, "cpu_s": 0.5}), "]}")


def test_several_drives_of_a_side_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    side = ran(monkeypatch, lambda: Initiator(*output(100)), lambda: Initiator(*output(300)))
    found = side.turn("w", 1.0)
    assert (found.iops, found.mb_s, found.p99_us) == (200, 2.0, 1300)
    assert found.mean_us == (100 * 100 * 100 + 300 * 100 * 300) / 400
    assert found.initiator_cpu == 1.0 / 400 * 1e6


def test_an_initiator_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    side = ran(monkeypatch, lambda: Initiator("no answer", status=1))
    with pytest.raises(EssdError, match="new: the initiator failed: no answer; see"):
        side.turn("w", 1.0)


def test_the_load_is_given_to_the_initiator() -> None:
    config = Config("bench", "", "tcg", [Link(0, ["10.0.0.10/24"]), Link(1, ["10.0.1.10/24"])])
    words = Load(60, 16, 960, ports=2).options(config, Path("f"))
    assert " ".join(words) == (
        "--listen f/port0.sock --peer 10.0.0.10 --local 10.0.0.1 "
        "--listen f/port1.sock --peer 10.0.1.10 --local 10.0.1.1 "
        "--hosts 60 --queues 16 --depth 960 --namespaces 1 --span-mib 256")


def test_the_blocks_are_filled_once_whatever_the_machine_does(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds of writes leave blocks unwritten on a busy machine, and reads of those
    cost less."""
    program = tmp_path / "initiator"
    program.write_text("#!/bin/sh\ntouch port0.sock\necho \"$*\"\n")
    program.chmod(0o755)
    config = Config("bench", "", "tcg", [Link(0, ["10.0.0.10/24"])])
    config.drives["drive"] = Drive("", "", "", "raw", "nqn.x")
    one = turns.Bench(config, program, Path("."), 1500)
    monkeypatch.chdir(tmp_path)
    said, _ = one.filler(Load(namespaces=3)).communicate(timeout=LOOK_UP_S)
    assert "--only 128k-write-qd64" in said and said.endswith("--once\n")
    assert "--namespaces 3" in said


# An earlier drive

@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository in place of this checkout."""
    top = tmp_path / "top"
    (top / "tools/essd/build").mkdir(parents=True)
    (top / "tools/essd/build/__init__.py").touch()
    for name, function, result in (
            ("fw_build", "ensure_firmware", "F"), ("qemu_build", "ensure_qemu", "'/q/qemu'")):
        (top / f"tools/essd/build/{name}.py").write_text(
            "class F:\n    image, version = '/f/firmware.bin', '1.0'\n"
            f"def {function}():\n    return {result}\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(top)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True, timeout=LOOK_UP_S)
    monkeypatch.setenv("PYTHONPATH", str(paths.TOP / "tools"))
    monkeypatch.setattr(paths, "TOP", top)
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    return top


def test_a_revision_is_unpacked_once_and_built_by_its_own_tools(checkout: Path) -> None:
    (checkout / "tools/essd/build/qemu_build.py").write_text("not committed")
    built = bench_base.binaries("HEAD")
    assert (built.qemu, built.firmware.image) == (Path("/q/qemu"), Path("/f/firmware.bin"))
    folder = bench_base.checkout("HEAD")
    assert folder == bench_base.checkout("HEAD~0") and folder.is_relative_to(paths.cache())
    for n in range(5):          # Only the newest ones are kept.
        (checkout / "n").write_text(str(n))
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C",
                        str(checkout), "commit", "-q", "-m", str(n), "--allow-empty"],
                       check=True, timeout=LOOK_UP_S)
        bench_base.checkout("HEAD")
    assert len([one for one in folder.parent.iterdir() if one.is_dir()]) <= 6


def test_a_checkout_is_used_where_it_is(checkout: Path) -> None:
    assert bench_base.checkout(str(checkout)) == checkout
    (checkout / "tools/essd/build/qemu_build.py").write_text(
        "def ensure_qemu():\n    raise RuntimeError('no compiler')\n")
    with pytest.raises(EssdError, match="cannot be built: RuntimeError: no compiler"):
        bench_base.binaries(str(checkout))


@pytest.mark.parametrize("text", ["no-such-thing", "--help", "HEAD:tools"])
def test_what_is_neither_a_file_nor_a_revision_is_refused(checkout: Path, text: str) -> None:
    with pytest.raises(EssdError, match="nor a revision that git knows"):
        bench_base.checkout(text)


def test_a_folder_without_sources_is_refused(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(EssdError, match="this folder is no checkout of essd"):
        bench_base.checkout(str(tmp_path))


@pytest.mark.parametrize(("options", "why"), [
    ({"target": "nvmet"}, "--target does not go with --compare BASE"),
    ({"silent": 3}, "--silent does not go with --compare BASE"),
    ({"timing": bench.Timing("fast")}, "--timing does not go with --compare BASE"),
    ({"nand": "1G", "block": True}, "--nand does not go with --block"),
    ({"target": "nvmet", "growth": True}, "--target does not go with --growth"),
    ({"nand": "1G", "growth": True}, "--nand does not go with --growth"),
    ({"growth": True}, "--compare does not go with --growth"),
])
def test_options_of_other_runs_are_refused(options: dict[str, object], why: str) -> None:
    usual = {"native": False, "seconds": 1, "rounds": 1, "only": "", "mtu": 1500,
             "target": "both", "silent": 0, "nand": None,
             "output": bench.Output(compare="HEAD")}
    with pytest.raises(EssdError, match=why):
        bench.command(**{**usual, **options})       # type: ignore[arg-type]


# Growth

def test_each_axis_changes_one_thing() -> None:
    for axis in growth.AXES:
        few, many = axis.sides(Wish(mtu=1500))
        load = {key: value for key, value in vars(few.load).items()
                if vars(many.load)[key] != value}
        wish = [key for key, value in vars(few.wish).items()
                if vars(many.wish)[key] != value]
        total = [side.drives * (side.load.depth or 64) for side in (few, many)]
        assert total[0] == total[1], axis.name
        changed = {*load, *wish, *(["fill"] if few.fill != many.fill else []),
                   *(["drives"] if few.drives != many.drives else [])}
        assert changed in ({"hosts", "queues"}, {"hosts"}, {"namespaces"}, {"fill"},
                           {"drives", "depth"}, {"mtu"}, {"ports"}, {"hart"}), axis.name


def test_axes_are_chosen_by_name() -> None:
    assert [axis.name for axis in growth.wanted_axes("queues", True)] == [
        "queues", "busy-queues"]
    assert "fill" not in [axis.name for axis in growth.wanted_axes("", True)]
    with pytest.raises(EssdError, match="no axis contains this text; use queues, busy-queues"):
        growth.wanted_axes("x", False)
    with pytest.raises(EssdError, match="this axis is about NAND flash: not with --block"):
        growth.wanted_axes("fill", True)
