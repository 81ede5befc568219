# SPDX-License-Identifier: BSD-2-Clause
"""The check of captures, on frames that scapy has built."""

from pathlib import Path

import pytest
from scapy.contrib.roce import AETH, BTH, opcode
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

from essd.testrun import pcap_check

ROCE_UDP = UDP(sport=49152, dport=pcap_check.ROCE_PORT)
SEND = BTH(opcode=opcode("RC", "SEND_ONLY")[0], dqpn=17, psn=5) / Raw(b"essd" * 16)
ACK = BTH(opcode=opcode("RC", "ACKNOWLEDGE")[0], dqpn=17, psn=5) / AETH(syndrome=0)
FRAMES = {
    "IPv4": Ether() / IP(src="10.0.0.1", dst="10.0.0.10", tos=0x68) / ROCE_UDP / SEND,
    "an acknowledgement": Ether() / IP(src="10.0.0.1", dst="10.0.0.10", ttl=7) / ROCE_UDP
    / ACK,
    "IPv6": Ether() / IPv6(src="fd00::1", dst="fd00::10", tc=8, fl=99) / ROCE_UDP / SEND,
    "a VLAN tag": Ether() / Dot1Q(vlan=9) / IP(src="10.0.0.1", dst="10.0.0.10") / ROCE_UDP
    / SEND,
}


def capture(path: Path, *frames: Packet | bytes) -> Path:
    wrpcap(str(path / "test.pcap"), [Ether(bytes(frame)) for frame in frames])
    return path / "test.pcap"


@pytest.mark.parametrize("kind", FRAMES)
def test_the_icrc_is_that_of_scapy(tmp_path: Path, kind: str) -> None:
    padded = bytes(FRAMES[kind]) + bytes(20)
    assert pcap_check.icrc(capture(tmp_path, FRAMES[kind], padded)) == (2, [])


@pytest.mark.parametrize("kind", FRAMES)
def test_each_wrong_bit_of_the_icrc_or_the_payload_is_found(tmp_path: Path,
                                                          kind: str) -> None:
    good = bytes(FRAMES[kind])
    for at in (len(good) - 1, len(good) - 4, len(good) - 5):
        bad = bytearray(good)
        bad[at] ^= 0x10
        # The bad packet comes after so many of its kind that scapy does not compute it.
        frames = [good] * (pcap_check.SCAPY_FIRST + 1) + [bytes(bad)]
        checked, found = pcap_check.icrc(capture(tmp_path, *frames))
        assert checked == len(frames)
        assert [line.partition(": ICRC")[0] for line in found] == \
            [f"test.pcap: packet {len(frames)}"]


def test_a_field_that_scapy_counts_and_this_module_does_not_is_found(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcap_check, "icrc_v2", lambda packet: packet[-4:])
    bad = bytearray(bytes(FRAMES["IPv4"]))
    bad[-1] ^= 1
    _, found = pcap_check.icrc(capture(tmp_path, bytes(bad)))
    assert len(found) == 1 and "scapy has" in found[0]


def test_frames_of_other_protocols_have_no_icrc(tmp_path: Path) -> None:
    other = Ether() / IP() / UDP(sport=53, dport=53) / Raw(b"x" * 60)
    short = Ether(type=0x8100)
    assert pcap_check.icrc(capture(tmp_path, other, short)) == (0, [])


def test_wireshark_counts_the_packets_and_finds_the_malformed_one(tmp_path: Path) -> None:
    whole = bytes(FRAMES["IPv4"])
    cut = Ether() / IP(src="10.0.0.1", dst="10.0.0.10") / ROCE_UDP / Raw(bytes(SEND)[:8])
    verdict = pcap_check.check(capture(tmp_path, whole, cut))
    assert verdict.packets == 2
    assert any("malformed: 2 " in line for line in verdict.complaints), verdict
