# SPDX-License-Identifier: BSD-2-Clause
"""Fault rules of the cockpit: the words to compose them of, and those that are saved.

Saved rules are a file that `essd faults load` takes, too (docs/faults.md).
"""

import contextlib
import fcntl
from pathlib import Path
from typing import Any

import yaml

from ..base import files, paths
from ..base.errors import EssdError
from ..drive import fault_rules

SAVED_MAX = 64
FILE = "fault-rules.yaml"
HEAD = ("# Fault rules that the cockpit has saved (docs/cockpit.md).\n"
        "# essd faults load takes this file.\n")
NAMES: dict[tuple[str, str], Any] = {
    ("wire", "direction"): fault_rules.DIRECTIONS, ("rdma", "direction"): fault_rules.DIRECTIONS,
    ("rdma", "request"): fault_rules.REQUESTS, ("nvme", "queue"): fault_rules.QUEUES,
    ("nvme", "opcode"): fault_rules.NVM_OPCODES, ("media", "operation"): fault_rules.OPERATIONS,
    ("nand", "operation"): fault_rules.NAND_OPERATIONS}
ARGUMENTS: dict[str, Any] = {"nak": fault_rules.NAKS, "status": fault_rules.STATUSES,
                             "[moment]": fault_rules.MOMENTS, "duration": ["5ms", "20us", "1s"],
                             "bits": ["1", "60"]}


def names_of(site: str, key: str) -> list[str]:
    """The names that a key's value may be; none if it is a number or an address."""
    field = fault_rules.FIELDS.get(key)
    if field is not None:
        return list({"presence": ["yes"], "flags": fault_rules.TCP_FLAGS}.get(
            field.kind, field.names or []))
    return list(NAMES.get((site, key), []))


def grammar() -> dict[str, Any]:
    """What a rule of each place is composed of, for the page."""
    return {"when": list(fault_rules.WHENS), "places": {
        site: {"keys": {key: names_of(site, key) for key in keys},
               "actions": {action: {"takes": kind, "names": list(ARGUMENTS.get(kind, []))}
                           for action, kind in fault_rules.ACTIONS[site].items()}}
        for site, keys in fault_rules.MATCHES.items()}}


class Saved:
    """The rules of the file; each {name, rule}."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or paths.drives() / FILE
        self.state: tuple[int, int] = (0, 0)    # of the file when it was read
        self.found: list[dict[str, str]] = []

    def all(self) -> list[dict[str, str]]:
        """EssdError if somebody has written a mistake into the file."""
        try:
            facts = self.path.stat()
        except FileNotFoundError:
            return []
        state = (facts.st_mtime_ns, facts.st_ino)
        if state != self.state:
            self.found = [{"name": rule.name, "rule": rule.text()}
                          for rule in fault_rules.load_file(self.path)]
            self.state = state
        return self.found

    def write(self, rules: list[dict[str, str]]) -> None:
        lines = []
        for entry in rules:
            site, _, rest = entry["rule"].partition(" ")
            lines.append(f"{site} name={entry['name']} {rest}")
        files.make_folder(self.path.parent)
        text = HEAD + (yaml.safe_dump(lines, width=1000) if lines else "[]\n")
        files.replace_file(self.path, text.encode())

    def save(self, name: str, line: str) -> None:
        """Add a rule, or replace the one with its name; EssdError if it makes no sense."""
        rule = fault_rules.parse_line(line)
        rule.name = name
        rule.check()
        with self.alone():
            others = [entry for entry in self.all() if entry["name"] != name]
            if len(others) >= SAVED_MAX:
                raise EssdError(f"{SAVED_MAX} rules are saved already: forget one of them")
            self.write([*others, {"name": name, "rule": rule.text()}])

    def forget(self, name: str) -> None:
        with self.alone():
            self.write([entry for entry in self.all() if entry["name"] != name])

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """No other thread or cockpit changes the file between its reading and writing."""
        files.make_folder(self.path.parent)
        return paths.flocked(self.path.with_name(f".{self.path.name}.guard"), fcntl.LOCK_EX)
