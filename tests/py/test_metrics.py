# SPDX-License-Identifier: BSD-2-Clause
"""What essd top and essd metrics show of an instance."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from metrics_bed import LookedAt, superblock
from prometheus_client.parser import text_string_to_metric_families

from essd.base import paths
from essd.instance import config
from essd.instance.instance import Instance
from essd.observe import metrics, metrics_text, top

NAME = f"pymetrics{os.getpid()}"


@pytest.fixture
def supervisor() -> Iterator[LookedAt]:
    with LookedAt(NAME) as found:
        yield found


class Samples:
    """The samples of a text; found[NAME, *VALUES] has these label values in any order."""

    def __init__(self, text: str) -> None:
        self.values = {(sample.name, *sorted(sample.labels.values())): sample.value
                       for family in text_string_to_metric_families(text)
                       for sample in family.samples}

    def __getitem__(self, key: tuple[str, ...]) -> float:
        return self.values[key[0], *sorted(key[1:])]


def essd(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "essd", *words], check=False, text=True,
                          cwd=paths.TOP / "tools", capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_essd_metrics_prints_what_prometheus_parses(supervisor: LookedAt) -> None:
    found = Samples(essd("metrics", "--name", NAME))
    assert found["essd_commands_total", "drive", "read"] == 1050
    assert found["essd_data_bytes_total", "drive", "read"] == 1050 * 4096
    assert found["essd_media_events_total", "drive", "cache-full"] == 2
    assert found["essd_rnic_events_total", "drive", "bad-icrc"] == 1
    assert found["essd_tcp_events_total", "drive", "retransmitted"] == 4
    assert found["essd_nvme_tcp_events_total", "drive", "r2ts-out"] == 7
    assert found["essd_nvme_tls_events_total", "drive", "handshakes"] == 5
    assert found["essd_aoe_events_total", "drive", "repeated-writes"] == 3
    assert found["essd_port_up", "drive", "1"] == 1
    assert found["essd_port_speed_bits_per_second", "drive", "0"] == 25e9
    assert found["essd_port_fec", "drive", "0", "rs"] == 1
    assert found["essd_port_events_total", "drive", "0", "linkChanges"] == 3
    assert found["essd_part_state", "drive", "drive", "running"] == 1
    assert found["essd_part_state", "drive", "drive", "crashed"] == 0
    assert found["essd_part_resident_bytes", "host", "host"] > 1 << 20
    assert found["essd_commands_in_flight", "drive"] == 1
    assert found["essd_pool_used", "drive", "capsules"] == 3
    assert found["essd_fault_rule_fired_total", "drive", "bad-start"] == 2
    assert found["essd_cable_plugged", "0", "host:0", "drive:0"] == 1
    assert found["essd_drive_uptime_seconds", "drive"] == 2.5


def test_hostile_text_in_a_label_stays_one_label(supervisor: LookedAt) -> None:
    frame = metrics.Collector(Instance(NAME)).frame()
    evil = 'x"} 1\nessd_faked{a="b'
    frame["drives"]["drive"]["status"]["model"] = evil
    families = list(text_string_to_metric_families(metrics_text.text(frame).decode()))
    assert "essd_faked" not in [family.name for family in families]
    (info,) = [s for family in families for s in family.samples if s.name == "essd_drive_info"]
    assert info.labels["model"] == evil


def test_rates_are_differences_over_time(supervisor: LookedAt,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(metrics.time, "monotonic", lambda: float(next(clock)))
    collector = metrics.Collector(Instance(NAME))
    first = collector.frame()["drives"]["drive"]
    assert first["rates"]["read-iops"] is None
    at = collector.drives["drive"].at
    second = collector.frame()["drives"]["drive"]
    seconds = collector.drives["drive"].at - at
    assert second["rates"]["read-iops"] == 50 / seconds
    assert second["rates"]["write-iops"] == 0
    assert second["ports"][0]["in-bytes-per-s"] > 0


def test_a_counter_that_begins_again_has_no_rate(supervisor: LookedAt) -> None:
    collector = metrics.Collector(Instance(NAME))
    collector.frame()
    supervisor.reads = 0
    assert collector.frame()["drives"]["drive"]["rates"]["read-iops"] is None


def test_tables_are_asked_for_in_every_fifth_frame_only(supervisor: LookedAt) -> None:
    collector = metrics.Collector(Instance(NAME))
    frames = [collector.frame() for _ in range(metrics.SLOW_EVERY + 1)]
    asked = [request.get("request") for request in supervisor.asked]
    assert asked.count("counters") == metrics.SLOW_EVERY + 1
    assert asked.count("queue-pairs") == asked.count("pools") == 2
    assert all(len(frame["drives"]["drive"]["queue-pairs"]["rows"]) == 2 for frame in frames)


def test_a_drive_that_does_not_answer_is_shown_with_the_reason(supervisor: LookedAt) -> None:
    supervisor.mgmt.clear()
    supervisor.replies["mgmt"] = deny
    frame = metrics.Collector(Instance(NAME)).frame()
    assert frame["drives"]["drive"]["why"] == "the drive is starting"
    assert len(frame["drives"]["drive"]["ports"]) == 2
    assert Samples(metrics_text.text(frame).decode())["essd_drive_answers", "drive"] == 0


def deny(_request: object) -> None:
    raise ValueError("the drive is starting")


def test_a_drive_without_power_is_not_asked(supervisor: LookedAt) -> None:
    supervisor.parts["drive"] |= {"state": "off", "pid": None}
    frame = metrics.Collector(Instance(NAME)).frame()
    assert frame["drives"] == {}
    assert frame["parts"]["drive"]["state"] == "off"
    assert {request["command"] for request in supervisor.asked} == {"status"}


@pytest.mark.parametrize("percent, expected", [(50, 50), (90, 90), (99, 99), (99.9, 100)])
def test_a_percentile_is_the_value_that_this_share_does_not_exceed(
        percent: float, expected: int) -> None:
    assert metrics.percentile(list(range(1, 101)), percent) == expected
    assert metrics.percentile([7], percent) == 7


def test_latencies_older_than_ten_seconds_are_forgotten() -> None:
    latency = metrics.Latency()
    latency.add("read", 1000, 0.0)
    latency.add("read", 20, 5.0)
    assert latency.facts(6.0)["read"]["samples"] == 2
    assert latency.facts(12.0)["read"] == {"samples": 1, "p50": 20, "p90": 20, "p99": 20,
                                          "p99.9": 20}
    assert latency.facts(16.0) == {}


def test_essd_top_prints_one_frame(supervisor: LookedAt) -> None:
    shown = essd("top", "--once", "--name", NAME)
    for word in ("read IOPS", "drive:0", "RS-FEC", "host:0 - drive:0 plugged", "bad-start",
                 "nqn.2014-08.org.nvmexpress:uuid:1"):
        assert word in shown
    frame = json.loads(essd("top", "--json", "--name", NAME))
    assert frame["drives"]["drive"]["counters"]["writes"] == 7


def test_essd_top_shows_hostile_text_as_it_is() -> None:
    with LookedAt(NAME, hostnqn="\x1b[2J[red]nqn") as _:
        shown = essd("top", "--once", "--name", NAME)
    assert "\x1b" not in shown and "?[2J[red]nqn" in shown


def test_a_frame_takes_two_connections_to_the_supervisor(supervisor: LookedAt) -> None:
    collector = metrics.Collector(Instance(NAME))
    collector.frame()           # with the tables
    collector.frame()
    assert supervisor.connections == 4


def test_only_who_asks_for_it_gets_the_map_of_the_flash(supervisor: LookedAt) -> None:
    supervisor.superblocks = [superblock(number) for number in range(150)]
    supervisor.dead_dies = [3]
    drive = metrics.Collector(Instance(NAME), for_page=True).frame()["drives"]["drive"]
    found = drive["flash-map"]
    assert [row["superblock"] for row in found["rows"]] == list(range(150))
    assert (found["channels"], found["dies"], found["dead-dies"], found["more"]) == (
        2, 2, [3], False)
    assert "flash-map" not in metrics.Collector(Instance(NAME)).frame()["drives"]["drive"]


def test_the_page_is_told_temperatures_and_what_a_drive_is_made_of(
        supervisor: LookedAt) -> None:
    frame = metrics.Collector(Instance(NAME), for_page=True).frame()
    assert frame["drives"]["drive"]["temperatures"] == [40.0]   # of the sensor that answers
    assert frame["layout"] == {"drive": {"ports": [0, 1], "channels": 0, "dies": 0}}
    assert frame["switches"] == {}
    assert "layout" not in metrics.Collector(Instance(NAME)).frame()


def test_the_page_is_told_the_rules_that_the_supervisor_keeps_for_a_drive_that_is_off(
        supervisor: LookedAt) -> None:
    collector = metrics.Collector(Instance(NAME), for_page=True)
    assert collector.frame()["kept-rules"] == {}
    supervisor.parts["drive"]["state"] = "off"
    assert collector.frame()["kept-rules"] == {"drive": supervisor.rules}
    supervisor.replies["faults"] = deny         # it starts at this moment
    assert collector.frame()["kept-rules"] == {"drive": []}


def test_a_drive_that_is_off_still_has_its_ports_and_dies(supervisor: LookedAt) -> None:
    supervisor.parts["drive"]["state"] = "off"
    frame = metrics.Collector(Instance(NAME), for_page=True).frame()
    assert frame["drives"] == {} and list(frame["layout"]) == ["drive"]
    array = config.Nand("/nand", "1G", "tlc", 4, 2, 1)
    drive = config.Drive("/qemu", "/flash.img", "/media.raw", "raw", "nqn.x", nand=array)
    assert metrics.layout_of([0], drive) == {"ports": [0], "channels": 4, "dies": 2}


def test_the_load_of_a_switch_is_the_growth_of_its_counters(supervisor: LookedAt) -> None:
    counted = iter((1000, 5000, 10))        # the last one: the switch has begun again

    def show(request: dict[str, Any]) -> Any:
        assert request["request"] == "show"
        number = next(counted, None)
        if number is None:
            raise ValueError("the switch does not answer")
        return {"ports": [{"port": 3, "counters": {"rx_bytes": number, "tx_bytes": 0}}]}

    supervisor.replies["switch"] = show
    collector = metrics.Collector(Instance(NAME), for_page=True)
    assert collector.switch("leaf") == [{"port": 3, "in-bytes-per-s": None,
                                         "out-bytes-per-s": None}]
    port, = collector.switch("leaf")
    assert port["in-bytes-per-s"] > 0 and port["out-bytes-per-s"] == 0
    assert collector.switch("leaf")[0]["in-bytes-per-s"] is None
    assert collector.switch("leaf") == []


def test_a_drive_whose_firmware_has_no_map_is_shown_without_it(supervisor: LookedAt) -> None:
    supervisor.superblocks = [superblock(0)]

    def refuse(request: dict[str, Any]) -> Any:
        if request["request"] == "superblocks":
            raise ValueError("the drive does not know the request superblocks")
        return supervisor.ask_drive(request)

    supervisor.replies["mgmt"] = refuse
    drive = metrics.Collector(Instance(NAME), for_page=True).frame()["drives"]["drive"]
    assert drive["flash-map"] is None and drive["why"] == ""


def test_what_a_drive_said_before_it_failed_is_shown(supervisor: LookedAt) -> None:
    del supervisor.mgmt["pools"]
    drive = metrics.Collector(Instance(NAME)).frame()["drives"]["drive"]
    assert "does not know the request pools" in drive["why"]
    assert len(drive["ports"]) == 2 and drive["counters"]["writes"] == 7
    assert "queue-pairs" not in drive


@pytest.mark.parametrize(("warning", "names", "shown"), [
    (0, [], "ok"), (4, ["reliability"], "reliability"),
    (0x89, ["spare", "read-only", "bit-7"], "spare, read-only, bit-7")])
def test_a_critical_warning_of_smart_is_shown_beside_the_media_errors(
        supervisor: LookedAt, warning: int, names: list[str], shown: str) -> None:
    supervisor.critical_warning = warning
    frame = metrics.Collector(Instance(NAME)).frame()
    assert frame["drives"]["drive"]["warnings"] == names
    columns = {str(column.header): list(column.cells) for column in
               top.drives_table(frame).columns}
    assert str(columns["SMART"][0]) == shown
    found = {family.name: family.samples for family in metrics_text.counters(frame)}
    assert [sample.labels["warning"] for sample in found["essd_critical_warning"]
            if sample.value] == names


def test_a_drive_that_does_not_answer_has_no_known_warning(supervisor: LookedAt) -> None:
    def fail(_request: object) -> None:
        raise ValueError("the firmware does not answer")

    supervisor.replies["mgmt"] = fail
    frame = metrics.Collector(Instance(NAME)).frame()
    assert frame["drives"]["drive"]["warnings"] is None
    assert "essd_critical_warning" not in metrics_text.text(frame).decode().replace(
        "# HELP essd_critical_warning", "").replace("# TYPE essd_critical_warning", "")


@pytest.mark.parametrize(("value", "shown"), [
    (0, "0 B"), (999.4, "999 B"), (999.7, "1.0 kB"), (99.97, "100 B"), (18400, "18.4 kB")])
def test_a_number_has_at_most_four_digits(value: float, shown: str) -> None:
    assert top.short(value, "B") == shown


def flash_frame(written: int) -> dict[str, Any]:
    counters = {"reads": 0, "writes": 1, "read-bytes": 0, "written-bytes": written,
                "media-errors": 0, "error-log-entries": 0, "media": {}, "rnic": {},
                "ftl": {"free-superblocks": 12, "erasures": 3, "dead-dies": 1},
                "nand": {"units-programmed": 9},
                "flash": {"written-bytes": 9 * 4096, "erased-blocks": 24,
                          "failed-blocks": 2, "spare-percent": 97}}
    return {"drives": {"drive": {"why": "", "counters": counters, "warnings": None}}}


def test_write_amplification_is_what_the_flash_has_written_for_each_byte_of_hosts(
        ) -> None:
    found = {family.name: family.samples for family in
             metrics_text.counters(flash_frame(4 * 4096))}
    assert found["essd_write_amplification"][0].value == 2.25
    assert found["essd_flash_free_superblocks"][0].value == 12
    assert found["essd_flash_spare_percent"][0].value == 97
    assert found["essd_flash_dead_dies"][0].value == 1
    assert {s.labels["counter"]: s.value for s in found["essd_flash_events"]} == {
        "units-programmed": 9, "erasures": 3}
    assert metrics.write_amplification(flash_frame(0)["drives"]["drive"]["counters"]) is None
    table = top.flash_table(flash_frame(4 * 4096))
    assert table is not None
    assert [str(list(column.cells)[0]) for column in table.columns] == [
        "drive", "2.25", "12", "3", "24", "2", "97%", "1"]
