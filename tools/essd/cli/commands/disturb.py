# SPDX-License-Identifier: BSD-2-Clause
"""Commands that disturb a running drive: its power, its cables, its links."""

import json
from typing import Annotated, Any

import typer

from ... import show
from ...errors import EssdError
from ...instance import Instance
from ..base import DISTURB, AsJson, Name, command


@command(DISTURB, "power-cut")
def power_cut(name: Name = "",
              restart: Annotated[bool, typer.Option(
                  "--restart", help="Power the drive on again at once.")] = False) -> None:
    """Cut the drive's power at once.  Data that was not flushed is lost."""
    instance = Instance(name)
    instance.ask("power-cut")
    show.note("power is off")
    if restart:
        instance.ask("power-on")
        show.note("power is on")


@command(DISTURB, "power-on")
def power_on(name: Name = "") -> None:
    """Power the drive on after `power-cut`."""
    Instance(name).ask("power-on")
    show.note("power is on")


@command(DISTURB, "power-cycle")
def power_cycle(name: Name = "") -> None:
    """Cut the drive's power and restore it: the same as `power-cut --restart`."""
    power_cut(name, restart=True)


@command(DISTURB)
def reset(name: Name = "") -> None:
    """Press the drive's reset button: a warm reset that loses no data."""
    Instance(name).ask("reset")
    show.note("reset")


def show_ports(ports: list[dict[str, Any]], lag: dict[str, Any],
               as_json: bool) -> None:
    from ... import port as port_module
    from ... import port_lag
    if as_json:
        print(json.dumps([entry | {"lag": port_lag.of_port(lag, entry["port"])}
                          for entry in ports], indent=2))
        return
    show.console.print(port_module.table(ports))
    show.line(port_lag.line(lag))
    if "ports" in lag:
        show.console.print(port_lag.table(lag))


def show_neighbours(ports: list[dict[str, Any]], as_json: bool) -> None:
    from ... import neighbours as neighbours_module
    if as_json:
        print(json.dumps(ports, indent=2))
        return
    if any(entry["neighbours"] for entry in ports):
        show.console.print(neighbours_module.table(ports))
    for line in neighbours_module.silences(ports):
        show.line(line)


@command(DISTURB)
def port(number: Annotated[int | None, typer.Argument(
             metavar="[N]", help="Port, 0 or 1.  Default: show both.")] = None,
         name: Name = "",
         plug: Annotated[bool | None, typer.Option(
             "--plug/--unplug", "--up/--down",
             help="Plug the port's cable in, or pull it.")] = None,
         flap: Annotated[int, typer.Option(
             min=0, metavar="TIMES",
             help="Pull the cable and plug it in again, this many times.")] = 0,
         partner_fec: Annotated[str | None, typer.Option(
             metavar="none|fc|rs|auto", help="FEC mode of the link partner.")] = None,
         partner_speed: Annotated[int | None, typer.Option(
             metavar="10|25", help="Speed of the link partner in Gb/s.")] = None,
         partner: Annotated[bool | None, typer.Option(
             "--partner/--no-partner",
             help="Whether a link partner is present at the cable's far end.")]
         = None,
         partner_fault: Annotated[bool | None, typer.Option(
             "--partner-fault/--no-partner-fault",
             help="Whether the link partner signals a remote fault: it does not "
                  "receive the drive's signal.")] = None,
         ber: Annotated[float | None, typer.Option(
             metavar="RATIO", help="Bit error ratio of the cable, such as 1e-6.")] = None,
         seed: Annotated[int | None, typer.Option(
             help="Seed of the pseudo-random bit errors.")] = None,
         neighbours: Annotated[bool, typer.Option(
             "--neighbours", help="Show the LLDP neighbours of the ports.")] = False,
         as_json: AsJson = False,
         ) -> None:
    """Show the drive's ports; pull a cable, add bit errors, change the link partner."""
    from ... import neighbours as neighbours_module
    from ... import port as port_module
    from ... import port_lag
    instance = Instance(name)
    instance.status()       # Raises EssdError if the instance is not running.
    wish = port_module.Wish(partner_fec, partner_speed, partner, partner_fault, ber, seed)
    if number is not None:
        port_module.number_of(instance, number)
        wish.check()
        if plug is not None:
            instance.ask("port", port=number, plugged=plug)
        port_module.change(instance, number, wish)
        if flap:
            port_module.flap(instance, number, flap)
    elif plug is not None or flap or wish != port_module.Wish():
        raise EssdError("these options change one port: give its number, 0 or 1")
    if neighbours:
        show_neighbours(neighbours_module.read(instance, number), as_json)
        return
    ports = port_module.states(instance, number)
    show_ports(ports, port_lag.read(instance), as_json)
    if number is not None and not as_json:
        show.line()
        show.console.print(port_module.counters(ports[0]))
