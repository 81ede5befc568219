# SPDX-License-Identifier: BSD-2-Clause
"""The Ethernet modules in the ports' cages, for `essd port`: docs/bmc.md."""

from collections.abc import Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from ..base.errors import EssdError
from ..instance.instance import Instance
from . import mgmt

ANSWER_S = 3.0
ZERO_CELSIUS_MK = 273150
# How each quantity is shown: its divisor and unit.
UNITS = {"temperature": (1000, "C"), "voltage": (1_000_000, "V"), "bias": (1000, "mA"),
         "tx-power": (1_000_000, "mW"), "rx-power": (1_000_000, "mW")}
# The values that a module can send in two bytes, in the units that are shown.
RANGES = {"temperature": (-128, 127.99), "voltage": (0, 6.5535), "bias": (0, 131.07),
          "tx-power": (0, 6.5535), "rx-power": (0, 6.5535)}


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


def change(instance: Instance, number: int, settings: dict[str, Any]) -> None:
    """Change properties of a port's module; the drive keeps them over power cycles."""
    if settings:
        instance.ask("module", part=instance.drive, port=number, settings=settings)


def insert(instance: Instance, number: int, present: bool) -> None:
    """Put the module into the port's cage, or take it out."""
    change(instance, number, {"present": present})


def measurement(text: str) -> tuple[str, int]:
    """A quantity and its value for the machine, from NAME=VALUE in the unit of UNITS."""
    name, _, value = text.partition("=")
    if name not in UNITS:
        raise EssdError(f"--measure {text}: write NAME=VALUE, where NAME is one of "
                        f"{', '.join(UNITS)}")
    divisor, unit = UNITS[name]
    try:
        number = float(value)
    except ValueError:
        raise EssdError(f"--measure {text}: the value must be a number of {unit}, "
                        f"such as {name}=3.5") from None
    least, most = RANGES[name]
    if not least <= number <= most:
        raise EssdError(f"--measure {text}: use {least:g} to {most:g} {unit}")
    return name, round(number * divisor)


def measure(instance: Instance, number: int, wanted: list[tuple[str, int]]) -> None:
    """Let the module in the port's cage measure these values."""
    change(instance, number, dict(wanted))


def value_text(name: str, facts: dict[str, Any]) -> Text:
    style = ("red" if any(limit.endswith("alarm") for limit in facts["exceeded"])
             else "yellow" if facts["exceeded"] else "")
    return Text(f"{facts['value']:.4g} {UNITS[name][1]}", style)


# What is said of a module whose limits are not watched.
NO_DIAGNOSTICS = {
    "none": "the module has no diagnostics",
    "external-calibration": "the module's diagnostics need external calibration, which is "
                            "not supported",
    "unanswered": "the module's diagnostics do not answer",
    "damaged": "the module's limits have a bad checksum, so they are not watched",
}


def notes(modules: list[dict[str, Any]]) -> Iterator[str]:
    """One line for each limit that is exceeded, and for each module without limits."""
    for module in modules:
        port = f"port {module['port']}"
        if module.get("diagnostics") in NO_DIAGNOSTICS:
            yield f"{port}: {NO_DIAGNOSTICS[module['diagnostics']]}"
        for name, facts in module.get("values", {}).items():
            for limit in facts["exceeded"]:
                above = facts["value"] - facts[limit]
                is_beyond = above > 0 if limit.startswith("high") else above < 0
                # A limit is exceeded until the value is back by a margin.
                yield (f"{port}: {name} is {facts['value']:.4g} {UNITS[name][1]}, "
                       f"{'' if is_beyond else 'and was '}beyond "
                       f"the {limit} limit of {facts[limit]:.4g} {UNITS[name][1]}")


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
