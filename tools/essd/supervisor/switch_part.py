# SPDX-License-Identifier: BSD-2-Clause
"""A switch as a part of an instance: the program essd-switch."""

import asyncio
import contextlib
import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..machine.switch import (SWITCH_ANSWER_MAX, SWITCH_ANSWER_S, SWITCH_LINE_MAX,
                              switch_command, switch_control)
from .part import Part

if TYPE_CHECKING:
    from .supervisor import Supervisor


class SwitchPart(Part):
    """A switch: it has a control socket instead of a QEMU monitor."""

    kind = "switch"
    has_state = False

    def __init__(self, supervisor: "Supervisor", name: str) -> None:
        super().__init__(supervisor, name)
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None
        self.turn = asyncio.Lock()      # replies come in the order of the requests
        self.numbers = itertools.count(1)
        self.is_lost = False    # A request failed; the next one connects again.

    @property
    def has_monitor(self) -> bool:
        return self.writer is not None or self.is_lost

    def command(self, descriptors: dict[int, int]) -> list[str]:
        return switch_command(self.supervisor.config, self.name, self.folder)

    async def connect_qmp(self) -> None:
        """Connect to the control socket: when it is there, every port listens."""
        path = switch_control(self.folder, self.name)
        process = self.process
        while process is not None and process.returncode is None:
            with contextlib.suppress(OSError):
                self.reader, self.writer = await asyncio.open_unix_connection(
                    str(path), limit=SWITCH_ANSWER_MAX)
                return
            await asyncio.sleep(0.02)

    async def ask(self, line: str) -> object:
        """Send one request to the switch; ValueError if it refuses."""
        if self.writer is None and not self.is_lost:
            raise ValueError(f"{self.name} is not running")
        if "\n" in line or len(line) > SWITCH_LINE_MAX:
            raise ValueError(f"a request to a switch is one line of at most "
                             f"{SWITCH_LINE_MAX} characters")
        async with self.turn:
            reply = await self.exchange(line)
        if "error" in reply:
            raise ValueError(f"{self.name}: {reply['error']}")
        return reply["return"]

    async def exchange(self, line: str) -> dict[str, Any]:
        """Send one line and read its answer; ValueError if the answer is not to be had.

        An answer that was not read whole would be taken for that of the next request.  So
        the connection ends then, and the next request makes a new one.
        """
        number = next(self.numbers)
        try:
            async with asyncio.timeout(SWITCH_ANSWER_S):
                if self.is_lost:
                    self.is_lost = False
                    await self.connect_qmp()
                if self.reader is None or self.writer is None:
                    raise ValueError("the switch has ended")
                self.writer.write(f"#{number} {line}\n".encode())
                answer = await self.reader.readline()
            reply = dict(json.loads(answer)) if answer else {}
            if reply.get("id") != number:
                raise ValueError("this is no answer to the request" if answer else
                                 "the switch has ended the connection")
        except BaseException as error:
            self.disconnect()
            self.is_lost = True
            if isinstance(error, (OSError, ValueError, TimeoutError)):
                why = str(error) or f"no answer within {SWITCH_ANSWER_S:.0f} s"
                raise ValueError(f"{self.name}: {line or 'an empty request'}: {why}") from None
            raise
        return reply

    def keep_captures(self) -> None:
        """A switch keeps its captures itself."""

    def limit_captures(self) -> None:
        """A switch limits them itself, too."""

    @property
    def console(self) -> Path:
        return self.log

    async def after_start(self, loads: bool) -> None:
        for port, link in self.supervisor.config.ports_of(self.name).items():
            if not self.supervisor.cables[link.number].plugged:
                await self.plug(port, link.number, False)

    async def plug(self, port: int, number: int, plugged: bool) -> None:
        if self.has_monitor:
            with contextlib.suppress(ValueError, OSError):
                await self.ask(f"set port={port} link={'up' if plugged else 'down'}")

    async def reaches_outside(self, port: int) -> bool | None:
        reply: object = None
        with contextlib.suppress(ValueError, OSError):
            reply = await self.ask(f"show port={port}")
        return isinstance(reply, dict) and bool(reply.get("connected"))

    def disconnect(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.reader = self.writer = None

    async def gone(self) -> None:
        self.disconnect()
        self.is_lost = False
        await super().gone()
