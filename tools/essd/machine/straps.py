# SPDX-License-Identifier: BSD-2-Clause
"""The drive's strap pins, which its firmware reads at each start (docs/hardware/soc.md)."""

from collections.abc import Iterable

from ..base.errors import EssdError

PINS = 8


def level(pins: Iterable[int]) -> int:
    """The machine property `straps`, of which each pin that is high is a bit."""
    found = 0
    for pin in pins:
        if not 0 <= pin < PINS:
            raise EssdError(f"there is no strap pin {pin}: the pins are 0 to {PINS - 1}")
        found |= 1 << pin
    return found


def parse(text: str) -> list[int]:
    """The pins of a text such as "5,6"."""
    words = text.split(",")
    if not all(word.strip().isdecimal() and word.isascii() for word in words):
        raise EssdError(f"{text!r} names no strap pins: write the numbers of those that are "
                        f"high, 0 to {PINS - 1}, such as 5,6")
    pins = [int(word) for word in words]
    level(pins)
    return pins
