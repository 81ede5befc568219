# SPDX-License-Identifier: BSD-2-Clause
"""`essd media map`: what each superblock of the flash holds, and how busy each die is.

A running drive is asked; of a drive that is off, essd-nand mounts a private copy of the
array.  Nothing is built for a running drive.
"""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.text import Text

from ..base.errors import EssdError
from ..instance import fleet
from ..instance.config import Nand
from ..instance.instance import Instance
from ..machine.drive import nand_busy_query
from ..storage import media, nand, nand_look
from ..drive import mgmt

BUSY_S = 1.0            # over which the share of time is measured for which a die is busy
LINE = 50               # superblocks of a line
OPEN = {"host": "h", "move": "m"}
LETTERS = {"free": ".", "erasing": "e", "retired": "x", "checkpoint": "c", "open": "h"}
LEGEND = ("0-9 closed, with so many tenths of its units valid; h, m open for hosts or moves; "
          "c checkpoint; e being erased; . free; x retired")


def busy_times(instance: Instance) -> list[int]:
    """Nanoseconds for which each die was busy, and when that was asked as the last one."""
    execute, arguments = nand_busy_query()
    said = instance.ask("qmp", execute=execute, arguments=arguments, part=instance.drive)
    return [int(number) for number in str(said).split(",")]


def busy_shares(instance: Instance) -> list[float]:
    """The share of the last second, of the drive's own time, for which each die was busy."""
    before = busy_times(instance)
    time.sleep(BUSY_S)
    after = busy_times(instance)
    passed = max(1, after[0] - before[0])       # the first number is the virtual time
    return [round(max(0.0, min(1.0, (now - then) / passed)), 4)
            for then, now in zip(before[1:], after[1:], strict=True)]


def of_running(instance: Instance) -> dict[str, Any]:
    """What a running drive says of its superblocks."""
    superblocks: list[dict[str, Any]] = []
    page: dict[str, Any] = {"next": 0}
    while "next" in page:
        page = mgmt.ask(instance, "superblocks", **{"from": page["next"]})
        superblocks += page["superblocks"]
    return {"dead-dies": page["dead-dies"], "mounted": page["mounted"],
            "superblocks": superblocks}


def of_file(array: Nand) -> dict[str, Any]:
    """What the file of a drive that is off says, as the next start finds it."""
    path = Path(array.path)
    done = nand.call("map", path, "--flash", path.with_name("flash.img"),
                     *["--plp"] * (array.plp == "on"))
    if done.returncode:
        raise EssdError(f"NAND file {path}: {nand.complaint(path, done)}")
    return {**json.loads(done.stdout), "mounted": True}


def dies_of(array: Nand, dead: Iterable[int], busy: list[float] | None
            ) -> list[dict[str, Any]]:
    gone = set(dead)
    return [{"channel": n // array.dies, "die": n % array.dies, "dead": n in gone,
             "busy": None if busy is None else busy[n]}
            for n in range(array.channels * array.dies)]


def facts_of(instance: Instance, array: Nand, is_running: bool) -> dict[str, Any]:
    """The map, as `--json` prints it."""
    found = of_running(instance) if is_running else of_file(array)
    busy = busy_shares(instance) if is_running and array.timing == "realtime" else None
    return {"name": instance.name, "drive": instance.drive, "running": is_running,
            "mounted": found["mounted"],
            "dies": dies_of(array, found["dead-dies"], busy),
            "superblocks": [{"stream": None, "moves-for": None, **row}
                            for row in found["superblocks"]]}


def letter(row: dict[str, Any]) -> str:
    if row["state"] == "closed":
        return str(min(9, 10 * row["valid"] // max(1, row["capacity"])))
    if row["state"] == "open":
        return OPEN.get(row["stream"] or "", "h")
    return LETTERS.get(row["state"], "?")


def style(row: dict[str, Any]) -> str:
    if row["state"] == "retired":
        return "red"
    if row["moves-for"]:
        return "yellow"
    return "green" if row["state"] == "free" else ""


def grid(rows: list[dict[str, Any]]) -> Text:
    text = Text()
    for n, row in enumerate(rows):
        if n % LINE == 0:
            text.append(f"{'' if n == 0 else chr(10)}{n:6}  ")
        text.append(letter(row), style(row))
    return text


def die_line(die: dict[str, Any]) -> Text:
    words = Text(f"channel {die['channel']} die {die['die']}: ")
    if die["dead"]:
        return words.append("dead", "bold red")
    if die["busy"] is None:
        return words.append("alive", "green")
    return words.append(f"{100 * die['busy']:.1f}% busy")


def totals(rows: list[dict[str, Any]]) -> list[str]:
    states = [row["state"] for row in rows]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(
        ["free", "open", "closed", *states]) if state in states)
    valid, capacity = (sum(row[key] for row in rows if row["state"] != "retired")
                       for key in ("valid", "capacity"))
    erasures = [row["erasures"] for row in rows] or [0]
    lines = [f"{len(rows)} superblocks: {counts}",
             f"{valid} of {capacity} units valid ({100 * valid / max(1, capacity):.1f}%); "
             f"erasures {min(erasures)} to {max(erasures)}, mean "
             f"{sum(erasures) / len(erasures):.1f}"]
    for row in rows:
        if row["moves-for"]:
            lines.append(f"superblock {row['superblock']} is moved for {row['moves-for']}")
    return lines


def lines(facts: dict[str, Any]) -> list[Text]:
    """The map for people."""
    rows = facts["superblocks"]
    found = [Text(line) for line in totals(rows)]
    if not facts["mounted"]:
        found.insert(0, Text("the drive still mounts its flash, so this is not all", "yellow"))
    return [*found, *map(die_line, facts["dies"]), grid(rows), Text(LEGEND, "dim")]


def info_of_running(instance: Instance, array: Nand) -> dict[str, Any]:
    """What `essd media info` says of a running drive, without its file."""
    found = of_running(instance)
    counters = mgmt.ask(instance, "counters")
    rows = [row for row in found["superblocks"] if row["state"] != "retired"]
    erasures = [row["erasures"] for row in rows] or [0]
    return {"name": instance.name, "drive": instance.drive, "file": array.path,
            "is_running": True, "profile": array.profile, "channels": array.channels,
            "dies": array.dies, "blocks": array.blocks, "wordlines": array.wordlines,
            "seed": array.seed, "capacity_bytes": nand.size_bytes(array.size),
            "spare_percent": array.spare, "failed_blocks": counters["flash"]["failed-blocks"],
            "min_erasures": min(erasures), "max_erasures": max(erasures),
            "mean_erasures": round(sum(erasures) / len(erasures), 3),
            "superblocks": len(found["superblocks"]),
            "free_superblocks": counters["ftl"]["free-superblocks"],
            "valid_units": sum(row["valid"] for row in rows),
            "all_units": sum(row["capacity"] for row in rows),
            "die_map": [{"channel": die["channel"], "die": die["die"],
                         "is_dead": die["dead"]}
                        for die in dies_of(array, found["dead-dies"], None)]}


def info_text(instance: Instance, array: Nand, facts: dict[str, Any]) -> str:
    sees = f", hosts see {media.exact_size(array.capacity)}" if array.capacity else ""
    dead = [f"channel {die['channel']} die {die['die']}" for die in facts["die_map"]
            if die["is_dead"]]
    return (f"{instance.the_drive}: NAND array of {array.size}{sees}, at least {array.spare}% "
            f"spare; the drive runs, so this is what its firmware says\n"
            f"{array.profile}: {array.channels} channels, {array.dies} dies each, planes of "
            f"{array.blocks} blocks, {array.wordlines} wordlines each\n"
            f"{facts['superblocks']} superblocks, {facts['free_superblocks']} free; "
            f"{facts['valid_units']} of {facts['all_units']} units valid\n"
            f"erasures {facts['min_erasures']} to {facts['max_erasures']}, mean "
            f"{facts['mean_erasures']:.1f}; {facts['failed_blocks']} blocks have failed\n"
            f"dead dies: {', '.join(dead) or 'none'}\n")


def array_is_used(instance: Instance) -> bool:
    """Whether the drive runs."""
    if not instance.is_running:
        return False
    part: dict[str, Any] = instance.status()["parts"].get(instance.drive, {})
    return part.get("state") == "running"


def read(name: str, part: str) -> dict[str, Any]:
    """The map of a drive that runs or is off, as `--json` prints it."""
    running = fleet.one(Instance(name), part)
    if array_is_used(running):
        return facts_of(running, nand_look.array_of(running), True)
    instance, array = nand_look.opened_array(name, part)
    return facts_of(instance, array, False)


def info(name: str, part: str, *options: str) -> nand_look.Result:
    """What `essd media info` shows, from the drive itself while it runs."""
    running = fleet.one(Instance(name), part)
    if not array_is_used(running):
        return nand_look.run("info", name, part, *options)
    array = nand_look.array_of(running)
    facts = info_of_running(running, array)
    return nand_look.Result(info_text(running, array, facts), facts, "")
