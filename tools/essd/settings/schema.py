# SPDX-License-Identifier: BSD-2-Clause
"""Read the description of a drive's settings, firmware/settings/settings.toml.

The file defines the keys, their ranges and defaults, and the configuration block
in flash.  The tools use it directly; tools/settings_gen.py generates the
firmware's tables from it, and `essd config --keys` prints it.
"""

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import EssdError
from ..base.paths import TOP

PATH = TOP / "firmware/settings/settings.toml"

# Notation of a value by its kind: (text for error messages, text for the list of keys)
KINDS = {
    "name": ("none or a name of 1 to 32 printable characters without spaces",
             "1 to 32 printable characters without spaces, none"),
    "network4": ("an IPv4 address with its prefix length (such as 10.0.0.10/24) or none",
                 "A.B.C.D/LEN, none"),
    "network6": ("an IPv6 address with its prefix length (such as fd00::10/64) or none",
                 "ADDR/LEN, none"),
    "network": ("an address with its prefix length (such as 10.0.0.11/24) or none",
                "ADDR/LEN, none"),
    "address4": ("an IPv4 address or none", "A.B.C.D, none"),
    "address6": ("an IPv6 address or none", "ADDR, none"),
    "address": ("an IPv4 address, an IPv6 address or none", "ADDR, none"),
    "switch": ("on or off", "on, off"),
    "priorities": ("a list of priorities (such as 0,3,4), all or none",
                   "0,3,4 and the like, all, none"),
    "namespaces": ("a list of at most six NSIDs and ranges from 1 to 128 (such as "
                   "1,3-5) or none", "1,3-5 and the like, none"),
    "number": ("a number from {min} to {max}", "{min} to {max}"),
    "choice": ("{words}", "{list}"),
}
WORD = re.compile(r"[a-z0-9-]+")
# Format codes of struct.pack() by size in bytes; the block is little-endian.
CODES = {1: "B", 2: "H", 4: "I"}


class SchemaError(EssdError):
    """The schema is inconsistent; the text names the place."""


@dataclass(frozen=True)
class Field:
    """One field of a part of the configuration block."""

    name: str
    at: int
    size: int           # of one element
    doc: str
    count: int = 1
    bytes: bool = False         # an address or a text instead of a number
    bits: tuple[str, ...] = ()

    @property
    def end(self) -> int:
        return self.at + self.size * self.count

    @property
    def code(self) -> str:
        return f"{self.size}s" if self.bytes else CODES[self.size] * self.count


@dataclass(frozen=True)
class Part:
    """A part of the configuration block: a port, the services, ..."""

    name: str
    len: int
    fields: tuple[Field, ...]

    @property
    def format(self) -> str:
        """The format for struct.pack(), including reserved bytes between fields."""
        found, at = "<", 0
        for field in self.fields:
            found += "x" * (field.at - at) + field.code
            at = field.end
        return found + (f"{self.len - at}x" if at < self.len else "")


@dataclass(frozen=True)
class Group:
    """Keys that exist once for each port, or for each address."""

    prefix: str
    count: int
    too_many: str


@dataclass(frozen=True)
class Setting:
    """One row of the list of keys."""

    key: str
    kind: str
    field: str
    record: tuple[str, ...]
    default: str
    live: bool
    doc: str
    min: int = 0
    max: int = 0
    zero_is_default: bool = False
    values: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    names: str = ""
    limits: str = ""

    def fill(self, template: str) -> str:
        words = " or ".join(filter(None, (", ".join(self.values[:-1]),
                                          *self.values[-1:])))
        return template.format(min=self.min, max=self.max, words=words,
                               list=", ".join(self.values))

    @property
    def allowed(self) -> str:
        """The allowed values, as words for the end of an error message."""
        return self.fill(KINDS[self.kind][0])

    @property
    def documented(self) -> str:
        return self.fill(KINDS[self.kind][1])

    @property
    def by_number(self) -> tuple[str, ...]:
        """The words of a choice in the order of the block's numbers."""
        return tuple(word for _, word in sorted(zip(self.numbers, self.values,
                                                    strict=True)))

    @property
    def effective(self) -> str:
        """When a saved change of the setting is in force."""
        return "at once" if self.live else "next start"

    @property
    def group(self) -> str:
        return self.key.partition(".N.")[0] if ".N." in self.key else ""

    def keys(self, groups: dict[str, Group]) -> list[str]:
        """The keys of this row, one for each port or address."""
        if not self.group:
            return [self.key]
        return [self.key.replace(".N.", f".{n}.")
                for n in range(groups[self.group].count)]


@dataclass(frozen=True)
class Schema:
    groups: dict[str, Group]
    parts: dict[str, Part]
    settings: dict[str, Setting]

    def key_rows(self) -> list[tuple[str, Setting]]:
        """Every key in the order of the file; groups are listed number by number."""
        found: list[tuple[str, Setting]] = []
        rows = list(self.settings.values())
        while rows:
            group = rows[0].group
            same = [rows.pop(0)]
            while group and rows and rows[0].group == group:
                same.append(rows.pop(0))
            for n in range(self.groups[group].count if group else 1):
                found += [(row.key.replace(".N.", f".{n}."), row) for row in same]
        return found


# Reading

def made(kind: type[Any], data: dict[str, Any], where: str) -> Any:
    """Make a dataclass from a TOML table, whose lists become tuples."""
    try:
        return kind(**{name: tuple(value) if isinstance(value, list) else value
                       for name, value in data.items()})
    except TypeError as error:
        raise SchemaError(f"{where}: {error}") from None


def read_setting(data: dict[str, Any]) -> Setting:
    if "values" in data and "numbers" not in data:
        data = data | {"numbers": list(range(len(data["values"])))}
    setting: Setting = made(Setting, data, str(data.get("key")))
    return setting


def read_part(data: dict[str, Any]) -> Part:
    name = str(data.get("name"))
    fields = [made(Field, field, f"{name}: {field.get('name')}")
              for field in data.get("fields", [])]
    part: Part = made(Part, data | {"fields": fields}, name)
    return part


def parse(text: str) -> Schema:
    data = tomllib.loads(text)
    groups = [made(Group, one, str(one.get("prefix"))) for one in data["group"]]
    parts = [read_part(one) for one in data["part"]]
    settings = [read_setting(one) for one in data["setting"]]
    schema = Schema({one.prefix: one for one in groups},
                    {one.name: one for one in parts},
                    {one.key: one for one in settings})
    if len(schema.settings) != len(settings):
        raise SchemaError("a key is described twice")
    for part in parts:
        check_part(part)
    for setting in settings:
        check_setting(schema, setting)
    check_use(schema)
    return schema


def check_part(part: Part) -> None:
    at = 0
    for field in part.fields:
        where = f"{part.name}.{field.name}"
        if field.at < at:
            raise SchemaError(f"{where} begins at {field.at}, inside the previous field")
        if not field.bytes and field.size not in CODES:
            raise SchemaError(f"{where} is a number of {field.size} bytes; allowed are "
                              f"{', '.join(map(str, CODES))}")
        if len(field.bits) > 8 * field.size:
            raise SchemaError(f"{where} names more bits than its {field.size} bytes have")
        at = field.end
    if at > part.len:
        raise SchemaError(f"{part.name} has {part.len} bytes, but its fields end at {at}")


def record_names(schema: Schema) -> set[str]:
    """The names that `record` may contain: those of fields or of their bits."""
    found = set()
    for part in schema.parts.values():
        for field in part.fields:
            found |= {f"{part.name}.{name}" for name in (field.bits or (field.name,))}
    return found


def check_setting(schema: Schema, setting: Setting) -> None:
    where = setting.key
    if setting.kind not in KINDS:
        raise SchemaError(f"{where}: there is no kind {setting.kind}")
    if setting.group and setting.group not in schema.groups:
        raise SchemaError(f"{where}: there is no group {setting.group}")
    if bool(setting.group) != ("#" in setting.field):
        raise SchemaError(f"{where}: the key has a number and its field has none, "
                          "or the other way round")
    if not all(WORD.fullmatch(word) for word in setting.key.replace("N", "n").split(".")):
        raise SchemaError(f"{where}: a key is words of small letters, digits and -")
    for name in setting.record:
        if name not in record_names(schema):
            raise SchemaError(f"{where}: the block has no {name}")
    if setting.kind == "number" and not (
            setting.min <= int(setting.default) <= setting.max):
        raise SchemaError(f"{where}: the default {setting.default} is out of its range")
    if setting.kind == "choice" and setting.default not in setting.values:
        raise SchemaError(f"{where}: the default {setting.default} is no choice")
    if setting.kind == "choice" and (
            len(set(setting.numbers)) != len(setting.values)):
        raise SchemaError(f"{where}: each choice needs a number of its own")


def check_use(schema: Schema) -> None:
    """Each field of the block belongs to a setting."""
    used = {name for setting in schema.settings.values() for name in setting.record}
    left = sorted(record_names(schema) - used)
    if left:
        raise SchemaError(f"no setting uses {', '.join(left)}")


@functools.cache
def schema(path: Path = PATH) -> Schema:
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (SchemaError, tomllib.TOMLDecodeError, KeyError) as error:
        raise SchemaError(f"{path}: {error}") from None
