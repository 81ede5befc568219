# SPDX-License-Identifier: BSD-2-Clause
"""The Ethernet modules in the ports' cages, for `essd port`: docs/bmc.md."""

from typing import Any

from rich.table import Table
from rich.text import Text

from . import mgmt
from .drive import module_set
from .errors import EssdError
from .instance import Instance

ANSWER_S = 3.0
ZERO_CELSIUS_MK = 273150
# How each quantity is shown: its divisor and unit.
UNITS = {"temperature": (1000, "C"), "voltage": (1_000_000, "V"), "bias": (1000, "mA"),
         "tx-power": (1_000_000, "mW"), "rx-power": (1_000_000, "mW")}


def scaled(name: str, value: int) -> float:
    """A value of the management protocol in the unit of UNITS."""
    offset = ZERO_CELSIUS_MK if name == "temperature" else 0
    return round((value - offset) / UNITS[name][0], 4)


def read(instance: Instance) -> list[dict[str, Any]]:
    """The module of each port, as the drive's firmware sees it.

    If the drive does not answer, `state` is unknown and `why` has the reason.
    """
    try:
        found = mgmt.ask(instance, "modules", ANSWER_S)["modules"]
    except EssdError as error:
        return [{"port": port, "state": "unknown", "why": str(error)} for port in (0, 1)]
    for module in found:
        for name, facts in module.get("values", {}).items():
            for key, value in facts.items():
                if key != "exceeded":
                    facts[key] = scaled(name, value)
    return list(found)


def insert(instance: Instance, number: int, present: bool) -> None:
    """Put the module into the port's cage, or take it out."""
    command, arguments = module_set(number, "present", present)
    instance.ask("qmp", part=instance.drive, execute=command, arguments=arguments)


def value_text(name: str, facts: dict[str, Any]) -> Text:
    style = ("red" if any(limit.endswith("alarm") for limit in facts["exceeded"])
             else "yellow" if facts["exceeded"] else "")
    return Text(f"{facts['value']:.4g} {UNITS[name][1]}", style)


def table(modules: list[dict[str, Any]]) -> Table:
    found = Table("port", "module", "vendor", "part", "serial", *UNITS, box=None,
                  pad_edge=False)
    for module in modules:
        values = module.get("values", {})
        found.add_row(
            str(module["port"]), module.get("type", module["state"]),
            *(module.get(name, "-") for name in ("vendor", "part", "serial")),
            *(value_text(name, values[name]) if name in values else "-" for name in UNITS))
    return found
