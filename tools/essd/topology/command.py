# SPDX-License-Identifier: BSD-2-Clause
"""`essd up --topology`, `essd up --drives` and `essd topology`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base import chosen, show
from ..base.errors import EssdError
from ..instance.config import STOCK
from ..instance.instance import Instance
from ..machine.i2c_devices import Device
from ..observe import status
from ..setup import setup
from ..storage import nand
from . import draw as topology_draw, reader as topology_yaml, setup as topology_setup, topology
from .topology import Topology

SEVERAL = "drives"          # name of an instance that --drives starts


@dataclass
class Wish:
    """The options of `essd up` that concern several drives."""

    name: str
    file: Path | None
    drives: int | None
    new: bool = False
    capture: bool = False
    capture_bytes: int = 0
    size: str | None = None
    mtu: int | None = None
    cpus: int = 1
    host: bool = True
    hosts: int | None = None
    nand: str | None = None
    block: bool = False
    straps: Sequence[int] = ()
    devices: Sequence[Device] = ()
    boot_key: Path | None = None
    lower_floor: bool = False
    host_kind: str = STOCK
    capture_keys: Path | None = None


def wanted(wish: Wish) -> tuple[Topology, str]:
    """The topology, and the name of its instance."""
    if wish.file is None:
        drives = wish.drives if wish.drives is not None else 1
        if wish.hosts is not None and not wish.host:
            raise EssdError("give either --hosts N or --no-host")
        hosts = wish.hosts if wish.hosts is not None else int(wish.host)
        if wish.nand is not None:
            nand.parse(wish.nand)
        text = topology.of_drives(drives, wish.size, wish.mtu, wish.cpus, hosts, wish.nand,
                                  wish.block, wish.straps, wish.devices, wish.boot_key,
                                  wish.host_kind)
        found = topology_yaml.load(text, f"--drives {drives} --hosts {hosts}", Path.cwd())
        return found, SEVERAL if wish.name == chosen.DEFAULT else wish.name
    if wish.drives is not None or wish.hosts is not None:
        raise EssdError("give either --topology FILE, or --drives N and --hosts N")
    if (wish.size, wish.nand, wish.block, wish.mtu, wish.cpus, wish.host,
            list(wish.straps), list(wish.devices), wish.boot_key, wish.host_kind) != (
            None, None, False, None, 1, True, [], [], None, STOCK):
        raise EssdError("--size, --nand, --block, --straps, --device, --boot-key, --mtu, "
                        "--cpus, --host-kind and --no-host are not for --topology: write them "
                        f"into {wish.file}")
    found = topology_yaml.read(wish.file)
    name = wish.name
    if name == chosen.DEFAULT:
        name = chosen.check_name(wish.file.stem.replace(".", "-"))
    return found, name


def warn(found: Topology) -> None:
    for text in found.warnings:
        show.note(text, "yellow")


def up(wish: Wish) -> None:
    found, name = wanted(wish)
    warn(found)
    if Instance(name).is_running:
        raise EssdError(f"instance {name} is running already: stop it with "
                        f"{Instance(name).hint('down')}")
    instance = topology_setup.start(found, name, wish.new, wish.capture,
                                    wish.capture_bytes, wish.lower_floor, wish.capture_keys)
    if show.is_quiet:
        return
    facts = instance.status()
    show.console.print(status.parts_table(facts))
    for line in status.cable_lines(facts):
        show.line(line)
    show.line()
    for line in (*setup.connections(instance.config), *setup.captures(instance.config)):
        show.line(line)
    for line in hints(instance):
        show.line(line)


def hints(instance: Instance) -> list[str]:
    """What to try next."""
    config = instance.config
    lines = []
    address = next((link.target_address for link in config.links
                    if link.targets and not link.outside), "")
    if config.hosts and address:
        lines.append(f"next: {instance.hint('host')}")
        lines.append("      " + instance.hint(
            "host", "--", f"nvme discover -t rdma -a {address} -s 4420"))
    if config.drives:
        drive = next(iter(config.drives))
        lines.append(f"      {instance.hint('console', '--part', drive)}")
        lines.append(f"      {instance.hint('power-cut', '--part', drive)}")
    return lines


def draw(file: Path | None, name: str, target: Path | None) -> None:
    """Draw a file's topology, or that of a running instance."""
    if file is not None:
        found = topology_yaml.read(file)
        warn(found)
    else:
        instance = Instance(chosen.instance(name))
        instance.status()       # Raises EssdError if the instance is not running.
        found = topology_draw.of_config(instance.config)
    if target is None:
        show.console.print(topology_draw.tree(found))
        return
    try:
        target.write_text(topology_draw.svg(found), "utf-8")
    except OSError as error:
        raise EssdError(f"{target}: {error.strerror}") from None
    show.note(f"written: {target}")
