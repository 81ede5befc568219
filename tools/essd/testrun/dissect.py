# SPDX-License-Identifier: BSD-2-Clause
"""Check the captures of a conformance run with Wireshark's dissectors.

Only captures of tests that send no malformed packets on purpose are checked.
They are joined into one file, because tshark takes longer to start than to read
one capture.
"""

import bisect
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ..base import interrupts
from ..base.errors import EssdError
from . import pcap_check

HEADER = 24             # bytes of the file's header
RECORD_HEADER = 16      # bytes of a packet's header; the third word is its length


class CaptureError(EssdError):
    """A file is not a capture, or has another format than the others."""


def well_formed(results: Path) -> list[str]:
    """Names of the captures of tests that sent no malformed packets on purpose."""
    names = []
    for line in results.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        # The capture of a failed test is skipped; the failure is reported anyway.
        if event.get("event") == "test" and event.get("verdict") == "pass" and \
                event.get("pcap") and not event.get("malformed"):
            names.append(event["pcap"])
    return names


def count_packets(data: bytes, name: str) -> int:
    at, count = HEADER, 0
    while at < len(data):
        length = int.from_bytes(data[at + 8:at + 12], "little")
        at += RECORD_HEADER + length
        count += 1
    if at != len(data):
        raise CaptureError(f"{name} ends in the middle of a packet")
    return count


def join(captures: Iterable[Path], target: Path) -> tuple[list[int], list[str]]:
    """Join captures; return the number of each one's first packet, and its name."""
    firsts: list[int] = []
    names: list[str] = []
    header = b""
    number = 1
    with open(target, "wb") as out:
        for path in captures:
            data = path.read_bytes()
            if data[:4] not in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") or (
                    header and data[:HEADER] != header):
                raise CaptureError(f"{path.name} is not a pcap file with the same "
                                   "header as the others")
            if not header:
                header = data[:HEADER]
                out.write(header)
            firsts.append(number)
            names.append(path.name)
            number += count_packets(data, path.name)
            out.write(data[HEADER:])
    firsts.append(number)
    return firsts, names


WRONG = "(_ws.malformed || _ws.short)"
# Wireshark guesses the protocol of a payload: Ethernet, NFS, ...  Only reliable
# results count: those of the InfiniBand headers, and of payloads taken for NVMe.
CARRIER = '!(frame.protocols contains "infiniband:")'
NVME = '(frame.protocols contains "infiniband:nvme")'
# Wireshark 4.0 dissects each packet of a WRITE as if the data began there, so the
# data of WRITE packets is not judged.  Their headers are.
NO_DATA = "!(infiniband.bth.opcode >= 6 && infiniband.bth.opcode <= 11)"
NO_NFS = ("--disable-protocol", "rpcordma")
# Tests use the same TCP ports again, so in the joined file their streams would be taken for
# one.  What TCP carries is not judged.
NO_STREAMS = ("--disable-protocol", "nvme-tcp", "--disable-protocol", "iwarp_mpa",
              "-o", "tcp.desegment_tcp_streams:FALSE")
# Wireshark's own bug (4.0: completions of Get Features, Arbitration), which occurs
# whatever is sent.
OWN_FAULT = "Unregistered hf!"


def malformed(capture: Path) -> list[tuple[int, str]]:
    """(number, description) of each packet that a dissector could not read."""
    fields = ("-T", "fields", "-e", "frame.number", "-e", "frame.protocols",
              "-e", "_ws.col.Info")
    passes = ((*NO_STREAMS, "--disable-protocol", "nvme-rdma", "-Y", f"{WRONG} && {CARRIER}"),
              (*NO_NFS, "-Y", f"{WRONG} && {NVME} && {NO_DATA}"))
    with interrupts.pool(len(passes)) as pool:      # tshark uses one core.
        found = [pool.submit(pcap_check._tshark, capture, *options, *fields)
                 for options in passes]
        rows = {row for one in found for row in one.result()}
    return sorted((int(number), " ".join(rest.split())) for number, _, rest in
                  (row.partition("\t") for row in rows) if OWN_FAULT not in rest)


def complaints(results: Path, folder: Path) -> tuple[int, int, list[str]]:
    """The number of captures and packets read, and a line for each bad packet."""
    with tempfile.TemporaryDirectory(prefix="essd-conform-") as temporary:
        whole = Path(temporary) / "all.pcap"
        firsts, names = join((folder / name for name in well_formed(results)), whole)
        if not names:
            return 0, 0, []
        found = []
        for number, text in malformed(whole):
            at = bisect.bisect_right(firsts, number) - 1
            found.append(f"{names[at]}: packet {number - firsts[at] + 1}: {text}")
        return len(names), firsts[-1] - 1, found
