# SPDX-License-Identifier: BSD-2-Clause
"""`essd compare`: the protocols of the drive beside each other and beside Linux's targets.

One drive, one host and one Linux target run at the same time and are all connected.  Each
workload then goes to one row after the other (contest.py).
"""

import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base import claims, interrupts, show
from ..base.chosen import check_word
from ..base.errors import EssdError
from ..build import guest_variant
from ..instance.config import HOST_KINDS, UML
from ..instance.instance import Instance
from ..instance.steps import Job, wait_target
from ..observe import losses
from ..setup.temporary import Temporary
from ..topology import reader, setup as topology_setup
from . import compare_report
from .contenders import (Contender, DRIVE, ROWS, connect_all, settings_text, topology_text)
from .contest import Contest, SHAPES, WORKLOADS, fill_all

SECONDS = 2
ROUNDS = 3
# Shared namespaces are one device each by every connection, not one for all of them.
NO_MULTIPATH = "nvme_core.multipath=N"


@dataclass(frozen=True)
class Chosen:
    """The rows and the workloads that are wanted, and what of them is left out and why."""

    rows: tuple[Contender, ...]
    workloads: tuple[str, ...]
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def needs_peers(self) -> bool:
        return any(row.needs_peers for row in self.rows)


def choose(only: Sequence[str]) -> Chosen:
    """What the words of --only choose; a word is a part of the names of rows or workloads."""
    names = [name for name, _ in WORKLOADS] + [shape.name for shape in SHAPES]
    rows: list[Contender] = []
    workloads: list[str] = []
    for word in (part.strip().lower() for text in only for part in text.split(",")):
        some_rows = [row for row in ROWS if word and word in row.name]
        some_names = [name for name in names if word and word in name]
        if not some_rows and not some_names:
            raise EssdError(f"--only {word}: no row and no workload contains this text; rows: "
                            f"{', '.join(row.name for row in ROWS)}; workloads: "
                            f"{', '.join(names)}")
        rows += some_rows
        workloads += some_names
    chosen = Chosen(tuple(row for row in ROWS if row in rows or not rows),
                    tuple(name for name in names if name in workloads or not workloads))
    copies = {shape.name for shape in SHAPES}
    if copies.issuperset(chosen.workloads) and not any(row.copies for row in chosen.rows):
        raise EssdError(f"--only {','.join(only)}: copies are compared by "
                        f"{' and '.join(row.name for row in ROWS if row.copies)} alone")
    return chosen


def without_peers(chosen: Chosen) -> Chosen:
    """The same without the rows that need a guest that is not there."""
    try:
        guest_variant.check(guest_variant.PEERS)
    except EssdError as error:
        return Chosen(tuple(row for row in chosen.rows if not row.needs_peers),
                      chosen.workloads, {row.name: str(error) for row in chosen.rows
                                         if row.needs_peers})
    return chosen


def guest_for(chosen: Chosen, host_kind: str) -> str:
    """The guest of the peers if a row needs it: Debian's kernel has no siw without it."""
    needs = chosen.needs_peers or host_kind != UML
    return str(guest_variant.PEERS) if needs and guest_variant.PEERS.is_dir() else ""


@contextmanager
def started(chosen: Chosen, host_kind: str) -> Iterator[Instance]:
    """The running drive, host and target, which are deleted at the end."""
    owner = Temporary("compare-")
    instance = Instance(owner.name)
    is_done = False
    try:
        with tempfile.TemporaryDirectory(prefix="essd-compare-") as folder, \
                claims.claimed(instance.name, "essd compare"):
            settings = Path(folder, "settings.yaml")
            settings.write_text(settings_text(chosen.rows), encoding="utf-8")
            text = topology_text(list(chosen.rows), host_kind, guest_for(chosen, host_kind),
                                 str(settings))
            topology = reader.load(text, "essd compare", Path(folder))
            config = topology_setup.configure(topology, instance.name)
            for host in config.hosts.values():
                host.kernel.append(NO_MULTIPATH)
            instance.start(config, bound=True)
            with show.busy("starting the drive and the Linux hosts"):
                instance.wait_started()
                topology_setup.wait_drives(instance)
                for name in config.hosts:
                    instance.wait_ready(name)
                if DRIVE in config.drives:
                    wait_target(Job.on(instance, DRIVE))
        yield instance
        is_done = True
    finally:
        with interrupts.ignored():
            instance.stop_started()
            owner.delete(keep_logs=not is_done)


def measure(instance: Instance, chosen: Chosen, seconds: int, rounds: int) -> dict[str, Any]:
    """All workloads on all rows, as --json prints them."""
    rows = list(chosen.rows)
    with show.busy("connecting all rows"):
        devices, reasons = connect_all(instance, rows)
    for name, reason in reasons.items():
        show.line(f"{name} is left out: {reason}", "yellow")
    if not devices:
        raise EssdError(f"no row can be measured: {'; '.join(reasons.values())}")
    connected = [row for row in rows if row.name in devices]
    fill_all(instance, connected, devices)
    before, load = losses.read(instance), os.getloadavg()
    progress = Turns(chosen, connected, rounds)
    contest = Contest(instance, connected, devices, rounds, progress.next)
    found: list[dict[str, Any]] = []
    copies: list[dict[str, Any]] = []
    with progress.shown():
        for name in chosen.workloads:
            shape = next((one for one in SHAPES if one.name == name), None)
            if shape is None:
                found += contest.run(name, seconds)
            else:
                copies += contest.copy(shape)
    lost = losses.grown(before, losses.read(instance))
    missing = {**chosen.reasons, **reasons, **contest.reasons}
    return {"rows": [{"row": row.name, "what": row.what, "target": row.target,
                      "reason": missing.get(row.name, "")} for row in ROWS
                     if row in chosen.rows or row.name in missing],
            "workloads": found, "copies": copies, "seconds": seconds, "rounds": rounds,
            "cores": os.cpu_count(), "load_before": list(load),
            "load_after": list(os.getloadavg()), "losses": losses.words(lost),
            "losses_known": not lost.unknown}


class Turns:
    """How many turns there are, and which of them runs."""

    def __init__(self, chosen: Chosen, rows: Sequence[Contender], rounds: int) -> None:
        shapes = {shape.name for shape in SHAPES}
        ways = 2 * sum(row.copies for row in rows)
        self.total = rounds * sum(ways if name in shapes else len(rows)
                                  for name in chosen.workloads)
        self.count = 0
        self.begin = time.monotonic()
        self.progress = show.Progress()
        self.report = self.progress.task("essd compare")
        self.shown = self.progress.shown

    def next(self, what: str) -> None:
        self.count += 1
        gone = time.monotonic() - self.begin
        left = gone / max(self.count - 1, 1) * (self.total - self.count + 1)
        rest = f", about {left:.0f} s left" if self.count > 1 else ""
        self.report(f"turn {self.count} of {self.total}: {what}{rest}")


def command(host_kind: str, seconds: int, rounds: int, only: Sequence[str], as_json: bool,
            html: Path | None) -> None:
    """Run `essd compare`."""
    check_word("--host-kind", host_kind, HOST_KINDS)
    for option, value in (("--seconds", seconds), ("--rounds", rounds)):
        if value < 1:
            raise EssdError(f"{option} {value}: use 1 or more")
    if html is not None and not html.absolute().parent.is_dir():
        raise EssdError(f"--html {html}: there is no folder {html.absolute().parent}")
    chosen = without_peers(choose(only))
    if not chosen.rows:
        raise EssdError(f"no row can be measured: {next(iter(chosen.reasons.values()))}")
    if as_json:
        show.only_data()
    with started(chosen, host_kind) as instance:
        data = {"host_kind": host_kind, **measure(instance, chosen, seconds, rounds)}
    if html is not None:
        compare_report.write(html, data)
    if as_json:
        print(json.dumps(data, indent=2))
    else:
        compare_report.show_tables(data)
    if not data["losses_known"]:
        raise EssdError("these results may be those of a connection that lost frames: "
                        + data["losses"])
