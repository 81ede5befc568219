# SPDX-License-Identifier: BSD-2-Clause
"""The configuration block of a drive's SPI flash: the settings that the owner may change.

docs/hardware/flash.md describes the format.  The fields, ranges and defaults are read from
firmware/settings/settings.toml.
"""

import ipaddress
import struct
import zlib
from dataclasses import dataclass, replace

from ..base.errors import EssdError
from .schema import schema

CONFIG_MAGIC = b"ESSD-CFG"
CONFIG_HEADER = "<8sHHI4x"
CONFIG_PORT = schema().parts["port"].format
SETTINGS = schema().settings
DEFAULT_MTU = int(SETTINGS["port.N.mtu"].default)
DEFAULT_FEC = SETTINGS["port.N.fec"].default
DEFAULT_SPEED = int(SETTINGS["port.N.speed"].default)
FECS = SETTINGS["port.N.fec"].by_number
LLDP = SETTINGS["port.N.lldp"].by_number
LAGS = SETTINGS["lag.mode"].by_number
PROFILES = SETTINGS["nvme.profile"].by_number
LISTED = SETTINGS["discovery.rdma"].by_number
TLS = SETTINGS["nvme.tls"].by_number
SPEEDS = SETTINGS["port.N.speed"].numbers
EXTRA_MAX = schema().groups["address"].count


class FlashError(EssdError):
    """A flash image cannot be created or read; the text says why."""


def packed_text(value: str, size: int, what: str) -> bytes:
    if not value or not value.isascii() or not value.isprintable():
        raise FlashError(f"{what} {value!r} is not printable ASCII")
    if len(value) > size:
        raise FlashError(f"{what} {value!r} is longer than {size} characters")
    return value.encode()


def unpacked_text(data: bytes) -> str:
    return data.rstrip(b"\0").decode("ascii")


def check_range(key: str, what: str, value: int, least: int | None = None) -> None:
    """Refuse a number outside the range of `key`.

    `least` replaces the minimum, where 0 stands for the default.
    """
    setting = SETTINGS[key]
    least = setting.min if least is None else least
    if not least <= value <= setting.max:
        raise FlashError(f"{what} {value} is outside {least} to {setting.max}")


@dataclass(frozen=True)
class Port:
    """One port's settings."""

    ipv4: ipaddress.IPv4Interface | None = None
    ipv6: ipaddress.IPv6Interface | None = None
    ipv4_gateway: ipaddress.IPv4Address = ipaddress.IPv4Address(0)
    ipv6_gateway: ipaddress.IPv6Address = ipaddress.IPv6Address(0)
    mtu: int = DEFAULT_MTU
    fec: str = DEFAULT_FEC
    speed: int = DEFAULT_SPEED          # Gb/s
    vlan: int = 0                       # VLAN of the addresses; 0: untagged
    priority: int = 0                   # 802.1p priority of control traffic
    slaac: bool = False                 # form IPv6 addresses from router prefixes
    probe: bool = False                 # probe addresses for conflicts before use

    @classmethod
    def of(cls, *addresses: str, mtu: int = DEFAULT_MTU, fec: str = DEFAULT_FEC,
           speed: int = DEFAULT_SPEED) -> "Port":
        """Port settings with at most one IPv4 and one IPv6 address (ADDR/LEN)."""
        port = cls(mtu=mtu, fec=fec, speed=speed)
        for text in addresses:
            try:
                address = ipaddress.ip_interface(text)
            except ValueError as error:
                raise FlashError(f"{text!r} is not an address of the form ADDR/LEN"
                                 ) from error
            if isinstance(address, ipaddress.IPv4Interface):
                port = replace(port, ipv4=address)
            else:
                port = replace(port, ipv6=address)
        return port

    def pack(self) -> bytes:
        check_range("port.N.mtu", "MTU", self.mtu)
        if self.fec not in FECS:
            raise FlashError(f"FEC {self.fec!r} is not one of {', '.join(FECS)}")
        if self.speed not in SPEEDS:
            raise FlashError(f"speed {self.speed} is not one of "
                             f"{', '.join(map(str, SPEEDS))} Gb/s")
        check_range("port.N.vlan", "VLAN", self.vlan)
        check_range("port.N.priority", "priority", self.priority)
        flags = ((1 if self.ipv4 else 0) | (2 if self.ipv6 else 0) |
                 (4 if self.slaac else 0) | (8 if self.probe else 0))
        return struct.pack(
            CONFIG_PORT, flags, self.speed, FECS.index(self.fec), self.mtu,
            self.ipv4.network.prefixlen if self.ipv4 else 0,
            self.ipv6.network.prefixlen if self.ipv6 else 0,
            self.ipv4.packed if self.ipv4 else bytes(4), self.ipv4_gateway.packed,
            self.ipv6.packed if self.ipv6 else bytes(16), self.ipv6_gateway.packed,
            self.vlan, self.priority)

    @classmethod
    def unpack(cls, data: bytes) -> "Port":
        (flags, speed, fec, mtu, prefix4, prefix6, ipv4, gateway4, ipv6,
         gateway6, vlan, priority) = struct.unpack(CONFIG_PORT, data)
        return cls(
            ipaddress.IPv4Interface((ipv4, prefix4)) if flags & 1 else None,
            ipaddress.IPv6Interface((ipv6, prefix6)) if flags & 2 else None,
            ipaddress.IPv4Address(gateway4), ipaddress.IPv6Address(gateway6),
            mtu, FECS[fec], speed, vlan, priority, bool(flags & 4), bool(flags & 8))


CONFIG_SERVICES = schema().parts["services"].format


@dataclass(frozen=True)
class Services:
    """Settings of the network services other than NVMe-oF: DHCP, LLDP, SNTP."""

    dhcp: tuple[bool, bool] = (False, False)
    lldp: tuple[str, str] = ("both", "both")
    lldp_hold: int = 0                  # TTL in intervals; 0: the default, 4
    lldp_interval: int = 0              # seconds; 0: the default, 30
    sntp_server: str = ""
    sntp_poll: int = 0                  # seconds; 0: the default, 1024
    name: str = ""

    def pack(self) -> bytes:
        check_range("lldp.hold", "LLDP hold", self.lldp_hold, 0)
        check_range("lldp.interval", "LLDP interval", self.lldp_interval, 0)
        check_range("sntp.poll", "SNTP poll interval", self.sntp_poll, 0)
        for lldp in self.lldp:
            if lldp not in LLDP:
                raise FlashError(f"LLDP {lldp!r} is not one of {', '.join(LLDP)}")
        if " " in self.name:
            raise FlashError(f"the name {self.name!r} contains a space")
        return struct.pack(
            CONFIG_SERVICES, self.dhcp[0] | self.dhcp[1] << 1,
            *(LLDP.index(x) for x in self.lldp), self.lldp_hold,
            self.lldp_interval, self.sntp_poll, _gid(self.sntp_server),
            packed_text(self.name, 32, "name") if self.name else b"")

    @classmethod
    def unpack(cls, data: bytes) -> "Services":
        (dhcp, lldp0, lldp1, hold, interval, poll, server,
         name) = struct.unpack(CONFIG_SERVICES, data)
        return cls((bool(dhcp & 1), bool(dhcp & 2)), (LLDP[lldp0], LLDP[lldp1]),
                   hold, interval, _ungid(server), poll, unpacked_text(name))


CONFIG_ADDRESS = schema().parts["address"].format
CONFIG_NETWORK = schema().parts["network"].format


@dataclass(frozen=True)
class Address:
    """An additional address of the drive, besides the two of each port."""

    port: int
    address: ipaddress.IPv4Interface | ipaddress.IPv6Interface
    vlan: int = 0                       # 0: untagged

    def pack(self) -> bytes:
        if self.port not in (0, 1):
            raise FlashError(f"port {self.port} is neither 0 nor 1")
        check_range("address.N.vlan", "VLAN", self.vlan)
        return struct.pack(CONFIG_ADDRESS, self.port + 1,
                           self.address.network.prefixlen, self.vlan,
                           _gid(str(self.address.ip)))

    @classmethod
    def unpack(cls, data: bytes) -> "Address | None":
        port, prefix, vlan, ip = struct.unpack(CONFIG_ADDRESS, data)
        if port == 0:
            return None
        return cls(port - 1, ipaddress.ip_interface(f"{_ungid(ip)}/{prefix}"), vlan)


@dataclass(frozen=True)
class Network:
    """Settings of link aggregation, additional addresses and RoCE."""

    extra: tuple[Address | None, ...] = ()      # None: that entry is unused
    lag: str = "off"
    lacp_fast: bool = False
    lag_primary: int = 0
    lag_revert: bool = False
    roce_v1: bool = False
    dcqcn: bool = True                  # a received CNP reduces the send rate
    cnp: bool = True                    # a CNP is sent for each ECN mark received
    pfc: int = 0xff                     # mask of priorities with PFC enabled
    echo: bool = False                  # enables the diagnostic echo service
    dhcp_fast: bool = False
    ns_count: int = 0                   # namespaces of a drive without a table; 0: one
    ns_size: int = 0                    # MiB of each; 0: equal shares
    ns_4k: bool = False                 # blocks of 4096 bytes instead of 512
    profile: str = "newest"             # level of NVM Express
    mdns: bool = False                  # advertises the discovery service
    tcp_echo: bool = False              # echo and discard over TCP
    nvme_tcp: bool = False              # NVMe over TCP
    nvme_iwarp: bool = False            # NVMe over iWARP
    iwarp_crc: bool = True              # iWARP has a CRC
    listed: str = "all"                 # RDMA protocols that discovery lists
    tls: str = "off"                    # TLS of NVMe over TCP

    def pack(self) -> bytes:
        if len(self.extra) > EXTRA_MAX:
            raise FlashError(f"{len(self.extra)} additional addresses: a drive has at "
                             f"most {EXTRA_MAX} besides two for each port, eight in all")
        if self.lag not in LAGS:
            raise FlashError(f"LAG {self.lag!r} is not one of {', '.join(LAGS)}")
        if self.lag_primary not in (0, 1):
            raise FlashError(f"port {self.lag_primary} is neither 0 nor 1")
        if not 0 <= self.pfc <= 0xff:
            raise FlashError(f"the PFC priorities {self.pfc} are not a mask of 8 bits")
        return struct.pack(
            CONFIG_NETWORK, b"".join(x.pack() if x else bytes(20) for x in self.extra),
            LAGS.index(self.lag),
            self.lacp_fast | self.lag_primary << 1 | self.lag_revert << 2,
            self.roce_v1 | self.echo << 1 | self.dhcp_fast << 2 | self.mdns << 3
            | self.tcp_echo << 4 | self.nvme_tcp << 5 | self.nvme_iwarp << 6,
            (not self.dcqcn) | (not self.cnp) << 1 | (not self.iwarp_crc) << 2,
            self.pfc ^ 0xff, self.ns_count, self.ns_4k, self.ns_size,
            PROFILES.index(self.profile), LISTED.index(self.listed),
            TLS.index(self.tls))

    @classmethod
    def unpack(cls, data: bytes) -> "Network":
        (extra, lag, flags, on, off, ignored, count, block, size, profile,
         listed, tls) = struct.unpack(CONFIG_NETWORK, data)
        addresses = [Address.unpack(extra[n:n + 20]) for n in range(0, 80, 20)]
        while addresses and addresses[-1] is None:
            addresses.pop()
        return cls(tuple(addresses), LAGS[lag], bool(flags & 1),
                   flags >> 1 & 1, bool(flags & 4), bool(on & 1), not off & 1,
                   not off & 2, ignored ^ 0xff, bool(on & 2), bool(on & 4),
                   count, size, bool(block & 1), PROFILES[profile], bool(on & 8),
                   bool(on & 16), bool(on & 32), bool(on & 64), not off & 4,
                   LISTED[listed], TLS[tls])


CONFIG_AOE = schema().parts["aoe"].format
NSIDS, NSID_RUNS = 128, 6       # of a list of namespaces


def nsid_runs(nsids: frozenset[int]) -> list[tuple[int, int]]:
    """The first and the last NSID of each run of namespaces."""
    return [(first, next(n for n in range(first, NSIDS + 1) if n + 1 not in nsids))
            for first in sorted(nsids) if first - 1 not in nsids]


@dataclass(frozen=True)
class Aoe:
    """Settings of ATA over Ethernet."""

    exports: frozenset[int] = frozenset()       # NSIDs; empty: it is off
    shelf: int = 0                              # 0: one of the drive's own

    def pack(self) -> bytes:
        check_range("aoe.shelf", "the shelf", self.shelf)
        if not all(1 <= nsid <= NSIDS for nsid in self.exports):
            raise FlashError(f"exported NSIDs are from 1 to {NSIDS}")
        if len(nsid_runs(self.exports)) > NSID_RUNS:
            raise FlashError(f"the exported namespaces are more than {NSID_RUNS} ranges")
        bits = sum(1 << nsid - 1 for nsid in self.exports)
        return struct.pack(CONFIG_AOE, bits.to_bytes(NSIDS // 8, "little"), self.shelf)

    @classmethod
    def unpack(cls, data: bytes) -> "Aoe":
        exports, shelf = struct.unpack(CONFIG_AOE, data)
        bits = int.from_bytes(exports, "little")
        return cls(frozenset(n + 1 for n in range(NSIDS) if bits >> n & 1), shelf)


def _gid(text: str) -> bytes:
    """An address as 16 bytes, IPv4 mapped into IPv6; zeroes for an empty text."""
    if not text:
        return bytes(16)
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise FlashError(f"{text!r} is not an IP address") from error
    prefix = bytes(10) + b"\xff\xff" if address.version == 4 else b""
    return prefix + address.packed


def _ungid(data: bytes) -> str:
    address = ipaddress.IPv6Address(data)
    return str(address.ipv4_mapped or address) if any(data) else ""


@dataclass(frozen=True)
class Config:
    """The configuration block: the settings that the owner may change."""

    ports: tuple[Port, Port] = (Port(), Port())
    sequence: int = 1
    services: Services = Services()
    network: Network = Network()
    aoe: Aoe = Aoe()

    def says_the_same(self, other: "Config") -> bool:
        return replace(self, sequence=other.sequence) == other

    def body(self) -> bytes:
        """The block's content after its header, which NVMe feature D1h holds too."""
        return b"".join(port.pack() for port in self.ports) + \
            self.services.pack() + self.network.pack() + self.aoe.pack()

    @classmethod
    def of_body(cls, body: bytes, sequence: int = 1) -> "Config":
        """Parse a body that holds at least both ports; the rest gets defaults."""
        services = Services.unpack(body[128:192]) if len(body) >= 192 else Services()
        network = Network.unpack(body[192:288]) if len(body) >= 288 else Network()
        aoe = Aoe.unpack(body[288:320]) if len(body) >= 320 else Aoe()
        return cls((Port.unpack(body[:64]), Port.unpack(body[64:128])), sequence,
                   services, network, aoe)

    def pack(self) -> bytes:
        body = self.body()
        header = struct.pack(CONFIG_HEADER, CONFIG_MAGIC, 1, len(body), self.sequence)
        return header + struct.pack("<I", zlib.crc32(body, zlib.crc32(header))) + body

    @classmethod
    def unpack(cls, data: bytes) -> "Config | None":
        size = struct.calcsize(CONFIG_HEADER)
        magic, version, length, sequence = struct.unpack(CONFIG_HEADER, data[:size])
        body = data[size + 4:size + 4 + length]
        crc = zlib.crc32(body, zlib.crc32(data[:size]))
        if magic != CONFIG_MAGIC or version != 1 or length < 128 or \
                crc != int.from_bytes(data[size:size + 4], "little"):
            return None
        return cls.of_body(body, sequence)
