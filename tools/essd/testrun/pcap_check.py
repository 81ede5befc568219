# SPDX-License-Identifier: BSD-2-Clause
"""Check a capture with two independent programs.

Wireshark's dissectors check every header and decode the NVMe commands.  Wireshark
does not check the ICRC.  This module computes it for every packet, and scapy for
some of each kind, since scapy needs 2 ms for a packet.
"""
import collections
import dataclasses
import pathlib
import re
import subprocess
import zlib
from collections.abc import Collection, Iterator

ROCE_PORT = 4791
UDP = 17
UDP_LEN = 8
GRH_LEN = 40    # RoCE v1 has a GRH in place of IP and UDP headers.
BTH_LEN = 12
ICRC_LEN = 4
ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_ROCE_V1 = 0x0800, 0x86dd, 0x8915
VLAN_TAGS = (0x8100, 0x88a8)
# scapy computes the ICRC of the first packets of each kind, and then of each 100th.
SCAPY_FIRST = 10
SCAPY_EACH = 100


@dataclasses.dataclass
class Verdict:
    """The content of a capture, and a line for each fault found in it."""

    packets: int = 0
    icrc_checked: int = 0
    complaints: list[str] = dataclasses.field(default_factory=list)
    nvme_commands: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter)


# A capture of an hour of I/O takes Wireshark some minutes.
TSHARK_S = 1800


def _tshark(capture: pathlib.Path, *arguments: str) -> list[str]:
    # Drives and guests that run at the same time, in real time, come first.
    command = ["nice", "tshark", "-n", "-r", str(capture), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          timeout=TSHARK_S)
    # A power cut kills the QEMU that writes the capture, so a capture may end in
    # the middle of a packet.  The packets before that are checked.
    if done.returncode != 0 and "cut short" not in done.stderr:
        raise RuntimeError(f"tshark: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.splitlines()


# Wireshark (at least 4.0) dissects every packet of this log page as if it were the
# first one, and reports all later packets as malformed.
DISSECTOR_MISTAKES = ("Get Log Page (Commands Supported and Effects)",)


@dataclasses.dataclass
class Dissected:
    """What Wireshark shows of one packet."""

    number: int
    protocols: str      # joined by colons
    info: str           # the column Info
    is_malformed: bool
    is_command: bool    # an NVMe or Fabrics command

    def __str__(self) -> str:
        return f"{self.number} {self.protocols} {self.info}"


# Fields of a packet that a dissector could not read, and of one with a command.
WRONG = ("_ws.malformed", "_ws.short")
COMMAND = ("nvme.cmd.opc", "nvme.fabrics.cmd.opc")
SHOWN = ("frame.number", "frame.protocols", "_ws.col.Info", *WRONG, *COMMAND)


def dissect(capture: pathlib.Path, *options: str) -> list[Dissected]:
    """What Wireshark shows of each packet."""
    fields = [word for name in SHOWN for word in ("-e", name)]
    found = []
    for row in _tshark(capture, *options, "-T", "fields", *fields):
        number, protocols, info, *rest = row.split("\t")
        wrong, command = rest[:len(WRONG)], rest[len(WRONG):]
        found.append(Dissected(int(number), protocols, " ".join(info.split()),
                               any(wrong), any(command)))
    return found


def malformed(capture: pathlib.Path, packets: list[Dissected] | None = None) -> list[str]:
    """One line for each packet that a dissector could not read.

    Where the NVMe dissector is known to be wrong about the data, only the
    headers below NVMe are checked, in a second pass.  `packets` is what
    dissect() has returned, if the caller has it already.
    """
    carrier = dissect(capture, "--disable-protocol", "nvme-rdma")
    whole = dissect(capture) if packets is None else packets
    rows = [str(x) for x in carrier if x.is_malformed]
    wrong = {x.number: str(x) for x in whole if x.is_malformed and str(x) not in rows}
    mistakes = _dissector_mistakes(capture, wrong)
    rows += [row for number, row in wrong.items() if number not in mistakes]
    return [f"{capture.name}: malformed: {row}" for row in rows]


def _dissector_mistakes(capture: pathlib.Path, numbers: Collection[int]) -> set[int]:
    """The packets among these about whose data the NVMe dissector is mistaken."""
    found: set[int] = set()
    number = 0
    if not numbers:
        return found
    wanted = ",".join(map(str, numbers))
    for line in _tshark(capture, "-Y", f"frame.number in {{{wanted}}}", "-V"):
        if head := re.match(r"Frame (\d+):", line):
            number = int(head[1])
        if any(f"Nvme Data: NVMe {what}" in line for what in DISSECTOR_MISTAKES):
            found.add(number)
    return found


# State of the CRC after the eight bytes FFh that stand for the local route header.
EIGHT_ONES = zlib.crc32(b"\xff" * 8)


def masked_icrc(packet: bytes, changing: tuple[int, ...]) -> bytes:
    """The ICRC of a packet that begins with its GRH or its IP header.

    IBTA Vol 1 section 7.8.1, and annex A17 for RoCE v2: the bytes `changing`, which
    may change on the way, are replaced by ones.  The last four bytes are the
    packet's own ICRC, which is not read.
    """
    masked = bytearray(packet[:-4])
    for at in changing:
        masked[at] = 0xff
    return zlib.crc32(masked, EIGHT_ONES).to_bytes(4, "little")


def icrc_v1(packet: bytes) -> bytes:
    """The ICRC of a RoCE v1 packet, from its GRH on.

    Traffic class, flow label, hop limit, and the byte after the P_Key change.
    """
    return masked_icrc(bytes([packet[0] | 0x0f]) + packet[1:],
                       (1, 2, 3, 7, GRH_LEN + 4))


def icrc_v2(packet: bytes) -> bytes:
    """The ICRC of a RoCE v2 packet, from its IPv4 or IPv6 header on.

    Besides what changes in the IP header, the UDP checksum and the byte after the
    P_Key change.
    """
    if packet[0] >> 4 == 4:
        udp = 4 * (packet[0] & 0x0f)
        return masked_icrc(packet, (1, 8, 10, 11, udp + 6, udp + 7, udp + UDP_LEN + 4))
    return masked_icrc(bytes([packet[0] | 0x0f]) + packet[1:],
                       (1, 2, 3, 7, GRH_LEN + 6, GRH_LEN + 7, GRH_LEN + UDP_LEN + 4))


@dataclasses.dataclass
class Packet:
    """A RoCE packet in a capture."""

    number: int         # of the frame in the capture, from 1 on
    frame: bytes        # without Ethernet padding
    data: bytes         # from the GRH or the IP header to the ICRC
    bth: int            # offset of the BTH in `data`
    is_v1: bool

    @property
    def kind(self) -> tuple[int, int]:
        """IP version, or 1 for RoCE v1, and the opcode."""
        return (1 if self.is_v1 else self.data[0] >> 4), self.data[self.bth]


def roce_packet(number: int, frame: bytes) -> Packet | None:
    """The RoCE packet in a frame; None if there is none or it has no complete BTH."""
    at = 12
    while int.from_bytes(frame[at:at + 2], "big") in VLAN_TAGS:
        at += 4
    kind, rest = int.from_bytes(frame[at:at + 2], "big"), frame[at + 2:]
    is_v1 = kind == ETHERTYPE_ROCE_V1
    if is_v1:
        bth, end = GRH_LEN, GRH_LEN + int.from_bytes(rest[4:6], "big")
    elif kind == ETHERTYPE_IPV4 and rest[9:10] == bytes([UDP]):
        udp = 4 * (rest[0] & 0x0f)
    elif kind == ETHERTYPE_IPV6 and rest[6:7] == bytes([UDP]):
        udp = GRH_LEN
    else:
        return None
    if not is_v1:
        if int.from_bytes(rest[udp + 2:udp + 4], "big") != ROCE_PORT:
            return None
        bth, end = udp + UDP_LEN, udp + int.from_bytes(rest[udp + 4:udp + 6], "big")
    data = rest[:end]
    if len(data) < bth + BTH_LEN + ICRC_LEN:
        return None
    return Packet(number, frame[:at + 2 + end], data, bth, is_v1)


def roce_packets(capture: pathlib.Path) -> Iterator[Packet]:
    # Slow to import, and only the end-to-end tests need it.
    from scapy.utils import RawPcapReader

    with RawPcapReader(str(capture)) as frames:
        for number, (frame, _) in enumerate(frames, 1):
            packet = roce_packet(number, frame)
            if packet is not None:
                yield packet


def scapy_icrc(packet: Packet) -> bytes:
    """The ICRC that scapy computes; it knows RoCE v2 only."""
    from scapy.contrib.roce import BTH
    from scapy.layers.l2 import Ether

    found = Ether(packet.frame)
    return bytes(found[BTH].compute_icrc(b"")) if BTH in found else b""


def icrc(capture: pathlib.Path) -> tuple[int, list[str]]:
    """Compute each RoCE packet's ICRC and compare; compare some with scapy's.

    Returns how many packets were compared, and one line for each that differs.
    """
    checked, found = 0, []
    seen: collections.Counter[tuple[int, int]] = collections.Counter()
    for packet in roce_packets(capture):
        checked += 1
        seen[packet.kind] += 1
        count = seen[packet.kind]
        has, where = packet.data[-4:], f"{capture.name}: packet {packet.number}"
        expected = icrc_v1(packet.data) if packet.is_v1 else icrc_v2(packet.data)
        if has != expected:
            found.append(f"{where}: ICRC {has.hex()}, not {expected.hex()}")
        if not packet.is_v1 and (count <= SCAPY_FIRST or count % SCAPY_EACH == 0):
            expected = scapy_icrc(packet)
            if has != expected:
                found.append(f"{where}: ICRC {has.hex()}, scapy has {expected.hex()}")
    return checked, found


def check(capture: pathlib.Path) -> Verdict:
    """Run all checks of this module on one capture."""
    verdict = Verdict()
    packets = dissect(capture)
    verdict.packets = len(packets)
    verdict.complaints += malformed(capture, packets)
    verdict.icrc_checked, wrong = icrc(capture)
    verdict.complaints += wrong
    verdict.nvme_commands = collections.Counter(x.info for x in packets if x.is_command)
    return verdict
