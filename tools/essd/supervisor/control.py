# SPDX-License-Identifier: BSD-2-Clause
"""The supervisor's control socket, <instance>/control.sock.

A command is one line of JSON.  The reply is one line: {"return": ...} or
{"error": text}.  A client that subscribes gets events until it sends another line.
"""

import asyncio
import contextlib
import json
import traceback
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from qemu.qmp.error import QMPError

from ..base import chosen
from ..base.errors import EssdError
from . import capture_keeper
from .channel import Subscriber, Trace

if TYPE_CHECKING:
    from .supervisor import Supervisor


async def read_request(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Read one request; ValueError if the line is no request."""
    with contextlib.suppress(ValueError, RecursionError):
        request = json.loads(await reader.readline())
        if isinstance(request, dict) and isinstance(request.get("command"), str):
            return request
    raise ValueError('a request is one line of at most 64 KiB with a JSON object that has '
                     'a member "command"')


async def wait_for_input(reader: asyncio.StreamReader) -> None:
    """Return when the client has sent a line or has gone."""
    with contextlib.suppress(OSError, ValueError):
        await reader.readline()


TURN_S = 1.0            # for the firmware to answer at the end of a trace

# The kinds of events that a client can subscribe to.
EVENT_KINDS = {"part", "link", "cable", "restart", "trace"}


SERVED = object()       # what is returned in place of a reply

# The members that a request may have, besides "command" and "part".  A misspelt one is
# refused, because it would count as absent.
MEMBERS: dict[str, set[str]] = {
    "status": set(), "stop": set(), "power-cut": set(),
    "power-on": {"flashing", "forget_restarts"}, "save": set(), "load": set(),
    "reset": {"halt"}, "mgmt": {"request", "arguments", "timeout_s"},
    "configure": {"changes"}, "port": {"port", "plugged"},
    "partner": {"port", "settings"}, "module": {"port", "settings"},
    "qmp": {"execute", "arguments"}, "faults": {"do", "names", "rules"},
    "switch": {"request"}, "save-all": {"name"}, "load-all": {"name"},
    "several": {"parts", "requests"}, "subscribe": {"events", "mask"}, "capture": {"port"}}
SWITCHES = {"flashing", "forget_restarts", "halt", "plugged"}     # true or false


def check_members(request: dict[str, Any]) -> None:
    """ValueError if a request has members that its command does not know."""
    kind = request["command"]
    if kind not in MEMBERS:
        raise ValueError(f"unknown command {kind}")
    for member in sorted(request.keys() - {"command", "part"} - MEMBERS[kind]):
        raise ValueError(f"{kind}: a request has no member {member!r}; it may have "
                         f"{', '.join(['part', *sorted(MEMBERS[kind])])}")
    for member in sorted(request.keys() & SWITCHES):
        if not isinstance(request[member], bool):
            raise ValueError(f"{kind}: {member} has to be true or false")


class Control:
    """Serves the clients of the control socket."""

    def __init__(self, supervisor: "Supervisor") -> None:
        self.supervisor = supervisor
        self.subscribers: list[Subscriber] = []

    def tell(self, kind: str, **facts: Any) -> None:
        """Send an event to the subscribers (docs/management.md)."""
        for subscriber in self.subscribers:
            subscriber.push(kind, **facts)

    async def start(self) -> asyncio.Server:
        """Listen; a socket that an earlier supervisor has left is replaced."""
        path = self.supervisor.folder / "control.sock"
        path.unlink(missing_ok=True)
        return await asyncio.start_unix_server(self.serve, path)

    def new_subscriber(self, request: dict[str, Any]) -> Subscriber:
        kinds = set(request.get("events") or EVENT_KINDS - {"trace"})
        if not kinds <= EVENT_KINDS:
            raise ValueError(f"unknown events {', '.join(sorted(kinds - EVENT_KINDS))}: "
                             f"there are {', '.join(sorted(EVENT_KINDS))}")
        mask = int(request.get("mask", 0))
        if not 0 <= mask < 1 << 32:
            raise ValueError(f"mask {mask}: use a number from 0 to 2^32 - 1")
        return Subscriber(kinds, mask)

    async def start_trace(self, trace: Trace, subscriber: Subscriber) -> None:
        trace.subscribers.append(subscriber)
        if not await trace.connect():
            name = self.supervisor.config.name
            raise ValueError("the drive's trace channel does not exist: restart the "
                             f"instance with {chosen.hint(name, 'down')} and "
                             f"{chosen.hint(name, 'up')}")

    async def let_turn_end(self, drive: str) -> None:
        """Have the firmware end a turn of its main loop, so that its last events come.

        It traces a command when it sees that the host has acknowledged the response, and
        sleeps until something wakes it.  The answer to a second request says that the turn
        of the first one has ended.
        """
        with contextlib.suppress(EssdError, ValueError, OSError):   # off, halted, starting
            for _ in range(2):
                await self.supervisor.messages[drive].ask("status", {}, TURN_S)

    async def subscribe(self, request: dict[str, Any], reader: asyncio.StreamReader,
                        writer: asyncio.StreamWriter) -> None:
        """Stream events until the client sends a line or disconnects."""
        subscriber = self.new_subscriber(request)
        drive = (self.supervisor.running_drive(request).name
                 if "trace" in subscriber.kinds else "")
        trace = self.supervisor.traces[drive] if drive else None
        self.subscribers.append(subscriber)
        try:
            if trace is not None:
                await self.start_trace(trace, subscriber)
            writer.write(b'{"return": {"version": 1}}\n')
            sending = asyncio.create_task(self.send_events(subscriber, writer))
            leaving = asyncio.create_task(wait_for_input(reader))
            await asyncio.wait([leaving, sending], return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
        finally:
            self.subscribers.remove(subscriber)
            if trace is not None:
                await self.let_turn_end(drive)
                await trace.remove(subscriber)
            subscriber.end()
        with contextlib.suppress(OSError):
            await sending

    async def send_events(self, subscriber: Subscriber,
                          writer: asyncio.StreamWriter) -> None:
        while (event := await subscriber.queue.get()) is not None:
            writer.write(json.dumps(event).encode() + b"\n")
            await writer.drain()
        if subscriber.lost:
            writer.write(json.dumps({"event": "lost",
                                     "messages": subscriber.lost}).encode() + b"\n")
        writer.write(b'{"event": "end"}\n')
        await writer.drain()

    async def reply(self, action: Awaitable[object]) -> dict[str, Any]:
        """The reply to a request: what the action returns, or why it failed."""
        try:
            return {"return": await action}
        except KeyError as error:
            return {"error": f"the request has no member {error}"}
        except (EssdError, ValueError, TypeError, QMPError, OSError) as error:
            return {"error": str(error) or type(error).__name__}
        except Exception:
            traceback.print_exc()
            return {"error": "the supervisor failed; see "
                             f"{self.supervisor.folder}/supervisor.log"}

    async def in_order(self, part: str, requests: list[dict[str, Any]]
                       ) -> list[dict[str, Any]]:
        """The replies to requests for one part, until one of them fails."""
        replies: list[dict[str, Any]] = []
        for request in requests:
            replies.append(await self.reply(
                self.supervisor.command({**request, "part": part})))
            if "error" in replies[-1]:
                break
        return replies

    async def several(self, request: dict[str, Any]) -> object:
        """Carry out the same requests for several parts at the same time.

        Whoever looks at many things once a second saves a connection for each of them.
        """
        parts, requests = request["parts"], request["requests"]
        if any(one["command"] == "several" for one in requests):
            raise ValueError("several: the requests cannot be several again")
        for one in requests:
            check_members(one)
        found = await asyncio.gather(*(self.in_order(part, requests) for part in parts))
        return dict(zip(parts, found, strict=True))

    async def serve(self, reader: asyncio.StreamReader,
                    writer: asyncio.StreamWriter) -> None:
        reply = await self.reply(self.serve_request(reader, writer))
        with contextlib.suppress(OSError):
            if reply.get("return") is not SERVED:
                writer.write(json.dumps(reply).encode() + b"\n")
                await writer.drain()
            writer.close()

    async def serve_request(self, reader: asyncio.StreamReader,
                            writer: asyncio.StreamWriter) -> object:
        """Return what a command returns; SERVED if the client has got everything."""
        request = await read_request(reader)
        check_members(request)
        if request["command"] == "subscribe":
            with contextlib.suppress(OSError):
                await self.subscribe(request, reader, writer)
            return SERVED
        if request["command"] == "capture":
            with contextlib.suppress(ConnectionError):
                await capture_keeper.serve(self.supervisor, request, reader, writer)
            return SERVED
        return await self.supervisor.command(request)
