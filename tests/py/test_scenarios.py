# SPDX-License-Identifier: BSD-2-Clause
"""Scenarios and their reports, without virtual machines (docs/scenarios.md)."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import essd
from essd import cli
from essd.api import report, scenarios
from essd.api.fio import Clocks, Fio, Load, percentile
from essd.api.report import Report
from essd.api.scenarios import Scenario, Script
from essd.base import cpu, paths
from essd.topology import reader as topology_yaml

NAMES = scenarios.names()


# What is refused before anything starts

@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A test that starts something fails; reports are written to a folder of the test."""
    from essd.api import system

    def up(**_: object) -> None:
        raise AssertionError("essd.up was called")

    monkeypatch.setattr(system, "up", up)
    monkeypatch.chdir(tmp_path)


def refused(*words: str) -> str:
    with pytest.raises(essd.EssdError) as error:
        CliRunner().invoke(cli.app, ["scenario", "run", *words], catch_exceptions=False)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_an_unknown_scenario_is_refused_with_the_nearest_name() -> None:
    assert refused("failovr").endswith("; did you mean failover?")
    assert "must be " in refused("zzzz") and "raid" in refused("zzzz")


def test_a_missing_topology_is_refused_with_the_nearest_example() -> None:
    said = refused("failover", "--topology", "dual-prt.yaml")
    assert said == ("topology dual-prt.yaml: there is no such file; did you mean "
                    "dual-port.yaml?")


def test_a_script_that_is_no_scenario_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    assert refused(str(script)).endswith("there is no such file")
    script.write_text("x = 1\n")
    assert "SCENARIO" in refused(str(script))
    script.write_text("1 / 0\n")
    assert "ZeroDivisionError" in refused(str(script))


def test_a_topology_that_is_too_small_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text("drives: {drive0: {size: 64M}}\nhosts: {host: {}}\n"
                    "cables: [host - drive0:0]\n")
    assert "needs 4 drives, and this topology has 1" in refused(
        "raid", "--topology", str(file))
    assert "needs 1 drive with a cable at both ports, and this topology has 0" in refused(
        "failover", "--topology", str(file))


def test_a_host_without_the_programs_is_refused_with_what_to_write(tmp_path: Path) -> None:
    file = tmp_path / "plain.yaml"
    file.write_text((scenarios.TOPOLOGIES / "scenario-four.yaml").read_text()
                    .replace(", guest: ../scenarios/guest", ""))
    said = refused("raid", "--topology", str(file))
    assert re.search(r"plain\.yaml:\d+:\d+: host has no mdadm: give it guest: ", said)


def test_missing_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "memory_mib", lambda: 300)
    assert "MiB of memory, and this machine has 300 MiB left" in refused("failover")


def test_missing_disk_space_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios.shutil, "disk_usage",     # type: ignore[attr-defined]
                        lambda _: SimpleNamespace(free=5 << 20))
    assert "which has 5 MiB left" in refused("failover")


def test_a_folder_that_cannot_be_made_is_refused_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refused("failover", "--out", str(tmp_path / "file" / "x")).startswith("--out ")


# The scenarios' own files

@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_fits_its_own_topology(name: str) -> None:
    script = scenarios.load(name)
    path, topology = scenarios.read_topology(script.scenario, None)
    assert path.is_relative_to(paths.TOP / "examples/topologies")
    assert len(topology.drives) >= script.scenario.drives
    assert script.scenario.question.endswith("?")


@pytest.mark.parametrize("name", NAMES)
def test_the_page_describes_every_scenario(name: str) -> None:
    page = (paths.TOP / "docs/scenarios.md").read_text(encoding="utf-8")
    assert f"essd scenario run {name}" in page


def test_the_list_has_every_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    said = CliRunner().invoke(cli.app, ["scenario", "list", "--json"]).output
    assert [entry["name"] for entry in json.loads(said)] == NAMES
    assert all(name in CliRunner().invoke(cli.app, ["scenario", "list"]).output
               for name in NAMES)


# A run

@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Script]:
    """A scenario that runs on a system without any machine."""
    from essd.api import system
    from essd.observe import losses

    class Fake:
        drives: tuple[()] = ()
        instance = SimpleNamespace(config=SimpleNamespace(accel="tcg"))
        host = SimpleNamespace(read=lambda _: "6.12\n")
        is_closed = False

        def __enter__(self) -> "Fake":
            return self

        def __exit__(self, *_: object) -> None:
            Fake.is_closed = True

        def check(self) -> None:
            pass

    def read(_: object) -> losses.Losses:
        assert not Fake.is_closed
        return losses.Losses({"host: eth0 pfifo": 3})

    monkeypatch.setattr(system, "up", lambda **_: Fake())
    monkeypatch.setattr(losses, "read", read)

    def make(run: Callable[[Any, Report], None]) -> Script:
        of = Scenario(title="A try", question="Does it work?", topology="dual-port.yaml")
        return Script("try", Path("try.py"), of, run)

    return make


def test_a_run_writes_a_report_in_three_formats(
        fake: Callable[..., Script], tmp_path: Path) -> None:
    def run(_: Any, report: Report) -> None:
        report.event("something | happens")
        report.figure("speed", 12.3456, "MB/s")
        report.plot("I/Os per second", "1/s", [(0, 10), (1, 0), (2, 20)])
        report.check("no byte is wrong", True, "<b>7</b> blocks")

    assert scenarios.command(fake(run), None, tmp_path / "out", False) == 0
    data = json.loads((tmp_path / "out/report.json").read_text())
    assert data["verdict"] == "passed"
    lost = "frames lost between drive and host: host: eth0 pfifo 3"
    assert data["facts"]["losses"] == lost
    assert data["figures"] == [{"name": "speed", "value": 12.35, "unit": "MB/s"}]
    text = (tmp_path / "out/report.md").read_text()
    assert lost in text and "**Verdict: passed**" in text and "something \\| happens" in text
    assert "▅ █" in text
    page = (tmp_path / "out/report.html").read_text()
    assert "&lt;b&gt;7&lt;/b&gt; blocks" in page and "<polyline" in page


def test_a_check_that_does_not_hold_fails_the_run(
        fake: Callable[..., Script], tmp_path: Path) -> None:
    def run(_: Any, report: Report) -> None:
        report.check("no byte is wrong", False)
        report.check("something else", True)

    assert scenarios.command(fake(run), None, tmp_path, False) == 1
    assert "**Verdict: failed**" in (tmp_path / "report.md").read_text()


def test_an_error_makes_the_report_incomplete_and_is_in_it(
        fake: Callable[..., Script], tmp_path: Path) -> None:
    def run(_: Any, report: Report) -> None:
        report.check("no byte is wrong", True)
        raise essd.EssdError("the drive has gone")

    assert scenarios.command(fake(run), None, tmp_path, False) == 1
    data = json.loads((tmp_path / "report.json").read_text())
    assert (data["verdict"], data["error"]) == ("incomplete", "the drive has gone")
    assert "the drive has gone" in data["timeline"][-1]["text"]


def test_an_interrupt_ends_the_system_and_writes_no_report(
        fake: Callable[..., Script], tmp_path: Path) -> None:
    def run(_: Any, report: Report) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scenarios.command(fake(run), None, tmp_path, False)
    from essd.api import system
    up: Any = system.up     # the fake of this test
    assert up().is_closed
    assert not list(tmp_path.glob("report.*"))


def test_json_alone_is_on_standard_output(
        fake: Callable[..., Script], tmp_path: Path,
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios.show.console, "stderr", False)
    scenarios.command(fake(lambda _, report: report.check("x", True)), None, tmp_path, True)
    assert json.loads(capsys.readouterr().out)["verdict"] == "passed"


# Reports and loads

def test_a_report_without_a_check_has_not_passed() -> None:
    assert Report("x", "X").verdict == "incomplete"


def test_counters_of_a_drive_that_restarted_count_from_its_power_on() -> None:
    values = {"a": {"uptime-ms": 9000, "reads": 10}, "b": {"uptime-ms": 9000, "reads": 10}}

    def drive(name: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, metrics=lambda: dict(values[name]))

    system: Any = SimpleNamespace(drives=[drive("a"), drive("b")])
    found = Report("x", "X")
    found.count_from_now(system)
    values["a"] = {"uptime-ms": 9500, "reads": 17}
    values["b"] = {"uptime-ms": 100, "reads": 3}
    found.count(system)
    assert found.counters["a"]["reads"] == 7
    assert found.counters["b"]["reads"] == 3
    assert found.facts["counters of b"] == "since its last power-on"


def test_many_steps_share_a_character() -> None:
    series = report.Series("t", "1/s", [(float(at), 1.0) for at in range(200)])
    text = report.bars(series)[1]
    assert len(text) <= report.BARS_MAX and set(text) == {"█"}
    assert report.bars(report.Series("t", "1/s", [])) == ["No data."]


def load_of(*at: float) -> Load:
    return Load({}, [essd.Io(one, 0.002, 4096) for one in at], 0, "")


def test_the_longest_pause_may_begin_or_end_with_the_time_that_is_asked_for() -> None:
    load = load_of(1.0, 2.0, 2.5, 5.0, 5.1)
    assert load.pause(0.5, 5.2) == (2.5, 2.5)
    assert load.pause(2.6, 9.0) == (5.1, pytest.approx(3.9))
    assert load_of().pause(1.0, 3.0) == (1.0, 2.0)


def test_rates_are_counted_between_the_first_and_the_last_io() -> None:
    load = load_of(0.0, 0.5, 1.0, 1.5, 2.0)
    assert load.iops == 2.0
    assert load.mb_s == pytest.approx(4 * 4096 / 2e6)
    assert load_of(1.0).iops == 0.0
    assert load.between(0.5, 1.5).iops == 2.0
    assert load.per_second(0.0) == [(0.0, 2.0), (1.0, 2.0)]


def test_a_percentile_is_a_value_that_occurs() -> None:
    values = [float(n) for n in range(1, 101)]
    assert (percentile(values, 50), percentile(values, 99), percentile(values, 100)) == (
        50.0, 99.0, 100.0)
    assert percentile([], 99) == 0.0


def test_the_log_of_fio_is_read_on_the_clock_of_the_program() -> None:
    fio = Fio.__new__(Fio)
    fio.begin = Clocks(100.0, 1000.0)
    # 20 s have passed on the host's clock, and 10 s on the program's.
    found = fio.parse("1005500, 2000000, 1, 4096, 0, 0\nfio: a message\n"
                      "1005000, 1000000, 0, 8192, 0, 0\n", Clocks(110.0, 1020.0))
    assert [(io.at, io.latency_s, io.size) for io in found] == [
        (102.5, 0.0005, 8192), (102.75, 0.001, 4096)]


def test_errors_of_fio_are_counted_also_if_it_only_has_a_status() -> None:
    assert Load({"jobs": [{"total_err": 3, "error": 0}]}, [], 1, "").errors == 3
    assert Load({"jobs": [{"total_err": 0, "error": 84}]}, [], 1, "").errors == 1
    assert Load({"jobs": [{"error": 0}]}, [], 0, "").errors == 0


# The guest of the scenarios

def test_a_topology_names_a_hosts_guest_by_its_folder(tmp_path: Path) -> None:
    text = ("drives: {d: {}}\nhosts: {h: {guest: %s}}\ncables: [h - d:0]\n")
    found = topology_yaml.load(text % (scenarios.FOLDER / "guest"), "t.yaml", tmp_path)
    assert found.hosts["h"].guest == scenarios.FOLDER / "guest"
    with pytest.raises(essd.EssdError, match=r"t\.yaml:2:20: a host: .*nowhere does not "
                                             "describe a guest"):
        topology_yaml.load(text % "nowhere", "t.yaml", tmp_path)
