# SPDX-License-Identifier: BSD-2-Clause
"""The NVMe commands of a failed conformance test, decoded: one line for each.

The conformance program records submission and completion queue entries as they
were on the wire (tests/conformance/exchange.h).  The names are those of
`essd trace`.
"""

import re
import time
from dataclasses import dataclass
from typing import Any

from ..observe.trace import opcode_name, status_name

FABRICS = 0x7f
ADMIN = 1 << 16             # the bit that opcode_name() has for the admin queue
HAS_BLOCKS = ("Read", "Write", "Write Zeroes", "Write Uncorrectable", "Compare",
              "Verify")
# What the lowest byte of CDW10 selects.
SELECTORS = {"Identify": "cns", "Get Log Page": "lid", "Get Features": "fid",
             "Set Features": "fid"}
DNR = 0x4000
STATUS = 0x7ff
# "expected status 000h", "got 281h": what conf_status() writes.
IN_REASON = re.compile(r"(\bstatus |, got )([0-9a-f]{3})h\b")


@dataclass(frozen=True)
class Entry:
    """A submission or completion queue entry on the wire."""

    time: float             # the drive's clock, as in the steps; it may be virtual
    wall: float             # real time, in seconds since 1970
    port: int
    qp: int                 # the host's queue pair
    psn: int
    queue: int              # QID
    is_completion: bool
    data: bytes

    @classmethod
    def from_event(cls, event: dict[str, Any]) -> "Entry":
        is_completion = "cqe" in event
        data = bytes.fromhex(event["cqe" if is_completion else "sqe"])
        if len(data) != (16 if is_completion else 64):
            raise ValueError(f"{len(data)} bytes")
        return cls(float(event["time"]), float(event["wall"]), int(event["port"]), int(event["qp"]),
                   int(event["psn"]), int(event["queue"]), is_completion, data)

    def word(self, at: int) -> int:
        return int.from_bytes(self.data[at:at + 4], "little")

    @property
    def cid(self) -> int:
        return int.from_bytes(self.data[12:14] if self.is_completion
                              else self.data[2:4], "little")


def cdw(entry: Entry, number: int) -> int:
    return entry.word(4 * number)


def data_len(entry: Entry) -> int:
    """The length in SGL descriptor 1, which is three bytes in a keyed one."""
    is_keyed = entry.data[39] >> 4 == 4
    return int.from_bytes(entry.data[32:35 if is_keyed else 36], "little")


def command_name(entry: Entry) -> str:
    opcode = entry.data[0]
    return opcode_name(opcode | (entry.data[4] << 8 if opcode == FABRICS else 0)
                       | (ADMIN if entry.queue == 0 else 0))


def fabrics_words(entry: Entry, name: str) -> list[str]:
    if name == "Connect":
        return [f"qid {cdw(entry, 10) >> 16}", f"sqsize {cdw(entry, 11) & 0xffff}"]
    if name == "Property Set":
        return [f"offset {cdw(entry, 11):#x}",
                f"value {cdw(entry, 12) | cdw(entry, 13) << 32:#x}"]
    return [f"offset {cdw(entry, 11):#x}"] if name == "Property Get" else []


def nvme_words(entry: Entry, name: str) -> list[str]:
    nsid = cdw(entry, 1)
    words = [f"nsid {nsid:#x}" if nsid > 0xffff else f"nsid {nsid}"]
    low, high = cdw(entry, 10) & 0xffff, cdw(entry, 10) >> 16
    if name in HAS_BLOCKS:
        blocks = (cdw(entry, 12) & 0xffff) + 1
        words += [f"lba {cdw(entry, 10) | cdw(entry, 11) << 32}",
                  f"{blocks} block{'s' if blocks > 1 else ''}"]
    elif name in SELECTORS:
        words.append(f"{SELECTORS[name]} {low & 0xff:#x}")
        if name == "Set Features":
            words.append(f"value {cdw(entry, 11):#x}")
    elif name == "Abort":
        words.append(f"of cid {high} in queue {low}")
    return words


def command_words(entry: Entry) -> str:
    """The command by name, and its arguments."""
    name = command_name(entry)
    words = fabrics_words(entry, name) if entry.data[0] == FABRICS \
        else nvme_words(entry, name)
    length = data_len(entry)
    words += [f"{length} bytes"] if length else []
    return f"{name} {', '.join([*words, f'cid {entry.cid}'])}"


def status_words(entry: Entry) -> str:
    status = int.from_bytes(entry.data[14:16], "little") >> 1
    number = f"{status & STATUS:03x}h"
    name = status_name(status & STATUS)
    if name.startswith("0x"):
        name = f"status {number}"
    elif name != "ok":
        name += f" ({number})"
    result = entry.word(0) | entry.word(4) << 32
    return (name + (", DNR" if status & DNR else "")
            + (f", result {result:#x}" if result else ""))


def lines(exchange: list[Entry]) -> list[str]:
    """A line for each command with its completion, in the order of the wire."""
    open_commands: dict[tuple[int, int, int], int] = {}
    seen: set[tuple[int, int, bool, int]] = set()
    found: list[list[Any]] = []             # [entry, words, end]
    for entry in exchange:
        key = (entry.port, entry.qp, entry.cid)
        packet = (entry.port, entry.qp, entry.is_completion, entry.psn)
        again = " (sent again)" if packet in seen else ""
        seen.add(packet)
        if not entry.is_completion:
            open_commands[key] = len(found)
            found.append([entry, command_words(entry) + again, "no completion"])
        elif key in open_commands and not again:
            start = found[open_commands.pop(key)]
            took = entry.wall - start[0].wall
            start[2] = f"{status_words(entry)}; {took * 1e6:.0f} us"
        else:
            found.append([entry, f"completion of cid {entry.cid}{again}",
                          status_words(entry)])
    return [f"{clock(entry.wall)} {entry.time:10.6f} port {entry.port} "
            f"{'admin queue' if entry.queue == 0 else f'queue {entry.queue}'}: "
            f"{words}: {end}" for entry, words, end in found]


def clock(wall: float) -> str:
    seconds, us = divmod(round(wall * 1e6), 1000000)
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{us:06}"


def name_statuses(reason: str) -> str:
    """Add the name to each status that a reason mentions by number."""
    def named(found: re.Match[str]) -> str:
        name = status_name(int(found[2], 16))
        return found[0] if name.startswith("0x") else f"{found[0]} ({name})"
    return IN_REASON.sub(named, reason)


def of_event(event: dict[str, Any]) -> tuple[str, ...]:
    """The lines of a test's event; those of a saved report are lines already."""
    exchange = event.get("exchange") or []
    if all(isinstance(one, str) for one in exchange):
        return tuple(exchange)
    return tuple(lines([Entry.from_event(one) for one in exchange]))
