#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Make the seeds of tests/fuzz/corpus with scapy.

    make_corpus.py [FORMAT...]

A seed is an input as in tests/fuzz/seat.h: records of flags, length and bytes.
Inputs that libFuzzer has found are kept beside the seeds, named by their hash.
"""

import logging
import struct
import sys
from collections.abc import Callable
from pathlib import Path

from scapy.contrib.lacp import LACP, MarkerProtocol, SlowProtocol
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.dns import DNS, DNSQR, DNSRR, DNSRRSRV, dns_compress
from scapy.layers.inet import ICMP, IP, UDP, IPOption
from scapy.layers.inet6 import (
    ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6MLQuery, ICMPv6ND_NA, ICMPv6ND_NS,
    ICMPv6ND_RA, ICMPv6ND_Redirect, ICMPv6NDOptDstLLAddr, ICMPv6NDOptMTU,
    ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr, ICMPv6PacketTooBig, IPv6,
    IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, PadN)
from scapy.layers.l2 import ARP
from scapy.layers.ntp import NTPHeader
from scapy.packet import Packet, Raw

CORPUS = Path(__file__).resolve().parent / "corpus"

RAW, VLAN, GROUP, OTHER, NO_ROOM, SECOND, MINUTE, PORT_1 = (1 << n for n in range(8))

HOST_MAC, OTHER_MAC, OWN_MAC = ("52:54:00:12:34:56", "52:54:00:65:43:21",
                                "02:00:00:00:00:10")
HOST, OWN, REMOTE = "10.0.0.1", "10.0.0.2", "192.168.5.5"
HOST6, OWN6, ROUTER6 = "2001:db8::1", "2001:db8::2", "fe80::1"

Seed = list[tuple[int, Packet | bytes]]


def arp() -> dict[str, Seed]:
    def packet(op: int, src: str, dst: str, mac: str = HOST_MAC) -> Packet:
        return ARP(op=op, hwsrc=mac, psrc=src, pdst=dst, hwdst="00:00:00:00:00:00")

    return {
        "request": [(GROUP, packet(1, HOST, OWN)), (NO_ROOM, packet(1, HOST, OWN))],
        "reply": [(0, packet(2, HOST, OWN))],
        "probe": [(GROUP, packet(1, "0.0.0.0", OWN))],
        "announcement": [(GROUP, packet(1, HOST, HOST))],
        "conflict": [(GROUP, packet(1, OWN, OWN, OTHER_MAC)),
                     (GROUP | SECOND, packet(2, OWN, OWN, OTHER_MAC)),
                     (GROUP | MINUTE, packet(1, OWN, OWN, OTHER_MAC))],
        "moved": [(0, packet(2, HOST, OWN)), (0, packet(2, HOST, OWN, OTHER_MAC)),
                  (MINUTE, packet(1, HOST, OWN, OTHER_MAC))],
        "vlan": [(VLAN | GROUP, packet(1, "10.9.0.1", "10.9.0.2"))],
        "port1": [(PORT_1 | GROUP, packet(1, "10.1.0.1", "10.1.0.2"))],
        "short": [(0, bytes(packet(1, HOST, OWN))[:20])],
        "spoofed": [(OTHER, packet(1, HOST, OWN, OTHER_MAC))],
        "padded": [(GROUP, bytes(packet(1, HOST, OWN)) + bytes(18))],
    }


def ipv4() -> dict[str, Seed]:
    def packet(inner: Packet, **options: object) -> Packet:
        return IP(src=HOST, dst=OWN, id=7, **options) / inner

    echo = ICMP(id=1, seq=2) / Raw(bytes(range(32)))
    long = bytes(ICMP(id=1, seq=3) / Raw(bytes(range(100)) * 2))

    def fragment(at: int, size: int, more: bool) -> Packet:
        return packet(Raw(long[at:at + size]), proto=1, frag=at // 8,
                      flags="MF" if more else 0)

    return {
        "echo": [(0, packet(echo)), (NO_ROOM, packet(echo))],
        "udp": [(0, packet(UDP(sport=5, dport=9) / Raw(b"x")))],
        "tcp": [(0, packet(Raw(bytes(20)), proto=6))],
        "unknown": [(0, packet(Raw(b"12345678"), proto=253))],
        "timestamp": [(0, packet(echo, options=[IPOption(b"\x44\x0c\x05\x00" + bytes(8))]))],
        "route": [(0, packet(echo, options=[IPOption(b"\x83\x07\x04" + bytes(4))]))],
        "nops": [(OTHER, packet(echo, options=[IPOption(b"\x01"), IPOption(b"\x00")]))],
        "fragments": [(0, fragment(0, 80, True)), (0, fragment(80, 64, True)),
                      (0, fragment(144, 64, False))],
        "reversed": [(0, fragment(144, 64, False)), (0, fragment(80, 64, True)),
                     (0, fragment(0, 80, True))],
        "overlap": [(0, fragment(0, 80, True)), (0, fragment(72, 72, True)),
                    (0, fragment(144, 64, False))],
        "incomplete": [(MINUTE, fragment(0, 80, True)), (0, fragment(80, 128, False))],
        "broadcast": [(GROUP, IP(src=HOST, dst="10.0.255.255") / echo)],
        "elsewhere": [(0, IP(src=HOST, dst="10.0.0.77") / echo)],
        "routed": [(0, IP(src=REMOTE, dst=OWN) / echo)],
        "vlan": [(VLAN, IP(src="10.9.0.1", dst="10.9.0.2") / echo)],
        "port1": [(PORT_1, IP(src="10.1.0.1", dst="10.1.0.2") / echo)],
        "ttl1": [(0, packet(echo, ttl=1))],
        "truncated": [(RAW, bytes(packet(echo))[:24])],
    }


def ipv6() -> dict[str, Seed]:
    def packet(*parts: Packet, dst: str = OWN6) -> bytes:
        # Built with the checksum of the whole message, before it is fragmented.
        whole: Packet = IPv6(src=HOST6, dst=dst, hlim=255)
        for part in parts:
            whole = whole / part
        return bytes(whole)

    echo = ICMPv6EchoRequest(id=1, seq=2, data=bytes(range(32)))
    whole = bytes(IPv6(src=HOST6, dst=OWN6) / ICMPv6EchoRequest(
        id=1, seq=3, data=bytes(range(152))))[40:]

    def fragment(at: int, size: int, more: int, head: Packet | None = None) -> bytes:
        part = IPv6ExtHdrFragment(nh=58, offset=at // 8, m=more, id=99)
        body = Raw(whole[at:at + size])
        return packet(head, part, body) if head else packet(part, body)

    return {
        "echo": [(0, packet(echo)), (NO_ROOM, packet(echo))],
        "udp": [(0, packet(UDP(sport=5, dport=9), Raw(b"x")))],
        "tcp": [(0, bytes(IPv6(src=HOST6, dst=OWN6, nh=6) / Raw(bytes(20))))],
        "none": [(0, bytes(IPv6(src=HOST6, dst=OWN6, nh=59)))],
        "unknown": [(0, bytes(IPv6(src=HOST6, dst=OWN6, nh=253) / Raw(bytes(8))))],
        "hopbyhop": [(0, packet(IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0\0")]),
                                echo))],
        "options": [(0, bytes(IPv6(src=HOST6, dst=OWN6, nh=60) / Raw(
            bytes([58, 0, kind << 6 | 0x1e, 4, 1, 2, 3, 4])) / Raw(whole)))
            for kind in range(4)],
        "routing": [(0, packet(IPv6ExtHdrRouting(addresses=[HOST6]), echo)),
                    (0, packet(IPv6ExtHdrRouting(addresses=[], segleft=0), echo))],
        "chain": [(0, packet(IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt(),
                             IPv6ExtHdrRouting(segleft=0), IPv6ExtHdrDestOpt(), echo))],
        "misplaced": [(0, packet(IPv6ExtHdrDestOpt(), IPv6ExtHdrHopByHop(), echo))],
        "fragments": [(0, fragment(0, 80, 1)), (0, fragment(80, 80, 0))],
        "reversed": [(0, fragment(80, 80, 0)), (0, fragment(0, 80, 1))],
        "atomic": [(0, fragment(0, 160, 0))],
        "overlap": [(0, fragment(0, 80, 1)), (0, fragment(72, 88, 0))],
        "ragged": [(0, fragment(0, 75, 1))],
        "behindend": [(0, packet(IPv6ExtHdrFragment(nh=58, offset=8191, m=0, id=1),
                                 Raw(bytes(64))))],
        "incomplete": [(MINUTE, fragment(0, 80, 1, IPv6ExtHdrDestOpt()))],
        "group": [(GROUP, packet(echo, dst="ff02::1"))],
        "elsewhere": [(0, packet(echo, dst="2001:db8::77"))],
        "truncated": [(RAW, packet(echo)[:50])],
    }


def icmp() -> dict[str, Seed]:
    ours = bytes(IP(src=OWN, dst=HOST) / UDP(sport=4791, dport=4791) / Raw(bytes(16)))
    return {
        "echo": [(0, ICMP(id=1, seq=2) / Raw(bytes(56))), (GROUP, ICMP(id=1, seq=2))],
        "reply": [(0, ICMP(type=0, id=1, seq=2) / Raw(bytes(8)))],
        "unreachable": [(0, ICMP(type=3, code=code) / Raw(ours)) for code in (0, 3, 13)],
        "toobig": [(0, ICMP(type=3, code=4, nexthopmtu=mtu) / Raw(ours))
                   for mtu in (1400, 576, 68, 0, 65535)],
        "toobigcut": [(0, ICMP(type=3, code=4, nexthopmtu=1300) / Raw(ours[:21]))],
        "exceeded": [(0, ICMP(type=11) / Raw(ours))],
        "problem": [(0, ICMP(type=12, ptr=20) / Raw(ours))],
        "redirect": [(0, ICMP(type=5, code=1, gw=HOST) / Raw(ours))],
        "quench": [(0, ICMP(type=4) / Raw(ours))],
        "timestamp": [(0, ICMP(type=13) / Raw(bytes(12)))],
        "router": [(0, bytes([9, 0, 0, 0, 1, 2, 7, 8]) + bytes(8))],
        "mask": [(0, bytes([17, 0, 0, 0]) + bytes(8))],
        "badsum": [(RAW, ICMP(id=1, chksum=1))],
        "short": [(0, b"\x08\x00\x00\x00")],
        "many": [(VLAN, ICMP(id=n)) for n in range(6)],
        "vlan": [(VLAN, ICMP(id=1))],
        "port1": [(PORT_1, ICMP(id=1) / Raw(bytes(1472)))],
    }


def icmpv6() -> dict[str, Seed]:
    ours = bytes(IPv6(src=OWN6, dst=HOST6) / UDP(sport=4791, dport=4791) / Raw(bytes(16)))

    def prefix(net: str = "2001:db8:5::", length: int = 64, valid: int = 3600,
               preferred: int = 1800) -> Packet:
        return ICMPv6NDOptPrefixInfo(prefix=net, prefixlen=length, validlifetime=valid,
                                     preferredlifetime=preferred)

    source = ICMPv6NDOptSrcLLAddr(lladdr=HOST_MAC)
    ra = ICMPv6ND_RA(routerlifetime=1800, chlim=64)
    return {
        "echo": [(0, ICMPv6EchoRequest(id=1, data=bytes(40))),
                 (GROUP, ICMPv6EchoRequest(id=1))],
        "ns": [(GROUP, ICMPv6ND_NS(tgt=OWN6) / source), (0, ICMPv6ND_NS(tgt=OWN6))],
        "dad": [(GROUP | OTHER, ICMPv6ND_NS(tgt=OWN6))],
        "na": [(0, ICMPv6ND_NA(tgt=HOST6, R=0, S=1, O=1)
                / ICMPv6NDOptDstLLAddr(lladdr=HOST_MAC))],
        "claim": [(GROUP, ICMPv6ND_NA(tgt=OWN6, R=0, S=0, O=1)
                   / ICMPv6NDOptDstLLAddr(lladdr=OTHER_MAC))],
        "ra": [(OTHER | GROUP, ra / source / ICMPv6NDOptMTU(mtu=1400) / prefix())],
        "ragone": [(OTHER | GROUP, ra / source / prefix()),
                   (OTHER | GROUP | SECOND, ICMPv6ND_RA(routerlifetime=0) / source)],
        "prefixes": [(OTHER | GROUP, ra / prefix("2001:db8:6::") / prefix("2001:db8:7::")
                      / prefix("fe80::") / prefix("2001:db8:8::", 48)
                      / prefix("2001:db8:9::") / prefix("2001:db8:a::"))],
        "lifetimes": [(OTHER | GROUP | SECOND, ra / prefix(valid=2, preferred=1)),
                      (OTHER | GROUP | MINUTE, ra / prefix(valid=1, preferred=2)),
                      (OTHER | GROUP, ra / prefix(valid=0xffffffff,
                                                  preferred=0xffffffff))],
        "mtus": [(OTHER | GROUP, ra / ICMPv6NDOptMTU(mtu=mtu))
                 for mtu in (0, 1279, 1280, 9000, 0xffffffff)],
        "rafarther": [(0, ra / source / prefix())],
        "optzero": [(OTHER | GROUP, bytes(ra) + b"\x01\x00" + bytes(6))],
        "optlong": [(OTHER | GROUP, bytes(ra) + b"\x03\x1f" + bytes(30))],
        "redirect": [(OTHER, ICMPv6ND_Redirect(tgt=ROUTER6, dst=HOST6))],
        "query": [(OTHER | GROUP | SECOND, ICMPv6MLQuery(mrd=1000)),
                  (OTHER | GROUP | SECOND, ICMPv6MLQuery(mrd=10, mladdr="ff02::1:ff00:2"))],
        "toobig": [(0, ICMPv6PacketTooBig(mtu=mtu) / Raw(ours))
                   for mtu in (1280, 1000, 0, 9000)],
        "unreachable": [(0, ICMPv6DestUnreach(code=code) / Raw(ours)) for code in (0, 4)],
        "reply": [(0, bytes([129, 0, 0, 0, 0, 1, 0, 1]))],
        "unknown": [(0, bytes([200, 0, 0, 0]) + bytes(8))],
        "short": [(0, bytes([135, 0, 0, 0]) + bytes(8))],
    }


def udp() -> dict[str, Seed]:
    def datagram(port: int, data: bytes, **options: object) -> Packet:
        return UDP(sport=5000, dport=port, **options) / Raw(data)

    return {
        "bound": [(0, datagram(4000, b"hello")), (OTHER, datagram(4000, b"hello"))],
        "closed": [(0, datagram(9, b"hello")), (OTHER, datagram(9, b"hello"))],
        "flood": [(0, datagram(port, b"")) for port in range(1, 20)],
        "group": [(GROUP, datagram(4000, b"hello")), (GROUP, datagram(9, b""))],
        "nosum": [(RAW, datagram(4000, b"hello", chksum=0)),
                  (RAW | OTHER, datagram(4000, b"hello", chksum=0))],
        "badsum": [(RAW, datagram(4000, b"hello", chksum=77))],
        "short": [(RAW, datagram(4000, b"hello", len=7)), (0, b"\x00\x01\x0f\xa0")],
        "long": [(RAW, datagram(4000, b"hello", len=500, chksum=0))],
        "padded": [(RAW, datagram(4000, b"hello", len=9, chksum=0))],
        "vlan": [(VLAN, datagram(4000, bytes(1400)))],
        "port1": [(PORT_1, datagram(4000, b"x")), (PORT_1, datagram(9, b"x"))],
    }


def lldp() -> dict[str, Seed]:
    def tlv(kind: int, value: bytes) -> bytes:
        return struct.pack(">H", kind << 9 | len(value)) + value

    def organisation(oui: int, subtype: int, data: bytes) -> bytes:
        return tlv(127, oui.to_bytes(3, "big") + bytes([subtype]) + data)

    chassis = tlv(1, b"\x04" + bytes.fromhex(HOST_MAC.replace(":", "")))

    def pdu(name: str = "leaf3", ttl: int = 120, port: bytes = b"Ethernet1/7",
            extra: bytes = b"") -> bytes:
        return (chassis + tlv(2, b"\x05" + port) + tlv(3, struct.pack(">H", ttl))
                + tlv(5, name.encode()) + extra + tlv(0, b""))

    return {
        "switch": [(0, pdu(extra=tlv(4, b"to the drive") + tlv(6, b"a switch, 1.2.3")
                           + tlv(7, b"\x00\x14\x00\x04")
                           + tlv(8, b"\x05\x01\x0a\x00\x00\x01\x02\0\0\0\x03\x00")
                           + tlv(8, b"\x11\x02" + b"\xfe\x80" + bytes(13) + b"\x01"
                                 + b"\x02\0\0\0\x03\x00")))],
        "ieee": [(0, pdu(extra=organisation(0x0080c2, 1, b"\x00\x64")
                         + organisation(0x0080c2, 3, b"\x00\x64\x03abc")
                         + organisation(0x00120f, 1, b"\x03\x80\x00\x00\x5c")
                         + organisation(0x00120f, 4, b"\x23\x32")
                         + organisation(0x0012bb, 1, b"\x00\x01\x01")))],
        "change": [(SECOND, pdu()), (SECOND, pdu("leaf4")), (0, pdu("leaf4", 0))],
        "expire": [(MINUTE, pdu(ttl=2)), (0, pdu(ttl=65535))],
        "many": [(0, pdu(f"leaf{n}", port=b"%d" % n)) for n in range(6)],
        "port1": [(PORT_1 | SECOND, pdu())],
        "vlan": [(VLAN, pdu())],
        "padded": [(OTHER, pdu())],
        "noend": [(0, pdu()[:-2])],
        "order": [(0, tlv(2, b"\x051") + chassis + tlv(3, b"\0\1") + tlv(0, b""))],
        "twice": [(0, chassis + tlv(2, b"\x051") + tlv(3, b"\0\1") * 2 + tlv(0, b""))],
        "empty": [(0, b"")],
        "runover": [(0, pdu()[:30] + b"\x0b\xff")],
        "unicast": [(RAW, pdu())],
    }


def sntp() -> dict[str, Seed]:
    def answer(**options: object) -> Packet:
        fields: dict[str, object] = {"leap": 0, "version": 4, "mode": 4, "stratum": 2,
                                     "poll": 6, "precision": -23, "recv": 3908887200.5,
                                     "sent": 3908887200.5, "orig": 0, "ref": 0}
        return NTPHeader(**{**fields, **options})

    def kiss(code: bytes) -> bytes:
        return bytes([0xe4, 0, 6, 0xe9]) + bytes(8) + code + bytes(32)

    return {
        "good": [(SECOND, answer()), (MINUTE, answer(stratum=15))],
        "unasked": [(RAW, answer())],
        "elsewhere": [(OTHER, answer())],
        "unsynchronised": [(0, answer(leap=3)), (SECOND, answer(stratum=16))],
        "client": [(0, answer(mode=3))],
        "version": [(SECOND, answer(version=3)), (0, answer(version=7))],
        "zero": [(0, answer(sent=0))],
        "past": [(0, answer(sent=2208988800.0))],
        "era1": [(0, answer(sent=100000.0))],
        "rate": [(SECOND, kiss(b"RATE")), (MINUTE, kiss(b"RATE")), (MINUTE, answer())],
        "deny": [(SECOND, kiss(b"DENY")), (MINUTE, answer())],
        "rstr": [(0, kiss(b"RSTR"))],
        "short": [(0, bytes(answer())[:47])],
        "signed": [(0, bytes(answer()) + bytes(20))],
        "silence": [(MINUTE | RAW, b""), (MINUTE | RAW, b""), (0, answer())],
    }


def dhcp() -> dict[str, Seed]:
    def message(kind: str, *options: object, yours: str = "10.77.0.5",
                **fields: object) -> Packet:
        common = [("message-type", kind), ("server_id", "10.77.0.1"), *options]
        return BOOTP(op=2, yiaddr=yours, **fields) / DHCP(options=[*common, "end"])

    facts = (("lease_time", 3600), ("subnet_mask", "255.255.255.0"))
    more = (("router", "10.77.0.254"), ("interface-mtu", 1400),
            ("NTP_server", "10.77.0.1"), ("renewal_time", 5), ("rebinding_time", 9))
    offer, ack = message("offer", *facts), message("ack", *facts, *more)
    # The client sends its first message within 0.1 s, then probes and uses its address.
    wait: tuple[int, bytes] = (SECOND | RAW, b"")
    return {
        "lease": [wait, (SECOND, offer), (MINUTE, ack)],
        "renewed": [wait, (0, offer), (MINUTE, ack), (MINUTE, ack)],
        "refused": [wait, (0, offer), (SECOND, message("nak", yours="0.0.0.0")),
                    (SECOND, offer), (MINUTE, ack)],
        "forever": [wait, (0, offer), (MINUTE, message(
            "ack", ("lease_time", 0xffffffff), ("subnet_mask", "255.255.255.0")))],
        "short": [wait, (0, offer), (MINUTE, message(
            "ack", ("lease_time", 1), ("subnet_mask", "255.255.255.0")))],
        "incomplete": [wait, (SECOND, message("offer")),
                       (SECOND, message("offer", ("lease_time", 60)))],
        "masks": [wait, *[(SECOND, message("offer", ("lease_time", 60),
                                           ("subnet_mask", mask)))
                          for mask in ("0.0.0.0", "255.0.255.0", "255.255.255.255")]],
        "absurd": [wait, *[(SECOND, message("offer", *facts, yours=address)) for address
                           in ("0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.1",
                               "10.0.0.2")]],
        "taken": [wait, (0, offer), (MINUTE, message("ack", *facts, yours="10.0.0.2"))],
        "timers": [wait, (0, offer), (MINUTE, message(
            "ack", *facts, ("renewal_time", 9), ("rebinding_time", 5)))],
        "overload": [wait, (0, message("offer", *facts, ("dhcp-option-overload", 3),
                                       file=b"\x33\x04\0\0\0\x3c\xff"))],
        "unicast": [wait, (OTHER, offer), (OTHER | MINUTE, ack)],
        "stray": [wait, (RAW, offer), (0, message("discover"))],
        "nocookie": [wait, (0, bytes(offer)[:236] + bytes(64))],
        "cut": [wait, (0, bytes(offer)[:260]), (0, bytes(offer)[:100])],
        "silence": [(MINUTE | RAW, b""), (MINUTE | RAW, b""), (SECOND, offer)],
    }


def lacp() -> dict[str, Seed]:
    def pdu(state: int = 0x3d, key: int = 13, system: str = HOST_MAC,
            **fields: object) -> Packet:
        return SlowProtocol(subtype=1) / LACP(
            actor_system_priority=0x8000, actor_system=system, actor_key=key,
            actor_port_priority=255, actor_port_number=1, actor_state=state, **fields)

    def both(state: int, **fields: object) -> Seed:
        return [(OTHER, pdu(state, **fields)), (OTHER | PORT_1 | SECOND,
                                                pdu(state, **fields))]

    marker = SlowProtocol(subtype=2) / MarkerProtocol(
        marker_type=1, requester_port=1, requester_system=HOST_MAC)
    return {
        "agreed": both(0x05) + both(0x0d) + both(0x3d) + both(0x3d),
        "fast": both(0x0f) + both(0x3f) + both(0x3f),
        "alone": [(SECOND, pdu()), (MINUTE, pdu())],
        "passive": both(0x0c) + both(0x3c),
        "individual": both(0x01) + both(0x39),
        "expired": both(0x3f) + [(MINUTE, pdu(0xc7))],
        "twosystems": [(OTHER, pdu()), (OTHER | PORT_1 | SECOND, pdu(system=OTHER_MAC))],
        "keys": [(OTHER, pdu(key=1)), (OTHER | PORT_1 | SECOND, pdu(key=2))],
        "changes": both(0x3d) + both(0x3d, key=14) + both(0x05),
        "loop": [(OTHER, pdu(system=OWN_MAC))],
        "marker": [(0, marker), (SECOND, marker)] + [(0, marker)] * 8,
        "response": [(0, SlowProtocol(subtype=2) / MarkerProtocol(marker_type=2))],
        "subtypes": [(0, bytes([n]) + bytes(109)) for n in (0, 3, 10, 255)],
        "version": [(0, pdu(version=2)), (0, pdu(actor_length=19))],
        "cut": [(0, bytes(pdu())[:109]), (0, b"")],
        "unicast": [(RAW, pdu())],
        "vlan": [(VLAN, pdu())],
    }


def mdns() -> dict[str, Seed]:
    kind, instance = "_nvme-disc._udp.local", "rack7-0._nvme-disc._udp.local"
    host = "rack7-0.local"
    wait: tuple[int, bytes] = (SECOND | RAW, b"")

    def query(*questions: tuple[str, str | int], known: list[Packet] | None = None,
              probe: list[Packet] | None = None, unicast: int = 0,
              **fields: object) -> bytes:
        asked = [DNSQR(qname=name, qtype=wanted, unicastresponse=unicast)
                 for name, wanted in questions]
        return bytes(dns_compress(DNS(rd=0, qd=asked, an=known or [], ns=probe or [],
                                      ar=[], **fields)))

    def response(*records: Packet) -> bytes:
        return bytes(dns_compress(DNS(qr=1, aa=1, rd=0, qd=[], an=list(records), ns=[],
                                      ar=[])))

    pointer = DNSRR(rrname=kind, type="PTR", ttl=4500, rdata=instance)
    other = DNSRR(rrname=host, type="A", ttl=120, rdata="10.0.0.9")
    service = DNSRRSRV(rrname=instance, ttl=120, port=4420, target="other.local")
    text = DNSRR(rrname=instance, type="TXT", ttl=4500, rdata=[b"p=tcp", b"nqn=x"])
    return {
        "browse": [wait, wait, (SECOND, query((kind, "PTR")))],
        "all": [wait, wait, (SECOND, query((instance, 255), (host, 255),
                                           ("_services._dns-sd._udp.local", "PTR")))],
        "known": [wait, wait, (SECOND, query((kind, "PTR"), known=[pointer])),
                  (0, query((kind, "PTR"), tc=1)), (SECOND, query(known=[pointer]))],
        "legacy": [wait, wait, (OTHER | SECOND, query((instance, "SRV"), id=7))],
        "probe": [(0, query((host, 255), probe=[other])), wait,
                  (SECOND, query((instance, 255), probe=[service, text]))],
        "conflict": [wait, (SECOND, response(other)), (MINUTE, response(service, text))],
        "probing": [(0, response(other)), (SECOND, response(text)), wait],
        "port1": [wait, wait, (PORT_1 | SECOND, query((kind, "PTR")))],
        "loop": [wait, (0, bytes.fromhex("000000000001000000000000c00c000c0001"))],
        "counts": [wait, (0, bytes.fromhex("00000000ffffffffffffffff")
                          + query((kind, "PTR"))[12:] * 40)],
        "cut": [wait, (0, query((kind, "PTR"), known=[pointer])[:-3])],
        "vlan": [wait, (VLAN, query((kind, "PTR")))],
        "unicast": [wait, wait, (0, query((host, "A"), unicast=1)),
                    (RAW, query((host, "A"))), (RAW | OTHER, query((host, "A")))],
    }


FORMATS: dict[str, Callable[[], dict[str, Seed]]] = {
    "arp": arp, "ipv4": ipv4, "ipv6": ipv6, "icmp": icmp, "icmpv6": icmpv6, "udp": udp,
    "lldp": lldp, "sntp": sntp, "dhcp": dhcp, "lacp": lacp,
    "mdns": mdns,
}


def main() -> None:
    # Some checksums need an outer header: the targets of seat.h compute those.
    logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
    for name in sys.argv[1:] or FORMATS:
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        seeds = FORMATS[name]()
        for seed, records in seeds.items():
            data = b"".join(struct.pack("<BH", flags, len(bytes(packet))) + bytes(packet)
                            for flags, packet in records)
            (folder / f"{seed}.bin").write_bytes(data)
        print(f"{name}: {len(seeds)} seeds")


if __name__ == "__main__":
    main()
