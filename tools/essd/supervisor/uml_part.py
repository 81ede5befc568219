# SPDX-License-Identifier: BSD-2-Clause
"""A host that is user-mode Linux: a kernel, and the relay between it and the cables.

The relay is the part's QEMU, with the QMP monitor.  The kernel is started after it, and
when one of the two ends, so does the other.
"""

import asyncio
import contextlib
import os
import re
import signal
import socket
from typing import Any

from ..instance.config import Link, console_log
from ..machine import uml
from ..machine.vm import MGMT_CARD
from .guest_part import HostPart

# Space in each direction of a card's socket, for some hundred frames.
SOCKET_BYTES = 4 << 20
PORT = re.compile(r"port(\d+)")


class UmlPart(HostPart):
    """One host of this kind."""

    kernel: asyncio.subprocess.Process | None = None
    carrier: socket.socket | None = None    # to it, lines "eth0 1" are written

    def links(self) -> dict[int, Link]:
        return self.supervisor.config.ports_of(self.name)

    def open_devices(self) -> dict[int, int]:
        """Make a socket for each card; QEMU's ends are returned, ours are kept."""
        self.ends: dict[int, int] = {}
        theirs = {}
        sockets = [number for number, link in self.links().items() if not link.is_shared]
        for number in (*sockets, MGMT_CARD):
            pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            for end in pair:
                end.setblocking(False)
                for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                    end.setsockopt(socket.SOL_SOCKET, option, SOCKET_BYTES)
            theirs[number], self.ends[number] = (end.detach() for end in pair)
        return theirs

    def command(self, descriptors: dict[int, int]) -> list[str]:
        return uml.relay_command(self.supervisor.config, self.name, self.folder,
                                 descriptors)

    async def start(self, *more: str) -> None:
        folder = await asyncio.to_thread(uml.prepare_folder, self.supervisor.config,
                                         self.name, self.folder)
        try:
            await super().start(*more)
            if self.state == "running":
                await self.start_kernel(str(folder))
        finally:
            for end in self.ends.values():
                os.close(end)
            self.ends = {}

    async def start_kernel(self, folder: str) -> None:
        theirs, self.carrier = socket.socketpair()
        self.carrier.setblocking(False)
        with theirs:
            command = uml.kernel_command(self.supervisor.config, self.name, self.folder,
                                         self.ends, theirs.fileno())
            memory = self.supervisor.config.hosts[self.name].memory_mib
            with open(self.log, "a", encoding="utf-8") as log, \
                    open(console_log(self.folder, self.name), "wb") as console:
                log.write("$ " + " ".join(command) + "\n")
                log.flush()
                self.kernel = await asyncio.create_subprocess_exec(
                    *command, stdin=asyncio.subprocess.DEVNULL, stdout=console,
                    stderr=log, cwd=folder, env=uml.environment(self.folder, memory),
                    preexec_fn=uml.begin, pass_fds=[*self.ends.values(), theirs.fileno()])
        self.tasks.append(asyncio.create_task(self.watch_kernel(self.kernel)))
        self.supervisor.save()
        asyncio.get_running_loop().run_in_executor(
            None, self.supervisor.resident.keep, self.kernel.pid)

    async def watch_kernel(self, kernel: asyncio.subprocess.Process) -> None:
        """End the relay when the kernel has ended; watch() then tells why."""
        await kernel.wait()
        if self.kernel is kernel and self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    def cause(self, process: asyncio.subprocess.Process) -> asyncio.subprocess.Process:
        """Whose end is the cause: usually the kernel's."""
        kernel = self.kernel
        return kernel if kernel is not None and kernel.returncode is not None else process

    async def gone(self) -> None:
        kernel, self.kernel = self.kernel, None
        if self.carrier is not None:
            self.carrier.close()
            self.carrier = None
        if kernel is not None:
            with contextlib.suppress(ProcessLookupError):
                kernel.kill()
            await kernel.wait()
        await super().gone()

    async def execute(self, command: str, arguments: dict[str, Any]) -> object:
        """Send a command to the relay; those that mean the machine go to the kernel, too.

        Of a cable that the kernel itself has, through its memory, the relay knows nothing.
        """
        shared = command == "set_link" and self.is_shared(str(arguments.get("name")))
        answer: object = {} if shared else await super().execute(command, arguments)
        if command == "set_link":
            self.tell_carrier(str(arguments["name"]), bool(arguments["up"]))
        if command in ("stop", "cont") and self.kernel is not None:
            with contextlib.suppress(ProcessLookupError):
                self.kernel.send_signal(signal.SIGSTOP if command == "stop"
                                        else signal.SIGCONT)
        return answer

    def is_shared(self, name: str) -> bool:
        """Whether QMP's name of a card, "port0", means one with shared memory."""
        return any(name == f"port{link.number}" and link.is_shared
                   for link in self.links().values())

    def tell_carrier(self, name: str, is_up: bool) -> None:
        """Give the card at a cable a carrier, or take it away."""
        match = PORT.fullmatch(name)
        if match is None or self.carrier is None:
            return
        for number, link in self.supervisor.config.ports_of(self.name).items():
            if link.number == int(match[1]):
                with contextlib.suppress(OSError):      # It has ended.
                    self.carrier.send(f"eth{number} {int(is_up)}\n".encode())

    def pids(self) -> list[int]:
        return [*super().pids(), *([self.kernel.pid] if self.kernel else [])]

    def status(self) -> dict[str, Any]:
        return {**super().status(), **({"pid": self.kernel.pid} if self.kernel else {})}
