# SPDX-License-Identifier: BSD-2-Clause
"""`essd compare` without a machine: what is chosen, measured, left out and reported."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from essd import cli
from essd.base import cpu, show
from essd.base.errors import EssdError
from essd.bench import compare, compare_report, contenders, contest
from essd.bench.contenders import DRIVE, REFERENCE, ROWS
from essd.bench.contest import CopyTurn, Reading, SHAPES, Turn, WORKLOADS
from essd.instance.instance import Result
from essd.observe.losses import Losses
from essd.topology import reader

NAMES = [name for name, _ in WORKLOADS] + [shape.name for shape in SHAPES]
ROW_NAMES = [row.name for row in ROWS]
REPORT = {"error": 0, "mixed": {
    "total_ios": 2000, "iops": 1000.5, "bw_bytes": 4_098_048, "clat_ns": {
        "mean": 900_000, "percentile": {"50.000000": 800_000, "99.000000": 2_000_000,
                                        "99.900000": 3_000_000}}}}


class FakeInstance:
    """Answers scripts of guests: each fails whose text has one of the words in `failing`."""

    config = SimpleNamespace(drives={DRIVE: SimpleNamespace(nqn="nqn.drive")})

    def __init__(self, *failing: str, output: str = "") -> None:
        self.failing = failing
        self.output = output
        self.scripts: list[tuple[str, str]] = []

    def run(self, script: str, part: str = "host", **_options: Any) -> Result:
        self.scripts.append((part, script))
        if any(word in script for word in self.failing):
            return Result(script, 1, "something\nit is not there\n")
        return Result(script, 0, self.output)

    def check(self) -> None:
        pass


# What is chosen

def test_everything_is_chosen_without_only() -> None:
    chosen = compare.choose([])
    assert [row.name for row in chosen.rows] == ROW_NAMES
    assert list(chosen.workloads) == NAMES


@pytest.mark.parametrize("only, rows, workloads", [
    (["drive-roce"], ["drive-roce"], NAMES),
    (["roce,4k-randread-qd1"], ["drive-roce", "nvmet-roce"],
     ["4k-randread-qd1", "4k-randread-qd128"]),
    (["AoE", "128k-write"], ["drive-aoe", "vblade-aoe"], ["128k-write"]),
    (["copy"], ROW_NAMES, ["copy-8k-x1", "copy-2m-x16"]),
    # A text twice, and in another order: the order is that of the table.
    (["nvmet-tcp, drive-tcp-tls", "nvmet-tcp"], ["drive-tcp-tls", "nvmet-tcp"], NAMES)])
def test_words_choose_rows_and_workloads(only: list[str], rows: list[str],
                                         workloads: list[str]) -> None:
    chosen = compare.choose(only)
    assert [row.name for row in chosen.rows] == rows
    assert list(chosen.workloads) == workloads


@pytest.mark.parametrize("only, said", [
    (["infiniband"], "--only infiniband: no row and no workload contains this text; rows: "
                     "drive-roce, "),
    (["roce,"], "--only : no row and no workload"),
    (["nvmet-tcp,copy"], "copies are compared by drive-roce and drive-tcp alone")])
def test_words_that_choose_nothing_are_refused(only: list[str], said: str) -> None:
    with pytest.raises(EssdError) as caught:
        compare.choose(only)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("words, said", [
    (("--rounds", "0"), "--rounds 0: use 1 or more"),
    (("--seconds", "-1"), "--seconds -1: use 1 or more"),
    (("--host-kind", "windows"), "windows"),
    (("--html", "/nowhere/at/all.html"), "there is no folder /nowhere/at"),
    (("--only", "x y"), "--only x y: no row")])
def test_mistakes_are_refused_before_anything_starts(
        monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str) -> None:
    monkeypatch.setattr(compare, "started", None)
    done = CliRunner().invoke(cli.app, ["compare", *words])
    assert isinstance(done.exception, EssdError) and said in str(done.exception)


def test_rows_that_need_a_guest_that_is_not_there_are_left_out_with_the_reason(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare.guest_variant, "PEERS", tmp_path / "none")
    chosen = compare.without_peers(compare.choose([]))
    assert set(chosen.reasons) == {"drive-tcp-tls", "lio-iscsi", "vblade-aoe"}
    assert all("does not describe a guest" in reason for reason in chosen.reasons.values())
    assert not chosen.needs_peers and compare.guest_for(chosen, "uml") == ""
    with pytest.raises(EssdError, match="no row can be measured: .*does not describe a guest"):
        compare.command("uml", 1, 1, ["lio,vblade"], False, None)


def test_only_rows_that_need_it_bring_the_guest_of_the_peers() -> None:
    assert compare.guest_for(compare.choose(["roce,nvmet"]), "uml") == ""
    assert compare.guest_for(compare.choose(["lio"]), "uml") != ""
    assert compare.guest_for(compare.choose(["tls"]), "uml") != ""
    # Debian's kernel has siw and aoe in that guest only.
    assert compare.guest_for(compare.choose(["drive"]), "stock") != ""


@pytest.mark.parametrize("only, parts", [
    (["drive"], {"host", "net0", "net1", "drive"}),
    (["nvmet"], {"host", "net0", "net1", "reference"}),
    ([], {"host", "net0", "net1", "drive", "reference"})])
def test_the_topology_has_what_the_rows_need(tmp_path: Path, only: list[str],
                                             parts: set[str]) -> None:
    settings = tmp_path / "settings.yaml"
    rows = list(compare.choose(only).rows)
    settings.write_text(contenders.settings_text(rows))
    found = reader.load(contenders.topology_text(rows, "uml", "", str(settings)), "x", tmp_path)
    assert set(found.parts()) == parts
    for part, addresses in contenders.ADDRESSES.items():
        own = (found.drives[part].ports if part in found.drives else
               found.hosts[part].cards if part in found.hosts else None)
        assert own is None or tuple(str(own[n][0].ip) for n in range(2)) == addresses


# Reasons

def test_a_row_that_cannot_be_connected_has_the_last_line_as_its_reason() -> None:
    instance = FakeInstance("serve-aoe", "tlshd", output="connecting to device: nvme0\n")
    rows = [row for row in ROWS if row.name in ("nvmet-tcp", "vblade-aoe", "drive-tcp-tls")]
    devices, reasons = contenders.connect_all(instance, rows)    # type: ignore[arg-type]
    assert devices == {"nvmet-tcp": "/dev/nvme0n1"}
    assert reasons == {"vblade-aoe": "vblade failed: it is not there",
                       "drive-tcp-tls": "tlshd failed: it is not there"}


class TlsInstance(FakeInstance):
    """A host with a keyring, and a drive that notes what it is told."""

    def __init__(self, keys: str) -> None:
        super().__init__(output="connecting to device: nvme4")
        self.keys = keys
        self.told: list[dict[str, Any]] = []

    def run(self, script: str, part: str = "host", **options: Any) -> Result:
        done = super().run(script, part, **options)
        return Result(script, 0, self.keys) if "gen-tls-key" in script else done

    @property
    def drive(self) -> str:
        return DRIVE

    def of(self, part: str) -> "TlsInstance":
        assert part == DRIVE
        return self

    def ask(self, command: str, **arguments: Any) -> Any:
        assert (command, arguments["request"]) == ("mgmt", "host-set")
        self.told.append(arguments["arguments"])
        return {}


def test_the_row_with_tls_gives_the_key_to_both_ends() -> None:
    instance = TlsInstance("nqn.host NVMeTLSkey-1:01:abc: 1a2b\n")
    row = next(row for row in ROWS if row.connect is contenders.by_tls)
    devices, reasons = contenders.connect_all(instance, [row])  # type: ignore[arg-type]
    assert (devices, reasons) == ({"drive-tcp-tls": "/dev/nvme4n1"}, {})
    assert instance.told == [{"nqn": "nqn.host", "tls-key": "NVMeTLSkey-1:01:abc:"}]
    connect = next(script for _, script in instance.scripts if "nvme connect" in script)
    assert "--tls --tls_key=0x1a2b" in connect and "NVMeTLSkey" not in connect


@pytest.mark.parametrize("keys", ["", "nqn.host NVMeTLSkey-1:01:abc: 1a2b 1a2c"])
def test_a_keyring_without_just_one_key_is_a_reason(keys: str) -> None:
    instance = TlsInstance(keys)
    row = next(row for row in ROWS if row.connect is contenders.by_tls)
    reasons = contenders.connect_all(instance, [row])[1]        # type: ignore[arg-type]
    assert "did not put one key into the host's keyring" in reasons["drive-tcp-tls"]
    assert not instance.told


def test_the_drive_speaks_tls_only_if_a_row_needs_it() -> None:
    assert "tls: allowed" in contenders.settings_text(ROWS)
    assert "tls" not in contenders.settings_text(
        [row for row in ROWS if row.connect is not contenders.by_tls])


def test_a_host_without_siw_has_no_iwarp() -> None:
    instance = FakeInstance("modprobe siw")
    rows = [row for row in ROWS if row.name == "nvmet-iwarp"]
    reasons = contenders.connect_all(instance, rows)[1]         # type: ignore[arg-type]
    assert reasons == {"nvmet-iwarp": "siw in the kernel of host failed: it is not there"}


def test_a_connection_without_a_device_is_no_success() -> None:
    instance = FakeInstance(output="connected to something\n")
    row = next(row for row in ROWS if row.name == "nvmet-roce")
    with pytest.raises(EssdError, match="does not name the device: connected to something"):
        contenders.connect_nvme(instance, row, contenders.NQN)  # type: ignore[arg-type]


def test_the_row_with_digests_asks_for_both_and_others_for_none() -> None:
    for row in ROWS:
        if row.kind == "tcp" and row.connect is contenders.by_nvmet or "digests" in row.name:
            instance = FakeInstance(output="nvme3")
            contenders.connect_nvme(instance, row, contenders.NQN)      # type: ignore[arg-type]
            asked = [word for part, script in instance.scripts for word in script.split()
                     if word in ("-g", "-G")]
            assert asked == (["-g", "-G"] if "digests" in row.name else []), row


def test_each_port_of_nvmet_is_one_of_its_own() -> None:
    instance = FakeInstance(output="nvme3")
    rows = [row for row in ROWS if row.connect is contenders.by_nvmet]
    contenders.connect_all(instance, rows)                      # type: ignore[arg-type]
    ports = [script for part, script in instance.scripts if part == REFERENCE
             and "nvmet/ports/" in script]
    assert len({script.splitlines()[1] for script in ports}) == len(rows) == 3


# Turns

def test_the_figures_of_a_turn_are_those_of_one_io() -> None:
    turn = contest.turn_of(REPORT, Reading(0.5, 1.5, 8000, 10_000_000))
    assert turn == Turn(1000.5, 4.098048, 900, 800, 2000, 3000, 250, 750, 4, 5000, 2000)


@pytest.mark.parametrize("change", [{"error": 5}, {"mixed": {"total_ios": 0}}])
def test_a_run_with_an_error_or_without_io_gives_no_figures(change: dict[str, Any]) -> None:
    with pytest.raises(EssdError, match="fio ended with error"):
        contest.turn_of({**REPORT, **change}, Reading(0, 0, 0, 0))


def test_each_round_begins_with_another_row() -> None:
    order: list[str] = []
    found = contest.in_turns(["a", "b", "c"], 4, lambda name: order.append(name) or len(order))
    assert "".join(order) == "abc" "bca" "cab" "abc"
    assert found == {"a": [1, 6, 8, 10], "b": [2, 4, 9, 11], "c": [3, 5, 7, 12]}


def test_a_row_has_the_medians_and_the_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = iter([10.0, 30.0, 20.0])
    monkeypatch.setattr(contest, "fio", lambda *_: None)
    monkeypatch.setattr(contest, "turn_of", lambda *_: Turn(next(speeds), *([1.0] * 10)))
    monkeypatch.setattr(Reading, "of", lambda *_: Reading(0, 0, 0, 0))
    said: list[str] = []
    rows = [row for row in ROWS if row.name in ("drive-roce", "drive-aoe")]
    one = contest.Contest(None, rows, {"drive-aoe": "/dev/x"}, 3,     # type: ignore[arg-type]
                          said.append).run("128k-read", 1)
    assert [(row["row"], row["iops"], row["iops_low"], row["iops_high"]) for row in one] == [
        ("drive-aoe", 20, 10, 30)]
    assert said == ["128k-read, drive-aoe"] * 3


def test_a_row_that_fails_has_no_more_turns_and_the_others_go_on(
        monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []

    def fio(_instance: Any, device: str, *_options: Any) -> Any:
        used.append(device)
        if device == "bad" and used.count("bad") == 2:
            raise EssdError("fio: no such device")
        return REPORT

    def copy_turn(_instance: Any, row: contenders.Contender, *_options: Any) -> CopyTurn:
        assert row.name == "drive-tcp"
        return CopyTurn(*([1.0] * 6))

    monkeypatch.setattr(contest, "fio", fio)
    monkeypatch.setattr(contest, "copy_turn", copy_turn)
    monkeypatch.setattr(Reading, "of", lambda *_: Reading(0, 0, 0, 0))
    rows = [row for row in ROWS if row.name in ("drive-roce", "drive-tcp")]
    run = contest.Contest(FakeInstance(), rows,                 # type: ignore[arg-type]
                          {"drive-roce": "bad", "drive-tcp": "good"}, 3, lambda _text: None)
    # A row that has failed in one round has no median of the others.
    assert [row["row"] for row in run.run("128k-write", 1)] == ["drive-tcp"]
    assert run.reasons == {"drive-roce": "from 128k-write on: fio: no such device"}
    assert [row["row"] for row in run.run("128k-read", 1)] == ["drive-tcp"]
    assert used.count("bad") == 2 and used.count("good") == 6
    assert {row["row"] for row in run.copy(SHAPES[0])} == {"drive-tcp"}


def test_a_part_that_has_crashed_ends_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    class Crashed(FakeInstance):
        def check(self) -> None:
            raise EssdError("drive has crashed")

    def fail(*_arguments: Any) -> Any:
        raise EssdError("fio: no such device")

    monkeypatch.setattr(Reading, "of", fail)
    with pytest.raises(EssdError, match="drive has crashed"):
        contest.Contest(Crashed(), ROWS, {"drive-aoe": "/dev/x"}, 1,    # type: ignore[arg-type]
                        lambda _text: None).run("128k-read", 1)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_both_ways_of_a_copy_name_the_same_blocks(shape: contest.Shape) -> None:
    drive, start = contest.copy_commands("/dev/x", shape, contest.BY_DRIVE)
    words = dict(word.lstrip("-").split("=") for word in drive.split() if "=" in word)
    assert int(words["sdlba"]) * contest.BLOCK == contest.COPY_TO and start == "nvme version"
    lengths = [(int(word) + 1) * contest.BLOCK for word in words["blocks"].split(",")]
    assert lengths == [shape.bytes] * shape.ranges
    sources = [int(word) * contest.BLOCK for word in words["slbs"].split(",")]
    host, start = contest.copy_commands("/dev/x", shape, contest.BY_HOST)
    commands = [dict(word.split("=") for word in one.split() if "=" in word)
                for one in host.split(" && ")]
    assert [int(one["skip"]) * shape.bytes for one in commands] == sources
    assert [int(one["seek"]) * shape.bytes for one in commands] == [
        contest.COPY_TO + n * shape.bytes for n in range(shape.ranges)]
    assert start.count("dd ") == shape.ranges
    # No source lies where the copies go.
    assert max(sources) + shape.bytes <= contest.COPY_TO


def test_the_time_of_a_process_has_that_of_its_children() -> None:
    burn = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"
    script = ("import subprocess, sys\n" + burn.format(0.1)
              + f"subprocess.run([sys.executable, '-c', {burn.format(0.3)!r}])\n"
              + f"subprocess.Popen([sys.executable, '-c', {burn.format(0.2)!r}"
              + " + 'print(1, flush=True); time.sleep(60)'], stdout=sys.stdout)\n"
              + "sys.stdin.read()\n")
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"1\n"
            # 0.1 s of its own, 0.3 s of a child that has ended, 0.2 s of one that lives.
            assert cpu.tree_seconds([process.pid]) >= 0.55
            assert cpu.tree_seconds([]) == 0
        finally:
            os.killpg(process.pid, 9)
    assert cpu.tree_seconds([process.pid]) == 0


# The report

def figures(workload: str, row: str, value: float) -> dict[str, Any]:
    return {"workload": workload, "row": row, **{name: value for name in Turn.__annotations__},
            "iops_low": value, "iops_high": value}


def results() -> dict[str, Any]:
    return {"host_kind": "uml", "rows": [
        {"row": "drive-roce", "what": "drive, NVMe/RoCE", "target": DRIVE, "reason": ""},
        {"row": "drive-tcp-tls", "what": "drive, NVMe/TCP with TLS", "target": DRIVE,
         "reason": "there is <no> TLS"}],
        "workloads": [figures("128k-read", "drive-roce", 1234.5)],
        "copies": [{"workload": "copy-8k-x1", "row": "drive-roce", "by": "host",
                    **{name: 77.25 for name in CopyTurn.__annotations__}}],
        "seconds": 2, "rounds": 3, "cores": 2, "load_before": [1.5, 0, 0],
        "load_after": [2.5, 0, 0], "losses": "frames lost: none", "losses_known": True}


def test_the_tables_show_all_figures_reasons_and_the_load(
        monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    monkeypatch.setattr(show, "console", console)
    compare_report.show_tables(results())
    text = console.export_text()
    for part in ("128k-read", "drive-roce", "1234", "copy-8k-x1", "77.2",
                 "drive-tcp-tls (drive, NVMe/TCP with TLS) is left out: there is <no> TLS",
                 "3 rounds of 2 s, host: uml", "load average 1.5", "2.5 at the end"):
        assert part in text, part


def test_the_page_has_a_chart_of_each_figure_and_the_reasons(tmp_path: Path) -> None:
    compare_report.write(tmp_path / "x.html", results())
    text = (tmp_path / "x.html").read_text()
    assert text.count("<h2>") == len(compare_report.COLUMNS) + len(compare_report.COPY_COLUMNS)
    assert "there is &lt;no&gt; TLS" in text and "drive-roce host" in text
    with pytest.raises(EssdError, match="--html"):
        compare_report.write(tmp_path, results())


def test_every_figure_has_a_column() -> None:
    assert [name for name, *_ in compare_report.COLUMNS] == list(Turn.__annotations__)
    assert [name for name, *_ in compare_report.COPY_COLUMNS] == list(CopyTurn.__annotations__)


def test_losses_that_are_not_known_end_the_command_with_an_error(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from contextlib import nullcontext
    monkeypatch.setattr(compare, "started", lambda *_: nullcontext(None))
    monkeypatch.setattr(compare, "measure", lambda *_: {
        **results(), "losses_known": False})
    monkeypatch.setattr(show.console, "stderr", False)
    with pytest.raises(EssdError, match="may be those of a connection that lost frames"):
        compare.command("uml", 1, 1, [], True, None)
    assert json.loads(capsys.readouterr().out)["host_kind"] == "uml"


def test_the_rest_of_the_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    chosen = compare.choose(["drive-roce,drive-aoe", "copy-8k,128k"])
    turns = compare.Turns(chosen, chosen.rows, 3)
    # Two workloads of two rows, and two ways to copy by one of them.
    assert turns.total == 3 * (2 * 2 + 2)
    turns.report = said.append
    turns.begin = time.monotonic()
    monkeypatch.setattr(compare.time, "monotonic", lambda: turns.begin + 10)
    turns.next("a")
    turns.next("b")
    assert said == ["turn 1 of 18: a", "turn 2 of 18: b, about 170 s left"]


def test_everything_is_measured_and_what_is_left_out_is_a_row(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "connect_all", lambda *_: (
        {"drive-roce": "/dev/a"}, {"drive-tcp-tls": "no TLS"}))
    monkeypatch.setattr(compare, "fill_all", lambda *_: None)
    monkeypatch.setattr(compare.losses, "read", lambda _instance: Losses())
    monkeypatch.setattr(contest, "fio", lambda *_: REPORT)
    monkeypatch.setattr(contest, "copy_turn", lambda *_: CopyTurn(*([1.0] * 6)))
    monkeypatch.setattr(Reading, "of", lambda *_: Reading(0, 0, 0, 0))
    chosen = compare.choose(["drive-roce,tls"])
    data = compare.measure(None, chosen, 1, 1)                  # type: ignore[arg-type]
    assert {row["row"]: row["reason"] for row in data["rows"]} == {
        "drive-roce": "", "drive-tcp-tls": "no TLS"}
    assert [row["workload"] for row in data["workloads"]] == [name for name, _ in WORKLOADS]
    assert [(row["workload"], row["by"]) for row in data["copies"]] == [
        (shape.name, by) for shape in SHAPES for by in ("drive", "host")]
    monkeypatch.setattr(compare, "connect_all", lambda *_: ({}, {"drive-tcp-tls": "no TLS"}))
    with pytest.raises(EssdError, match="no row can be measured: no TLS"):
        compare.measure(None, chosen, 1, 1)                     # type: ignore[arg-type]
