# SPDX-License-Identifier: BSD-2-Clause
"""The configuration of one instance: its drives, guests, switches and cables.

The command line fills in these dataclasses and writes them to a JSON file,
which the supervisor reads.
"""

import dataclasses
import ipaddress
import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from ..base import persisted
from ..base.errors import EssdError

SERVICE = 4420
# Of an instance's folder and its config.json.  Since 2, each part has a folder.
VERSION = 2
DEFAULT_PORTS = ("10.0.0.10/24", "10.0.1.10/24")
# Kinds of hosts: Debian's kernel in a virtual machine, and user-mode Linux.
STOCK, UML = HOST_KINDS = ("stock", "uml")
# What executes a drive's firmware: an emulated processor, or this machine's own.
RISCV, NATIVE = HARTS = ("riscv", "native")
# Kinds of cables: a socket that carries frames, and memory that both ends share.
STREAM, VHOST_USER = LINK_KINDS = ("stream", "vhost-user")
PEER_PORT = "10.0.2.10/24"


def host_address(target: str) -> str:
    """The first host address of the target's network that is not the target's."""
    there = ipaddress.ip_interface(target)
    here = there.network.network_address + 1
    if here == there.ip:
        here += 1
    return f"{here}/{there.network.prefixlen}"


def part_file(folder: Path, part: str, name: str) -> Path:
    """A file of one part, in the part's own folder in the instance's folder.

    No part's name has a dot, and all files of the instance itself have one, so that no
    name makes two things share a file.
    """
    return folder / part / name


def console_log(folder: Path, part: str) -> Path:
    """What a part has written to its console."""
    return part_file(folder, part, "console.log")


def process_log(folder: Path, part: str) -> Path:
    """The command line of a part's process, and what the process has said itself."""
    return part_file(folder, part, "process.log")


def monitor_socket(folder: Path, part: str) -> Path:
    """The QMP monitor that the supervisor uses."""
    return part_file(folder, part, "qmp")


def user_socket(folder: Path, part: str) -> Path:
    """The QMP monitor that is for the user."""
    return part_file(folder, part, "qmp-user")


def ssh_socket(folder: Path, part: str) -> Path:
    """The ssh connection to a guest that the supervisor keeps open."""
    return part_file(folder, part, "ssh")


def flash_lock(folder: Path, part: str = "drive") -> Path:
    """The file that a command locks while it writes files of a drive that is off, and whose
    instance runs; `essd flash` switches the drive off itself."""
    return part_file(folder, part, "flash.lock")


@dataclass
class End:
    """One end of a cable: a port of a part, or something outside the instance."""

    part: str = ""          # a drive, a host, the peer or a switch; "": outside
    port: int = 0           # number of the part's port or network card
    outside: str = ""       # what is outside, as outside.py writes it

    def __str__(self) -> str:
        return f"{self.part}:{self.port}" if self.part else self.outside


@dataclass
class Link:
    """One cable.  Usually it leads from a host's card to a port of a drive."""

    number: int
    targets: list[str]      # ADDR/LEN of the drive's or the peer's port, if it has one
    mtu: int = 1500
    host_mtu: int = 0       # MTU of the host's card; 0: the same as `mtu`
    capture: bool = False   # write it to pcap()
    # The first end creates the cable's socket, the second one connects to it.
    ends: list[End] = field(default_factory=list)   # default: host and drive
    own: list[str] = field(default_factory=list)    # the host's ADDR/LEN, if chosen
    kind: str = STREAM

    def __post_init__(self) -> None:
        self.ends = [End(**end) if isinstance(end, dict) else end for end in self.ends]
        if not self.ends:
            self.ends = [End("host", self.number), End("drive", self.number)]

    @property
    def target_address(self) -> str:
        """The target's first address, without its length."""
        return str(ipaddress.ip_interface(self.targets[0]).ip)

    @property
    def hosts(self) -> list[str]:
        """The host's own ADDR/LEN; by default one in each of the target's networks."""
        return self.own or [host_address(target) for target in self.targets]

    def card_mtu(self, host: bool) -> int:
        """The MTU for the network card at one end."""
        return self.host_mtu or self.mtu if host else self.mtu

    def socket(self, folder: Path) -> Path:
        return folder / f"port{self.number}.sock"

    def pcap(self, folder: Path) -> Path:
        return folder / f"link{self.number}.pcap"

    @property
    def label(self) -> str:
        """The cable's name in the log."""
        ordinary = [End("host", self.number), End("drive", self.number)]
        return f"cable {self.number}" + ("" if self.ends == ordinary else
                                         f" ({self.ends[0]} - {self.ends[1]})")

    @property
    def outside(self) -> str:
        """What is outside the instance at one end; "" if both ends are inside."""
        return next((end.outside for end in self.ends if end.outside), "")

    @property
    def is_shared(self) -> bool:
        """Whether frames pass through the memory of the host."""
        return self.kind == VHOST_USER

    def far_end(self, part: str) -> End:
        """The end that is not at this part."""
        return self.ends[1] if self.ends[0].part == part else self.ends[0]

    def listens(self, part: str) -> bool:
        """Whether this part creates the cable's socket."""
        return self.ends[0].part == part


@dataclass
class Nand:
    """The NAND array of a drive; what it is was decided when the drive was created."""

    path: str
    size: str               # as asked for, such as "8G"; the array's is this or a bit more
    profile: str
    channels: int
    dies: int               # of a channel
    seed: int
    timing: str = "fast"    # or "realtime": operations take their time
    plp: str = "off"        # "on": when the power fails, the write buffer is saved
    capacity: int = 0       # in bytes, that hosts see; 0: as much as the array holds
    blocks: int = 0         # of a plane; 0: the array is older than this field
    wordlines: int = 0      # of a block; the same
    spare: int = 7          # percent of flash beyond what hosts see and beyond parity


@dataclass
class BootKey:
    """The public key that is fused into a drive's chip when it is created."""

    public: str             # 64 hexadecimal digits
    file: str               # PEM file with the private key, to sign firmware with


@dataclass
class Drive:
    """An emulated drive: its QEMU and its files."""

    qemu: str
    flash: str
    media: str
    media_format: str
    nqn: str
    extra: list[str] = field(default_factory=list)   # more QEMU options
    nand: Nand | None = None
    straps: int = 0         # the strap pins that are high, each as a bit
    boot_key: BootKey | None = None
    devices: list[str] = field(default_factory=list)    # on I2C buses, as i2c_devices.Device
    hart_image: str = ""    # firmware for a native hart; "": the hart is a RISC-V one

    def need_riscv(self, what: str) -> None:
        """EssdError if the hart is native; `what` says what it cannot do, and why."""
        if self.hart_image:
            raise EssdError(f"{what}: start the drive without --hart {NATIVE} "
                            "(docs/hardware/native-hart.md)")

    def __post_init__(self) -> None:
        if isinstance(self.nand, dict):
            self.nand = Nand(**self.nand)
        if isinstance(self.boot_key, dict):
            self.boot_key = BootKey(**self.boot_key)


@dataclass
class Host:
    """A Linux guest that uses drives."""

    memory_mib: int = 1024
    cpus: int = 1
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    kernel: list[str] = field(default_factory=list)  # more kernel parameters
    mac: str = ""           # first five bytes of its cards' MACs; "": the usual ones
    guest: str = ""         # folder of its own built guest; "": Config.guest
    uml: str = ""           # folder of the built user-mode Linux; "": QEMU and stock Linux
    relay: str = ""         # its QEMU that carries frames in bursts; "": the system's


@dataclass
class Peer:
    """A guest that runs Linux nvmet, the target that the drive is compared with."""

    nqn: str = "nqn.2014-08.org.nvmexpress:uuid:" \
               "6e766d65-7400-4000-8000-000000000001"
    size: str = "8"         # GiB that discard written data; "256m": MiB that keep it
    memory_mib: int = 1024
    cpus: int = 1
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    kernel: list[str] = field(default_factory=list)  # more kernel parameters


@dataclass
class Switch:
    """An Ethernet switch: the program essd-switch."""

    program: str
    options: list[str] = field(default_factory=list)    # of the whole switch
    # Further words for each port, such as "vlan=10", by the port's number.
    words: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.words = {int(port): text for port, text in self.words.items()}


@dataclass
class Config:
    name: str
    guest: str              # folder of the built guest
    accel: str              # "kvm" or "tcg"
    links: list[Link]
    drives: dict[str, Drive] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)
    peer: Peer | None = None
    switches: dict[str, Switch] = field(default_factory=dict)
    snapshot: str = ""      # folder of the snapshot to start from; "": all parts boot
    capture_bytes: int = 0  # size at which a capture begins a new file; 0: no limit
    capture_keys: str = ""  # file for the secrets of TLS; "": drives give none away

    def to_json(self) -> str:
        return json.dumps({"version": VERSION, **dataclasses.asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> "Config":
        """Read what to_json() has written; ShapeError if another version of essd wrote it."""
        return persisted.parse(text, cls, VERSION)

    @property
    def drive(self) -> Drive | None:
        """The drive, or the first one of several."""
        return next(iter(self.drives.values()), None)

    @property
    def host(self) -> Host | None:
        """The host, or the first one of several."""
        return next(iter(self.hosts.values()), None)

    def guest_of(self, part: str) -> str:
        """The folder of the built guest that a host or the peer boots."""
        host = self.hosts.get(part)
        return host.guest if host and host.guest else self.guest

    def link(self, number: int) -> Link:
        return next(x for x in self.links if x.number == number)

    def ports_of(self, part: str) -> dict[int, Link]:
        """The part's ports that have a cable, in the order of their numbers."""
        found = {end.port: link for link in self.links for end in link.ends
                 if end.part == part}
        return dict(sorted(found.items()))

    def captures(self, part: str) -> list[Link]:
        """The cables whose capture this part writes: it is the first of their ends
        that runs in the instance."""
        return [link for link in self.links if link.capture and part == next(
            (end.part for end in link.ends if end.part in self.parts()), "")]

    def parts(self) -> list[str]:
        """Names of everything that runs in an instance with this configuration."""
        return [*self.switches, *self.hosts, *self.targets()]

    def targets(self) -> list[str]:
        """Names of the drives and of the peer: what a host can connect to."""
        return [*self.drives, *(["peer"] if self.peer else [])]
