# SPDX-License-Identifier: BSD-2-Clause
"""What the drive sees of the other end of each cable, by LLDP."""

import re
from typing import Any

from rich.table import Table

from . import console, port
from .instance import Instance

FACT = re.compile(r"port (\d): neighbour (\d+): ([a-z-]+) (.*)")
NOTHING = re.compile(r"port (\d): (nothing heard.*|does not listen.*)")
LISTS = {"address": "addresses", "capabilities": "capabilities"}
NUMBERS = ("vlan", "longest-frame", "forgotten-in")


def parse(lines: list[str]) -> list[dict[str, Any]]:
    """The console's answer; one entry a port, with its neighbours."""
    ports: dict[int, dict[str, Any]] = {}
    places: dict[tuple[int, int], dict[str, Any]] = {}
    for line in lines:
        if match := NOTHING.fullmatch(line):
            ports[int(match[1])] = {"port": int(match[1]), "neighbours": [],
                                    "why": match[2]}
        elif match := FACT.fullmatch(line):
            number, place, key, value = (int(match[1]), int(match[2]), match[3],
                                         match[4])
            entry = ports.setdefault(number, {"port": number, "neighbours": []})
            if (number, place) not in places:
                places[number, place] = {"addresses": [], "capabilities": []}
                entry["neighbours"].append(places[number, place])
            add(places[number, place], key, value)
    return [ports[number] for number in sorted(ports)]


def add(neighbour: dict[str, Any], key: str, value: str) -> None:
    if key in LISTS:
        neighbour[LISTS[key]] += [] if value == "none" else value.split()
    else:
        neighbour[key] = int(value) if key in NUMBERS else value


def read(instance: Instance, number: int | None) -> list[dict[str, Any]]:
    port.states(instance, number)       # complains if there is no such port
    return parse(console.ask(instance, "neighbours" if number is None
                             else f"neighbours {number}"))


def table(ports: list[dict[str, Any]]) -> Table:
    found = Table(box=None, pad_edge=False)
    for heading in ("port", "system", "its port", "chassis", "addresses", "is a",
                    "VLAN", "longest frame", "forgotten in"):
        found.add_column(heading)
    for entry in ports:
        for neighbour in entry["neighbours"]:
            found.add_row(
                str(entry["port"]), neighbour.get("system", "-"),
                neighbour.get("port-description", neighbour["port"]),
                neighbour["chassis"], "\n".join(neighbour["addresses"]) or "-",
                ", ".join(neighbour["capabilities"]) or "-",
                str(neighbour.get("vlan", "-")),
                str(neighbour.get("longest-frame", "-")),
                f"{neighbour['forgotten-in']} s")
    return found


def silences(ports: list[dict[str, Any]]) -> list[str]:
    """A line for each port that has no neighbour."""
    lines = []
    for entry in ports:
        if entry["neighbours"]:
            continue
        if entry["why"] == "nothing heard yet":
            lines.append(f"nothing heard on port {entry['port']} yet "
                         "(LLDP: usually every 30 s)")
        else:
            lines.append(f"port {entry['port']}: {entry['why']}")
    return lines
