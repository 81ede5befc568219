# SPDX-License-Identifier: BSD-2-Clause
"""Eight addresses, addresses in conflict with another station, and 1024 peers.

The peer is the host's kernel.  The frames of a thousand peers are made by scapy, and
tcpdump receives the answers.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import flood_frames
import pytest
import uart_dialogue
from scapy.layers.inet6 import (
    ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet
from scapy.utils import PcapReader
from watching import until

from essd.base.errors import EssdError
from essd.drive import console
from essd.instance import steps
from essd.instance.steps import Job
from essd.settings import settings
from essd.setup import settings_cmd

pytestmark = [pytest.mark.drive, pytest.mark.uml]

V6 = ("fd00:e55d:0:1::", "fd00:e55d:0:2::")
MORE = {
    "port.0.ipv6": f"{V6[0]}10/64", "port.1.ipv6": f"{V6[1]}10/64",
    "address.0.ip": "10.0.0.11/24", "address.1.ip": f"{V6[0]}11/64",
    "address.2.ip": "10.0.1.11/24", "address.2.port": "1",
    "address.3.ip": f"{V6[1]}11/64", "address.3.port": "1",
}
EIGHT = {"10.0.0.10", "10.0.0.11", "10.0.1.10", "10.0.1.11",
         *(f"{prefix}{n}" for prefix in V6 for n in (10, 11))}
PEERS = 1024
STRANGERS = 1000        # the host itself and who it has been before are some
RATE = 1000             # frames a second
ECHO_ID = 0xe55d


def configure(job: Job, **values: str) -> None:
    for key, value in values.items():
        (said,) = uart_dialogue.ask(job.instance, f"config set {key} {value}")
        assert said == "ok: config save puts it in force at once", said
    assert uart_dialogue.ask(job.instance, "config save") == ["ok"]


def own(job: Job) -> dict[str, str]:
    """The drive's addresses and their states."""
    return dict(re.findall(r"port \d: ([^/]+)/\d+: (.*)",
                           "\n".join(uart_dialogue.ask(job.instance, "addresses"))))


@pytest.fixture
def addressed(job: Job) -> Iterator[Job]:
    """At the end, the addresses of drive and host are as they were before."""
    before = settings_cmd.ask_running(job.instance).saved
    for number, prefix in enumerate(V6):
        job.quiet(f"ip addr add {prefix}1/64 dev eth{number} nodad")
    yield job
    steps.clean_host(job)
    now = settings_cmd.ask_running(job.instance).saved
    # The address's port is set together with the address.
    changes = settings.changed(now, before)
    configure(job, **{key: changes[key] for key in
                      sorted(changes, key=lambda key: key.endswith(".ip"))})
    for number, prefix in enumerate(V6):
        job.quiet(f"ip -6 addr flush dev eth{number} to {prefix}/64")
    steps.wait_target(job)


def paths(job: Job) -> dict[str, int]:
    """The number of completed I/Os of each path, by the controller's address."""
    script = ("for c in /sys/class/nvme/nvme*; do a=$(cat $c/address); "
              "set -- $(cat $c/nvme*c*n*/stat); "
              "echo $(cat $c/state) $a $(($1 + $5)); done")
    found = re.findall(r"^live traddr=([^,]+),\S* (\d+)$", job.quiet(script), re.M)
    return {address: int(count) for address, count in found}


def test_each_of_eight_addresses_serves_nvme_of(addressed: Job) -> None:
    """One host has a path through each address, and its I/O uses all paths in turn."""
    job = addressed
    configure(job, **MORE)
    until(lambda: {x for x, state in own(job).items() if state == "in use"
                   and not x.startswith("fe80")} == EIGHT)
    for address in EIGHT:
        job.run(f"ping -c 1 -W 5 {address}")
    job.run("nvme connect-all -t rdma -a 10.0.0.10 -s 4420")
    assert paths(job).keys() == EIGHT, paths(job)
    job.quiet("for s in /sys/class/nvme-subsystem/*; do "
              "echo round-robin > $s/iopolicy; done")
    before = paths(job)
    result = job.instance.run(steps.FIO.format(
        device=job.device(), name="eight",
        options="--rw=randwrite --bs=16k --iodepth=16 --size=8m"))
    assert "err= 0" in result.output, result.output
    after = paths(job)
    for address in EIGHT:
        assert after[address] - before[address] > 50, (address, before, after)


def test_a_ninth_address_is_refused(addressed: Job) -> None:
    job = addressed
    configure(job, **MORE)
    until(lambda: EIGHT <= own(job).keys())
    with pytest.raises(EssdError, match="address.4.ip: a drive has eight addresses"):
        uart_dialogue.ask(job.instance, "config set address.4.ip 10.0.0.12/24")
    assert EIGHT == {x for x in own(job) if not x.startswith("fe80")}
    assert "1 received" not in job.quiet("ping -c 1 -W 1 10.0.0.12", check=False)


def test_an_address_that_the_host_has_is_not_used(addressed: Job) -> None:
    """RFC 5227 and RFC 4862: another station had the address first."""
    job = addressed
    job.quiet(f"ip addr add 10.0.0.12/24 dev eth0; "
              f"ip addr add {V6[0]}12/64 dev eth0 nodad")
    try:
        configure(job, **{"port.0.probe": "on", "address.0.ip": "10.0.0.12/24",
                          "address.1.ip": f"{V6[0]}12/64"})
        theirs = {"10.0.0.12", f"{V6[0]}12"}
        until(lambda: {x for x, state in own(job).items()
                       if state == "another station has it"} == theirs)
        log = console.log(job.instance).decode(errors="replace")
        mac = job.quiet("cat /sys/class/net/eth0/address").strip()
        for address in theirs:
            assert f"{address} is also used by {mac}" in log
        listed = job.run(f"nvme discover -t rdma -a {job.addresses[0]} -s 4420")
        assert not theirs & set(re.findall(r"traddr:\s+(\S+)", listed))
    finally:
        job.quiet("ip addr del 10.0.0.12/24 dev eth0")


def send_and_hear(job: Job, tmp: Path, frames: list[bytes], seconds: int, rate: int,
                  what: str) -> list[Packet]:
    """Send frames through the host's first card; return the received ones of a kind."""
    (tmp / "frames").write_bytes(flood_frames.to_file(frames))
    job.instance.put(tmp / "frames", "/tmp/frames")
    job.quiet(f"rm -f /tmp/heard; (tcpdump -i eth0 -U -w /tmp/heard '{what}' "
              "</dev/null >/dev/null 2>&1 &); "
              "while ! [ -s /tmp/heard ]; do sleep 0.1; done; "
              f"/tmp/flood eth0 /tmp/frames {seconds} {rate}; sleep 1; "
              "pkill -INT -x tcpdump; while pgrep -x tcpdump; do sleep 0.1; done; true")
    heard = job.quiet("od -An -v -tx1 /tmp/heard | tr -d ' \\n'")
    return list(PcapReader(BytesIO(bytes.fromhex(heard))))


def test_the_drives_addresses_are_defended(
        addressed: Job, host_programs: dict[str, Path], tmp_path: Path) -> None:
    """The drive had the address first, and another station wants to use it."""
    job = addressed
    configure(job, **{"port.0.ipv6": f"{V6[0]}10/64"})
    until(lambda: own(job).get(f"{V6[0]}10") == "in use")
    # Linux probes an address before it uses it, and the drive answers.
    job.quiet(f"echo 1 > /proc/sys/net/ipv6/conf/eth0/accept_dad; "
              f"ip addr add {V6[0]}10/64 dev eth0")
    try:
        until(lambda: "dadfailed" in job.quiet("ip -6 addr show dev eth0"))
    finally:
        job.quiet(f"ip addr del {V6[0]}10/64 dev eth0; "
                  "echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad")
    # The drive answers an announcement without a probe with its own announcement, once.
    mac = flood_frames.neighbour_mac(job, job.addresses[0])
    other = "52:54:03:00:00:01"
    claim = bytes(Ether(src=other, dst=flood_frames.ALL) / ARP(
        op=1, hwsrc=other, psrc=job.addresses[0], pdst=job.addresses[0]))
    job.instance.put(host_programs["flood"], "/tmp/flood")
    heard = send_and_hear(job, tmp_path, [claim], 4, 1,
                          f"arp and ether src {mac} and ether broadcast")
    said = [packet[ARP] for packet in heard]
    assert [(x.op, x.psrc, x.pdst, x.hwsrc) for x in said] == [
        (1, job.addresses[0], job.addresses[0], mac)]
    steps.ping(job)


def strangers(first: int, count: int) -> list[tuple[str, str]]:
    return [(f"{V6[0]}9:{n:x}", f"52:54:02:00:{n >> 8:02x}:{n & 0xff:02x}")
            for n in range(first, first + count)]


def asking(who: list[tuple[str, str]], drive: str, mac: str,
           is_introduced: bool) -> list[bytes]:
    """An echo request of each peer, after a solicitation that contains its MAC."""
    frames = []
    for address, own_mac in who:
        packet = Ether(src=own_mac, dst=mac) / IPv6(src=address, dst=drive, hlim=255)
        if is_introduced:
            frames.append(bytes(packet / ICMPv6ND_NS(tgt=drive)
                                / ICMPv6NDOptSrcLLAddr(lladdr=own_mac)))
        frames.append(bytes(packet / ICMPv6EchoRequest(id=ECHO_ID, data=b"alive")))
    return frames


def answered(job: Job, tmp: Path, frames: list[bytes], mac: str) -> tuple[set, int]:
    """The (address, MAC) pairs that got an echo reply, and the drive's own requests."""
    seconds = len(frames) * 3 // RATE + 1       # three times, whatever is lost
    packets = send_and_hear(job, tmp, frames, seconds, RATE,
                            f"icmp6 and ether src {mac}")
    asked = sum(ICMPv6ND_NS in packet for packet in packets)
    return {(packet[IPv6].dst, packet[Ether].dst) for packet in packets
            if ICMPv6EchoReply in packet and packet[ICMPv6EchoReply].id == ECHO_ID}, asked


def neighbours(job: Job) -> int:
    text = "\n".join(uart_dialogue.ask(job.instance, "pools"))
    match = re.search(rf"^neighbours: (\d+) of {PEERS}$", text, re.M)
    assert match, text
    return int(match[1])


@pytest.mark.long
def test_1024_peers_at_once(addressed: Job, host_programs: dict[str, Path],
                            tmp_path: Path) -> None:
    """The drive knows all of them at once; further ones replace the oldest.

    A connected host is never replaced, and its I/O continues.
    """
    job = addressed
    drive = f"{V6[0]}10"
    configure(job, **{"port.0.ipv6": f"{drive}/64"})
    until(lambda: own(job).get(drive) == "in use")
    job.instance.put(host_programs["flood"], "/tmp/flood")
    mac = flood_frames.neighbour_mac(job, job.addresses[0])
    device = steps.connect(job)
    io = f"dd if={device} of=/dev/null bs=4k count=16 iflag=direct 2>&1"
    job.run(io)
    many = strangers(1, STRANGERS)
    seen, _ = answered(job, tmp_path, asking(many, drive, mac, True), mac)
    assert seen == set(many), (len(seen), set(many) - seen)
    assert neighbours(job) >= STRANGERS
    # Without solicitations, the drive still need not ask for MAC addresses.
    seen, asked = answered(job, tmp_path, asking(many, drive, mac, False), mac)
    assert seen == set(many), (len(seen), set(many) - seen)
    assert asked < 10, asked        # of the host, whose entry ages
    more = strangers(STRANGERS + 1, 100)
    seen, _ = answered(job, tmp_path, asking(more, drive, mac, True), mac)
    assert seen == set(more)
    assert neighbours(job) == PEERS
    job.run(io)
    steps.ping(job)
    assert job.quiet("cat /sys/class/nvme/nvme*/state").split() == ["live"]
