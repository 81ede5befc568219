# SPDX-License-Identifier: BSD-2-Clause
"""Where time went: traced commands as slices for Perfetto, and a summary table.

The file is in the trace event format (JSON), which ui.perfetto.dev and
chrome://tracing read.  docs/tracing.md says what the tracks and slices mean.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import IO, Any

from .trace import (ENGINE_OPCODES, WORDS, Event, Printer, name_of, opcode_name,
                    status_name)

ENGINE = 0                  # the process of the media engine; the others are QPNs
# The stages of a command in their order, and what it waits for in each.
STAGES = {
    "firmware": "the firmware works on it",
    "wait": "waits for data buffers or for room at the media engine",
    "fetch": "its data come from the host: RNIC, port and wire",
    "media": "the media engine works on it",
    "respond": "data and response go to the host, until it has acknowledged them",
}
QUANTILES = (0.5, 0.99)


def stage_times(args: dict[str, Any]) -> dict[str, int]:
    """Microseconds of each stage of one command."""
    times = {name: int(args[f"{name}_us"]) for name in STAGES if name != "firmware"}
    # What is left of the total is the firmware's own time.
    return {"firmware": max(0, int(args["total_us"]) - sum(times.values())), **times}


class Writer:
    """Writes trace events one by one, so that a long trace needs no memory."""

    def __init__(self, out: IO[str]) -> None:
        self.out = out
        self.count = 0
        self.processes: set[int] = set()
        out.write('{"displayTimeUnit": "ns", "traceEvents": [')

    def put(self, **entry: Any) -> None:
        self.out.write(("," if self.count else "") + "\n" + json.dumps(entry))
        self.count += 1

    def process(self, number: int, name: str) -> None:
        if number not in self.processes:
            self.processes.add(number)
            self.put(ph="M", name="process_name", pid=number, tid=0, args={"name": name})

    def slice(self, pid: int, group: str, number: str, name: str, start_ns: int,
              end_ns: int, args: dict[str, Any] | None = None) -> None:
        """An async slice: those with one group and number nest, others may overlap."""
        key = {"cat": group, "id": number, "pid": pid, "tid": 0, "name": name}
        self.put(ph="b", ts=start_ns / 1000, args=args or {}, **key)
        self.put(ph="e", ts=end_ns / 1000, args={}, **key)

    def command(self, event: Event) -> None:
        args = event.args
        self.process(event.qpn, f"queue pair {event.qpn:#x}")
        number = f"{event.qpn:x}-{event.request}-{event.time_ns}"
        start_ns = event.time_ns - 1000 * args["total_us"]
        self.slice(event.qpn, "command", number, opcode_name(args["opcode"]), start_ns,
                   event.time_ns,
                   {"nsid": args["nsid"], "lba": args["lba"], "bytes": args["bytes"],
                    "status": status_name(args["status"]), "request": event.request})
        for name, us in stage_times(args).items():
            if us:
                self.slice(event.qpn, "command", number, name, start_ns,
                           start_ns + 1000 * us, {"what": STAGES[name]})
                start_ns += 1000 * us

    def engine(self, event: Event) -> None:
        args = event.args
        self.process(ENGINE, "media engine")
        self.slice(ENGINE, "media engine", f"{event.request}-{event.time_ns}",
                   name_of(ENGINE_OPCODES, args["opcode"]),
                   event.time_ns - 1000 * args["us"], event.time_ns,
                   {"lba": args["lba"], "blocks": args["blocks"],
                    "request": event.request})

    def instant(self, event: Event) -> None:
        self.process(event.qpn, f"queue pair {event.qpn:#x}")
        self.put(ph="i", s="p", cat=event.kind.group, pid=event.qpn, tid=0,
                 name=WORDS[event.kind.name](event.args), ts=event.time_ns / 1000)

    def write(self, event: Event) -> None:
        if event.kind.name == "COMMAND":
            self.command(event)
        elif event.kind.name == "ENGINE_ENDED":
            self.engine(event)
        elif event.kind.group != "media":       # those are in a slice already
            self.instant(event)

    def end(self) -> None:
        self.out.write("\n]}\n")


@dataclass
class Summary:
    """Counts and times of commands, by the command's name."""

    totals: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    stages: dict[str, dict[str, int]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    failed: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def take(self, event: Event) -> None:
        if event.kind.name != "COMMAND":
            return
        name = opcode_name(event.args["opcode"])
        if name == "Async Event Request":
            return              # waits for an event, and so for any time
        self.totals[name].append(event.args["total_us"])
        self.failed[name] += event.args["status"] != 0
        for stage, us in stage_times(event.args).items():
            self.stages[name][stage] += us

    def rows(self) -> list[dict[str, Any]]:
        """For each command: count, failures, and microseconds."""
        found = []
        for name, totals in sorted(self.totals.items(), key=lambda item: -len(item[1])):
            ordered = sorted(totals)
            found.append({
                "command": name, "count": len(totals), "failed": self.failed[name],
                "mean-us": round(sum(totals) / len(totals), 1),
                **{f"p{round(100 * q)}-us": ordered[min(len(ordered) - 1,
                                                        int(q * len(ordered)))]
                   for q in QUANTILES},
                **{stage: round(us / len(totals), 1)
                   for stage, us in self.stages[name].items()}})
        return found

    def table(self) -> Any:
        from rich.table import Table
        table = Table(box=None, pad_edge=False)
        table.add_column("command")
        headings = ["count", "failed", "mean-us", *(f"p{round(100 * q)}-us"
                                                    for q in QUANTILES), *STAGES]
        for heading in headings:
            table.add_column(heading.replace("-us", " us"), justify="right")
        for row in self.rows():
            table.add_row(row["command"], *(str(row[heading]) for heading in headings))
        return table


@dataclass
class PerfettoPrinter(Printer):
    """Writes events for Perfetto, and keeps the times for the summary."""

    times: Summary = field(default_factory=Summary)

    def __post_init__(self) -> None:
        self.writer = Writer(self.out)

    def write(self, event: Event, wall: float) -> None:
        self.writer.write(event)
        self.times.take(event)

    def finish(self) -> None:
        self.writer.end()

    def summary(self) -> str:
        from . import show
        if self.times.totals:
            show.console.print(self.times.table())
        return super().summary()
