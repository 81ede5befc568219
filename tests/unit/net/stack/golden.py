#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Print golden frames that net/stack receives and must send, as C; by scapy."""
from scapy.all import (ARP, ICMP, UDP, Dot1Q, Ether, HBHOptUnknown,
                       ICMPv6DestUnreach,
                       ICMPv6EchoReply, ICMPv6EchoRequest,
                       ICMPv6MLDMultAddrRec, ICMPv6MLQuery2,
                       ICMPv6MLReport2, ICMPv6ND_NA, ICMPv6ND_RS,
                       ICMPv6ND_NS, ICMPv6NDOptDstLLAddr,
                       ICMPv6NDOptSrcLLAddr, ICMPv6ParamProblem, IP, IPv6,
                       IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                       IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, PadN, Raw,
                       RouterAlert)

DRIVE = "02:00:00:00:00:10"
HOST = "52:54:00:12:34:56"
ALL = "ff:ff:ff:ff:ff:ff"
HOST_LL = "fe80::5054:ff:fe12:3456"
DRIVE_LL = "fe80::ff:fe00:10"
IN = Ether(src=HOST, dst=DRIVE)
OUT = Ether(src=DRIVE, dst=HOST)
IN9 = IN / Dot1Q(vlan=9, prio=3)
OUT9 = OUT / Dot1Q(vlan=9, prio=3)
V4_IN = IP(src="10.0.0.1", dst="10.0.0.2", id=0x4242, tos=0x6B, ttl=61)
V4_OUT = IP(src="10.0.0.2", dst="10.0.0.1", id=0, flags="DF", tos=0x68,
            ttl=64)
V6_IN = IPv6(src="2001:db8::1", dst="2001:db8::2", hlim=61, fl=0x12345,
             tc=0x6B)
V6_OUT = IPv6(src="2001:db8::2", dst="2001:db8::1", hlim=64, tc=0x68)
ND = {"hlim": 255}
BODY = bytes(range(37))
SNMA = "33:33:ff:00:00:02"

closed4 = V4_IN / UDP(sport=1000, dport=2000) / Raw(BODY)
closed6 = V6_IN / UDP(sport=1000, dport=2000) / Raw(BODY)
tcp4 = IP(src="10.0.0.1", dst="10.0.0.2", proto=6) / Raw(BODY)
tcp6 = IPv6(src="2001:db8::1", dst="2001:db8::2", nh=6) / Raw(BODY)

ASK6 = ICMPv6EchoRequest(id=7, seq=9, data=BODY)
SKIP = HBHOptUnknown(otype=0x1E, optdata=b"1234")
ALERT = RouterAlert(value=0)
hops6 = (V6_IN / IPv6ExtHdrHopByHop(options=[ALERT, PadN(optdata=b"")]) /
         IPv6ExtHdrDestOpt(options=[SKIP]) /
         IPv6ExtHdrRouting(type=0, segleft=0, addresses=["2001:db8::9"]) / ASK6)
route6 = V6_IN / IPv6ExtHdrRouting(type=0, segleft=1,
                                   addresses=["2001:db8::9"]) / ASK6
report6 = V6_IN / IPv6ExtHdrDestOpt(
    options=[SKIP, HBHOptUnknown(otype=0xBE, optdata=b"12")]) / ASK6
late6 = V6_IN / IPv6ExtHdrDestOpt(options=[SKIP]) / IPv6ExtHdrHopByHop() / ASK6


def problem6(about, code, pointer):
    return OUT / V6_OUT / ICMPv6ParamProblem(code=code, ptr=pointer) / Raw(
        bytes(about))


def query(group):
    dst = "ff02::1" if group == "::" else group
    return Ether(src=HOST, dst="33:33:00:00:00:01") / IPv6(
        src=HOST_LL, dst=dst, hlim=1) / IPv6ExtHdrHopByHop(
            options=[ALERT, PadN(optdata=b"")]) / ICMPv6MLQuery2(
                mrd=1000, mladdr=group)


FRAMES = {
    "arp_ask": Ether(src=HOST, dst=ALL) / ARP(
        op=1, hwsrc=HOST, psrc="10.0.0.1", hwdst="00:00:00:00:00:00",
        pdst="10.0.0.2"),
    "arp_answer": OUT / ARP(op=2, hwsrc=DRIVE, psrc="10.0.0.2", hwdst=HOST,
                            pdst="10.0.0.1"),
    "arp_probe": Ether(src=HOST, dst=ALL) / ARP(
        op=1, hwsrc=HOST, psrc="0.0.0.0", hwdst="00:00:00:00:00:00",
        pdst="10.0.0.2"),
    "arp_probe_answer": OUT / ARP(op=2, hwsrc=DRIVE, psrc="10.0.0.2",
                                  hwdst=HOST, pdst="0.0.0.0"),
    "arp_announce": Ether(src=DRIVE, dst=ALL) / ARP(
        op=1, hwsrc=DRIVE, psrc="10.0.0.2", hwdst="00:00:00:00:00:00",
        pdst="10.0.0.2"),
    "arp_seek": Ether(src=DRIVE, dst=ALL) / ARP(
        op=1, hwsrc=DRIVE, psrc="10.0.0.2", hwdst="00:00:00:00:00:00",
        pdst="10.0.0.1"),
    "arp_found": IN / ARP(op=2, hwsrc=HOST, psrc="10.0.0.1", hwdst=DRIVE,
                          pdst="10.0.0.2"),
    "arp_claim": Ether(src=HOST, dst=ALL) / ARP(
        op=1, hwsrc=HOST, psrc="10.0.0.2", hwdst="00:00:00:00:00:00",
        pdst="10.0.0.2"),
    "ping4": IN / V4_IN / ICMP(type=8, id=7, seq=9) / Raw(BODY),
    "pong4": OUT / V4_OUT / ICMP(type=0, id=7, seq=9) / Raw(BODY),
    "ping4_vlan": IN9 / IP(src="10.9.0.1", dst="10.9.0.2", ttl=64) / ICMP(
        type=8, id=7, seq=9) / Raw(BODY),
    "pong4_vlan": OUT9 / IP(src="10.9.0.2", dst="10.9.0.1", id=0, flags="DF",
                            ttl=64) / ICMP(type=0, id=7, seq=9) / Raw(BODY),
    "ping6": IN / V6_IN / ICMPv6EchoRequest(id=7, seq=9, data=BODY),
    "pong6": OUT / V6_OUT / ICMPv6EchoReply(id=7, seq=9, data=BODY),
    "ping6_all": Ether(src=HOST, dst="33:33:00:00:00:01") / IPv6(
        src=HOST_LL, dst="ff02::1", hlim=1) / ICMPv6EchoRequest(
            id=7, seq=9, data=BODY),
    "pong6_all": OUT / IPv6(src=DRIVE_LL, dst=HOST_LL, hlim=64) /
    ICMPv6EchoReply(id=7, seq=9, data=BODY),
    "ns": Ether(src=HOST, dst=SNMA) / IPv6(
        src="2001:db8::1", dst="ff02::1:ff00:2", **ND) / ICMPv6ND_NS(
            tgt="2001:db8::2") / ICMPv6NDOptSrcLLAddr(lladdr=HOST),
    "ns_plain": IN / IPv6(src="2001:db8::1", dst="2001:db8::2", **ND) /
    ICMPv6ND_NS(tgt="2001:db8::2"),
    "na": OUT / IPv6(src="2001:db8::2", dst="2001:db8::1", **ND) /
    ICMPv6ND_NA(tgt="2001:db8::2", R=0, S=1, O=1) / ICMPv6NDOptDstLLAddr(
        lladdr=DRIVE),
    "na_optimistic": OUT / IPv6(src="2001:db8::2", dst="2001:db8::1", **ND) /
    ICMPv6ND_NA(tgt="2001:db8::2", R=0, S=1, O=0) / ICMPv6NDOptDstLLAddr(
        lladdr=DRIVE),
    "ns_dad": Ether(src=HOST, dst=SNMA) / IPv6(
        src="::", dst="ff02::1:ff00:2", **ND) / ICMPv6ND_NS(
            tgt="2001:db8::2"),
    "ns_dad_ours": Ether(src=DRIVE, dst=SNMA) / IPv6(
        src="::", dst="ff02::1:ff00:2", **ND) / ICMPv6ND_NS(
            tgt="2001:db8::2"),
    "na_to_all": Ether(src=DRIVE, dst="33:33:00:00:00:01") / IPv6(
        src="2001:db8::2", dst="ff02::1", **ND) / ICMPv6ND_NA(
            tgt="2001:db8::2", R=0, S=0, O=1) / ICMPv6NDOptDstLLAddr(
                lladdr=DRIVE),
    "ns_seek": Ether(src=DRIVE, dst="33:33:ff:00:00:01") / IPv6(
        src="2001:db8::2", dst="ff02::1:ff00:1", **ND) / ICMPv6ND_NS(
            tgt="2001:db8::1") / ICMPv6NDOptSrcLLAddr(lladdr=DRIVE),
    "ns_probe": OUT / IPv6(src="2001:db8::2", dst="2001:db8::1", **ND) /
    ICMPv6ND_NS(tgt="2001:db8::1") / ICMPv6NDOptSrcLLAddr(lladdr=DRIVE),
    "na_found": IN / IPv6(src="2001:db8::1", dst="2001:db8::2", **ND) /
    ICMPv6ND_NA(tgt="2001:db8::1", R=0, S=1, O=1) / ICMPv6NDOptDstLLAddr(
        lladdr=HOST),
    "na_claim": Ether(src=HOST, dst="33:33:00:00:00:01") / IPv6(
        src="2001:db8::2", dst="ff02::1", **ND) / ICMPv6ND_NA(
            tgt="2001:db8::2", R=0, S=0, O=1) / ICMPv6NDOptDstLLAddr(
                lladdr=HOST),
    "na_fragment": IN / IPv6(src="2001:db8::1", dst="2001:db8::2", **ND) /
    IPv6ExtHdrFragment(id=3) / ICMPv6ND_NA(tgt="2001:db8::1", R=0, S=1, O=1),
    "rs_ours": Ether(src=DRIVE, dst="33:33:00:00:00:02") / IPv6(
        src=DRIVE_LL, dst="ff02::2", **ND) / ICMPv6ND_RS() /
    ICMPv6NDOptSrcLLAddr(lladdr=DRIVE),
    "mld_ours": Ether(src=DRIVE, dst="33:33:00:00:00:16") / IPv6(
        src="::", dst="ff02::16", hlim=1) / IPv6ExtHdrHopByHop(
            options=[ALERT, PadN(optdata=b"")]) / ICMPv6MLReport2(
                records=[ICMPv6MLDMultAddrRec(
                    rtype=4, dst="ff02::1:ff00:2")]),
    "mld_query_all": query("::"),
    "mld_query_one": query("ff02::1:ff00:2"),
    "mld_query_other": query("ff02::1:ff00:3"),
    "udp4": IN / closed4,
    "udp4_unreachable": OUT / V4_OUT / ICMP(type=3, code=3, unused=0) /
    Raw(bytes(closed4)),
    "udp6": IN / closed6,
    "udp6_unreachable": OUT / V6_OUT / ICMPv6DestUnreach(code=4) / Raw(
        bytes(closed6)),
    "tcp4_frame": IN / tcp4,
    "tcp4_unreachable": OUT / IP(src="10.0.0.2", dst="10.0.0.1", id=0,
                                 flags="DF", ttl=64) / ICMP(
        type=3, code=2, unused=0) / Raw(bytes(tcp4)),
    "tcp6_frame": IN / tcp6,
    "hops6_frame": IN / hops6,
    "route6_frame": IN / route6,
    "route6_problem": problem6(route6, 0, 42),
    "report6_frame": IN / report6,
    "report6_problem": problem6(report6, 2, 48),
    "late6_frame": IN / late6,
    "late6_problem": problem6(late6, 1, 40),
    "atomic6_frame": IN / V6_IN / IPv6ExtHdrFragment(id=77) / ASK6,
    "tcp6_problem": OUT / IPv6(src="2001:db8::2", dst="2001:db8::1",
                               hlim=64) / ICMPv6ParamProblem(
        code=1, ptr=6) / Raw(bytes(tcp6)),
}


def main():
    print("/* SPDX-License-Identifier: BSD-2-Clause */\n"
          "/* Golden frames, made by golden.py, which describes them. */\n"
          "#ifndef ESSD_TESTS_NET_GOLDEN_H\n"
          "#define ESSD_TESTS_NET_GOLDEN_H\n\n"
          "#include <stdint.h>\n\n/* clang-format off */")
    for name, frame in FRAMES.items():
        data = bytes(frame)
        print(f"static const uint8_t {name}[] = {{")
        for i in range(0, len(data), 12):
            print("    " + " ".join(f"0x{b:02x}," for b in data[i:i + 12]))
        print("};\n")
    print("/* clang-format on */\n#endif")


main()
