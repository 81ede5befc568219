# SPDX-License-Identifier: BSD-2-Clause
"""The cockpit's web server: frames of metrics.py as events, and actions by POST.

A browser gets one event a second, by server-sent events.  Nothing is asked of the
drives while no browser looks and nobody reads /metrics.
"""

import asyncio
import contextlib
import ipaddress
import json
import os
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ..base import show
from ..base.errors import EssdError
from ..instance.instance import Instance
from ..observe import metrics, metrics_text
from . import unproven
from .actions import Actions
from .guard import Guard, Hosts, Keys, LOGIN, METRICS
from .rules import Saved, grammar
from .tails import TraceTail, UartTails

EVERY_S = 1.0
FRESH_S = 2.0           # age of a frame that /metrics still shows
CLIENTS_MAX = 16
PROVEN_MAX = 64         # connections that have shown a token
WAITING_MAX = 4         # events that a slow browser may be behind
BODY_MAX = 4096
# The page's files, by their ends: what they are.  uplot/ draws the charts; it is the code of
# others (README.md, "Licences").
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css",
         ".svg": "image/svg+xml"}
FOLDER = Path(__file__).parent
FILES = {"/" if path.name == "page.html" else f"/{path.relative_to(FOLDER)}": path
         for path in sorted(FOLDER.rglob("*")) if path.suffix in KINDS}
RULES = "/rules.json"
PORT_COUNTERS = ("aFramesReceivedOK", "aFramesTransmittedOK", "aFrameCheckSequenceErrors",
                 "aFECCorrectedBlocks", "aFECUncorrectableBlocks", "linkChanges")


def for_page(frame: dict[str, Any]) -> dict[str, Any]:
    """The frame without the counters that the page does not show."""
    drives = {}
    for name, drive in frame["drives"].items():
        ports = [port | {"counters": {key: port["counters"].get(key) for key in
                                      PORT_COUNTERS}} for port in drive["ports"]]
        drives[name] = drive | {"ports": ports}
    return frame | {"drives": drives}


class Cockpit:
    """What is shown of one instance, and to whom."""

    def __init__(self, instance: Instance, has_latency: bool = False) -> None:
        self.instance = instance
        self.collector = metrics.Collector(instance, has_latency, for_page=True)
        self.uart = UartTails()
        self.trace = TraceTail(instance)
        self.saved = Saved()
        self.actions = Actions(instance, self.collector, self.trace, self.saved)
        self.clients: set[asyncio.Queue[str]] = set()   # "" ends a browser's events
        self.frame: dict[str, Any] = {}
        self.frame_at = 0.0
        self.looking = asyncio.Lock()
        self.files = {path: (file.read_bytes(), KINDS[file.suffix])
                      for path, file in FILES.items()}

    async def look(self) -> dict[str, Any]:
        """A new frame; EssdError if the instance does not run."""
        async with self.looking:
            self.frame = await asyncio.to_thread(self.collector.frame)
            self.frame_at = time.monotonic()
            return self.frame

    async def poll(self) -> None:
        """Send an event to all browsers once a second."""
        while True:
            began = time.monotonic()
            if self.clients:
                self.tell(await self.event())
            took = time.monotonic() - began
            # If looking is slow, the machine is busy: look less often.
            await asyncio.sleep(max(EVERY_S - took, took))

    async def event(self) -> dict[str, Any]:
        try:
            frame = await self.look()
        except (EssdError, OSError, KeyError) as error:
            return {"why": str(error) or type(error).__name__}
        self.uart.follow(frame["parts"])
        return {"frame": for_page(frame), "uart": self.uart.fresh(),
                "trace": self.trace.fresh(), "tracing": self.trace.part,
                "sampling": self.collector.has_latency, **self.saved_rules()}

    def saved_rules(self) -> dict[str, Any]:
        """The saved rules, or what is wrong with their file."""
        try:
            return {"saved": self.saved.all(), "saved-why": ""}
        except (EssdError, OSError) as error:
            return {"saved": [], "saved-why": str(error)}

    def tell(self, event: dict[str, Any]) -> None:
        text = f"data: {json.dumps(event)}\n\n"
        for queue in self.clients:
            if queue.full():            # The browser is too slow: it misses an event.
                queue.get_nowait()
            queue.put_nowait(text)

    async def events(self) -> AsyncIterator[str]:
        queue: asyncio.Queue[str] = asyncio.Queue(WAITING_MAX)
        self.clients.add(queue)
        try:
            yield f"data: {json.dumps({'uart': self.uart.whole()})}\n\n"
            while text := await queue.get():
                yield text
        finally:
            self.clients.discard(queue)
            if not self.clients:
                self.trace.stop()

    def end_events(self) -> None:
        """The cockpit ends: browsers that look have nothing to wait for."""
        for queue in self.clients:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait("")

    # Requests

    async def get_file(self, request: Request) -> Response:
        data, kind = self.files[request.url.path]
        return Response(data, media_type=kind)

    async def get_rules(self, _request: Request) -> Response:
        return JSONResponse(grammar())

    async def get_events(self, _request: Request) -> Response:
        if len(self.clients) >= CLIENTS_MAX:
            return Response("Too many browsers look already.\n", 503, media_type="text/plain")
        return StreamingResponse(self.events(), media_type="text/event-stream")

    async def get_metrics(self, _request: Request) -> Response:
        frame = self.frame
        if time.monotonic() - self.frame_at > FRESH_S:
            try:
                frame = await self.look()
            except EssdError as error:
                return Response(f"{error}\n", 503, media_type="text/plain")
        return Response(metrics_text.text(frame), headers={
            "Content-Type": metrics_text.CONTENT_TYPE})

    async def post_action(self, request: Request) -> Response:
        try:
            body = await read_body(request)
            await asyncio.to_thread(self.actions.do, body)
        except (ValueError, ClientDisconnect) as error:
            return JSONResponse({"error": str(error)}, 400)
        except EssdError as error:
            return JSONResponse({"error": str(error)}, 409)
        return JSONResponse({})

    def app(self) -> Starlette:
        return Starlette(routes=[
            *(Route(path, self.get_file) for path in FILES),
            Route(RULES, self.get_rules), Route("/events", self.get_events),
            Route(METRICS, self.get_metrics), Route("/do", self.post_action, methods=["POST"])])


async def read_body(request: Request) -> dict[str, Any]:
    """The JSON object of a POST; ValueError if it is none."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise ValueError("the request is not JSON")
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > BODY_MAX:
            raise ValueError(f"the request is longer than {BODY_MAX} bytes")
    with contextlib.suppress(RecursionError):
        body = json.loads(data)
        if isinstance(body, dict):
            return body
    raise ValueError("the request is not a JSON object")


class Ending(uvicorn.Server):
    """A server that ends the events first, and so never has to break them off."""

    def __init__(self, config: uvicorn.Config, cockpit: Cockpit) -> None:
        super().__init__(config)
        self.cockpit = cockpit

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.cockpit.end_events()
        await super().shutdown(sockets)


def listening(listen: str, port: int) -> socket.socket:
    try:
        address = ipaddress.ip_address("127.0.0.1" if listen == "localhost" else listen)
    except ValueError:
        raise EssdError(f"--listen {listen}: use an IP address of this machine, such as "
                        "127.0.0.1 or 0.0.0.0") from None
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    found = socket.socket(family)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((str(address), port))
        found.listen(64)        # before the link is printed
    except OSError as error:
        found.close()
        raise EssdError(f"cannot listen on {address} port {port}: {error.strerror}; "
                        "choose another port with --port") from None
    return found


def url_host(listener: socket.socket) -> str:
    """The address and port of the link that is printed."""
    name, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(name)
    if address.is_unspecified:
        return f"localhost:{port}"
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


class Served:
    """A cockpit with its listening socket and its keys."""

    def __init__(self, instance: Instance, listen: str, port: int, has_latency: bool) -> None:
        self.instance = instance
        self.listener = listening(listen, port)
        address, self.port = self.listener.getsockname()[:2]
        self.keys = Keys(self.print_link)
        self.cockpit = Cockpit(instance, has_latency)
        self.guard = Guard(self.cockpit.app(), self.keys, Hosts(address, self.port))
        self.bearer = instance.folder / f"cockpit-{self.port}.token"

    def link(self) -> str:
        return f"http://{url_host(self.listener)}{LOGIN}?token={self.keys.token}"

    def print_link(self) -> None:
        show.line(f"The link has been used.  For one more browser: {self.link()}")

    def write_bearer(self) -> None:
        """Prometheus reads its token from a file that only the user can open."""
        self.bearer.unlink(missing_ok=True)
        with open(os.open(self.bearer, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w",
                  encoding="utf-8") as file:
            file.write(self.keys.bearer)

    async def serve(self) -> None:
        config = uvicorn.Config(self.guard, http=unproven.connections(), ws="none",
                                lifespan="off", log_level="warning", access_log=False,
                                server_header=False, timeout_graceful_shutdown=1,
                                limit_concurrency=PROVEN_MAX + unproven.UNPROVEN_MAX + 1)
        polling = asyncio.create_task(self.cockpit.poll())
        try:
            await Ending(config, self.cockpit).serve(sockets=[self.listener])
        finally:
            polling.cancel()
            self.cockpit.trace.stop()


def run(instance: Instance, listen: str, port: int, has_latency: bool) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    instance.status()           # EssdError if it does not run
    served = Served(instance, listen, port, has_latency)
    served.write_bearer()
    try:
        if not ipaddress.ip_address(served.listener.getsockname()[0]).is_loopback:
            show.line("Other machines can open this cockpit with the link, which goes over "
                      "the network unencrypted.", "yellow")
        show.line(f"Cockpit of {instance.name}: {served.link()}")
        show.line(f"Metrics for Prometheus: http://{url_host(served.listener)}{METRICS}, with "
                  f"the token in {served.bearer}")
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(served.serve())
    finally:
        served.bearer.unlink(missing_ok=True)
        served.listener.close()
