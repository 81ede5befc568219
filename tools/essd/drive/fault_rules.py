# SPDX-License-Identifier: BSD-2-Clause
"""Fault rules: one language for the wire, RDMA, PDUs, NVMe commands and the medium.

docs/faults.md describes the language for people.  This module reads rules, on a
command line or in YAML, and translates them for the models and the firmware.
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..base import yaml_mistakes
from ..base.chosen import mean_or
from ..base.errors import EssdError, Mistakes

SITES = ("wire", "rdma", "pdu", "nvme", "media", "nand")
FIRMWARE_SITES = ("pdu", "nvme")    # the firmware keeps their rules, not the model
DIRECTIONS = {"in": 1, "out": 2}
OPERATIONS = {"read": 1, "write": 2, "zeroes": 4, "flush": 8}
NAND_OPERATIONS = {"read": 1, "program": 2, "erase": 4}
NAND_PLACES = ("channel", "die", "plane", "block", "wordline", "page", "unit")
REQUESTS = {"send": 1, "write": 2, "read": 4}
QUEUES = ("admin", "io")
PDU_TYPES = {"ic-req": 0, "ic-resp": 1, "h2c-term": 2, "c2h-term": 3, "capsule-cmd": 4,
             "capsule-resp": 5, "h2c-data": 6, "c2h-data": 7, "r2t": 9}
BTH_OPCODES = {
    "send-first": 0x00, "send-middle": 0x01, "send-last": 0x02, "send-only": 0x04,
    "write-first": 0x06, "write-middle": 0x07, "write-last": 0x08, "write-only": 0x0a,
    "read-request": 0x0c, "read-response-first": 0x0d, "read-response-middle": 0x0e,
    "read-response-last": 0x0f, "read-response-only": 0x10, "ack": 0x11,
    "send-last-invalidate": 0x16, "send-only-invalidate": 0x17, "ud-send": 0x64,
    "cnp": 0x81}
TCP_FLAGS = {"fin": 0x01, "syn": 0x02, "rst": 0x04, "psh": 0x08, "ack": 0x10, "urg": 0x20,
             "ece": 0x40, "cwr": 0x80}
NVM_OPCODES = {"flush": 0x00, "write": 0x01, "read": 0x02, "write-zeroes": 0x08,
               "dataset-management": 0x09}
ADMIN_OPCODES = {"get-log-page": 0x02, "identify": 0x06, "abort": 0x08,
                 "set-features": 0x09, "get-features": 0x0a,
                 "async-event-request": 0x0c, "keep-alive": 0x18}
ETHERTYPES = {"ipv4": 0x0800, "arp": 0x0806, "ipv6": 0x86dd, "lldp": 0x88cc,
              "slow": 0x8809, "roce-v1": 0x8915, "aoe": 0x88a2}
AOE_COMMANDS = {"ata": 0, "config": 1, "mask": 2, "reserve": 3}
ATA_COMMANDS = {"read": 0x20, "read-ext": 0x24, "write": 0x30, "write-ext": 0x34,
                "identify": 0xec}
NAKS = {"psn-sequence": 0, "invalid-request": 1, "remote-access": 2,
        "remote-operation": 3}
# Status code type (bits 8 to 10) and status code, as in the specification.
STATUSES = {
    "invalid-field": 0x002, "data-transfer-error": 0x004, "internal-error": 0x006,
    "abort-requested": 0x007, "namespace-not-ready": 0x082, "write-fault": 0x280,
    "unrecovered-read-error": 0x281, "guard-check-error": 0x282,
    "access-denied": 0x286, "internal-path-error": 0x300,
    "ana-inaccessible": 0x302, "ana-transition": 0x303}
STATUS_MAX = 0x7ff          # status code type and code
STATUS_DNR = 0x4000         # Do Not Retry
DO_NOT_RETRY = "dnr"
MOMENTS = {"before": 0, "during": 1}     # of a power cut: enum fault_moment
DURATIONS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
RNR_TIMER_1_MS = 14
RULES_MAX = 32
FIRMWARE_RULES_MAX = 16     # of them for each place of the firmware
DELAY_MAX_S = 3600
LATER_FRAMES = 1
SECTOR = 512
U32, U64 = (1 << 32) - 1, (1 << 64) - 1


class Wrong(EssdError):
    """What is wrong with a word of a rule; the text is a clause of one line."""

    def __init__(self, text: str, word: str = "") -> None:
        super().__init__(text)
        self.word = word        # the word that is wrong, to find its place


def read_number(text: str, most: int) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        raise Wrong(f"{text} is not a number", text) from None
    if not 0 <= number <= most:
        raise Wrong(f"{text} is not between 0 and {most}", text)
    return number


def read_duration(text: str) -> int:
    """Nanoseconds of `5ms`, `20us`, `1.5s`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s)", text)
    if not match:
        raise Wrong(f"{text} is not a duration such as 5ms, 20us or 1.5s", text)
    duration_ns = float(match[1]) * DURATIONS[match[2]]
    if duration_ns > DELAY_MAX_S * DURATIONS["s"]:
        raise Wrong(f"{text} is more than an hour ({DELAY_MAX_S}s)", text)
    return round(duration_ns)


def read_range(text: str, most: int, names: dict[str, int] | None = None) -> tuple[int, int]:
    """(first, last) of `7`, `0x10-0x1f` or a name."""
    if names and text in names:
        return names[text], names[text]
    first, dash, last = text.partition("-")
    if names and not first[:1].isdigit():
        raise Wrong(f"{text}: unknown name; {mean_or(text, names)}", text)
    low = read_number(first, most)
    high = read_number(last, most) if dash else low
    if high < low:
        raise Wrong(f"{text}: the range ends before it begins", text)
    return low, high


def read_one(text: str, most: int, names: dict[str, int]) -> int:
    """A number or a name, which cannot be a range."""
    first, last = read_range(text, most, names)
    if first != last:
        raise Wrong(f"{text}: this cannot be a range", text)
    return first


def read_names(text: str, names: dict[str, int]) -> int:
    """The bits of names that are separated by commas."""
    bits = 0
    for name in text.split(","):
        if name not in names:
            raise Wrong(f"{name}: unknown name; {mean_or(name, names)}", text)
        bits |= names[name]
    return bits


# Fields of frames

@dataclass(frozen=True)
class FrameField:
    """Where a field is: see struct fault_condition of hw-model/fault."""

    layer: int
    offset: int
    width: int
    mask: int = 0
    shift: int = 0
    names: dict[str, int] | None = None
    kind: str = "number"        # or "mac", "ipv4", "ipv6", "flags", "presence"
    ethertype: int = 0          # only frames of this type have the field

    @property
    def whole(self) -> int:
        return (1 << 8 * self.width) - 1

    def conditions(self, text: str) -> list[str]:
        own = FIELDS["eth.type"].conditions(str(self.ethertype)) if self.ethertype else []
        return own + self.value_conditions(text)

    def value_conditions(self, text: str) -> list[str]:
        if self.kind == "ipv6":
            value = int(read_address(text, 6))
            halves = (value >> 64, value & U64)
            return [self.condition(self.offset + 8 * n, 8, 0, half, half)
                    for n, half in enumerate(halves)]
        if self.kind == "flags":
            mask, low = read_flags(text)
            return [self.condition(self.offset, self.width, mask, low, low)]
        if self.kind == "presence":
            if text != "yes":
                raise Wrong(f"{text}: write yes, or leave the key out", text)
            return [self.condition(self.offset, self.width, 0, 0, self.whole)]
        if self.kind == "ipv4":
            low = high = int(read_address(text, 4))
        elif self.kind == "mac":
            low = high = read_mac(text)
        else:
            most = (self.mask or self.whole) >> self.shift
            low, high = (end << self.shift
                         for end in read_range(text, most, self.names))
        return [self.condition(self.offset, self.width, self.mask, low, high)]

    def condition(self, offset: int, width: int, mask: int, low: int, high: int) -> str:
        mask = mask or (1 << 8 * width) - 1
        return f"field={self.layer}:{offset}:{width}:{mask:x}:{low:x}:{high:x}"


def read_address(text: str, version: int) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise Wrong(f"{text} is not an IP address", text) from None
    if address.version != version:
        raise Wrong(f"{text} is not an IPv{version} address", text)
    return address


def read_mac(text: str) -> int:
    if not re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", text):
        raise Wrong(f"{text} is not a MAC address such as 02:e5:5e:00:00:01", text)
    return int(text.replace(":", ""), 16)


def read_flags(text: str) -> tuple[int, int]:
    """Mask and value of `syn,no-ack`."""
    mask = value = 0
    for word in text.split(","):
        name = word.removeprefix("no-")
        if name not in TCP_FLAGS:
            raise Wrong(f"{word}: unknown flag; {mean_or(name, TCP_FLAGS)}", text)
        if mask & TCP_FLAGS[name]:
            raise Wrong(f"{name}: the flag occurs twice", text)
        mask |= TCP_FLAGS[name]
        value |= TCP_FLAGS[name] if name == word else 0
    return mask, value


ETH, VLAN, IPV4, IPV6, UDP, BTH, SEND, TCP, TCP_DATA = range(9)
FIELDS = {
    "eth.dst": FrameField(ETH, 0, 6, kind="mac"),
    "eth.src": FrameField(ETH, 6, 6, kind="mac"),
    "eth.type": FrameField(ETH, 12, 2, names=ETHERTYPES),
    "vlan.id": FrameField(VLAN, 0, 2, mask=0xfff),
    "vlan.priority": FrameField(VLAN, 0, 2, mask=0xe000, shift=13),
    "ip.dscp": FrameField(IPV4, 1, 1, mask=0xfc, shift=2),
    "ip.protocol": FrameField(IPV4, 9, 1),
    "ip.src": FrameField(IPV4, 12, 4, kind="ipv4"),
    "ip.dst": FrameField(IPV4, 16, 4, kind="ipv4"),
    "ip6.src": FrameField(IPV6, 8, 16, kind="ipv6"),
    "ip6.dst": FrameField(IPV6, 24, 16, kind="ipv6"),
    "udp.src": FrameField(UDP, 0, 2),
    "udp.dst": FrameField(UDP, 2, 2),
    "tcp.src": FrameField(TCP, 0, 2),
    "tcp.dst": FrameField(TCP, 2, 2),
    "tcp.seq": FrameField(TCP, 4, 4),
    "tcp.ack": FrameField(TCP, 8, 4),
    "tcp.flags": FrameField(TCP, 13, 1, kind="flags"),
    "tcp.window": FrameField(TCP, 14, 2),
    "tcp.data": FrameField(TCP_DATA, 0, 1, kind="presence"),
    # The header of AoE follows the type, and an ATA command that header.
    "aoe.answer": FrameField(ETH, 14, 1, mask=0x08, shift=3, ethertype=0x88a2),
    "aoe.major": FrameField(ETH, 16, 2, ethertype=0x88a2),
    "aoe.minor": FrameField(ETH, 18, 1, ethertype=0x88a2),
    "aoe.command": FrameField(ETH, 19, 1, names=AOE_COMMANDS, ethertype=0x88a2),
    "aoe.tag": FrameField(ETH, 20, 4, ethertype=0x88a2),
    "aoe.ata": FrameField(ETH, 27, 1, names=ATA_COMMANDS, ethertype=0x88a2),
    "bth.opcode": FrameField(BTH, 0, 1, names=BTH_OPCODES),
    "bth.ack-requested": FrameField(BTH, 8, 1, mask=0x80, shift=7),
    "bth.qpn": FrameField(BTH, 5, 3),
    "bth.psn": FrameField(BTH, 9, 3),
    "nvme.opcode": FrameField(SEND, 0, 1, names=NVM_OPCODES),
    "nvme.cid": FrameField(SEND, 2, 2),
    "nvme.nsid": FrameField(SEND, 4, 4),
    "nvme.slba": FrameField(SEND, 40, 8),
}
CONDITIONS_MAX = 8

MATCHES: dict[str, tuple[str, ...]] = {
    "wire": ("port", "direction", *FIELDS),
    "rdma": ("qpn", "request", "direction"),
    "pdu": ("direction", "type", "queue"),
    "nvme": ("queue", "opcode", "nsid", "lba", "controller"),
    "media": ("operation", "lba"),
    "nand": ("operation", *NAND_PLACES),
}
WHENS = ("nth", "every", "after", "times", "probability", "seed")
ACTIONS: dict[str, dict[str, str]] = {      # and what the argument is
    "wire": {"drop": "", "corrupt": "[bit]", "duplicate": "", "delay": "duration",
             "reorder": "[frames]", "bad-checksum": "", "zero-window": "",
             "power-cut": ""},
    "rdma": {"nak": "nak", "rnr": "[timer]", "transfer": "", "bad-checksum": "",
             "power-cut": ""},
    "pdu": {"header-digest": "", "data-digest": "", "reset": ""},
    "nvme": {"status": "status", "delay": "duration", "drop": ""},
    "media": {"error": "", "bits": "bits", "delay": "duration", "stuck": "",
              "power-cut": ""},
    "nand": {"error": "", "bits": "bits", "die": "", "transfer": "",
             "power-cut": "[moment]"},
}


EXAMPLES = {"duration": "5ms", "bits": "60", "nak": "remote-access", "status": "internal-error"}


@dataclass
class Rule:
    """One rule, as it was written; check() says whether it makes sense."""

    site: str
    match: dict[str, str] = field(default_factory=dict)
    when: dict[str, str] = field(default_factory=dict)
    action: str = ""
    argument: str = ""
    name: str = ""

    def text(self) -> str:
        """The rule in one line, as `essd faults add` takes it."""
        words = [self.site, *(f"{key}={value}" for key, value in self.match.items())]
        if self.when:
            words += ["when", *(f"{key}={value}" for key, value in self.when.items())]
        words += ["do", self.action + (f"={self.argument}" if self.argument else "")]
        return " ".join(words)

    def check(self) -> None:
        """Raise Wrong if a word of the rule makes no sense."""
        if self.site not in SITES:
            raise Wrong(f"{self.site}: no such place for faults; "
                        f"{mean_or(self.site, SITES)}", self.site)
        for key in self.match:
            if key in WHENS:
                raise Wrong(f"{key}: this belongs after `when`, as in when "
                            f"{key}={self.match[key]}", key)
            if key not in MATCHES[self.site]:
                raise Wrong(f"{key}: {self.site} rules do not match this; "
                            f"{mean_or(key, MATCHES[self.site])}", key)
        for key in self.when:
            if key not in WHENS:
                raise Wrong(f"{key}: unknown condition; {mean_or(key, WHENS)}", key)
        if self.action not in ACTIONS[self.site]:
            raise Wrong(f"{self.action or 'no action'}: {self.site} rules cannot do "
                        f"this; {mean_or(self.action, ACTIONS[self.site])}", self.action)
        if self.name and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", self.name):
            raise Wrong(f"{self.name}: a name has up to 40 letters, digits, ., _ and -",
                        self.name)
        self.check_argument()
        self.check_event()
        self.trigger_words()
        _ = self.for_firmware(1) if self.site in FIRMWARE_SITES else self.for_model(1)

    def check_event(self) -> None:
        """The keys of a rule fit its event, which some actions decide: a message or a
        packet's data for rdma, a request or a read of the cache for media."""
        others: tuple[str, ...] = ()
        if self.site == "rdma":
            others = {"transfer": ("request",), "bad-checksum": ("request", "direction")
                      }.get(self.action, ("direction",))
        if self.site == "media" and self.action == "bits":
            others = ("operation",)
        for other in others:
            if other in self.match:
                article = "an" if self.site == "rdma" else "a"
                raise Wrong(f"{other}: {article} {self.site} rule with {self.action} has "
                            "no such key", other)

    def check_argument(self) -> None:
        kind = ACTIONS[self.site][self.action]
        if self.argument and not kind:
            raise Wrong(f"{self.action} takes no argument", self.argument)
        if kind and not self.argument and not kind.startswith("["):
            raise Wrong(f"{self.action} needs a value: {self.action}="
                        f"{EXAMPLES[kind]}", self.action)

    def number(self, table: dict[str, str], key: str, most: int, default: int = 0) -> int:
        """A number of the rule; its key is named if it makes no sense."""
        try:
            return read_number(table[key], most) if key in table else default
        except Wrong as wrong:
            raise Wrong(f"{key}: {wrong}", wrong.word) from None

    def range(self, key: str, most: int,
              names: dict[str, int] | None = None) -> tuple[int, int]:
        try:
            return read_range(self.match[key], most, names)
        except Wrong as wrong:
            raise Wrong(f"{key}: {wrong}", wrong.word) from None

    def trigger(self) -> dict[str, int]:
        """When the rule fires, for model and firmware alike."""
        values: dict[str, int] = {
            key: self.number(self.when, key, U32)
            for key in ("nth", "every", "after", "times") if key in self.when}
        for key in ("nth", "every", "times"):
            if values.get(key) == 0:
                raise Wrong(f"{key}: events are counted from 1", self.when[key])
        if "probability" in self.when:
            values["chance"] = read_chance(self.when["probability"])
        if "seed" in self.when:
            values["seed"] = self.number(self.when, "seed", U32)
        return values

    def trigger_words(self) -> list[str]:
        return [f"{key}={value}" for key, value in self.trigger().items()]

    def counted(self) -> int:
        """A number of bits or frames, which are counted from 1."""
        number = read_number(self.argument, U32)
        if number == 0:
            raise Wrong(f"{self.action}: bits and frames are counted from 1",
                        self.argument)
        return number

    def status(self) -> int:
        """Status code type and code, and DNR, as in the status field of a completion."""
        text = self.argument.removesuffix(f",{DO_NOT_RETRY}")
        status = read_one(text, STATUS_MAX | STATUS_DNR, STATUSES)
        if status & ~(STATUS_MAX | STATUS_DNR):
            raise Wrong(f"{text} has bits beside status code type, status code and DNR "
                        f"({STATUS_MAX | STATUS_DNR:#x})", self.argument)
        if status & STATUS_MAX == 0:
            raise Wrong(f"{self.argument}: this status means success", self.argument)
        return status | (STATUS_DNR if text != self.argument else 0)

    def argument_value(self) -> int:
        """The action's argument as the model and the firmware take it."""
        if self.action == "delay":
            return read_duration(self.argument)
        if self.action == "nak":
            if self.argument not in NAKS:
                raise Wrong(f"{self.argument}: unknown NAK; "
                            f"{mean_or(self.argument, NAKS)}", self.argument)
            return NAKS[self.argument]
        if self.action == "rnr":
            return read_number(self.argument, 31) if self.argument else RNR_TIMER_1_MS
        if self.action == "status":
            return self.status()
        if self.action == "reorder":
            return self.counted() if self.argument else LATER_FRAMES
        if self.action == "power-cut":
            moment = self.argument or "before"
            if moment not in MOMENTS:
                raise Wrong(f"{moment}: unknown moment of a power cut; "
                            f"{mean_or(moment, MOMENTS)}", moment)
            return MOMENTS[moment]
        return self.counted() if self.argument else 0

    def match_words(self) -> list[str]:
        words: list[str] = []
        for key, text in self.match.items():
            try:
                words += MODEL_MATCH[self.site][key](text) \
                    if key in MODEL_MATCH[self.site] else FIELDS[key].conditions(text)
            except Wrong as wrong:
                raise Wrong(f"{key}: {wrong}", wrong.word) from None
        words = list(dict.fromkeys(words))
        if sum(word.startswith("field=") for word in words) > CONDITIONS_MAX:
            raise Wrong(f"a rule compares at most {CONDITIONS_MAX} fields")
        return words

    def for_model(self, number: int) -> str:
        """The rule as fault_rule_parse() of hw-model/fault takes it."""
        return " ".join([f"id={number}", f"site={self.site}", f"do={self.action}",
                         f"argument={self.argument_value()}", *self.match_words(),
                         *self.trigger_words()])

    def for_firmware(self, number: int) -> dict[str, int | str]:
        """The arguments of the management request fault-add."""
        values: dict[str, int | str] = {"rule": number, "do": self.action}
        if self.site == "pdu":
            values["place"] = self.site
            if "direction" in self.match:
                values["directions"] = read_names(self.match["direction"], DIRECTIONS)
            if "type" in self.match:
                values["type"] = read_one(self.match["type"], 0xff, PDU_TYPES)
        if self.action == "status":
            values["status"] = self.argument_value()
        if self.action == "delay":
            values["delay-us"] = max(1, self.argument_value() // 1000)
        queue = self.match.get("queue", "")
        if queue in QUEUES:
            values["queue"] = queue
        elif queue:
            values["qid"] = self.number(self.match, "queue", 0xffff)
        if "opcode" in self.match:
            names = ADMIN_OPCODES if queue == "admin" else NVM_OPCODES
            first, last = self.range("opcode", 0xff, names)
            if first != last:
                raise Wrong(f"opcode: {self.match['opcode']}: this cannot be a range",
                            self.match["opcode"])
            values["opcode"] = first
        if "lba" in self.match:
            values["first-lba"], values["last-lba"] = self.range("lba", U64)
        if "nsid" in self.match:
            values["nsid"] = self.number(self.match, "nsid", U32)
        if "controller" in self.match:
            values["controller"] = self.number(self.match, "controller", 0xffff)
        return values | self.trigger()


def read_chance(text: str) -> int:
    try:
        chance = float(text)
    except ValueError:
        chance = -1
    if not 0 <= chance <= 1:
        raise Wrong(f"probability: {text} is not between 0 and 1", text)
    return round(chance * (1 << 32))


def match_port(text: str) -> list[str]:
    return [f"ports={1 << read_number(text, 1)}"]


def match_direction(text: str) -> list[str]:
    return [f"directions={read_names(text, DIRECTIONS)}"]


def match_lba(text: str) -> list[str]:
    first, last = read_range(text, U64 // SECTOR - 1)
    return [f"first={first * SECTOR}", f"end={(last + 1) * SECTOR}"]


def match_place(part: int) -> Callable[[str], list[str]]:
    def match(text: str) -> list[str]:
        low, high = read_range(text, 0xffff)
        return [f"place={part}:{low}:{high}"]
    return match


MODEL_MATCH: dict[str, dict[str, Callable[[str], list[str]]]] = {
    "wire": {"port": match_port, "direction": match_direction},
    "rdma": {"qpn": lambda text: [f"qpn={read_number(text, 0xffffff)}"],
             "request": lambda text: [f"ops={read_names(text, REQUESTS)}"],
             "direction": match_direction},
    "media": {"operation": lambda text: [f"ops={read_names(text, OPERATIONS)}"],
              "lba": match_lba},
    "nand": {"operation": lambda text: [f"ops={read_names(text, NAND_OPERATIONS)}"],
             **{name: match_place(n) for n, name in enumerate(NAND_PLACES)}},
    "nvme": {},
}


# A rule in one line

def parse_line(text: str) -> Rule:
    """The rule of `wire port=0 bth.opcode=ack when nth=3 do drop`; raises Wrong."""
    words = text.split()
    if not words:
        raise Wrong("a rule is empty: write for example wire port=0 do drop")
    rule = Rule(words[0])
    if words[0] not in SITES:
        rule.check()
    at = 1
    table = rule.match
    while at < len(words) and words[at] != "do":
        if words[at] == "when":
            if table is rule.when:
                raise Wrong("when stands twice", words[at])
            table = rule.when
        else:
            add_pair(table, words[at], rule)
        at += 1
    if at + 2 != len(words):
        raise Wrong("a rule ends with `do` and one action, such as do drop",
                    words[-1])
    rule.action, _, rule.argument = words[at + 1].partition("=")
    if words[at + 1].endswith("="):
        raise Wrong(f"{words[at + 1]}: a value is missing after =", words[at + 1])
    rule.check()
    return rule


def add_pair(table: dict[str, str], word: str, rule: Rule) -> None:
    key, equals, value = word.partition("=")
    if not equals or not key or not value:
        raise Wrong(f"{word}: write key=value", word)
    if key == "name" and table is rule.match:
        rule.name = value
        return
    if key in table:
        raise Wrong(f"{key}: the key occurs twice", word)
    table[key] = value


# Rules in YAML

class Reader:
    """Reads the rules of one file; every mistake has its line and column."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.mistakes: list[str] = []
        self.rules: list[Rule] = []

    def mistake(self, node: yaml.Node, text: str) -> None:
        mark = node.start_mark
        self.mistakes.append(f"{self.name}:{mark.line + 1}:{mark.column + 1}: {text}")

    def read(self, root: yaml.Node | None) -> None:
        if isinstance(root, yaml.MappingNode):
            keys = [key.value for key, _ in root.value]
            if keys == ["faults"]:
                root = root.value[0][1]
        if not isinstance(root, yaml.SequenceNode):
            if root is None:
                self.mistakes.append(f"{self.name}: the file is empty")
            else:
                self.mistake(root, "the file must be a list of rules")
            return
        for node in root.value:
            self.read_rule(node)

    def read_rule(self, node: yaml.Node) -> None:
        if isinstance(node, yaml.ScalarNode):
            self.take(node, {}, lambda: parse_line(str(node.value)))
            return
        if not isinstance(node, yaml.MappingNode):
            self.mistake(node, "a rule is a line of words, or a mapping")
            return
        places: dict[str, yaml.Node] = {}
        rule = Rule("")
        seen: set[str] = set()
        before = len(self.mistakes)
        for key, value in node.value:
            name = self.word(key)
            if name in seen:
                self.mistake(key, f"{name}: the key occurs twice")
            seen.add(name)
            places[name] = key
            if name in SITES:
                if rule.site:
                    self.mistake(key, f"{name}: the rule has a place already, "
                                      f"{rule.site}")
                rule.site = name
                rule.match = self.pairs(value, places)
            elif name == "when":
                rule.when = self.pairs(value, places)
            elif name == "do":
                rule.action, rule.argument = self.action(value, places)
            elif name == "name":
                rule.name = self.word(value)
                places[rule.name] = value
            elif len(self.mistakes) == before:
                self.mistake(key, f"{name}: unknown key; "
                                  f"{mean_or(name, (*SITES, 'when', 'do', 'name'))}")
        if len(self.mistakes) != before:
            return
        if not rule.site:
            self.mistake(node, f"the rule names no place: add one of "
                               f"{', '.join(SITES)}")
            return

        def checked() -> Rule:
            rule.check()
            return rule
        self.take(node, places, checked)

    def word(self, node: yaml.Node) -> str:
        """The text of a node that is one word or empty; "" after a mistake."""
        if not isinstance(node, yaml.ScalarNode):
            self.mistake(node, "this must be one word")
            return ""
        text = str(node.value)
        if text and text.split() != [text]:
            self.mistake(node, "this must be one word, without spaces")
            return ""
        return text

    def take(self, node: yaml.Node, places: dict[str, yaml.Node],
             make: Callable[[], Rule]) -> None:
        try:
            rule = make()
        except Wrong as wrong:
            self.mistake(places.get(wrong.word, node), str(wrong))
            return
        if rule.name and rule.name in (other.name for other in self.rules):
            self.mistake(node, f"{rule.name}: another rule has this name")
            return
        self.rules.append(rule)

    def pairs(self, node: yaml.Node, places: dict[str, yaml.Node]) -> dict[str, str]:
        found: dict[str, str] = {}
        if isinstance(node, yaml.ScalarNode) and not node.value:
            return found
        if not isinstance(node, yaml.MappingNode):
            self.mistake(node, "this must be a mapping of keys and values")
            return found
        for key, value in node.value:
            if isinstance(value, yaml.SequenceNode):
                text = ",".join(self.word(item) for item in value.value)
            else:
                text = self.word(value)
            name = self.word(key)
            if name in found:
                self.mistake(key, f"{name}: the key occurs twice")
            found[name] = text
            places[name] = key
            places[text] = value
        return found

    def action(self, node: yaml.Node, places: dict[str, yaml.Node]) -> tuple[str, str]:
        if isinstance(node, yaml.ScalarNode):
            action, _, argument = str(node.value).partition("=")
            places[action] = places[argument] = node
            return action, argument
        pairs = self.pairs(node, places)
        if len(pairs) != 1:
            self.mistake(node, "do needs one action")
            return "", ""
        return next(iter(pairs.items()))


def load_text(text: str, name: str) -> list[Rule]:
    """The rules of a YAML text; raises Mistakes with a line for each mistake."""
    reader = Reader(name)
    try:
        reader.read(yaml.compose(text, Loader=yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError) as error:
        line, column, words = yaml_mistakes.describe(error, text)
        reader.mistakes.append(f"{name}:{line}:{column}: {words}")
    if reader.mistakes:
        raise Mistakes(reader.mistakes)
    return reader.rules


def load_file(path: Path) -> list[Rule]:
    return load_text(yaml_mistakes.read_file(path), str(path))


def as_json(rule: Rule) -> dict[str, Any]:
    return {"name": rule.name, "site": rule.site, "rule": rule.text()}
