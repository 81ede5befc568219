# SPDX-License-Identifier: BSD-2-Clause
"""A drive's configuration as keys and values, and its consistency rules.

The keys, their ranges and defaults come from firmware/settings/settings.toml, as
in the firmware.  The rules that relate several keys exist twice, here and in
firmware/settings/config_check.c; tests/py/test_settings.py checks that both
agree.  `essd config --keys` lists the keys for users.
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass

from ..base.errors import EssdError
from . import block as config_block
from .schema import Setting, schema

Values = dict[str, str]         # by key, in the order of KEYS

NONE = "none"
SHOWN_MAX = 60                  # characters of a refused value in a message
KEY_SHOWN_MAX = 40              # characters of an unknown key in a message
NUMBER = re.compile(r"0|[1-9][0-9]{0,4}")


class Refused(EssdError):
    """A key or a value is not valid; the text says why."""


@dataclass(frozen=True)
class Kind:
    """The values that a key takes."""

    allowed: str                        # for messages: "a number from 1 to 9"
    parse: Callable[[str], str]         # returns the value as the drive shows it
    name: str                           # the kind's name in the schema


# Kinds

def words(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in names:
            raise Refused
        return text
    return parse


def number(least: int, most: int) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not NUMBER.fullmatch(text) or not least <= int(text) <= most:
            raise Refused
        return text
    return parse


def ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Parse an address: RFC 4291 section 2.2 forms 1 and 2, or dotted decimal.

    A zone ("%eth0") is refused.
    """
    if ":" in text and ("." in text or "%" in text):
        raise Refused
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise Refused from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        raise Refused
    return address


def address(*versions: int) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text == NONE:
            return NONE
        found = ip(text)
        if found.version not in versions:
            raise Refused
        return NONE if found.is_unspecified else str(found)
    return parse


def network(*versions: int) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text == NONE:
            return NONE
        left, slash, length = text.partition("/")
        found = ip(left)
        if not slash or found.version not in versions or \
                not NUMBER.fullmatch(length) or \
                not 1 <= int(length) <= found.max_prefixlen:
            raise Refused
        return f"{found}/{length}"
    return parse


def parse_name(text: str) -> str:
    if not re.fullmatch(r"[!-~]{1,32}", text):
        raise Refused
    return text


def nsids_of(text: str) -> frozenset[int]:
    """The NSIDs of a list such as 1,3-5, whose numbers rise."""
    if text == NONE:
        return frozenset()
    found: list[int] = []
    for item in text.split(","):
        match = re.fullmatch(r"([1-9][0-9]{0,2})(?:-([1-9][0-9]{0,2}))?", item)
        if not match:
            raise Refused
        first, last = int(match[1]), int(match[2] or match[1])
        if first <= (found[-1] if found else 0) or not first <= last <= config_block.NSIDS:
            raise Refused
        found += range(first, last + 1)
    nsids = frozenset(found)
    if len(config_block.nsid_runs(nsids)) > config_block.NSID_RUNS:
        raise Refused
    return nsids


def nsids_text(nsids: frozenset[int]) -> str:
    return ",".join(str(first) if first == last else f"{first}-{last}"
                    for first, last in config_block.nsid_runs(nsids)) or NONE


def parse_priorities(text: str) -> str:
    if text in ("all", NONE):
        return text
    if not re.fullmatch(r"[0-7](,[0-7])*", text):
        raise Refused
    found = text.split(",")
    if found != sorted(set(found)):
        raise Refused
    return "all" if len(found) == 8 else text


def parse_namespaces(text: str) -> str:
    return nsids_text(nsids_of(text))


PARSERS = {
    "name": parse_name, "network4": network(4), "network6": network(6),
    "network": network(4, 6), "address4": address(4), "address6": address(6),
    "address": address(4, 6), "switch": words("on", "off"),
    "priorities": parse_priorities, "namespaces": parse_namespaces,
}


def parser(setting: Setting) -> Callable[[str], str]:
    if setting.kind == "number":
        return number(setting.min, setting.max)
    if setting.kind == "choice":
        return words(*setting.values)
    return PARSERS[setting.kind]


# Every key, in the order in which the drive lists them.
KEYS: dict[str, Kind] = {
    key: Kind(setting.allowed, parser(setting), setting.kind)
    for key, setting in schema().key_rows()}
DEFAULTS: Values = {key: setting.default for key, setting in schema().key_rows()}
GROUPS = schema().groups


def distance(key: str, known: str) -> int:
    """The Levenshtein distance between two keys."""
    row = list(range(len(known) + 1))
    for c in key:
        before, row = row, [row[0] + 1]
        for n, other in enumerate(known):
            row.append(min(before[n + 1] + 1, row[n] + 1, before[n] + (c != other)))
    return row[-1]


def nearest(key: str) -> str:
    """The first key that begins or ends with `key`, else the most similar one.

    This is the firmware's rule, so that both name the same key; chosen.nearest() is
    the rule for all other words.
    """
    return min(KEYS, key=lambda known: 0 if known.startswith(f"{key}.")
               or known.endswith(f".{key}") else distance(key[:KEY_SHOWN_MAX], known))


def explain(key: str) -> str:
    """Why a key does not exist, in the same words as the firmware."""
    group, _, rest = key.partition(".")
    if group in GROUPS and rest[:1].isdigit():
        known = GROUPS[group]
        if not (int(rest[0]) < known.count and rest[1:2] in ("", ".")):
            return f"{key[:KEY_SHOWN_MAX]}: {known.too_many}"
    return f"there is no key {key[:KEY_SHOWN_MAX]}; the nearest is {nearest(key)}"


def parse(key: str, text: str) -> str:
    """Parse a value; return it as the drive shows it, or raise Refused."""
    kind = KEYS.get(key)
    if kind is None:
        raise Refused(explain(key))
    try:
        return kind.parse(text)
    except Refused:
        raise Refused(f"{key}: {text[:SHOWN_MAX]} is not {kind.allowed}") from None


# Conversion to and from the configuration block in flash

def on_off(is_on: bool) -> str:
    return "on" if is_on else "off"


def or_none(value: object) -> str:
    return NONE if value is None or str(value) in ("", "0.0.0.0", "::") else str(value)


def port_values(config: config_block.Config, n: int) -> Values:
    port, services = config.ports[n], config.services
    return {
        "ipv4": or_none(port.ipv4), "ipv4-gateway": or_none(port.ipv4_gateway),
        "ipv6": or_none(port.ipv6), "ipv6-gateway": or_none(port.ipv6_gateway),
        "dhcp": on_off(services.dhcp[n]), "slaac": on_off(port.slaac),
        "probe": on_off(port.probe), "vlan": str(port.vlan),
        "priority": str(port.priority), "mtu": str(port.mtu),
        "speed": str(port.speed), "fec": port.fec, "lldp": services.lldp[n],
    }


def address_values(found: config_block.Address | None) -> Values:
    if found is None:
        return {"ip": NONE, "port": "0", "vlan": "0"}
    return {"ip": str(found.address), "port": str(found.port), "vlan": str(found.vlan)}


def priorities(mask: int) -> str:
    found = ",".join(str(n) for n in range(8) if mask >> n & 1)
    return "all" if mask == 0xff else found or NONE


def from_config(config: config_block.Config) -> Values:
    services, net = config.services, config.network
    extra = [*net.extra, *[None] * (config_block.EXTRA_MAX - len(net.extra))]
    values = {"name": services.name or NONE}
    for n in range(2):
        values |= {f"port.{n}.{key}": value
                   for key, value in port_values(config, n).items()}
    for n, found in enumerate(extra):
        values |= {f"address.{n}.{key}": value
                   for key, value in address_values(found).items()}
    values |= {
        "dhcp.fast": on_off(net.dhcp_fast),
        "lldp.interval": str(services.lldp_interval or DEFAULTS["lldp.interval"]),
        "lldp.hold": str(services.lldp_hold or DEFAULTS["lldp.hold"]),
        "sntp.server": services.sntp_server or NONE,
        "sntp.poll": str(services.sntp_poll or DEFAULTS["sntp.poll"]),
        "mdns": on_off(net.mdns),
        "lag.mode": net.lag, "lag.lacp-fast": on_off(net.lacp_fast),
        "lag.primary": str(net.lag_primary), "lag.revert": on_off(net.lag_revert),
        "roce.v1": on_off(net.roce_v1), "roce.cnp": on_off(net.cnp),
        "roce.dcqcn": on_off(net.dcqcn), "pfc": priorities(net.pfc),
        "echo": on_off(net.echo), "tcp.echo": on_off(net.tcp_echo),
        "namespaces.count": str(net.ns_count),
        "namespaces.size": str(net.ns_size), "namespaces.4096": on_off(net.ns_4k),
        "nvme.tcp": on_off(net.nvme_tcp), "nvme.tls": net.tls, "nvme.iwarp": on_off(net.nvme_iwarp),
        "iwarp.crc": on_off(net.iwarp_crc), "discovery.rdma": net.listed,
        "nvme.profile": net.profile,
        "aoe.export": nsids_text(config.aoe.exports), "aoe.shelf": str(config.aoe.shelf),
    }
    return values


def port_of(values: Values, n: int) -> config_block.Port:
    def value(key: str) -> str:
        return values[f"port.{n}.{key}"]

    ipv4, ipv6 = value("ipv4"), value("ipv6")
    gateway4, gateway6 = value("ipv4-gateway"), value("ipv6-gateway")
    return config_block.Port(
        None if ipv4 == NONE else ipaddress.IPv4Interface(ipv4),
        None if ipv6 == NONE else ipaddress.IPv6Interface(ipv6),
        ipaddress.IPv4Address(0 if gateway4 == NONE else gateway4),
        ipaddress.IPv6Address(0 if gateway6 == NONE else gateway6),
        int(value("mtu")), value("fec"), int(value("speed")), int(value("vlan")),
        int(value("priority")), value("slaac") == "on", value("probe") == "on")


def address_of(values: Values, n: int) -> config_block.Address | None:
    text = values[f"address.{n}.ip"]
    return None if text == NONE else config_block.Address(
        int(values[f"address.{n}.port"]), ipaddress.ip_interface(text),
        int(values[f"address.{n}.vlan"]))


def mask_of(text: str) -> int:
    if text in ("all", NONE):
        return 0xff if text == "all" else 0
    return sum(1 << int(n) for n in text.split(","))


def to_config(values: Values) -> config_block.Config:
    """The configuration block for `values`, which must contain every key."""
    def is_on(key: str) -> bool:
        return values[key] == "on"

    def text(key: str) -> str:
        return "" if values[key] == NONE else values[key]

    services = config_block.Services(
        (is_on("port.0.dhcp"), is_on("port.1.dhcp")),
        (values["port.0.lldp"], values["port.1.lldp"]), int(values["lldp.hold"]),
        int(values["lldp.interval"]), text("sntp.server"), int(values["sntp.poll"]),
        text("name"))
    net = config_block.Network(
        tuple(address_of(values, n) for n in range(config_block.EXTRA_MAX)),
        values["lag.mode"], is_on("lag.lacp-fast"), int(values["lag.primary"]),
        is_on("lag.revert"), is_on("roce.v1"), is_on("roce.dcqcn"), is_on("roce.cnp"),
        mask_of(values["pfc"]), is_on("echo"), is_on("dhcp.fast"),
        int(values["namespaces.count"]), int(values["namespaces.size"]),
        is_on("namespaces.4096"), values["nvme.profile"], is_on("mdns"),
        is_on("tcp.echo"), is_on("nvme.tcp"), is_on("nvme.iwarp"), is_on("iwarp.crc"),
        values["discovery.rdma"], values["nvme.tls"])
    aoe = config_block.Aoe(nsids_of(values["aoe.export"]), int(values["aoe.shelf"]))
    return config_block.Config((port_of(values, 0), port_of(values, 1)), services=services,
                        network=net, aoe=aoe)


# Rules that relate several keys

def is_host(found: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """True for a unicast address that is neither loopback nor unspecified."""
    if isinstance(found, ipaddress.IPv4Address):
        return found.packed[0] not in (0, 127) and found.packed[0] < 224
    return not (found.is_unspecified or found.is_loopback or found.is_multicast)


def is_host_of_net(found: ipaddress.IPv4Interface | ipaddress.IPv6Interface) -> bool:
    net = found.network
    ends = isinstance(net, ipaddress.IPv4Network) and net.prefixlen < 31 and \
        found.ip in (net.network_address, net.broadcast_address)
    return is_host(found.ip) and not ends


class Check:
    """Collects the mistakes in a whole configuration."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.mistakes: list[str] = []
        self.own: dict[object, str] = {}

    def address(self, key: str) -> None:
        text = self.values[key]
        if text == NONE:
            return
        found = ipaddress.ip_interface(text)
        if not is_host_of_net(found):
            self.mistakes.append(f"{key}: {text} cannot be the address of a host")
        elif found.ip in self.own:
            self.mistakes.append(f"{key}: {found.ip} is the address "
                                 f"{self.own[found.ip]} already")
        else:
            self.own[found.ip] = key

    def gateway(self, n: int, family: str) -> None:
        key, own = f"port.{n}.{family}-gateway", self.values[f"port.{n}.{family}"]
        text = self.values[key]
        if text == NONE:
            return
        found = ipaddress.ip_address(text)
        if own == NONE:
            self.mistakes.append(f"{key}: set port.{n}.{family} too, or choose none")
        elif not is_host(found):
            self.mistakes.append(f"{key}: {text} cannot be the address of a host")
        elif found not in ipaddress.ip_interface(own).network and not (
                found.version == 6 and found.is_link_local):
            self.mistakes.append(f"{key}: {text} is outside the port's network")
        elif found == ipaddress.ip_interface(own).ip:
            self.mistakes.append(f"{key}: {text} is the port's own address")

    def port(self, n: int) -> None:
        for family in ("ipv4", "ipv6"):
            self.address(f"port.{n}.{family}")
            self.gateway(n, family)
        if (self.values[f"port.{n}.fec"], self.values[f"port.{n}.speed"]) == (
                "rs", "10"):
            self.mistakes.append(f"port.{n}.fec: rs needs 25 Gb/s, but port.{n}.speed "
                                 "is 10")

    def extra(self, n: int) -> None:
        key = f"address.{n}"
        self.address(f"{key}.ip")
        if self.values[f"{key}.ip"] == NONE and (
                self.values[f"{key}.port"], self.values[f"{key}.vlan"]) != ("0", "0"):
            self.mistakes.append(f"{key}.ip: set it too, or choose 0 for its port and "
                                 "VLAN")

    def both_ports(self) -> None:
        for what, condition, why in (
                ("speed", True, "both ports need the same speed"),
                ("mtu", self.values["lag.mode"] != "off",
                 "aggregated ports need the same MTU")):
            first, second = (self.values[f"port.{n}.{what}"] for n in range(2))
            if condition and first != second:
                self.mistakes.append(f"port.1.{what}: {second} differs from port.0.{what}, "
                                     f"{first}; {why}")
        server = self.values["sntp.server"]
        if server != NONE and not is_host(ipaddress.ip_address(server)):
            self.mistakes.append(f"sntp.server: {server} cannot be the address of a host")


def check(values: Values) -> list[str]:
    """One line for each mistake; an empty list if the drive accepts the values."""
    found = Check(values)
    for n in range(2):
        found.port(n)
    for n in range(config_block.EXTRA_MAX):
        found.extra(n)
    found.both_ports()
    return found.mistakes


def changed(old: Values, new: Values) -> Values:
    """The keys of `new` whose values differ from those in `old`."""
    return {key: value for key, value in new.items() if old.get(key) != value}


