# SPDX-License-Identifier: BSD-2-Clause
"""The command line of essd."""

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
from . import cpu, doctor as doctor_module, neighbours as neighbours_module, setup, show
from . import port as port_module
from . import fw_build, port_lag
from . import trace as trace_module
from . import settings_cmd, settings_yaml
from .errors import EssdError
from .instance import Instance
from .setup import Wish
from .steps import Job, wait_target

app = typer.Typer(
    help="An Ethernet SSD, emulated down to its boot ROM, and a Linux host that "
         "uses it.\n\nStart with [bold]essd demo[/bold], or [bold]essd up[/bold] "
         "and then [bold]essd host[/bold].",
    no_args_is_help=True, rich_markup_mode="rich", add_completion=False,
    pretty_exceptions_enable=False)

Name = Annotated[str, typer.Option("--name", metavar="NAME",
                                   help="Which instance, if you run several.")]
Port0 = Annotated[str | None, typer.Option(
    metavar="ADDR/LEN", help="Address of port 0; IPv4, IPv6 or both (A,B).  "
    f"Default: what the drive has, {setup.DEFAULT_PORTS[0]} if it is new.")]
Port1 = Annotated[str | None, typer.Option(
    metavar="ADDR/LEN", help="Address of port 1.  Default: likewise, "
    f"{setup.DEFAULT_PORTS[1]}.")]
PARTS = "drive, host or peer"


def show_version(asked: bool) -> None:
    if asked:
        show.line(f"essd {fw_build.version()}")
        raise typer.Exit


@app.callback()
def main_options(_version: Annotated[bool, typer.Option(
        "--version", help="The version of the drive and its tools.",
        callback=show_version, is_eager=True)] = False) -> None:
    """What stands before any command."""


@app.command()
def up(name: Name = "default",
       port0: Port0 = None,
       port1: Port1 = None,
       nqn: Annotated[str | None, typer.Option(
           help="Name of the subsystem; default: from the drive's identity.")] = None,
       size: Annotated[str | None, typer.Option(
           help="Capacity of a new drive, 64M to 16T.  Default: 8G.")] = None,
       media: Annotated[Path | None, typer.Option(
           help="File with the drive's data; made (raw) if it does not exist and "
                "--size is given.")] = None,
       media_format: Annotated[str | None, typer.Option(
           metavar="raw|qcow2", help="Format of an existing --media file; asked for "
           "once, then recorded beside the file.")] = None,
       mtu: Annotated[int | None, typer.Option(
           help="MTU of the links, 1280 to 9000.  Default: what the drive has, 1500 "
                "if it is new.")] = None,
       host_mtu: Annotated[int, typer.Option(
           help="MTU of the host's cards, if it is another one.")] = 0,
       host: Annotated[bool, typer.Option(
           help="Start the Linux host too, or the drive alone.")] = True,
       new: Annotated[bool, typer.Option(
           "--new", help="Throw the old drive and its data away first.")] = False,
       capture: Annotated[bool, typer.Option(
           "--capture", help="Record every frame of both cables (pcap).")] = False,
       target: Annotated[str, typer.Option(
           help="What is at the other end: drive, or nvmet (Linux's own "
                "target, to compare with).")] = "drive",
       cpus: Annotated[int, typer.Option(help="Virtual CPUs of the host.")] = 1,
       config_file: Annotated[Path | None, typer.Option(
           "--config", metavar="FILE", help="Configure the drive by this YAML file "
                                            "(docs/configuration.md).")] = None,
       ) -> None:
    """Power the drive on, cabled to a Linux host."""
    if target not in ("drive", "nvmet"):
        raise EssdError(f"--target {target}: it is drive or nvmet")
    instance = Instance(name)
    if instance.is_running:
        raise EssdError(f"instance {name} is running already: ./essd down ends it")
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
         every: Annotated[bool, typer.Option("--all", help="Every instance.")] = False,
         ) -> None:
    """End everything that `up` started.  The drive keeps its data."""
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
           as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
           ) -> None:
    """What runs, and whether all does.  Status 1 if a part crashed or restarted."""
    instance = Instance(name)
    facts = instance.status()
    if facts["parts"].get("drive", {}).get("state") == "running":
        facts["lag"] = port_lag.read(instance)
        facts["drive"] = mgmt.status(instance)
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        print_status(facts)
    if any(part["state"] == "crashed" or part["restarts"]
           for part in facts["parts"].values()):
        raise typer.Exit(1)


@app.command(context_settings={"ignore_unknown_options": True})
def host(command: Annotated[list[str] | None, typer.Argument(
             metavar="[-- COMMAND...]", help="Default: a shell.")] = None,
         name: Name = "default",
         part: Annotated[str, typer.Option(help="host or peer.")] = "host") -> None:
    """A shell in the Linux host, or one command with its output and status."""
    instance = Instance(name)
    if not instance.status()["parts"].get(part, {}).get("ready"):
        instance.wait_ready(part)
    if not command:
        words = instance.ssh(part, tty=sys.stdin.isatty())
    else:
        # One word may be a shell line; several are one command.
        line = command[0] if len(command) == 1 else shlex.join(command)
        words = [*instance.ssh(part), "--", line]
    sys.stdout.flush()
    os.execvp(words[0], words)


@app.command()
def console(name: Name = "default",
            log: Annotated[bool, typer.Option(
                "--log", help="Print what it has said so far, and end.")] = False,
            ) -> None:
    """The drive's UART.  Ctrl-] leaves."""
    instance = Instance(name)
    if log:
        sys.stdout.write(console_module.log(instance).decode(errors="replace"))
        return
    instance.status()
    show.line("[Ctrl-] leaves]")
    console_module.attach(instance)


@app.command("power-cut")
def power_cut(name: Name = "default",
              restart: Annotated[bool, typer.Option(
                  "--restart", help="Power it on again at once.")] = False) -> None:
    """Cut the drive's power at once: what was not flushed is lost."""
    instance = Instance(name)
    instance.ask("power-cut")
    show.line("power is off")
    if restart:
        instance.ask("power-on")
        show.line("power is on")


@app.command("power-on")
def power_on(name: Name = "default") -> None:
    """Power the drive on after a power-cut."""
    Instance(name).ask("power-on")
    show.line("power is on")


@app.command("power-cycle")
def power_cycle(name: Name = "default") -> None:
    """Power off and on again: the same as power-cut --restart."""
    power_cut(name, restart=True)


@app.command()
def reset(name: Name = "default") -> None:
    """Press the drive's reset button: a warm reset, nothing is lost."""
    Instance(name).ask("reset")
    show.line("reset")


@app.command()
def save(name: Name = "default") -> None:
    """Stop the drive as it is and end its process; `load` goes on from there."""
    size = Instance(name).ask("save")["bytes"]
    show.line(f"saved: {size / 1e6:.1f} MB")


@app.command()
def load(name: Name = "default") -> None:
    """Go on from where `save` stopped, in a new process."""
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
             metavar="[N]", help="0 or 1.  Default: show both.")] = None,
         name: Name = "default",
         plug: Annotated[bool | None, typer.Option(
             "--plug/--unplug", "--up/--down",
             help="Plug the cable in, or pull it.")] = None,
         flap: Annotated[int, typer.Option(
             min=0, metavar="TIMES", help="Pull the cable and plug it in again.")] = 0,
         partner_fec: Annotated[str | None, typer.Option(
             metavar="none|fc|rs|auto", help="What the far end runs.")] = None,
         partner_speed: Annotated[int | None, typer.Option(
             metavar="10|25", help="The far end's speed in Gb/s.")] = None,
         partner: Annotated[bool | None, typer.Option(
             "--partner/--no-partner", help="Somebody is at the far end, or not.")]
         = None,
         partner_fault: Annotated[bool | None, typer.Option(
             "--partner-fault/--no-partner-fault",
             help="The far end does not receive what the drive sends.")] = None,
         ber: Annotated[float | None, typer.Option(
             metavar="RATIO", help="Bit errors of the cable, such as 1e-6.")] = None,
         seed: Annotated[int | None, typer.Option(help="Of the bit errors.")] = None,
         neighbours: Annotated[bool, typer.Option(
             "--neighbours", help="Show what the drive sees there by LLDP.")] = False,
         as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
         ) -> None:
    """Show the drive's ports; change the cable and what is at its far end."""
    instance = Instance(name)
    instance.status()       # complains if nothing runs
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
        raise EssdError("which port? 0 or 1")
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
               metavar="[FILE]", help="YAML with what is to change; - is standard "
                                      "input.  Default: print everything.")] = None,
           name: Name = "default",
           words: Annotated[list[str] | None, typer.Option(
               "--set", metavar="KEY=VALUE", help="Change one key; repeatable.")] = None,
           check: Annotated[bool, typer.Option(
               "--check", help="Say what would be wrong; change nothing.")] = False,
           as_json: Annotated[bool, typer.Option(
               "--json", help="Print as JSON what is saved and in force.")] = False,
           ) -> None:
    """Show or change the drive's configuration: docs/configuration.md."""
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
              metavar="LIST", help="Some of qp, cm, commands, media, roce; or all.")]
          = "qp,cm,commands",
          output: Annotated[Path | None, typer.Option(
              metavar="FILE", help="Write them there, not on the screen.")] = None,
          seconds: Annotated[float, typer.Option(
              min=0, help="End by itself after so long.  Default: with Ctrl-C.")] = 0,
          as_json: Annotated[bool, typer.Option(
              "--json", help="One JSON object a line.")] = False) -> None:
    """What happens inside the drive, live: docs/tracing.md."""
    trace_module.run(Instance(name), events, output, as_json, seconds)


@app.command()
def qmp(command: Annotated[str, typer.Argument(help="Such as query-status.")],
        arguments: Annotated[str, typer.Argument(help="JSON.")] = "{}",
        name: Name = "default",
        part: Annotated[str, typer.Option(help=f"{PARTS}.")] = "drive") -> None:
    """One command to a part's QEMU monitor."""
    try:
        data = json.loads(arguments)
    except ValueError as error:
        raise EssdError(f"arguments are no JSON: {error}") from None
    reply = Instance(name).ask("qmp", part=part, execute=command, arguments=data)
    print(json.dumps(reply, indent=2))


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
           ) -> None:
    """What this machine lacks, and how to get it."""
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
             "--keep", help="Leave everything running at the end.")] = False,
         target: Annotated[str, typer.Option(help="drive or nvmet.")] = "drive",
         ) -> None:
    """Boot the drive and a Linux host, use the drive, report."""
    from .demo import run_demo
    run_demo(target, keep)


@app.command()
def lint(names: Annotated[list[str] | None, typer.Argument(
             metavar="[LINT]...", help="these only; all of them if none is named")] = None,
         every: Annotated[bool, typer.Option(
             "--all", help="every file, where the default is those that changed")]
         = False) -> None:
    """The checks that need no build: formats, names, documents, types."""
    from . import lints
    raise typer.Exit(lints.run_lints(names or [], every))


@app.command()
def test(every: Annotated[bool, typer.Option(
             "--all", help="The long ones too.")] = False,
         only: Annotated[list[str] | None, typer.Option(
             "--only", metavar="STAGE", help="These stages only; repeatable.")] = None,
         coverage: Annotated[bool, typer.Option(
             "--coverage", help="Which lines and branches of the drive the native "
             "tests reach, and no other stage.")] = False,
         ) -> None:
    """Every test, with the time that each stage took."""
    from .testrun import run_tests
    raise typer.Exit(run_tests(every, (only or []) + ["coverage"] * coverage))


@app.command()
def bench(native: Annotated[bool, typer.Option(
              "--native", help="Our own initiator on the drive's link, where no "
                               "Linux host is the limit.")] = False,
          seconds: Annotated[int, typer.Option(help="Length of one run.")] = 4,
          rounds: Annotated[int, typer.Option(help="Runs of each; medians.")] = 2,
          only: Annotated[str, typer.Option(
              help="Workloads whose name contains this.")] = "",
          mtu: Annotated[int, typer.Option(help="MTU of the links.")] = 1500,
          target: Annotated[str, typer.Option(
              help="both, drive or nvmet.")] = "both",
          as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
          ) -> None:
    """The drive and Linux nvmet side by side."""
    bench_module.command(native, seconds, rounds, only, mtu, target, as_json)


@app.command()
def conform(native: Annotated[bool, typer.Option(
                "--native", help="The whole drive in one process, in seconds; "
                                 "default: a drive booted in QEMU.")] = False,
            target: Annotated[str, typer.Option(
                metavar="ADDR", help="Any NVMe-oF RoCEv2 target on a link.")] = "",
            via: Annotated[str, typer.Option(
                metavar="SOCKET|IFACE", help="That link: a QEMU stream socket, or an "
                "interface (needs CAP_NET_RAW).")] = "",
            ip: Annotated[str, typer.Option(
                metavar="OWN", help="The suite's own address on that link.")] = "",
            peer: Annotated[str, typer.Option(
                metavar="nvmet", help="Linux's own target, in a guest.")] = "",
            list_: Annotated[bool, typer.Option(
                "--list", help="The tests, with clause and purpose.")] = False,
            only: Annotated[list[str] | None, typer.Option(
                metavar="A,B.C", help="Chapters, groups or tests; repeatable.")] = None,
            every: Annotated[bool, typer.Option(
                "--all", help="The long ones too.")] = False,
            mutants: Annotated[bool, typer.Option(
                "--mutants", help="Does the suite notice deliberate defects?")] = False,
            seed: Annotated[int, typer.Option(
                min=0, help="Of everything random in the tests.")] = 1,
            slow: Annotated[int, typer.Option(
                min=1, metavar="N", help="Time-outs N times as long.")] = 1,
            junit: Annotated[Path | None, typer.Option(
                metavar="FILE", help="Report for CI servers.")] = None,
            html: Annotated[Path | None, typer.Option(
                metavar="FILE", help="Report for people: one file.")] = None,
            pcap: Annotated[Path | None, typer.Option(
                metavar="DIR", help="A capture of each test.")] = None,
            ) -> None:
    """The conformance suite: does an Ethernet SSD do what the standards say?

    Status 0: everything that applies was run and passed.
    """
    from . import conform as conform_module
    options = conform_module.Options(
        native=native, target=target, via=via, ip=ip, peer=peer,
        only=[x for text in only or [] for x in text.split(",") if x], every=every,
        seed=seed, slow=slow, junit=junit, html=html, pcap=pcap)
    try:
        if only and not options.only:
            raise conform_module.UsageError("--only names no test: see --list")
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


def stop(*_: object) -> None:
    """Ended from outside: what was started is ended, too."""
    sys.exit(128 + signal.SIGTERM)


def usage_line(mistake: Any) -> str:
    """What is wrong with the command line, in one of our lines."""
    text = " ".join(mistake.format_message().split()).removesuffix(".")
    command = mistake.ctx.command_path if getattr(mistake, "ctx", None) else "essd"
    return f"{text[:1].lower()}{text[1:]}; see {command} --help"


def program_name(command: Any) -> str:
    """Which program a subprocess's command starts."""
    return Path(command if isinstance(command, str) else command[0]).name


def main() -> None:
    signal.signal(signal.SIGTERM, stop)
    try:
        # Without any word it prints its help, which is not for us to say.
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
                   "and was ended")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)



