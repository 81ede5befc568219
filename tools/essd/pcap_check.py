# SPDX-License-Identifier: BSD-2-Clause
"""Check a capture with two independent programs.

Wireshark's dissectors check every header and decode the NVMe commands.  scapy
computes every ICRC again, because Wireshark does not.
"""
import collections
import dataclasses
import pathlib
import subprocess
import zlib

ROCE_PORT = 4791
GRH_LEN = 40    # RoCE v1 has a GRH in place of IP and UDP headers.


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
    command = ["tshark", "-n", "-r", str(capture), *arguments]
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


def malformed(capture: pathlib.Path) -> list[str]:
    """One line for each packet that a dissector could not read.

    Where the NVMe dissector is known to be wrong about the data, only the
    headers below NVMe are checked, in a second pass.
    """
    wrong = "_ws.malformed || _ws.short"
    fields = ("-T", "fields", "-e", "frame.number", "-e", "frame.protocols",
              "-e", "_ws.col.Info")
    carrier = _tshark(capture, "--disable-protocol", "nvme-rdma", "-Y", wrong,
                      *fields)
    rows = [row for row in _tshark(capture, "-Y", wrong, *fields)
            if not _is_dissector_mistake(capture, row.split()[0])]
    return [f"{capture.name}: malformed: {' '.join(row.split())}"
            for row in {*rows, *carrier}]


def _is_dissector_mistake(capture: pathlib.Path, number: str) -> bool:
    text = "\n".join(_tshark(capture, "-Y", f"frame.number == {number}", "-V"))
    return any(f"Nvme Data: NVMe {what}" in text for what in DISSECTOR_MISTAKES)


def nvme_commands(capture: pathlib.Path) -> collections.Counter[str]:
    """Commands by the name that Wireshark's NVMe dissector gives them."""
    rows = _tshark(capture, "-Y", "nvme.cmd.opc || nvme.fabrics.cmd.opc",
                   "-T", "fields", "-e", "_ws.col.Info")
    return collections.Counter(row.strip() for row in rows)


def icrc_v1(packet: bytes) -> bytes:
    """The ICRC of a RoCE v1 packet: from its GRH to the ICRC, which is not read.

    IBTA Vol 1 section 7.8.1: eight bytes FFh stand for the local route header.
    Fields that change on the way are replaced by ones: traffic class, flow label,
    hop limit, and the byte after the P_Key.
    """
    masked = bytearray(packet[:-4])
    masked[0] |= 0x0f
    for at in (1, 2, 3, 7, GRH_LEN + 4):
        masked[at] = 0xff
    return zlib.crc32(b"\xff" * 8 + masked).to_bytes(4, "little")


def icrc(capture: pathlib.Path) -> tuple[int, list[str]]:
    """Compute each RoCE packet's ICRC, with scapy for v2, and compare.

    Returns how many packets were compared, and one line for each that differs.
    """
    # Slow to import, and only the end-to-end tests need it.
    from scapy.contrib.roce import BTH, GRH
    from scapy.layers.inet import UDP
    from scapy.layers.l2 import Ether
    from scapy.utils import RawPcapReader

    checked, found = 0, []
    with RawPcapReader(str(capture)) as packets:
        for number, (data, _) in enumerate(packets, 1):
            frame = Ether(data)
            if GRH in frame:
                packet = bytes(frame[GRH])[:GRH_LEN + frame[GRH].paylen]
                checked += 1
                if packet[-4:] != icrc_v1(packet):
                    found.append(f"{capture.name}: packet {number}: ICRC "
                                 f"{packet[-4:].hex()}, not "
                                 f"{icrc_v1(packet).hex()}")
                continue
            if BTH not in frame or frame[UDP].dport != ROCE_PORT:
                continue
            bth = frame[BTH]
            end = frame[UDP].len - 8    # short frames carry Ethernet padding
            payload = bytes(frame[UDP].payload)[:end]
            checked += 1
            expected = bth.compute_icrc(b"")
            if payload[-4:] != expected:
                found.append(f"{capture.name}: packet {number}: ICRC "
                             f"{payload[-4:].hex()}, scapy has {expected.hex()}")
    return checked, found


def check(capture: pathlib.Path) -> Verdict:
    """Run all checks of this module on one capture."""
    verdict = Verdict()
    verdict.packets = len(_tshark(capture, "-T", "fields", "-e",
                                  "frame.number"))
    verdict.complaints += malformed(capture)
    verdict.icrc_checked, wrong = icrc(capture)
    verdict.complaints += wrong
    verdict.nvme_commands = nvme_commands(capture)
    return verdict
