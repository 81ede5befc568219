# SPDX-License-Identifier: BSD-2-Clause
"""The configuration of one instance: its drive, guests and cables.

The command line fills in these dataclasses and writes them to a JSON file,
which the supervisor reads.
"""

import dataclasses
import ipaddress
import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVICE = 4420
DEFAULT_PORTS = ("10.0.0.10/24", "10.0.1.10/24")
PEER_PORT = "10.0.2.10/24"


def host_address(target: str) -> str:
    """The first host address of the target's network that is not the target's."""
    there = ipaddress.ip_interface(target)
    here = there.network.network_address + 1
    if here == there.ip:
        here += 1
    return f"{here}/{there.network.prefixlen}"


@dataclass
class Link:
    """One cable between a network card of the host and a target's port."""

    number: int
    targets: list[str]      # addresses of the far end, ADDR/LEN
    mtu: int = 1500
    host_mtu: int = 0       # MTU of the host's card; 0: the same as `mtu`
    capture: bool = False   # write <instance>/link<number>.pcap

    @property
    def target_address(self) -> str:
        """The far end's first address, without its length."""
        return str(ipaddress.ip_interface(self.targets[0]).ip)

    @property
    def hosts(self) -> list[str]:
        """The host's own ADDR/LEN in each of these networks."""
        return [host_address(target) for target in self.targets]

    def card_mtu(self, host: bool) -> int:
        """The MTU for the network card at one end."""
        return self.host_mtu or self.mtu if host else self.mtu

    def socket(self, folder: Path) -> Path:
        return folder / f"port{self.number}.sock"


@dataclass
class Drive:
    """The emulated drive: its QEMU, its files and its cables."""

    qemu: str
    flash: str
    media: str
    media_format: str
    nqn: str
    links: list[int] = field(default_factory=lambda: [0, 1])
    extra: list[str] = field(default_factory=list)   # more QEMU options
    listens: bool = False   # creates its cables' sockets, else connects to them


@dataclass
class Host:
    """The Linux guest that uses the drive."""

    memory_mib: int = 1024
    cpus: int = 1
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    kernel: list[str] = field(default_factory=list)  # more kernel parameters


@dataclass
class Peer:
    """A guest that runs Linux nvmet, the target that the drive is compared with."""

    nqn: str = "nqn.2014-08.org.nvmexpress:uuid:" \
               "6e766d65-7400-4000-8000-000000000001"
    size: str = "8"         # GiB that discard written data; "256m": MiB that keep it
    memory_mib: int = 1024
    cpus: int = 1
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    links: list[int] = field(default_factory=lambda: [2])
    listens: bool = False   # creates its cables' sockets, else connects to them
    kernel: list[str] = field(default_factory=list)  # more kernel parameters


@dataclass
class Config:
    name: str
    guest: str              # folder of the built guest
    accel: str              # "kvm" or "tcg"
    links: list[Link]
    drive: Drive | None = None
    host: Host | None = None
    peer: Peer | None = None

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> "Config":
        data: dict[str, Any] = json.loads(text)
        data["links"] = [Link(**x) for x in data["links"]]
        for name, kind in (("drive", Drive), ("host", Host), ("peer", Peer)):
            if data[name] is not None:
                data[name] = kind(**data[name])
        return cls(**data)

    def link(self, number: int) -> Link:
        return next(x for x in self.links if x.number == number)
