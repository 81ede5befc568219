# SPDX-License-Identifier: BSD-2-Clause
"""Where time went: traced commands as slices for Perfetto, and a summary table.

docs/tracing.md says what the tracks and slices mean.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import IO, Any

from .flash_tracks import FTL, GAP_NS, HostWaits, Tracks
from .slow_commands import SlowCommands
from .trace import ENGINE_OPCODES, PDUS, WORDS, Event, Printer, opcode_name, status_name
from .trace_file import Place, TraceFile
from .trace_names import name_of

ENGINE = FTL + 1            # the process of the media engine
FIRST_LANE = 1              # number of a process's first track of commands
# The stages of a command in their order, and what it does or waits for in each.
STAGES = {
    "arrive": "its capsule has come through port and RNIC; the firmware has not taken it",
    "capsule": "its capsule's header has come; the firmware has not begun the command",
    "firmware": "the firmware works on it",
    "wait": "waits for data buffers or for room at the media engine",
    "fetch": "its data come from the host: RNIC, port and wire",
    "r2t": "R2T is sent; the host's first H2CData has not come",
    "h2c-data": "H2CData come from the host",
    "media": "the media engine works on it",
    "respond": "data and response go to the host, until it has acknowledged them",
    "c2h-data": "earlier C2HData are not acknowledged, or the answer waits for its turn",
    "response": "last C2HData and response go to the host, until it has acknowledged them",
    "send": "the RNIC sends data and response, until the last frame has left the port",
    "wire": "the response is on the wire, until the host's acknowledgement is in the RNIC",
    "complete": "the acknowledgement is in the RNIC; the firmware has not taken it",
}
FIRMWARE_STAGES = ("wait", "fetch", "media", "respond")     # as COMMAND reports them
# The stages in which a command is the drive's.  In the others it waits for the host and
# the wire, or, as "complete", the host has its answer already.
DRIVES_OWN = ("arrive", "capsule", "firmware", "wait", "media", "send")
QUANTILES = (0.5, 0.99)


@dataclass
class Path:
    """When a command and its response passed the RNIC, in ns; 0: not known.

    With NVMe/TCP, when their PDUs came and were made.
    """

    arrived_ns: int = 0
    sent_ns: int = 0
    acknowledged_ns: int = 0
    capsule_ns: int = 0
    r2t_ns: int = 0             # of the R2T whose data have not begun to come
    waited_ns: int = 0          # from R2Ts until the first of their H2CData
    answered_ns: int = 0        # the last PDU that was made


@dataclass
class Capsules:
    """Joins the events of the group `pdus` with the command that they belong to.

    A PDU that comes has the host's CID, and only those that the drive makes have the
    number of the request as well.
    """

    by_cid: dict[tuple[int, int], Path] = field(default_factory=lambda: defaultdict(Path))
    by_request: dict[tuple[int, int | None], Path] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        if event.kind.name not in ("PDU_RECEIVED", "PDU_SENT"):
            return
        kind, key = PDUS.get(event.args["type"]), (event.qpn, event.args["cid"])
        if kind == "CapsuleCmd":
            self.by_cid[key] = Path(capsule_ns=event.time_ns)
        elif kind == "H2CData" and self.by_cid[key].r2t_ns:
            path = self.by_cid[key]
            path.waited_ns += event.time_ns - path.r2t_ns
            path.r2t_ns = 0
        elif kind in ("R2T", "C2HData", "CapsuleResp"):
            path = self.by_request[event.qpn, event.request] = self.by_cid[key]
            if kind == "R2T":
                path.r2t_ns = event.time_ns
            else:
                path.answered_ns = event.time_ns

    def close(self, event: Event) -> Path | None:
        """The PDUs of a command that ends with this event; None if it had none.

        The host may have used its CID again already.
        """
        return self.by_request.pop((event.qpn, event.request), None)


@dataclass
class Paths:
    """Joins the events of the group `path` with the command that they belong to."""

    open: dict[tuple[int, int | None], Path] = field(
        default_factory=lambda: defaultdict(Path))
    capsules: Capsules = field(default_factory=Capsules)

    def take(self, event: Event) -> Path | None:
        """Return the path of a command that ends with this event."""
        self.capsules.take(event)
        key = (event.qpn, event.request)
        if event.kind.name == "RESPONSE_SENT":
            path = self.open[key]
            path.sent_ns = path.sent_ns or event.time_ns    # the first time
        elif event.kind.name == "COMMAND_PATH":
            self.open[key].arrived_ns = event.args["arrived_ns"]
            self.open[key].acknowledged_ns = event.args["acknowledged_ns"]
        elif event.kind.name == "COMMAND":
            path = self.open.pop(key, Path())
            return self.capsules.close(event) or path
        return None


def respond_times(respond_us: float, end_ns: int, path: Path) -> dict[str, float]:
    """The stages of the response, as far as RNIC or transport have reported them."""
    if path.answered_ns:
        own_us = min(max(0.0, (end_ns - path.answered_ns) / 1000), respond_us)
        return {"c2h-data": respond_us - own_us, "response": own_us}
    if not path.acknowledged_ns or not path.sent_ns:
        return {"respond": respond_us}
    start_ns = end_ns - round(1000 * respond_us)
    # Firmware and RNIC read the clock at slightly different moments.
    sent_ns = min(max(path.sent_ns, start_ns), end_ns)
    acknowledged_ns = min(max(path.acknowledged_ns, sent_ns), end_ns)
    return {"send": (sent_ns - start_ns) / 1000,
            "wire": (acknowledged_ns - sent_ns) / 1000,
            "complete": (end_ns - acknowledged_ns) / 1000}


def fetch_times(fetch_us: float, path: Path) -> dict[str, float]:
    """The stages in which a command's data come."""
    if not path.waited_ns:
        return {"fetch": fetch_us}
    waited_us = min(path.waited_ns / 1000, fetch_us)
    return {"r2t": waited_us, "h2c-data": fetch_us - waited_us}


def stage_times(event: Event, path: Path) -> dict[str, float]:
    """Microseconds of each stage of one command, in their order."""
    args = event.args
    times = {name: float(args[f"{name}_us"]) for name in FIRMWARE_STAGES}
    begin_ns = event.time_ns - 1000 * int(args["total_us"])
    arrive = max(0, begin_ns - path.arrived_ns) / 1000 if path.arrived_ns else 0.0
    came = ({"capsule": max(0, begin_ns - path.capsule_ns) / 1000} if path.capsule_ns
            else {})
    # What is left of the total is the firmware's own time.
    firmware = max(0.0, args["total_us"] - sum(times.values()))
    return {"arrive": arrive, **came, "firmware": firmware,
            "wait": times["wait"], **fetch_times(times["fetch"], path),
            "media": times["media"],
            **respond_times(times["respond"], event.time_ns, path)}


class Writer:
    """Turns events into the tracks of a file."""

    def __init__(self, out: IO[str]) -> None:
        self.file = TraceFile(out)
        self.paths = Paths()
        self.flash = Tracks(self.file)
        self.slow = SlowCommands()
        self.last_ns = 0

    def queue_pair(self, event: Event) -> None:
        self.file.process(event.qpn, f"queue pair {event.qpn:#x}")

    def command(self, event: Event, path: Path) -> None:
        """A command and its stages."""
        args = event.args
        self.queue_pair(event)
        waits = self.flash.waits.of_host(event.request)
        times = stage_times(event, path)
        end_ns, name = event.time_ns, opcode_name(args["opcode"])
        begun_ns = end_ns - 1000 * args["total_us"] - round(
            1000 * (times["arrive"] + times.get("capsule", 0.0)))
        tid = self.file.lane(event.qpn, FIRST_LANE, "commands", begun_ns, end_ns)
        # What it waited for comes first, because the page shows few arguments at once.
        shown = {**({"waited us": waits.us} if waits.us else {}), **waits.place,
                 "request": event.request, "nsid": args["nsid"], "lba": args["lba"],
                 "bytes": args["bytes"], "status": status_name(args["status"])}
        self.file.slice(event.qpn, tid, name, begun_ns, end_ns, shown)
        if waits.us:
            self.slow.take(name, begun_ns, end_ns, waits.us,
                           {**shown, "queue pair": f"{event.qpn:#x}"})
        for stage, us in times.items():
            stage_end_ns = min(begun_ns + round(1000 * us), end_ns)
            if stage_end_ns > begun_ns:
                self.stage(event.qpn, tid, stage, begun_ns, stage_end_ns, waits)
                begun_ns = stage_end_ns

    def stage(self, pid: int, tid: int, name: str, begun_ns: int, end_ns: int,
              waits: HostWaits) -> None:
        if name != "media" or not waits.us:
            self.file.slice(pid, tid, name, begun_ns, end_ns, {"what": STAGES[name]})
            return
        self.file.slice(pid, tid, name, begun_ns, end_ns,
                        {"waited us": waits.us, **waits.place, "what": STAGES[name]})
        self.file.arrow("reads the flash", waits.steps())
        for cause in waits.causes(begun_ns, end_ns):
            self.file.arrow("delays", [cause, Place(cause.time_ns + GAP_NS, pid, tid)])

    def engine(self, event: Event) -> None:
        args = event.args
        self.file.process(ENGINE, "media engine")
        begun_ns = event.time_ns - 1000 * args["us"]
        tid = self.file.lane(ENGINE, FIRST_LANE, "operations", begun_ns, event.time_ns)
        self.file.slice(ENGINE, tid, name_of(ENGINE_OPCODES, args["opcode"]), begun_ns,
                        event.time_ns, {"lba": args["lba"], "blocks": args["blocks"],
                                        "request": event.request})

    def instant(self, event: Event) -> None:
        self.queue_pair(event)
        self.file.instant(event.qpn, 0, "p", WORDS[event.kind.name](event.args),
                          event.time_ns)

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
        for label, reason in self.slow.ordered():
            for slow in reason.shown():
                self.file.headline(
                    f"waited, {label}",
                    f"{slow.name}: {slow.waited_us:g} of "
                    f"{(slow.end_ns - slow.begun_ns) / 1000:.0f} us",
                    slow.begun_ns, slow.end_ns, slow.args)
        self.file.end()


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
        self.totals[name].append(event.args["total_us"] + times["arrive"]
                                 + times.get("capsule", 0.0))
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
        if self.writer.slow.longest is not None:
            show.console.print(self.writer.slow.table())
            show.line(self.writer.slow.words(self.writer.file.first_ns or 0))
        return super().summary()
