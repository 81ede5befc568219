# SPDX-License-Identifier: BSD-2-Clause
"""A drive's configuration as keys and values, and what goes together.

The same keys, values and messages as on the drive's console
(firmware/settings/config_text.c, config_check.c): tests/py/test_settings.py holds them
to each other.  docs/configuration.md is the list for people.
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass

from . import flash

Values = dict[str, str]         # by key, in the order of KEYS

NONE = "none"
SHOWN_MAX = 60                  # of a refused value
KEY_SHOWN_MAX = 40
NUMBER = re.compile(r"0|[1-9][0-9]{0,4}")


class Refused(Exception):
    """A value that is not one of the kind."""


@dataclass(frozen=True)
class Kind:
    """`parse` gives a value as the drive shows it."""

    allowed: str
    parse: Callable[[str], str]


# Kinds

def words(*names: str) -> Kind:
    def parse(text: str) -> str:
        if text not in names:
            raise Refused
        return text
    return Kind(" or ".join(filter(None, (", ".join(names[:-1]), names[-1]))), parse)


def number(least: int, most: int) -> Kind:
    def parse(text: str) -> str:
        if not NUMBER.fullmatch(text) or not least <= int(text) <= most:
            raise Refused
        return text
    return Kind(f"a number from {least} to {most}", parse)


def ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """As RFC 4291 section 2.2 forms 1 and 2, or dotted decimal; no zone."""
    if ":" in text and ("." in text or "%" in text):
        raise Refused
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise Refused from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        raise Refused
    return address


def address(allowed: str, *versions: int) -> Kind:
    def parse(text: str) -> str:
        if text == NONE:
            return NONE
        found = ip(text)
        if found.version not in versions:
            raise Refused
        return NONE if found.is_unspecified else str(found)
    return Kind(f"{allowed}, or none", parse)


def network(allowed: str, *versions: int) -> Kind:
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
    return Kind(f"{allowed}, or none", parse)


def parse_name(text: str) -> str:
    if not re.fullmatch(r"[!-~]{1,32}", text):
        raise Refused
    return text


def parse_priorities(text: str) -> str:
    if text in ("all", NONE):
        return text
    if not re.fullmatch(r"[0-7](,[0-7])*", text):
        raise Refused
    found = text.split(",")
    if found != sorted(set(found)):
        raise Refused
    return "all" if len(found) == 8 else text


SWITCH = Kind("on or off", words("on", "off").parse)
# Another order than the numbers in flash have: the usual ones first.
LLDP = words("both", "send", "receive", "off")

PORT_KEYS = {
    "ipv4": network("an IPv4 address and its prefix length, such as 10.0.0.10/24", 4),
    "ipv4-gateway": address("an IPv4 address", 4),
    "ipv6": network("an IPv6 address and its prefix length, such as fd00::10/64", 6),
    "ipv6-gateway": address("an IPv6 address", 6),
    "dhcp": SWITCH,
    "slaac": SWITCH,
    "probe": SWITCH,
    "vlan": number(0, 4094),
    "priority": number(0, 7),
    "mtu": number(1280, 9000),
    "speed": words("10", "25"),
    "fec": words("none", "fc", "rs"),
    "lldp": LLDP,
}
ADDRESS_KEYS = {
    "ip": network("an address and its prefix length, such as 10.0.0.11/24", 4, 6),
    "port": words("0", "1"),
    "vlan": number(0, 4094),
}
KEYS: dict[str, Kind] = {
    "name": Kind("1 to 32 printable characters without spaces, or none", parse_name),
    **{f"port.{n}.{key}": kind for n in range(2) for key, kind in PORT_KEYS.items()},
    **{f"address.{n}.{key}": kind for n in range(flash.EXTRA_MAX)
       for key, kind in ADDRESS_KEYS.items()},
    "dhcp.fast": SWITCH,
    "lldp.interval": number(1, 3600),
    "lldp.hold": number(1, 100),
    "sntp.server": address("an IPv4 or IPv6 address", 4, 6),
    "sntp.poll": number(1, 65535),
    "lag.mode": words("off", "active-standby", "lacp"),
    "lag.lacp-fast": SWITCH,
    "lag.primary": words("0", "1"),
    "lag.revert": SWITCH,
    "roce.v1": SWITCH,
    "roce.cnp": SWITCH,
    "roce.dcqcn": SWITCH,
    "pfc": Kind("priorities such as 0,3,4, or all, or none", parse_priorities),
    "echo": SWITCH,
}
TOO_MANY = {
    "port": (2, "the ports are 0 and 1"),
    "address": (flash.EXTRA_MAX, "a drive has eight addresses: two of each port, and "
                                 "address.0 to address.3"),
}


def explain(key: str) -> str:
    """Why there is no such key."""
    group, _, rest = key.partition(".")
    if group in TOO_MANY and rest[:1].isdigit():
        count, why = TOO_MANY[group]
        if not (int(rest[0]) < count and rest[1:2] in ("", ".")):
            return f"{key[:KEY_SHOWN_MAX]}: {why}"
    return f"there is no key {key[:KEY_SHOWN_MAX]}"


def parse(key: str, text: str) -> str:
    """A value as the drive would show it; Refused says what is wrong."""
    kind = KEYS.get(key)
    if kind is None:
        raise Refused(explain(key))
    try:
        return kind.parse(text)
    except Refused:
        raise Refused(f"{key}: {text[:SHOWN_MAX]} is not {kind.allowed}") from None


# To and from what the flash holds

def on_off(is_on: bool) -> str:
    return "on" if is_on else "off"


def or_none(value: object) -> str:
    return NONE if value is None or str(value) in ("", "0.0.0.0", "::") else str(value)


def port_values(config: flash.Config, n: int) -> Values:
    port, services = config.ports[n], config.services
    return {
        "ipv4": or_none(port.ipv4), "ipv4-gateway": or_none(port.ipv4_gateway),
        "ipv6": or_none(port.ipv6), "ipv6-gateway": or_none(port.ipv6_gateway),
        "dhcp": on_off(services.dhcp[n]), "slaac": on_off(port.slaac),
        "probe": on_off(port.probe), "vlan": str(port.vlan),
        "priority": str(port.priority), "mtu": str(port.mtu),
        "speed": str(port.speed), "fec": port.fec, "lldp": services.lldp[n],
    }


def address_values(found: flash.Address | None) -> Values:
    if found is None:
        return {"ip": NONE, "port": "0", "vlan": "0"}
    return {"ip": str(found.address), "port": str(found.port), "vlan": str(found.vlan)}


def priorities(mask: int) -> str:
    found = ",".join(str(n) for n in range(8) if mask >> n & 1)
    return "all" if mask == 0xff else found or NONE


def from_config(config: flash.Config) -> Values:
    services, net = config.services, config.network
    extra = [*net.extra, *[None] * (flash.EXTRA_MAX - len(net.extra))]
    values = {"name": services.name or NONE}
    for n in range(2):
        values |= {f"port.{n}.{key}": value
                   for key, value in port_values(config, n).items()}
    for n, found in enumerate(extra):
        values |= {f"address.{n}.{key}": value
                   for key, value in address_values(found).items()}
    values |= {
        "dhcp.fast": on_off(net.dhcp_fast),
        "lldp.interval": str(services.lldp_interval or 30),
        "lldp.hold": str(services.lldp_hold or 4),
        "sntp.server": services.sntp_server or NONE,
        "sntp.poll": str(services.sntp_poll or 1024),
        "lag.mode": net.lag, "lag.lacp-fast": on_off(net.lacp_fast),
        "lag.primary": str(net.lag_primary), "lag.revert": on_off(net.lag_revert),
        "roce.v1": on_off(net.roce_v1), "roce.cnp": on_off(net.cnp),
        "roce.dcqcn": on_off(net.dcqcn), "pfc": priorities(net.pfc),
        "echo": on_off(net.echo),
    }
    return values


def port_of(values: Values, n: int) -> flash.Port:
    def value(key: str) -> str:
        return values[f"port.{n}.{key}"]

    ipv4, ipv6 = value("ipv4"), value("ipv6")
    gateway4, gateway6 = value("ipv4-gateway"), value("ipv6-gateway")
    return flash.Port(
        None if ipv4 == NONE else ipaddress.IPv4Interface(ipv4),
        None if ipv6 == NONE else ipaddress.IPv6Interface(ipv6),
        ipaddress.IPv4Address(0 if gateway4 == NONE else gateway4),
        ipaddress.IPv6Address(0 if gateway6 == NONE else gateway6),
        int(value("mtu")), value("fec"), int(value("speed")), int(value("vlan")),
        int(value("priority")), value("slaac") == "on", value("probe") == "on")


def address_of(values: Values, n: int) -> flash.Address | None:
    text = values[f"address.{n}.ip"]
    return None if text == NONE else flash.Address(
        int(values[f"address.{n}.port"]), ipaddress.ip_interface(text),
        int(values[f"address.{n}.vlan"]))


def mask_of(text: str) -> int:
    if text in ("all", NONE):
        return 0xff if text == "all" else 0
    return sum(1 << int(n) for n in text.split(","))


def to_config(values: Values) -> flash.Config:
    """What is to be in flash; `values` has every key."""
    def is_on(key: str) -> bool:
        return values[key] == "on"

    def text(key: str) -> str:
        return "" if values[key] == NONE else values[key]

    services = flash.Services(
        (is_on("port.0.dhcp"), is_on("port.1.dhcp")),
        (values["port.0.lldp"], values["port.1.lldp"]), int(values["lldp.hold"]),
        int(values["lldp.interval"]), text("sntp.server"), int(values["sntp.poll"]),
        text("name"))
    net = flash.Network(
        tuple(address_of(values, n) for n in range(flash.EXTRA_MAX)),
        values["lag.mode"], is_on("lag.lacp-fast"), int(values["lag.primary"]),
        is_on("lag.revert"), is_on("roce.v1"), is_on("roce.dcqcn"), is_on("roce.cnp"),
        mask_of(values["pfc"]), is_on("echo"), is_on("dhcp.fast"))
    return flash.Config((port_of(values, 0), port_of(values, 1)), services=services,
                        network=net)


DEFAULTS = from_config(flash.Config())


# What goes together

def is_host(found: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Unicast, and not a machine's own."""
    if isinstance(found, ipaddress.IPv4Address):
        return found.packed[0] not in (0, 127) and found.packed[0] < 224
    return not (found.is_unspecified or found.is_loopback or found.is_multicast)


def is_host_of_net(found: ipaddress.IPv4Interface | ipaddress.IPv6Interface) -> bool:
    net = found.network
    ends = isinstance(net, ipaddress.IPv4Network) and net.prefixlen < 31 and \
        found.ip in (net.network_address, net.broadcast_address)
    return is_host(found.ip) and not ends


class Check:
    """Collects the mistakes of a whole configuration."""

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
            self.mistakes.append(f"{key}: {text} is no address of a host")
        elif found.ip in self.own:
            self.mistakes.append(f"{key}: {found.ip} is {self.own[found.ip]}, too")
        else:
            self.own[found.ip] = key

    def gateway(self, n: int, family: str) -> None:
        key, own = f"port.{n}.{family}-gateway", self.values[f"port.{n}.{family}"]
        text = self.values[key]
        if text == NONE:
            return
        found = ipaddress.ip_address(text)
        if own == NONE:
            self.mistakes.append(f"{key}: there is no port.{n}.{family}")
        elif not is_host(found):
            self.mistakes.append(f"{key}: {text} is no address of a host")
        elif found not in ipaddress.ip_interface(own).network and not (
                found.version == 6 and found.is_link_local):
            self.mistakes.append(f"{key}: {text} is not in the port's network")
        elif found == ipaddress.ip_interface(own).ip:
            self.mistakes.append(f"{key}: {text} is the port itself")

    def port(self, n: int) -> None:
        for family in ("ipv4", "ipv6"):
            self.address(f"port.{n}.{family}")
            self.gateway(n, family)
        if (self.values[f"port.{n}.fec"], self.values[f"port.{n}.speed"]) == (
                "rs", "10"):
            self.mistakes.append(f"port.{n}.fec: rs is for 25 Gb/s, not 10")

    def extra(self, n: int) -> None:
        key = f"address.{n}"
        self.address(f"{key}.ip")
        if self.values[f"{key}.ip"] == NONE and (
                self.values[f"{key}.port"], self.values[f"{key}.vlan"]) != ("0", "0"):
            self.mistakes.append(f"{key}.ip: none, but its port or VLAN is set")

    def both_ports(self) -> None:
        for what, condition, why in (
                ("speed", True, "both ports have one speed"),
                ("mtu", self.values["lag.mode"] != "off",
                 "aggregated ports have one MTU")):
            first, second = (self.values[f"port.{n}.{what}"] for n in range(2))
            if condition and first != second:
                self.mistakes.append(f"port.1.{what}: {second}, but port.0.{what} is "
                                     f"{first}: {why}")
        server = self.values["sntp.server"]
        if server != NONE and not is_host(ipaddress.ip_address(server)):
            self.mistakes.append(f"sntp.server: {server} is no address of a host")


def check(values: Values) -> list[str]:
    """One line a mistake; none if the drive would take it."""
    found = Check(values)
    for n in range(2):
        found.port(n)
    for n in range(flash.EXTRA_MAX):
        found.extra(n)
    found.both_ports()
    return found.mistakes


def changed(old: Values, new: Values) -> Values:
    return {key: value for key, value in new.items() if old.get(key) != value}


