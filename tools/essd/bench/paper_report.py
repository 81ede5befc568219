# SPDX-License-Identifier: BSD-2-Clause
"""The HTML page of `essd paper`: tables, latency curves and throughput over time."""

import math
from pathlib import Path
from typing import Any

import jinja2

from ..base.errors import EssdError

TEMPLATE = Path(__file__).with_name("paper_report.html")
WIDTH, HEIGHT = 640, 240    # of a plot
LEFT, BOTTOM = 60, 30       # of it, for labels


def path_of(points: list[tuple[float, float]]) -> str:
    """An SVG path through points with coordinates from 0 to 1."""
    return " ".join(
        f"{'L' if n else 'M'}{LEFT + x * (WIDTH - LEFT - 10):.1f} "
        f"{10 + (1 - y) * (HEIGHT - BOTTOM - 10):.1f}" for n, (x, y) in enumerate(points))


def latency_points(counts: list[list[int]]) -> tuple[list[tuple[float, float]], list[int]]:
    """The share of commands that are done after a time, and the decades of its axis."""
    total = sum(count for _, count in counts)
    first = math.floor(math.log10(max(counts[0][0], 1)))
    last = math.ceil(math.log10(max(counts[-1][0], 2)))
    below = 0
    points = [((math.log10(max(counts[0][0], 1)) - first) / (last - first), 0.0)]
    for top, count in counts:
        below += count
        points.append(((math.log10(max(top, 1)) - first) / (last - first), below / total))
    return points, list(range(first, last + 1))


def duration(decade: int) -> str:
    """A power of ten in nanoseconds, for people."""
    for unit, least in (("s", 9), ("ms", 6), ("µs", 3)):
        if decade >= least:
            return f"{10 ** (decade - least)} {unit}"
    return f"{10 ** decade} ns"


def plots_of(row: dict[str, Any]) -> dict[str, Any]:
    points, decades = latency_points(row["histogram"]["counts"])
    most = max(row["over_time"])
    bins = len(row["over_time"])
    return {
        "latency": path_of(points),
        "ticks": [(LEFT + n / (len(decades) - 1) * (WIDTH - LEFT - 10), duration(decade))
                  for n, decade in enumerate(decades)],
        "time": path_of([(n / (bins - 1), value / (1.1 * most))
                         for n, value in enumerate(row["over_time"])]),
        "most": f"{1.1 * most * bins / row['virtual_s']:,.0f}",
    }


def curve_of(points: list[dict[str, float]]) -> dict[str, Any]:
    """The plot of the writes a second while the flash is overwritten."""
    most = 1.1 * max(point["iops"] for point in points)
    last = points[-1]["overwritten_percent"]
    return {"path": path_of([(point["overwritten_percent"] / last, point["iops"] / most)
                             for point in points]),
            "most": f"{most:,.0f}", "last": f"{last:.0f}%"}


def write_page(path: Path, facts: dict[str, Any], titles: dict[str, str],
               limits: list[str]) -> None:
    """Write one file without any other file; the same facts give the same bytes."""
    template = jinja2.Template(TEMPLATE.read_text(encoding="utf-8"), autoescape=True)
    page = template.render(facts=facts, titles=titles, limits=limits, width=WIDTH,
                           height=HEIGHT, left=LEFT, bottom=BOTTOM,
                           curve=curve_of(facts["curve"]) if "curve" in facts else None,
                           plots=[plots_of(row) for row in facts["rows"]])
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise EssdError(f"--html {path}: {error.strerror}") from None
