# SPDX-License-Identifier: BSD-2-Clause
"""`essd media`: essd-nand looks at, or ages, the array of a drive that is off."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import chosen, disk_swap, fleet, nand, paths
from .config import Nand
from .errors import EssdError
from .instance import Instance


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


def run(what: str, name: str, part: str, *options: str) -> Result:
    """Let essd-nand read or age the array; `what` is info, check or age."""
    instance = fleet.one(Instance(name), part)
    # If a load of a snapshot was killed, it is undone, as before a start.
    disk_swap.recover(paths.drives() / name)
    path = Path(array_of(instance).path)
    done = nand.call(what, path, *options)
    if done.returncode == nand.BUSY:
        rest = [] if instance.drive == "drive" else [instance.drive]
        raise EssdError(f"NAND file {path} is in use: if the drive is running, stop it with "
                        f"{instance.hint('down')}, or cut its power with "
                        f"{instance.hint('power-cut', *rest)}, first")
    complaint = ""
    if done.returncode:
        complaint = f"NAND file {path}: {nand.complaint(path, done)}"
    if complaint and not done.stdout:
        raise EssdError(complaint)
    facts = {"name": name, "drive": instance.drive, "file": str(path),
             **json.loads(done.stdout)} if "--json" in options else {}
    return Result(done.stdout, facts, complaint)
