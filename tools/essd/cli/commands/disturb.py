# SPDX-License-Identifier: BSD-2-Clause
"""Commands that disturb a running drive: its power, its cables, its links."""

import json
from typing import Annotated, Any

import typer

from ...base import show
from ...base.errors import EssdError
from ...instance import fleet
from ...instance.instance import Instance
from .. import completion
from ..base import AsJson, DISTURB, Name, Part, Parts, command


@command(DISTURB, "power-cut")
def power_cut(part: Parts = "",
              name: Name = "",
              restart: Annotated[bool, typer.Option(
                  "--restart", help="Power the drive on again at once.")] = False) -> None:
    """Cut the drive's power at once.  Data that was not flushed is lost."""
    def cut_one(instance: Instance) -> str:
        instance.ask("power-cut", part=instance.drive)
        return "power is off"

    instance = Instance(name)
    fleet.run(instance, part, cut_one, of_any_part=True)
    if restart:
        power_on(part, name)


@command(DISTURB, "power-on")
def power_on(part: Parts = "", name: Name = "") -> None:
    """Power the drive on after `power-cut`."""
    def start_one(instance: Instance) -> str:
        instance.ask("power-on", part=instance.drive)
        return "power is on"

    fleet.run(Instance(name), part, start_one, of_any_part=True)


@command(DISTURB, "power-cycle")
def power_cycle(part: Parts = "", name: Name = "") -> None:
    """Cut the drive's power and restore it: the same as `power-cut --restart`."""
    power_cut(part, name, restart=True)


@command(DISTURB)
def reset(part: Parts = "", name: Name = "",
          halt: Annotated[bool, typer.Option(
              "--halt", help="Let the harts stand at the reset vector, and the hosts "
              "with them, until gdb continues them.")] = False) -> None:
    """Press the drive's reset button: a warm reset that loses no data."""
    def reset_one(instance: Instance) -> str:
        instance.ask("reset", part=instance.drive, halt=halt)
        if not halt:
            return "reset"
        return ("reset and halted at the reset vector: continue it with "
                f"{instance.drive_hint('gdb')} or {instance.drive_hint('qmp', 'cont')}")

    fleet.run(Instance(name), part, reset_one)


def show_ports(ports: list[dict[str, Any]], lag: dict[str, Any],
               modules: list[dict[str, Any]], as_json: bool) -> None:
    from ...drive import modules as modules_module, port as port_module, port_lag
    if as_json:
        print(json.dumps([entry | {"lag": port_lag.of_port(lag, entry["port"]),
                                   "module": modules[entry["port"]]}
                          for entry in ports], indent=2))
        return
    show.console.print(port_module.table(ports))
    show.line(port_lag.line(lag))
    if "ports" in lag:
        show.console.print(port_lag.table(lag))
    show.line()
    shown = [modules[entry["port"]] for entry in ports]
    show.console.print(modules_module.table(shown))
    for note in modules_module.notes(shown):
        show.line(note)


def show_neighbours(ports: list[dict[str, Any]], as_json: bool) -> None:
    from ...drive import neighbours as neighbours_module
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
         part: Part = "",
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
         module: Annotated[bool | None, typer.Option(
             "--module/--no-module",
             help="Put the Ethernet module into the port's cage, or take it out.")] = None,
         measure: Annotated[list[str] | None, typer.Option(
             metavar="NAME=VALUE",
             help="Let the module measure a temperature (C), voltage (V), bias (mA), "
                  "tx-power or rx-power (mW), such as rx-power=0.08.")] = None,
         neighbours: Annotated[bool, typer.Option(
             "--neighbours", help="Show the LLDP neighbours of the ports.")] = False,
         as_json: AsJson = False,
         ) -> None:
    """Show the drive's ports; pull a cable, add bit errors, change the link partner."""
    from ...drive import (modules as modules_module, neighbours as neighbours_module,
                          port as port_module, port_lag)
    instance = fleet.one(Instance(name), part)
    instance.status()       # Raises EssdError if the instance is not running.
    wish = port_module.Wish(partner_fec, partner_speed, partner, partner_fault, ber, seed)
    values = [modules_module.measurement(text) for text in measure or []]
    if number is not None:
        port_module.number_of(instance, number)
        wish.check()
        if plug is not None:
            port_module.plug(instance, number, plug)
        port_module.change(instance, number, wish)
        if module is not None:
            modules_module.insert(instance, number, module)
        modules_module.measure(instance, number, values)
        if flap:
            port_module.flap(instance, number, flap)
    elif (plug is not None or flap or module is not None or values
          or wish != port_module.Wish()):
        raise EssdError("these options change one port: give its number, 0 or 1")
    if neighbours:
        show_neighbours(neighbours_module.read(instance, number), as_json)
        return
    ports = port_module.states(instance, number)
    show_ports(ports, port_lag.read(instance), modules_module.read(instance), as_json)
    if number is not None and not as_json:
        show.line()
        show.console.print(port_module.counters(ports[0]))


@command(DISTURB)
def switch(part: Annotated[str, typer.Argument(
               metavar="SWITCH", autocompletion=completion.parts,
               help="Switch of a topology.")],
           words: Annotated[list[str], typer.Argument(
               metavar="REQUEST...", help="Such as show, macs, or set port=2 loss=0.01.")],
           name: Name = "") -> None:
    """Send one request to a switch of a topology (see docs/topologies.md)."""
    reply = Instance(name).ask("switch", part=part, request=" ".join(words))
    print(json.dumps(reply, indent=2))
