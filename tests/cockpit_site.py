# SPDX-License-Identifier: BSD-2-Clause
"""A cockpit in a process of its own, and a browser's requests to it."""

import contextlib
import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from essd.base import paths

EVENT_S = 60


@dataclass
class Site:
    """A cockpit that runs in a process of its own."""

    process: subprocess.Popen[str]
    link: str
    bearer_file: str
    cookie: str = ""
    open_streams: list[http.client.HTTPConnection] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(re.findall(r":(\d+)/", self.link)[0])

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: Any = None, cookie: bool = True,
            **headers: str) -> http.client.HTTPResponse:
        """Send a request; headers are named with _ for -, and "" leaves one out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        self.open_streams.append(connection)
        sent = {"Host": self.host, **({"Cookie": self.cookie} if cookie else {}),
                **({"Origin": f"http://{self.host}", "Content-Type": "application/json"}
                   if method == "POST" else {}),
                **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection.putrequest(method, path, skip_host=True)
        data = b"" if body is None else json.dumps(body).encode()
        for name, value in {**sent, "Content-Length": str(len(data))}.items():
            if value:
                connection.putheader(name, value)
        connection.endheaders(data)
        return connection.getresponse()

    def do(self, **body: Any) -> tuple[int, Any]:
        reply = self.ask("POST", "/do", body)
        return reply.status, json.loads(reply.read())

    def log_in(self) -> None:
        reply = self.ask("GET", self.link.partition(self.host)[2], cookie=False)
        assert reply.status == 303, reply.read()
        self.cookie = (reply.getheader("Set-Cookie") or "").partition(";")[0]

    def event(self, wanted: str = "frame",
              holds: Callable[[dict[str, Any]], Any] = lambda _event: True) -> dict[str, Any]:
        """The first event that has this member and for which `holds` is true."""
        reply = self.ask("GET", "/events")
        assert reply.status == 200
        deadline = time.monotonic() + EVENT_S
        while time.monotonic() < deadline:
            line = reply.readline()
            if line.startswith(b"data: "):
                found = json.loads(line.removeprefix(b"data: "))
                if wanted in found and holds(found):
                    return dict(found)
        raise AssertionError(f"no such event with {wanted} came within {EVENT_S} s")

    def close(self) -> None:
        for connection in self.open_streams:
            connection.close()
        self.process.terminate()
        self.process.wait(20)


def start(name: str, *words: str) -> Site:
    """Start the cockpit of an instance; return when it has printed its link."""
    process = subprocess.Popen([sys.executable, "-m", "essd", "cockpit", "--name", name, *words],
                               cwd=paths.TOP / "tools", text=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    link = metrics = ""
    while not metrics:
        line = process.stdout.readline()
        assert line, "the cockpit did not start"
        link = line.split()[-1] if line.startswith("Cockpit of") else link
        metrics = line if line.startswith("Metrics for") else ""
    return Site(process, link, metrics.split()[-1])


@contextlib.contextmanager
def cockpit(name: str, *words: str) -> Iterator[Site]:
    """A cockpit during the context; nobody has logged in yet."""
    site = start(name, *words)
    try:
        yield site
    finally:
        site.close()
