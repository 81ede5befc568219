# SPDX-License-Identifier: BSD-2-Clause
"""The drive's services against stock daemons in the host: lldpd, chronyd."""

import json
import re
import struct
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from watching import console, until

from essd.base import paths
from essd.drive import neighbours as neighbours_module
from essd.instance import steps
from essd.instance.steps import Job
from essd.settings.block import Services
from essd.testrun import pcap_check

pytestmark = [pytest.mark.drive, pytest.mark.uml]
# lldpd needs its settings before its first frame, because a frame with the default
# settings stays valid for two minutes.
START_LLDPD = ("mkdir -p /run/lldpd; printf 'configure lldp tx-interval 1\n"
               "configure lldp tx-hold 2\n' > /tmp/lldpd.conf; "
               "lldpd -O /tmp/lldpd.conf")


@pytest.fixture(scope="module")
def serviced(target: str, host_kind: str) -> Iterator[Job]:
    """A drive with short timers, and a host whose lldpd runs."""
    if target != "drive":
        pytest.skip("needs the drive itself")
    from conftest import SESSION, boot
    from essd.setup import setup
    from essd.setup.setup import Wish
    wish = Wish(name=f"{SESSION}-services", size="512M", capture=True,
                host_kind=host_kind,
                services=Services(lldp_interval=1, lldp_hold=1, name="rack7-slot3",
                                  sntp_server="10.0.0.1", sntp_poll=2))
    job = boot(wish)
    job.quiet(START_LLDPD)
    yield job
    job.instance.stop()
    setup.forget(wish.name)


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def neighbours(job: Job) -> dict[str, dict[str, Any]]:
    """The neighbours that lldpd sees, by interface of the host."""
    text = job.quiet("lldpcli show neighbors details -f json")
    return {name: facts
            for entry in as_list(json.loads(text)["lldp"].get("interface", []))
            for name, facts in entry.items()}


def test_lldpd_sees_the_drive(serviced: Job) -> None:
    seen = until(lambda: len(found := neighbours(serviced)) == 2 and found)
    for number, interface in enumerate(("eth0", "eth1")):
        (name, chassis), = seen[interface]["chassis"].items()
        port = seen[interface]["port"]
        assert name == "rack7-slot3"
        assert chassis["id"]["type"] == "mac"
        assert chassis["id"]["value"].startswith("02:e5:5d:")
        assert "firmware" in chassis["descr"] and "serial" in chassis["descr"]
        assert set(serviced.addresses) <= set(as_list(chassis["mgmt-ip"]))
        assert any(x.startswith("fe80:") for x in as_list(chassis["mgmt-ip"]))
        station = [x for x in as_list(chassis["capability"]) if x["type"] == "Station"]
        assert station and station[0]["enabled"]
        assert port["id"] == {"type": "ifname", "value": f"port{number}"}
        assert f"port {number}" in port["descr"]
        assert port["ttl"] == "2"
        assert port["mfs"] == "1522"
        assert port["auto-negotiation"]["supported"] is False
        assert "25GBASE-R" in port["auto-negotiation"]["current"]
        assert as_list(seen[interface]["vlan"])[0]["vlan-id"] == "1"


def neighbour_log(job: Job, device: str) -> bytes:
    """The whole log page D0h."""
    return bytes.fromhex(job.quiet(
        f"nvme get-log {device} --log-id=0xd0 --log-len=8704 --raw-binary | "
        "od -An -v -tx1 | tr -d ' \\n'"))


def places_of(page: bytes) -> list[bytes]:
    return [page[at:at + 512] for at in range(512, 8704, 512) if page[at]]


def ttl_left(place: bytes) -> int:
    return int(struct.unpack_from("<H", place, 2)[0])


def settled(page: bytes) -> bytes | None:
    """The log page, after both neighbours have announced a TTL of 2 s."""
    used = places_of(page)
    return page if len(used) == 2 and all(0 < ttl_left(x) <= 3 for x in used) else None


def test_the_drive_sees_its_neighbour(serviced: Job) -> None:
    host = serviced.quiet("hostname").strip()
    mac = serviced.quiet("cat /sys/class/net/eth1/address").strip()
    until(lambda: f"lldp: port 0: {host}" in console(serviced))
    device = steps.connect(serviced)
    try:
        page = until(lambda: settled(neighbour_log(serviced, device)))
    finally:
        steps.disconnect(serviced)
    version, places, length = struct.unpack_from("<HHH", page)
    assert (version, places, length) == (1, 16, 512)
    sent, received = struct.unpack_from("<QQ", page, 64)
    assert sent > 0 and received > 0
    used = places_of(page)
    assert [place[1] for place in used] == [0, 1]
    second = used[1]
    assert second[6] == 3 and second[88:94].hex(":") == mac
    assert second[216:280].rstrip(b"\0").decode().split(".")[0] == host


def test_essd_port_shows_the_neighbours(serviced: Job) -> None:
    """`essd port --neighbours` shows the same as a table and as JSON."""
    def command(*words: str) -> str:
        return subprocess.run(
            [paths.TOP / "essd", "port", "--neighbours", "--name",
             serviced.instance.name, *words],
            check=True, text=True, stdout=subprocess.PIPE, timeout=120).stdout

    until(lambda: all(entry["neighbours"] for entry in
                      neighbours_module.read(serviced.instance, None)))
    host = serviced.quiet("hostname").strip()
    ports = json.loads(command("--json"))
    assert [entry["port"] for entry in ports] == [0, 1]
    for number, entry in enumerate(ports):
        (seen,) = entry["neighbours"]
        mac = serviced.quiet(f"cat /sys/class/net/eth{number}/address").strip()
        assert seen["port"] == mac
        assert seen["port-description"] == f"eth{number}"
        assert seen["system"].split(".")[0] == host
        assert "Linux" in seen["system-description"]
        assert seen["addresses"] and "station" in seen["capabilities"]
        assert 0 < seen["forgotten-in"] <= 121
    rows = command().splitlines()
    assert rows[0].startswith("port ") and "chassis" in rows[0]
    assert sum("eth0" in row and host in row for row in rows) == 1
    assert sum("eth1" in row and host in row for row in rows) == 1
    assert "eth0" not in command("1") and "eth1" in command("1")


def test_neighbours_are_forgotten(serviced: Job) -> None:
    """lldpd announces its end; a drive without power is forgotten when its TTL expires."""
    before = console(serviced).count("is gone")
    serviced.quiet("pkill -x lldpd; while pgrep -x lldpd; do sleep 0.1; done")
    until(lambda: console(serviced).count("is gone") > before)
    serviced.quiet(START_LLDPD)
    until(lambda: len(neighbours(serviced)) == 2)
    serviced.instance.ask("power-cut")
    try:
        until(lambda: not neighbours(serviced), 15)
    finally:
        serviced.instance.ask("power-on")
        steps.wait_target(serviced)
    until(lambda: len(neighbours(serviced)) == 2)


def timestamp_ms(job: Job, controller: str) -> int:
    """The Timestamp feature, which must report that the clock was set."""
    data = bytes.fromhex(job.quiet(
        f"nvme get-feature {controller} -f 0xe --data-len=8 --raw-binary | "
        "od -An -v -tx1 | tr -d ' \\n'"))
    assert data[6] == 2
    return int.from_bytes(data[:6], "little")


def start_chronyd(job: Job, source: str) -> None:
    """Start an NTP server that takes its time from `source`, or from nowhere."""
    job.quiet(f"printf '{source}\\nallow\\ncmdport 0\\nuser root\\n"
              "pidfile /run/chronyd.pid\\n' > /tmp/chrony.conf; "
              "chronyd -x -f /tmp/chrony.conf")


def stop_chronyd(job: Job) -> None:
    job.quiet("pkill -x chronyd; while pgrep -x chronyd; do sleep 0.1; done; true")


def put_wrong(job: Job, controller: str) -> None:
    job.quiet(f"printf '\\0\\0\\0\\0\\1\\0\\0\\0' > /tmp/wrong; "
              f"nvme set-feature {controller} -f 0xe -l 8 -d /tmp/wrong")


def is_right(job: Job, controller: str) -> bool:
    return abs(timestamp_ms(job, controller) - int(job.quiet("date +%s%3N"))) < 5000


def next_two(job: Job, what: str) -> str:
    """The next two requests of the drive, or replies, as tcpdump prints them."""
    return job.quiet(f"timeout 60 tcpdump -n -v -i eth0 -c 2 '{what}' 2>/dev/null")


def test_chronyd_without_a_source_sets_nothing(serviced: Job) -> None:
    """chronyd answers as unsynchronised; without chronyd, the host answers with ICMP."""
    steps.connect(serviced)
    try:
        controller = serviced.controller()
        put_wrong(serviced, controller)
        assert next_two(serviced, "udp dst port 123").count("NTPv4, Client") == 2
        start_chronyd(serviced, "")
        said = next_two(serviced, "udp src port 123")
        assert said.count("clock unsynchronized") == 2, said
        assert not is_right(serviced, controller)
        assert "s since 1970" not in console(serviced)
    finally:
        stop_chronyd(serviced)
        steps.disconnect(serviced)


def test_chronyd_sets_the_drives_clock(serviced: Job) -> None:
    """The clock is set wrong first, because Linux sets it when it connects."""
    start_chronyd(serviced, "local stratum 3")
    until(lambda: re.search(r"sntp: \d+ s since 1970, stratum 3", console(serviced)))
    steps.connect(serviced)
    controller = serviced.controller()
    put_wrong(serviced, controller)
    until(lambda: is_right(serviced, controller))
    steps.disconnect(serviced)


def test_wireshark_has_no_complaint(serviced: Job) -> None:
    for link in (0, 1):
        verdict = pcap_check.check(serviced.instance.folder / f"link{link}.pcap")
        assert not verdict.complaints, "\n".join(verdict.complaints[:10])
