#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Print the golden bytes of the wire format tests as C.

An implementation that shares nothing with ours makes them: scapy (pip install
scapy) for everything that it knows; for the CM messages, the bit positions of
IBTA Vol 1 section 12.6 as (byte, first bit from the top, bits).  --pcap FILE
writes them all as frames, for Wireshark to say what it reads in them (it agrees
but for the REQ's flow label, where Linux' ibta_vol1_c12.h agrees with us).
"""
import sys

from scapy.all import (ARP, ICMP, UDP, Dot1Q, Ether, ICMPv6EchoRequest,
                       ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_RS,
                       ICMPv6NDOptDstLLAddr, ICMPv6NDOptMTU,
                       ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr, IP, IPv6,
                       Raw, wrpcap)
from scapy.contrib.roce import AETH, BTH

A = "24:8a:07:a8:fa:22"
B = "52:54:00:12:34:56"
ETH = Ether(dst=A, src=B)
V6 = {"src": "fe80::5054:ff:fe12:3456", "dst": "2001:db8::7"}


def bits(length, *fields):
    """`length` bytes with each (byte, first bit, bits, value) in its place."""
    number = 0
    for byte, first, count, value in fields:
        assert 0 <= value < 1 << count, (byte, first)
        number |= value << (length * 8 - byte * 8 - first - count)
    return number.to_bytes(length, "big")


def gid(text):
    return int.from_bytes(bytes(map(int, text.split("."))), "big") | (
        0xFFFF << 32)


def private(offset, length):
    return (offset, 0, length * 8,
            int.from_bytes(bytes((7 + i) & 0xFF for i in range(length)),
                           "big"))


CM = {
    "cm_req": bits(
        232, (0, 0, 32, 0x11223344), (8, 0, 64, 0x0000000001061144),
        (16, 0, 64, 0x0102030405060708), (28, 0, 32, 0x80010000),
        (32, 0, 24, 0xABCDEF), (35, 0, 8, 128), (36, 24, 8, 16),
        (43, 0, 5, 20), (43, 5, 2, 0), (43, 7, 1, 1),
        (44, 0, 24, 0x123456), (47, 0, 5, 19), (47, 5, 3, 7),
        (48, 0, 16, 0xFFFF), (50, 0, 4, 3), (50, 4, 1, 0), (50, 5, 3, 6),
        (51, 0, 4, 15), (51, 4, 1, 1), (51, 5, 3, 0),
        (52, 0, 16, 0xFFFF), (54, 0, 16, 0xFFFE),
        (56, 0, 128, gid("10.0.0.1")), (72, 0, 128, gid("10.0.0.2")),
        (88, 0, 20, 0xABCDE), (88, 26, 6, 2), (92, 0, 8, 0x68),
        (93, 0, 8, 64), (94, 0, 4, 5), (94, 4, 1, 1), (95, 0, 5, 17),
        private(140, 92)),
    "cm_mra": bits(
        232, (0, 0, 32, 0x11223344), (4, 0, 32, 0x55667788), (8, 0, 2, 1),
        (9, 0, 5, 24), private(10, 222)),
    "cm_rej": bits(
        232, (0, 0, 32, 0x11223344), (4, 0, 32, 0x55667788), (8, 0, 2, 1),
        (9, 0, 7, 1), (10, 0, 16, 26), (12, 0, 8, 5), private(84, 148)),
    "cm_rep": bits(
        232, (0, 0, 32, 0x11223344), (4, 0, 32, 0x55667788),
        (8, 0, 32, 0x80010000), (12, 0, 24, 0xABCDEF),
        (20, 0, 24, 0x654321), (24, 0, 8, 3), (25, 0, 8, 16),
        (26, 0, 5, 15), (26, 5, 2, 2), (26, 7, 1, 1), (27, 0, 3, 7),
        (27, 3, 1, 1), (28, 0, 64, 0x0102030405060708), private(36, 196)),
    "cm_rtu": bits(
        232, (0, 0, 32, 0x11223344), (4, 0, 32, 0x55667788),
        private(8, 224)),
    "cm_dreq": bits(
        232, (0, 0, 32, 0x11223344), (4, 0, 32, 0x55667788),
        (8, 0, 24, 0xABCDEF), private(12, 220)),
    "cm_drep": bits(
        232, (0, 0, 32, 0x11223344), (4, 0, 32, 0x55667788),
        private(8, 224)),
}
ATTRIBUTE = {"cm_req": 0x10, "cm_mra": 0x11, "cm_rej": 0x12, "cm_rep": 0x13,
             "cm_rtu": 0x14, "cm_dreq": 0x15, "cm_drep": 0x16}


def mad(attribute):
    return bits(24, (0, 0, 8, 1), (1, 0, 8, 7), (2, 0, 8, 2), (3, 0, 8, 3),
                (4, 0, 16, 0x1234), (6, 0, 16, 0x5678),
                (8, 0, 64, 0x1122334455667788), (16, 0, 16, attribute),
                (20, 0, 32, 0x9ABCDEF0))


def gsi(attribute, message):
    """A MAD on its way between two QP1s, ICRC included."""
    deth = bits(8, (0, 0, 32, 0x80010000), (5, 0, 24, 1))
    return (ETH / IP(src="10.0.0.1", dst="10.0.0.2", flags="DF") /
            UDP(sport=49152, dport=4791, chksum=0) /
            BTH(opcode=0x64, pkey=0xFFFF, dqpn=1, psn=5) /
            Raw(deth + mad(attribute) + message))


def cut(packet, start, end=None):
    """The bytes of `packet` from `start`, its own computed fields filled."""
    return bytes(packet)[start:end]


PAYLOAD = bytes(range(13))
UDP4 = IP(src="10.0.0.1", dst="10.0.0.2", tos=0x69, id=0x1234, ttl=63,
          flags="DF") / UDP(sport=123, dport=4791) / Raw(PAYLOAD)
UDP6 = IPv6(tc=0x69, fl=0xABCDE, hlim=63, **V6) / UDP(
    sport=123, dport=4791) / Raw(PAYLOAD)
NS = IPv6(hlim=255, **V6) / ICMPv6ND_NS(tgt="2001:db8::7") / \
    ICMPv6NDOptSrcLLAddr(lladdr=B)
NA = IPv6(hlim=255, **V6) / ICMPv6ND_NA(tgt="2001:db8::7", R=1, S=0, O=1) / \
    ICMPv6NDOptDstLLAddr(lladdr=B)
RS = IPv6(hlim=255, src=V6["src"], dst="ff02::2") / ICMPv6ND_RS() / \
    ICMPv6NDOptSrcLLAddr(lladdr=B)
RA = IPv6(hlim=255, src=V6["src"], dst="ff02::1") / ICMPv6ND_RA(
    chlim=64, M=1, O=0, routerlifetime=1800, reachabletime=30000,
    retranstimer=1000) / ICMPv6NDOptSrcLLAddr(lladdr=B) / ICMPv6NDOptMTU(
    mtu=9000) / ICMPv6NDOptPrefixInfo(
    prefixlen=64, L=1, A=0, validlifetime=86400, preferredlifetime=14400,
    prefix="2001:db8::")
ROCE4 = IP(src="10.0.0.1", dst="10.0.0.2", tos=0x69, id=0x1234, ttl=63,
           flags="DF") / UDP(sport=49152, dport=4791, chksum=0) / BTH(
    opcode="RC_SEND_ONLY", solicited=1, padcount=3, pkey=0xFFFF,
    dqpn=0xABCDEF, ackreq=1, psn=0x123456) / Raw(PAYLOAD + bytes(3))
ROCE6 = IPv6(tc=0x69, fl=0xABCDE, hlim=63, **V6) / UDP(
    sport=49152, dport=4791, chksum=0xFFFF) / BTH(
    opcode="RC_SEND_ONLY", solicited=1, padcount=3, pkey=0xFFFF,
    dqpn=0xABCDEF, ackreq=1, psn=0x123456) / Raw(PAYLOAD + bytes(3))

GOLDEN = {
    "eth_untagged": cut(Ether(dst=A, src=B, type=0x0806), 0),
    "eth_tagged": cut(Ether(dst=A, src=B) / Dot1Q(prio=5, id=1, vlan=0x123,
                                                  type=0x0806), 0),
    "arp_request": cut(ARP(op=1, hwsrc=B, psrc="10.0.0.1", hwdst=A,
                           pdst="10.0.0.2"), 0),
    "ipv4_udp": cut(UDP4, 0),
    "ipv6_udp": cut(UDP6, 0),
    "icmp_echo": cut(IP(src="10.0.0.1", dst="10.0.0.2") / ICMP(
        type=8, id=0x1234, seq=0x5678) / Raw(PAYLOAD), 20),
    "icmpv6_echo": cut(IPv6(**V6) / ICMPv6EchoRequest(
        id=0x1234, seq=0x5678, data=PAYLOAD), 40),
    "nd_ns": cut(NS, 40), "nd_na": cut(NA, 40), "nd_rs": cut(RS, 40),
    "nd_ra": cut(RA, 40),
    "bth_and_aeth": cut(BTH(opcode="RC_ACKNOWLEDGE", migreq=1, padcount=2,
                            pkey=0x8001, becn=1, fecn=1, dqpn=0xABCDEF,
                            ackreq=1, psn=0x123456, solicited=1) / AETH(
                                syndrome=0x6A, msn=0x234567), 0, 16),
    "roce_ipv4": cut(ROCE4, 0),
    "roce_ipv6": cut(ROCE6, 0),
    "mad_header": mad(0x10),
    "rdma_ip_cm_v4": bits(36, (1, 0, 4, 4), (2, 0, 16, 0xABCD),
                          (16, 0, 32, 0x0A000001), (32, 0, 32, 0x0A000002)),
    "rdma_ip_cm_v6": bits(36, (1, 0, 4, 6), (2, 0, 16, 0xABCD),
                          (4, 0, 16, 0xFE80), (18, 0, 16, 1),
                          (20, 0, 16, 0xFE80), (34, 0, 16, 2)),
    **CM,
}


def main():
    if sys.argv[1:2] == ["--pcap"]:
        frames = [gsi(ATTRIBUTE[name], body) for name, body in CM.items()]
        frames += [ETH / packet for packet in
                   (UDP4, UDP6, NS, NA, RS, RA, ROCE4, ROCE6)]
        wrpcap(sys.argv[2], frames)
        return
    print("/* SPDX-License-Identifier: BSD-2-Clause */\n"
          "/* Golden bytes, made by golden.py, which describes them. */\n"
          "#ifndef ESSD_TESTS_GOLDEN_H\n#define ESSD_TESTS_GOLDEN_H\n\n"
          "#include <stdint.h>\n\n/* clang-format off */")
    for name, data in GOLDEN.items():
        print(f"static const uint8_t {name}[] = {{")
        for i in range(0, len(data), 12):
            print("    " + " ".join(f"0x{b:02x}," for b in data[i:i + 12]))
        print("};\n")
    print("/* clang-format on */\n#endif")


main()
