# SPDX-License-Identifier: BSD-2-Clause
"""Create, read, change and, for tests, damage SPI flash images.

docs/hardware/flash.md describes the formats.  The addresses are read from
firmware/store/flash_layout.h and are not repeated here.  settings/block.py has the
configuration block.
"""

import itertools
import re
import secrets
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from ..base import files
from ..base.paths import TOP
from ..build.fw_build import Firmware
from ..settings.block import Config, FlashError as FlashError, packed_text, unpacked_text
from .image import Image, ImageError

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
            packed_text(self.serial, 20, "serial number"),
            packed_text(self.model, 40, "model"),
            b"".join(self.macs), self.ca_guid, self.uuid.bytes, self.nguid,
            packed_text(self.nqn, 223, "NQN"), self.capacity)
        return body + struct.pack("<I", zlib.crc32(body))

    @classmethod
    def unpack(cls, data: bytes) -> "Identity | None":
        block = data[:IDENTITY_LEN]
        if len(block) < IDENTITY_LEN or block[:8] != IDENTITY_MAGIC or \
                zlib.crc32(block[:-4]) != int.from_bytes(block[-4:], "little"):
            return None
        (_, _, _, serial, model, macs, guid, drive, nguid, nqn,
         capacity) = struct.unpack(IDENTITY_FORMAT, block[:-4])
        return cls(unpacked_text(serial), unpacked_text(model),
                   tuple(macs[n:n + 6] for n in range(0, 48, 6)), guid,
                   UUID(bytes=drive), nguid, unpacked_text(nqn), capacity)


# Boot counter

COUNT_MAGIC = b"ESSD-CNT"


def boot_count_header(base: int) -> bytes:
    """The header of a boot counter sector; the next boot is number base + 1."""
    head = COUNT_MAGIC + struct.pack("<I", base)
    return head + struct.pack("<I", zlib.crc32(head))


# Image slots

SLOT_RECORD_MAGIC = b"ESSD-FW1"
SLOT_RECORD = "<BBBBBBBBBB2xII44x"
SLOT_RECORD_RINGS = ("FLASH_SLOT_RECORD_ADDR", "FLASH_SLOT_RECORD_MIRROR")
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


def _has_magic(head: bytes) -> bool:
    """Whether a record's header was written completely.

    The magic's last byte is programmed last.  One flipped bit of it changes nothing.
    """
    magic = head[-len(SLOT_RECORD_MAGIC):]
    equal = sum(a == b for a, b in zip(magic, SLOT_RECORD_MAGIC, strict=True))
    return equal >= len(magic) - 1 and magic[-1] != 0xff


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
        """The intact records of both rings by their sequence numbers."""
        found = {}
        for ring, number in itertools.product(SLOT_RECORD_RINGS,
                                              range(LAYOUT["FLASH_SLOT_RECORD_COPIES"])):
            addr = LAYOUT[ring] + number * SECTOR
            head = bytes(self.data[addr:addr + AREA_HEADER_LEN])
            sequence, length, crc = struct.unpack(AREA_HEADER, head[:20])
            body = bytes(self.data[addr + AREA_HEADER_LEN:][:length])
            if head[24:] == SLOT_RECORD_MAGIC and \
                    zlib.crc32(head[:20]) == int.from_bytes(head[20:24], "little") and \
                    length == struct.calcsize(SLOT_RECORD) and zlib.crc32(body) == crc:
                found[sequence] = body
        return found

    def _has_lost_record(self) -> bool:
        """Whether a record was written after the newest intact one, and is damaged.

        An unfinished write has no magic, as in firmware/store/area.c, or one of the rings
        still has the record that was in its place.
        """
        copies = LAYOUT["FLASH_SLOT_RECORD_COPIES"]
        newest = max(self._slot_records(), default=0)
        addr = LAYOUT["FLASH_SLOT_RECORD_ADDR"] + newest % copies * SECTOR
        return _has_magic(bytes(self.data[addr:addr + AREA_HEADER_LEN])) and \
            newest + 1 - copies not in self._slot_records()

    @property
    def slot_record(self) -> SlotRecord | None:
        records = self._slot_records()
        return SlotRecord.unpack(records[max(records)]) if records else None

    @slot_record.setter
    def slot_record(self, record: SlotRecord | None) -> None:
        copies = LAYOUT["FLASH_SLOT_RECORD_COPIES"]
        sequence = max(self._slot_records(), default=0) + 1
        for start in (LAYOUT[name] for name in SLOT_RECORD_RINGS):
            if record is None:
                self.data[start:start + copies * SECTOR] = b"\xff" * (copies * SECTOR)
                continue
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
