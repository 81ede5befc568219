# SPDX-License-Identifier: BSD-2-Clause
"""The fault rules of one drive (docs/faults.md)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import EssdError
from ..instance.instance import Instance


@dataclass(frozen=True)
class FaultRule:
    """A fault rule as it was when it was read."""

    name: str
    rule: str           # in the language of docs/faults.md
    is_on: bool
    matched: int        # how often what it waits for has happened
    fired: int          # how often it has done what its `do` says


class Faults:
    """The fault rules of one drive.  They stay over its power cycles.

    Iterating over this object yields the rules in the order in which they were
    added.  `added` has the names of those that this object added and has not removed.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.added: list[str] = []

    def request(self, do: str, **arguments: Any) -> Any:
        return self.instance.ask("faults", part=self.instance.drive, do=do, **arguments)

    def add(self, rule: str, name: str = "") -> str:
        """Add a rule, which is in force at once; return its name.

        Without a name it is called rule-1, rule-2 and so on.  EssdError says what is
        wrong with the rule.
        """
        from ..drive.fault_rules import Wrong, parse_line
        try:
            parse_line(rule)
        except Wrong as wrong:
            raise EssdError(f"{rule}: {wrong}") from None
        (added,) = self._add([{"rule": rule, "name": name}])
        return added

    def load(self, file: Path | str) -> list[str]:
        """Add all rules of a YAML file, or none if one makes no sense; return their names."""
        from ..drive.fault_rules import load_file
        rules = [{"rule": rule.text(), "name": rule.name} for rule in load_file(Path(file))]
        return self._add(rules)

    def _add(self, rules: "list[dict[str, str]]") -> "list[str]":
        names = [str(name) for name in self.request("add", rules=rules)]
        self.added += names
        return names

    def remove(self, *names: str) -> None:
        """Remove rules, all if none is named.  What they have held back goes on."""
        self.request("remove", names=list(names))
        self.added = [name for name in self.added if names and name not in names]

    def turn_on(self, *names: str) -> None:
        """Turn rules on that turn_off() turned off: those named, or all."""
        self.request("on", names=list(names))

    def turn_off(self, *names: str) -> None:
        """Turn rules off without removing them: those named, or all."""
        self.request("off", names=list(names))

    def list(self) -> "list[FaultRule]":
        """All rules with their counters."""
        return [FaultRule(entry["name"], entry["rule"], entry["on"], entry["matched"],
                          entry["fired"]) for entry in self.request("list")]

    def __iter__(self) -> Iterator[FaultRule]:
        return iter(self.list())

    def __getitem__(self, name: str) -> FaultRule:
        """The rule with this name; KeyError if there is none."""
        for rule in self.list():
            if rule.name == name:
                return rule
        raise KeyError(name)
