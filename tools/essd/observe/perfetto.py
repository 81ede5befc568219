# SPDX-License-Identifier: BSD-2-Clause
"""Where time went: traced commands as slices for Perfetto, and a summary table.

The file is in the trace event format (JSON), which ui.perfetto.dev and
chrome://tracing read.  docs/tracing.md says what the tracks and slices mean.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import IO, Any

from .flash_tracks import Tracks
from .trace import ENGINE_OPCODES, WORDS, Event, Printer, opcode_name, status_name
from .trace_names import name_of

ENGINE = 0                  # the process of the media engine; the others are QPNs
# The stages of a command in their order, and what it does or waits for in each.
STAGES = {
    "arrive": "its capsule has come through port and RNIC; the firmware has not taken it",
    "firmware": "the firmware works on it",
    "wait": "waits for data buffers or for room at the media engine",
    "fetch": "its data come from the host: RNIC, port and wire",
    "media": "the media engine works on it",
    "respond": "data and response go to the host, until it has acknowledged them",
    "send": "the RNIC sends data and response, until the last frame has left the port",
    "wire": "the response is on the wire, until the host's acknowledgement is in the RNIC",
    "complete": "the acknowledgement is in the RNIC; the firmware has not taken it",
}
FIRMWARE_STAGES = ("wait", "fetch", "media", "respond")     # as COMMAND reports them
# The stages in which a command is the drive's.  In the others it waits for the host and
# the wire, or, as "complete", the host has its answer already.
DRIVES_OWN = ("arrive", "firmware", "wait", "media", "send")
QUANTILES = (0.5, 0.99)


@dataclass
class Path:
    """When a command and its response passed the RNIC, in ns; 0: not known."""

    arrived_ns: int = 0
    sent_ns: int = 0
    acknowledged_ns: int = 0


@dataclass
class Paths:
    """Joins the events of the group `path` with the command that they belong to."""

    open: dict[tuple[int, int | None], Path] = field(
        default_factory=lambda: defaultdict(Path))

    def take(self, event: Event) -> Path | None:
        """Return the path of a command that ends with this event."""
        key = (event.qpn, event.request)
        if event.kind.name == "RESPONSE_SENT":
            path = self.open[key]
            path.sent_ns = path.sent_ns or event.time_ns    # the first time
        elif event.kind.name == "COMMAND_PATH":
            self.open[key].arrived_ns = event.args["arrived_ns"]
            self.open[key].acknowledged_ns = event.args["acknowledged_ns"]
        elif event.kind.name == "COMMAND":
            return self.open.pop(key, Path())
        return None


def respond_times(respond_us: float, end_ns: int, path: Path) -> dict[str, float]:
    """The stages of the response, as far as the RNIC has reported them."""
    if not path.acknowledged_ns or not path.sent_ns:
        return {"respond": respond_us}
    start_ns = end_ns - round(1000 * respond_us)
    # Firmware and RNIC read the clock at slightly different moments.
    sent_ns = min(max(path.sent_ns, start_ns), end_ns)
    acknowledged_ns = min(max(path.acknowledged_ns, sent_ns), end_ns)
    return {"send": (sent_ns - start_ns) / 1000,
            "wire": (acknowledged_ns - sent_ns) / 1000,
            "complete": (end_ns - acknowledged_ns) / 1000}


def stage_times(event: Event, path: Path) -> dict[str, float]:
    """Microseconds of each stage of one command, in their order."""
    args = event.args
    times = {name: float(args[f"{name}_us"]) for name in FIRMWARE_STAGES}
    begin_ns = event.time_ns - 1000 * int(args["total_us"])
    arrive = max(0, begin_ns - path.arrived_ns) / 1000 if path.arrived_ns else 0.0
    # What is left of the total is the firmware's own time.
    firmware = max(0.0, args["total_us"] - sum(times.values()))
    return {"arrive": arrive, "firmware": firmware, **{
        name: times[name] for name in FIRMWARE_STAGES if name != "respond"},
        **respond_times(times["respond"], event.time_ns, path)}


class Writer:
    """Writes trace events one by one, so that a long trace needs no memory."""

    def __init__(self, out: IO[str]) -> None:
        self.out = out
        self.count = 0
        self.processes: set[int] = set()
        self.paths = Paths()
        self.flash = Tracks(self.put, self.process, self.slice)
        self.last_ns = 0
        self.waited_most = ""       # the command that has waited longest for the flash
        self.longest_us = 0.0
        out.write('{"displayTimeUnit": "ns", "traceEvents": [')

    def put(self, **entry: Any) -> None:
        self.out.write(("," if self.count else "") + "\n" + json.dumps(entry))
        self.count += 1

    def process(self, number: int, name: str) -> None:
        if number not in self.processes:
            self.processes.add(number)
            self.put(ph="M", name="process_name", pid=number, tid=0, args={"name": name})

    def slice(self, pid: int, group: str, number: str, name: str, start_ns: float,
              end_ns: float, args: dict[str, Any] | None = None) -> None:
        """An async slice: those with one group and number nest, others may overlap.

        Perfetto shows it in the process `pid` only if its number is local to that process.
        """
        key = {"cat": group, "id2": {"local": number}, "pid": pid, "tid": 0, "name": name}
        self.put(ph="b", ts=start_ns / 1000, args=args or {}, **key)
        self.put(ph="e", ts=end_ns / 1000, args={}, **key)

    def command(self, event: Event, path: Path) -> None:
        args = event.args
        self.process(event.qpn, f"queue pair {event.qpn:#x}")
        number = f"{event.qpn:x}-{event.request}-{event.time_ns}"
        waits = self.flash.waits.of_host(event.request)
        place = self.flash.waits.place_of_host(event.request)
        self.compare(event, waits)
        times = stage_times(event, path)
        start_ns = float(event.time_ns - 1000 * args["total_us"]) - 1000 * times["arrive"]
        self.slice(event.qpn, "command", number, opcode_name(args["opcode"]), start_ns,
                   event.time_ns,
                   {"nsid": args["nsid"], "lba": args["lba"], "bytes": args["bytes"],
                    "status": status_name(args["status"]), "request": event.request,
                    **place, **({"waited us": waits} if waits else {})})
        for name, us in times.items():
            if us:
                self.slice(event.qpn, "command", number, name, start_ns,
                           start_ns + 1000 * us, {"what": STAGES[name]})
                start_ns += 1000 * us

    def compare(self, event: Event, waits: dict[str, float]) -> None:
        """Note the command that has waited longest for other users of the flash."""
        us = sum(waits.values())
        if us > self.longest_us:
            self.longest_us = us
            reasons = ", ".join(f"{found:g} us for {label}" for label, found in waits.items())
            self.waited_most = (
                f"{opcode_name(event.args['opcode'])} request {event.request}, which ended at "
                f"{event.time_ns / 1e9:.6f} s, waited longest for the flash: {reasons}")

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
        path = self.paths.take(event)
        self.last_ns = max(self.last_ns, event.time_ns)
        if path is not None:
            self.command(event, path)
        elif self.flash.take(event):
            return
        elif event.kind.name == "ENGINE_ENDED":
            self.engine(event)
        elif event.kind.group not in ("media", "path"):     # those are in a slice
            self.instant(event)

    def end(self) -> None:
        self.flash.end(self.last_ns)
        self.out.write("\n]}\n")


@dataclass
class Summary:
    """Counts and times of commands, by the command's name."""

    totals: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    stages: dict[str, dict[str, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    failed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    paths: Paths = field(default_factory=Paths)

    def take(self, event: Event) -> None:
        path = self.paths.take(event)
        if path is None:
            return
        name = opcode_name(event.args["opcode"])
        if name == "Async Event Request":
            return              # waits for an event, and so for any time
        times = stage_times(event, path)
        self.totals[name].append(event.args["total_us"] + times["arrive"])
        self.failed[name] += event.args["status"] != 0
        for stage, us in times.items():
            self.stages[name][stage] += us

    def rows(self) -> list[dict[str, Any]]:
        """For each command: count, failures, and microseconds."""
        found = []
        for name, totals in sorted(self.totals.items(), key=lambda item: -len(item[1])):
            ordered = sorted(totals)
            found.append({
                "command": name, "count": len(totals), "failed": self.failed[name],
                "mean-us": round(sum(totals) / len(totals), 1),
                **{f"p{round(100 * q)}-us": round(
                    ordered[min(len(ordered) - 1, int(q * len(ordered)))], 1)
                   for q in QUANTILES},
                "drive-us": round(sum(self.stages[name].get(stage, 0.0)
                                      for stage in DRIVES_OWN) / len(totals), 1),
                **{stage: round(self.stages[name][stage] / len(totals), 1)
                   for stage in STAGES if stage in self.stages[name]}})
        return found

    def table(self) -> Any:
        """The rows, without the stages in which no command was."""
        from rich.table import Table
        table = Table(box=None, pad_edge=False)
        table.add_column("command")
        rows = self.rows()
        headings = ["count", "failed", "mean-us",
                    *(f"p{round(100 * q)}-us" for q in QUANTILES), "drive-us",
                    *(stage for stage in STAGES if any(row.get(stage) for row in rows))]
        for heading in headings:
            table.add_column(heading.replace("-us", " us"), justify="right")
        for row in rows:
            table.add_row(row["command"], *(str(row.get(heading, 0.0))
                                            for heading in headings))
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
        from ..base import show
        if self.times.totals:
            show.console.print(self.times.table())
            show.line("drive us: until the last frame of the answer has left the drive; the "
                      "rest of a command's time is the host's and the wire's")
        if self.writer.waited_most:
            show.line(self.writer.waited_most)
        return super().summary()
