# SPDX-License-Identifier: BSD-2-Clause
"""Turn a topology into the configuration of an instance, and start it."""

import hashlib
import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ..base import chosen, claims, cpu, interrupts, show
from ..base.errors import EssdError, Mistakes
from ..build import native_build
from ..instance.config import (BootKey, Config, Drive, End, Host, Link, NATIVE, Nand, STREAM,
                               Switch, UML, VHOST_USER)
from ..instance.instance import Instance
from ..machine import i2c_devices, key_log, outside, straps, uml
from ..machine.outside import Outside
from ..settings.block import Config as Settings
from ..setup import native_hart, prepare, settings_cmd, setup
from ..setup.setup import Wish
from .topology import Cable, Topology

DRIVE_MIB = 130             # memory of one idle drive, rounded up
T = TypeVar("T")
MACHINE_ID = Path("/etc/machine-id")


def wishes(topology: Topology, name: str) -> dict[str, Wish]:
    """What each drive is asked to be; its other settings stay as its flash has them."""
    return {part: Wish(name=name, part=part, size=drive.size, mtu=drive.mtu,
                       nqn=drive.nqn, nand=drive.nand, block=drive.block,
                       straps=drive.straps, devices=drive.devices, boot_key=drive.boot_key,
                       nvme_tcp=drive.nvme_tcp, transports=drive.transports, hart=drive.hart,
                       ports=[",".join(map(str, drive.ports[port])) for port in (0, 1)])
            for part, drive in topology.drives.items()}


def settings_of(topology: Topology, asked: dict[str, Wish]) -> dict[str, Settings]:
    """The settings of every drive; Mistakes if one of them is not possible."""
    found = {}
    mistakes = []
    for part, wish in asked.items():
        drive = topology.drives[part]
        try:
            if drive.config is not None:
                wish.config = settings_cmd.for_start(wish, drive.config)
            found[part] = setup.wanted(wish, setup.kept_config(wish.name, part))
            found[part].pack()
        except Mistakes as several:
            mistakes += several.lines
        except EssdError as error:
            mistakes.append(f"{topology.name}:{drive.mark.line}:{drive.mark.column}: "
                            f"{part}: {error}")
    if mistakes:
        raise Mistakes(mistakes)
    return found


def of_each(topology: Topology, asked: dict[str, Wish], act: Callable[[Wish], T]
            ) -> dict[str, T]:
    """What `act` returns for every drive; Mistakes if it raises EssdError for one."""
    found: dict[str, T] = {}
    mistakes = []
    for part, wish in asked.items():
        try:
            found[part] = act(wish)
        except EssdError as error:
            mark = topology.drives[part].mark
            mistakes.append(f"{topology.name}:{mark.line}:{mark.column}: {part}: {error}")
    if mistakes:
        raise Mistakes(mistakes)
    return found


def arrays_of(topology: Topology, asked: dict[str, Wish]) -> dict[str, Nand | None]:
    """The NAND array of every drive; Mistakes if one of them cannot be made or used."""
    return of_each(topology, asked, setup.drive_nand)


def boot_key_of(wish: Wish) -> BootKey | None:
    key = setup.drive_boot_key(wish)
    native_hart.check(wish, key is not None)
    return key


def check_sockets(topology: Topology, name: str) -> None:
    """EssdError if a part's sockets would have too long paths."""
    chosen.check_sockets(name, topology.hosts, [*topology.drives, *topology.switches])


def check_shared_memory(topology: Topology) -> None:
    """EssdError if a host of user-mode Linux cannot share its memory with a drive."""
    for cable in topology.cables:
        for end in cable.ends if cable.kind == VHOST_USER else ():
            host = topology.hosts.get(end.part)
            if host is not None and host.kind == UML:
                uml.check_shared_memory(host.memory_mib, f"link: {STREAM}")


def forget_for(topology: Topology, name: str) -> None:
    """Delete the drives of an instance, unless no new ones can be made as asked for."""
    of_each(topology, wishes(topology, name), setup.check_new)
    check_sockets(topology, name)
    setup.forget(name)


def order(topology: Topology, cable: Cable) -> list[End]:
    """The ends of a cable; the first one creates its socket.

    A host's QEMU cannot reconnect, so it listens.  A drive's QEMU and a switch can.
    With vhost-user, it is the host that connects again.
    """
    rank = {"host": 0, "switch": 1, "drive": -1 if cable.kind == VHOST_USER else 2, "": 3}
    return sorted(cable.ends, key=lambda end: rank[topology.kind(end.part)])


def links(topology: Topology, settings: dict[str, Settings], capture: bool) -> list[Link]:
    """The cables; each drive's port has its own MTU, a host's card the largest."""
    segments = topology.segments()
    found = []
    for number, cable in enumerate(topology.cables):
        first = next(end for end in cable.ends if end.part)
        key = (first.part, -1 if first.part in topology.switches else first.port)
        segment = next(x for x in segments if key in x)
        mtus = [settings[part].ports[port].mtu for part, port in segment
                if part in settings]
        targets: list[str] = []
        own: list[str] = []
        mtu = max(mtus, default=1500)
        for end in cable.ends:
            if end.part in topology.drives:
                targets = [str(x) for x in topology.drives[end.part].ports[end.port]]
                mtu = settings[end.part].ports[end.port].mtu
            elif end.part in topology.hosts:
                own = [str(x) for x in topology.hosts[end.part].cards[end.port]]
        found.append(Link(number, targets, max(mtu, setup.MTUS[0]),
                          capture=capture or cable.capture,
                          ends=order(topology, cable), own=own, kind=cable.kind))
    return found


def port_words(topology: Topology, name: str) -> dict[int, str]:
    """The settings of a switch's ports.  Those of a cable between two switches are
    settings of the first one's port."""
    found = {}
    for cable in topology.cables:
        at = next((end for end in cable.ends if end.part in topology.switches), None)
        if at is not None and at.part == name and cable.words:
            found[at.port] = ",".join(f"{k}={v}" for k, v in cable.words.items())
    return found


def mac_prefix(name: str, part: str) -> str:
    """The first five bytes of a host's MACs: others on each machine, in each instance."""
    try:
        machine = MACHINE_ID.read_text()
    except OSError:
        machine = ""
    digest = hashlib.sha256(f"{machine} {name} {part}".encode()).digest()
    return f"02:e5:5e:{digest[0] | 0x80:02x}:{digest[1]:02x}"


def mac_prefixes(name: str, hosts: Iterable[str]) -> dict[str, str]:
    """The prefix of each host; no two hosts have the same one."""
    found: dict[str, str] = {}
    for part in hosts:
        text = part
        while (prefix := mac_prefix(name, text)) in found.values():
            text += "+"
        found[part] = prefix
    return found


def check_outside(topology: Topology) -> None:
    """Mistakes if a place where a cable leads cannot be attached now."""
    mistakes = []
    for cable in topology.cables:
        for end in cable.ends:
            if end.outside:
                try:
                    outside.check(Outside.of(end.outside))
                except EssdError as error:
                    mistakes.append(f"{topology.name}:{cable.mark.line}:"
                                    f"{cable.mark.column}: {error}")
    if mistakes:
        raise Mistakes(mistakes)


def need_mib(topology: Topology) -> int:
    """Memory that the topology takes."""
    return (len(topology.drives) * DRIVE_MIB
            + sum(host.memory_mib for host in topology.hosts.values()))


def check_devices(asked: dict[str, Wish]) -> None:
    """EssdError if devices on I2C buses are in each other's way."""
    files: dict[str, str] = {}
    for part, wish in asked.items():
        i2c_devices.check(wish.devices, straps.level(wish.straps))
        for device in wish.devices:
            if device.file and files.setdefault(device.file, part) != part:
                raise EssdError(f"{part}: {device}: {files[device.file]} has a device with "
                                "this file already")


def configure(topology: Topology, name: str, capture: bool = False,
              lower_floor: bool = False) -> Config:
    """Check everything, build what is missing and create the drives' files.

    Nothing is started.  ClaimedError if somebody else uses one of the drives.
    """
    with claims.claimed(name, "essd up"):
        return configured(topology, name, capture, lower_floor)


def configured(topology: Topology, name: str, capture: bool, lower_floor: bool) -> Config:
    """The same, while the instance's name is claimed."""
    asked = {part: replace(wish, lower_floor=lower_floor)
             for part, wish in wishes(topology, name).items()}
    settings = settings_of(topology, asked)
    cables = links(topology, settings, capture)
    check_outside(topology)
    check_devices(asked)
    check_sockets(topology, name)
    check_shared_memory(topology)
    arrays = arrays_of(topology, asked)
    keys = of_each(topology, asked, boot_key_of)
    files = {part: setup.drive_media(wish, arrays[part] is not None)
             for part, wish in asked.items()}
    built = prepare.prepare(guest=bool(topology.hosts), drive=bool(topology.drives),
                            variants=[host.guest for host in topology.hosts.values()
                                      if host.guest is not None],
                            user_mode=any(host.kind == UML
                                          for host in topology.hosts.values()),
                            native_hart=any(drive.hart == NATIVE
                                            for drive in topology.drives.values()))
    prepare.report_sandbox()
    program = ""
    if topology.switches:
        program = str(native_build.native_program("fast", setup.SWITCH, "the switch"))
    config = Config(name, str(built.guest.path) if built.guest else "",
                    prepare.ensure_accel(built.guest) if built.guest else "tcg", cables)
    for part, wish in asked.items():
        assert built.qemu is not None and built.firmware is not None
        key = keys[part]
        image, nqn = setup.drive_flash(wish, settings[part], built.firmware, arrays[part], key)
        config.drives[part] = Drive(str(built.qemu), str(image), str(files[part].path),
                                    files[part].format, nqn, nand=arrays[part],
                                    straps=straps.level(wish.straps), boot_key=key,
                                    devices=setup.drive_devices(wish),
                                    hart_image=native_hart.kept(
                                        built.native_hart if wish.hart == NATIVE else None,
                                        image))
    prefixes = mac_prefixes(name, topology.hosts)
    for part, host in topology.hosts.items():
        kernel, relay = setup.user_mode(built) if host.kind == UML else ("", "")
        config.hosts[part] = Host(
            host.memory_mib, host.cpus, setup.kept_uuid(name, part), mac=prefixes[part],
            guest=str(built.variants[host.guest].path) if host.guest else "",
            uml=kernel, relay=relay)
    for part, switch in topology.switches.items():
        config.switches[part] = Switch(program, switch.options, port_words(topology, part))
    setup.note_full_disks(config)
    return config


# Starting

def wait_drives(instance: Instance) -> None:
    """Wait until each drive answers a host's ping, if a host can reach it."""
    config = instance.config
    for host in config.hosts:
        instance.wait_ready(host)
    addresses: dict[str, list[str]] = {host: [] for host in config.hosts}
    for link in config.links:
        if link.targets and not link.outside:
            network = ipaddress.ip_interface(link.targets[0]).network
            near = [host for host in config.hosts for mine in
                    config.ports_of(host).values()
                    if any(ipaddress.ip_interface(x).network == network
                           for x in mine.hosts)]
            if near:
                addresses[near[0]].append(link.target_address)
    for host, wanted in addresses.items():
        if wanted:
            instance.run(f"for a in {' '.join(wanted)}; do n=0; until ping -c 1 -W 1 $a "
                         "> /dev/null; do n=$((n + 1)); [ $n -lt 60 ] || "
                         "{ echo $a does not answer; exit 1; }; done; done",
                         part=host, timeout_s=600)


def start(topology: Topology, name: str, new: bool, capture: bool,
          capture_bytes: int, lower_floor: bool = False,
          capture_keys: Path | None = None, instance: Instance | None = None) -> Instance:
    """Start a topology and wait until its hosts can use its drives.

    `instance` is an object of the caller, who asks it later whether it was started.
    """
    instance = instance or Instance(name)
    need, there = need_mib(topology), cpu.memory_mib()
    if need > there:
        show.line(f"this topology takes about {need} MiB of memory, and this machine has "
                  f"{there} MiB left")
    if capture_keys is not None:
        key_log.check(capture or any(cable.capture for cable in topology.cables),
                      bool(topology.drives))
    prepare.check_folders()             # before the arrays of drives are made
    with claims.claimed(name, "essd up"):
        if capture_keys is not None:    # before a drive is deleted
            capture_keys = key_log.create(capture_keys)
        if new:
            forget_for(topology, name)
        with setup.half_made(name):
            config = configure(topology, name, capture, lower_floor)
        config.capture_bytes = capture_bytes
        config.capture_keys = str(capture_keys or "")
        for line in setup.array_lines(config):
            show.note(line)
        return start_configured(topology, instance, config)


def start_configured(topology: Topology, instance: Instance, config: Config) -> Instance:
    """Start what the configuration says, and wait until the hosts can use the drives."""
    try:
        instance.start(config, bound=True)
        instance.wait_started(60 + 5 * len(topology.drives))
        with show.busy("starting the Linux hosts"):
            wait_drives(instance)
    except interrupts.INTERRUPTS:
        with interrupts.ignored():
            instance.stop_started()
        show.error("interrupted: ended what this command had started "
                   f"({', '.join(config.parts())}); the drives keep their data")
        raise
    except BaseException:
        instance.release()      # What runs can still be looked at.
        raise
    instance.release()
    return instance

