# SPDX-License-Identifier: BSD-2-Clause
"""Results of `essd bench`: read, compared, drawn."""

import dataclasses
import json
from pathlib import Path

import pytest
from rich.console import Console

from essd.base import paths
from essd.base.errors import EssdError
from essd.bench import (bench, media as bench_media, nand as bench_nand, native as bench_native,
                        report as bench_report)
from essd.topology import reader as topology_yaml

HOST_ROW = bench.Row("4k-randread-qd1", "peer", 1000.4, 4.1, 500, 900, 150, 800, 0.8)
NATIVE_ROW = bench_native.Row("4k-randread-qd1", 4000, 16, 240, 700, 190, 100)


def saved(path: Path, *rows: bench.Row) -> Path:
    path.write_text(json.dumps([dataclasses.asdict(row) for row in rows]))
    return path


def test_both_kinds_of_runs_have_the_same_workloads() -> None:
    assert tuple(name for name, _ in bench.WORKLOADS) == bench_native.WORKLOADS


def test_results_of_both_kinds_are_read(tmp_path: Path) -> None:
    found = bench_report.load(saved(tmp_path / "host.json", HOST_ROW))
    assert found == [bench_report.Result("4k-randread-qd1", "nvmet", {
        "iops": 1000.4, "mb_s": 4.1, "mean_us": 500, "p99_us": 900, "cpu": 150})]
    native = bench_report.results_of({"workloads": [dataclasses.asdict(NATIVE_ROW)],
                                      "idle_mib": 1})
    assert (native[0].target, native[0].values["cpu"]) == ("drive", 190)


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", '{"workloads": [{}]}', "null",
                                  "[" * 100000, json.dumps([{
                                      "workload": "w", **{keys[0]: float("inf") for
                                      _, keys, _, _ in bench_report.COLUMNS}}]),
                                  '[{"workload": "w"}]', '[{"workload": "w", "iops": "x"}]'])
def test_a_file_without_results_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(EssdError, match="the file has no results; write one with"):
        bench_report.load(path)
    with pytest.raises(EssdError, match="No such file"):
        bench_report.load(tmp_path / "none.json")


def text_of(table: object) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    return console.export_text()


def test_two_runs_are_compared_by_workload_and_target() -> None:
    faster = dataclasses.replace(HOST_ROW, iops=1500.6, target_cpu=75)
    old = bench_report.results_of([dataclasses.asdict(HOST_ROW)])
    new = bench_report.results_of([dataclasses.asdict(faster)])
    text = text_of(bench_report.compare(old, new))
    assert "1000 -> 1501 (+50.0%)" in text and "150 -> 75 (-50.0%)" in text
    other = bench_report.results_of([dataclasses.asdict(
        dataclasses.replace(HOST_ROW, target="drive"))])
    with pytest.raises(EssdError, match="no workload in common"):
        bench_report.compare(old, other)


def test_the_page_needs_no_other_file_and_shows_every_value(tmp_path: Path) -> None:
    old = bench_report.results_of([dataclasses.asdict(HOST_ROW)])
    new = bench_report.results_of([dataclasses.asdict(
        dataclasses.replace(HOST_ROW, iops=500.2))])
    path = tmp_path / "bench.html"
    bench_report.write_page(path, new, old, "a <b> & c")
    page = path.read_text()
    assert "a &lt;b&gt; &amp; c" in page and "(-50.0%)" in page
    assert "4k-randread-qd1, nvmet" in page
    assert not any(word in page for word in ("http", "src=", "<link", "<script"))
    with pytest.raises(EssdError, match="--html"):
        bench_report.write_page(tmp_path / "none" / "x.html", new, None, "t")


def nand_rows() -> list[bench_native.Row]:
    return [dataclasses.replace(NATIVE_ROW, target=target, drive_cpu=cpu)
            for target, cpu in (("block", 100.0), ("nand", 120.0))]


def test_a_drive_with_nand_is_compared_with_one_without() -> None:
    assert bench_nand.cost_ratios(nand_rows()) == {"4k-randread-qd1": pytest.approx(1.2)}
    found = bench_report.results_of({"workloads": [dataclasses.asdict(r)
                                                   for r in nand_rows()]})
    assert [result.target for result in found] == ["block", "nand"]


def test_sequential_workloads_come_before_random_writes_spread_the_data() -> None:
    names = [name for name, _ in bench_nand.steps("")]
    assert set(bench_native.WORKLOADS) < set(names)
    last_sequential = max(n for n, name in enumerate(names[:-1]) if "rand" not in name)
    assert last_sequential < min(n for n, name in enumerate(names) if "rand" in name)
    assert bench_nand.steps("")[-1] == (bench_nand.SPREAD, bench_nand.SPREAD_NAME)
    assert bench_nand.steps("128k-read") == [(bench_nand.SPREAD, bench_nand.SPREAD)]
    with pytest.raises(EssdError, match="no workload contains this text; use 128k-"):
        bench_nand.steps("64k")


def test_the_rounds_of_a_drive_count_as_their_median() -> None:
    rows = [dataclasses.replace(NATIVE_ROW, drive_cpu=cpu, target="nand")
            for cpu in (100.0, 900.0, 110.0)]
    assert bench_nand.median(rows) == dataclasses.replace(rows[2], drive_cpu=110.0)


@pytest.mark.parametrize(("native", "silent", "target", "why"), [
    (True, 3, "both", "--nand: not with --silent"),
    (False, 0, "nvmet", "--nand measures two drives: not with --target nvmet"),
    (False, 0, "drive", "--nand measures two drives: not with --target drive"),
])
def test_nand_is_refused_with_options_of_other_runs(native: bool, silent: int, target: str,
                                                    why: str) -> None:
    with pytest.raises(EssdError, match=why):
        bench.command(native, 1, 1, "", 1500, target, silent, "1G", bench.Output())


def test_a_linux_host_measures_both_media_in_the_order_of_the_native_run() -> None:
    assert [name for name, _ in bench_media.WORKLOADS] == list(bench_nand.WORKLOADS)
    rows = [dataclasses.replace(HOST_ROW, target=target, target_cpu=cpu)
            for target, cpu in (("nand", 110.0), ("block", 100.0))]
    assert bench_media.cost_ratios(rows) == {HOST_ROW.workload: 1.1}


def test_the_topology_of_both_media_is_accepted() -> None:
    found = topology_yaml.load(bench_media.topology_text("1G,plp=on", 1500), "test", paths.TOP)
    assert sorted(found.drives) == ["block", "nand"]
