# SPDX-License-Identifier: BSD-2-Clause
"""`essd media`: essd-nand looks at, or ages, the array of a drive that is off."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import chosen, disk_swap, paths, show
from ..base.errors import EssdError
from ..instance import fleet
from ..instance.config import Nand
from ..instance.instance import Instance
from . import media, nand


@dataclass(frozen=True)
class Result:
    text: str               # or, as JSON:
    facts: dict[str, Any]
    complaint: str          # one line, or "" if everything is in order


def array_of(instance: Instance) -> Nand:
    """The array of a drive, which need not run; EssdError if there is none."""
    if not instance.drives:
        raise EssdError(f"there is no drive {instance.name}"
                        f"{chosen.mean(instance.name, chosen.known())}")
    folder = paths.drive(instance.name, instance.drive)
    array = nand.recorded(folder / nand.FILE)
    if array is None:
        raise EssdError(f"{instance.the_drive} of {instance.name} has no NAND array: only a "
                        "drive that was created with up --nand SIZE has one")
    return array


@dataclass(frozen=True)
class Fill:
    """How a drive is preconditioned: see tools/nand/fill.h."""

    percent: int            # of each namespace that is written sequentially: 1 to 100
    drive_writes: int = 0   # how often the capacity is then written to this part
    is_sequential: bool = False     # the drive writes are sequential, too
    seed: int = 1           # chooses the units that random drive writes go to


def opened_array(name: str, part: str) -> tuple[Instance, Nand]:
    instance = fleet.one(Instance(name), part)
    # If a load of a snapshot was killed, it is undone, as before a start.
    disk_swap.recover_of(name)
    array = array_of(instance)
    # essd-nand checks it too, but it may have to be built first.
    if media.is_written(Path(array.path)):
        raise in_use(instance, Path(array.path))
    return instance, array


def in_use(instance: Instance, path: Path) -> EssdError:
    return EssdError(f"NAND file {path} is in use: if the drive is running, stop it with "
                     f"{instance.hint('down')}, or cut its power with "
                     f"{instance.drive_hint('power-cut')}, first")


def complaint_of(instance: Instance, path: Path,
                 done: "subprocess.CompletedProcess[str]") -> str:
    """Why essd-nand has failed, or ""; raise EssdError if a drive uses the file."""
    if done.returncode == nand.BUSY:
        raise in_use(instance, path)
    return f"NAND file {path}: {nand.complaint(path, done)}" if done.returncode else ""


def run(what: str, name: str, part: str, *options: str) -> Result:
    """Let essd-nand read or change the array; `what` is info, check or age."""
    instance, array = opened_array(name, part)
    path = Path(array.path)
    done = nand.call(what, path, *options)
    complaint = complaint_of(instance, path, done)
    if complaint and not done.stdout:
        raise EssdError(complaint)
    facts = {"name": name, "drive": instance.drive, "file": str(path),
             **json.loads(done.stdout)} if "--json" in options else {}
    text = done.stdout
    if what == "info" and not complaint:
        if facts:
            facts["spare_percent"] = nand.spare_of(array, facts["capacity_bytes"])
        else:
            text = f"{instance.the_drive}: NAND array of {nand.size_line(array)}\n{text}"
    return Result(text, facts, complaint)


def age(name: str, part: str, *options: str) -> None:
    """Change wear, reads and marks of blocks of the array, and let days pass."""
    instance, array = opened_array(name, part)
    with instance.writable("essd media age"):
        run("age", name, part, *options, "--flash",
            str(Path(array.path).with_name("flash.img")))


def shown_percent(progress: show.Progress) -> Callable[[str], None]:
    """A function that shows lines "progress PERCENT"; without a terminal, one in 10 s."""
    report = progress.task("writing")
    last = time.monotonic()

    def show_line(line: str) -> None:
        nonlocal last
        word, _, percent = line.partition(" ")
        now = time.monotonic()
        if word == "progress" and (progress.status is not None or now - last > 10):
            last = now
            report(f"{percent}%")
    return show_line


def precondition(name: str, part: str, fill: Fill, *options: str) -> str:
    """Let essd-nand fill and overwrite the namespaces; return what it has done."""
    instance, array = opened_array(name, part)
    path = Path(array.path)
    words = [*options, "--fill", str(fill.percent), "--drive-writes", str(fill.drive_writes),
             "--seed", str(fill.seed), "--flash", str(path.with_name("flash.img")),
             "--progress"]
    words += ["--sequential"] * fill.is_sequential + ["--plp"] * (array.plp == "on")
    progress = show.Progress()
    with instance.writable("essd media age"), progress.shown():
        done = nand.follow(shown_percent(progress), "age", path, *words)
    complaint = complaint_of(instance, path, done)
    if complaint:
        raise EssdError(complaint)
    return done.stdout.strip().splitlines()[-1]
