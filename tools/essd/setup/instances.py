# SPDX-License-Identifier: BSD-2-Clause
"""`essd list` and `essd rm`: all instances that run and all drives that exist."""

import contextlib
import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.table import Table

from ..base import chosen, claims, in_use, paths, persisted, process
from ..base.errors import EssdError
from ..instance.config import Config
from ..instance.instance import Instance, NotAnsweringError, OtherVersionError
from . import setup

LIST_S = 10.0           # time limit of one supervisor's answer
UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def disk_bytes(*folders: Path) -> int:
    """Bytes that the files of these folders occupy; holes in a file are not counted."""
    total = 0
    for folder in folders:
        for path in folder.rglob("*"):
            with contextlib.suppress(OSError):
                total += path.lstat().st_blocks * 512
    return total


def uptime_s(folder: Path) -> float | None:
    """How long the supervisor has been running; None if its start is unknown."""
    state = persisted.read_or_none(folder / "state.json", list[process.Started])
    if state:
        ticks = process.start_time(state[0].pid)
        if ticks:
            return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return None


def state_word(parts: dict[str, Any], targets: Iterable[str]) -> str:
    """One word, or two, for the state of a running instance."""
    if any(part["state"] == "crashed" for part in parts.values()):
        return "crashed"
    if any(part["halted"] for part in parts.values()):
        return "halted"
    drives = [parts[name] for name in targets if name in parts]
    if drives and all(part["state"] == "off" for part in drives):
        return "saved" if any(part["saved"] for part in drives) else "power off"
    return "running"


def running_facts(instance: Instance) -> dict[str, Any]:
    """What `essd list` shows of a running instance only."""
    parts = instance.call_within(LIST_S, "status")["parts"]
    state = ""
    try:
        config = instance.config
    except OtherVersionError:
        config = Config(instance.name, "", "", [])
        state = "other version"
    return {
        "state": state or state_word(parts, config.targets()),
        "parts": {name: {key: part[key] for key in ("state", "ready", "pid")}
                  for name, part in parts.items()},
        "ports": [{"part": part, "port": number, "addresses": link.targets,
                   "socket": str(link.socket(instance.folder))}
                  for part in config.targets()
                  for number, link in config.ports_of(part).items()],
        "sockets": sorted(str(path) for path in instance.folder.rglob("*")
                          if path.is_socket()),
        "uptime_s": uptime_s(instance.folder)}


def stopped_facts(name: str) -> dict[str, Any]:
    """What `essd list` shows of a drive that is not running, read from its flash."""
    ports = []
    with contextlib.suppress(EssdError):
        config = setup.kept_config(name)
        ports = [{"part": "drive", "port": number, "socket": None,
                  "addresses": [str(x) for x in (port.ipv4, port.ipv6) if x]}
                 for number, port in enumerate(config.ports if config else ())]
    return {"state": "stopped", "parts": {}, "ports": ports, "sockets": [],
            "uptime_s": None}


def all_facts() -> list[dict[str, Any]]:
    """What `essd list` shows of everything; the supervisors are asked at the same time."""
    names = chosen.known()
    with ThreadPoolExecutor(len(names) or 1) as pool:
        return list(pool.map(facts, names))


def facts(name: str) -> dict[str, Any]:
    """What `essd list --json` prints of one instance."""
    data, folder = setup.data_folder(name), claims.folder(name)
    try:
        now = running_facts(Instance(name))
    except NotAnsweringError:
        now = {**stopped_facts(name), "state": "does not answer"}
    except (EssdError, OSError):    # It has just ended, never ran, or lost its folder.
        now = stopped_facts(name)
        if chosen.is_running(name):
            now["state"] = "does not answer"
    return {"name": name, **now, "disk_bytes": disk_bytes(data, folder),
            "data": str(data) if data.is_dir() else None, "folder": str(folder)}


def size_words(count: float) -> str:
    unit = 0
    while count >= 1024 and unit < len(UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:.{1 if unit and count < 100 else 0}f} {UNITS[unit]}"


def time_words(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def table(found: list[dict[str, Any]]) -> Table:
    rows = Table(box=None, pad_edge=False)
    for heading in ("name", "state", "parts", "ports", "up for", "disk", "sockets and logs"):
        rows.add_column(heading)
    for entry in found:
        ports = "; ".join(
            ("" if port["part"] == "drive" else f"{port['part']} ")
            + f"{port['port']}: {', '.join(port['addresses']) or 'none'}"
            for port in entry["ports"])
        rows.add_row(entry["name"], entry["state"], ", ".join(entry["parts"]), ports,
                     time_words(entry["uptime_s"]), size_words(entry["disk_bytes"]),
                     entry["folder"] if entry["state"] != "stopped" else "")
    return rows


def folders(name: str) -> list[Path]:
    """The folders of a stopped instance that exist: its drive, and logs of its runs."""
    logs = paths.instance(name)
    return [path for path in (setup.data_folder(name), logs,
                              logs.with_name(f"{name}.old")) if path.is_dir()]


def check_removable(name: str) -> list[Path]:
    """The folders that `essd rm` will delete; EssdError if it must not."""
    chosen.check_letters(name)
    if chosen.is_running(name):
        raise EssdError(f"{name} is running: stop it with {chosen.hint(name, 'down')} first")
    found = folders(name)
    if not found:
        raise EssdError(f"there is no drive {name}{chosen.mean(name, chosen.known())}")
    return found


def remove(name: str) -> int:
    """Delete a stopped drive with its data; return how many bytes that freed."""
    with claims.claimed(name, "essd rm"):       # Nobody starts it meanwhile.
        found = check_removable(name)
        size = disk_bytes(*found)
        for folder in found:
            in_use.delete_whole(folder)
    return size
