# SPDX-License-Identifier: BSD-2-Clause
"""The supervisor's half of `essd capture`: QEMU's dump filter, and its file.

The filter is an object that QMP adds to a port's network backend and removes again.
It writes each frame to a file, so that QEMU never waits for whoever reads it.  The
capture lasts as long as the client's connection: whatever ends the client, the filter
and the file are removed.

The client deletes what it has read from the file (a hole at its beginning).  If it
reads so slowly that FILE_MAX bytes are waiting, the filter is removed, and a new one
is added when the client has read everything.  The frames in between are lost.
"""

import asyncio
import contextlib
import itertools
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qemu.qmp.error import QMPError

from ..instance.config import part_file
from ..machine.drive import TIME_QUERY
from .part import Part

if TYPE_CHECKING:
    from .supervisor import Supervisor

FILE_MAX = 64 << 20     # bytes of the disk
LOOK_S = 0.05
END_S = 0.3
WRITE_ERROR = b"network dump write error"     # QEMU's words when it cannot write

numbers = itertools.count(1)


def virtual_ns(text: str) -> int:
    """The machine's time from the monitor's answer to TIME_QUERY."""
    low, high = re.findall(r"0x([0-9a-f]+)", text.split(":", 1)[1])
    return int(high, 16) << 32 | int(low, 16)


class Dump:
    """One dump filter at a drive's port.

    QEMU stamps a frame with the machine's virtual time, plus the whole second of the
    host's clock at which the filter was added.  `shift_us` turns that into the time of
    the host's clock.
    """

    def __init__(self, part: Part, port: int) -> None:
        self.part = part
        self.port = port
        self.process = part.process
        number = next(numbers)
        self.id = f"live{number}"
        self.file = part_file(part.folder, part.name, f"live{number}.pcap")
        self.shift_us = 0
        self.log_size = 0
        self.is_on = False

    async def add(self) -> None:
        self.log_size = self.part.log.stat().st_size
        while not self.is_on:
            begin = int(time.time())
            await self.part.execute("object-add", {
                "qom-type": "filter-dump", "id": self.id, "netdev": f"port{self.port}",
                "file": str(self.file), "maxlen": 65536})
            self.is_on = True
            if int(time.time()) != begin:   # Which of these seconds QEMU took is unknown.
                await self.remove()
        before = time.time()
        text = await self.part.execute(*TIME_QUERY)
        now_us = int(5e5 * (before + time.time()))
        self.shift_us = now_us - begin * 1000000 - virtual_ns(str(text)) // 1000

    async def remove(self) -> None:
        if self.is_on:
            self.is_on = False
            with contextlib.suppress(QMPError, ValueError):     # The drive has gone.
                if self.part.process is self.process:
                    await self.part.execute("object-del", {"id": self.id})

    @property
    def disk_bytes(self) -> int:
        return self.file.stat().st_blocks * 512

    @property
    def has_failed(self) -> bool:
        """Whether QEMU has said that it could not write, and so has stopped the dump."""
        size = self.part.log.stat().st_size
        if size == self.log_size:
            return False
        with open(self.part.log, "rb") as log:
            log.seek(self.log_size)
            self.log_size = size
            return WRITE_ERROR in log.read()


class Capture:
    """A client that captures the frames of one port."""

    def __init__(self, supervisor: "Supervisor", request: dict[str, Any],
                 writer: asyncio.StreamWriter) -> None:
        self.supervisor = supervisor
        self.part = supervisor.running_drive(request)
        self.port = int(request["port"])
        supervisor.cables.number_of({**request, "part": self.part.name})
        self.writer = writer
        self.process = self.part.process
        self.dump: Dump | None = None
        self.files: list[Path] = []

    def send(self, **message: Any) -> None:
        self.writer.write(json.dumps(message).encode() + b"\n")

    async def begin(self) -> None:
        """Add a dump filter with a new file."""
        dump = Dump(self.part, self.port)
        self.dump = dump
        self.files.append(dump.file)
        await dump.add()

    def tell_file(self) -> None:
        assert self.dump is not None
        self.send(event="file", file=str(self.dump.file), shift_us=self.dump.shift_us)

    async def gone_words(self) -> str:
        """What has ended the drive's process."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.supervisor.done.wait(), END_S)
        if self.supervisor.done.is_set():
            return "the instance has ended"
        if self.part.why:
            return f"{self.part.title}: {self.part.why}"
        if self.part.saved is not None or self.part.is_saving:
            return f"{self.part.title} was saved"
        return f"the power of {self.part.title} was cut"

    async def look(self) -> str:
        """Pause a dump whose reader is slow; return why the capture ends, or ""."""
        if self.part.process is not self.process:
            return await self.gone_words()
        assert self.dump is not None
        if self.dump.has_failed:
            return (f"QEMU could not write {self.dump.file}: is the disk full?  See "
                    f"{self.part.log}")
        if self.dump.is_on and self.dump.disk_bytes > FILE_MAX:
            await self.dump.remove()
            self.send(event="full")
        return ""

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Serve the client until it ends the capture, disconnects, or the drive ends."""
        await self.begin()
        self.send(**{"return": {"version": 1}})
        self.tell_file()
        why = ""
        line = asyncio.create_task(reader.readline())
        try:
            while not why:
                done, _ = await asyncio.wait([line], timeout=LOOK_S)
                if done:
                    if line.result() != b"more\n":
                        break
                    line = asyncio.create_task(reader.readline())
                    self.files.pop().unlink(missing_ok=True)
                    await self.begin()
                    self.tell_file()
                why = await self.look()
            assert self.dump is not None
            await self.dump.remove()
            self.send(event="end", why=why)
            await self.writer.drain()
            # The files stay until the client, which may be about to open one, is gone.
            await (reader.readline() if line.done() else line)
        finally:
            line.cancel()

    async def end(self) -> None:
        if self.dump is not None:
            await self.dump.remove()
        for file in self.files:
            file.unlink(missing_ok=True)


async def serve(supervisor: "Supervisor", request: dict[str, Any],
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Handle one request "capture" (docs/management.md)."""
    capture = Capture(supervisor, request, writer)
    try:
        await capture.run(reader)
    finally:
        await capture.end()
