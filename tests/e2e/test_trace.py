# SPDX-License-Identifier: BSD-2-Clause
"""`essd trace` and the management channel, with a Linux host at the other end."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from essd.base.errors import EssdError
from essd.base.paths import TOP
from essd.drive import console, mgmt
from essd.instance import steps
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.observe import trace_flash

pytestmark = [pytest.mark.drive, pytest.mark.uml]


@contextmanager
def traced(job: Job, folder: Path, events: str = "all",
           ) -> Iterator[list[dict[str, Any]]]:
    """Trace the drive during the context; the list has all events afterwards."""
    output = folder / "trace.json"
    command = [str(TOP / "essd"), "trace", "--name", job.instance.name, "--events", events,
               "--json", "--output", str(output)]
    found: list[dict[str, Any]] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                          env=os.environ) as process:
        assert process.stderr is not None
        assert "tracing" in process.stderr.readline()
        yield found
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode == 0, rest
    assert re.search(r"\d+ events, 0 lost", rest), rest
    found += [json.loads(line) for line in output.read_text().splitlines()]


def test_a_connect_a_read_and_a_refusal_are_seen(job: Job, tmp_path: Path) -> None:
    hostnqn = job.quiet("cat /etc/nvme/hostnqn").strip()
    with traced(job, tmp_path) as events:
        steps.connect(job)
        job.instance.run("dd if=/dev/nvme0n1 of=/dev/null bs=4k count=1 skip=777 "
                         "iflag=direct")
        job.instance.run("dd if=/dev/zero of=/dev/nvme0n1 bs=4k count=1 seek=888 "
                         "oflag=direct,dsync")
        steps.clean_host(job)
        address = job.instance.config.links[0].target_address
        refused = job.instance.run(
            f"nvme connect -t rdma -a {address} -s 4420 -n nqn.2026-01.net.example:none",
            check=False)
        assert refused.status != 0
    connects = [e for e in events if e["event"] == "connect"]
    assert {e["hostnqn"] for e in connects} == {hostnqn}
    assert [e["status"] for e in connects if e["qid"] == 0] == [0, 0x182]
    assert connects[-1]["peer"] == job.instance.config.links[0].hosts[0].partition("/")[0]
    reads = [e for e in events if e["event"] == "command" and e["opcode"] == 2
             and e["lba"] == 777 * 8]
    assert [(e["bytes"], e["status"], e["nsid"]) for e in reads] == [(4096, 0, 1)]
    assert reads[0]["media_us"] + reads[0]["respond_us"] <= reads[0]["total_us"]
    writes = [e for e in events if e["event"] == "command" and e["opcode"] == 1
              and e["lba"] == 888 * 8]
    assert len(writes) == 1 and writes[0]["status"] == 0
    # The write is durable when it ends (FUA), so the NAND controller has programmed it.  A
    # flush after a write would not do: after 100 ms without one the drive programs by itself.
    programs = [e for e in events if e["event"] == "nand_ended"]
    assert programs and {e["status"] for e in programs} == {0}
    # They carry the cause, and the write that waited for them.
    durable = {writes[0]["request"]}
    write = trace_flash.CAUSES.index("host write")
    for event in ("nand_ended", "ftl_row", "ftl_row_done"):
        assert durable & {e["request"] for e in events
                          if e["event"] == event and e["cause"] == write}
    assert durable & {e["request"] for e in events if e["event"] == "ftl_wait"}
    # The RNIC's events have the same queue pair number.
    states = {e["qpn"] for e in events if e["event"] == "qp_state"}
    assert {reads[0]["qpn"], writes[0]["qpn"]} <= states
    times = [e["time-ns"] for e in events]
    # The RNIC may record an event after the firmware read the clock for its own.
    assert all(later > earlier - 1_000_000 for earlier, later in
               zip(times, times[1:], strict=False))
    said = console.log(job.instance).decode(errors="replace")
    assert f"host {hostnqn}" in said and "there is no such subsystem (status 182)" in said


def test_the_management_channel_answers_while_a_console_line_is_half_typed(
        connected: Job) -> None:
    uart = console.dial(connected.instance)
    assert uart is not None
    with uart:
        uart.sendall(b"confi")
        assert mgmt.status(connected.instance)["controllers"] == 1
        hosts = mgmt.ask(connected.instance, "controllers")["controllers"]
        assert [host["state"] for host in hosts] == ["ready"]
        uart.sendall(console.FORGET)
    with pytest.raises(EssdError, match="does not know the request"):
        mgmt.ask(connected.instance, "dance")


def test_the_drive_stops_recording_when_a_tracer_is_killed(job: Job) -> None:
    command = [str(TOP / "essd"), "trace", "--name", job.instance.name]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as process:
        assert process.stderr is not None
        assert "tracing" in process.stderr.readline()
        process.kill()
    done = subprocess.run([*command, "--seconds", "1"], capture_output=True, text=True,
                          check=False, timeout=60)
    assert "0 lost" in done.stderr


def test_a_drive_without_power_is_not_traced(job: Job) -> None:
    job.instance.ask("power-cut")
    done = subprocess.run([str(TOP / "essd"), "trace", "--name", job.instance.name],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0 and "the drive is not powered" in done.stderr
    Instance(job.instance.name).ask("power-on")
