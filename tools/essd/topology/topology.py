# SPDX-License-Identifier: BSD-2-Clause
"""Topologies: drives, hosts, switches and the cables between them.

topology/reader.py reads them from a file, and topology/setup.py starts them.
"""

import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from ..base.errors import EssdError
from ..instance.config import End, RISCV, STOCK, STREAM
from ..machine.i2c_devices import Device

Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DRIVES_MAX = 64
HOSTS_MAX = 8               # of `essd up --hosts`
SWITCH_PORTS_MAX = 64
DRIVE_PORTS = 2
HOST_CARDS_MAX = 16
FIRST_DRIVE = 10            # last number of the first drive's default address


@dataclass(frozen=True)
class Mark:
    """A place in the file; both count from 1."""

    line: int
    column: int

    @classmethod
    def of(cls, node: yaml.Node) -> "Mark":
        return cls(node.start_mark.line + 1, node.start_mark.column + 1)


@dataclass
class Drive:
    name: str
    mark: Mark
    size: str | None = None
    mtu: int | None = None
    config: Path | None = None      # a file with settings
    ports: dict[int, list[Interface]] = field(default_factory=dict)
    nqn: str | None = None          # of its subsystem; None: the drive's own
    nand: str | None = None         # [SIZE][,KEY=VALUE]... of its NAND array
    block: bool = False             # it has a block medium instead
    straps: list[int] = field(default_factory=list)     # the strap pins that are high
    devices: list[Device] = field(default_factory=list)     # on the I2C buses
    boot_key: Path | None = None    # PEM file with the key that a new drive gets
    nvme_tcp: bool | None = None    # NVMe over TCP, beside RDMA; None: as it was
    transports: frozenset[str] | None = None    # of values.TRANSPORTS; None: as it was
    hart: str = RISCV               # or NATIVE


@dataclass
class Host:
    name: str
    mark: Mark
    memory_mib: int = 1024
    cpus: int = 1
    kind: str = STOCK
    guest: Path | None = None       # folder that describes its guest; None: the default
    cards: dict[int, list[Interface]] = field(default_factory=dict)


@dataclass
class Switch:
    name: str
    mark: Mark
    options: list[str] = field(default_factory=list)
    ports: int = 0              # that have a cable


@dataclass
class Cable:
    """A cable; `words` are settings of the switch's port at one of its ends."""

    mark: Mark
    ends: tuple[End, End]
    words: dict[str, str] = field(default_factory=dict)
    capture: bool = False
    kind: str = STREAM          # or VHOST_USER


@dataclass
class Topology:
    name: str                   # of the file, for messages
    drives: dict[str, Drive] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)
    switches: dict[str, Switch] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)   # what is possible, but unwise

    def kind(self, part: str) -> str:
        """What a part is; "" for something outside."""
        for kind, parts in (("drive", self.drives), ("host", self.hosts),
                            ("switch", self.switches)):
            if part in parts:
                return kind
        return ""

    def parts(self) -> list[str]:
        return [*self.hosts, *self.switches, *self.drives]

    def segments(self) -> list[set[tuple[str, int]]]:
        """The Ethernet networks: sets of (part, port) that can send to each other."""
        groups: list[set[tuple[str, int]]] = []
        for cable in self.cables:
            # All ports of a switch are in one network.
            mine = {(end.part, -1 if end.part in self.switches else end.port)
                    for end in cable.ends if end.part}
            for other in [group for group in groups if group & mine]:
                mine |= other
                groups.remove(other)
            groups.append(mine)
        return groups


def vlans(cable: Cable) -> set[int] | None:
    """The VLANs whose frames a cable carries; None: all, or none in particular."""
    text = cable.words.get("vlan", "any")
    if text != "any":
        return {int(text)}
    if cable.words.get("trunk", "all") == "all":
        return None
    found: set[int] = set()
    for word in cable.words["trunk"].split("+"):
        first, _, last = word.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    native = cable.words.get("native", "none")
    return found | ({int(native)} if native != "none" else set())


def way_between(start: str, end: str, neighbours: dict[str, set[str]]) -> list[str]:
    """The shortest way from one switch to another; empty if there is none."""
    ways = {start: [start]}
    waiting = [start]
    while waiting:
        here = waiting.pop(0)
        if here == end:
            return ways[here]
        for there in sorted(neighbours.get(here, set()) - set(ways)):
            ways[there] = [*ways[here], there]
            waiting.append(there)
    return []


def loops(topology: Topology) -> list[tuple[Cable, list[str]]]:
    """The cables that close a loop of switches, each with the switches of its loop."""
    between = [cable for cable in topology.cables
               if all(end.part in topology.switches for end in cable.ends)]
    # Cables of different VLANs do not form a loop together, so each VLAN that a cable
    # names is looked at by itself; 0 stands for those that no cable names.
    named = {vlan for cable in between for vlan in vlans(cable) or ()}
    found: dict[int, tuple[Cable, list[str]]] = {}
    for vlan in sorted({0, *named}):
        neighbours: dict[str, set[str]] = {}
        for n, cable in enumerate(between):
            here = vlans(cable)
            if here is not None and vlan not in here:
                continue
            one, other = (end.part for end in cable.ends)
            way = way_between(one, other, neighbours)
            if way:
                found.setdefault(n, (cable, way))
            else:
                neighbours.setdefault(one, set()).add(other)
                neighbours.setdefault(other, set()).add(one)
    return [found[n] for n in sorted(found)]


def of_drives(count: int, size: str | None, mtu: int | None, cpus: int,
              hosts: int, nand: str | None = None, block: bool = False,
              straps: Sequence[int] = (), devices: Sequence[Device] = (),
              boot_key: Path | None = None, host_kind: str = STOCK, hart: str = RISCV) -> str:
    """The file that `essd up --drives` and `--hosts` stand for: two switches, to which
    each drive and each host is connected."""
    if not 1 <= count <= DRIVES_MAX - (hosts > 0):
        raise EssdError(f"--drives {count}: must be 1 to {DRIVES_MAX - (hosts > 0)}")
    if not 0 <= hosts <= HOSTS_MAX:
        raise EssdError(f"--hosts {hosts}: must be 1 to {HOSTS_MAX}")
    keys = [f"{key}: {value}" for key, value in (
        ("size", size), ("nand", None if nand is None else f'"{nand}"'),
        ("block", "yes" if block else None), ("mtu", mtu),
        ("straps", f'"{",".join(map(str, straps))}"' if straps else None),
        ("devices", json.dumps(" ".join(map(str, devices))) if devices else None),
        ("boot-key", json.dumps(str(boot_key.absolute())) if boot_key else None),
        ("hart", None if hart == RISCV else hart))
            if value is not None]
    last = count - 1
    names = ["host"] if hosts == 1 else [f"host{n}" for n in range(hosts)]
    lines = ["drives:", f"  drive[0-{last}]: {{{', '.join(keys)}}}",
             *(["hosts:"] if names else []),
             *(f"  {name}: {{cpus: {cpus}, kind: {host_kind}}}" for name in names),
             "switches:", "  switch[0-1]: {}", "cables:",
             *(f"  - {name} - switch[0-1]" for name in names),
             f"  - drive[0-{last}]:0 - switch0", f"  - drive[0-{last}]:1 - switch1"]
    return "\n".join(lines) + "\n"
