# SPDX-License-Identifier: BSD-2-Clause
"""Commands that show what happens inside the drive."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ...base import chosen, show
from ...base.errors import EssdError
from ...instance import fleet
from ...instance.instance import Instance
from .. import completion
from ..base import AsJson, LOOK, Name, PARTS, Part, Parts, command
from .snapshot import Of, instance_of


@command(LOOK)
def console(part: Parts = "",
            name: Name = "",
            log: Annotated[bool, typer.Option(
                "--log", help="Print the console's output so far, and exit.")] = False,
            ) -> None:
    """Attach this terminal to the drive's UART.  Press Ctrl-] to leave."""
    from ...drive import console as console_module
    instance = fleet.one(Instance(name), part)
    if log:
        sys.stdout.write(console_module.log(instance).decode(errors="replace"))
        return
    instance.status()
    show.line("[press Ctrl-] to leave]")
    console_module.attach(instance)


@command(LOOK, context_settings={"ignore_unknown_options": True})
def gdb(options: Annotated[list[str] | None, typer.Argument(
            metavar="[-- OPTION...]", help="More options for gdb, such as "
            "-batch -ex essd-qps.")] = None,
        part: Part = "",
        name: Name = "",
        elf: Annotated[Path | None, typer.Option(
            metavar="FILE", help="Symbols of the firmware.  Default: those of the "
            "image that runs, found by its build ID.")] = None) -> None:
    """Debug the drive's firmware: docs/firmware-debugging.md.

    The drive and its hosts are halted together until you say continue.
    """
    from ...debug import debugger
    instance = fleet.one(Instance(name), part)
    words = debugger.command(instance, elf, options or [])
    sys.stdout.flush()
    sys.exit(debugger.run(instance, words))


@command(LOOK)
def dump(part: Part = "",
         name: Of = "",
         file: Annotated[Path | None, typer.Option(
             metavar="FILE", help="Read the crash dumps from this flash image, or from what "
             "nvme telemetry-log has written, instead of from a drive.")] = None,
         number: Annotated[int, typer.Option(
             min=0, metavar="N", help="Show crash dump N.  Default: the newest.")] = 0,
         list_: Annotated[bool, typer.Option(
             "--list", help="List the crash dumps only.")] = False,
         elf: Annotated[Path | None, typer.Option(
             metavar="FILE", help="Symbols of the firmware that crashed.  Default: those "
             "that are kept, found by the build ID.")] = None,
         core: Annotated[Path | None, typer.Option(
             metavar="FILE", help="Write a core file for gdb-multiarch instead.")] = None,
         log_lines: Annotated[int, typer.Option(
             min=0, metavar="N", help="Lines of the log to print.")] = 10,
         provoke: Annotated[str, typer.Option(
             metavar="CAUSE", help="Crash the running drive instead: by an assertion, a "
             "trap, or a hang that the watchdog ends (watchdog).")] = "",
         as_json: AsJson = False) -> None:
    """Show why the firmware crashed: function, line, registers, log (docs/crash-dumps.md)."""
    from ...debug import crash
    if provoke:
        crash.provoke(fleet.one(Instance(instance_of(name)), part), provoke)
        return
    found = crash.in_file(file) if file else crash.of_instance(
        fleet.one(Instance(instance_of(name)), part))
    if list_:
        print(json.dumps([crash.facts(each, None) for each in found], indent=2) if as_json
              else "\n".join(crash.title(each) for each in found) or "no crash is recorded")
        return
    chosen_crash = crash.choose(found, number)
    firmware = crash.symbols(chosen_crash, elf)
    if core is not None:
        core.write_bytes(crash.core(chosen_crash, firmware))
        show.note(f"written: gdb-multiarch {firmware} {core}")
        return
    frames = crash.backtrace(chosen_crash, firmware)
    print(json.dumps(crash.facts(chosen_crash, frames), indent=2) if as_json
          else crash.text(chosen_crash, frames, log_lines))


@command(LOOK)
def trace(part: Parts = "",
          name: Name = "",
          events: Annotated[str, typer.Option(
              metavar="LIST", autocompletion=completion.trace_groups,
              help="Groups of events, separated by commas: qp, cm, "
                   "commands, media, roce, path, tcp, ftl, nand, pdus, aoe; or "
                   "all.")]
          = "qp,cm,commands",
          output: Annotated[Path | None, typer.Option(
              metavar="FILE", help="Write the events to this file instead of the "
                                   "screen.")] = None,
          seconds: Annotated[float, typer.Option(
              min=0, help="End after this time; 0: when Ctrl-C is pressed.")] = 0,
          as_json: Annotated[bool, typer.Option(
              "--json", help="Print one JSON object per line.")] = False,
          perfetto: Annotated[Path | None, typer.Option(
              metavar="FILE", help="Write where the time of each command went to this "
                                   "file, for ui.perfetto.dev, and print a summary.")]
          = None) -> None:
    """Show events inside the drive as they happen (see docs/tracing.md)."""
    from ...observe import trace as trace_module
    if perfetto is not None:
        from ...observe.perfetto import PerfettoPrinter
        if output is not None or as_json:
            raise EssdError("--perfetto writes a file of its own: leave out --output and "
                            "--json")
        trace_module.run(fleet.one(Instance(name), part), "all", perfetto, False, seconds,
                         PerfettoPrinter)
        return
    trace_module.run(fleet.one(Instance(name), part), events, output, as_json, seconds)


@command(LOOK)
def capture(part: Parts = "",
            name: Name = "",
            port: Annotated[int, typer.Option(
                min=0, metavar="N", help="The drive's port.")] = 0,
            write: Annotated[Path | None, typer.Option(
                metavar="FILE", help="Write to this file instead of standard output.")]
            = None,
            seconds: Annotated[float, typer.Option(
                min=0, help="End after this time; 0: when Ctrl-C is pressed.")] = 0,
            ) -> None:
    """Record the frames of a port as pcap: essd capture | wireshark -k -i -"""
    from ...observe import capture as capture_module
    capture_module.run(fleet.one(Instance(name), part), port, write, seconds)


@command(LOOK)
def requests(part: Part = "",
             name: Name = "",
             as_json: Annotated[bool, typer.Option(
                 "--json", help="Print JSON (see docs/management.md).")] = False) -> None:
    """Show the NVMe commands that the drive works on, the oldest first."""
    from ...observe import requests as requests_module
    found = requests_module.read(fleet.one(Instance(name), part))
    if as_json:
        print(json.dumps(found, indent=2))
    elif found:
        show.console.print(requests_module.table(found))
    else:
        show.line("no command is in the drive")


@command(LOOK)
def aoe(part: Part = "",
        name: Name = "",
        forget: Annotated[bool, typer.Option(
            "--forget", help="Drop config strings, mask lists and reservations, which any "
            "station of the network may set.")] = False,
        as_json: Annotated[bool, typer.Option(
            "--json", help="Print JSON (see essd fields).")] = False) -> None:
    """Show what the drive exports by ATA over Ethernet (see docs/aoe.md)."""
    from ...drive import aoe as aoe_module
    instance = fleet.one(Instance(name), part)
    if forget:
        aoe_module.forget(instance)
    found = aoe_module.read(instance)
    print(json.dumps(found, indent=2) if as_json else aoe_module.text(found))


@command(LOOK)
def tcp(part: Part = "",
        name: Name = "",
        as_json: Annotated[bool, typer.Option(
            "--json", help="Print JSON (see essd fields).")] = False) -> None:
    """Show the drive's TCP connections, as ss -ti of Linux shows its own."""
    from ...drive import tcp as tcp_module
    found = tcp_module.read(fleet.one(Instance(name), part))
    if as_json:
        print(json.dumps(found, indent=2))
    elif found:
        print(tcp_module.text(found))
    else:
        show.line("the drive has no TCP connection")


@command(LOOK)
def namespaces(part: Part = "",
               name: Name = "",
               as_json: Annotated[bool, typer.Option(
                   "--json", help="Print JSON (see essd fields).")] = False) -> None:
    """Show the drive's namespaces, and how much of it is free for more."""
    from ...drive import namespaces as namespaces_module
    found = namespaces_module.read(fleet.one(Instance(name), part))
    if as_json:
        print(json.dumps(found, indent=2))
        return
    if found["namespaces"]:
        show.console.print(namespaces_module.table(found))
    for line in namespaces_module.failed_lines(found):
        show.line(line)
    show.line(namespaces_module.capacity_line(found))


@command(LOOK)
def telemetry(file: Annotated[Path, typer.Argument(
                  metavar="FILE", help="What nvme telemetry-log has written.")]) -> None:
    """Show what is in a telemetry dump of the drive: docs/nvme.md, "Telemetry"."""
    from ...debug import telemetry as telemetry_module
    print(telemetry_module.text(telemetry_module.read(file)))


@command(LOOK)
def qmp(command: Annotated[str, typer.Argument(
            help="QMP command, such as query-status.")],
        arguments: Annotated[str, typer.Argument(
            help="The command's arguments, a JSON object.")] = "{}",
        name: Name = "",
        part: Annotated[str, typer.Option(
            autocompletion=completion.parts, show_default=False,
            help=f"Part whose QEMU runs the command: {PARTS}, or a name of a "
            "topology.  Default: the only drive.")] = "") -> None:
    """Send one command to the QEMU monitor (QMP) of a part."""
    try:
        data = json.loads(arguments)
    except ValueError as error:
        raise EssdError(f"the arguments {arguments!r} are not valid JSON: {error}"
                        ) from None
    instance = Instance(name)
    part = chosen.check_word("--part", part or instance.drive, instance.status()["parts"])
    reply = instance.ask("qmp", part=part, execute=command, arguments=data)
    print(json.dumps(reply, indent=2))


@command(LOOK)
def topology(file: Annotated[Path | None, typer.Argument(
                 metavar="[FILE]", help="YAML file.  Default: what the instance was "
                 "started from.")] = None,
             svg: Annotated[Path | None, typer.Option(
                 "--svg", metavar="FILE", help="Write the drawing to this file, as SVG."
                 )] = None,
             name: Annotated[str, typer.Option(
                 "--name", metavar="NAME", show_default=False,
                 autocompletion=completion.instances,
                 help="Name of the instance.  Default: the only one that runs.")] = ""
             ) -> None:
    """Draw a topology in the terminal or as SVG (see docs/topologies.md)."""
    from ...topology import command as topology_cmd
    topology_cmd.draw(file, name, svg)
