# SPDX-License-Identifier: BSD-2-Clause
"""`essd top`: a view of a running instance in the terminal, renewed once a second."""

import time
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from ..base import show
from ..drive.port import FEC_WORDS
from . import metrics
from .board import Board, Column, Flow, number

EVERY_S = 1.0
SPARE_LOW = 50          # percent of the spare blocks, below which the rest is shown yellow


def short(value: float | None, unit: str = "") -> str:
    """A number with at most four digits: 12.3k, 1.5M."""
    if value is None:
        return "-"
    for prefix in ("", "k", "M", "G"):
        if abs(value) < 999.5 or prefix == "G":
            break
        value /= 1000
    words = f"{value:.0f}" if value >= 99.95 or value == int(value) else f"{value:.1f}"
    return f"{words} {prefix}{unit}".rstrip() if unit else words + prefix


def state_text(part: dict[str, Any]) -> Text:
    words = part["state"]
    if part["kind"] in ("host", "peer") and words == "running":
        words = "ready" if part["ready"] else "starting"
    style = {"running": "green", "ready": "green", "crashed": "bold red"}.get(words, "yellow")
    if part["halted"]:
        words, style = f"{words}, halted", "yellow"
    return Text(show.printable(f"{words} {part['why']}".strip()), style)


def health_text(warnings: list[str] | None) -> Text:
    """What SMART's critical warning says of a drive."""
    if warnings is None:
        return Text("-")
    return Text(", ".join(warnings), "bold red") if warnings else Text("ok", "green")


def spare_text(drive: dict[str, Any]) -> Text:
    """How much of the spare flash is left."""
    percent = drive["counters"]["flash"]["spare-percent"]
    style = ("bold red" if "spare" in (drive["warnings"] or []) else
             "yellow" if percent < SPARE_LOW else "green")
    return Text(f"{percent}%", style)


def dead_dies_text(found: dict[str, Any]) -> Text:
    dead = found["ftl"].get("dead-dies")        # older firmware does not say it
    return Text("-") if dead is None else Text(str(dead), "bold red" if dead else "green")


def parts_table(frame: dict[str, Any]) -> Board:
    table = Board([Column("part"), Column("state", folds=True), number("CPU", 1),
                   number("memory", 2), number("restarts", 3), number("pid", 4)])
    for name, part in frame["parts"].items():
        percent, memory = part["cpu-percent"], part["memory-bytes"]
        table.add_row(name, state_text(part),
                      "-" if percent is None else f"{percent:.0f}%",
                      "-" if memory is None else f"{memory / (1 << 20):.0f} MiB",
                      str(len(part["restarts"])), str(part["pid"] or "-"))
    return table


def drives_table(frame: dict[str, Any]) -> Board:
    table = Board([Column("drive"), number("read IOPS"), number("write IOPS"),
                   number("read B/s", 2), number("write B/s", 2), number("hosts", 3),
                   number("queues", 5), number("in flight", 4), number("media errors", 1),
                   Column("SMART", folds=True)])
    for name, drive in frame["drives"].items():
        rates, status = drive["rates"], drive.get("status", {})
        flying = sum(row["in-flight"] for row in drive.get("queue-pairs", {}).get("rows", []))
        table.add_row(name, *(short(rates.get(key)) for key in metrics.DRIVE_RATES),
                      str(status.get("controllers", "-")), str(status.get("queue-pairs", "-")),
                      str(flying), str(drive["counters"].get("media-errors", "-")),
                      health_text(drive["warnings"]))
    return table


def complaints(frame: dict[str, Any]) -> Text | None:
    """Why something is missing, of drives that do not answer."""
    words = [f"{name}: {drive['why']}" for name, drive in frame["drives"].items()
             if drive["why"]]
    return Text(show.printable("\n".join(words)), "yellow") if words else None


def flash_table(frame: dict[str, Any]) -> Board | None:
    table = Board([Column("flash"), number("amplification", 2),
                   number("free superblocks", 1), number("erasures", 5),
                   number("erased ever", 4), number("blocks failed", 3),
                   number("spare"), number("dead dies")])
    for name, drive in frame["drives"].items():
        found = drive["counters"]
        if "flash" in found:
            more = metrics.write_amplification(found)
            table.add_row(name, "-" if more is None else f"{more:.2f}",
                          str(found["ftl"]["free-superblocks"]),
                          str(found["ftl"]["erasures"]),
                          str(found["flash"]["erased-blocks"]),
                          str(found["flash"]["failed-blocks"]),
                          spare_text(drive), dead_dies_text(found))
    return table if table.row_count else None


def latency_table(frame: dict[str, Any]) -> Board | None:
    table = Board([Column("latency"), Column("operation"), number("samples", 3),
                   *(number(f"p{p:g}", rank) for p, rank in
                     zip(metrics.PERCENTILES, (0, 2, 0, 1), strict=True))])
    for name, drive in frame["drives"].items():
        for operation, facts in drive.get("latency", {}).items():
            table.add_row(name, operation, str(facts["samples"]), *(
                f"{facts[f'p{percent:g}']} us" for percent in metrics.PERCENTILES))
    return table if table.row_count else None


def ports_table(frame: dict[str, Any]) -> Board:
    table = Board([Column("port"), Column("link", folds=True), Column("speed", rank=5),
                   Column("FEC", rank=6), number("in B/s"), number("out B/s"),
                   number("bad FCS", 2), number("corrected", 4), number("uncorrectable", 1),
                   number("flaps", 3)])
    for name, drive in frame["drives"].items():
        for port in drive["ports"]:
            count = port["counters"]
            link = (Text("up", "green") if port["up"] else
                    Text(show.printable(f"down: {port['reason']}"), "red"))
            table.add_row(f"{name}:{port['port']}", link, f"{port['speed']}G",
                          FEC_WORDS.get(port["fec"], port["fec"]),
                          short(port["in-bytes-per-s"]), short(port["out-bytes-per-s"]),
                          *(str(count.get(key, "-")) for key in (
                              "aFrameCheckSequenceErrors", "aFECCorrectedBlocks",
                              "aFECUncorrectableBlocks", "linkChanges")))
    return table


def cables_line(frame: dict[str, Any]) -> Flow:
    return Flow("cables", [
        Text(f"{cable['ends'][0]} - {cable['ends'][1]} "
             f"{'plugged' if cable['plugged'] else 'unplugged'}",
             "green" if cable["plugged"] else "red")
        for cable in frame["cables"].values()])


def hosts_table(frame: dict[str, Any]) -> Board | None:
    table = Board([Column("controller"), Column("state"), number("queues", 1),
                   Column("host", folds=True)])
    for name, drive in frame["drives"].items():
        for row in drive.get("controllers", {}).get("rows", []):
            table.add_row(f"{name} {row['cntlid']:#x}", str(row["state"]),
                          str(row["queue-pairs"]), str(row["hostnqn"]))
    return table if table.row_count else None


def faults_table(frame: dict[str, Any]) -> Board | None:
    table = Board([Column("fault rule"), Column("state"), number("matched", 2),
                   number("fired", 1), Column("rule", folds=True)])
    for name, drive in frame["drives"].items():
        for rule in drive.get("faults", []):
            table.add_row(f"{name} {rule['name']}", "on" if rule["on"] else "off",
                          str(rule["matched"]), str(rule["fired"]), rule["rule"])
    return table if table.row_count else None


def screen(frame: dict[str, Any]) -> Group:
    clock = time.strftime("%H:%M:%S", time.localtime(frame["time"]))
    rows: list[RenderableType] = [(f"essd {frame['name']} ({frame['accel']})  {clock}")]
    for block in (drives_table(frame), complaints(frame), flash_table(frame), latency_table(frame),
                  ports_table(frame),
                  parts_table(frame), cables_line(frame), hosts_table(frame),
                  faults_table(frame)):
        if block is not None:
            rows += ["", block]
    return Group(*rows)


def run(collector: metrics.Collector, is_once: bool) -> None:
    """Show frames until Ctrl-C, or one."""
    if is_once:
        show.console.print(screen(collector.two_frames()))
        return
    with Live(screen(collector.frame()), console=show.console, screen=True,
              auto_refresh=False, vertical_overflow="ellipsis") as live:
        while True:
            time.sleep(EVERY_S)
            live.update(screen(collector.frame()), refresh=True)
