# SPDX-License-Identifier: BSD-2-Clause
"""The command line of the drive's QEMU, and its QMP properties and events.

No other module knows the machine's properties and events: see
docs/hardware/soc.md.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..instance.config import Config, Drive, Nand, console_log, part_file
from . import i2c_devices, key_log, outside
from .vm import dump_options, option, qmp_options, sandbox_options

CABLE_LOOK_MS = 100
# The QMP command that reads the machine's virtual time: MGMT_TIME_LO and _HI, in
# nanoseconds (docs/hardware/mgmt.md).
TIME_QUERY = ("human-monitor-command", {"command-line": "xp /2wx 0x10130044"})


# The QMP command that makes the power of a drive with capacitors fail
# (docs/hardware/sysctl.md).
POWER_FAIL = ("qom-set", {"path": "/machine/sysctl", "property": "power-fail",
                          "value": True})


def media_node_json(drive: Drive) -> str:
    """The block node of the media, for -blockdev.

    The format is given explicitly, so that QEMU does not probe it.  A qcow2 image
    never gets a backing file, whatever its header says, because a host may have
    written the header.
    """
    node: dict[str, Any] = {
        "driver": drive.media_format, "node-name": "media", "discard": "unmap",
        "file": {"driver": "file", "filename": drive.media, "discard": "unmap"}}
    if drive.media_format == "qcow2":
        node["backing"] = None
    return json.dumps(node)


def nand_options(array: Nand) -> list[str]:
    """The block node of the NAND array's file, and how long the array's operations take.

    Writes reach the host's cache at once, so that a SIGKILL loses none.  Discards free
    the disk space of erased blocks.  The lock keeps other machines and essd-nand away.
    """
    cache = {"direct": False, "no-flush": False}
    node = {"driver": "raw", "node-name": "nand", "discard": "unmap", "cache": cache,
            "file": {"driver": "file", "filename": array.path, "discard": "unmap",
                     "cache": cache, "locking": "on"}}
    return ["-blockdev", json.dumps(node), "-global", f"essd-nand.timing={array.timing}"]


def drive_command(config: Config, folder: Path, part: str = "drive",
                  descriptors: Mapping[int, int] | None = None) -> list[str]:
    """The command line of QEMU for a drive with its flash, media and cables.

    `descriptors` are open files that QEMU inherits for some ports' cables.
    """
    drive = config.drives[part]
    ports = config.ports_of(part)

    def socket(name: str) -> str:
        return option(part_file(folder, part, name))

    command = [
        drive.qemu, "-nodefaults", "-no-user-config", "-display", "none",
        "-M", ",".join(
            ["essd", "media=media", *(["nand=nand"] if drive.nand else []),
             *(["plp=on"] if drive.nand and drive.nand.plp == "on" else []),
             *([f"straps={drive.straps}"] if drive.straps else []),
             *([f"boot-key={drive.boot_key.public}"] if drive.boot_key else []),
             *(["hart=native", f"hart-image={option(drive.hart_image)}"]
               if drive.hart_image else []),
             "mgmt=mgmt", "trace=trace", "bmc=bmc",
             *(f"port{n}-netdev=port{n}" for n in ports)]),
        *sandbox_options(),
        "-drive", "if=mtd,driver=raw,file.driver=file,"
        f"file.filename={option(drive.flash)}",
        "-blockdev", media_node_json(drive),
        *(nand_options(drive.nand) if drive.nand else []),
        *i2c_devices.qemu_options(drive.devices),
        # The log is appended to, so that it survives a power cycle.
        "-chardev", f"socket,id=console,path={socket('console')},server=on,"
        f"wait=off,logfile={option(console_log(folder, part))},logappend=on",
        # For tools: docs/hardware/mgmt.md.  One client each, the supervisor.
        *(word for name in ("mgmt", "trace") for word in (
            "-chardev", f"socket,id={name},path={socket(name)},server=on,wait=off")),
        # For a program on the BMC's I2C bus: docs/hardware/i2c.md.
        "-chardev", f"socket,id=bmc,path={socket('bmc')},server=on,wait=off",
        # Two threads: one for a flush, one for other requests.  With more, each
        # request wakes another thread, which costs more CPU time than it saves.
        "-object", "main-loop,id=main-loop,thread-pool-max=2",
        "-serial", "chardev:console", *qmp_options(folder, part)]
    if not drive.hart_image:
        # A gdb server for the drive's harts; they run until a debugger connects.
        command += ["-chardev", f"socket,id=gdb,path={socket('gdb')},server=on,wait=off",
                    "-gdb", "chardev:gdb"]
    for number, link in ports.items():
        if link.outside:
            command += outside.netdev(number, outside.Outside.of(link.outside),
                                      (descriptors or {}).get(number))
            continue
        if link.is_shared:
            command += ["-chardev", f"socket,id=vhost{number},server=on,wait=off,"
                        f"path={option(link.socket(folder))}",
                        "-netdev", f"vhost-user,id=port{number},chardev=vhost{number}"]
            continue
        role = "server=on" if link.listens(part) else (
            f"server=off,reconnect-ms={CABLE_LOOK_MS}")
        command += ["-netdev", f"stream,id=port{number},addr.type=unix,"
                    f"addr.path={option(link.socket(folder))},{role}"]
    if config.capture_keys:
        command += key_log.options(config.capture_keys)
    for link in config.captures(part):
        port = next(n for n, there in ports.items() if there is link)
        command += dump_options(link, f"port{port}", folder)
    return [*command, *drive.extra]


def gdb_socket(folder: Path, part: str = "drive") -> Path:
    """Where QEMU's gdb server listens; only the user can open the folder."""
    return part_file(folder, part, "gdb")


def loading(state: Path) -> list[str]:
    """Additional options with which QEMU resumes from a saved state."""
    return ["-incoming", f"file:{state}"]


def restart_event(event: dict[str, Any]) -> str:
    """Why the drive restarts by itself, or "" if the event is something else.

    A watchdog reset sends two events, of which WATCHDOG comes first.
    """
    data = event.get("data") or {}
    if event.get("event") == "WATCHDOG":
        return "watchdog"
    if event.get("event") == "RESET" and data.get("guest"):
        return "firmware"
    return ""


def halt_event(event: dict[str, Any]) -> bool | None:
    """True: the machine has been halted, by a debugger or by QMP; False: it goes on."""
    return {"STOP": True, "RESUME": False}.get(str(event.get("event")))


def port_link_event(event: dict[str, Any]) -> tuple[int, bool] | None:
    """(port, link is up) if this QMP event reports a link change, else None."""
    if event.get("event") != "ESSD_PORT_LINK":
        return None
    data = event["data"]
    return int(data["port"]), bool(data["up"])


def port_link_query(port: int) -> tuple[str, dict[str, Any]]:
    """The QMP command that reads whether a port's link is up."""
    return "qom-get", {"path": f"/machine/port{port}", "property": "link-up"}


def port_get(port: int, name: str) -> tuple[str, dict[str, Any]]:
    """The QMP command that reads a property of a port (docs/hardware/port.md)."""
    return "qom-get", {"path": f"/machine/port{port}", "property": name}


def port_set(port: int, name: str, value: object) -> tuple[str, dict[str, Any]]:
    return "qom-set", {**port_get(port, name)[1], "value": value}


def module_get(port: int, name: str) -> tuple[str, dict[str, Any]]:
    """The QMP command that reads a property of a port's module (docs/hardware/i2c.md)."""
    return "qom-get", {"path": f"/machine/module{port}", "property": name}


def module_set(port: int, name: str, value: object) -> tuple[str, dict[str, Any]]:
    return "qom-set", {**module_get(port, name)[1], "value": value}


# What can be changed of a port's module (docs/hardware/i2c.md).
MODULE_PROPERTIES = ("present", "temperature", "voltage", "bias", "tx-power", "rx-power")


def module_options(modules: Mapping[int, Mapping[str, object]]) -> list[str]:
    """Options for QEMU with which the ports' modules have these properties from the
    beginning."""
    return [word for port, properties in modules.items()
            for name, value in properties.items()
            for word in ("-global", f"essd-module{port}.{name}="
                         + ({True: "on", False: "off"}[value] if isinstance(value, bool)
                            else str(value)))]


def bmc_socket(folder: Path, part: str = "drive") -> Path:
    """Where a program puts itself on the BMC's I2C bus."""
    return part_file(folder, part, "bmc")


def cable_command(port: int, plugged: bool) -> tuple[str, dict[str, Any]]:
    """The QMP command that pulls or plugs a port's cable."""
    return "set_link", {"name": f"port{port}", "up": plugged}


def nand_busy_query() -> tuple[str, dict[str, Any]]:
    """The QMP command that reads the virtual time, and how long each die was busy."""
    return "qom-get", {"path": "/machine/nand-controller", "property": "busy-ns"}
