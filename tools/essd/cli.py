# SPDX-License-Identifier: BSD-2-Clause
"""The command line of essd: one function for each command, and error output."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.exceptions
from rich.table import Table

from . import bench as bench_module
from . import console as console_module
from . import mgmt
from . import cpu, debugger, doctor as doctor_module, neighbours as neighbours_module, setup, show
from . import port as port_module
from . import fw_build, port_lag
from . import trace as trace_module
from . import settings_cmd, settings_yaml
from .errors import EssdError
from .instance import Instance
from .setup import Wish
from .steps import Job, wait_target

app = typer.Typer(
    help="Run an emulated dual-port Ethernet SSD (NVMe-oF over RoCEv2) and a Linux "
         "host that uses it.\n\nStart with [bold]essd demo[/bold], or with "
         "[bold]essd up[/bold] and then [bold]essd host[/bold].",
    no_args_is_help=True, rich_markup_mode="rich", add_completion=False,
    pretty_exceptions_enable=False)

Name = Annotated[str, typer.Option("--name", metavar="NAME",
                                   help="Name of the instance, if you run several.")]
Port0 = Annotated[str | None, typer.Option(
    metavar="ADDR/LEN", help="Address of port 0: IPv4, IPv6, or both as "
    "ADDR/LEN,ADDR/LEN.  Default: the address saved in the drive, or "
    f"{setup.DEFAULT_PORTS[0]} for a new drive.")]
Port1 = Annotated[str | None, typer.Option(
    metavar="ADDR/LEN", help="Address of port 1, written like --port0.  Default: the "
    f"address saved in the drive, or {setup.DEFAULT_PORTS[1]} for a new drive.")]
PARTS = "drive, host or peer"


def show_version(asked: bool) -> None:
    if asked:
        show.line(f"essd {fw_build.version()}")
        raise typer.Exit


@app.callback()
def main_options(_version: Annotated[bool, typer.Option(
        "--version", help="Show the version of the drive and its tools, and exit.",
        callback=show_version, is_eager=True)] = False) -> None:
    """Options that stand before the command."""


@app.command()
def up(name: Name = "default",
       port0: Port0 = None,
       port1: Port1 = None,
       nqn: Annotated[str | None, typer.Option(
           help="NVMe Qualified Name of the subsystem.  Default: the name saved in the "
                "drive; a new drive makes one from its UUID.")] = None,
       size: Annotated[str | None, typer.Option(
           help="Capacity of a new drive, 64M to 16T.  Default: 8G.")] = None,
       media: Annotated[Path | None, typer.Option(
           help="File that holds the drive's data.  If the file does not exist and "
                "--size is given, a raw file is created.")] = None,
       media_format: Annotated[str | None, typer.Option(
           metavar="raw|qcow2", help="Format of an existing --media file.  It is needed "
           "once and then recorded in a file beside the media file.")] = None,
       mtu: Annotated[int | None, typer.Option(
           help="MTU of the links, 1280 to 9000.  Default: the MTU saved in the drive, "
                "or 1500 for a new drive.")] = None,
       host_mtu: Annotated[int, typer.Option(
           help="MTU of the host's network cards; 0: the MTU of the links.")] = 0,
       host: Annotated[bool, typer.Option(
           help="Start the Linux host too, or only the drive.")] = True,
       new: Annotated[bool, typer.Option(
           "--new", help="Delete the existing drive with its data first, and start "
                         "a new one.")] = False,
       capture: Annotated[bool, typer.Option(
           "--capture", help="Record every frame of both cables in pcap files.")] = False,
       target: Annotated[str, typer.Option(
           help="NVMe-oF target that the host uses: drive, or nvmet (a Linux guest "
                "with the kernel's own target, for comparison).")] = "drive",
       cpus: Annotated[int, typer.Option(help="Virtual CPUs of the host.")] = 1,
       config_file: Annotated[Path | None, typer.Option(
           "--config", metavar="FILE", help="YAML file with the drive's configuration "
                                            "(see docs/configuration.md).")] = None,
       ) -> None:
    """Start the drive and a Linux host that is connected to it by two cables."""
    if target not in ("drive", "nvmet"):
        raise EssdError(f"--target {target}: must be drive or nvmet")
    instance = Instance(name)
    if instance.is_running:
        raise EssdError(f"instance {name} is running already: stop it with ./essd down")
    if new:
        setup.forget(name)
    wish = Wish(name=name, ports=[port0, port1], nqn=nqn, size=size, media=media,
                media_format=media_format, mtu=mtu, host_mtu=host_mtu, host=host,
                target=target, capture=capture, cpus=cpus)
    if config_file is not None:
        wish.config = settings_cmd.for_start(wish, config_file)
    config = setup.configure(wish)
    instance.start(config)
    if host:
        with show.busy("starting the Linux host"):
            instance.wait_ready("host")
            wait_target(Job.of(instance))
    print_status(instance.status())
    show.line()
    if host:
        show.line("next: ./essd host                    a shell in the host")
        address = config.links[0].target_address
        show.line(f"      ./essd host -- nvme discover -t rdma -a {address} -s 4420")
    show.line("      ./essd console                 the drive's UART")


@app.command()
def down(name: Name = "default",
         every: Annotated[bool, typer.Option(
             "--all", help="Stop every running instance.")] = False,
         ) -> None:
    """Stop everything that `up` started.  The drive keeps its data."""
    names = [name]
    if every:
        from . import paths
        names = [p.name for p in paths.runtime().iterdir()
                 if (p / "state.json").exists()]
    for one in names:
        mgmt.shut_down(Instance(one))
        if Instance(one).stop():
            show.line(f"{one}: ended")
        else:
            show.line(f"{one}: nothing was running")


def print_status(status: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("part", "state", "pid", "memory", "log"):
        table.add_column(heading)
    for part, facts in status["parts"].items():
        state = facts["state"]
        if part != "drive" and state == "running":
            state = "ready" if facts["ready"] else "starting"
        if facts["halted"]:
            state += ", halted"
        if facts["restarts"]:
            state += f", restarted by itself ({facts['restarts'][-1]})"
        memory = f"{cpu.resident_mib(facts['pid']):.0f} MiB" if facts["pid"] else ""
        table.add_row(part, f"{state} {facts['why']}".strip(),
                      str(facts["pid"] or ""), memory, facts["console"])
    show.console.print(table)
    for number, cable in status["cables"].items():
        words = ["plugged" if cable["plugged"] else "unplugged",
                 "carrier" if cable["carrier"] else "no carrier"]
        show.line(f"cable {number}: {', '.join(words)}")
    if "lag" in status:
        show.line(port_lag.line(status["lag"]))


@app.command()
def status(name: Name = "default",
           as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
           ) -> None:
    """Show what is running.  Exit status 1 if a part has crashed or restarted."""
    instance = Instance(name)
    facts = instance.status()
    if facts["parts"].get("drive", {}).get("state") == "running":
        facts["lag"] = port_lag.read(instance)
        # A halted drive answers nobody.
        facts["drive"] = ({"why": "the drive is halted"} if facts["parts"]["drive"]["halted"]
                          else mgmt.status(instance))
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        print_status(facts)
    if any(part["state"] == "crashed" or part["restarts"]
           for part in facts["parts"].values()):
        raise typer.Exit(1)


@app.command(context_settings={"ignore_unknown_options": True})
def host(command: Annotated[list[str] | None, typer.Argument(
             metavar="[-- COMMAND...]",
             help="Command to run in the guest.  Default: an interactive shell.")] = None,
         name: Name = "default",
         part: Annotated[str, typer.Option(
             help="Linux guest to use: host, or peer (the guest that runs nvmet).")]
         = "host") -> None:
    """Open a shell in the Linux host, or run one command there.

    A command's output and exit status become those of `essd host`.
    """
    instance = Instance(name)
    if not instance.status()["parts"].get(part, {}).get("ready"):
        instance.wait_ready(part)
    if not command:
        words = instance.ssh(part, tty=sys.stdin.isatty())
    else:
        # A single word is passed as a shell line; several words are quoted.
        line = command[0] if len(command) == 1 else shlex.join(command)
        words = [*instance.ssh(part), "--", line]
    sys.stdout.flush()
    os.execvp(words[0], words)


@app.command()
def console(name: Name = "default",
            log: Annotated[bool, typer.Option(
                "--log", help="Print the console's output so far, and exit.")] = False,
            ) -> None:
    """Attach this terminal to the drive's UART.  Press Ctrl-] to leave."""
    instance = Instance(name)
    if log:
        sys.stdout.write(console_module.log(instance).decode(errors="replace"))
        return
    instance.status()
    show.line("[press Ctrl-] to leave]")
    console_module.attach(instance)


@app.command(context_settings={"ignore_unknown_options": True})
def gdb(options: Annotated[list[str] | None, typer.Argument(
            metavar="[-- OPTION...]", help="More options for gdb, such as "
            "-batch -ex essd-qps.")] = None,
        name: Name = "default",
        elf: Annotated[Path | None, typer.Option(
            metavar="FILE", help="Symbols of the firmware.  Default: those of the "
            "image that runs, found by its build ID.")] = None) -> None:
    """Debug the drive's firmware: docs/firmware-debugging.md.

    The drive and its hosts are halted together until you say continue.
    """
    words = debugger.command(Instance(name), elf, options or [])
    sys.stdout.flush()
    os.execvp(words[0], words)


@app.command("power-cut")
def power_cut(name: Name = "default",
              restart: Annotated[bool, typer.Option(
                  "--restart", help="Power the drive on again at once.")] = False) -> None:
    """Cut the drive's power at once.  Data that was not flushed is lost."""
    instance = Instance(name)
    instance.ask("power-cut")
    show.line("power is off")
    if restart:
        instance.ask("power-on")
        show.line("power is on")


@app.command("power-on")
def power_on(name: Name = "default") -> None:
    """Power the drive on after `power-cut`."""
    Instance(name).ask("power-on")
    show.line("power is on")


@app.command("power-cycle")
def power_cycle(name: Name = "default") -> None:
    """Cut the drive's power and restore it: the same as `power-cut --restart`."""
    power_cut(name, restart=True)


@app.command()
def reset(name: Name = "default") -> None:
    """Press the drive's reset button: a warm reset that loses no data."""
    Instance(name).ask("reset")
    show.line("reset")


@app.command()
def save(name: Name = "default") -> None:
    """Save the state of the running drive and end its process; see `load`."""
    size = Instance(name).ask("save")["bytes"]
    show.line(f"saved: {size / 1e6:.1f} MB")


@app.command()
def load(name: Name = "default") -> None:
    """Resume the drive in a new process from the state that `save` wrote."""
    Instance(name).ask("load")
    show.line("running")


def show_ports(ports: list[dict[str, Any]], lag: dict[str, Any],
               as_json: bool) -> None:
    if as_json:
        print(json.dumps([entry | {"lag": port_lag.of_port(lag, entry["port"])}
                          for entry in ports], indent=2))
        return
    show.console.print(port_module.table(ports))
    show.line(port_lag.line(lag))
    if "ports" in lag:
        show.console.print(port_lag.table(lag))


def show_neighbours(ports: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(ports, indent=2))
        return
    if any(entry["neighbours"] for entry in ports):
        show.console.print(neighbours_module.table(ports))
    for line in neighbours_module.silences(ports):
        show.line(line)


@app.command()
def port(number: Annotated[int | None, typer.Argument(
             metavar="[N]", help="Port, 0 or 1.  Default: show both.")] = None,
         name: Name = "default",
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
         as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
         ) -> None:
    """Show the drive's ports; change a port's cable or link partner."""
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


@app.command()
def config(file: Annotated[Path | None, typer.Argument(
               metavar="[FILE]", help="YAML file with the keys to change; - is standard "
                                      "input.  Default: print the configuration.")] = None,
           name: Name = "default",
           words: Annotated[list[str] | None, typer.Option(
               "--set", metavar="KEY=VALUE", help="Change one key; repeatable.")] = None,
           check: Annotated[bool, typer.Option(
               "--check", help="Report mistakes; change nothing.")] = False,
           as_json: Annotated[bool, typer.Option(
               "--json", help="Print the saved configuration as JSON, and the values "
                              "that stay in force until the next start.")] = False,
           ) -> None:
    """Show or change the drive's configuration (see docs/configuration.md)."""
    instance = Instance(name)
    changes = file is not None or bool(words)
    base = settings_cmd.base(instance, check)
    if changes:
        wanted = settings_cmd.wanted(base, file, words or [])
        if not check:
            settings_cmd.report(settings_cmd.write(instance, wanted))
    elif check:
        settings_cmd.wanted(base, None)
    elif as_json:
        print(json.dumps({"saved": base, "until-next-start": settings_cmd.waiting(
            instance)}, indent=2))
    else:
        sys.stdout.write(settings_yaml.dump(base))
        for key, value in settings_cmd.waiting(instance).items():
            sys.stdout.write(f"# {key} is {value} until the drive's next start\n")


@app.command()
def trace(name: Name = "default",
          events: Annotated[str, typer.Option(
              metavar="LIST", help="Groups of events, separated by commas: qp, cm, "
                                   "commands, media, roce; or all.")]
          = "qp,cm,commands",
          output: Annotated[Path | None, typer.Option(
              metavar="FILE", help="Write the events to this file instead of the "
                                   "screen.")] = None,
          seconds: Annotated[float, typer.Option(
              min=0, help="End after this time; 0: when Ctrl-C is pressed.")] = 0,
          as_json: Annotated[bool, typer.Option(
              "--json", help="Print one JSON object per line.")] = False) -> None:
    """Show events inside the drive as they happen (see docs/tracing.md)."""
    trace_module.run(Instance(name), events, output, as_json, seconds)


@app.command()
def qmp(command: Annotated[str, typer.Argument(
            help="QMP command, such as query-status.")],
        arguments: Annotated[str, typer.Argument(
            help="The command's arguments, a JSON object.")] = "{}",
        name: Name = "default",
        part: Annotated[str, typer.Option(
            help=f"Part whose QEMU runs the command: {PARTS}.")] = "drive") -> None:
    """Send one command to the QEMU monitor (QMP) of a part."""
    try:
        data = json.loads(arguments)
    except ValueError as error:
        raise EssdError(f"the arguments {arguments!r} are not valid JSON: {error}"
                        ) from None
    reply = Instance(name).ask("qmp", part=part, execute=command, arguments=data)
    print(json.dumps(reply, indent=2))


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
           ) -> None:
    """Check whether this machine has what essd needs, and say how to get the rest."""
    findings = doctor_module.examine()
    if as_json:
        print(json.dumps([{"subject": finding.subject, "ok": finding.ok,
                           "text": finding.text, "remedy": finding.remedy}
                          for finding in findings], indent=2))
    for finding in findings if not as_json else []:
        mark = "ok " if finding.ok else "NO "
        show.line(f"{mark} {finding.subject}: {finding.text}",
                  None if finding.ok else "bold red")
        if finding.remedy:
            show.line(f"      {finding.remedy}")
    if not all(finding.ok for finding in findings):
        raise typer.Exit(2)


@app.command()
def demo(keep: Annotated[bool, typer.Option(
             "--keep", help="Leave the drive and the host running at the end.")] = False,
         target: Annotated[str, typer.Option(
             help="NVMe-oF target that the host uses: drive or nvmet.")] = "drive",
         ) -> None:
    """Boot the drive and a Linux host, use the drive, and report the results."""
    from .demo import run_demo
    run_demo(target, keep)


@app.command()
def lint(names: Annotated[list[str] | None, typer.Argument(
             metavar="[LINT]...", help="Lints to run.  Default: all of them.")] = None,
         every: Annotated[bool, typer.Option(
             "--all", help="Check every file, also where the default is only the "
                           "changed files.")]
         = False) -> None:
    """Run the checks that need no build: formats, names, documents, types."""
    from . import lints
    raise typer.Exit(lints.run_lints(names or [], every))


@app.command()
def test(every: Annotated[bool, typer.Option(
             "--all", help="Run the long tests too.")] = False,
         only: Annotated[list[str] | None, typer.Option(
             "--only", metavar="STAGE", help="Run only this stage; repeatable.")] = None,
         coverage: Annotated[bool, typer.Option(
             "--coverage", help="Run only the coverage stage: measure which lines and "
             "branches of the drive the native tests reach.")] = False,
         ) -> None:
    """Run every check and test, stage by stage, and show each stage's time."""
    from .testrun import run_tests
    raise typer.Exit(run_tests(every, (only or []) + ["coverage"] * coverage))


@app.command()
def bench(native: Annotated[bool, typer.Option(
              "--native", help="Measure with essd's own initiator instead of a Linux "
                               "host, which would limit the results.")] = False,
          seconds: Annotated[int, typer.Option(help="Seconds of each run.")] = 4,
          rounds: Annotated[int, typer.Option(
              help="Runs of each workload; the median is reported.")] = 2,
          only: Annotated[str, typer.Option(
              help="Run only workloads whose name contains this text.")] = "",
          mtu: Annotated[int, typer.Option(help="MTU of the links.")] = 1500,
          target: Annotated[str, typer.Option(
              help="Target to measure: both, drive or nvmet.")] = "both",
          as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
          ) -> None:
    """Measure the performance of the drive and of Linux nvmet for comparison."""
    bench_module.command(native, seconds, rounds, only, mtu, target, as_json)


@app.command()
def conform(native: Annotated[bool, typer.Option(
                "--native", help="Test the drive as one native process, which takes "
                                 "seconds.  Default: a drive booted in QEMU.")] = False,
            target: Annotated[str, typer.Option(
                metavar="ADDR", help="Test the NVMe-oF RoCEv2 target that has this "
                "address; needs --via.")] = "",
            via: Annotated[str, typer.Option(
                metavar="SOCKET|IFACE", help="Link to the --target: a QEMU stream "
                "socket, or a network interface (needs CAP_NET_RAW).")] = "",
            ip: Annotated[str, typer.Option(
                metavar="OWN", help="The suite's own address on that link.")] = "",
            peer: Annotated[str, typer.Option(
                metavar="nvmet", help="Test the Linux kernel's own target in a guest."
                )] = "",
            list_: Annotated[bool, typer.Option(
                "--list", help="List the tests with clause and purpose, and exit."
                )] = False,
            only: Annotated[list[str] | None, typer.Option(
                metavar="A,B.C", help="Run only these chapters, groups or tests; "
                "repeatable.")] = None,
            every: Annotated[bool, typer.Option(
                "--all", help="Run the long tests too.")] = False,
            mutants: Annotated[bool, typer.Option(
                "--mutants", help="Test the suite itself: build drives with deliberate "
                "defects and check that it fails each of them.")] = False,
            seed: Annotated[int, typer.Option(
                min=0, help="Seed of all random values in the tests.")] = 1,
            slow: Annotated[int, typer.Option(
                min=1, metavar="N", help="Multiply all time-outs by N.")] = 1,
            junit: Annotated[Path | None, typer.Option(
                metavar="FILE", help="Write a JUnit report for CI servers.")] = None,
            html: Annotated[Path | None, typer.Option(
                metavar="FILE", help="Write an HTML report, one file.")] = None,
            pcap: Annotated[Path | None, typer.Option(
                metavar="DIR", help="Write a capture of each test into this folder."
                )] = None,
            ) -> None:
    """Run the conformance suite against a drive or another NVMe-oF target.

    Exit status 0 means that every applicable test was run and passed.
    """
    from . import conform as conform_module
    options = conform_module.Options(
        native=native, target=target, via=via, ip=ip, peer=peer,
        only=[x for text in only or [] for x in text.split(",") if x], every=every,
        seed=seed, slow=slow, junit=junit, html=html, pcap=pcap)
    try:
        if only and not options.only:
            raise conform_module.UsageError(
                "--only names no test: ./essd conform --list shows the names")
        options.check()
        if list_:
            raise typer.Exit(conform_module.list_tests(options))
        if mutants:
            from . import mutants as mutants_module
            raise typer.Exit(mutants_module.command(options))
        results = conform_module.run(options)
    except conform_module.UsageError as error:
        show.error(str(error))
        raise typer.Exit(2) from None
    raise typer.Exit(0 if results.is_conforming else 1)


def exit_on_sigterm(*_: object) -> None:
    """Handle SIGTERM by SystemExit, so that clean-up code ends started processes."""
    sys.exit(128 + signal.SIGTERM)


def usage_line(mistake: Any) -> str:
    """Describe a mistake on the command line in one line of essd's own style."""
    text = " ".join(mistake.format_message().split()).removesuffix(".")
    command = mistake.ctx.command_path if getattr(mistake, "ctx", None) else "essd"
    return f"{text[:1].lower()}{text[1:]}; see {command} --help"


def program_name(command: Any) -> str:
    """The name of the program that a subprocess's command starts."""
    return Path(command if isinstance(command, str) else command[0]).name


def main() -> None:
    signal.signal(signal.SIGTERM, exit_on_sigterm)
    try:
        # Without arguments typer prints the help and must not raise, hence
        # standalone mode.
        sys.exit(app(prog_name="essd", standalone_mode=not sys.argv[1:]) or 0)
    except typer.exceptions.TyperException as mistake:
        show.error(usage_line(mistake))
        sys.exit(mistake.exit_code)
    except settings_cmd.Mistakes as mistakes:
        for text in mistakes.lines:
            show.error(text)
        sys.exit(1)
    except EssdError as error:
        show.error(str(error))
        sys.exit(1)
    except subprocess.TimeoutExpired as late:
        show.error(f"{program_name(late.cmd)} did not end within {late.timeout:.0f} s "
                   "and was killed")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)



