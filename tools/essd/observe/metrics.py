# SPDX-License-Identifier: BSD-2-Clause
"""What `essd top`, `essd metrics` and `essd cockpit` show of a running instance.

A Collector asks the supervisor and, through it, the drives.  One look at everything
is a frame: plain data that JSON can carry (docs/cockpit.md).  Rates are differences
to the frame before.

Looking must not cost running I/O much.  So a frame has the counters and the ports,
and only each SLOW_EVERY-th frame asks again for the tables, which cost the firmware
more; the frames between repeat them.
"""

import contextlib
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ..base import cpu
from ..base.errors import EssdError
from ..instance.config import Drive
from ..instance.instance import Instance
from ..machine.drive import port_get
from .status import kind_of

SLOW_EVERY = 5          # frames
ANSWER_S = 2.0          # time limit for a drive to answer
PAGES_MAX = 4           # pages of a table; a page has 64 rows
MAP_PAGES = 16          # of the map of the flash
WORKERS = 4             # drives whose commands are sampled at the same time
IN_OCTETS, OUT_OCTETS = "aOctetsReceivedOK", "aOctetsTransmittedOK"
# The counters of which a frame has a rate.
DRIVE_RATES = {"read-iops": "reads", "write-iops": "writes",
               "read-bytes-per-s": "read-bytes", "write-bytes-per-s": "written-bytes"}


def rate(now: float, before: float | None, seconds: float) -> float | None:
    """Per second; None if nothing is known, or the counter has begun again at 0."""
    if before is None or seconds <= 0 or now < before:
        return None
    return (now - before) / seconds


def write_amplification(counters: dict[str, Any]) -> float | None:
    """Bytes that the NAND flash has written for each byte of a host, over the drive's
    life; None without flash, or if no host has written yet."""
    if "flash" not in counters or not counters["written-bytes"]:
        return None
    return float(counters["flash"]["written-bytes"] / counters["written-bytes"])


# The bits of SMART's critical warning, as the drive's firmware sends them.
WARNINGS = {1: "spare", 2: "temperature", 4: "reliability", 8: "read-only",
            16: "volatile-memory"}


def warnings(counters: dict[str, Any]) -> list[str] | None:
    """Names of SMART's critical warnings; None if the drive has not said."""
    found = counters.get("critical-warning")
    if found is None:
        return None
    return [WARNINGS.get(1 << bit, f"bit-{bit}") for bit in range(8) if found >> bit & 1]


def whole_table(drive: Instance, request: str, reply: dict[str, Any],
                pages: int = PAGES_MAX) -> dict[str, Any]:
    """The rows of a table of the drive, whose first page is `reply`; `more` if there
    are more than are shown."""
    rows = list(reply[request])
    for _ in range(pages - 1):
        if "next" not in reply:
            break
        reply = drive.ask(**to_drive(request, {"from": reply["next"]}), part=drive.drive)
        rows += reply[request]
    return {"rows": rows, "more": "next" in reply}


def to_drive(request: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    """A request to a drive's firmware, as the supervisor takes it."""
    return {"command": "mgmt", "request": request, "arguments": arguments or {},
            "timeout_s": ANSWER_S}


def map_of(drive: Instance) -> dict[str, Any] | None:
    """What each superblock of the flash holds; None if the firmware cannot say it."""
    try:
        reply = drive.ask(**to_drive("superblocks"), part=drive.drive)
    except EssdError:       # older firmware, or a drive that ends
        return None
    return {**{key: reply[key] for key in ("mounted", "channels", "dies", "dead-dies")},
            **whole_table(drive, "superblocks", reply, MAP_PAGES)}


def temperatures_of(drive: Instance) -> list[float]:
    """What the drive's sensors that answer say, in degrees Celsius."""
    try:
        reply = drive.ask(**to_drive("sensors"), part=drive.drive)
    except EssdError:       # older firmware, or a drive that ends
        return []
    return [round(sensor["millikelvin"] / 1000 - 273.15, 1) for sensor in reply["sensors"]
            if sensor["answers"]]


def to_port(number: int) -> dict[str, Any]:
    execute, arguments = port_get(number, "state")
    return {"command": "qmp", "execute": execute, "arguments": arguments}


# What changes seldom, or costs the firmware more.
TABLES = ("status", "pools", "controllers", "queue-pairs", "neighbours")


def requests(ports: Iterable[int], with_tables: bool) -> list[dict[str, Any]]:
    """What a frame asks of a drive, in this order."""
    return [*map(to_port, ports), to_drive("counters"),
            *(map(to_drive, TABLES) if with_tables else ()),
            *([{"command": "faults", "do": "list"}] if with_tables else ())]


# Latency, from a sample of the trace

SAMPLE_S = 0.2
SAMPLES_MAX = 4096
KEEP_S = 10.0
PERCENTILES = (50, 90, 99, 99.9)


def percentile(ordered: list[int], percent: float) -> int:
    """The smallest value that at least this share of the sorted values does not exceed."""
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]


class Latency:
    """Times of commands that the trace of one drive has shown lately."""

    def __init__(self) -> None:
        self.found: dict[str, list[tuple[float, int]]] = {}

    def add(self, operation: str, micros: int, now: float) -> None:
        self.found.setdefault(operation, []).append((now, micros))

    def facts(self, now: float) -> dict[str, Any]:
        """For each operation the percentiles in microseconds and the sample's size."""
        result = {}
        for operation, times in sorted(self.found.items()):
            times[:] = [entry for entry in times if now - entry[0] <= KEEP_S][-SAMPLES_MAX:]
            ordered = sorted(micros for _, micros in times)
            if ordered:
                result[operation] = {"samples": len(ordered),
                                     **{f"p{percent:g}": percentile(ordered, percent)
                                        for percent in PERCENTILES}}
        return result


def sample(drive: Instance, latency: Latency, seconds: float = SAMPLE_S) -> None:
    """Trace the drive's commands for this time and add them to `latency`."""
    import base64
    from threading import Timer

    from . import trace
    command = next(n for n, kind in enumerate(trace.KINDS) if kind.name == "COMMAND")
    stream = trace.Stream(drive, ["trace"], trace.mask_of("commands"))
    timer = Timer(seconds, stream.end)
    timer.start()
    try:
        for event in stream.events():
            if event["event"] != "trace":
                continue
            data = base64.b64decode(event["records"])
            for at in range(0, len(data) - trace.RECORD_LEN + 1, trace.RECORD_LEN):
                if int.from_bytes(data[at + 8:at + 10], "little") == command:
                    words = trace.ARGS.unpack_from(data, at + trace.RECORD.size)
                    args = trace.read_args(trace.KINDS[command], words)
                    if not args["opcode"] >> 16 & 1:        # of an I/O queue
                        latency.add(trace.opcode_name(args["opcode"]).lower(),
                                    args["total_us"], time.monotonic())
    finally:
        timer.cancel()
        stream.close()


# Frames

@dataclass
class DriveLook:
    """What was read of one drive, with the counters of the frame before."""

    name: str
    at: float = 0.0                     # monotonic time of the counters
    counters: dict[str, Any] = field(default_factory=dict)
    octets: dict[int, tuple[float, int, int]] = field(default_factory=dict)
    slow: dict[str, Any] = field(default_factory=dict)
    latency: Latency = field(default_factory=Latency)
    for_page: bool = False              # read what only the cockpit shows, too

    def take(self, drive: Instance, ports: list[int], replies: list[dict[str, Any]],
             now: float) -> dict[str, Any]:
        """The drive's part of a frame, from the replies to requests(); `why` says why
        something is missing."""
        found: dict[str, Any] = {"why": replies[-1].get("error", ""), "ports": [],
                                 "counters": {}, "rates": {}, "warnings": None}
        said = [reply["return"] for reply in replies if "return" in reply]
        found["ports"] = [self.port(number, state, now)
                          for number, state in zip(ports, said, strict=False)]
        if len(said) > len(ports):
            found["counters"] = counters = said[len(ports)]
            found["warnings"] = warnings(counters)
            found["rates"] = {name: rate(counters[key], self.counters.get(key), now - self.at)
                              for name, key in DRIVE_RATES.items()}
            self.at, self.counters = now, counters
        try:
            if found["why"]:
                self.slow = {}
            elif len(said) > len(ports) + 1:
                self.slow = self.tables(drive, *said[len(ports) + 1:])
        except EssdError as error:      # the drive has gone between two pages
            found["why"] = str(error)
            self.slow = {}
        return found | self.slow

    def port(self, number: int, state: dict[str, Any], now: float) -> dict[str, Any]:
        octets = (state["counters"].get(IN_OCTETS, 0), state["counters"].get(OUT_OCTETS, 0))
        at, was_in, was_out = self.octets.get(number, (now, None, None))
        self.octets[number] = (now, *octets)
        return {"port": number, **state,
                "in-bytes-per-s": rate(octets[0], was_in, now - at),
                "out-bytes-per-s": rate(octets[1], was_out, now - at)}

    def tables(self, drive: Instance, status: dict[str, Any], pools: dict[str, Any],
               controllers: dict[str, Any], queue_pairs: dict[str, Any],
               neighbours: dict[str, Any], faults: list[Any]) -> dict[str, Any]:
        return {"status": status, "pools": pools,
                "controllers": whole_table(drive, "controllers", controllers),
                "queue-pairs": whole_table(drive, "queue-pairs", queue_pairs),
                "neighbours": neighbours.get("ports", []), "faults": faults,
                **(self.page_tables(drive) if self.for_page else {})}

    def page_tables(self, drive: Instance) -> dict[str, Any]:
        return {"temperatures": temperatures_of(drive),
                **({"flash-map": map_of(drive)} if "flash" in self.counters else {})}


def layout_of(ports: list[int], drive: Drive) -> dict[str, Any]:
    """What a drive is made of, as its configuration says."""
    array = drive.nand
    return {"ports": ports, "channels": array.channels if array else 0,
            "dies": array.dies if array else 0}


@dataclass
class Collector:
    """Makes frames of one instance."""

    instance: Instance
    has_latency: bool = False           # sample the drives' commands, too
    for_page: bool = False              # read what only the cockpit shows, too
    count: int = 0
    drives: dict[str, DriveLook] = field(default_factory=dict)
    cpu_before: dict[str, tuple[int, float, float]] = field(default_factory=dict)
    ports: dict[str, list[int]] = field(default_factory=dict)   # with a cable, by drive
    layout: dict[str, Any] = field(default_factory=dict)    # of the drives, also if off
    switched: dict[tuple[str, int], tuple[float, int, int]] = field(default_factory=dict)
    ports_of: int = 0           # modification time of the configuration that has them
    pool: ThreadPoolExecutor | None = None      # takes samples, if any are wanted

    def read_ports(self, names: Iterable[str]) -> None:
        """Read the ports of the drives, if the configuration is not the one of before."""
        try:
            changed = (self.instance.folder / "config.json").stat().st_mtime_ns
        except OSError:
            raise EssdError(self.instance.not_running()) from None
        if changed != self.ports_of:
            config = self.instance.config
            self.ports = {name: list(config.ports_of(name)) for name in names}
            self.layout = {name: layout_of(self.ports[name], drive)
                           for name, drive in config.drives.items() if name in self.ports}
            self.ports_of = changed

    def look(self, names: list[str], is_slow: bool) -> dict[str, dict[str, Any]]:
        """Ask all drives at the same time; drives with the same ports by one request."""
        groups: dict[tuple[tuple[int, ...], bool], list[str]] = {}
        for name in names:
            known = self.drives.setdefault(name, DriveLook(name, for_page=self.for_page))
            groups.setdefault((tuple(self.ports[name]), is_slow or not known.slow),
                              []).append(name)
        found = {}
        for (ports, with_tables), parts in groups.items():
            now = time.monotonic()
            replies = self.instance.ask("several", parts=parts,
                                        requests=requests(ports, with_tables))
            for name in parts:
                found[name] = self.drives[name].take(
                    self.instance.of(name), list(ports), replies[name], now)
        return {name: found[name] for name in names}

    def switch(self, name: str) -> list[dict[str, Any]]:
        """What the ports of a switch carry; nothing if it does not answer."""
        try:
            reply = self.instance.ask("switch", part=name, request="show")
        except EssdError:
            return []
        now, found = time.monotonic(), []
        for port in reply["ports"]:
            said = (port["counters"]["rx_bytes"], port["counters"]["tx_bytes"])
            at, was_in, was_out = self.switched.get((name, port["port"]), (now, None, None))
            self.switched[name, port["port"]] = (now, *said)
            found.append({"port": port["port"],
                          "in-bytes-per-s": rate(said[0], was_in, now - at),
                          "out-bytes-per-s": rate(said[1], was_out, now - at)})
        return found

    def sample(self, name: str) -> dict[str, Any]:
        latency = self.drives[name].latency
        with contextlib.suppress(EssdError):    # it is off or halted by now
            sample(self.instance.of(name), latency)
        return latency.facts(time.monotonic())

    def frame(self) -> dict[str, Any]:
        """Look at everything once; EssdError if the instance does not run."""
        began, used = time.monotonic(), time.process_time()
        status = self.instance.status()
        is_slow = self.count % SLOW_EVERY == 0
        self.count += 1
        parts = {name: self.part(name, facts) for name, facts in status["parts"].items()}
        self.read_ports(name for name, part in parts.items() if part["kind"] == "drive")
        names = [name for name, part in parts.items()
                 if part["kind"] == "drive" and part["state"] == "running"
                 and not part["halted"]]
        drives = self.look(names, is_slow)
        if self.has_latency:
            self.pool = self.pool or ThreadPoolExecutor(WORKERS)
            for name, facts in zip(names, self.pool.map(self.sample, names), strict=True):
                drives[name]["latency"] = facts
        for gone in set(self.drives) - set(names):
            del self.drives[gone]
        cables = {number: {"number": number, **cable,
                           "ends": cable.get("ends") or [f"host:{number}",
                                                         f"drive:{number}"]}
                  for number, cable in status["cables"].items()}
        return {"name": status["name"], "accel": status["accel"], "time": time.time(),
                "parts": parts, "cables": cables, "drives": drives,
                **(self.page_facts(parts) if self.for_page else {}),
                "cost": {"seconds": time.monotonic() - began,
                         "cpu-seconds": time.process_time() - used}}

    def page_facts(self, parts: dict[str, Any]) -> dict[str, Any]:
        """What only the cockpit shows: what the drives are made of, so that one that is off
        keeps its place, the fault rules of those that are off, and the load of the switches."""
        return {"layout": self.layout,
                "kept-rules": self.kept_rules([name for name, part in parts.items()
                                               if part["kind"] == "drive"
                                               and part["state"] != "running"]),
                "switches": {name: self.switch(name) for name, part in parts.items()
                             if part["kind"] == "switch" and part["state"] == "running"}}

    def kept_rules(self, names: list[str]) -> dict[str, list[Any]]:
        """The fault rules that the supervisor keeps for drives that are off."""
        if not names:
            return {}
        replies = self.instance.ask("several", parts=names, requests=[
            {"command": "faults", "do": "list"}])
        # A drive that starts at this moment may not answer yet: its rules are missing once.
        return {name: replies[name][0].get("return", []) for name in names}

    def two_frames(self) -> dict[str, Any]:
        """A frame that has rates: over one second."""
        self.frame()
        time.sleep(1)
        return self.frame()

    def part(self, name: str, facts: dict[str, Any]) -> dict[str, Any]:
        found = {"kind": kind_of(name, facts),
                 **{key: facts[key] for key in ("state", "why", "ready", "halted", "pid",
                                                "restarts", "saved", "console")},
                 "cpu-seconds": None, "cpu-percent": None, "memory-bytes": None}
        pid = facts["pid"]
        if not pid:
            return found
        with contextlib.suppress(OSError, IndexError, ValueError):  # it has just ended
            now, seconds = time.monotonic(), cpu.seconds(pid)
            before = self.cpu_before.get(name)
            if before is not None and before[0] == pid:
                used = rate(seconds, before[2], now - before[1])
                found["cpu-percent"] = None if used is None else 100 * used
            self.cpu_before[name] = (pid, now, seconds)
            found["cpu-seconds"] = seconds
            found["memory-bytes"] = int(cpu.resident_mib(pid) * (1 << 20))
        return found
