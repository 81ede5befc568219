# SPDX-License-Identifier: BSD-2-Clause
"""Echo and discard over the TCP offload engine, with the host's own nc at both ports:
what is sent comes back, or the connection is reset, whatever happens meanwhile; and
what essd shows of it."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import uart_dialogue
import vlans
from watching import until

from essd.api.faults import Faults
from essd.api.trace import Trace
from essd.base.paths import TOP
from essd.drive import mgmt, tcp
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]

PORTS = ("10.0.0.10", "10.0.1.10")
MAKE = "head -c 300000 /dev/urandom > /tmp/sent"


def switch(job: Job, value: str) -> None:
    (said,) = uart_dialogue.ask(job.instance, f"config set tcp.echo {value}")
    assert said == "ok: config save puts it in force at once", said
    assert uart_dialogue.ask(job.instance, "config save") == ["ok"]


@pytest.fixture
def served(job: Job) -> Iterator[Job]:
    switch(job, "on")
    yield job
    switch(job, "off")


def is_refused(job: Job, address: str, port: int) -> bool:
    said = job.quiet(f"nc -w 5 {address} {port} < /dev/null 2>&1 || true")
    return "refused" in said


def test_what_is_sent_comes_back(served: Job) -> None:
    served.quiet(MAKE)
    for address in PORTS:
        served.quiet(f"timeout 60 nc {address} 7 < /tmp/sent > /tmp/back; "
                     "cmp /tmp/sent /tmp/back")
        served.quiet(f"timeout 60 nc {address} 9 < /tmp/sent > /tmp/back; "
                     "test ! -s /tmp/back")
        assert is_refused(served, address, 4321)


def test_switched_off_nobody_is_served(served: Job) -> None:
    switch(served, "off")
    said = served.quiet(f"nc -w 5 {PORTS[0]} 7 < /dev/null 2>&1; echo $?")
    assert said.split()[-1] != "0"
    switch(served, "on")
    served.quiet(f"{MAKE}; timeout 60 nc {PORTS[0]} 7 < /tmp/sent | cmp - /tmp/sent")


def connections(job: Job, state: str = "ESTABLISHED") -> list[dict[str, Any]]:
    return [entry for entry in tcp.read(job.instance) if entry["state"] == state]


def test_vlans_and_ipv6_are_served_at_both_ports(served: Job) -> None:
    served.quiet(MAKE)
    with vlans.tagged(served):
        for own, _, port in vlans.TAGGED:
            address = vlans.address_of(own)
            served.quiet(f"timeout 60 nc {address} 7 < /tmp/sent | cmp - /tmp/sent")
            served.quiet(f"sleep 5 | timeout 20 nc {address} 9 > /dev/null 2>&1 &")
            found = until(lambda to=address: [entry for entry in connections(served)
                                              if entry["local"] == to], 10)
            assert [(entry["port"], entry["vlan"], entry["user"]) for entry in found] == \
                [(port, vlans.VLAN, "discard")]


# ---- What essd shows, and what it breaks.

RULES = ("wire direction=out tcp.src=7 tcp.data=yes when every=20 do drop",
         "wire direction=in tcp.dst=7 tcp.data=yes when every=20 do drop",
         "wire direction=in tcp.dst=7 tcp.data=yes when nth=5 do bad-checksum",
         "wire direction=in tcp.dst=7 tcp.flags=ack,no-syn when nth=9 do zero-window",
         "wire direction=out tcp.src=7 tcp.data=yes when nth=7 do duplicate",
         "wire direction=in tcp.flags=syn,no-ack when nth=1 do delay=20ms")
# Of the drive's frames, those with which Wireshark does not agree.
WRONG = ("tcp.checksum.status == 0 || ip.checksum.status == 0 || _ws.malformed || "
         "tcp.hdr_len < 20")


def counters(job: Job) -> dict[str, int]:
    return dict(mgmt.ask(job.instance, "counters")["tcp"])


def tshark(capture: Path, wanted: str) -> list[str]:
    done = subprocess.run(
        ["tshark", "-r", capture, "-o", "tcp.check_checksum:TRUE", "-o",
         "ip.check_checksum:TRUE", "-Y", wanted], check=True, text=True,
        capture_output=True, timeout=60)
    return done.stdout.splitlines()


@contextlib.contextmanager
def captured(job: Job, file: Path) -> Iterator[None]:
    with subprocess.Popen([str(TOP / "essd"), "capture", "--name", job.instance.name,
                           "--write", str(file)]) as capture:
        until(lambda: file.exists() and file.stat().st_size > 0)
        yield
        capture.send_signal(signal.SIGINT)
        capture.wait(30)


def test_losses_are_repaired_and_shown(served: Job, tmp_path: Path) -> None:
    rules = Faults(served.instance)
    before = counters(served)
    file = tmp_path / "tcp.pcap"
    for rule in RULES:
        rules.add(rule)
    try:
        with captured(served, file), Trace(served.instance, "tcp") as trace:
            served.quiet(f"{MAKE}; timeout 60 nc {PORTS[0]} 7 < /tmp/sent | cmp - /tmp/sent")
        assert all(rule.fired for rule in rules), list(rules)
    finally:
        rules.remove()
    after = counters(served)
    found = {event.kind.name for event in trace.events}
    assert {"TCP_OPENED", "TCP_ENDED", "TCP_RETRANSMIT", "TCP_RECOVERY"} <= found
    assert after["retransmitted"] > before["retransmitted"]
    assert after["bad-checksum"] == before["bad-checksum"] + 1
    assert after["established"] == before["established"] + 1
    assert len(tshark(file, f"tcp && ip.src == {PORTS[0]}")) > 100
    assert tshark(file, f"tcp && ip.src == {PORTS[0]} && ({WRONG})") == []


# ---- Connections in use, while something happens to the drive.

# Chunks of this size leave every 0.1 s.
CHUNK = 3000
PACED = ("i=0; while [ $i -lt {chunks} ]; do dd if=/tmp/paced bs={chunk} skip=$i count=1 "
         "2> /dev/null || break; i=$((i+1)); sleep 0.1; done | timeout {limit} "
         "nc {address} 7 > /tmp/paced.back; echo status $?")


@contextlib.contextmanager
def paced(job: Job, seconds: float, limit_s: int = 100) -> Iterator[None]:
    """Send a file through the echo service in this time, and begin when it is under way."""
    chunks = round(seconds * 10)
    job.quiet(f"head -c {chunks * CHUNK} /dev/urandom > /tmp/paced; rm -f /tmp/paced.back")
    command = PACED.format(chunks=chunks, chunk=CHUNK, address=PORTS[0], limit=limit_s)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(job.instance.run, command, timeout_s=limit_s + 60, check=False)
        until(lambda: any(entry["received-bytes"] > 3 * CHUNK
                          for entry in connections(job)), 30)
        yield
        assert not running.done() or running.result().status == 0, running.result().output
        running.result()


def came_back(job: Job) -> bool:
    """Whether all of it has come back.  Otherwise what has is the begin of it."""
    sizes = job.quiet("stat -c %s /tmp/paced /tmp/paced.back").split()
    job.quiet(f"cmp -n {sizes[1]} /tmp/paced /tmp/paced.back")
    return sizes[0] == sizes[1]


def stop_drive(job: Job, seconds: float) -> None:
    pid = job.instance.status()["parts"]["drive"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)


def pull_cable(job: Job, seconds: float) -> None:
    job.instance.ask("port", port=0, plugged=False)
    try:
        time.sleep(seconds)
    finally:
        job.instance.ask("port", port=0, plugged=True)


def halt(job: Job, seconds: float) -> None:
    job.instance.ask("qmp", part="drive", execute="stop")
    try:
        time.sleep(seconds)
    finally:
        job.instance.ask("qmp", part="drive", execute="cont")


@pytest.mark.parametrize(("happens", "seconds"), [
    (pull_cable, 2.0), (stop_drive, 2.0), (halt, 2.0),
    pytest.param(pull_cable, 30.0, marks=pytest.mark.long),
    pytest.param(stop_drive, 10.0, marks=pytest.mark.long)])
def test_a_transfer_survives_a_pause(served: Job, happens: Callable[[Job, float], None],
                                     seconds: float) -> None:
    with paced(served, 3):
        happens(served, seconds)
    assert came_back(served)


def save_and_load(job: Job) -> None:
    job.instance.ask("save")
    job.instance.ask("load")


def cut_power(job: Job) -> None:
    job.instance.ask("power-cut", part="drive")
    job.instance.ask("power-on", part="drive")


def reset(job: Job) -> None:
    job.instance.ask("reset")


@pytest.mark.parametrize("happens", [save_and_load, cut_power, reset])
def test_after_a_loss_of_the_engines_state_connections_are_reset(
        served: Job, happens: Callable[[Job], None]) -> None:
    with paced(served, 30, limit_s=40):
        happens(served)
    assert not came_back(served)
    served.quiet(f"{MAKE}; timeout 60 nc {PORTS[0]} 7 < /tmp/sent | cmp - /tmp/sent")
    assert until(lambda: not connections(served), 20)


def host_connections(job: Job) -> str:
    """Those of the host with port 7 that are established."""
    return job.quiet("awk '$3 ~ /:0007$/ && $4 == \"01\"' /proc/net/tcp")


def test_a_host_that_only_waits_is_reset_after_a_load(served: Job) -> None:
    """It sends nothing, so that by itself it would not notice."""
    served.quiet(f"(echo hello; sleep 30) | timeout 60 nc {PORTS[1]} 7 > /dev/null 2>&1 &")
    until(lambda: any(entry["sent-bytes"] == 6 for entry in connections(served)), 20)
    assert host_connections(served)
    save_and_load(served)
    until(lambda: not host_connections(served), 25)
