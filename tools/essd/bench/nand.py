# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --native --nand SIZE`: a drive with NAND flash beside one without.

Both drives run at the same time, each with its own socket to an initiator, and each
workload runs first against one drive and then against the other.  So other load on the
machine affects both drives alike, and the ratio of their CPU times can be trusted.

All blocks are first written sequentially, and the sequential workloads run before the
random ones, because random writes spread the blocks over the flash.  At the end, a
sequential workload is measured once more, to see what reads cost after that.
"""

import contextlib
import dataclasses
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from ..base import claims, interrupts, show
from ..base.errors import EssdError
from ..setup import setup
from ..setup.setup import Wish
from . import native as bench_native
from .native import Bench, FILL_S, Row, build_initiator, wanted_workloads
from .report import Result

if TYPE_CHECKING:
    from .bench import Output

NAMES = {"block": "bench-block", "nand": "bench-nand"}      # of the instances, by target
WORKLOADS = tuple(sorted((*bench_native.WORKLOADS, "4k-read-qd64", "4k-write-qd64"),
                         key=lambda name: "rand" in name))
SPREAD = "128k-read-qd64"       # is measured again after random writes
SPREAD_NAME = f"{SPREAD} after random writes"


def median(rows: list[Row]) -> Row:
    return dataclasses.replace(rows[0], **{
        field.name: statistics.median(getattr(row, field.name) for row in rows)
        for field in dataclasses.fields(Row) if field.type is float})


def steps(only: str) -> list[tuple[str, str]]:
    """The workloads in their order, each with its name in the results."""
    wanted = wanted_workloads(only, WORKLOADS)
    found = [(name, name) for name in wanted]
    if SPREAD in wanted and any("randwrite" in name for name in wanted):
        found.append((SPREAD, SPREAD_NAME))
    return found


def run(benches: dict[str, Bench], seconds: float, rounds: int, only: str,
        row_done: Callable[[Row], None]) -> list[Row]:
    """Run each workload on both drives in turn; return the medians of the rounds."""
    found = []
    with contextlib.ExitStack() as stack:
        pids = {}
        for target, bench in benches.items():
            first = bench.filler()
            pids[target] = stack.enter_context(bench.drive()).pid
            bench.result(first, 60 + FILL_S)
        for name, shown in steps(only):
            rows: dict[str, list[Row]] = {target: [] for target in benches}
            for n in range(rounds):
                for target in list(benches)[::-1 if n % 2 else 1]:
                    row = benches[target].measure(pids[target], name, seconds)
                    rows[target].append(dataclasses.replace(row, workload=shown,
                                                            target=target))
            for target in benches:
                found.append(median(rows[target]))
                row_done(found[-1])
    return found


def cost_ratios(rows: list[Row]) -> dict[str, float]:
    """CPU time of the drive with NAND divided by the other's, for each workload."""
    cost = {(row.workload, row.target): row.drive_cpu for row in rows}
    return {row.workload: cost[row.workload, "nand"] / cost[row.workload, "block"]
            for row in rows if row.target == "nand"}


def show_rows(rows: list[Row]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("workload", "medium", "IOPS", "MB/s", "mean us", "p99 us", "CPU"):
        table.add_column(heading, no_wrap=True,
                         justify="left" if heading in ("workload", "medium") else "right")
    for row in rows:
        table.add_row(row.workload, row.target, f"{row.iops:.0f}", f"{row.mb_s:.1f}",
                      f"{row.mean_us:.0f}", f"{row.p99_us:.0f}", f"{row.drive_cpu:.1f}")
    show.console.print(table)
    show.line("CPU: CPU seconds of the drive's QEMU process per million I/Os")
    for workload, ratio in cost_ratios(rows).items():
        show.line(f"{workload}: the drive with NAND flash takes {100 * ratio:.0f}% of the "
                  "other's CPU")


def command(seconds: float, rounds: int, only: str, mtu: int, nand: str,
            output: "Output", earlier: list[Result] | None) -> None:
    """Run `essd bench --native --nand`."""
    if rounds < 1:
        raise EssdError(f"--rounds {rounds}: use 1 or more")
    steps(only)
    program = build_initiator()
    with contextlib.ExitStack() as stack:
        for name in NAMES.values():
            stack.enter_context(claims.claimed(name, "essd bench"))
        rows = run_beside(seconds, rounds, only, mtu, nand, program)
    if not output.as_json:
        show_rows(rows)
    output.write({"workloads": [dataclasses.asdict(row) for row in rows]}, earlier,
                 "essd bench --native --nand: NAND flash beside a block medium")


def run_beside(seconds: float, rounds: int, only: str, mtu: int, nand: str,
               program: Path) -> list[Row]:
    """Measure both drives, whose names are claimed, and delete them."""
    for name in NAMES.values():
        setup.forget(name)
    try:
        with tempfile.TemporaryDirectory(prefix="essd-bench-") as folder:
            benches = {}
            for target, name in NAMES.items():
                config = setup.configure(Wish(
                    name=name, mtu=mtu, host=False,
                    nand=nand if target == "nand" else None, block=target == "block"))
                place = Path(folder) / target
                place.mkdir()
                benches[target] = Bench(config, program, place, mtu)
            return run(benches, seconds, rounds, only, lambda row: show.line(
                f"{row.workload}, {row.target}: {row.iops:.0f} IOPS"))
    finally:
        with interrupts.ignored():
            for name in NAMES.values():
                setup.forget(name)
