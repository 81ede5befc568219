# SPDX-License-Identifier: BSD-2-Clause
"""The values that a topology's file may contain; each function refuses a wrong one."""

import ipaddress
import re

from ..base import chosen
from ..base.errors import EssdError
from ..instance.config import HOST_KINDS, LINK_KINDS, NATIVE, RISCV
from ..storage import media
from .topology import Interface


def size_value(text: str) -> str:
    media.parse_size(text)
    return text


def nand_value(text: str) -> str:
    from ..storage import nand
    nand.parse(text)
    return text


def mtu_value(text: str) -> int:
    if not text.isdigit() or not 1280 <= int(text) <= 9000:
        raise EssdError(f"the MTU {text} is not a number from 1280 to 9000")
    return int(text)


def memory_value(text: str) -> int:
    match = re.fullmatch(r"(\d{1,6})([MG])", text)
    mib = int(match[1]) << (10 if match[2] == "G" else 0) if match else 0
    if not 512 <= mib <= 1 << 17:
        raise EssdError(f"{text} is not a memory size from 512M to 128G")
    return mib


def kind_value(text: str) -> str:
    if text not in HOST_KINDS:
        raise EssdError(f"{text!r} is no kind of host: there are {' and '.join(HOST_KINDS)}")
    return text


def link_value(text: str) -> str:
    if text not in LINK_KINDS:
        raise EssdError(f"link {text!r}: must be {' or '.join(LINK_KINDS)}")
    return text


def cpus_value(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 64:
        raise EssdError(f"{text} is not a number of CPUs from 1 to 64")
    return int(text)


def address_values(text: str) -> list[Interface]:
    from ..setup.setup import parse_addresses
    return [ipaddress.ip_interface(one) for one in parse_addresses(text)]


TRANSPORTS = ("rdma", "tcp", "iwarp", "aoe")


def transports_value(text: str) -> frozenset[str]:
    words = text.split()
    for word in words:
        chosen.check_word("transports:", word, TRANSPORTS)
        if words.count(word) > 1:
            raise EssdError(f"transports: {word} occurs twice")
    if "rdma" not in words:
        raise EssdError("transports: every drive serves rdma: add it to the list")
    return frozenset(words)


def yes_value(text: str) -> bool:
    words = {"yes": True, "true": True, "on": True, "no": False, "false": False,
             "off": False}
    if text.lower() not in words:
        raise EssdError(f"{text} is neither yes nor no")
    return words[text.lower()]


def hart_value(text: str) -> str:
    if text not in (RISCV, NATIVE):
        raise EssdError(f"hart {text!r}: must be {RISCV} or {NATIVE}")
    return text


TIME = r"0|\d+(\.\d+)?(ns|us|ms|s)"
RATE = r"\d+[kMG]?"
VLAN = r"(?:[1-9]\d{0,2}|[1-3]\d{3}|40[0-8]\d|409[0-4])"
LOSS = r"0|1|0?\.\d+|0\.\d+|1\.0+"
# Settings of a switch's port: what they look like, and an example.
PORT_WORDS: dict[str, tuple[str, str]] = {
    "vlan": (rf"any|{VLAN}", "any, or a number from 1 to 4094"),
    "trunk": (rf"all|{VLAN}([+-]{VLAN})*", "all, or VLANs such as 10+20-30"),
    "native": (rf"none|{VLAN}", "none, or a number from 1 to 4094"),
    "seed": (r"\d{1,19}", "a number"),
    "full": (r"pause|drop", "pause or drop"),
    "stall": (TIME, "a time such as 5s"),
    "queue": (RATE, "a size such as 1M"),
}
for _direction in ("", "-in", "-out"):
    PORT_WORDS |= {
        f"speed{_direction}": (RATE, "bits per second, such as 25G; 0: unlimited"),
        f"delay{_direction}": (TIME, "a time such as 10us"),
        f"jitter{_direction}": (TIME, "a time such as 2us"),
        f"loss{_direction}": (LOSS, "a probability such as 0.01"),
    }
SWITCH_WORDS: dict[str, tuple[str, str]] = {
    "link-local": (r"drop|forward", "drop or forward"),
    "ageing": (r"\d{1,6}", "a number of seconds"),
}


TIME_MAX_S = 60         # as in tools/switch/words.c
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def check_word(key: str, text: str, words: dict[str, tuple[str, str]]) -> str:
    pattern, example = words[key]
    if not re.fullmatch(pattern, text):
        raise EssdError(f"{key} {text!r}: must be {example}")
    time = re.fullmatch(r"([\d.]+)([num]?s)", text)
    if time and float(time[1]) * UNITS[time[2]] > TIME_MAX_S:
        raise EssdError(f"{key} {text!r}: must be at most {TIME_MAX_S}s")
    return text
