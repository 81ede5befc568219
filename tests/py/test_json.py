# SPDX-License-Identifier: BSD-2-Clause
"""`essd fields` lists the fields that commands print with --json, all and only those."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from fake_supervisor import FakeSupervisor
from metrics_bed import LookedAt
from test_aoe import DEVICE
from test_bmc import CannedBus, module
from test_cli_instances import make_drive
from test_crash import dump
from test_namespaces import CAPACITY, FIRST
from test_neighbours import PORTS as NEIGHBOURS
from test_port_lag import lacp
from test_requests import READ
from test_tcp import NVME, OPEN, WAIT
from typer.main import get_command
from typer.testing import CliRunner

from essd import cli
from essd.api.report import Report
from essd.base import paths, show
from essd.base.errors import EssdError
from essd.bench import (base as bench_base, bench, compare as bench_compare, contest,
                        growth as bench_growth, native as bench_native, paper as bench_paper,
                        turns as bench_turns)
from essd.cli import json_fields
from essd.conform import conform, results as conform_results
from essd.debug import crash, reflash
from essd.drive import bmc
from essd.instance.config import Link
from essd.observe import losses
from essd.settings import settings
from essd.setup import firmware_update
from essd.setup.setup import Config
from essd.storage import image
from essd.storage.flash import FlashImage

# Commands whose output is described on a page.
ELSEWHERE = {"trace": "docs/tracing.md"}


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Paths of all values that are neither objects nor lists.

    A key that is followed by an empty list or object is no path.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            # A dot in a key is not one between keys.
            yield from leaves(inner, f"{path}.{key.replace('.', '_')}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path


def matches(field: str, path: str) -> bool:
    """Whether a documented field is this path, or with a * at its end is above it."""
    pattern = re.escape(field).replace(r"\*", r"[^.\[]+")
    return re.fullmatch(pattern + (r"([.\[].*)?" if field.endswith("*") else ""),
                        path) is not None


def check(title: str, printed: Any) -> None:
    fields = json_fields.fields(title)
    paths_printed = set(leaves(printed))
    for path in paths_printed:
        assert any(matches(field, path) for field in fields), f"{path} is not documented"
    for field, meaning in fields.items():
        if not meaning.startswith("Only"):
            assert any(matches(field, path) for path in paths_printed), \
                f"{field} is not printed"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSupervisor]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "drives"))
    monkeypatch.setattr(reflash, "running_image",
                        lambda _instance: {"slot": "A", "build-id": "01" * 20})
    # Commands with --json send other lines to standard error, for good.
    monkeypatch.setattr(show.console, "stderr", False)
    paths.runtime()
    with FakeSupervisor("lab") as lab:
        lab.mgmt = {"status": {"firmware": "0.1.0", "serial": "S1"}, "lag": lacp(),
                    "modules": {"modules": [module(0), module(1)]},
                    "neighbours": {"ports": NEIGHBOURS}, "requests": {"requests": [READ]},
                    "tcp-connections": {"tcp-connections": [OPEN, NVME, WAIT]},
                    "aoe": {"on": True, "shelf": 7, "devices": [DEVICE]},
                    "namespaces": {**CAPACITY, "namespaces": [FIRST]},
                    "config": {"keys": [{"key": key, "saved": value, "in-force":
                                         "2" if key == "port.0.mtu" else value}
                                        for key, value in settings.DEFAULTS.items()]}}
        lab.parts["drive"]["restarts"] = ["watchdog"]
        lab.replies |= {"save": {"bytes": 5}, "faults": [
            {"name": "r", "site": "wire", "rule": "x", "on": True, "matched": 1, "fired": 0}]}
        yield lab


def run(*words: str) -> Any:
    done = CliRunner().invoke(cli.app, list(words))
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return json.loads(done.stdout)


@pytest.mark.parametrize("title", [
    "status", "port", "port --neighbours", "requests", "tcp", "aoe", "namespaces", "config",
    "save", "doctor", "faults"])
def test_the_fields_that_are_printed_are_those_that_are_documented(lab, title: str) -> None:
    check(title, run(*title.split(), "--json"))


def test_the_fields_of_dump_are_those_that_are_documented() -> None:
    frame = {"function": "f", "pc": 1, "file": "x.c", "line": 2, "inlined": False,
             "arguments": {"a": "1"}}
    check("dump", crash.facts(crash.parse(dump()), [frame]))


@pytest.mark.parametrize("question", ["", "vpd", "controllers"])
def test_the_fields_of_bmc_are_those_that_are_documented(
        lab, monkeypatch, question: str) -> None:
    monkeypatch.setattr(bmc, "ask", lambda _instance, asked:
                        bmc.QUESTIONS[asked](CannedBus.answering(asked)))
    words = ["bmc", *question.split()]
    check(" ".join(words), run(*words, "--json"))


def test_the_fields_of_list_are_those_that_are_documented(lab) -> None:
    make_drive("shelf")
    check("list", run("list", "--json"))


def test_the_fields_of_flash_are_those_that_are_documented(lab, monkeypatch) -> None:
    monkeypatch.setattr(reflash, "run", lambda *_: reflash.Done("A", "0.1.0", "01", {
        "build": 1.0}))
    check("flash", run("flash", "--json"))


def test_the_fields_of_firmware_are_those_that_are_documented(
        lab, tmp_path, monkeypatch) -> None:
    file = tmp_path / "firmware.img"
    file.write_bytes(image.Image(b"code" * 100, "1.2.3").file())
    check("firmware show", run("firmware", "show", str(file), "--json"))
    flash = FlashImage()
    flash.set_firmware(b"code" * 100, "1.2.3")
    flash.save(tmp_path / "flash.img")
    monkeypatch.setattr(firmware_update, "drive_file", lambda _: tmp_path / "flash.img")
    monkeypatch.setattr(firmware_update, "is_on", lambda _: False)
    check("firmware list", run("firmware", "list", "--json"))


def test_the_fields_of_paper_are_those_that_are_documented(lab, monkeypatch) -> None:
    row: dict[str, Any] = {key: 1 for key in (
        "ios", "iops", "mb_s", "virtual_s", "instructions", "write_amplification", "mean_ns",
        "max_ns", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "digest")}
    row |= {"busy": {"hart": 0.5}, "stages": {"medium": 0.5}, "over_time": [1], "histogram": {
        "unit": "ns", "significant_digits": 2, "counts": [[1, 1]]}}
    rows = {one.name: {"row": one.name, **row} for one in bench_paper.ROWS}
    rows |= {one.name: row for one in bench_paper.SCENARIOS}
    rows["precondition"] = {"points": [[5.0, 100.0, 1.0]]}
    monkeypatch.setattr(bench_paper, "run", lambda _settings, variants=(): {
        name: rows for name in ["base", *variants]})
    check("paper", run("paper", "--json"))
    check("paper", run("paper", "--sensitivity", "--json"))
    check("paper", run("paper", "--curve", "--json"))
    check("paper", run("paper", "--scenarios", "--json"))


def test_the_fields_of_conform_are_those_that_are_documented(lab, monkeypatch) -> None:
    results = conform_results.Results(drive={"mn": "m"}, complaints=["a crash"])
    results.tests.append(conform_results.Test("a.b", "a", "1", "p", "fail", "r", 1.0,
                                              ("one",), "x.pcap",
                                              exchange=("Read",)))

    def run_suite(_options: conform.Options) -> conform_results.Results:
        show.line("progress")
        return results

    monkeypatch.setattr(conform, "run", run_suite)
    check("conform", run("conform", "--json"))


def test_the_fields_of_bench_are_those_that_are_documented(lab, monkeypatch) -> None:
    row = bench.Row("w", "drive", *([1.0] * 7))

    class Fake:
        wait_ready = start = stop_started = of = on = lambda *_, **__: None
        claimed = nullcontext

    monkeypatch.setattr(bench, "Instance", lambda _name: Fake())
    monkeypatch.setattr(bench, "Job", Fake())
    monkeypatch.setattr(bench, "wait_target", lambda _job: None)
    monkeypatch.setattr(bench.setup, "configure", lambda _wish: None)
    monkeypatch.setattr(bench, "run", lambda *_: ([row], losses.Losses()))
    check("bench", run("bench", "--json", "--target", "drive"))


def test_the_fields_of_compare_are_those_that_are_documented(lab, monkeypatch) -> None:
    monkeypatch.setattr(bench_compare, "started", lambda *_: nullcontext(None))
    monkeypatch.setattr(bench_compare, "connect_all", lambda *_: ({"drive-roce": "/dev/a"}, {}))
    monkeypatch.setattr(bench_compare, "fill_all", lambda *_: None)
    monkeypatch.setattr(bench_compare.losses, "read", lambda _instance: losses.Losses())
    monkeypatch.setattr(contest.Reading, "of", lambda *_: contest.Reading(0, 0, 0, 0))
    monkeypatch.setattr(contest, "fio", lambda *_: None)
    monkeypatch.setattr(contest, "turn_of", lambda *_: contest.Turn(*([1.0] * 11)))
    monkeypatch.setattr(contest, "copy_turn", lambda *_: contest.CopyTurn(*([1.0] * 6)))
    check("compare", run("compare", "--json", "--only", "drive-roce"))


def test_the_fields_of_the_native_bench_are_those_that_are_documented(
        lab, monkeypatch) -> None:
    row = bench_native.Row("w", *([1.0] * 6))
    monkeypatch.setattr(bench_native, "build_initiator", lambda: Path("x"))
    monkeypatch.setattr(bench_native.setup, "configure", lambda _wish: Config(
        "bench", "", "tcg", [Link(0, ["10.0.0.10/24"])]))
    monkeypatch.setattr(bench_native, "Bench", lambda *_: None)
    monkeypatch.setattr(bench_native, "run", lambda *_: (
        [row], bench_native.Facts(1.0, 1.0, 1.0, 1.0)))
    check("bench --native", run("bench", "--native", "--json"))


@pytest.mark.parametrize("option", [("--compare", "HEAD"), ("--growth", "--only", "mtu")])
def test_the_fields_of_a_bench_in_turns_are_those_that_are_documented(
        lab, monkeypatch, option: tuple[str, ...]) -> None:
    row = bench_turns.Row("w", "base", *([1.0] * 12))
    for kind in (bench_base, bench_growth):
        monkeypatch.setattr(kind, "build_initiator", lambda: Path("x"))
    monkeypatch.setattr(bench_base, "binaries", lambda _base: None)
    monkeypatch.setattr(bench_turns, "measured", lambda *_: [row])
    check("bench --compare BASE", run("bench", "--json", *option))


def test_the_fields_of_top_are_those_that_are_documented(lab) -> None:
    with LookedAt("looked-at") as looked_at:
        looked_at.parts["drive"]["restarts"] = ["watchdog"]
        looked_at.critical_warning = 4
        check("top", run("top", "--json", "--name", "looked-at"))


def test_the_fields_of_clean_are_those_that_are_documented(
        lab, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache" / "log").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "cache" / "python-1"))
    (tmp_path / "cache" / "python-1").mkdir()
    check("clean", run("clean", "--json"))


def test_the_fields_of_scenario_list_are_those_that_are_documented(lab) -> None:
    check("scenario list", run("scenario", "list", "--json"))


def test_the_fields_of_a_report_are_those_that_are_documented() -> None:
    report = Report("x", "X", "Why?", facts={"host": "Linux"}, duration_s=1.0,
                    counters={"drive0": {"reads": 1}})
    report.event("something happens")
    report.check("it holds", True, "it did")
    report.figure("speed", 1, "MB/s")
    report.plot("speed", "MB/s", [(0, 1)])
    check("scenario run", report.as_json())


def commands_with_json(group: Any, above: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if any("--json" in parameter.opts for parameter in command.params):
            yield above + name
        if hasattr(command, "commands"):
            yield from commands_with_json(command, f"{above}{name} ")


def test_every_command_with_json_is_documented() -> None:
    for name in commands_with_json(get_command(cli.app)):
        assert (paths.TOP / ELSEWHERE[name]).exists() if name in ELSEWHERE \
            else json_fields.fields(name), f"essd {name} --json is not in {json_fields.FILE}"


def test_every_table_belongs_to_a_command_and_every_field_has_a_meaning() -> None:
    names = set(commands_with_json(get_command(cli.app)))
    for title, table in json_fields.tables().items():
        assert names & {title.partition(" --")[0], title.split()[0]}, title
        assert bool(table.fields) != bool(table.like), title
        assert all(table.fields.values()), title
        assert not table.like or json_fields.fields(table.like), title


def test_fields_lists_the_commands() -> None:
    assert CliRunner().invoke(cli.app, ["fields"]).stdout.split("\n")[:2] == ["list", "status"]


def test_fields_of_a_first_word_shows_all_its_tables() -> None:
    said = CliRunner().invoke(cli.app, ["fields", "firmware"]).stdout
    assert re.findall(r"^essd (.+)$", said, re.M) == [
        "firmware list", "firmware update", "firmware activate", "firmware show",
        "firmware pack"]
    assert "  The fields of essd firmware list." in said
    assert re.search(r"^  version +version of the image$", said, re.M)


@pytest.mark.parametrize("title", json_fields.tables())
def test_no_line_of_a_table_is_wide(title: str) -> None:
    assert max(map(len, json_fields.text(title).splitlines())) <= json_fields.COLUMNS


def test_fields_of_a_wrong_command_names_the_nearest() -> None:
    with pytest.raises(EssdError, match="no command 'prot' has fields; did you mean port"):
        json_fields.titles(["prot"])
