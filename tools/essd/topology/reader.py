# SPDX-License-Identifier: BSD-2-Clause
"""Reads topologies from YAML (docs/topologies.md).

Every mistake is reported with file, line and column, all of them at once.  A
topology without mistakes can be started.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

import yaml

from ..base import chosen, patterns, yaml_mistakes
from ..base.errors import EssdError, Mistakes
from ..build import guest_variant
from ..instance.config import End, RISCV, STOCK, STREAM, UML, VHOST_USER
from ..machine import i2c_devices, outside, straps
from ..storage import boot_key
from .topology import (Cable, DRIVES_MAX, DRIVE_PORTS, Drive, FIRST_DRIVE, HOST_CARDS_MAX, Host,
                       Interface, Mark, Network, SWITCH_PORTS_MAX, Switch, Topology, loops)
from .values import (PORT_WORDS, SWITCH_WORDS, address_values, check_word, cpus_value,
                     hart_value, kind_value, link_value, memory_value, mtu_value, nand_value,
                     size_value, transports_value, yes_value)

TOP_KEYS = ("drives", "hosts", "switches", "cables")
# YAML takes brackets inside braces for a list, unless they are in quotes.
BRACKETED = re.compile(r"[{,]\s*[a-z0-9_-]+\[")
BRACKETS = " (inside braces, put a name such as drive[0-3] in quotes)"


class Reader:
    """Reads the YAML nodes of one file; collects the mistakes."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.mistakes: list[tuple[Mark, str]] = []
        self.found = Topology(name)
        self.names: dict[str, Mark] = {}

    def mistake(self, mark: Mark, text: str) -> None:
        self.mistakes.append((mark, text))

    def fail(self) -> NoReturn:
        raise Mistakes([f"{self.name}:{mark.line}:{mark.column}: {text}" for mark, text in
                        sorted(self.mistakes, key=lambda x: (x[0].line, x[0].column))])

    def mapping(self, node: yaml.Node, what: str,
                valid: Iterable[str] | None) -> list[tuple[str, Mark, yaml.Node]]:
        """The keys of a mapping with their places; unknown and double ones are mistakes."""
        if isinstance(node, yaml.ScalarNode) and node.value in ("", "~", "null"):
            return []
        if not isinstance(node, yaml.MappingNode):
            self.mistake(Mark.of(node), f"{what}: write keys and values here, such as "
                                        f"{example_of(what)}")
            return []
        entries = []
        seen: set[str] = set()
        for key, value in node.value:
            mark = Mark.of(key)
            if not isinstance(key, yaml.ScalarNode):
                self.mistake(mark, f"{what}: a key must be one word")
            elif key.value in seen:
                self.mistake(mark, f"{what}: {key.value} occurs twice")
            elif valid is not None and key.value not in valid:
                self.mistake(mark, f"{what} cannot have {key.value!r}"
                             f"{chosen.mean(key.value, valid)} (there are "
                             f"{chosen.listed(sorted(valid), 'and')})")
            else:
                seen.add(key.value)
                entries.append((key.value, mark, value))
        return entries

    def scalar(self, node: yaml.Node, what: str) -> str | None:
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        self.mistake(Mark.of(node), f"{what}: write one value here")
        return None

    def words(self, node: yaml.Node, what: str, example: str) -> str | None:
        """The words of a list, with spaces between them."""
        if isinstance(node, yaml.SequenceNode) and node.value and all(
                isinstance(item, yaml.ScalarNode) for item in node.value):
            return " ".join(str(item.value) for item in node.value)
        self.mistake(Mark.of(node), f"{what}: write a list here, such as {example}")
        return None

    def values(self, node: yaml.Node, what: str, readers: dict[str, Callable[[str], object]],
               lists: dict[str, str] | None = None) -> dict[str, object]:
        """The values of a mapping whose keys are those of `readers`; `lists` has an example
        for each key that has a list."""
        found = {}
        for key, _, value in self.mapping(node, what, readers):
            if lists is not None and key in lists:
                text = self.words(value, f"{what}: {key}", lists[key])
            else:
                text = self.scalar(value, f"{what}: {key}")
            if text is None:
                continue
            try:
                found[key] = readers[key](text)
            except EssdError as error:
                self.mistake(Mark.of(value), f"{what}: {error}")
        return found

    def expand(self, text: str, mark: Mark) -> list[str]:
        try:
            return patterns.expand(text)
        except EssdError as error:
            self.mistake(mark, str(error))
            return []

    def parts(self, node: yaml.Node, what: str) -> list[tuple[list[str], Mark, yaml.Node]]:
        """The names of a group of parts, and what is said of them."""
        groups = []
        for key, mark, value in self.mapping(node, what, None):
            names = self.expand(key, mark)
            for name in names:
                try:
                    patterns.check_name(name)
                except EssdError as error:
                    self.mistake(mark, str(error))
                if name in self.names:
                    self.mistake(mark, f"{name} is there already, in line "
                                       f"{self.names[name].line}")
                elif name == "peer":
                    self.mistake(mark, "no part can be called peer")
                self.names[name] = mark
            groups.append((names, mark, value))
        return groups

    # The groups

    def drives(self, node: yaml.Node) -> None:
        for names, mark, value in self.parts(node, "drives"):
            said = self.values(value, "a drive", {
                "size": size_value, "nand": nand_value, "block": yes_value,
                "nvme-tcp": yes_value, "transports": transports_value,
                "mtu": mtu_value, "straps": straps.parse,
                "devices": self.devices_value, "config": self.file_value,
                "boot-key": self.key_value, "hart": hart_value,
                **{f"port{n}": address_values for n in range(DRIVE_PORTS)}},
                {"transports": "[rdma, tcp]"})
            if "nvme-tcp" in said and "transports" in said:
                self.mistake(mark, "a drive has either transports, or nvme-tcp, which is the "
                                   "older word")
            if said.get("block") and "nand" in said:
                self.mistake(mark, "a drive has either a NAND array (nand) or a block medium "
                                   "(block)")
            for n, name in enumerate(names):
                drive = Drive(name, mark, said.get("size"), said.get("mtu"),  # type: ignore[arg-type]
                              said.get("config"),       # type: ignore[arg-type]
                              nand=said.get("nand"),    # type: ignore[arg-type]
                              block=bool(said.get("block")),
                              straps=said.get("straps", []),    # type: ignore[arg-type]
                              devices=said.get("devices", []),  # type: ignore[arg-type]
                              boot_key=said.get("boot-key"),    # type: ignore[arg-type]
                              nvme_tcp=said.get("nvme-tcp"),    # type: ignore[arg-type]
                              transports=said.get("transports"),    # type: ignore[arg-type]
                              hart=str(said.get("hart", RISCV)))
                for port in range(DRIVE_PORTS):
                    # Too many drives are reported below.
                    last = FIRST_DRIVE + min(len(self.found.drives), DRIVES_MAX)
                    default = ipaddress.ip_interface(f"10.0.{port}.{last}/24")
                    if f"port{port}" in said:
                        drive.ports[port] = self.next_addresses(
                            said[f"port{port}"], n, mark, name)
                    else:
                        drive.ports[port] = [default]
                self.found.drives[name] = drive
        if len(self.found.drives) > DRIVES_MAX:
            self.mistake(Mark.of(node), f"{len(self.found.drives)} drives are more than "
                                        f"{DRIVES_MAX}")

    def hosts(self, node: yaml.Node) -> None:
        for names, mark, value in self.parts(node, "hosts"):
            said = self.values(value, "a host", {
                "memory": memory_value, "cpus": cpus_value, "kind": kind_value,
                "guest": self.guest_value,
                **{f"card{n}": address_values for n in range(HOST_CARDS_MAX)}})
            for n, name in enumerate(names):
                host = Host(name, mark, said.get("memory", 1024),   # type: ignore[arg-type]
                            said.get("cpus", 1),                    # type: ignore[arg-type]
                            str(said.get("kind", STOCK)),
                            said.get("guest"))                      # type: ignore[arg-type]
                if host.kind == UML and host.cpus != 1:
                    self.mistake(mark, f"{name}: a host of kind {UML} has one CPU, not "
                                       f"{host.cpus}")
                for card in range(HOST_CARDS_MAX):
                    if f"card{card}" in said:
                        host.cards[card] = self.next_addresses(
                            said[f"card{card}"], n, mark, name)
                self.found.hosts[name] = host

    def switches(self, node: yaml.Node) -> None:
        for names, mark, value in self.parts(node, "switches"):
            said = self.values(value, "a switch", {
                key: lambda text, key=key: check_word(key, text, SWITCH_WORDS)  # type: ignore[misc]
                for key in SWITCH_WORDS})
            options = [word for key, text in said.items() for word in (f"--{key}", str(text))]
            for name in names:
                self.found.switches[name] = Switch(name, mark, options)

    def next_addresses(self, addresses: object, n: int, mark: Mark,
                       name: str) -> list[Interface]:
        """The addresses that are n after the given ones, in the same networks."""
        assert isinstance(addresses, list)
        found = []
        for address in addresses:
            after = ipaddress.ip_interface(
                f"{address.ip + n}/{address.network.prefixlen}")
            if after.network != address.network or (
                    after.version == 4 and after.ip == after.network.broadcast_address):
                self.mistake(mark, f"{name}: {address.network} has no room for an address "
                                   f"{n} after {address.ip}")
            found.append(after)
        return found

    def file_value(self, text: str) -> Path:
        path = self.folder / text
        if not path.is_file():
            raise EssdError(f"there is no file {path}")
        return path

    def key_value(self, text: str) -> Path:
        path = self.file_value(text)
        boot_key.of_file(path)
        return path

    def devices_value(self, text: str) -> list[i2c_devices.Device]:
        return i2c_devices.parse_all(text.split(), self.folder)

    def guest_value(self, text: str) -> Path:
        return guest_variant.check(self.folder / text)

    # Cables

    def cables(self, node: yaml.Node) -> None:
        if not isinstance(node, yaml.SequenceNode):
            self.mistake(Mark.of(node), "cables: write a list of cables, such as "
                                        f"{example_of('cables')}")
            return
        for item in node.value:
            if isinstance(item, yaml.ScalarNode):
                self.cable(item, {}, {})
                continue
            rules: dict[str, Callable[[str], object]] = {
                key: lambda text, key=key: check_word(key, text, PORT_WORDS)  # type: ignore[misc]
                for key in PORT_WORDS}
            said = self.values(item, "a cable", {"cable": str, "capture": yes_value,
                                                 "link": link_value, **rules})
            places = [value for key, _, value in
                      (self.mapping(item, "", None) if "cable" in said else [])
                      if key == "cable"]
            if not places:
                if isinstance(item, yaml.MappingNode):
                    self.mistake(Mark.of(item), "a cable needs its two ends, such as "
                                                "cable: drive0:0 - switch0")
                continue
            self.cable(places[0], {key: str(text) for key, text in said.items()
                                   if key in PORT_WORDS}, said)

    def cable(self, node: yaml.Node, words: dict[str, str], said: dict[str, object]) -> None:
        """`words` are settings of a switch's port, and `said` is all that is said."""
        mark = Mark.of(node)
        texts = re.split(r"\s+-\s+", str(node.value).strip())
        if len(texts) != 2:
            self.mistake(mark, f"{node.value!r} is not a cable: write its two ends, such "
                               "as drive0:0 - switch0")
            return
        before = len(self.mistakes)
        sides = [[text] if "=" in text else self.expand(text, mark) for text in texts]
        if len(self.mistakes) > before:
            return
        most = max(map(len, sides))
        if any(len(side) not in (1, most) for side in sides):
            self.mistake(mark, f"{node.value!r} has {len(sides[0])} ends on one side and "
                               f"{len(sides[1])} on the other")
            return
        for n in range(most):
            ends = [self.end(side[n if len(side) > 1 else 0], mark) for side in sides]
            if ends[0] is not None and ends[1] is not None:
                self.add_cable(Cable(mark, (ends[0], ends[1]), words, bool(said.get("capture")),
                                     str(said.get("link", STREAM))))

    def end(self, text: str, mark: Mark) -> End | None:
        """One end of a cable; switches and hosts number their ports themselves."""
        if "=" in text:
            try:
                return End(outside=str(outside.parse(text, self.folder)))
            except EssdError as error:
                self.mistake(mark, str(error))
                return None
        name, colon, number = text.partition(":")
        kind = self.found.kind(name)
        if not kind:
            self.mistake(mark, f"there is no part {name}"
                               f"{chosen.mean(name, self.found.parts())}")
            return None
        if colon and not (number.isascii() and number.isdigit() and len(number) < 4):
            self.mistake(mark, f"{text}: {number!r} is not the number of a port")
            return None
        if kind == "switch":
            if colon:
                self.mistake(mark, f"{text}: a switch numbers its ports in the order of "
                                   f"the cables: write {name}")
                return None
            switch = self.found.switches[name]
            switch.ports += 1
            if switch.ports == SWITCH_PORTS_MAX + 1:
                self.mistake(mark, f"{name} has more than {SWITCH_PORTS_MAX} cables")
            return End(name, switch.ports - 1)
        used = {end.port for cable in self.found.cables for end in cable.ends
                if end.part == name}
        most = DRIVE_PORTS if kind == "drive" else HOST_CARDS_MAX
        port = int(number) if colon else next(n for n in range(most + 1) if n not in used)
        if not colon and kind == "drive":
            self.mistake(mark, f"{name} has two ports: write {name}:0 or {name}:1")
        elif port >= most:
            self.mistake(mark, f"{text}: a {kind}'s ports are 0 to {most - 1}")
        elif port in used:
            self.mistake(mark, f"{text} has a cable already")
        else:
            return End(name, port)
        return None

    def add_cable(self, cable: Cable) -> None:
        kinds = [self.found.kind(end.part) for end in cable.ends]
        if cable.kind == VHOST_USER and sorted(kinds) != ["drive", "host"]:
            self.mistake(cable.mark, f"{cable.ends[0]} - {cable.ends[1]}: a cable of kind "
                                     f"{VHOST_USER} leads from a host to a drive")
            return
        if "switch" not in kinds:
            if cable.words:
                self.mistake(cable.mark, f"{min(cable.words)} is a setting of a switch's "
                                         "port, and this cable has no switch")
            if sorted(kinds) not in (["drive", "host"], ["", "drive"]):
                self.mistake(cable.mark, f"{cable.ends[0]} - {cable.ends[1]}: put a switch "
                                         "between them")
                return
            if any(end.outside.startswith("iface=") for end in cable.ends):
                self.mistake(cable.mark, f"{cable.ends[0]} - {cable.ends[1]}: put a switch "
                                         "between a drive and a network interface")
                return
        if cable.ends[0].part == cable.ends[1].part:
            self.mistake(cable.mark, f"both ends are at {cable.ends[0].part}")
            return
        self.found.cables.append(cable)

    # The whole

    def check(self) -> None:
        """Look for parts without a cable and for addresses that do not fit."""
        cabled = {end.part for cable in self.found.cables for end in cable.ends}
        for name in self.found.parts():
            if name not in cabled:
                self.mistake(self.names[name], f"{name} has no cable")
        for drive in self.found.drives.values():
            self.check_networks(drive)
        for segment in self.found.segments():
            self.check_segment(segment)
        for cable, way in loops(self.found):
            self.found.warnings.append(
                f"{self.found.name}:{cable.mark.line}:{cable.mark.column}: the cables of "
                f"{chosen.listed(way, 'and')} form a loop; frames would circulate in it, "
                "because switches have no spanning tree: leave out one of its cables")

    def check_networks(self, drive: Drive) -> None:
        for one in drive.ports[0]:
            for other in drive.ports[1]:
                if one.version == other.version and one.network.overlaps(other.network):
                    self.mistake(drive.mark, f"{drive.name}: the two ports must be in "
                                 f"separate networks, and {one} and {other} are not")

    def check_segment(self, segment: set[tuple[str, int]]) -> None:
        """Give addresses to the hosts' cards; no address may be there twice."""
        taken: dict[str, str] = {}
        drives = [(name, port) for name, port in sorted(segment)
                  if name in self.found.drives]
        for name, port in drives:
            for address in self.found.drives[name].ports[port]:
                self.take(taken, address, f"{name}:{port}", self.found.drives[name].mark)
        hosts = [(name, card) for name in self.found.hosts for part, card in sorted(segment)
                 if part == name]
        for name, card in hosts:
            for address in self.found.hosts[name].cards.get(card, []):
                self.take(taken, address, f"{name}:{card}", self.found.hosts[name].mark)
        for name, card in hosts:
            host = self.found.hosts[name]
            if card not in host.cards:
                networks = {address.network: None for drive, port in drives
                            for address in self.found.drives[drive].ports[port]}
                host.cards[card] = []
                for network in networks:
                    free = free_address(network, taken)
                    if free is None:
                        self.mistake(host.mark, f"{name}:{card}: {network} has no free "
                                                "address")
                    else:
                        host.cards[card].append(free)
                if not networks:
                    self.mistake(host.mark, f"{name}:{card} has no drive in its network: "
                                            f"give {name} a card{card}: ADDR/LEN")
                for address in host.cards[card]:
                    self.take(taken, address, f"{name}:{card}", host.mark)

    def take(self, taken: dict[str, str], address: Interface, who: str, mark: Mark) -> None:
        if str(address.ip) in taken:
            self.mistake(mark, f"{who} and {taken[str(address.ip)]} have the same address, "
                               f"{address.ip}")
        taken[str(address.ip)] = who


def free_address(network: Network, taken: dict[str, str]) -> Interface | None:
    """The first host address of a network that nobody has."""
    for address in network.hosts():
        if str(address) not in taken:
            return ipaddress.ip_interface(f"{address}/{network.prefixlen}")
    return None


def example_of(what: str) -> str:
    return {"drives": "drive[0-3]: {size: 1G}", "hosts": "host: {memory: 1G}",
            "switches": "switch0: {}", "cables": "- drive0:0 - switch0",
            "a drive": "size: 1G", "a host": "memory: 1G", "a switch": "link-local: drop",
            "a cable": "cable: drive0:0 - switch0"}.get(what, "drives: {drive0: {}}")


def load(text: str, name: str, folder: Path) -> Topology:
    """The topology in a file's text; raises Mistakes."""
    reader = Reader(name, folder)
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        line, column, words = yaml_mistakes.describe(error, text)
        reader.mistake(Mark(line, column),
                       f"{words}{BRACKETS if BRACKETED.search(text) else ''}")
        reader.fail()
    if root is None:
        reader.mistake(Mark(1, 1), "the file is empty: docs/topologies.md has an example")
        reader.fail()
    groups = {key: value for key, _, value in
              reader.mapping(root, "a topology", TOP_KEYS)}
    for key in TOP_KEYS:
        if key in groups:
            getattr(reader, key)(groups[key])
    if not reader.mistakes:
        reader.check()
    if reader.mistakes:
        reader.fail()
    return reader.found


def read(path: Path) -> Topology:
    return load(yaml_mistakes.read_file(path), str(path), path.parent)
