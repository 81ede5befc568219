# SPDX-License-Identifier: BSD-2-Clause
"""Results of `essd bench`: read again, compared, and drawn as an HTML page.

Both kinds of runs, with a Linux host and with essd's own initiator, print their
results with --json; this module reads either.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from rich.table import Table

from ..base.errors import EssdError

# A result's name here, its names in the JSON of both kinds, heading, and whether a
# larger value is better.
COLUMNS = (
    ("iops", ("iops",), "IOPS", True),
    ("mb_s", ("mb_s",), "MB/s", True),
    ("mean_us", ("mean_us",), "mean us", False),
    ("p99_us", ("p99_us",), "p99 us", False),
    ("cpu", ("target_cpu", "drive_cpu"), "CPU s per million I/Os", False),
)
TEMPLATE = Path(__file__).with_name("bench_report.html")


@dataclass(frozen=True)
class Result:
    workload: str
    target: str                 # "drive" or "nvmet"
    values: dict[str, float]    # by the names in COLUMNS

    @property
    def key(self) -> tuple[str, str]:
        return self.workload, self.target


def results_of(data: Any) -> list[Result]:
    """The results in what `essd bench --json` printed; raises KeyError or TypeError."""
    rows = data["workloads"] if isinstance(data, dict) else data
    found = []
    for row in rows:
        target = {"peer": "nvmet"}.get(row.get("target"), row.get("target", "drive"))
        values = {name: float(next(row[key] for key in keys if key in row))
                  for name, keys, _, _ in COLUMNS}
        if not all(map(math.isfinite, values.values())):
            raise ValueError("a value is not a number")
        found.append(Result(str(row["workload"]), str(target), values))
    return found


def load(path: Path) -> list[Result]:
    """The results in a file that `essd bench --json` has written."""
    try:
        found = results_of(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise EssdError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration,
            RecursionError):
        found = []
    if not found:
        raise EssdError(f"{path}: the file has no results; write one with ./essd bench "
                        "--json > FILE")
    return found


def change(before: float, after: float) -> str:
    """By how much `after` differs from `before`, in per cent."""
    return f"{100 * (after - before) / before:+.1f}%" if before else ""


def pairs(before: list[Result], after: list[Result]) -> list[tuple[Result, Result]]:
    """Results that both runs have, in the order of the second."""
    old = {result.key: result for result in before}
    return [(old[result.key], result) for result in after if result.key in old]


def compare(before: list[Result], after: list[Result]) -> Table:
    """A table of both runs' values and their differences."""
    both = pairs(before, after)
    if not both:
        raise EssdError("the two runs have no workload in common: compare runs of the "
                        "same kind, both with or both without --native")
    table = Table(box=None, pad_edge=False)
    for heading in ("workload", "target"):
        table.add_column(heading, no_wrap=True)
    for _, _, heading, _ in COLUMNS:
        table.add_column(heading, no_wrap=True, justify="right")
    for old, new in both:
        table.add_row(new.workload, new.target, *(
            f"{old.values[name]:.0f} -> {new.values[name]:.0f} "
            f"({change(old.values[name], new.values[name])})"
            for name, *_ in COLUMNS))
    return table


def page(results: list[Result], before: list[Result] | None, title: str) -> str:
    """One HTML file with a bar chart for each column, without any other file."""
    old = {result.key: result for result in before or []}
    charts = []
    for name, _, heading, is_more_better in COLUMNS:
        top = max([result.values[name] for result in [*results, *old.values()]] + [1e-9])
        charts.append({
            "heading": heading,
            "better": "higher is better" if is_more_better else "lower is better",
            "bars": [{
                "label": f"{result.workload}, {result.target}",
                "value": f"{result.values[name]:.0f}",
                "width": 100 * result.values[name] / top,
                "old_value": f"{old[result.key].values[name]:.0f}"
                if result.key in old else "",
                "old_width": 100 * old[result.key].values[name] / top
                if result.key in old else 0,
                "change": change(old[result.key].values[name], result.values[name])
                if result.key in old else ""} for result in results]})
    return rendered(title, charts, has_old=bool(old))


def rendered(title: str, charts: list[dict[str, Any]], notes: Sequence[str] = (),
             has_old: bool = False) -> str:
    """The page with these charts and, above them, these paragraphs."""
    template = jinja2.Template(TEMPLATE.read_text(encoding="utf-8"), autoescape=True)
    return str(template.render(title=title, charts=charts, notes=notes, has_old=has_old))


def write_page(path: Path, results: list[Result], before: list[Result] | None,
               title: str) -> None:
    write_text(path, page(results, before, title))


def write_text(path: Path, text: str) -> None:
    """Write a page; EssdError names the option if that is not possible."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EssdError(f"--html {path}: {error.strerror}") from None
