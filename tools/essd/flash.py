# SPDX-License-Identifier: BSD-2-Clause
"""Create, read, change and, for tests, damage SPI flash images.

docs/hardware/flash.md describes the formats.  The addresses are read from
firmware/store/flash_layout.h, and the fields, ranges and defaults of the
configuration block from firmware/settings/settings.toml; neither is repeated
here.
"""

import ipaddress
import re
import secrets
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from . import files
from .errors import EssdError
from .fw_build import Firmware
from .image import Image, ImageError
from .paths import TOP
from .settings_schema import schema

SLOTS = ("A", "B")
MODEL = "essd dual 25GbE NVMe-oF SSD"


def _layout() -> dict[str, int]:
    text = (TOP / "firmware/store/flash_layout.h").read_text(encoding="utf-8")
    text += (TOP / "hw-model/regs/soc.h").read_text(encoding="utf-8")
    return {name: int(value, 0) for name, value in re.findall(
        r"^#define ((?:SOC_)?FLASH_\w+)\s+(0x[0-9a-f]+|\d+)", text, re.M)}


LAYOUT = _layout()
SIZE = LAYOUT["SOC_FLASH_SIZE"]
SECTOR = 4096
SLOT_ADDR = {"A": LAYOUT["FLASH_SLOT_A_ADDR"], "B": LAYOUT["FLASH_SLOT_B_ADDR"]}
IMAGE_OFFSET = LAYOUT["FLASH_SLOT_IMAGE_OFFSET"]


class FlashError(EssdError):
    """A flash image cannot be created or read; the text says why."""


# Identity block

IDENTITY_MAGIC = b"ESSD-ID1"
IDENTITY_FORMAT = "<8sHH20s40s48s8s16s16s224sQ52x"
IDENTITY_LEN = struct.calcsize(IDENTITY_FORMAT) + 4


@dataclass(frozen=True)
class Identity:
    """The identity block: serial number, addresses and names of one drive."""

    serial: str
    model: str
    macs: tuple[bytes, ...]
    ca_guid: bytes
    uuid: UUID
    nguid: bytes
    nqn: str
    capacity: int = 0       # of a drive with NAND, in bytes; 0: the largest possible

    @classmethod
    def random(cls, nqn: str | None = None, serial: str | None = None,
               model: str = MODEL, capacity: int = 0,
               random_bytes: Callable[[int], bytes] = secrets.token_bytes,
               ) -> "Identity":
        """The identity of a new drive, made of random numbers."""
        # 24 bits after a locally administered prefix, in blocks of 8 addresses.
        block = int.from_bytes(random_bytes(3)) & ~7
        macs = tuple(b"\x02\xe5\x5d" + (block + n).to_bytes(3) for n in range(8))
        # Modified EUI-64 of the first address, RFC 4291 appendix A.
        guid = bytes([macs[0][0] ^ 2]) + macs[0][1:3] + b"\xff\xfe" + macs[0][3:]
        drive = UUID(bytes=random_bytes(16), version=4)
        # The OUI of the addresses, which are administered locally, and four bytes that
        # are reserved for the namespace ID: see flash.md.
        nguid = random_bytes(8) + macs[0][:3] + b"\xff" + bytes(4)
        return cls(
            serial=serial or "ESSD" + random_bytes(6).hex().upper(), model=model,
            macs=macs, ca_guid=guid, uuid=drive, nguid=nguid,
            nqn=nqn or f"nqn.2014-08.org.nvmexpress:uuid:{drive}", capacity=capacity)

    def namespace_uuid(self, nsid: int) -> UUID:
        return UUID(int=self.uuid.int ^ nsid)

    def pack(self) -> bytes:
        body = struct.pack(
            IDENTITY_FORMAT, IDENTITY_MAGIC, 1, IDENTITY_LEN,
            _text(self.serial, 20, "serial number"), _text(self.model, 40, "model"),
            b"".join(self.macs), self.ca_guid, self.uuid.bytes, self.nguid,
            _text(self.nqn, 223, "NQN"), self.capacity)
        return body + struct.pack("<I", zlib.crc32(body))

    @classmethod
    def unpack(cls, data: bytes) -> "Identity | None":
        block = data[:IDENTITY_LEN]
        if len(block) < IDENTITY_LEN or block[:8] != IDENTITY_MAGIC or \
                zlib.crc32(block[:-4]) != int.from_bytes(block[-4:], "little"):
            return None
        (_, _, _, serial, model, macs, guid, drive, nguid, nqn,
         capacity) = struct.unpack(IDENTITY_FORMAT, block[:-4])
        return cls(_untext(serial), _untext(model),
                   tuple(macs[n:n + 6] for n in range(0, 48, 6)), guid,
                   UUID(bytes=drive), nguid, _untext(nqn), capacity)


def _text(value: str, size: int, what: str) -> bytes:
    if not value or not value.isascii() or not value.isprintable():
        raise FlashError(f"{what} {value!r} is not printable ASCII")
    if len(value) > size:
        raise FlashError(f"{what} {value!r} is longer than {size} characters")
    return value.encode()


def _untext(data: bytes) -> str:
    return data.rstrip(b"\0").decode("ascii")


# Configuration block

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
SPEEDS = SETTINGS["port.N.speed"].numbers
EXTRA_MAX = schema().groups["address"].count


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
            _text(self.name, 32, "name") if self.name else b"")

    @classmethod
    def unpack(cls, data: bytes) -> "Services":
        (dhcp, lldp0, lldp1, hold, interval, poll, server,
         name) = struct.unpack(CONFIG_SERVICES, data)
        return cls((bool(dhcp & 1), bool(dhcp & 2)), (LLDP[lldp0], LLDP[lldp1]),
                   hold, interval, _ungid(server), poll, _untext(name))


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
            | self.tcp_echo << 4,
            (not self.dcqcn) | (not self.cnp) << 1, self.pfc ^ 0xff,
            self.ns_count, self.ns_4k, self.ns_size, PROFILES.index(self.profile))

    @classmethod
    def unpack(cls, data: bytes) -> "Network":
        extra, lag, flags, on, off, ignored, count, block, size, profile = struct.unpack(
            CONFIG_NETWORK, data)
        addresses = [Address.unpack(extra[n:n + 20]) for n in range(0, 80, 20)]
        while addresses and addresses[-1] is None:
            addresses.pop()
        return cls(tuple(addresses), LAGS[lag], bool(flags & 1),
                   flags >> 1 & 1, bool(flags & 4), bool(on & 1), not off & 1,
                   not off & 2, ignored ^ 0xff, bool(on & 2), bool(on & 4),
                   count, size, bool(block & 1), PROFILES[profile], bool(on & 8),
                   bool(on & 16))


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

    def says_the_same(self, other: "Config") -> bool:
        return replace(self, sequence=other.sequence) == other

    def body(self) -> bytes:
        """The block's content after its header, which NVMe feature D1h holds too."""
        return b"".join(port.pack() for port in self.ports) + \
            self.services.pack() + self.network.pack()

    @classmethod
    def of_body(cls, body: bytes, sequence: int = 1) -> "Config":
        """Parse a body that holds at least both ports; the rest gets defaults."""
        services = Services.unpack(body[128:192]) if len(body) >= 192 else Services()
        network = Network.unpack(body[192:288]) if len(body) >= 288 else Network()
        return cls((Port.unpack(body[:64]), Port.unpack(body[64:128])), sequence,
                   services, network)

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


# Boot counter

COUNT_MAGIC = b"ESSD-CNT"


def boot_count_header(base: int) -> bytes:
    """The header of a boot counter sector; the next boot is number base + 1."""
    head = COUNT_MAGIC + struct.pack("<I", base)
    return head + struct.pack("<I", zlib.crc32(head))


# Image slots

SLOT_RECORD_MAGIC = b"ESSD-FW1"
SLOT_RECORD = "<BBBBBBBBBB2xII44x"
AREA_HEADER = "<III8x"
AREA_HEADER_LEN = 32


@dataclass(frozen=True)
class SlotRecord:
    """The record that says which slot starts; slots are 1 and 2, 0 is none."""

    chosen: int = 0
    previous: int = 0
    trial: bool = False         # the chosen image has not declared itself good yet
    attempts: int = 0
    failed: int = 0             # the slot that was given up last
    failure: int = 0            # why: 1 its trial, 2 refused by the boot ROM
    unreported: bool = False
    read_only: bool = False     # of slot A
    unproven: int = 0           # slot that holds no proven image; 0: none
    stores: int = 0             # how many images were written to slots
    security: int = 0           # images with a lower security version are refused

    def pack(self) -> bytes:
        return struct.pack(SLOT_RECORD, 1, self.chosen, self.previous, self.trial,
                           self.attempts, self.failed, self.failure, self.unreported,
                           self.read_only, self.unproven, self.stores, self.security)

    @classmethod
    def unpack(cls, data: bytes) -> "SlotRecord":
        (_, chosen, previous, trial, attempts, failed, failure, unreported, flags,
         unproven, stores, security) = struct.unpack(SLOT_RECORD, data)
        if not unproven:        # older firmware did not write this field
            unproven = chosen if trial else failed if failed != chosen else 0
        return cls(chosen, previous, bool(trial), attempts, failed, failure,
                   bool(unreported), bool(flags & 1), unproven, stores, security)


class FlashImage:
    """The content of the whole flash chip, in memory."""

    def __init__(self, data: bytes | None = None) -> None:
        self.data = bytearray(data if data is not None else b"\xff" * SIZE)
        if len(self.data) != SIZE:
            raise FlashError(f"a flash image has {SIZE} bytes; this one has "
                             f"{len(self.data)}")

    @classmethod
    def load(cls, path: Path) -> "FlashImage":
        try:
            return cls(path.read_bytes())
        except FlashError as error:
            raise FlashError(f"{path}: {error}") from None

    def save(self, path: Path) -> None:
        """Replace the file atomically."""
        try:
            files.replace_file(path, bytes(self.data))
        except OSError as error:
            raise FlashError(f"flash file {path} cannot be written: {error.strerror}"
                             ) from None

    def write(self, addr: int, data: bytes) -> None:
        """Erase the sectors that contain the range, then program the range."""
        end = addr + len(data)
        first, last = addr // SECTOR * SECTOR, -(-end // SECTOR) * SECTOR
        self.data[first:last] = b"\xff" * (last - first)
        self.data[addr:end] = data

    # Identity and configuration

    @property
    def identity(self) -> Identity | None:
        for name in ("FLASH_IDENTITY_ADDR", "FLASH_IDENTITY_COPY_ADDR"):
            found = Identity.unpack(bytes(self.data[LAYOUT[name]:][:IDENTITY_LEN]))
            if found:
                return found
        return None

    @identity.setter
    def identity(self, identity: Identity) -> None:
        for name in ("FLASH_IDENTITY_ADDR", "FLASH_IDENTITY_COPY_ADDR"):
            self.write(LAYOUT[name], identity.pack())

    @property
    def config(self) -> Config | None:
        copies = [Config.unpack(bytes(self.data[LAYOUT[name]:][:SECTOR]))
                  for name in ("FLASH_CONFIG_A_ADDR", "FLASH_CONFIG_B_ADDR")]
        return max((c for c in copies if c), key=lambda c: c.sequence, default=None)

    @config.setter
    def config(self, config: Config) -> None:
        """Write both copies; copy A gets the higher sequence number."""
        old = self.config
        sequence = old.sequence if old else 0
        self.write(LAYOUT["FLASH_CONFIG_B_ADDR"],
                   replace(config, sequence=sequence + 1).pack())
        self.write(LAYOUT["FLASH_CONFIG_A_ADDR"],
                   replace(config, sequence=sequence + 2).pack())

    # Slots

    def image(self, slot: str) -> Image | None:
        """The image in a slot, or None if its header or its data are damaged."""
        addr = SLOT_ADDR[slot]
        try:
            return Image.of_slot(bytes(
                self.data[addr:addr + LAYOUT["FLASH_SLOT_SIZE"]]))
        except ImageError:
            return None

    def set_image(self, slot: str, image: Image) -> None:
        addr = SLOT_ADDR[slot]
        self.write(addr + IMAGE_OFFSET, image.data)
        self.write(addr, image.header())

    def erase_slot(self, slot: str) -> None:
        self.write(SLOT_ADDR[slot], b"\xff" * SECTOR)

    def corrupt_slot(self, slot: str, what: str = "image") -> None:
        """Flip one bit of a slot's "image", "header" or "magic"."""
        at = {"image": IMAGE_OFFSET, "header": 40, "magic": 0}[what]
        if what == "image":
            image = self.image(slot)
            at += len(image.data) // 2 if image else 0
        self.data[SLOT_ADDR[slot] + at] ^= 0x10

    def set_firmware(self, data: bytes, version: str,
                     sign: Callable[[Image], Image] = lambda image: image,
                     lower_floor: bool = False) -> None:
        """Write the same firmware to both slots; slot A is the newer one and starts."""
        image = sign(Image(data, version, 1, made_here=True))
        floor = self.floor_with(image, lower_floor)
        self.set_image("B", image)
        self.set_image("A", replace(image, sequence=2))     # which is not signed
        self.forget_choice(floor)

    def start_image(self, slot: str, image: Image, lower_floor: bool = False) -> None:
        """Write an image that the boot ROM takes at the next start."""
        floor = self.floor_with(image, lower_floor)
        self.set_image(slot, image)
        self.forget_choice(floor)

    @property
    def starting_slot(self) -> str | None:
        """The slot that the boot ROM will start, if its image comes up.

        That is the chosen one, otherwise the newest good one, A if both are equal.
        """
        found = {slot: kept for slot in SLOTS if (kept := self.image(slot))}
        record = self.slot_record
        if record and record.chosen and SLOTS[record.chosen - 1] in found:
            return SLOTS[record.chosen - 1]
        return max(sorted(found), key=lambda slot: found[slot].sequence, default=None)

    @property
    def was_updated(self) -> bool:
        """Whether an update has put the firmware there, which then stays."""
        slot = self.starting_slot
        image = self.image(slot) if slot else None
        return image is not None and not image.made_here

    def forget_choice(self, floor: int) -> None:
        """Let the sequence numbers decide which slot starts."""
        record = self.slot_record
        if record or floor:
            record = record or SlotRecord()
            self.slot_record = SlotRecord(read_only=record.read_only,
                                          stores=record.stores, security=floor)

    @property
    def security_floor(self) -> int:
        """The highest security version of an image that has passed its trial."""
        record = self.slot_record or SlotRecord()
        active = self.starting_slot
        now = self.image(active) if active else None
        number = SLOTS.index(active) + 1 if active else 0
        # A record that is lost may have said that the image has passed its trial.
        is_on_trial = number == record.unproven and not self._has_lost_record()
        if not now or is_on_trial:
            return record.security
        return max(record.security, now.security)

    def floor_with(self, image: Image, lower_floor: bool) -> int:
        """The floor when this image has been written; FlashError if it is too low for it."""
        if lower_floor:
            return image.security
        if image.security < self.security_floor:
            raise FlashError(f"the firmware has the security version {image.security}, and "
                             f"the drive has had {self.security_floor}, so a lower one is "
                             "refused; --lower-floor gives up this protection of the drive")
        return self.security_floor

    # The record that says which slot starts

    def _slot_records(self) -> dict[int, bytes]:
        """The intact records by their sequence numbers."""
        found = {}
        for number in range(LAYOUT["FLASH_SLOT_RECORD_COPIES"]):
            addr = LAYOUT["FLASH_SLOT_RECORD_ADDR"] + number * SECTOR
            head = bytes(self.data[addr:addr + AREA_HEADER_LEN])
            sequence, length, crc = struct.unpack(AREA_HEADER, head[:20])
            body = bytes(self.data[addr + AREA_HEADER_LEN:][:length])
            if head[24:] == SLOT_RECORD_MAGIC and \
                    zlib.crc32(head[:20]) == int.from_bytes(head[20:24], "little") and \
                    length == struct.calcsize(SLOT_RECORD) and zlib.crc32(body) == crc:
                found[sequence] = body
        return found

    def _has_lost_record(self) -> bool:
        """Whether a record was written after the newest intact one, and is damaged."""
        start, copies = (LAYOUT[f"FLASH_SLOT_RECORD_{name}"] for name in ("ADDR", "COPIES"))
        intact = self._slot_records()
        newest = max(intact, default=0)
        addr = start + newest % copies * SECTOR
        place = self.data[addr:addr + AREA_HEADER_LEN + struct.calcsize(SLOT_RECORD)]
        return place != b"\xff" * len(place) and newest + 1 - copies not in intact

    @property
    def slot_record(self) -> SlotRecord | None:
        records = self._slot_records()
        return SlotRecord.unpack(records[max(records)]) if records else None

    @slot_record.setter
    def slot_record(self, record: SlotRecord | None) -> None:
        start, copies = (LAYOUT[f"FLASH_SLOT_RECORD_{name}"]
                         for name in ("ADDR", "COPIES"))
        sequence = max(self._slot_records(), default=0) + 1
        if record is None:
            self.data[start:start + copies * SECTOR] = b"\xff" * (copies * SECTOR)
            return
        body = record.pack()
        head = struct.pack(AREA_HEADER, sequence, len(body), zlib.crc32(body))
        self.write(start + (sequence - 1) % copies * SECTOR,
                   head + struct.pack("<I", zlib.crc32(head)) + SLOT_RECORD_MAGIC + body)


def new_flash(firmware: Firmware, identity: Identity, config: Config,
              sign: Callable[[Image], Image] = lambda image: image) -> FlashImage:
    """The flash of a new drive."""
    flash = FlashImage()
    flash.identity = identity
    flash.config = config
    flash.write(LAYOUT["FLASH_BOOT_COUNT_A_ADDR"], boot_count_header(0))
    flash.set_firmware(firmware.image.read_bytes(), firmware.version, sign)
    return flash


def ensure_flash(path: Path, firmware: Firmware, config: Config,
                 nqn: str | None = None, capacity: int = 0,
                 sign: Callable[[Image], Image] = lambda image: image,
                 lower_floor: bool = False) -> Identity:
    """Create the drive's flash file, or bring an existing one up to date.

    `capacity` is for a new drive with NAND (Identity.capacity).  `sign` signs the
    firmware of a drive that has a boot key.  `lower_floor` writes the firmware although
    the drive has had one with a higher security version.

    An existing drive keeps its identity, its boot count and its logs, and its
    firmware if that was updated through the drive.  Otherwise its firmware, its
    configuration and, if given, its NQN are replaced.
    """
    if not path.exists():
        identity = Identity.random(nqn, capacity=capacity)
        files.make_folder(path.parent)
        new_flash(firmware, identity, config, sign).save(path)
        return identity
    flash = FlashImage.load(path)
    before = bytes(flash.data)
    old = flash.identity
    if old is None:
        raise FlashError(f"{path} has no valid identity block, so it is not the flash "
                         "of a drive: remove the file to create a new drive")
    identity = replace(old, nqn=nqn) if nqn else old
    if identity != old:
        flash.identity = identity
    kept = flash.config
    if kept is None or not kept.says_the_same(config):
        flash.config = config
    data = firmware.image.read_bytes()
    for slot in () if flash.was_updated else SLOTS:
        image = flash.image(slot)
        if image is None or image.data != data or image.version != firmware.version:
            flash.set_firmware(data, firmware.version, sign, lower_floor)
            break
    if flash.data != before:
        flash.save(path)
    return identity
