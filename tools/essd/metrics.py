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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from . import cpu
from .drive import port_get
from .errors import EssdError
from .instance import Instance
from .status import kind_of

SLOW_EVERY = 5          # frames
ANSWER_S = 2.0          # time limit for a drive to answer
PAGES_MAX = 4           # pages of a table; a page has 64 rows
WORKERS = 4             # drives that are asked at the same time
IN_OCTETS, OUT_OCTETS = "aOctetsReceivedOK", "aOctetsTransmittedOK"
# The counters of which a frame has a rate.
DRIVE_RATES = {"read-iops": "reads", "write-iops": "writes",
               "read-bytes-per-s": "read-bytes", "write-bytes-per-s": "written-bytes"}


def rate(now: float, before: float | None, seconds: float) -> float | None:
    """Per second; None if nothing is known, or the counter has begun again at 0."""
    if before is None or seconds <= 0 or now < before:
        return None
    return (now - before) / seconds


def whole_table(drive: Instance, request: str) -> dict[str, Any]:
    """The rows of a table of the drive; `more` if there are more than are shown."""
    rows: list[Any] = []
    arguments: dict[str, Any] = {}
    for _ in range(PAGES_MAX):
        reply = ask_drive(drive, request, **arguments)
        rows += reply[request]
        if "next" not in reply:
            return {"rows": rows, "more": False}
        arguments = {"from": reply["next"]}
    return {"rows": rows, "more": True}


def ask_drive(drive: Instance, request: str, **arguments: Any) -> dict[str, Any]:
    return dict(drive.ask("mgmt", part=drive.drive, request=request,
                          arguments=arguments, timeout_s=ANSWER_S))


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

    def collect(self, drive: Instance, ports: list[int], is_slow: bool) -> dict[str, Any]:
        """The drive's part of a frame; `why` says why something is missing."""
        found: dict[str, Any] = {"why": "", "ports": [], "counters": {}, "rates": {}}
        try:
            now = time.monotonic()
            found["ports"] = [self.port(drive, number) for number in ports]
            found["counters"] = ask_drive(drive, "counters")
            found["rates"] = {name: rate(found["counters"][key], self.counters.get(key),
                                         now - self.at)
                              for name, key in DRIVE_RATES.items()}
            self.at, self.counters = now, found["counters"]
            if is_slow or not self.slow:
                self.slow = self.tables(drive)
        except EssdError as error:
            found["why"] = str(error)
            self.slow = {}
        return found | self.slow

    def port(self, drive: Instance, number: int) -> dict[str, Any]:
        command, arguments = port_get(number, "state")
        now = time.monotonic()
        state = drive.ask("qmp", part=drive.drive, execute=command, arguments=arguments)
        octets = (state["counters"].get(IN_OCTETS, 0), state["counters"].get(OUT_OCTETS, 0))
        at, was_in, was_out = self.octets.get(number, (now, None, None))
        self.octets[number] = (now, *octets)
        return {"port": number, **state,
                "in-bytes-per-s": rate(octets[0], was_in, now - at),
                "out-bytes-per-s": rate(octets[1], was_out, now - at)}

    def tables(self, drive: Instance) -> dict[str, Any]:
        """What changes seldom, or costs the firmware more."""
        return {"status": ask_drive(drive, "status"),
                "pools": ask_drive(drive, "pools"),
                "controllers": whole_table(drive, "controllers"),
                "queue-pairs": whole_table(drive, "queue-pairs"),
                "neighbours": ask_drive(drive, "neighbours").get("ports", []),
                "faults": drive.ask("faults", part=drive.drive, do="list")}


@dataclass
class Collector:
    """Makes frames of one instance."""

    instance: Instance
    has_latency: bool = False           # sample the drives' commands, too
    count: int = 0
    drives: dict[str, DriveLook] = field(default_factory=dict)
    cpu_before: dict[str, tuple[int, float, float]] = field(default_factory=dict)

    def frame(self) -> dict[str, Any]:
        """Look at everything once; EssdError if the instance does not run."""
        began, used = time.monotonic(), time.process_time()
        status = self.instance.status()
        config = self.instance.config
        is_slow = self.count % SLOW_EVERY == 0
        self.count += 1
        parts = {name: self.part(name, facts) for name, facts in status["parts"].items()}
        names = [name for name, part in parts.items()
                 if part["kind"] == "drive" and part["state"] == "running"
                 and not part["halted"]]

        def look(name: str) -> dict[str, Any]:
            known = self.drives.setdefault(name, DriveLook(name))
            drive = self.instance.of(name)
            found = known.collect(drive, list(config.ports_of(name)), is_slow)
            if self.has_latency:
                with contextlib.suppress(EssdError):    # it is off or halted by now
                    sample(drive, known.latency)
                found["latency"] = known.latency.facts(time.monotonic())
            return found

        with ThreadPoolExecutor(min(WORKERS, len(names) or 1)) as pool:
            drives = dict(zip(names, pool.map(look, names), strict=True))
        for gone in set(self.drives) - set(names):
            del self.drives[gone]
        cables = {number: {"number": number, **cable,
                           "ends": cable.get("ends") or [f"host:{number}",
                                                         f"drive:{number}"]}
                  for number, cable in status["cables"].items()}
        return {"name": status["name"], "accel": status["accel"], "time": time.time(),
                "parts": parts, "cables": cables, "drives": drives,
                "cost": {"seconds": time.monotonic() - began,
                         "cpu-seconds": time.process_time() - used}}

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
