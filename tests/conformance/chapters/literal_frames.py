#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Print literal_frames.h: the frames that the `literal` tests send and expect.

The drive's own emitters make the other packets of the tests, so that the tests
cannot notice a field that emitter and parser both get wrong.  Scapy (pip install
scapy) makes these frames, with their ICRC; formats that scapy does not know are
written as (byte, first bit from the top, bits, value) from IBTA Vol 1 section
12.6 (CM), NVMe 1.4 section 4.2 and NVMe over Fabrics 1.1 sections 3.3 to 3.5 and
7.3 (capsules).

The addresses are those of the native drive and of the tester's peer 0; the
tests replace them at the offsets that literal.h names.
"""
import ipaddress
import sys

from scapy.all import (ARP, ICMP, NTP, UDP, Dot1Q, Ether, ICMPv6EchoReply,
                       ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS,
                       ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IP, IPv6,
                       Raw, wrpcap)
from scapy.contrib.lacp import LACP, MarkerProtocol
from scapy.contrib.lldp import (LLDPDUChassisID, LLDPDUEndOfLLDPDU,
                                LLDPDUPortID, LLDPDUSystemName,
                                LLDPDUTimeToLive)
from scapy.contrib.roce import AETH, BTH
from scapy.contrib.slowprot import SlowProtocol

DRIVE = "02:e5:5d:00:01:00"
PEER = "02:c0:4f:00:00:00"
DRIVE_4, PEER_4 = "10.0.0.1", "10.0.0.100"
DRIVE_6, PEER_6 = "fd00:0:0:1::1", "fd00:0:0:1::64"
TO_DRIVE, TO_PEER = Ether(dst=DRIVE, src=PEER), Ether(dst=PEER, src=DRIVE)
IP_4 = {"src": PEER_4, "dst": DRIVE_4}
BACK_4 = {"src": DRIVE_4, "dst": PEER_4}
IP_6 = {"src": PEER_6, "dst": DRIVE_6}
BACK_6 = {"src": DRIVE_6, "dst": PEER_6}
PAYLOAD = Raw(b"literal bytes")
ECHO = {"id": 0x4C49, "seq": 0x5445}

VA, RKEY = 0x00007F0000100000, 0x5EED0001
DISCOVERY = b"nqn.2014-08.org.nvmexpress.discovery"
HOST = b"nqn.2026-01.net.example:conform-literal"


def bits(length, *fields):
    """`length` bytes with each (byte, first bit, bits, value) in its place."""
    number = 0
    for byte, first, count, value in fields:
        assert 0 <= value < 1 << count, (byte, first)
        number |= value << (length * 8 - byte * 8 - first - count)
    return number.to_bytes(length, "big")


def little(length, *fields):
    """`length` bytes with each (byte, bytes, value) little-endian in place."""
    out = bytearray(length)
    for byte, count, value in fields:
        out[byte:byte + count] = value.to_bytes(count, "little")
    return bytes(out)


def ip_number(text):
    return int(ipaddress.ip_address(text))


IDS = ((0, 0, 32, 0x11223344),)
KEYED = 0x40    # SGL descriptor: keyed data block, address
FABRICS = (0, 1, 0x7F)


class Roce:
    """The RoCEv2 frames of a connection over IPv4 or IPv6."""

    def __init__(self, version):
        self.version = version
        self.ip = IP(**IP_4, flags="DF") if version == 4 else IPv6(**IP_6)

    def packet(self, opcode, rest, **fields):
        return (TO_DRIVE / self.ip / UDP(sport=49152, dport=4791, chksum=0) /
                BTH(opcode=opcode, migreq=1, pkey=0xFFFF, **fields) / rest)


    def gsi(self, attribute, message):
        """A CM message: UD SEND Only, DETH, MAD of class 7."""
        deth = bits(8, (0, 0, 32, 0x80010000), (5, 0, 24, 1))
        mad = bits(24, (0, 0, 8, 1), (1, 0, 8, 7), (2, 0, 8, 2), (3, 0, 8, 3),
                   (8, 0, 64, 1), (16, 0, 16, attribute))
        return self.packet(0x64, Raw(deth + mad + message), dqpn=1)

    def request(self):
        """A REQ; GIDs are IPv6 addresses, or IPv4-mapped ones."""
        ends = (PEER_4, DRIVE_4) if self.version == 4 else (PEER_6, DRIVE_6)
        own, drive = map(ip_number, ends)
        mapped = 0xFFFF << 32 if self.version == 4 else 0
        # RDMA IP CM service annex A11: version, ports, addresses; then NVMe's
        # part, 7.3: record format 0, queue 0, 32 receive and 31 send queue
        # entries.
        private = bits(36, (1, 0, 4, self.version), (2, 0, 16, 40000),
                       (4, 0, 128, own), (20, 0, 128, drive)) + little(
                           32, (4, 2, 32), (6, 2, 31))
        return self.gsi(0x10, bits(
            232, (0, 0, 32, 0x11223344), (8, 0, 64, 0x0000000001061144),
            (16, 0, 64, 0x0200000000000001), (32, 0, 24, 0x7F0001),
            (35, 0, 8, 16), (39, 0, 8, 16), (43, 0, 5, 20),
            (44, 0, 24, 0x100000), (47, 0, 5, 20), (47, 5, 3, 7),
            (48, 0, 16, 0xFFFF), (50, 0, 4, 3), (50, 5, 3, 7), (51, 0, 4, 15),
            (52, 0, 16, 0xFFFF), (54, 0, 16, 0xFFFF),
            (56, 0, 128, mapped | own), (72, 0, 128, mapped | drive),
            (88, 26, 6, 17), (93, 0, 8, 64), (94, 4, 1, 1), (95, 0, 5, 16),
            (140, 0, len(private) * 8, int.from_bytes(private, "big"))))

    def capsule(self, cid, *fields, length=0):
        """An SQE by SEND Only, PSDT "SGL"; with a length, data at VA by RKEY."""
        sgl = ((24, 8, VA), (32, 3, length), (35, 4, RKEY)) if length else ()
        sqe = little(64, (1, 1, 0x40), (2, 2, cid), (39, 1, KEYED), *sgl,
                     *fields)
        return self.packet(0x04, Raw(sqe), ackreq=1)

    def frames(self):
        return {
            "cm_req": self.request(),
            "cm_rtu": self.gsi(0x14, bits(232, *IDS)),
            "cm_dreq": self.gsi(0x15, bits(232, *IDS)),
            "connect": self.capsule(1, FABRICS, (4, 1, 1), (44, 2, 31),
                                    length=1024),
            "connect_data": self.packet(
                0x10, AETH(syndrome=0x1F, msn=1) / Raw(CONNECT_DATA)),
            "ack": self.packet(0x11, AETH(syndrome=0x1F, msn=1)),
            # ATTRIB 0 is 4 bytes; offsets 8 VS, 1Ch CSTS, 14h CC.
            "get_vs": self.capsule(2, FABRICS, (4, 1, 4), (44, 4, 0x08)),
            "get_csts": self.capsule(3, FABRICS, (4, 1, 4), (44, 4, 0x1C)),
            "set_cc": self.capsule(4, FABRICS, (4, 1, 0), (44, 4, 0x14),
                                   (48, 8, 0x00460001)),
            "identify": self.capsule(5, (0, 1, 0x06), (40, 1, 1), length=4096),
        }


CONNECT_DATA = (bytes([0xCF]) + bytes(15) + b"\xff\xff" + bytes(238) +
                DISCOVERY.ljust(256, b"\0") + HOST.ljust(256, b"\0") +
                bytes(256))

LLDP = (Ether(dst="01:80:c2:00:00:0e", src=PEER, type=0x88CC) /
        LLDPDUChassisID(subtype=4, id=PEER) /
        LLDPDUPortID(subtype=5, id=b"conf-literal"))
NAME = LLDPDUSystemName(system_name=b"conf-literal")
GROUP = "ff02::1:ff00:1"
NS = (Ether(dst="33:33:ff:00:00:01", src=PEER) /
      IPv6(hlim=255, src=PEER_6, dst=GROUP) / ICMPv6ND_NS(tgt=DRIVE_6) /
      ICMPv6NDOptSrcLLAddr(lladdr=PEER))
NA = (TO_PEER / IPv6(hlim=255, **BACK_6) /
      ICMPv6ND_NA(tgt=DRIVE_6, R=0, S=1, O=1) /
      ICMPv6NDOptDstLLAddr(lladdr=DRIVE))
JAN_2031 = 1924992000

SLOW = Ether(dst="01:80:c2:00:00:02", src=PEER, type=0x8809)
# System priority, system, key, port priority, port.
PARTNER, OURS = (0x8000, PEER, 15, 0x80, 7), (65535, DRIVE, 1, 255, 1)
MARKER = {"requester_port": 7, "requester_system": PEER,
          "requester_transaction_id": 0x4C495445, "reserved": b""}


def lacp_end(which, end, state):
    names = ("system_priority", "system", "key", "port_priority", "port_number",
             "state")
    return {f"{which}_{name}": value
            for name, value in zip(names, (*end, state), strict=True)}


FRAMES = {
    "arp_request": Ether(dst="ff:ff:ff:ff:ff:ff", src=PEER) / ARP(
        op=1, hwsrc=PEER, psrc=PEER_4, hwdst="00:00:00:00:00:00",
        pdst=DRIVE_4),
    "arp_reply": TO_PEER / ARP(op=2, hwsrc=DRIVE, psrc=DRIVE_4, hwdst=PEER,
                               pdst=PEER_4),
    "echo": TO_DRIVE / IP(**IP_4) / ICMP(type=8, **ECHO) / PAYLOAD,
    "echo_reply": TO_PEER / IP(**BACK_4) / ICMP(type=0, **ECHO) / PAYLOAD,
    "echo_tagged": TO_DRIVE / Dot1Q(prio=5, vlan=0) / IP(**IP_4) / ICMP(
        type=8, **ECHO) / PAYLOAD,
    "echo6": TO_DRIVE / IPv6(**IP_6) / ICMPv6EchoRequest(
        **ECHO, data=bytes(PAYLOAD)),
    "echo6_reply": TO_PEER / IPv6(**BACK_6) / ICMPv6EchoReply(
        **ECHO, data=bytes(PAYLOAD)),
    "neighbor_solicit": NS, "neighbor_advert": NA,
    "udp_closed": TO_DRIVE / IP(**IP_4, flags="DF") / UDP(
        sport=40000, dport=47912) / PAYLOAD,
    "lldp": LLDP / LLDPDUTimeToLive(ttl=60) / NAME / LLDPDUEndOfLLDPDU(),
    "lldp_leave": LLDP / LLDPDUTimeToLive(ttl=0) / LLDPDUEndOfLLDPDU(),
    "sntp_answer": TO_DRIVE / IP(**IP_4) / UDP(sport=123, dport=50000) / NTP(
        leap=0, version=4, mode=4, stratum=2, poll=6, precision=-20,
        delay=0.0039, dispersion=0.0039, id="127.127.1.1",
        ref=JAN_2031 - 10 + 2208988800, orig=1, recv=JAN_2031 + 2208988800,
        sent=JAN_2031 + 2208988800),
    **Roce(4).frames(),
    **{f"{name}6": frame for name, frame in Roce(6).frames().items()},
    "lacp_partner": SLOW / SlowProtocol() / LACP(
        **lacp_end("actor", PARTNER, 0x3D), **lacp_end("partner", OURS, 0)),
    "lacp_aggregated": SLOW / SlowProtocol() / LACP(
        **lacp_end("actor", OURS, 0x3D), **lacp_end("partner", PARTNER, 0x3D)),
    "marker": SLOW / SlowProtocol() / MarkerProtocol(marker_type=1, **MARKER),
    "marker_response": SLOW / SlowProtocol() / MarkerProtocol(
        marker_type=2, **MARKER),
}


def main():
    if sys.argv[1:2] == ["--pcap"]:
        wrpcap(sys.argv[2], list(FRAMES.values()))
        return
    print("/* SPDX-License-Identifier: BSD-2-Clause */\n"
          "/* literal_frames.py makes this file, and describes the frames. */\n"
          "#ifndef ESSD_CONFORM_LITERAL_FRAMES_H\n"
          "#define ESSD_CONFORM_LITERAL_FRAMES_H\n\n"
          "#include <stdint.h>\n\n/* clang-format off */")
    for name, frame in FRAMES.items():
        data = bytes(frame)
        print(f"__attribute__((unused)) static const uint8_t "
              f"scapy_{name}[] = {{")
        for i in range(0, len(data), 12):
            print("    " + " ".join(f"0x{b:02x}," for b in data[i:i + 12]))
        print("};\n")
    print("/* clang-format on */\n#endif")


main()
