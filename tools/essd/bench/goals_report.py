# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --goals`: the command, and its table."""

import os
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.table import Table

from ..base import show
from ..base.errors import EssdError
from . import goals, turns
from .goals import FIGURES, Plan, Row
from .native import build_initiator

if TYPE_CHECKING:
    from .bench import Output

# The columns with numbers come third to seventh.
COLUMNS = ("goal", "asked", "CPU", "best", "result", "CPU / BASE", "result / BASE", "met")
BESIDE = slice(5, 7)


def result_of(row: Row) -> str:
    """The figure that is asked for besides CPU."""
    return list(row.asked)[-1]


def best_of(row: Row) -> str:
    """The best round's CPU, or time of a start."""
    name = "drive_cpu" if "drive_cpu" in row.best else result_of(row)
    return FIGURES[name].value.format(row.best[name])


def asked_of(row: Row) -> str:
    return ", ".join(FIGURES[name].asked(limit) for name, limit in row.asked.items())


def met_of(row: Row) -> str:
    """One word if all parts of the goal were met alike, else one for each."""
    if row.reason:
        return "failed"
    if len(set(row.met.values())) == 1:
        return next(iter(row.met.values()))
    return ", ".join(f"{FIGURES[name].word} {word}" for name, word in row.met.items())


def beside(row: Row) -> list[str]:
    """The ratios to BASE: of CPU with the smallest and the largest of the rounds."""
    if row.base_reason:
        return [row.base_reason if row.base_reason == goals.NOT_IN_BASE else "failed", ""]
    if not row.ratio:
        return ["", ""]
    name = "drive_cpu"
    return [f"{row.ratio[name]:.2f} {row.ratio_low[name]:.2f}-{row.ratio_high[name]:.2f}"
            if name in row.ratio else "", f"{row.ratio[result_of(row)]:.2f}"]


def cells(row: Row) -> list[str]:
    if row.reason:
        return [row.goal, asked_of(row), *[""] * 5, met_of(row)]
    cpu, result = (FIGURES[name].value.format(row.median[name]) if name in row.median else ""
                   for name in ("drive_cpu", result_of(row)))
    return [row.goal, asked_of(row), cpu, best_of(row), result, *beside(row), met_of(row)]


def table_of(rows: list[Row], has_base: bool) -> Table:
    table = Table(box=None, pad_edge=False)
    for texts in ([COLUMNS, *map(cells, rows)]):
        words = list(texts)
        if not has_base:
            del words[BESIDE]
        if table.columns:
            table.add_row(*words)
            continue
        for n, word in enumerate(words):
            table.add_column(word, no_wrap=True,
                             justify="right" if 2 <= n < len(words) - 1 else "left")
    return table


def show_rows(rows: list[Row], base: str | None, plan: Plan,
              load: tuple[float, float, float]) -> None:
    show.line()
    show.console.print(table_of(rows, base is not None))
    for row in rows:
        for what, reason in ((row.goal, row.reason), (f"{row.goal}, BASE", row.base_reason)):
            if reason and reason != goals.NOT_IN_BASE:
                show.line(f"{what}: {reason}", "red")
    show.line("CPU: microseconds of CPU time of the drive's QEMU for each I/O; like all figures "
              f"the median of the rounds ({plan.rounds}); best: the best round")
    if base is not None:
        show.line(f"/ BASE: divided by the value of {base} in the same round: the median, and "
                  "of CPU the smallest and the largest of the rounds; less is better, but not of "
                  "IOPS and GB/s")
    show.line("met: whether the median reaches the goal; \"best\": only the best round "
              "does. IOPS, GB/s and times count on a quiet machine only; CPU for each I/O "
              "grows with the load, too.")
    show.line(f"MTU {plan.mtu}, {plan.seconds:g} s each. The goal beside Linux's target in one "
              "emulated guest is measured by: ./essd compare --host-kind stock")
    show.line(turns.machine_line(load))


def progress_line(row: Row) -> str:
    if row.reason:
        return f"{row.goal}: failed: {row.reason}"
    found = dict.fromkeys(["drive_cpu"] * ("drive_cpu" in row.median) + list(row.asked))
    values = ", ".join(("CPU " if name == "drive_cpu" else "")
                       + FIGURES[name].value.format(row.median[name]) for name in found)
    return f"{row.goal}: {values}"


def data_of(rows: list[Row], base: str | None, plan: Plan,
            load: tuple[float, float, float]) -> dict[str, object]:
    return {"goals": [asdict(row) for row in rows], "base": base or "",
            "seconds": plan.seconds, "rounds": plan.rounds, "mtu": plan.mtu,
            "cores": os.cpu_count(), "load_before": list(load),
            "load_after": list(turns.now())}


def command(seconds: float, rounds: int | None, only: str, mtu: int | None,
            output: "Output") -> None:
    """Run `essd bench --goals`."""
    base = output.base
    plan = goals.plan_of(base, seconds, rounds, only, mtu, build_initiator)
    load = turns.now()
    goals.tell_plan(plan, load)
    rows = goals.measured(plan, lambda row: show.line(progress_line(row)))
    if not output.as_json:
        show_rows(rows, base, plan, load)
    output.print_data(data_of(rows, base, plan, load))
    failed = [row.goal for row in rows if row.has_failed]
    if failed:
        raise EssdError(f"{len(failed)} of {len(rows)} rows could not be measured: "
                        f"{'; '.join(failed)}")
