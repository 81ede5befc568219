# SPDX-License-Identifier: BSD-2-Clause
"""Limits the size of the captures of `up --capture`, which QEMU's dump filters write.

QEMU cannot begin a new file within a filter.  So when the file is full, a second
filter is added at the same netdev.  As soon as it has written a frame, the first
filter is removed, and what both have written is cut from the end of the first one's
file.  No frame is missing, and none is there twice.

QEMU stamps a frame with the machine's virtual time plus the second of the host's clock
at which the filter was added.  So the second filter's times are ahead by the age of the
first one.  A frame that both have written says by how much; the times in the new file
are corrected in place, where QEMU does not write any more.
"""

import asyncio
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qemu.qmp.error import QMPError

from ..base.errors import EssdError
from ..instance.config import Link

if TYPE_CHECKING:
    from .part import Part

FILES_MAX = 4               # full files that are kept for each cable
DEFAULT_LIMIT = "64M"
SMALLEST = 64 << 10
HEADER_LEN = 24
PACKET = struct.Struct("<IIII")     # seconds, microseconds, captured and whole length
SECOND_US = 1000000
APART_MAX_US = 200000       # between two filters' times of a frame
READ_MAX = 8 << 20
HEAD_LEN = 128 << 10        # bytes that are compared to find a frame again
LOOK_S = 0.5


def parse_limit(text: str) -> int:
    """Bytes of "64M"; 0: no limit."""
    match = re.fullmatch(r"(\d{1,12})([KMG]?)", text.strip(), re.I)
    size = int(match[1]) << 10 * " KMG".index(match[2].upper() or " ") if match else -1
    if size < 0 or 0 < size < SMALLEST:
        raise EssdError(f"--capture-size {text}: write a size of at least 64K, such as 64M, "
                        "or 0 for no limit")
    return size


def numbered(file: Path) -> list[Path]:
    """The earlier files of a capture, the oldest first: link0-1.pcap, link0-2.pcap."""
    found = {}
    for path in file.parent.glob(f"{file.stem}-*{file.suffix}"):
        number = path.stem.removeprefix(f"{file.stem}-")
        if number.isdecimal():
            found[int(number)] = path
    return [found[number] for number in sorted(found)]


def keep(file: Path) -> None:
    """Give a capture the next number, so that a new one can begin."""
    earlier = numbered(file)
    last = int(earlier[-1].stem.rpartition("-")[2]) if earlier else 0
    file.rename(file.with_stem(f"{file.stem}-{last + 1}"))


def packets(data: bytes) -> Iterator[tuple[int, tuple[int, int, int, int]]]:
    """Offset and header of each whole packet."""
    at = 0
    while at + PACKET.size <= len(data):
        facts = PACKET.unpack_from(data, at)
        if at + PACKET.size + facts[2] > len(data):
            return
        yield at, facts
        at += PACKET.size + facts[2]


@dataclass
class Packet:
    time_us: int
    data: bytes

    @classmethod
    def of(cls, data: bytes, at: int, facts: tuple[int, int, int, int]) -> "Packet":
        start = at + PACKET.size
        return cls(facts[0] * SECOND_US + facts[1], data[start:start + facts[2]])

    def seconds_after(self, other: "Packet") -> int | None:
        """Whole seconds between the times that two filters gave to one frame.

        Each filter reads the clock itself, so that microseconds differ a little.  None
        if they differ so much that it is another frame with the same bytes.
        """
        seconds = round((self.time_us - other.time_us) / SECOND_US)
        apart_us = self.time_us - other.time_us - seconds * SECOND_US
        return seconds if abs(apart_us) < APART_MAX_US else None


class Growing:
    """A capture that QEMU writes; `done` is how far its times have been corrected."""

    def __init__(self, file: Path, shift_s: int = 0) -> None:
        self.file = file
        self.shift_s = shift_s
        self.done = HEADER_LEN

    def correct(self) -> None:
        """Correct the times of the packets that have been written since."""
        with open(self.file, "r+b") as file:
            while data := os.pread(file.fileno(), READ_MAX, self.done):
                end = 0
                for at, (second, _, size, _) in packets(data):
                    if self.shift_s:
                        os.pwrite(file.fileno(), struct.pack("<I", second + self.shift_s),
                                  self.done + at)
                    end = at + PACKET.size + size
                if end == 0:
                    return
                self.done += end

    def head(self) -> list[Packet]:
        """The first packets, as far as they have been written."""
        with open(self.file, "rb") as file:
            data = os.pread(file.fileno(), HEAD_LEN, HEADER_LEN)
        return [Packet.of(data, at, facts) for at, facts in packets(data)]

    def cut_before(self, head: list[Packet], start: int) -> int | None:
        """End the file before the packets with which another one begins.

        They are in this file, too, after `start`.  Return by how many seconds their
        times are behind here, or None if they are not found.
        """
        with open(self.file, "r+b") as file:
            file.seek(start)
            data = file.read()
            mine = [(at, Packet.of(data, at, facts)) for at, facts in packets(data)]
            for n, (at, packet) in enumerate(mine):
                seconds = head[0].seconds_after(packet)
                if seconds is not None and [x.data for x in head] == [
                        x.data for _, x in mine[n:n + len(head)]]:
                    file.truncate(start + at)
                    return seconds
        return None


class Rotation:
    """Keeps the capture of one cable below its limit."""

    def __init__(self, part: "Part", netdev: str, link: Link, limit: int) -> None:
        self.part = part
        self.netdev = netdev
        self.limit = limit
        self.filter = f"dump{link.number}"
        self.count = 0
        self.start = 0          # All that both filters write is after this in the file.
        self.now = Growing(link.pcap(part.folder))
        self.next: Growing | None = None

    async def run(self) -> None:
        """Look at the file until the part ends."""
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                await self.look()
        except (QMPError, ValueError, OSError) as error:
            self.part.supervisor.say(f"{self.now.file} is not limited any more: {error}")
        finally:
            if self.next is not None:       # Its frames are in the other file, too.
                self.next.file.unlink(missing_ok=True)
            if self.now.file.exists():
                self.now.correct()

    async def look(self) -> None:
        if not self.now.file.exists():
            return
        self.now.correct()
        if self.next is None and self.now.file.stat().st_size > self.limit:
            await self.begin()
        if self.next is not None:
            head = self.next.head()
            if head:
                await self.change(self.next, head)

    async def begin(self) -> None:
        """Add the second filter."""
        file = self.now.file.with_suffix(".next")
        self.start = self.now.done
        self.count += 1
        await self.part.execute("object-add", {
            "qom-type": "filter-dump", "id": f"{self.filter}-{self.count}",
            "netdev": self.netdev, "file": str(file), "maxlen": 65536})
        self.next = Growing(file)

    async def change(self, fresh: Growing, head: list[Packet]) -> None:
        """Remove the first filter; its file is complete."""
        before = f"-{self.count - 1}" if self.count > 1 else ""
        await self.part.execute("object-del", {"id": f"{self.filter}{before}"})
        self.now.correct()
        seconds = self.now.cut_before(head, self.start)
        if seconds is None:
            self.part.supervisor.say(f"{self.now.file}: the next file repeats the last "
                                     "frames of this one, and has other times")
        fresh.shift_s = -(seconds or 0)
        file = self.now.file
        keep(file)
        fresh.file = fresh.file.rename(file)
        self.now, self.next = fresh, None
        for old in numbered(file)[:-FILES_MAX]:
            old.unlink()
