# SPDX-License-Identifier: BSD-2-Clause
"""Commands that start, stop and use an instance."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ...base import chosen, show
from ...base.errors import EssdError
from ...instance import fleet
from ...instance.config import (Config, DEFAULT_PORTS, HARTS, HOST_KINDS, LINK_KINDS,
                                NATIVE, RISCV, STOCK, STREAM)
from ...instance.instance import Instance
from .. import completion
from ..base import AsJson, LowerFloor, Name, Part, Parts, RUN, command

NewName = Annotated[str, typer.Option(
    "--name", metavar="NAME", autocompletion=completion.instances,
    help="Name of the instance, if you run several.")]
Port0 = Annotated[str | None, typer.Option(
    metavar="ADDR/LEN|PLACE", help="Address of port 0: IPv4, IPv6, or both as "
    "ADDR/LEN,ADDR/LEN.  Default: the address saved in the drive, or "
    f"{DEFAULT_PORTS[0]} for a new drive.  And, with a comma between them, where the "
    "port's cable leads if not to the host: listen=PATH, dial=PATH, tcp=ADDR:PORT, "
    "tcp-listen=[ADDR:]PORT, tap=NAME or iface=NAME (see docs/connect-your-own.md).")]
Port1 = Annotated[str | None, typer.Option(
    metavar="ADDR/LEN|PLACE", help="Address of port 1, written like --port0.  Default: the "
    f"address saved in the drive, or {DEFAULT_PORTS[1]} for a new drive.")]


@command(RUN)
def up(name: NewName = chosen.DEFAULT,
       port0: Port0 = None,
       port1: Port1 = None,
       nqn: Annotated[str | None, typer.Option(
           help="NVMe Qualified Name of the subsystem.  Default: the name saved in the "
                "drive; a new drive makes one from its UUID.")] = None,
       size: Annotated[str | None, typer.Option(
           help="Capacity of a new drive, 64M to 16T.  Default: 8G.  Above 75G, the "
                "drive gets a block medium, as with --block.")] = None,
       block: Annotated[bool, typer.Option(
           "--block", help="Give a new drive a block medium, without flash that wears, "
           "instead of a NAND array.")] = False,
       media: Annotated[Path | None, typer.Option(
           help="File that holds the data of a drive with a block medium.  If the file does "
                "not exist and --size is given, a raw file is created.")] = None,
       media_format: Annotated[str | None, typer.Option(
           metavar="raw|qcow2", help="Format of an existing --media file.  It is needed "
           "once and then recorded in a file beside the media file.")] = None,
       nand: Annotated[str | None, typer.Option(
           metavar="[SIZE][,KEY=VALUE]...", help="What NAND array a new drive has, such as "
           "profile=qlc,plp=on or 12G,dies=4.  SIZE is the size of the array, of which hosts "
           "see a part; default: large enough for --size.  Keys: profile, spare, channels, "
           "dies, seed, plp and timing (see docs/nand.md).")] = None,
       namespaces: Annotated[str | None, typer.Option(
           metavar="NxSIZE[@4096]", help="Divide a new drive into namespaces, such as "
           "4x1G or 4 for equal shares, with blocks of 512 or 4096 bytes.  "
           "Default: one over the whole drive.")] = None,
       mtu: Annotated[int | None, typer.Option(
           help="MTU of the links, 1280 to 9000.  Default: the MTU saved in the drive, "
                "or 1500 for a new drive.")] = None,
       host_mtu: Annotated[int, typer.Option(
           help="MTU of the host's network cards; 0: the MTU of the links.")] = 0,
       straps: Annotated[str | None, typer.Option(
           metavar="PIN,...", help="The drive's strap pins that are high until the instance "
           "ends, such as 5,6.  They override settings of the drive (see "
           "docs/hardware/soc.md).  Default: none.")] = None,
       boot_key: Annotated[Path | None, typer.Option(
           metavar="FILE", help="PEM file with an Ed25519 private key, whose public key is "
           "fused into a new drive: it starts only firmware that is signed with this key "
           "(see docs/firmware-update.md).  Default: no key; images need no signature.")]
       = None,
       hart: Annotated[str, typer.Option(
           metavar="riscv|native", help="What executes the drive's firmware: an emulated "
           "RISC-V processor, or this machine's own, which is faster (see "
           "docs/hardware/native-hart.md).")] = RISCV,
       device: Annotated[list[str] | None, typer.Option(
           "--device", metavar="TYPE,bus=BUS,address=ADDRESS[,KEY=VALUE]...", help="Put one "
           "of QEMU's devices on an I2C bus of the drive until the instance ends, such as "
           "at24c-eeprom,bus=i2c.2,address=0x50,rom-size=256 (see docs/hardware/i2c.md).  "
           "Can be given several times.")] = None,
       host: Annotated[bool, typer.Option(
           help="Start the Linux host too, or only the drive.")] = True,
       host_kind: Annotated[str, typer.Option(
           "--host-kind", metavar="KIND", help="What the host is: stock (Debian's kernel in a "
           "virtual machine), or uml (user-mode Linux, a kernel that is a program and starts "
           "in a second; see docs/hosts.md).")] = STOCK,
       link: Annotated[str, typer.Option(
           metavar="KIND", help="How frames pass between host and drive: stream (a socket), or "
           "vhost-user (memory that both share; see docs/hosts.md).")] = STREAM,
       new: Annotated[bool, typer.Option(
           "--new", help="Delete the existing drive with its data first, and start "
                         "a new one.")] = False,
       capture: Annotated[bool, typer.Option(
           "--capture", help="Record every frame of all cables in pcap files.")] = False,
       capture_size: Annotated[str, typer.Option(
           "--capture-size", metavar="SIZE", help="With --capture: when a file has this "
           "size, a new one begins, and the last 4 are kept; 0: no limit.")] = "64M",
       capture_keys: Annotated[Path | None, typer.Option(
           "--capture-keys", metavar="FILE", help="With --capture: write the secrets of the "
           "drives' TLS connections to this file, so that tshark can decrypt them (see "
           "docs/captures.md).  Default: no drive gives a secret away.")] = None,
       target: Annotated[str, typer.Option(
           help="NVMe-oF target that the host uses: drive, or nvmet (a Linux guest "
                "with the kernel's own target, for comparison).")] = "drive",
       cpus: Annotated[int, typer.Option(help="Virtual CPUs of the host.")] = 1,
       halt: Annotated[bool, typer.Option(
           "--halt", help="At the end, reset the drive and let its harts stand at the "
           "reset vector, and the host with them, until gdb continues them.")] = False,
       lower_floor: LowerFloor = False,
       config_file: Annotated[Path | None, typer.Option(
           "--config", metavar="FILE", help="YAML file with the drive's configuration "
                                            "(see docs/configuration.md).")] = None,
       topology: Annotated[Path | None, typer.Option(
           "--topology", metavar="FILE", help="YAML file that names drives, hosts, "
           "switches and cables (see docs/topologies.md).")] = None,
       drives: Annotated[int | None, typer.Option(
           "--drives", metavar="N", help="Start N drives, one host and two switches: one "
           "for the ports 0, one for the ports 1.")] = None,
       hosts: Annotated[int | None, typer.Option(
           "--hosts", metavar="N", min=1, help="Start N hosts, named host0 and so on, with "
           "one drive or those of --drives, and two switches.")] = None,
       ) -> None:
    """Start the drive and a Linux host that is connected to it by two cables.

    With --drives, --hosts or --topology, start several drives, hosts and switches.
    """
    chosen.check_word("--target", target, ("drive", "nvmet"))
    chosen.check_word("--host-kind", host_kind, HOST_KINDS)
    chosen.check_word("--hart", hart, HARTS)
    if halt and hart == NATIVE:
        raise EssdError("--halt does not go with --hart native, which has no reset vector "
                        "and no gdb (docs/hardware/native-hart.md)")
    chosen.check_word("--link", link, LINK_KINDS)
    from ...machine import i2c_devices, straps as straps_module
    from ...storage import nand as nand_module
    from ...supervisor import capture_rotation
    capture_bytes = capture_rotation.parse_limit(capture_size)
    if nand is not None:
        nand_module.parse(nand)     # before anything is built
    pins = straps_module.parse(straps) if straps is not None else []
    devices = i2c_devices.parse_all(device or [], Path.cwd())
    if topology is not None or drives is not None or hosts is not None:
        from ...topology import command as topology_cmd
        several = "--topology" if topology else "--drives" if drives else "--hosts"
        for option, is_given in {
                "--port0": port0, "--port1": port1, "--nqn": nqn, "--media": media,
                "--media-format": media_format, "--config": config_file,
                "--namespaces": namespaces, "--target": target != "drive",
                 "--host-mtu": host_mtu, "--hart": hart != RISCV,
                 "--link": link != STREAM}.items():
            if is_given:
                raise EssdError(f"{option} does not go with {several}, which starts a "
                                "whole topology: write what each drive has into a topology "
                                "file (docs/topologies.md)")
        topology_cmd.up(topology_cmd.Wish(name, topology, drives, new, capture,
                                          capture_bytes, size, mtu, cpus, host, hosts, nand,
                                          block, pins, devices, boot_key,
                                          lower_floor, host_kind, capture_keys))
        return
    from ...base import claims
    from ...machine import outside
    from ...setup import setup
    from ...storage import boot_key as boot_key_module
    instance = Instance(name)
    if instance.is_running:
        raise EssdError(f"instance {name} is running already: stop it with "
                        f"{instance.hint('down')}")
    if boot_key is not None:
        boot_key_module.of_file(boot_key)   # before the old drive is deleted
    port0, place0 = outside.split(port0)
    port1, place1 = outside.split(port1)
    wish = setup.Wish(name=name, ports=[port0, port1], outside=[place0, place1],
                      nqn=nqn, size=size, media=media, media_format=media_format,
                      nand=nand, block=block, straps=pins, boot_key=boot_key,
                      hart=hart, devices=devices, mtu=mtu, host_mtu=host_mtu, host=host,
                      target=target,
                      namespaces=namespaces, capture=capture, capture_bytes=capture_bytes,
                      cpus=cpus, lower_floor=lower_floor, host_kind=host_kind,
                      link=link, capture_keys=capture_keys)
    with claims.claimed(name, "essd up"):
        config = setup.made(wish, config_file, new)
        for line in setup.array_lines(config):
            show.note(line)
        start_instance(instance, config, halt)
    if show.is_quiet:
        return
    print_status(instance.status())
    show.line()
    for line in (*setup.connections(config), *setup.captures(config)):
        show.line(line)
    if halt:
        show.line(f"next: {instance.hint('gdb'):30} the harts stand at the reset vector")
    elif host:
        show.line(f"next: {instance.hint('host'):30} a shell in the host")
        address = next(x for x in config.links if not x.outside).target_address
        discover = f"nvme discover -t rdma -a {address} -s 4420"
        show.line(f"      {instance.hint('host', '--', discover)}")
    next_one = "     " if halt or host else "next:"
    show.line(f"{next_one} {instance.hint('console'):30} the drive's UART")


def start_instance(instance: Instance, config: Config, halt: bool) -> None:
    """Start one drive, or nvmet, and wait until its host can use it."""
    from ...base import interrupts
    from ...instance.steps import Job, wait_target
    try:
        instance.start(config, bound=True)
        instance.wait_started()
        if config.hosts:
            with show.busy("starting the Linux host"):
                instance.wait_ready("host")
                wait_target(Job.of(instance))
    except interrupts.INTERRUPTS:
        with interrupts.ignored():
            parts = ", ".join(config.parts())
            instance.stop_started()
        show.error(f"interrupted: ended what this command had started ({parts}); the "
                   f"drive {instance.name} keeps its data")
        raise
    except BaseException:
        instance.release()      # What runs can still be looked at.
        raise
    if halt:
        for one in config.drives:
            instance.ask("reset", part=one, halt=True)
    instance.release()


@command(RUN)
def down(name: Annotated[str, typer.Option(
             "--name", metavar="NAME", show_default=False,
             autocompletion=completion.instances,
             help="Name of the instance.  Default: the only one that runs.")] = "",
         every: Annotated[bool, typer.Option(
             "--all", help="Stop every running instance.")] = False,
         ) -> None:
    """Stop everything that `up` started.  The drive keeps its data."""
    from ...base import paths
    from ...drive import mgmt
    if every:
        names = sorted({*(p.parent.name for p in paths.runtime().glob("*/state.json")),
                        *chosen.running()})
    else:
        names = [chosen.instance(name)]
    failed = False
    for one in names:
        try:
            mgmt.shut_down(Instance(one))
            show.note(f"{one}: ended" if Instance(one).stop() else
                      f"{one}: nothing was running")
        except EssdError as error:      # The others are stopped.
            show.error(str(error))
            failed = True
    if failed:
        raise typer.Exit(1)


def print_status(status: dict[str, Any]) -> None:
    from ...drive import port_lag
    from ...observe import status as status_module
    show.console.print(status_module.parts_table(status))
    for line in (*status_module.cable_lines(status), *status_module.firmware_lines(status),
                 *status_module.tcp_lines(status), *status_module.ana_lines(status)):
        show.line(line)
    if "lag" in status:
        show.line(port_lag.line(status["lag"]))


@command(RUN, "list")
def list_instances(as_json: AsJson = False) -> None:
    """List all instances and drives, also those that are stopped."""
    from ...setup import instances
    show.listing(instances.all_facts(), as_json, instances.table,
                 "there is no drive yet: create one with "
                 f"{chosen.hint(chosen.DEFAULT, 'up')}")


def can_ask() -> bool:
    return sys.stdin.isatty()


@command(RUN, "rm")
def remove(name: Annotated[str, typer.Argument(
               help="The drive to delete.", autocompletion=completion.stopped)],
           yes: Annotated[bool, typer.Option(
               "--yes", "-y", help="Do not ask.")] = False) -> None:
    """Delete a stopped drive with its data, its identity and its logs."""
    from ...setup import instances
    found = instances.check_removable(name)
    size = instances.size_words(instances.disk_bytes(*found))
    if not yes:
        if not can_ask():
            raise EssdError(f"rm {name}: cannot ask, because the input is not a terminal: "
                            "give --yes")
        for folder in found:
            show.line(str(folder))
        if not typer.confirm(f"Delete the drive {name} with its data ({size})?"):
            raise EssdError(f"rm {name}: nothing was deleted")
    instances.remove(name)
    show.note(f"{name}: deleted, {size}")


@command(RUN)
def status(part: Annotated[str, typer.Option(
               "--part", metavar="PART", show_default=False, autocompletion=completion.parts,
               help="Part of a topology, or a pattern such as drive[3-5].  Default: all."
               )] = "",
           name: Name = "",
           as_json: AsJson = False,
           ) -> None:
    """Show what is running.  Exit status 1 if a part has crashed or restarted."""
    from ...observe import status as status_module
    instance = Instance(name)
    facts = status_module.facts(instance, part)
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        print_status(facts)
    if status_module.is_bad(facts):
        raise typer.Exit(1)


@command(RUN, context_settings={"ignore_unknown_options": True})
def host(command: Annotated[list[str] | None, typer.Argument(
             metavar="[-- COMMAND...]",
             help="Command to run in the guest.  Default: an interactive shell.")] = None,
         name: Name = "",
         part: Annotated[str, typer.Option(
             autocompletion=completion.parts,
             show_default=False, help="Linux guest to use: host, peer (the guest that "
             "runs nvmet), or a host of a topology.  Default: the first one.")] = ""
         ) -> None:
    """Open a shell in the Linux host, or run one command there.

    A command's output and exit status become those of `essd host`.
    """
    from ...observe.status import GUESTS, kind_of
    instance = Instance(name)
    parts = instance.status()["parts"]
    guests = [name for name in parts
              if kind_of(name, parts[name]) in GUESTS]
    if not guests:
        raise EssdError(f"{instance.name} has no Linux host, because it was started without "
                        "one: attach a machine of your own (docs/connect-your-own.md), or "
                        f"start it again with {instance.hint('up')}")
    part = chosen.check_word("--part", part or guests[0], guests)
    if not parts[part]["ready"]:
        instance.wait_ready(part)
    if not command:
        words = instance.ssh(part, tty=sys.stdin.isatty())
    else:
        # A single word is passed as a shell line; several words are quoted.
        line = command[0] if len(command) == 1 else shlex.join(command)
        words = [*instance.ssh(part), "--", line]
    sys.stdout.flush()
    os.execvp(words[0], words)


def print_keys(is_asked: bool) -> None:
    """`essd config --keys`, which needs no instance."""
    from ...setup import settings_cmd
    if is_asked:
        sys.stdout.write(settings_cmd.describe())
        raise typer.Exit


@command(RUN)
def config(file: Annotated[Path | None, typer.Argument(
               metavar="[FILE]", help="YAML file with the keys to change; - is standard "
                                      "input.  Default: print the configuration.")] = None,
           part: Part = "",
           name: Name = "",
           words: Annotated[list[str] | None, typer.Option(
               "--set", metavar="KEY=VALUE", autocompletion=completion.settings_keys,
               help="Change one key; repeatable.")] = None,
           restart: Annotated[bool, typer.Option(
               "--restart", help="Restart the firmware afterwards if a changed key waits "
                                 "for the next start; connections end, no data are "
                                 "lost.")] = False,
           check: Annotated[bool, typer.Option(
               "--check", help="Report mistakes; change nothing.")] = False,
           _keys: Annotated[bool, typer.Option(
               "--keys", callback=print_keys, is_eager=True,
               help="List all keys: what they do, their values and defaults, and whether "
                    "a change takes effect at once.")] = False,
           as_json: Annotated[bool, typer.Option(
               "--json", help="Print the saved configuration as JSON, and the values "
                              "that stay in force until the next start.")] = False,
           ) -> None:
    """Show or change the drive's configuration (see docs/configuration.md)."""
    from ...settings import settings
    from ...setup import settings_cmd
    instance = fleet.one(Instance(name), part)
    has_changes = file is not None or bool(words)
    if restart and (check or not has_changes):
        raise EssdError("--restart goes with changes: name a FILE, or use --set KEY=VALUE")
    base = settings_cmd.base(instance, check)
    if has_changes:
        wanted = settings_cmd.wanted(base, file, words or [])
        if not check:
            changes = settings.changed(base, wanted)
            settings_cmd.report(instance, settings_cmd.write(instance, changes), restart)
    elif check:
        settings_cmd.wanted(base, None)
    elif as_json:
        print(json.dumps({"saved": base, "until-next-start": settings_cmd.waiting(
            instance)}, indent=2))
    else:
        sys.stdout.write(settings_cmd.dump(base))
        for key, value in settings_cmd.waiting(instance).items():
            sys.stdout.write(f"# {key} is {value} until the drive's next start\n")


WhatToSave = Annotated[str, typer.Argument(
    metavar="[SNAPSHOT]", show_default=False, autocompletion=completion.parts,
    help="Name of a snapshot of the whole instance.  Without one: only the drive.")]


def part_to_save(what: str, part: str) -> str:
    """The part that save or load is for; "" if `what` may be the name of a snapshot."""
    if what and part:
        raise EssdError(f"give either the name of a snapshot, {what}, or --part {part}")
    return part


@command(RUN)
def save(what: WhatToSave = "", part: Parts = "", name: Name = "", as_json: AsJson = False) -> None:
    """Save a snapshot (save NAME), or suspend the drive (without a name).

    A snapshot has the state of the whole system, which runs on.  Without a name, the
    drive's state is saved and its process ends, as if it were suspended; `load` resumes it.
    """
    from ...storage import snapshots
    part = part_to_save(what, part)
    if not part and snapshots.is_snapshot(Instance(name), what):
        if as_json:
            show.only_data()
        with show.busy(f"saving {what}"):
            found = Instance(name).ask("save-all", name=what)
        show.note(f"saved the snapshot {what}: {found['bytes'] / 1e6:.1f} MB; the machines "
                  f"stood still for {found['paused_s']:.1f} s")
        if as_json:
            print(json.dumps([found], indent=2))
        return
    saved = []

    def save_one(instance: Instance) -> str:
        size = instance.ask("save", part=instance.drive)["bytes"]
        saved.append({"drive": instance.drive, "bytes": size})
        return (f"saved: {size / 1e6:.1f} MB; the drive is suspended until "
                f"{instance.drive_hint('load')}")

    if as_json:
        show.only_data()
    try:
        fleet.run(Instance(name), part or what, save_one)
    finally:
        if as_json:
            print(json.dumps(saved, indent=2))


@command(RUN)
def load(what: WhatToSave = "", part: Parts = "", name: Name = "") -> None:
    """Go back to a snapshot of the whole system: load NAME.

    Without a name, resume the drive in a new process from the state that `save` wrote.
    """
    from ...storage import snapshots
    part = part_to_save(what, part)
    if not part and snapshots.is_snapshot(Instance(name), what):
        with show.busy(f"loading {what}"):
            Instance(name).ask("load-all", name=what)
        show.note(f"loaded the snapshot {what}")
        return

    def load_one(instance: Instance) -> str:
        instance.ask("load", part=instance.drive)
        return "running"

    fleet.run(Instance(name), part or what, load_one)


@command(RUN)
def demo(keep: Annotated[bool, typer.Option(
             "--keep", help="Leave the drive and the hosts running at the end.")] = False,
         target: Annotated[str, typer.Option(
             help="NVMe-oF target that the host uses: drive or nvmet.")] = "drive",
         report: Annotated[Path | None, typer.Option(
             metavar="FOLDER",
             help="Folder for the report.  Default: a new one in the cache.")] = None,
         ) -> None:
    """Boot the drive and Linux hosts, use the drive, and report the results."""
    from ...demo.demo import run_demo
    run_demo(target, keep, report)


@command(RUN)
def doctor(as_json: AsJson = False,
           ) -> None:
    """Check whether this machine has what essd needs, and say how to get the rest."""
    from ...setup import doctor as doctor_module
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
