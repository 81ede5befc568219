# SPDX-License-Identifier: BSD-2-Clause
"""The supervisor's cables: which are plugged, and what their ends are told.

When a drive's port loses its link, the host's card loses its carrier, because a
closed socket alone does not change the guest's carrier.
"""

import contextlib
import re
from typing import TYPE_CHECKING, Any

from qemu.qmp.error import QMPError

from ..instance.config import Config
from ..machine.drive import port_link_query, port_set
from ..machine.vm import cables_connected, network_query
from .part import Part

if TYPE_CHECKING:
    from .supervisor import Supervisor


class Cable:
    """One cable, and the conditions under which the host sees a carrier."""

    def __init__(self) -> None:
        self.plugged = True
        self.connected = False
        self.port_up: bool | None = None    # as the drive reports; None: unknown
        # Link partner properties, which are kept over the drive's power cycles.
        self.partner: dict[str, Any] = {}

    @property
    def carrier(self) -> bool:
        return self.plugged and self.connected and self.port_up is not False


class CableKeeper(dict[int, Cable]):
    """All cables of an instance, by number."""

    def __init__(self, supervisor: "Supervisor") -> None:
        super().__init__((link.number, Cable()) for link in supervisor.config.links)
        self.supervisor = supervisor

    @property
    def config(self) -> Config:
        return self.supervisor.config

    @property
    def parts(self) -> dict[str, Part]:
        return self.supervisor.parts

    async def ask_links(self, part: Part) -> None:
        """Read the link states: a port may have come up before QMP was connected."""
        for port, link in self.config.ports_of(part.name).items():
            with contextlib.suppress(QMPError, ValueError):
                up = await part.execute(*port_link_query(port))
                # An event that arrived in the meantime is more recent.
                if self[link.number].port_up is None:
                    self[link.number].port_up = bool(up)
            await self.follow_port(link.number)

    async def read_connections(self, host: Part) -> None:
        """Read which cables are connected: QEMU sends events to a client only after
        their connection is set up, and now and then none on a loaded machine."""
        with contextlib.suppress(QMPError, ValueError):
            text = await host.execute(*network_query())
            for number, connected in cables_connected(str(text)).items():
                if number in self:
                    self[number].connected = connected

    async def tell_partners(self, part: Part) -> None:
        """Set the link partners' properties in a new process of the drive."""
        for port, link in self.config.ports_of(part.name).items():
            for name, value in self[link.number].partner.items():
                with contextlib.suppress(QMPError):
                    await part.execute(*port_set(port, name, value))

    def ends(self, number: int) -> list[tuple[Part, int]]:
        """The parts at a cable's ends, and the cable's port at each."""
        return [(self.parts[end.part], end.port) for end in self.config.link(number).ends
                if end.part in self.parts]

    async def set_carrier(self, number: int) -> None:
        """Make the hosts' cards agree with the state of their cable."""
        for part, _ in self.ends(number):
            await part.set_carrier(number, self[number].carrier)

    async def tell_ends(self, number: int) -> None:
        """Plug or pull the cable at both ends."""
        for part, port in self.ends(number):
            await part.plug(port, number, self[number].plugged)

    async def plug(self, number: int, plugged: bool) -> None:
        cable = self[number]
        cable.plugged = plugged
        await self.set_carrier(number)
        await self.tell_ends(number)
        self.supervisor.say(f"{self.config.link(number).label} "
                            f"{'plugged' if plugged else 'unplugged'}")
        self.supervisor.tell("cable", port=number, plugged=plugged)

    async def on_stream(self, event: dict[str, Any]) -> None:
        """A host's QEMU has connected or disconnected a cable."""
        match = re.fullmatch(r"cable(\d+)", event["data"]["netdev-id"])
        if match:
            number = int(match[1])
            self[number].connected = event["event"] == "NETDEV_STREAM_CONNECTED"
            await self.set_carrier(number)

    async def on_link(self, drive: Part, port: int, is_up: bool) -> None:
        """A drive's port has gained or lost its link."""
        link = self.config.ports_of(drive.name).get(port)
        if link is None:
            return
        self[link.number].port_up = is_up
        await self.follow_port(link.number)
        where = "" if drive.name == "drive" else f"{drive.name} "
        self.supervisor.say(f"{where}port {port} link {'up' if is_up else 'down'}")
        self.supervisor.tell("link", part=drive.name, port=port, up=is_up)

    async def follow_port(self, number: int) -> None:
        """What is known of the drive's port has changed."""
        for part, _ in self.ends(number):
            if self[number].port_up and not self[number].connected:
                await part.read_cables()
        await self.set_carrier(number)

    async def part_gone(self, part: Part) -> None:
        """A host's or a drive's process has ended."""
        for link in self.config.ports_of(part.name).values():
            part.lose_cable(self[link.number])
            if link.is_shared:      # No event of the host tells it.
                self[link.number].connected = False
                await self.set_carrier(link.number)

    async def read_outside(self) -> None:
        """Ask the parts that know it which of their cables to the outside are connected."""
        for link in self.config.links:
            for part, port in self.ends(link.number) if link.outside else []:
                known = await part.reaches_outside(port)
                if known is not None:
                    self[link.number].connected = known

    def status(self) -> dict[str, dict[str, Any]]:
        """What `essd status --json` says about each cable (docs/json.md)."""
        return {str(n): {"plugged": c.plugged, "carrier": c.carrier,
                         "connected": c.connected, "port_up": c.port_up,
                         "outside": self.config.link(n).outside,
                         "has_host": any(end.part in self.config.hosts
                                         for end in self.config.link(n).ends),
                         "ends": [str(end) for end in self.config.link(n).ends]}
                for n, c in self.items()}

    def number_of(self, request: dict[str, Any]) -> int:
        """The cable at a part's port; without a part, the cable with that number."""
        number = int(request["port"])
        if not request.get("part"):
            if number not in self:
                raise ValueError(f"no port {number}: there are "
                                 f"{', '.join(map(str, self))}")
            return number
        name = self.supervisor.target(request)
        ports = self.config.ports_of(name)
        if number not in ports:
            raise ValueError(f"{name} has no cable at port {number}: its ports with a "
                             f"cable are {', '.join(map(str, ports)) or 'none'}")
        return ports[number].number
