# SPDX-License-Identifier: BSD-2-Clause
"""`essd top`: a view of a running instance in the terminal, renewed once a second."""

import time
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..base import show
from ..drive.port import FEC_WORDS
from . import metrics

EVERY_S = 1.0


def grid(*headings: str) -> Table:
    """A table; headings that begin with ">" are of numbers, aligned at the right."""
    found = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        found.add_column(heading.removeprefix(">"), no_wrap=True, overflow="ellipsis",
                         justify="right" if heading.startswith(">") else "left")
    return found


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


def parts_table(frame: dict[str, Any]) -> Table:
    table = grid("part", "state", ">CPU", ">memory", ">restarts", ">pid")
    for name, part in frame["parts"].items():
        percent, memory = part["cpu-percent"], part["memory-bytes"]
        table.add_row(name, state_text(part),
                      "-" if percent is None else f"{percent:.0f}%",
                      "-" if memory is None else f"{memory / (1 << 20):.0f} MiB",
                      str(len(part["restarts"])), str(part["pid"] or "-"))
    return table


def drives_table(frame: dict[str, Any]) -> Table:
    table = grid("drive", ">read IOPS", ">write IOPS", ">read B/s", ">write B/s", ">hosts",
                 ">queues", ">in flight", ">media errors", "SMART", "")
    for name, drive in frame["drives"].items():
        rates, status = drive["rates"], drive.get("status", {})
        flying = sum(row["in-flight"] for row in drive.get("queue-pairs", {}).get("rows", []))
        table.add_row(name, *(short(rates.get(key)) for key in metrics.DRIVE_RATES),
                      str(status.get("controllers", "-")), str(status.get("queue-pairs", "-")),
                      str(flying), str(drive["counters"].get("media-errors", "-")),
                      health_text(drive["warnings"]),
                      Text(show.printable(drive["why"]), "yellow"))
    return table


def flash_table(frame: dict[str, Any]) -> Table | None:
    table = grid("flash", ">write amplification", ">free superblocks", ">erased superblocks",
                 ">blocks erased ever", ">blocks failed", ">spare")
    for name, drive in frame["drives"].items():
        found = drive["counters"]
        if "flash" in found:
            more = metrics.write_amplification(found)
            table.add_row(name, "-" if more is None else f"{more:.2f}",
                          str(found["ftl"]["free-superblocks"]),
                          str(found["ftl"]["erasures"]),
                          str(found["flash"]["erased-blocks"]),
                          str(found["flash"]["failed-blocks"]),
                          f"{found['flash']['spare-percent']}%")
    return table if table.row_count else None


def latency_table(frame: dict[str, Any]) -> Table | None:
    table = grid("latency", "operation", ">samples", *(f">p{p:g}" for p in
                                                       metrics.PERCENTILES))
    for name, drive in frame["drives"].items():
        for operation, facts in drive.get("latency", {}).items():
            table.add_row(name, operation, str(facts["samples"]), *(
                f"{facts[f'p{percent:g}']} us" for percent in metrics.PERCENTILES))
    return table if table.row_count else None


def ports_table(frame: dict[str, Any]) -> Table:
    table = grid("port", "link", "speed", "FEC", ">in B/s", ">out B/s", ">bad FCS",
                 ">corrected", ">uncorrectable", ">changes")
    for name, drive in frame["drives"].items():
        for port in drive["ports"]:
            count = port["counters"]
            link = (Text("up", "green") if port["up"] else
                    Text(show.printable(f"down: {port['reason']}"), "red"))
            table.add_row(f"{name}:{port['port']}", link, f"{port['speed']} Gb/s",
                          FEC_WORDS.get(port["fec"], port["fec"]),
                          short(port["in-bytes-per-s"]), short(port["out-bytes-per-s"]),
                          *(str(count.get(key, "-")) for key in (
                              "aFrameCheckSequenceErrors", "aFECCorrectedBlocks",
                              "aFECUncorrectableBlocks", "linkChanges")))
    return table


def cables_line(frame: dict[str, Any]) -> Text:
    words = Text("cables  ", "bold")
    for cable in frame["cables"].values():
        style = "green" if cable["plugged"] else "red"
        words.append(f"{cable['ends'][0]} - {cable['ends'][1]} "
                     f"{'plugged' if cable['plugged'] else 'unplugged'}   ", style)
    return words


def hosts_table(frame: dict[str, Any]) -> Table | None:
    table = grid("controller", "state", ">queues", "host")
    for name, drive in frame["drives"].items():
        for row in drive.get("controllers", {}).get("rows", []):
            table.add_row(f"{name} {row['cntlid']:#x}", str(row["state"]),
                          str(row["queue-pairs"]), str(row["hostnqn"]))
    return table if table.row_count else None


def faults_table(frame: dict[str, Any]) -> Table | None:
    table = grid("fault rule", "state", ">matched", ">fired", "rule")
    for name, drive in frame["drives"].items():
        for rule in drive.get("faults", []):
            table.add_row(f"{name} {rule['name']}", "on" if rule["on"] else "off",
                          str(rule["matched"]), str(rule["fired"]), rule["rule"])
    return table if table.row_count else None


def screen(frame: dict[str, Any]) -> Group:
    clock = time.strftime("%H:%M:%S", time.localtime(frame["time"]))
    rows: list[RenderableType] = [(f"essd {frame['name']} ({frame['accel']})  {clock}")]
    for block in (drives_table(frame), flash_table(frame), latency_table(frame),
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
