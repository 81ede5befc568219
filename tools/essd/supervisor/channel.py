# SPDX-License-Identifier: BSD-2-Clause
"""The supervisor's connections to the drive's management block.

Messages: one JSON object a line each way, matched by "id": docs/management.md.

QEMU serves one client of a channel at a time, and a second connection waits for the
first one to end.  So the supervisor opens one connection for each channel and shares
it among all clients.
"""

import asyncio
import base64
import contextlib
import itertools
import json
import time
from pathlib import Path
from typing import Any

from ..base.errors import EssdError

VERSION = 1
REQUEST_MAX = 1024      # characters of a request that the firmware takes
LINE_MAX = 1 << 20


class Refused(EssdError):
    """The drive has refused a request; the text is the drive's reason."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"the drive refuses: {text}")
        self.code = code


def request_line(number: int, request: str, arguments: Any) -> bytes:
    """Return a request as the drive takes it; ValueError if the drive would refuse it.

    The drive answers a line that it cannot read with id 0, which matches no request.
    """
    if not isinstance(arguments, dict):
        raise ValueError(f"{request}: the arguments are not a JSON object")
    if {"v", "id", "request"} & set(arguments):
        raise ValueError(f"{request}: an argument cannot be named v, id or request")
    for word in (request, *arguments, *arguments.values()):
        if isinstance(word, str):
            if not (word.isascii() and word.isprintable()):
                raise ValueError(f"{word!r}: use printable ASCII characters only")
        elif word is not None and not (isinstance(word, int) and 0 <= word < 1 << 64):
            raise ValueError(f"{word!r}: an argument is a string, a number from 0 to "
                             "2^64 - 1, true, false or null")
    text = json.dumps({"v": VERSION, "id": number, "request": request, **arguments})
    if len(text) > REQUEST_MAX:
        raise ValueError(f"the request {request} has {len(text)} characters: use at most "
                         f"{REQUEST_MAX}")
    return text.encode() + b"\n"


class Messages:
    """Sends requests and matches replies; connects at the first request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ids = itertools.count(1)
        self.waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.writer: asyncio.StreamWriter | None = None
        self.reading: asyncio.Task[None] | None = None
        self.connecting = asyncio.Lock()

    async def connect(self) -> asyncio.StreamWriter:
        async with self.connecting:
            if self.writer is None:
                try:
                    reader, self.writer = await asyncio.open_unix_connection(
                        str(self.path), limit=LINE_MAX)
                except OSError:
                    raise ValueError("the drive has no management channel: it is not "
                                     "powered, or was started by an older essd") from None
                self.reading = asyncio.create_task(self.read(reader, self.writer))
            return self.writer

    async def read(self, reader: asyncio.StreamReader,
                   writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := await reader.readline():
                self.take(line)
        writer.close()
        if self.writer is writer:
            self.writer = None
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(ValueError("the drive was powered off"))
        self.waiting.clear()

    def take(self, line: bytes) -> None:
        """Handle a reply; ignore an incomplete line for a previous client."""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            reply = json.loads(line)
            future = self.waiting.pop(reply["id"], None)
            if future is not None and not future.done():
                future.set_result(reply)

    async def ask(self, request: str, arguments: dict[str, Any],
                  timeout_s: float) -> dict[str, Any]:
        number = next(self.ids)
        line = request_line(number, request, arguments)
        writer = await self.connect()
        future: asyncio.Future[dict[str, Any]] = \
            asyncio.get_running_loop().create_future()
        self.waiting[number] = future
        try:
            writer.write(line)
            reply = await asyncio.wait_for(future, timeout_s)
        except TimeoutError:
            raise ValueError(f"the drive did not answer {request} within "
                             f"{timeout_s:.0f} s: it is halted or starting, or another "
                             f"program is connected to {self.path.name}") from None
        finally:
            self.waiting.pop(number, None)
        if "error" in reply:
            raise Refused(reply["error"]["code"], reply["error"]["text"])
        return dict(reply["result"])

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None


RECORD_LEN = 64
TRACE_LOST = 2          # enum trace_type and enum trace_source in lib/trace.h
SOURCE_MGMT = 1
LAST_S = 2.0            # time limit to receive events recorded before the end


class Subscriber:
    """A client of the supervisor that receives events.

    A slow client loses events, which are counted, and does not delay others.
    """

    ROOM = 1024         # messages

    def __init__(self, kinds: set[str], mask: int) -> None:
        self.kinds = kinds
        self.mask = mask
        self.queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.lost = 0

    def push(self, kind: str, **facts: Any) -> None:
        if kind not in self.kinds:
            return
        if self.queue.qsize() >= self.ROOM:
            self.lost += 1
            return
        if self.lost:
            self.queue.put_nowait({"event": "lost", "messages": self.lost})
            self.lost = 0
        self.queue.put_nowait({"event": kind, "time": time.time(), **facts})

    def end(self) -> None:
        self.queue.put_nowait(None)


class Trace:
    """The one reader of the trace channel; the mask is what subscribers want."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.subscribers: list[Subscriber] = []
        self.writer: asyncio.StreamWriter | None = None
        self.reading: asyncio.Task[None] | None = None
        self.mask = 0
        self.connecting = asyncio.Lock()
        self.finished = asyncio.Event()     # the last record of a trace came

    def wanted(self) -> int:
        mask = 0
        for subscriber in self.subscribers:
            mask |= subscriber.mask
        return mask

    async def connect(self) -> bool:
        """Connect and send the current event mask; False if there is no drive."""
        async with self.connecting:
            if self.writer is None:
                try:
                    reader, self.writer = await asyncio.open_unix_connection(
                        str(self.path))
                except OSError:
                    return False
                self.mask = 0
                self.reading = asyncio.create_task(self.read(reader, self.writer))
        if self.writer is not None and self.mask != self.wanted():
            self.mask = self.wanted()
            self.finished.clear()
            self.writer.write(self.mask.to_bytes(4, "little"))
        return True

    async def read(self, reader: asyncio.StreamReader,
                   writer: asyncio.StreamWriter) -> None:
        data = b""
        with contextlib.suppress(OSError):
            while more := await reader.read(1 << 16):
                data += more
                whole = len(data) // RECORD_LEN * RECORD_LEN
                self.take(data[:whole])
                data = data[whole:]
        writer.close()
        self.finished.set()
        if self.writer is writer:
            self.writer = None

    def take(self, records: bytes) -> None:
        if not records:
            return
        text = base64.b64encode(records).decode()
        for subscriber in self.subscribers:
            subscriber.push("trace", records=text)
        last = records[-RECORD_LEN:]
        if self.mask == 0 and last[10] == SOURCE_MGMT and \
                int.from_bytes(last[8:10], "little") == TRACE_LOST:
            self.finished.set()

    async def remove(self, subscriber: Subscriber) -> None:
        """Remove a subscriber; the last one first gets all events recorded so far."""
        subscriber.mask = 0
        if self.writer is not None:
            await self.connect()
            if self.mask == 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.finished.wait(), LAST_S)
        if subscriber in self.subscribers:
            self.subscribers.remove(subscriber)
        if not self.subscribers and self.writer is not None:
            self.writer.close()
            self.writer = None
