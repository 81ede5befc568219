# SPDX-License-Identifier: BSD-2-Clause
"""The emulated drive as a part of an instance."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from qemu.qmp.error import QMPError

from ..base.errors import EssdError
from ..instance.config import Link, console_log, flash_lock
from ..machine import key_log, outside
from ..machine.drive import (POWER_FAIL, cable_command, drive_command, halt_event,
                             module_options, port_link_event, restart_event)
from .part import Part

POWER_FAIL_S = 30        # real time for a second of virtual time

# The last line of the firmware before a restart that an update asks for.
UPDATE_LINE = "drive: restarting with other firmware"


class DrivePart(Part):
    """One drive: the machine essd of QEMU."""

    kind = "drive"

    def check_start(self) -> None:
        if self.supervisor.config.capture_keys:
            key_log.prepare(Path(self.supervisor.config.capture_keys))

    def command(self, descriptors: dict[int, int]) -> list[str]:
        return [*drive_command(self.supervisor.config, self.folder, self.name, descriptors),
                *module_options(self.supervisor.modules[self.name])]

    def open_devices(self) -> dict[int, int]:
        """Open the devices of cables that lead out of the instance."""
        found = {}
        for port, link in self.supervisor.config.ports_of(self.name).items():
            descriptor = outside.open_device(outside.Outside.of(link.outside))
            if descriptor is not None:
                found[port] = descriptor
        return found

    def inherited(self) -> list[int]:
        """The claim to the drive's files, which ends with the last process that has it."""
        return self.supervisor.inherited

    @property
    def files_lock(self) -> Path | None:
        return flash_lock(self.folder, self.name)

    def port_name(self, port: int, link: Link) -> str:
        return f"port{port}"

    async def after_start(self, loads: bool) -> None:
        supervisor, name = self.supervisor, self.name
        if supervisor.traces[name].subscribers:
            await supervisor.traces[name].connect()
        await supervisor.faults[name].started()
        # A loaded state may hold rules that this supervisor has never seen.
        if supervisor.faults[name].must_renew or loads:
            self.renew_faults_soon()
        if not loads:               # One that loads has no links yet.
            await supervisor.cables.tell_partners(self)
            await supervisor.cables.ask_links(self)
        for port, link in supervisor.config.ports_of(name).items():
            if not supervisor.cables[link.number].plugged:
                await self.plug(port, link.number, False)

    async def after_load(self) -> None:
        await self.supervisor.cables.tell_partners(self)
        await self.supervisor.cables.ask_links(self)
        await self.supervisor.read_modules(self)

    async def on_event(self, event: dict[str, Any]) -> None:
        link = port_link_event(event)
        if link is not None:
            await self.supervisor.cables.on_link(self, *link)
        halted = halt_event(event)
        if halted is not None and not self.is_saving:
            await self.supervisor.on_halt(self, halted, event["timestamp"])
        why = restart_event(event)
        if why:
            self.restarted(why)
        if event.get("event") == "RESET" and self.supervisor.faults[self.name].must_renew:
            self.renew_faults_soon()

    def renew_faults_soon(self) -> None:
        self.tasks.append(asyncio.create_task(self.renew_faults()))

    async def renew_faults(self) -> None:
        """Give the firmware its fault rules again after it has started."""
        try:
            await self.supervisor.faults[self.name].booted()
        except (EssdError, ValueError, OSError) as error:
            self.supervisor.say(
                f"{self.name} did not take its fault rules again: {error}")

    def after_end(self) -> None:
        self.supervisor.messages[self.name].close()

    async def plug(self, port: int, number: int, plugged: bool) -> None:
        if self.qmp is not None:
            with contextlib.suppress(QMPError):
                await self.execute(*cable_command(port, plugged))

    @property
    def has_capacitors(self) -> bool:
        drive = self.supervisor.config.drives[self.name]
        return drive.nand is not None and drive.nand.plp == "on"

    async def fail_power(self) -> None:
        """Make the power of a drive with capacitors fail, and wait until QEMU has ended.

        QEMU ends itself when the drive has saved its write buffer, or when the
        capacitors are empty.  One that is stopped does not answer: it is killed.
        """
        process = self.process
        if process is not None and not self.halted and self.qmp is not None:
            self.state = "off"
            with contextlib.suppress(asyncio.TimeoutError):
                async with asyncio.timeout(POWER_FAIL_S):
                    # QEMU may end before it answers.
                    with contextlib.suppress(QMPError, RuntimeError, EOFError, OSError):
                        await self.execute(*POWER_FAIL)
                    await process.wait()
        await self.kill()

    def says_update(self) -> bool:
        """Whether a host has asked for a restart with other firmware.

        Such a restart is no fault.  After the line, the boot ROM may have begun.
        """
        console = console_log(self.folder, self.name)
        with contextlib.suppress(OSError):
            lines = console.read_text(errors="replace")[-4000:].splitlines()
            last = max((n for n, line in enumerate(lines) if UPDATE_LINE in line),
                       default=None)
            return last is not None and not any(
                "drive: firmware" in line for line in lines[last:])
        return False

    def restarted(self, why: str) -> None:
        """Record a restart that was not requested, which counts as a fault."""
        if why == "watchdog":
            self.bitten = True
            return
        if not self.bitten and self.says_update():
            self.supervisor.say(f"{self.name} restarts with other firmware")
            return
        cause = "watchdog" if self.bitten else why
        words = "" if self.bitten else self.last_words()
        self.bitten = False
        self.restarts.append(f"{cause}: {words}" if words else cause)
        self.supervisor.say(f"{self.name} restarted by itself: {self.restarts[-1]}")
        self.supervisor.tell("restart", part=self.name, cause=self.restarts[-1])
