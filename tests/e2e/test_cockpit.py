# SPDX-License-Identifier: BSD-2-Clause
"""The cockpit, essd top and essd metrics of a real drive under load."""

import json
import subprocess
import sys
from typing import Any

import pytest
from cockpit_site import cockpit

from essd.base import paths
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]

FIO = ("fio --name=load --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --bs=4k "
       "--iodepth=8 --rw=randrw --size=64M --time_based --runtime={seconds}")


def drive_of(event: dict[str, Any]) -> dict[str, Any]:
    return dict(event["frame"]["drives"].get("drive", {}))


def is_loaded(event: dict[str, Any]) -> bool:
    rates = drive_of(event).get("rates", {})
    return bool(rates.get("read-iops") and rates.get("write-bytes-per-s"))


def test_the_cockpit_shows_load_latency_and_trace_and_pulls_a_cable(connected: Job) -> None:
    instance = connected.instance
    hostnqn = instance.run("cat /etc/nvme/hostnqn", apart=True).output.strip()
    instance.run(f"({FIO.format(seconds=40)}) > /tmp/load 2>&1 &")
    with cockpit(instance.name) as site:
        site.log_in()
        drive = drive_of(site.event(holds=is_loaded))
        assert drive["why"] == ""
        assert hostnqn in [row["hostnqn"] for row in drive["controllers"]["rows"]]
        assert {row["state"] for row in drive["queue-pairs"]["rows"]} == {"live"}
        assert drive["ports"][0]["up"] and drive["ports"][0]["in-bytes-per-s"] > 0
        # Sampled latency, and the trace.
        assert site.do(do="latency", on=True) == (200, {})
        latency = drive_of(site.event(
            holds=lambda event: drive_of(event).get("latency")))["latency"]
        for facts in latency.values():
            assert 0 < facts["p50"] <= facts["p99"] <= facts["p99.9"]
        assert site.do(do="trace", part="drive", on=True) == (200, {})
        lines = site.event(holds=lambda event: event["trace"])["trace"]
        assert any("commands" in line for line in lines)
        assert site.do(do="trace", on=False) == (200, {})
        assert site.do(do="latency", on=False) == (200, {})
        # A cable without load is pulled, and plugged in again.
        assert site.do(do="cable", number="1", on=False) == (200, {})
        site.event(holds=lambda event: not drive_of(event)["ports"][1]["up"])
        assert not steps.carrier(connected, 1)
        assert site.do(do="cable", number="1", on=True) == (200, {})
        site.event(holds=lambda event: drive_of(event)["ports"][1]["up"])


def test_top_and_metrics_count_what_the_host_has_read(connected: Job) -> None:
    def read_bytes() -> int:
        done = subprocess.run([sys.executable, "-m", "essd", "top", "--json", "--name",
                               connected.instance.name], check=True, text=True, timeout=120,
                              cwd=paths.TOP / "tools", capture_output=True)
        return int(json.loads(done.stdout)["drives"]["drive"]["counters"]["read-bytes"])

    before = read_bytes()
    connected.instance.run("dd if=/dev/nvme0n1 of=/dev/null bs=64k count=32 iflag=direct")
    assert read_bytes() >= before + 32 * 65536
