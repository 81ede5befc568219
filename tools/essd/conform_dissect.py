# SPDX-License-Identifier: BSD-2-Clause
"""Wireshark's opinion of what a conformance run put on the wire.

The captures of tests that send nothing wrong on purpose are read by its
dissectors, all at once: they take longer to start than to read one.
"""

import bisect
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

from . import pcap_check
from .errors import EssdError

HEADER = 24             # of the file
RECORD_HEADER = 16      # of a packet; its length is the third word


class CaptureError(EssdError):
    """A file is no capture, or not of the same kind as the others."""


def well_formed(results: Path) -> list[str]:
    """The captures, by name, of tests that sent nothing wrong on purpose."""
    names = []
    for line in results.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        # A test that failed may have seen anything: its verdict is enough.
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
    """One capture of many.  The number of each one's first packet, and its name."""
    firsts: list[int] = []
    names: list[str] = []
    header = b""
    number = 1
    with open(target, "wb") as out:
        for path in captures:
            data = path.read_bytes()
            if data[:4] not in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") or (
                    header and data[:HEADER] != header):
                raise CaptureError(f"{path.name} is no capture like the others")
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
# What a payload is, Wireshark guesses: Ethernet, NFS, ...  Only what is certain
# counts: what carries it, and, where that is what it is, NVMe.
CARRIER = '!(frame.protocols contains "infiniband:")'
NVME = '(frame.protocols contains "infiniband:nvme")'
# A structure's middle, where one WRITE is of many packets, is dissected as if it
# began there (4.0).  What carries it is judged all the same.
NO_DATA = "!(infiniband.bth.opcode >= 6 && infiniband.bth.opcode <= 11)"
NO_NFS = ("--disable-protocol", "rpcordma")
# Its own fault (4.0: completions of Get Features, Arbitration), whatever is sent.
OWN_FAULT = "Unregistered hf!"


def malformed(capture: Path) -> list[tuple[int, str]]:
    """(number, what it is) of each packet that a dissector could not read."""
    fields = ("-T", "fields", "-e", "frame.number", "-e", "frame.protocols",
              "-e", "_ws.col.Info")
    rows = {*pcap_check._tshark(capture, "--disable-protocol", "nvme-rdma", "-Y",
                                f"{WRONG} && {CARRIER}", *fields),
            *pcap_check._tshark(capture, *NO_NFS, "-Y",
                                f"{WRONG} && {NVME} && {NO_DATA}", *fields)}
    return sorted((int(number), " ".join(rest.split())) for number, _, rest in
                  (row.partition("\t") for row in rows) if OWN_FAULT not in rest)


def complaints(results: Path, folder: Path) -> tuple[int, int, list[str]]:
    """How many captures and packets were read, and what is wrong with them."""
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
