# SPDX-License-Identifier: BSD-2-Clause
"""Linux guests as parts of an instance: hosts, and the peer that is compared with the drive."""

import asyncio
import contextlib
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qemu.qmp.error import QMPError

from ..build.guest_build import Guest
from ..instance.config import ssh_socket
from ..instance.ssh import ssh_options
from ..machine.drive import cable_command
from ..machine.vm import guest_command
from .part import Part, die_with_parent

if TYPE_CHECKING:
    from .cable_keeper import Cable


class GuestPart(Part):
    """A Linux guest, to which the supervisor keeps one ssh connection open."""

    def command(self, descriptors: dict[int, int]) -> list[str]:
        return guest_command(self.supervisor.config, self.name, self.folder)

    async def prepare_cables(self) -> None:
        for link in self.supervisor.config.ports_of(self.name).values():
            if link.listens(self.name):
                link.socket(self.folder).unlink(missing_ok=True)
            else:
                await self.socket_there(link.socket(self.folder))

    async def socket_there(self, path: Path) -> None:
        """Wait for a listening socket: QEMU 7.2 tries to connect only once."""
        for _ in range(200):
            if path.exists():
                return
            await asyncio.sleep(0.05)

    async def after_start(self, loads: bool) -> None:
        self.tasks.append(asyncio.create_task(self.follow()))

    async def follow(self) -> None:
        """Wait until the guest is up, then keep one ssh connection open."""
        console = self.console
        process = self.process
        while self.process is process and process is not None and not self.is_resumed:
            with contextlib.suppress(OSError):
                if "essd-guest: ready" in console.read_text(errors="replace"):
                    break
            await asyncio.sleep(0.1)
        reply = await self.execute("human-monitor-command",
                                   {"command-line": "info usernet"})
        match = re.search(r"TCP\[HOST_FORWARD\]\s+\d+\s+\S+\s+(\d+)", str(reply))
        if match:
            self.ssh_port = int(match[1])
        control = ssh_socket(self.folder, self.name)
        guest = Guest(Path(self.supervisor.config.guest_of(self.name)))
        while self.process is process:
            control.unlink(missing_ok=True)
            with open(self.folder / "ssh.log", "a", encoding="utf-8") as log:
                master = await asyncio.create_subprocess_exec(
                    "ssh", *ssh_options(guest, control),
                    # No ServerAliveInterval: a halted guest answers nobody, for
                    # as long as somebody thinks at a breakpoint.
                    "-M", "-N", "-o", "ConnectTimeout=30", "-p", str(self.ssh_port),
                    "root@127.0.0.1", stdin=asyncio.subprocess.DEVNULL,
                    stdout=log, stderr=log, preexec_fn=die_with_parent)
            try:
                while master.returncode is None and not control.exists():
                    await asyncio.sleep(0.05)
                if master.returncode is None:
                    self.ready = True
                    self.supervisor.say(f"{self.name} ready after "
                                        f"{time.time() - self.started:.1f} s")
                    self.supervisor.save()
                await master.wait()
            finally:
                self.ready = False
                with contextlib.suppress(ProcessLookupError):
                    master.kill()
            await asyncio.sleep(0.3)


class HostPart(GuestPart):
    """A host.  Its QEMU knows which of its cables are connected."""

    kind = "host"

    async def after_start(self, loads: bool) -> None:
        await super().after_start(loads)
        await self.read_cables()
        for link in self.supervisor.config.ports_of(self.name).values():
            await self.supervisor.cables.set_carrier(link.number)

    async def on_event(self, event: dict[str, Any]) -> None:
        if str(event.get("event")).startswith("NETDEV_STREAM_"):
            await self.supervisor.cables.on_stream(event)

    def lose_cable(self, cable: "Cable") -> None:
        cable.connected = False

    async def read_cables(self) -> None:
        await self.supervisor.cables.read_connections(self)
        for link in self.supervisor.config.ports_of(self.name).values():
            if link.is_shared:      # The drive's port tells the rest by its link.
                drive = self.supervisor.parts[link.far_end(self.name).part]
                self.supervisor.cables[link.number].connected = drive.state == "running"

    async def set_carrier(self, number: int, is_up: bool) -> None:
        if self.qmp is not None:
            with contextlib.suppress(QMPError):
                await self.execute("set_link", {"name": f"port{number}", "up": is_up})


class PeerPart(GuestPart):
    """The guest with Linux nvmet, the target that the drive is compared with."""

    kind = "peer"

    async def after_start(self, loads: bool) -> None:
        await super().after_start(loads)
        for port, link in self.supervisor.config.ports_of(self.name).items():
            if not self.supervisor.cables[link.number].plugged:
                await self.plug(port, link.number, False)

    async def plug(self, port: int, number: int, plugged: bool) -> None:
        if self.qmp is not None:
            with contextlib.suppress(QMPError):
                await self.execute(*cable_command(number, plugged))
