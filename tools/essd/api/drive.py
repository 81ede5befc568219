# SPDX-License-Identifier: BSD-2-Clause
"""A drive and its ports."""

import functools
import ipaddress
import re
import time
from pathlib import Path
from typing import Any

from ..base.errors import EssdError
from ..drive import mgmt, port, tcp
from ..instance.config import Link
from ..instance.instance import Instance
from .faults import Faults
from .part import Part
from .trace import Trace

READY_S = 60.0
LINK_S = 10.0           # for a link to come up, once the firmware answers


class Port:
    """One port of a drive, with its cable and its link partner."""

    def __init__(self, instance: Instance, number: int, link: Link) -> None:
        self.instance = instance
        self.number = number
        self.link = link

    def __repr__(self) -> str:
        return f"<Port {self.number} of {self.instance.part}>"

    @property
    def addresses(self) -> list[str]:
        """The port's ADDR/LEN when the system was started."""
        return list(self.link.targets)

    @property
    def address(self) -> str:
        """The port's first address, such as "10.0.0.10"."""
        return self.link.target_address

    def unplug(self) -> None:
        """Pull the cable: both ends lose their carrier."""
        port.plug(self.instance, self.number, False)

    def plug(self) -> None:
        """Plug the cable in again."""
        port.plug(self.instance, self.number, True)

    def flap(self, count: int = 1) -> None:
        """Pull and plug the cable `count` times, half a second each; wait for the link."""
        port.flap(self.instance, self.number, count)

    def partner(self, fec: str | None = None, speed: int | None = None,
                present: bool | None = None, fault: bool | None = None,
                ber: float | None = None, seed: int | None = None) -> None:
        """Change the link partner until the system ends (docs/hardware/port.md).

        fec: "none", "fc", "rs" or "auto".  speed: 10 or 25 (Gb/s).  present: whether
        there is a partner at all.  fault: whether it reports a remote fault.  ber: bit
        error ratio, 0 to 0.5.  seed: of the random bit errors.  None leaves a value as
        it is.  EssdError names a value that is out of range.
        """
        port.change(self.instance, self.number,
                    port.Wish(fec, speed, present, fault, ber, seed))

    def state(self) -> dict[str, Any]:
        """What `essd port --json` shows of this port (docs/json.md)."""
        return port.state(self.instance, self.number)

    @property
    def is_plugged(self) -> bool:
        """Whether the cable is plugged in."""
        cables = self.instance.status()["cables"]
        return bool(cables[str(self.link.number)]["plugged"])

    @property
    def is_up(self) -> bool:
        """Whether the drive's own link is up."""
        return bool(port.get(self.instance, self.number, "link-up"))

    def counters(self) -> dict[str, int]:
        """The port's counters by name, such as aFramesReceivedOK."""
        return dict(port.get(self.instance, self.number, "state")["counters"])

    @property
    def capture(self) -> Path | None:
        """The pcap file with the frames of this cable; None without capture=True."""
        if not self.link.capture:
            return None
        return self.instance.folder / f"link{self.link.number}.pcap"


class Drive(Part):
    """An emulated drive."""

    def __init__(self, instance: Instance, name: str) -> None:
        super().__init__(instance, name)
        config = instance.config
        self.nqn = config.drives[name].nqn      # NVMe Qualified Name of its subsystem
        self.ports = [Port(self.instance, number, link)
                      for number, link in config.ports_of(name).items()]

    def port(self, number: int) -> Port:
        """The port with this number; EssdError if no cable is attached to it."""
        for one in self.ports:
            if one.number == number:
                return one
        raise EssdError(f"{self.name} has no cable at port {number}")

    # Power

    def power_cycle(self, timeout_s: float = READY_S) -> None:
        """Cut the power, if it is on, and wait until the drive is ready again."""
        if self.is_on:
            self.power_cut()
        self.power_on()
        self.wait_ready(timeout_s)

    def reset(self, halt: bool = False) -> None:
        """Pulse the reset pin.  With `halt`, the harts stand at the reset vector then."""
        self.instance.ask("reset", part=self.name, halt=halt)

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Wait until the firmware answers, and every port that a host can reach.

        A port whose cable is unplugged, or whose link is not up ten seconds after the
        firmware answers, does not count.  EssdError if it takes longer than `timeout_s`
        seconds.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                self.ask("status", timeout_s=2)
                break
            except EssdError as error:
                if time.monotonic() > deadline or not self.is_on:
                    raise EssdError(f"{self.name} is not ready: {error}") from None
                time.sleep(0.1)
        link_deadline = time.monotonic() + LINK_S
        for one in self.ports:
            host = self.host_near(one)
            while host and one.is_plugged and not one.is_up and \
                    time.monotonic() < link_deadline:
                time.sleep(0.1)
            while host and one.is_up and self.instance.run(
                    f"ping -c 1 -W 1 {one.address}", part=host, check=False).status != 0:
                if time.monotonic() > deadline:
                    raise EssdError(f"{self.name} does not answer on {one.address} "
                                    f"within {timeout_s:.0f} s; see {self.console_path}")

    def host_near(self, one: Port) -> str:
        """A running host that has an address in the port's network, or ""."""
        if not one.addresses or one.link.outside:
            return ""
        network = ipaddress.ip_interface(one.addresses[0]).network
        parts = self.instance.status()["parts"]
        config = self.instance.config
        return next((host for host in config.hosts if parts[host]["ready"]
                     for link in config.ports_of(host).values() for own in link.hosts
                     if ipaddress.ip_interface(own).network == network), "")

    # Looking inside, and disturbing

    @functools.cached_property
    def faults(self) -> Faults:
        """The drive's fault rules."""
        return Faults(self.instance)

    def ask(self, request: str, timeout_s: float = mgmt.ANSWER_S,
            **arguments: Any) -> dict[str, Any]:
        """Send a management request; return its result (docs/management.md).

        A hyphen in an argument's name is written as an underscore.  EssdError if the
        drive refuses, is off, or does not answer within `timeout_s` seconds.
        """
        return mgmt.ask(self.instance, request, timeout_s,
                        **{key.replace("_", "-"): value
                           for key, value in arguments.items()})

    def wait_log(self, pattern: str, timeout_s: float = READY_S,
                 since: int = 0) -> re.Match[str]:
        """Wait until the UART has printed what the regular expression matches.

        `since` is the number of characters of console_log() that do not count.
        EssdError if that takes longer than `timeout_s` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while (found := re.search(pattern, self.console_log()[since:], re.M)) is None:
            if time.monotonic() > deadline:
                raise EssdError(f"{self.name} has not printed {pattern!r} within "
                                f"{timeout_s:.0f} s; see {self.console_path}")
            time.sleep(0.1)
        return found

    def trace(self, events: str = "all") -> Trace:
        """Record events from now on: see Trace.  EssdError if the drive is off."""
        return Trace(self.instance, events)

    def tcp_connections(self) -> list[dict[str, Any]]:
        """The connections of its TCP offload engine, half-open ones and those in
        TIME-WAIT included, with the fields of `essd tcp --json` (docs/json.md)."""
        return tcp.read(self.instance)

    def metrics(self) -> dict[str, int]:
        """Counters and levels by name, all of them numbers.

        "port0.aFramesReceivedOK" and the like count since the drive's power-on;
        "pool.capsules.used" is a level now; "uptime-ms", "controllers" and
        "queue-pairs" come from the request `status`; "reads", "rnic.*" and the
        like from the request `counters`.  EssdError if the drive is off.
        """
        found = {key: value for key, value in self.ask("status").items()
                 if isinstance(value, int)}
        for pool, level in self.ask("pools").items():
            found |= {f"pool.{pool}.{key}": value for key, value in level.items()}
        for key, value in self.ask("counters").items():
            found |= ({f"{key}.{name}": count for name, count in value.items()}
                      if isinstance(value, dict) else {key: value})
        for one in self.ports:
            found |= {f"port{one.number}.{key}": value
                      for key, value in one.counters().items()}
        return found
