# SPDX-License-Identifier: BSD-2-Clause
"""The ends of the parts' UART logs and of a drive's trace."""

import base64
import threading
from collections import deque
from pathlib import Path
from typing import Any

from ..base.show import printable
from ..instance.instance import Instance
from ..observe import trace

TAIL_BYTES = 8192
TRACE_GROUPS = "qp,cm,roce,tcp"
LINES_MAX = 100         # lines of one event; more are counted
COMMANDS_MAX = 20       # of them commands, which are there while somebody samples them


class UartTails:
    """Follows the console log of each part."""

    def __init__(self) -> None:
        self.paths: dict[str, Path] = {}
        self.read_to: dict[str, int] = {}

    def follow(self, parts: dict[str, Any]) -> None:
        self.paths = {name: Path(part["console"]) for name, part in parts.items()}

    def fresh(self) -> dict[str, str]:
        """What has been written since the last call."""
        found = {}
        for name, path in self.paths.items():
            try:
                size = path.stat().st_size
            except OSError:
                continue
            begin = self.read_to.get(name)
            self.read_to[name] = size
            if begin is None or begin > size:       # new, or a new file
                begin = max(0, size - TAIL_BYTES)
            if size > begin:
                found[name] = self.read(path, max(begin, size - TAIL_BYTES), size)
        return found

    def whole(self) -> dict[str, str]:
        """The end of each log up to where fresh() has read."""
        return {name: self.read(self.paths[name], max(0, size - TAIL_BYTES), size)
                for name, size in self.read_to.items() if name in self.paths}

    def read(self, path: Path, begin: int, end: int) -> str:
        try:
            with open(path, "rb") as file:
                file.seek(begin)
                return printable(file.read(end - begin).decode(errors="replace")
                                 .replace("\r", ""))
        except OSError:
            return ""


class TraceTail:
    """Follows one drive's trace in a thread of its own."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.part = ""                  # the drive that is traced; "": none
        self.lines: deque[str] = deque()
        self.skipped = 0
        self.commands = 0
        self.stream: trace.Stream | None = None
        self.lock = threading.Lock()

    def start(self, part: str) -> None:
        """Begin to trace a drive; EssdError if it is not powered."""
        stream = trace.Stream(self.instance.of(part), ["trace"],
                              trace.mask_of(TRACE_GROUPS))
        self.stream, self.part = stream, part
        threading.Thread(target=self.read, args=(stream,), daemon=True).start()

    def stop(self) -> None:
        if self.stream is not None:
            self.stream.end()
        self.stream, self.part = None, ""

    def read(self, stream: trace.Stream) -> None:
        decoder = trace.Decoder()
        try:
            for event in stream.events():
                if event["event"] == "trace":
                    data = base64.b64decode(event["records"])
                    for found in decoder.take(self.wanted(data)):
                        self.add(trace.line_of(found, event["time"]))
        finally:
            stream.close()
            if self.stream is stream:
                self.stream, self.part = None, ""

    def wanted(self, data: bytes) -> bytes:
        """The records without most commands: there may be many thousands a second."""
        kept = []
        for at in range(0, len(data), trace.RECORD_LEN):
            number = int.from_bytes(data[at + 8:at + 10], "little")
            if number < len(trace.KINDS) and trace.KINDS[number].group == "commands":
                self.commands += 1
                if self.commands > COMMANDS_MAX:
                    self.skipped += 1
                    continue
            kept.append(data[at:at + trace.RECORD_LEN])
        return b"".join(kept)

    def add(self, line: str) -> None:
        with self.lock:
            if len(self.lines) < LINES_MAX:
                self.lines.append(line)
            else:
                self.skipped += 1

    def fresh(self) -> list[str]:
        """The lines since the last call."""
        with self.lock:
            found = list(self.lines)
            self.lines.clear()
            if self.skipped:
                found.append(f"({self.skipped} more events are not shown)")
            self.skipped = self.commands = 0
        return found
