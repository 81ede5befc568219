# SPDX-License-Identifier: BSD-2-Clause
"""The supervisor's fault rules: it keeps them while drives are off or restart.

Rules belong to the test bench.  The model forgets them when its process ends, and
the firmware forgets those for NVMe commands and PDUs at each reset; the supervisor then
gives them the rules again, with counters that begin at 0.  A saved state contains
the firmware with the rules of that time; they are replaced after loading.
"""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.chosen import mean_or
from ..base.errors import EssdError
from ..drive import fault_rules
from ..drive.fault_rules import FIRMWARE_RULES_MAX, FIRMWARE_SITES, RULES_MAX, Rule, Wrong
from .channel import Refused

Execute = Callable[[str, dict[str, Any]], Awaitable[object]]
Ask = Callable[[str, dict[str, Any]], Awaitable[Any]]
FAULTS = "/machine/faults"


@dataclass
class Kept:
    """A rule with its number, which model and firmware know it by."""

    number: int
    rule: Rule
    is_on: bool = True
    cut_power: int = 0      # power cuts that it has made

    @property
    def is_firmware(self) -> bool:
        return self.rule.site in FIRMWARE_SITES


class FaultKeeper:
    """The rules of one drive."""

    def __init__(self, execute: Execute, ask: Ask, has_nand: bool = False) -> None:
        self.execute = execute      # a QMP command of the drive's machine
        self.ask = ask              # a request to the drive's firmware
        self.has_nand = has_nand    # its medium is a NAND array
        self.rules: list[Kept] = []
        self.next_number = 1
        self.was_in_firmware = False    # a saved state may contain rules
        self.changing = asyncio.Lock()  # only one change at a time

    def find(self, name: str) -> Kept:
        for kept in self.rules:
            if kept.rule.name == name:
                return kept
        known = [kept.rule.name for kept in self.rules]
        hint = mean_or(name, known) if known else "there is no rule"
        raise ValueError(f"{name}: no fault rule has this name; {hint}")

    def check_medium(self, rule: Rule) -> None:
        """Refuse a rule for a medium that the drive does not have: it would never fire."""
        if rule.site == "media" and self.has_nand:
            raise Wrong("media: the medium of this drive is a NAND array, which the media "
                        "engine does not see: use a rule for nvme or nand, or a drive with "
                        "a block medium")
        if rule.site == "nand" and not self.has_nand:
            raise Wrong("nand: this drive was created with a block medium, so it has no NAND "
                        "array: use a rule for media or nvme")

    def accept(self, entries: list[dict[str, str]]) -> list[Kept]:
        """The rules of a request, checked all before the first one is added."""
        fresh: list[Kept] = []
        for entry in entries:
            number = self.next_number + len(fresh)
            try:
                rule = fault_rules.parse_line(str(entry["rule"]))
                rule.name = str(entry.get("name") or rule.name or f"rule-{number}")
                rule.check()
                self.check_medium(rule)
            except Wrong as wrong:
                raise ValueError(str(wrong)) from None
            taken = [kept.rule.name for kept in (*self.rules, *fresh)]
            if rule.name in taken:
                raise ValueError(f"{rule.name}: another fault rule has this name")
            fresh.append(Kept(number, rule))
        for what, most, number in (
                ("fault rules", RULES_MAX, len(self.rules) + len(fresh)),
                *((f"fault rules for {site}", FIRMWARE_RULES_MAX,
                   sum(kept.rule.site == site for kept in (*self.rules, *fresh)))
                  for site in FIRMWARE_SITES)):
            if number > most:
                raise ValueError(f"a drive has at most {most} {what}: remove some with "
                                 "the command `faults remove`")
        return fresh

    async def add(self, entries: list[dict[str, str]], is_running: bool) -> list[str]:
        """Add all rules, or none if the drive refuses one."""
        async with self.changing:
            fresh = self.accept(entries)
            self.next_number += len(fresh)
            for n, kept in enumerate(fresh if is_running else []):
                try:
                    await self.install(kept)
                except BaseException:
                    with contextlib.suppress(EssdError, ValueError, OSError):
                        for installed in fresh[:n]:
                            await self.uninstall(installed)
                    raise
            self.rules += fresh
        return [kept.rule.name for kept in fresh]

    async def install(self, kept: Kept) -> None:
        if kept.is_firmware:
            self.was_in_firmware = True
            await self.ask("fault-add", kept.rule.for_firmware(kept.number))
        else:
            await self.set("add", kept.rule.for_model(kept.number))

    async def uninstall(self, kept: Kept) -> None:
        if not kept.is_firmware:
            await self.set("remove", kept.number)
            return
        # Firmware that has just restarted has no rules and refuses.
        with contextlib.suppress(Refused):
            await self.ask("fault-remove", {"rule": kept.number})

    async def set(self, name: str, value: object) -> None:
        await self.execute("qom-set", {"path": FAULTS, "property": name,
                                       "value": value})

    async def in_model(self) -> list[dict[str, Any]]:
        """The rules that the drive's machine has, with their counters."""
        found = await self.execute("qom-get", {"path": FAULTS, "property": "rules"})
        assert isinstance(found, list)
        return found

    def named(self, names: list[str]) -> list[Kept]:
        """The rules with these names, each once; all rules if none is named."""
        return [self.find(name) for name in dict.fromkeys(names)] or list(self.rules)

    async def remove(self, names: list[str], is_running: bool) -> None:
        async with self.changing:
            for kept in self.named(names):
                if is_running:
                    await self.uninstall(kept)
                self.rules.remove(kept)

    async def turn(self, names: list[str], is_on: bool, is_running: bool) -> None:
        async with self.changing:
            for kept in self.named(names):
                if kept.is_on == is_on:
                    continue
                if is_running and kept.is_firmware:
                    # Firmware that has just restarted gets the rule from booted().
                    with contextlib.suppress(Refused):
                        await self.ask("fault-turn", {"rule": kept.number, "on": is_on})
                elif is_running:
                    await self.set("turn-on" if is_on else "turn-off", kept.number)
                kept.is_on = is_on

    async def started(self) -> None:
        """The drive's machine has started: it has no rules yet, except one that somebody has
        added since its monitor answers."""
        rules = [kept for kept in self.rules if not kept.is_firmware]
        there = {entry["id"] for entry in await self.in_model()} if rules else set()
        for kept in rules:
            if kept.number not in there:
                await self.set("add", kept.rule.for_model(kept.number))
            if not kept.is_on:
                await self.set("turn-off", kept.number)

    async def booted(self) -> None:
        """The firmware has started, or a saved state of it was loaded."""
        async with self.changing:
            reply = await self.ask("faults", {})
            for entry in reply["faults"]:
                await self.ask("fault-remove", {"rule": entry["rule"]})
            for kept in self.rules:
                if kept.is_firmware:
                    await self.install(kept)
                    if not kept.is_on:
                        await self.ask("fault-turn", {"rule": kept.number, "on": False})

    @property
    def must_renew(self) -> bool:
        """Whether firmware that starts, or is loaded, has to be given its rules."""
        return self.was_in_firmware or self.has_firmware_rules

    @property
    def has_firmware_rules(self) -> bool:
        return any(kept.is_firmware for kept in self.rules)

    def cut_by(self, log: Path) -> str:
        """The name of the rule that ended the machine, or "".  It is turned off."""
        try:
            lines = log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        match = re.search(r"fault rule (\d+) cuts the power$", lines[-1] if lines else "")
        for kept in self.rules:
            if match and kept.number == int(match[1]):
                kept.is_on = False
                kept.cut_power += 1
                return kept.rule.name
        return ""

    async def report(self, is_running: bool) -> list[dict[str, Any]]:
        counters: dict[int, dict[str, Any]] = {}
        if is_running and any(not kept.is_firmware for kept in self.rules):
            counters |= {entry["id"]: entry for entry in await self.in_model()}
        if is_running and self.has_firmware_rules:
            reply = await self.ask("faults", {})
            counters |= {entry["rule"]: entry for entry in reply["faults"]}
        return [{**fault_rules.as_json(kept.rule), "on": kept.is_on,
                 "matched": counters.get(kept.number, {}).get("matched", 0),
                 "fired": counters.get(kept.number, {}).get("fired", 0) + kept.cut_power}
                for kept in self.rules]
