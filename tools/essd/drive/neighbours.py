# SPDX-License-Identifier: BSD-2-Clause
"""The LLDP neighbours of the drive's ports, for `essd port --neighbours`."""

from typing import Any

from rich.table import Table

from ..instance.instance import Instance
from . import mgmt, port

def read(instance: Instance, number: int | None) -> list[dict[str, Any]]:
    """One entry for each port, with its neighbours, or with `why` it has none."""
    port.states(instance, number)       # Raises EssdError if there is no such port.
    ports = mgmt.ask(instance, "neighbours")["ports"]
    return [entry for entry in ports if number in (None, entry["port"])]


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
