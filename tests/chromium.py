# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium that a test drives over a pipe, by the DevTools protocol."""

import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium-headless-shell", "chromium")
ANSWER_S = 60


def program() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Page:
    """One page of the browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self.to_browser = to_browser
        self.from_browser = from_browser
        self.ids = itertools.count(1)
        self.waiting = b""
        self.session = ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        number = next(self.ids)
        message = {"id": number, "method": method, "params": params,
                   **({"sessionId": self.session} if self.session else {})}
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_S
        while True:
            found = self.read(deadline)
            if found.get("id") == number:
                assert "result" in found, found
                return found["result"]
            self.events.append(found)

    def read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self.waiting:
            ready, _, _ = select.select([self.from_browser], [], [],
                                        max(0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self.from_browser, 1 << 20)
            assert data, "the browser has ended"
            self.waiting += data
        message, _, self.waiting = self.waiting.partition(b"\0")
        return dict(json.loads(message))

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                          awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script: str) -> Any:
        """Wait until an expression is true; return its value."""
        deadline = time.monotonic() + ANSWER_S
        while not (value := self.run(script)):
            assert time.monotonic() < deadline, f"{script} never became true"
            time.sleep(0.1)
        return value

    def complaints(self) -> list[str]:
        """Errors that the page has caused, with violations of its policy."""
        found = [event["params"]["entry"]["text"] for event in self.events
                 if event.get("method") == "Log.entryAdded"
                 and event["params"]["entry"]["level"] == "error"]
        return found + [json.dumps(event["params"]) for event in self.events
                        if event.get("method") == "Runtime.exceptionThrown"]


@contextlib.contextmanager
def page(folder: Path) -> Iterator[Page]:
    """A page of a browser whose files are in `folder`."""
    name = program()
    assert name
    # Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
    out_read, out_write = os.pipe()
    in_read, in_write = os.pipe()
    command = [name, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
               "--disable-dev-shm-usage", f"--user-data-dir={folder}",
               "--remote-debugging-pipe"]
    line = f'exec "$@" 3<&{out_read} 4>&{in_write}'
    process = subprocess.Popen(["bash", "-c", line, "bash", *command],
                               pass_fds=(out_read, in_write), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(out_read)
    os.close(in_write)
    try:
        yield Page(out_write, in_read)
    finally:
        os.close(out_write)
        os.close(in_read)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
