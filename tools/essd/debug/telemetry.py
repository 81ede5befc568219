# SPDX-License-Identifier: BSD-2-Clause
"""Telemetry dumps that `nvme telemetry-log` has fetched, for `essd telemetry`.

docs/nvme.md, "Telemetry", describes the format.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import EssdError

BLOCK = 512
PAGES = {7: "host-initiated", 8: "controller-initiated"}
HEADER = struct.Struct("<BBHB3sHHHH")       # up to the last block of data area 3
SECTION = struct.Struct("<4sI24s")
MAGIC = b"ESSD"
TEXTS = ("log", "cut")
CRASH = ("crash", "hart0", "memory")    # `essd dump --file` shows what they say
RECORD = 64             # bytes of a record of the section "trace"


@dataclass(frozen=True)
class Section:
    area: int
    name: str
    data: bytes

    def value(self) -> Any:
        """A text, the numbers of trace records, or what the JSON says."""
        if self.name in TEXTS:
            return self.data.decode("ascii", errors="replace")
        if self.name in CRASH:
            return {"bytes": len(self.data)}
        if self.name == "trace":
            return {"records": len(self.data) // RECORD}
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError):
            raise EssdError(f"the section {self.name} is damaged: fetch the dump again") from None


@dataclass(frozen=True)
class Dump:
    page: str                   # which of the two log pages
    generation: int
    reason: str
    available: bool             # a controller-initiated dump waits to be fetched
    sections: tuple[Section, ...]


def sections_of(data: bytes, area: int) -> Iterator[Section]:
    at = 0
    while at + SECTION.size <= len(data) and data[at:at + 4] == MAGIC:
        _, length, name = SECTION.unpack_from(data, at)
        at += SECTION.size
        if at + length > len(data):
            raise EssdError(f"data area {area} ends in the middle of a section: "
                            "the file is cut, so fetch it again")
        yield Section(area, name.rstrip(b"\0").decode("ascii", errors="replace"),
                      data[at:at + length])
        at += length + -length % 4


def parse(data: bytes) -> Dump:
    if len(data) < BLOCK or data[0] not in PAGES:
        raise EssdError("this is no telemetry log: it begins with neither 07h nor 08h; "
                        "fetch one with nvme telemetry-log --output-file=FILE")
    lasts = HEADER.unpack_from(data)[5:8]
    found: list[Section] = []
    first = 1
    for area, last in enumerate(lasts, 1):
        if (last + 1) * BLOCK > len(data):
            break               # nvme telemetry-log --data-area fetches fewer areas
        found += sections_of(data[first * BLOCK:(last + 1) * BLOCK], area)
        first = last + 1
    return Dump(page=PAGES[data[0]], generation=data[381 if data[0] == 7 else 383],
                reason=data[384:512].rstrip(b"\0 ").decode("ascii", errors="replace"),
                available=bool(data[382]), sections=tuple(found))


def read(path: Path) -> Dump:
    try:
        return parse(path.read_bytes())
    except OSError as e:
        raise EssdError(f"{path} cannot be read: {e.strerror}") from e


def text(dump: Dump) -> str:
    """The dump for people: one heading for each section."""
    lines = [f"{dump.page} dump {dump.generation}: {dump.reason or 'there is none yet'}"]
    for section in dump.sections:
        value = section.value()
        shown = value if isinstance(value, str) else json.dumps(value, indent=2)
        lines += ["", f"== data area {section.area}: {section.name}", shown.rstrip()]
    return "\n".join(lines)
