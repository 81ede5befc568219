# SPDX-License-Identifier: BSD-2-Clause
"""QEMU's devices that a user puts on the drive's I2C buses (docs/hardware/i2c.md)."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base import chosen
from ..base.errors import EssdError
from . import straps
from .vm import option

EEPROM = "at24c-eeprom"
MODULE = "essd-sfp"
# The types that the drive's QEMU has (hw-model/qemu/Kconfig) and that save their state.
KINDS = ("at24c-eeprom", "dps310", "ds1338", "emc1413", "emc1414", "essd-sfp", "pca9546",
         "pca9548", "pca9552", "pca9554", "tmp105", "tmp421", "tmp422", "tmp423")
EXAMPLE = "at24c-eeprom,bus=i2c.2,address=0x50,rom-size=256"
BUS = re.compile(r"i2c\.[0-2](/[^/]+/i2c\.[0-7])*")
# Other addresses have meanings of their own in the I2C specification.
ADDRESSES = range(0x08, 0x78)
EEPROM_SIZES = range(1, 65537)
ERASED = b"\xff"
MODULE_AT, BMC_AT, SENSORS_AT = (0x50, 0x51), (0x1d, 0x53, 0x6a), (0x48, 0x49)


@dataclass(frozen=True)
class Device:
    kind: str
    bus: str                                # such as "i2c.2" or "i2c.2/pca9548/i2c.0"
    address: int | None                     # None: the type decides
    properties: tuple[tuple[str, str], ...] = ()
    file: str = ""                          # keeps the content of an EEPROM

    def __str__(self) -> str:
        """The text from which parse() makes this device."""
        return ",".join([self.kind, f"bus={self.bus}",
                         *([] if self.address is None else [f"address={self.address:#04x}"]),
                         *(f"{key}={value}" for key, value in self.properties),
                         *([f"file={self.file}"] if self.file else [])])

    def addresses(self) -> tuple[int, ...]:
        return MODULE_AT if self.address is None else (self.address,)


def number(key: str, text: str, valid: range) -> int:
    try:
        found = int(text, 0)
    except ValueError:
        found = -1
    if found not in valid:
        raise EssdError(f"{key}={text}: write {valid[0]:#04x} to {valid[-1]:#04x}")
    return found


def parse(text: str, folder: Path) -> Device:
    """Read TYPE,KEY=VALUE,...; a relative path of a file begins in `folder`."""
    kind, *words = text.split(",")
    if kind not in KINDS:
        raise EssdError(f"{kind!r} is no I2C device of the drive's QEMU"
                        f"{chosen.mean(kind, KINDS)} (there are {chosen.listed(KINDS, 'and')})")
    given: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (re.fullmatch(r"[a-z0-9][a-z0-9_-]*", key) and equals and value):
            raise EssdError(f"{word!r} in {text!r}: write KEY=VALUE, such as {EXAMPLE}")
        if key in given:
            raise EssdError(f"{text}: {key} occurs twice")
        given[key] = value
    bus = given.pop("bus", "")
    if not BUS.fullmatch(bus):
        raise EssdError(f"{text}: bus={bus}: the buses are i2c.0, i2c.1 and i2c.2, or "
                        "i2c.2/pca9548/i2c.3 for a channel of a multiplexer on one of them")
    if "drive" in given:
        raise EssdError(f"{text}: write file=PATH instead of drive={given['drive']}")
    address = None
    if kind == MODULE:
        if "address" in given:
            raise EssdError(f"{text}: a module answers at 0x50 and 0x51: omit address")
    elif "address" in given:
        address = number("address", given.pop("address"), ADDRESSES)
    else:
        raise EssdError(f"{text}: address is missing: write for example address=0x50")
    file = given.pop("file", "")
    if file and kind != EEPROM:
        raise EssdError(f"{text}: only {EEPROM} has a file")
    return Device(kind, bus, address, tuple(sized(text, kind, given, file, folder).items()),
                  str((folder / file).absolute()) if file else "")


def sized(text: str, kind: str, given: dict[str, str], file: str,
          folder: Path) -> dict[str, str]:
    """The properties, with the size of an EEPROM, which may be that of its file."""
    if kind != EEPROM:
        return given
    path = folder / file
    found = path.stat().st_size if file and path.is_file() else None
    if "rom-size" not in given:
        if found is None:
            raise EssdError(f"{text}: rom-size is missing: write for example rom-size=256, "
                            "the size in bytes")
        given["rom-size"] = str(found)
    size = number("rom-size", given["rom-size"], EEPROM_SIZES)
    if found is not None and found != size:
        raise EssdError(f"{text}: {path} has {found} bytes, not {size}")
    return {**given, "rom-size": str(size)}


def parse_all(texts: Iterable[str], folder: Path) -> list[Device]:
    return [parse(text, folder) for text in texts]


def of_board(level: int) -> dict[tuple[str, int], str]:
    """What is on the buses already, with these strap pins high."""
    found: dict[tuple[str, int], str] = {}
    for port in (0, 1):
        found |= {(f"i2c.{port}", address): f"the module of port {port}"
                  for address in MODULE_AT}
    if not level & straps.level([3]):
        bus = "i2c.0" if level & straps.level([4]) else "i2c.1"
        found |= {(bus, address): "the drive (for a BMC)" for address in BMC_AT}
    return found | {("i2c.2", address): "a temperature sensor of the drive"
                    for address in SENSORS_AT}


def check(devices: Sequence[Device], level: int) -> None:
    """EssdError if two devices of a bus have the same address, or share a file."""
    used = of_board(level)
    files: set[str] = set()
    for device in devices:
        for address in device.addresses():
            other = used.get((device.bus, address))
            if other is not None:
                raise EssdError(f"{device}: {device.bus} has {other} at address "
                                f"{address:#04x}: choose another address or bus")
            used[device.bus, address] = str(device)
        if device.file and device.file in files:
            raise EssdError(f"{device}: another device has this file already")
        files.add(device.file)


def make_files(devices: Iterable[Device]) -> None:
    """Create the files that do not exist, with the content of an erased EEPROM."""
    for device in devices:
        path = Path(device.file)
        if device.file and not path.exists():
            size = int(dict(device.properties)["rom-size"])
            try:
                path.write_bytes(ERASED * size)
            except OSError as error:
                raise EssdError(f"{device}: cannot create {path}: {error.strerror}") from None


def qemu_options(texts: Iterable[str]) -> list[str]:
    """QEMU's options for devices that have been checked.

    The path of a bus begins at its controller, because the channels of a multiplexer
    have names such as i2c.0, too.
    """
    found = []
    for n, text in enumerate(texts):
        device = parse(text, Path("/"))
        words = [device.kind, f"bus=/{device.bus[:5].replace('.', '')}/{device.bus}",
                 *([] if device.address is None else [f"address={device.address:#04x}"]),
                 *(f"{key}={option(value)}" for key, value in device.properties)]
        if device.file:
            node = {"driver": "raw", "node-name": f"i2c-{n}",
                    "file": {"driver": "file", "filename": device.file}}
            found += ["-blockdev", json.dumps(node)]
            words.append(f"drive=i2c-{n}")
        found += ["-device", ",".join(words)]
    return found
