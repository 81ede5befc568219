# SPDX-License-Identifier: BSD-2-Clause
"""The supervisor's connections to the drive, with a fake drive that serves one client."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from essd.supervisor.channel import Messages, Refused, Subscriber, Trace, request_line
from essd.supervisor.control import Control


@asynccontextmanager
async def one_client_server(path: Path, replies: bool) -> AsyncIterator[list[bytes]]:
    """Serve one client at a time, as QEMU does; return what each client sent."""
    turn = asyncio.Lock()
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = len(seen)
        seen.append(b"")
        async with turn:
            while data := await (reader.readline() if replies else reader.read(4)):
                seen[client] += data
                if replies:
                    number = json.loads(data)["id"]
                    writer.write(json.dumps({"id": number, "result": {}}).encode() + b"\n")
            writer.close()

    async with await asyncio.start_unix_server(serve, path):
        yield seen


def test_requests_that_come_at_once_share_one_connection(tmp_path: Path) -> None:
    async def ask_all() -> list[Any]:
        path = tmp_path / "mgmt.sock"
        async with one_client_server(path, replies=True):
            messages = Messages(path)
            found = await asyncio.gather(
                *(messages.ask("status", {}, 2.0) for _ in range(20)),
                return_exceptions=True)
            messages.close()
            return found

    assert asyncio.run(ask_all()) == [{}] * 20


def test_tracers_that_start_at_once_share_one_connection(tmp_path: Path) -> None:
    async def start_all() -> list[bytes]:
        path = tmp_path / "trace.sock"
        async with one_client_server(path, replies=False) as seen:
            tracer = Trace(path)
            tracer.subscribers = [Subscriber({"trace"}, 1 << i) for i in range(4)]
            assert all(await asyncio.gather(*(tracer.connect() for _ in range(4))))
            await asyncio.sleep(0.05)
            assert tracer.writer is not None
            tracer.writer.close()
            return seen

    assert asyncio.run(start_all()) == [b"\x0f\0\0\0"]


@pytest.mark.parametrize("answers", [
    [{}, {}], [ValueError("off"), {}], [{}, Refused("busy", "busy")]])
def test_a_trace_ends_after_the_firmware_has_ended_a_turn(answers: list[Any]) -> None:
    """The events of commands that the host has acknowledged by then are in the trace."""
    happened: list[str] = []

    class Firmware:
        async def ask(self, request: str, _arguments: dict[str, Any], _timeout_s: float,
                      ) -> dict[str, Any]:
            happened.append(request)
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return dict(answer)

    class Channel:
        def __init__(self) -> None:
            self.subscribers: list[Subscriber] = []

        async def connect(self) -> bool:
            return True

        async def remove(self, subscriber: Subscriber) -> None:
            assert subscriber.mask == 1
            happened.append("removed")

    async def run() -> None:
        control = Control(SimpleNamespace(                          # type: ignore[arg-type]
            messages={"drive": Firmware()}, traces={"drive": Channel()},
            running_drive=lambda _request: SimpleNamespace(name="drive")))
        reader = asyncio.StreamReader()
        reader.feed_data(b"\n")
        writer = SimpleNamespace(write=lambda _data: None, drain=lambda: asyncio.sleep(0))
        await control.subscribe({"events": ["trace"], "mask": 1}, reader,
                                writer)                             # type: ignore[arg-type]

    asked = 1 if isinstance(answers[0], Exception) else 2
    asyncio.run(run())
    assert happened == ["status"] * asked + ["removed"]


@pytest.mark.parametrize(("arguments", "text"), [
    ({"key": "x" * 1100}, "use at most 1024"),
    ({"key": "na\u00efve"}, "printable ASCII"),
    ({"na\u00efve": "key"}, "printable ASCII"),
    ({"key": "two\nlines"}, "printable ASCII"),
    ({"key": {"nested": 1}}, "an argument is a string"),
    ({"key": [1]}, "an argument is a string"),
    ({"key": -1}, "an argument is a string"),
    ({"key": 1.5}, "an argument is a string"),
    ({"key": 1 << 64}, "an argument is a string"),
    ({"id": 7}, "cannot be named"),
    ([1], "not a JSON object"),
])
def test_a_request_that_the_drive_could_not_answer_is_refused_at_once(
        arguments: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        request_line(1, "config-set", arguments)


def test_a_request_may_have_every_flat_value() -> None:
    arguments = {"a": 'x"\\u', "b": (1 << 64) - 1, "c": True, "d": None}
    line = request_line(5, "config-set", arguments)
    assert json.loads(line) == {"v": 1, "id": 5, "request": "config-set", **arguments}
    assert line.isascii() and line.count(b"\n") == 1
