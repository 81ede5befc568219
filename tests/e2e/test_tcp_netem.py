# SPDX-License-Identifier: BSD-2-Clause
"""Linux as the peer of the TCP offload engine beyond a network that delays, loses, reorders
and doubles packets (netem): every byte comes back, and Linux knows what it should.

The peer is a network namespace of the host `near`, which routes its packets.  So netem is on
both ways, and no host sees in its own queue what the network has done.  The host `far` serves
the same ports beside the drive: what Linux does with Linux is what to compare with.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import essd
from essd.api.background import Background
from essd.drive import mgmt, tcp
from essd.instance.config import UML

pytestmark = [pytest.mark.drive, pytest.mark.uml, pytest.mark.lossy, pytest.mark.long]

TOPOLOGY = """
drives:
  d: {size: 256M, transports: [rdma, tcp], config: echo.yaml, port0: "10.0.0.10/24,fd00::10/64"}
hosts:
  near: {kind: uml, card0: "10.0.0.1/24,fd00::1/64"}
  far: {kind: uml, card0: "10.0.0.2/24,fd00::2/64"}
switches:
  s: {}
cables:
  - d:0 - s
  - near - s
  - far - s
"""
CONFIG = "tcp:\n  echo: on\n"
DRIVE = {4: "10.0.0.10", 6: "fd00::10"}
FAR = {4: "10.0.0.2", 6: "fd00::2"}
# The packets of the namespace `peer` go through `inner` and `outer`, whole as on a cable.
ROUTER = """
set -e
ip netns add peer
ip link add outer type veth peer name inner netns peer
ethtool -K outer tso off gso off gro off
ip netns exec peer ethtool -K inner tso off gso off gro off
ip addr add 10.50.0.1/24 dev outer
ip addr add fd50::1/64 dev outer nodad
ip link set outer up
ip -n peer addr add 10.0.0.77/32 dev inner
ip -n peer addr add fd00::77/128 dev inner nodad
ip -n peer addr add fd50::2/64 dev inner nodad
ip -n peer link set inner up
ip -n peer route add 10.50.0.1 dev inner
ip -n peer route add default via 10.50.0.1
ip -n peer route add default via fd50::1
ip route add 10.0.0.77 dev outer
ip route add fd00::77 via fd50::2 dev outer
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv4/conf/eth0/proxy_arp
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
echo 1 > /proc/sys/net/ipv6/conf/eth0/proxy_ndp
ip -6 neigh add proxy fd00::77 dev eth0
"""
ECHO, DISCARD = 7, 9
WINDOW = 32768                  # NVME_TCP_RING_LEN
IMPAIRMENTS = ("loss 5%", "reorder 25%", "duplicate 1%")
DELAYS_MS = (10, 100)
MOST_S = 600.0
EACH_WAY = 100_000_000
CONNECTIONS = 32
# Bits of tcpi_options: timestamps, SACK, window scale.
AGREED = 7


@dataclass
class Net:
    near: essd.Host
    far: essd.Host
    drive: essd.Drive

    @contextmanager
    def netem(self, what: str, round_trip_ms: int) -> Iterator[None]:
        """What netem does to the packets of both directions."""
        words = f"root netem limit 20000 delay {round_trip_ms / 2}ms {what}"
        for card in ("outer", "inner"):
            self.near.run(f"{prefix(card)}tc qdisc replace dev {card} {words}")
        try:
            yield
        finally:
            for card in ("outer", "inner"):
                self.near.run(f"{prefix(card)}tc qdisc del dev {card} root")

    def load(self, address: str, port: int, size: int, connections: int = 1) -> dict[str, Any]:
        """What tests/host/tcp_load.c says; every byte has come back."""
        return dict(json.loads(self.near.read(
            f"ip netns exec peer /tmp/tcp_load {address} {port} {size} {connections}", MOST_S)))


def prefix(card: str) -> str:
    return "ip netns exec peer " if card == "inner" else ""


@pytest.fixture(scope="module")
def net(host_kind: str, host_programs: dict[str, Path],
        tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    if host_kind != UML:
        pytest.skip("user-mode Linux is not used")
    folder = tmp_path_factory.mktemp("netem")
    (folder / "netem.yaml").write_text(TOPOLOGY)
    (folder / "echo.yaml").write_text(CONFIG)
    with essd.up(topology=folder / "netem.yaml") as system:
        hosts = {host.name: host for host in system.hosts}
        for host in hosts.values():
            host.put(host_programs["tcp_load"], "/tmp/tcp_load")
        hosts["near"].run(ROUTER)
        server: Background = hosts["far"].start(f"/tmp/tcp_load serve {WINDOW}")
        found = Net(hosts["near"], hosts["far"], system.drives[0])
        for address in (DRIVE[4], FAR[4], DRIVE[6], FAR[6]):
            found.near.run(f"for n in $(seq 50); do ip netns exec peer /usr/bin/ping -c 1 -W 1 "
                           f"{address} && exit 0; sleep 0.2; done; exit 1")
        yield found
        server.kill()


def check_kernel(said: dict[str, Any], what: str, round_trip_ms: int) -> None:
    """What the kernel says of the connection (`ss -ti` prints the same values)."""
    assert said["options"] & AGREED == AGREED, said
    assert said["mss"] in (1448, 1428) and said["cwnd"] >= 1, said
    assert said["rtt-us"] >= said["least-rtt-us"], said
    if "reorder" not in what:       # netem sends a quarter of the packets at once
        assert round_trip_ms * 1000 <= said["least-rtt-us"] < round_trip_ms * 3000, said
    if "loss" in what:
        assert said["retransmits"] > 0, said


@pytest.mark.parametrize("round_trip_ms", DELAYS_MS)
@pytest.mark.parametrize("what", IMPAIRMENTS)
def test_100_megabytes_come_back(net: Net, what: str, round_trip_ms: int) -> None:
    with net.netem(what, round_trip_ms):
        said = net.load(DRIVE[4], ECHO, EACH_WAY, CONNECTIONS)
        assert said["bytes"] == EACH_WAY
        check_kernel(said, what, round_trip_ms)
        print(what, round_trip_ms, said)


@pytest.mark.parametrize("port", [ECHO, DISCARD])
@pytest.mark.parametrize("family", DRIVE)
def test_all_of_it_at_once(net: Net, family: int, port: int) -> None:
    """By IPv4 and IPv6, one connection and many, with Linux and with the drive."""
    with net.netem(BAD, 10):
        for address in (DRIVE[family], FAR[family]):
            for connections in (1, CONNECTIONS):
                said = net.load(address, port, 4 << 20, connections)
                check_kernel(said, BAD, 10)


# ---- NVMe/TCP, whose data the engine places, also those that came beyond a gap.

FIO = ("fio --name=own --filename={device} --direct=1 --ioengine=libaio --bsrange=512-256k "
       "--iodepth=16 --rw=randwrite --size=4m --verify=crc32c --verify_fatal=1")
BAD = "loss 2% reorder 10% duplicate 1%"


def nvme_tcp(net: Net) -> dict[str, int]:
    return dict(mgmt.ask(net.drive.instance, "counters")["nvme-tcp"])


@pytest.mark.parametrize("digests", ["", "-g -G"])
def test_nvme_tcp_reads_what_it_has_written(net: Net, digests: str) -> None:
    before = nvme_tcp(net)
    with net.netem(BAD, 10):
        net.near.run(f"ip netns exec peer nvme connect -t tcp -a {DRIVE[4]} -s 4420 "
                     f"-n {net.drive.nqn} {digests}")
        try:
            assert {entry["remote"] for entry in tcp.read(net.drive.instance)
                    if "nvme" in entry} == {"10.0.0.77"}    # the packets do pass netem
            net.near.run(FIO.format(device=net.near.device(net.drive)), MOST_S)
        finally:
            net.near.run(f"nvme disconnect -n {net.drive.nqn}")
    grown = {name: value - before[name] for name, value in nvme_tcp(net).items()}
    assert grown["h2c-data-placed"] == grown["h2c-data-in"] > 30, grown
    assert not any(value for name, value in grown.items() if "digest" in name), grown


# ---- Throughput: printed as a table for docs/tcp.md, and not asserted.

TIMES = int(os.environ.get("ESSD_NETEM_TIMES", "1"))
SIZES = {10: 2_000_000, 100: 1_000_000}


@pytest.mark.parametrize("round_trip_ms", DELAYS_MS)
def test_throughput_beside_linux(net: Net, round_trip_ms: int) -> None:
    size = SIZES[round_trip_ms]
    print()
    for what in ("", *IMPAIRMENTS):
        found: dict[tuple[str, int], list[float]] = {}
        with net.netem(what, round_trip_ms):
            for _ in range(TIMES):      # in turn, so that all have the same load beside them
                for port in (DISCARD, ECHO):
                    for address in (DRIVE[4], FAR[4]):
                        said = net.load(address, port, size)
                        assert said["window"] <= WINDOW, said
                        found.setdefault((address, port), []).append(size / said["seconds"])
        cells = [f"{median(found[address, port]) / 1000:.0f}"
                 for port in (DISCARD, ECHO) for address in (DRIVE[4], FAR[4])]
        print(f"| {round_trip_ms} ms | {what or 'nothing'} | {' | '.join(cells)} |",
              flush=True)
