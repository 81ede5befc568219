# SPDX-License-Identifier: BSD-2-Clause
"""What `essd compare` found, as tables and as an HTML page; its input is that of --json."""

from pathlib import Path
from typing import Any

from rich.table import Table

from ..base import show
from . import report

# Name in --json, heading of the table, heading of the page, digits, whether more is better.
COLUMNS = (
    ("iops", "IOPS", "IOPS", 0, True),
    ("mb_s", "MB/s", "MB/s", 1, True),
    ("mean_us", "mean us", "mean latency in microseconds", 0, False),
    ("p50_us", "p50", "median latency in microseconds", 0, False),
    ("p99_us", "p99", "99th percentile of the latency in microseconds", 0, False),
    ("p999_us", "p99.9", "99.9th percentile of the latency in microseconds", 0, False),
    ("target_cpu", "target CPU", "CPU seconds of the target per million I/Os", 0, False),
    ("host_cpu", "host CPU", "CPU seconds of the host per million I/Os", 0, False),
    ("frames", "frames", "frames on the host's cable for each I/O", 1, False),
    ("bytes", "bytes", "bytes on the host's cable for each I/O", 0, False),
    ("ios", "I/Os", "I/Os of one turn", 0, True),
)
COPY_COLUMNS = (
    ("ms", "ms", "milliseconds for one copy, with the start of programs", 1, False),
    ("start_ms", "start ms", "milliseconds of the start of programs", 1, False),
    ("target_cpu_ms", "target CPU ms", "CPU milliseconds of the target for one copy", 1, False),
    ("host_cpu_ms", "host CPU ms", "CPU milliseconds of the host for one copy", 1, False),
    ("frames", "frames", "frames on the host's cable for one copy", 0, False),
    ("bytes", "bytes", "bytes on the host's cable for one copy", 0, False),
)
LEGEND = (
    "All rows are connected at the same time, and one is active; the figures are medians of the "
    "rounds.",
    "target CPU, host CPU: CPU seconds per million I/Os of all processes of the target and of "
    "the host, with what emulates them; the switches' processes are not in it.",
    "frames, bytes: on the host's cable, in both directions, for each I/O; other connections "
    "send some frames a second, which count much only if a turn has few I/Os.",
    "An emulated network has no wire that could be full and no card that computes: IOPS and "
    "latencies are those of this computer. Compare CPU, frames and bytes, and rows of one table.",
)


def machine_line(data: dict[str, Any]) -> str:
    before, after = data["load_before"][0], data["load_after"][0]
    return (f"{data['rounds']} rounds of {data['seconds']} s, host: {data['host_kind']}; the "
            f"machine: {data['cores']} cores, load average {before:.1f} at the beginning and "
            f"{after:.1f} at the end")


def missing_lines(data: dict[str, Any]) -> list[str]:
    return [f"{row['row']} ({row['what']}) is left out: {row['reason']}"
            for row in data["rows"] if row["reason"]]


def table_of(rows: list[dict[str, Any]], columns: tuple[Any, ...],
             words: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    for word in words:
        table.add_column(word, no_wrap=True)
    for _, heading, *_ in columns:
        table.add_column(heading, no_wrap=True, justify="right")
    for row in rows:
        table.add_row(*(row[word] for word in words), *(
            f"{row[name]:.{digits}f}" for name, _, _, digits, _ in columns))
    return table


def by_workload(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["workload"], []).append(row)
    return found


def show_tables(data: dict[str, Any]) -> None:
    for rows, columns, words in ((data["workloads"], COLUMNS, ("row",)),
                                 (data["copies"], COPY_COLUMNS, ("row", "by"))):
        for workload, some in by_workload(rows).items():
            show.line()
            show.line(workload, "bold")
            show.console.print(table_of(some, columns, words))
    show.line()
    for text in (*missing_lines(data), *LEGEND, data["losses"], machine_line(data)):
        show.line(text)


def charts(rows: list[dict[str, Any]], columns: tuple[Any, ...]) -> list[dict[str, Any]]:
    """A bar chart of each figure of each workload."""
    found = []
    for workload, some in by_workload(rows).items():
        for name, _, heading, digits, is_more_better in columns:
            top = max([row[name] for row in some] + [1e-9])
            found.append({
                "heading": f"{workload}: {heading}",
                "better": "higher is better" if is_more_better else "lower is better",
                "bars": [{"label": f"{row['row']} {row.get('by', '')}".strip(),
                          "value": f"{row[name]:.{digits}f}",
                          "width": 100 * max(row[name], 0) / top} for row in some]})
    return found


def page(data: dict[str, Any]) -> str:
    notes = [*missing_lines(data), *LEGEND, data["losses"], machine_line(data)]
    return report.rendered("essd compare: the drive's protocols and Linux's targets",
                           charts(data["workloads"], COLUMNS)
                           + charts(data["copies"], COPY_COLUMNS), notes)


def write(path: Path, data: dict[str, Any]) -> None:
    report.write_text(path, page(data))
