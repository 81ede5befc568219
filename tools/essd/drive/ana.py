# SPDX-License-Identifier: BSD-2-Clause
"""How the namespaces of a drive can be reached through each port (ANA), for `essd ana`."""

import contextlib
from typing import Any

from rich.table import Table

from ..base.errors import EssdError
from ..instance.instance import Instance
from . import mgmt

STATES = ("optimized", "non-optimized", "inaccessible", "persistent-loss", "change")
PORTS = (0, 1)


def read(instance: Instance) -> list[dict[str, Any]]:
    """One entry for each group: its number, its namespaces, the state at each port."""
    groups: list[dict[str, Any]] = mgmt.ask(instance, "ana")["groups"]
    return groups


def is_notable(group: dict[str, Any]) -> bool:
    """Whether a group has namespaces, or a state that somebody has set."""
    return bool(group["namespaces"]) or any(group[f"port{port}"] != "optimized"
                                            for port in PORTS)


def change(instance: Instance, state: str, group: int | None, port: int | None,
           transition_ms: int = 0) -> None:
    """Set the state of a group at a port; None stands for all of them."""
    wish: dict[str, Any] = {"state": state, "group": group, "port": port,
            "transition-ms": transition_ms or None}
    mgmt.ask(instance, "ana-set",
             **{key: value for key, value in wish.items() if value is not None})


def table(groups: list[dict[str, Any]]) -> Table:
    shown = Table(box=None, pad_edge=False)
    for heading in ("group", "namespaces", "port 0", "port 1"):
        shown.add_column(heading, no_wrap=True)
    for group in filter(is_notable, groups):
        shown.add_row(str(group["group"]), str(group["namespaces"]),
                      *(group[f"port{port}"] for port in PORTS))
    return shown


def lines(name: str, groups: list[dict[str, Any]]) -> list[str]:
    """A line for each group with namespaces and each port that is not optimized."""
    return [f"{name}: ANA group {group['group']} is {group[f'port{port}']} at port {port}"
            for group in groups if group["namespaces"]
            for port in PORTS if group[f"port{port}"] != "optimized"]


def of_running(instance: Instance) -> list[dict[str, Any]]:
    """As read(); nothing if the drive does not answer or does not know of ANA."""
    with contextlib.suppress(EssdError):
        return read(instance)
    return []
