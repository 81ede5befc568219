# SPDX-License-Identifier: BSD-2-Clause
"""Frames that flood the drive, made by scapy instead of essd's code.

Each function returns some hundreds of frames of one kind, which differ in the fields
that differ in a real flood.
"""

import random
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

from scapy.contrib.roce import BTH
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoRequest, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6NDOptMTU, ICMPv6NDOptPrefixInfo,
    ICMPv6NDOptSrcLLAddr, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from essd.instance.steps import Job

COUNT = 400
ALL = "ff:ff:ff:ff:ff:ff"
ALL_NODES, ALL_NODES_MAC = "ff02::1", "33:33:00:00:00:01"
LLDP_GROUP = "01:80:c2:00:00:0e"
ROCE_PORT, SERVICE = 4791, 4420
UD_SEND_ONLY, RC_SEND_ONLY = 0x64, 0x04
MAD_LEN, CM_LEN = 24, 232


@dataclass
class Ends:
    """The addresses of the two ends of a flood."""

    host_mac: str
    host: str
    drive_mac: str
    drive: str
    drive6: str         # link-local

    @property
    def eth(self) -> Packet:
        return Ether(src=self.host_mac, dst=self.drive_mac)

    @property
    def ip(self) -> Packet:
        return self.eth / IP(src=self.host, dst=self.drive)


def neighbour_mac(job: Job, address: str) -> str:
    """The MAC address that the host's kernel knows for an address."""
    job.run(f"ping -c 1 -W 2 {address}")
    match = re.search(r"lladdr (\S+)", job.quiet(f"ip neigh show {address}"))
    assert match
    return match[1]


def pick() -> random.Random:
    return random.Random(4420)


def some_mac(some: random.Random) -> str:
    return "52:54:01:" + ":".join(f"{some.randrange(256):02x}" for _ in range(3))


def some_ip6(some: random.Random) -> str:
    return "fe80::" + ":".join(f"{some.randrange(1, 0xffff):x}" for _ in range(4))


def neighbour_ip(ends: Ends, some: random.Random) -> str:
    """An address in the drive's /24 network."""
    return ends.drive.rsplit(".", 1)[0] + f".{some.randrange(20, 250)}"


def arp_requests(ends: Ends) -> list[bytes]:
    some = pick()
    return [bytes(Ether(src=mac, dst=ALL) / ARP(
        op=1, hwsrc=mac, psrc=neighbour_ip(ends, some), pdst=ends.drive))
        for mac in (some_mac(some) for _ in range(COUNT))]


def arp_conflicts(ends: Ends) -> list[bytes]:
    """Other stations announce the drive's address as theirs."""
    some = pick()
    return [bytes(Ether(src=mac, dst=ALL) / ARP(
        op=some.choice((1, 2)), hwsrc=mac, psrc=ends.drive, pdst=ends.drive))
        for mac in (some_mac(some) for _ in range(COUNT))]


def echoes(ends: Ends) -> list[bytes]:
    return [bytes(ends.ip / ICMP(id=7, seq=n) / Raw(bytes(n * 3)))
            for n in range(COUNT)]


def fragments(ends: Ends) -> list[bytes]:
    """First, middle or last fragments of packets that are never complete."""
    some = pick()
    frames = []
    for n in range(COUNT):
        at = some.choice((0, 0, 64, 1000, 8000))
        frames.append(bytes(ends.eth / IP(
            src=ends.host, dst=ends.drive, id=n, proto=1, frag=at,
            flags=some.choice(("MF", "MF", 0) if at else ("MF",)))
            / Raw(bytes(some.randrange(1, 180) * 8))))
        frames.append(bytes(ends.eth / IPv6(src=some_ip6(some), dst=ends.drive6)
                            / IPv6ExtHdrFragment(nh=58, offset=at, m=1, id=n)
                            / Raw(bytes(some.randrange(1, 180) * 8))))
    return frames


def solicitations(ends: Ends) -> list[bytes]:
    some = pick()
    frames = []
    for _ in range(COUNT):
        mac, source = some_mac(some), some_ip6(some)
        frames.append(bytes(Ether(src=mac, dst=ends.drive_mac)
                            / IPv6(src=source, dst=ends.drive6, hlim=255)
                            / ICMPv6ND_NS(tgt=ends.drive6)
                            / ICMPv6NDOptSrcLLAddr(lladdr=mac)))
    return frames


def router_advertisements(ends: Ends) -> list[bytes]:
    some = pick()
    frames = []
    for n in range(COUNT):
        mac, source = some_mac(some), some_ip6(some)
        frames.append(bytes(
            Ether(src=mac, dst=ALL_NODES_MAC)
            / IPv6(src=source, dst=ALL_NODES, hlim=255)
            / ICMPv6ND_RA(routerlifetime=9000) / ICMPv6NDOptSrcLLAddr(lladdr=mac)
            / ICMPv6NDOptMTU(mtu=some.choice((0, 1280, 9000, 0xffffffff)))
            / ICMPv6NDOptPrefixInfo(prefix=f"2001:db8:{n:x}::", prefixlen=64)))
    return frames


def udp_closed(ends: Ends) -> list[bytes]:
    return [bytes(ends.ip / UDP(sport=9000 + n, dport=1000 + n) / Raw(bytes(n)))
            for n in range(COUNT)]


def roce(ends: Ends, bth: Packet, payload: bytes) -> bytes:
    """A RoCEv2 packet; scapy fills in its ICRC."""
    return bytes(ends.eth / IP(src=ends.host, dst=ends.drive, flags="DF", id=0)
                 / UDP(sport=50000, dport=ROCE_PORT, chksum=0) / bth / Raw(payload))


def roce_bad_icrc(ends: Ends) -> list[bytes]:
    frames = []
    for n in range(COUNT):
        good = roce(ends, BTH(opcode=RC_SEND_ONLY, dqpn=n, psn=n), bytes(64))
        frames.append(good[:-1] + bytes([good[-1] ^ 0x55]))
    return frames


def roce_unknown_qp(ends: Ends) -> list[bytes]:
    some = pick()
    return [roce(ends, BTH(opcode=some.choice((0x04, 0x06, 0x0a, 0x0c, 0x11)),
                           dqpn=some.randrange(1 << 20, 1 << 24), psn=n, ackreq=1),
                 bytes(64)) for n in range(COUNT)]


def roce_bad_opcodes(ends: Ends) -> list[bytes]:
    """Every opcode, to QP 1 and to an unknown QP, with every length."""
    some = pick()
    return [roce(ends, BTH(opcode=n & 0xff, dqpn=some.choice((0, 1, 0xffffff)), psn=n,
                           version=some.choice((0, 0, 0, 3)),
                           padcount=some.randrange(4)), bytes(n % 67))
            for n in range(512)]


def cm_request(ends: Ends, number: int) -> bytes:
    """A REQ for an admin queue: bit positions of IBTA Vol 1 section 12.6.5."""
    message = bytearray(CM_LEN)

    def put(at: int, data: bytes) -> None:
        message[at:at + len(data)] = data

    def gid(address: str) -> bytes:
        return bytes(10) + b"\xff\xff" + bytes(map(int, address.split(".")))

    put(0, struct.pack(">I", 0x70000000 + number))          # local comm ID
    put(8, struct.pack(">Q", 0x01060000 | SERVICE))
    put(16, struct.pack(">Q", 0x0200_0000_0000_0001))       # local CA GUID
    put(32, struct.pack(">I", (0x1000 + number) << 8 | 16))  # QPN, resources
    put(36, bytes([0, 0, 0, 16]))                           # initiator depth
    put(40, bytes([0, 0, 0, 20 << 3 | 1]))                  # timeout, RC, flow control
    put(44, struct.pack(">I", number << 8 | 19 << 3 | 7))   # PSN, timeout, retries
    put(48, b"\xff\xff" + bytes([3 << 4 | 7, 15 << 4]))     # P_Key, MTU, CM retries
    put(52, b"\xff\xff\xff\xff")                            # LIDs
    put(56, gid(ends.host) + gid(ends.drive))
    put(92, bytes([0, 64, 0, 14 << 3]))                     # hop limit, ACK timeout
    put(140, bytes([0, 4 << 4]) + struct.pack(">H", 20000 + number % 40000)
        + bytes(12) + bytes(map(int, ends.host.split(".")))
        + bytes(12) + bytes(map(int, ends.drive.split("."))))
    put(176, struct.pack("<HHHHH", 0, 0, 32, 31, 0))        # NVMe: queue 0, 32 deep
    mad = (bytes([1, 7, 2, 3]) + bytes(4) + struct.pack(">Q", 0x5000 + number)
           + struct.pack(">HHI", 0x0010, 0, 0) + bytes(message))
    deth = struct.pack(">II", 0x80010000, 1)
    return roce(ends, BTH(opcode=UD_SEND_ONLY, dqpn=1, psn=number, migreq=1),
                deth + mad)


def cm_requests(ends: Ends) -> list[bytes]:
    """REQs whose sender never answers the drive's REPs."""
    return [cm_request(ends, number) for number in range(2 * COUNT)]


def lldp(ends: Ends) -> list[bytes]:
    def tlv(kind: int, value: bytes) -> bytes:
        return struct.pack(">H", kind << 9 | len(value)) + value

    some = pick()
    return [bytes(Ether(src=some_mac(some), dst=LLDP_GROUP, type=0x88cc) / Raw(
        tlv(1, b"\x07" + str(n).encode()) + tlv(2, b"\x071")
        + tlv(3, struct.pack(">H", some.choice((0, 1, 1)))) + tlv(5, bytes(n % 400))
        + tlv(0, b""))) for n in range(COUNT)]


def bad_ip(ends: Ends) -> list[bytes]:
    """Invalid lengths, versions and options; endless chains of extension headers."""
    some = pick()
    frames = []
    for n in range(COUNT):
        broken = (
            IP(src=ends.host, dst=ends.drive, len=some.randrange(65536)) / ICMP(),
            IP(src=ends.host, dst=ends.drive, ihl=some.randrange(16)) / TCP(),
            IP(src=ends.host, dst=ends.drive, version=n % 16) / UDP(len=n),
            IP(src=ends.host, dst=ends.drive, proto=1, frag=8191, flags="MF")
            / Raw(bytes(1400)),
            IPv6(src=some_ip6(some), dst=ends.drive6, plen=some.randrange(65536))
            / ICMPv6EchoRequest(),
            IPv6(src=some_ip6(some), dst=ends.drive6) / IPv6ExtHdrHopByHop(len=n % 256)
            / IPv6ExtHdrDestOpt(len=n % 256) / Raw(bytes(n)),
        )[n % 6]
        whole = bytes(ends.eth / broken)
        frames.append(whole[:some.randrange(14, len(whole) + 1)] if n % 2 else whole)
    return frames


def noise(ends: Ends) -> list[bytes]:
    """Valid headers, followed by random bytes."""
    some = pick()
    return [bytes(Ether(src=some_mac(some), dst=some.choice((ends.drive_mac, ALL)),
                        type=some.choice((0x0800, 0x0806, 0x86dd, 0x8100, 0x88cc, 0x8809,
                                          0x8915, 0x8808, some.randrange(65536)))))
            + some.randbytes(some.randrange(1, 400)) for _ in range(COUNT)]


KINDS: list[Callable[[Ends], list[bytes]]] = [
    arp_requests, arp_conflicts, echoes, fragments, solicitations,
    router_advertisements, udp_closed, roce_bad_icrc, roce_unknown_qp,
    roce_bad_opcodes, cm_requests, lldp, bad_ip, noise,
]


def to_file(frames: list[bytes]) -> bytes:
    """Write the frames in the format that tests/host/flood.c reads."""
    return b"".join(struct.pack("<H", len(frame)) + frame for frame in frames)
