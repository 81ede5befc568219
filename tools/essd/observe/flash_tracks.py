# SPDX-License-Identifier: BSD-2-Clause
"""The flash in a Perfetto trace: dies, channels and the translation layer.

Each die and each channel has a track that shows what it does and for whom, so a
wait of a host's read stands beside what it waited for.  The name of that is also
among the arguments of the read itself.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .trace import Event
from .trace_flash import (ACTIVITIES, NAND_OPCODES, NAND_STATUSES, PHASES, STREAMS,
                          SUPERBLOCK_STATES, WAITS, WORDS, activity_phase, cause_name,
                          row_of)
from .trace_names import name_of

NAND = 1 << 24              # the process of the NAND controller: no QPN is that large
FTL = NAND + 1              # the process of the translation layer
CHANNEL_TRACKS = 1000       # number of the track of channel 0
DIES_MAX = 16               # of a channel
KEPT = 512                  # phases of a die or channel that a read may have waited for
AMPLIFICATION_NS = 100_000_000      # over which write amplification is computed
ON_CHANNEL = ("receives", "sends")
ON_DIE = ("busy",)
SECTION = {"collection": 1, **{name: 10 + n for n, name in enumerate(ACTIVITIES)}}
IDLE = ("idle", "none", "ready", "failed")      # phases in which an activity has ended


@dataclass(frozen=True)
class Busy:
    """A time in which a die or a channel was busy for one command."""

    begun_ns: int
    end_ns: int
    label: str
    owner: tuple[Any, ...]


def owner_of(event: Event) -> tuple[Any, ...]:
    """What tells the commands of the NAND controller apart that overlap."""
    args = event.args
    return (event.request, args["opcode"], args["cause"], args["channel"], args["die"],
            args["block"])


def without(spans: list[tuple[int, int]], busy: Busy) -> tuple[list[tuple[int, int]], int]:
    """Cut a time out of spans.  @return the rest, and how much was cut out"""
    rest = []
    for begun_ns, end_ns in spans:
        if busy.begun_ns > begun_ns:
            rest.append((begun_ns, min(end_ns, busy.begun_ns)))
        if busy.end_ns < end_ns:
            rest.append((max(begun_ns, busy.end_ns), end_ns))
    before, after = (sum(end - begun for begun, end in part) for part in (spans, rest))
    return rest, before - after


def label_of(args: dict[str, Any]) -> str:
    return f"{name_of(NAND_OPCODES, args['opcode'])} for {cause_name(args)}"


@dataclass
class Waits:
    """Finds what each read of a host waited for."""

    busy: dict[str, deque[Busy]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=KEPT)))
    of_request: dict[int | None, dict[str, float]] = field(default_factory=dict)
    places: dict[int | None, dict[str, int]] = field(default_factory=dict)

    def note(self, track: str, busy: Busy) -> None:
        self.busy[track].append(busy)

    def during(self, track: str, begun_ns: int) -> Iterator[Busy]:
        """What a track has done since then, newest first."""
        for busy in reversed(self.busy[track]):
            if busy.end_ns <= begun_ns:
                return
            yield busy

    def of_command(self, event: Event) -> dict[str, float]:
        """Microseconds that a command waited, by what its die and channel did.

        Where it used die or channel itself it did not wait; where its die was busy
        for others, it does not matter what the channel did.
        """
        begun_ns = event.time_ns - 1000 * int(event.args["us"])
        rest = [(begun_ns, event.time_ns)]
        found: dict[str, float] = defaultdict(float)
        mine = owner_of(event)
        channel = event.args["channel"]
        die, others = f"die {channel}.{event.args['die']}", []
        for track in (die, f"channel {channel}"):
            for busy in self.during(track, begun_ns):
                if busy.owner == mine:
                    rest, _ = without(rest, busy)
                else:
                    others.append((track.split()[0], busy))
        for what, busy in others:
            rest, ns = without(rest, busy)
            if ns:
                found[f"{what}: {busy.label}"] += ns / 1000
        waits = {label: round(us, 1)
                 for label, us in sorted(found.items(), key=lambda item: -item[1])}
        if event.request is not None and cause_name(event.args) == "host read":
            self.places[event.request] = {"channel": channel, "die": event.args["die"]}
            of_request = self.of_request.setdefault(event.request, {})
            for label, us in waits.items():
                of_request[label] = max(of_request.get(label, 0.0), us)
        return waits

    def of_host(self, request: int | None) -> dict[str, float]:
        """The same for a host's command that has ended."""
        return self.of_request.pop(request, {})

    def place_of_host(self, request: int | None) -> dict[str, int]:
        """Channel and die of the last read of the flash for a host's command."""
        return self.places.pop(request, {})


@dataclass
class Tracks:
    """Writes the events of the flash.  `put` writes one entry of the trace."""

    put: Callable[..., None]
    process: Callable[[int, str], None]
    async_slice: Callable[..., None]
    waits: Waits = field(default_factory=Waits)
    threads: set[tuple[int, int]] = field(default_factory=set)
    victim: Event | None = None
    moved: int = 0
    activities: dict[int, tuple[str, int]] = field(default_factory=dict)
    rows: dict[tuple[int, int], Event] = field(default_factory=dict)
    throttled: dict[tuple[int | None, int], int] = field(default_factory=dict)
    units: deque[tuple[int, int, int]] = field(default_factory=deque)

    def take(self, event: Event) -> bool:
        """Write an event if it is one of the flash's.  @return whether it is"""
        take = {"NAND_ENDED": self.command, "NAND_PHASE": self.phase,
                "FTL_VICTIM": self.choose, "FTL_SUPERBLOCK": self.superblock,
                "FTL_ROW": self.row, "FTL_ROW_DONE": self.row_done,
                "FTL_MOVE": self.move, "FTL_WAIT": self.wait,
                "FTL_PHASE": self.activity, "FTL_REBUILT": self.rebuilt,
                }.get(event.kind.name)
        if take is not None:
            take(event)
        return event.kind.group in ("ftl", "nand")

    # ---- Tracks

    def track(self, pid: int, tid: int, name: str) -> None:
        self.process(pid, "NAND dies and channels" if pid == NAND
                     else "flash translation layer")
        if (pid, tid) not in self.threads:
            self.threads.add((pid, tid))
            self.put(ph="M", name="thread_name", pid=pid, tid=tid, args={"name": name})
            self.put(ph="M", name="thread_sort_index", pid=pid, tid=tid,
                     args={"sort_index": tid})

    def slice(self, pid: int, tid: int, name: str, begun_ns: float, end_ns: float,
              args: dict[str, Any]) -> None:
        self.put(ph="X", pid=pid, tid=tid, name=name, ts=begun_ns / 1000,
                 dur=(end_ns - begun_ns) / 1000, args=args)

    def counter(self, name: str, unit: str, value: float, time_ns: int) -> None:
        self.process(FTL, "flash translation layer")
        self.put(ph="C", pid=FTL, tid=0, name=name, ts=time_ns / 1000, args={unit: value})

    def instant(self, tid: int, event: Event) -> None:
        self.put(ph="i", s="t", pid=FTL, tid=tid, name=WORDS[event.kind.name](event.args),
                 ts=event.time_ns / 1000)

    # ---- The NAND controller

    def command(self, event: Event) -> None:
        args = event.args
        self.process(NAND, "NAND dies and channels")
        waits = self.waits.of_command(event)
        self.async_slice(
            NAND, f"commands of channel {args['channel']} die {args['die']}",
            f"{event.request}-{event.time_ns}-{args['block']}", label_of(args),
            event.time_ns - 1000 * args["us"], event.time_ns,
            {"channel": args["channel"], "die": args["die"], "planes": args["planes"],
             "block": args["block"], "superblock": args["block"],
             "wordline": args["wordline"],
             "entries": args["entries"], "cause": cause_name(args),
             "status": name_of(NAND_STATUSES, args["status"]), "request": event.request,
             **({"waited us": waits} if waits else {})})

    def phase(self, event: Event) -> None:
        args = event.args
        channel, die = args["channel"], args["die"]
        phase = name_of(PHASES, args["phase"])
        begun_ns, end_ns = args["begun_ns"], args["begun_ns"] + args["ns"]
        busy = Busy(begun_ns, end_ns, label_of(args), owner_of(event))
        if phase in ON_DIE:
            self.waits.note(f"die {channel}.{die}", busy)
            pid, tid, name = NAND, channel * DIES_MAX + die, f"channel {channel} die {die}"
        elif phase in ON_CHANNEL:
            self.waits.note(f"channel {channel}", busy)
            pid, tid, name = NAND, CHANNEL_TRACKS + channel, f"channel {channel}"
        else:
            return
        self.track(pid, tid + 1, name)
        self.slice(pid, tid + 1, busy.label, begun_ns, end_ns,
                   {"block": args["block"], "superblock": args["block"],
                    "cause": cause_name(args), "request": event.request,
                    "phase": phase, "channel": channel, "die": die,
                    "suspended": bool(args["is_cut"])})

    # ---- The translation layer

    def choose(self, event: Event) -> None:
        self.end_victim(event.time_ns, "given up")
        self.victim, self.moved = event, 0

    def move(self, event: Event) -> None:
        self.moved += event.args["units"]

    def end_victim(self, time_ns: int, result: str) -> None:
        event, self.victim = self.victim, None
        if event is None:
            return
        args = event.args
        self.track(FTL, SECTION["collection"], "collection")
        self.slice(FTL, SECTION["collection"],
                   f"superblock {args['superblock']} for {cause_name(args)}",
                   event.time_ns, time_ns,
                   {"cause": cause_name(args), "policy": event.text,
                    "valid": args["valid"], "capacity": args["capacity"],
                    "age in rows": args["age"], "free superblocks": args["free"],
                    "moved": self.moved, "result": result})

    def superblock(self, event: Event) -> None:
        args = event.args
        state = name_of(SUPERBLOCK_STATES, args["state"])
        if self.victim is not None and state in ("free", "retired") and \
                self.victim.args["superblock"] == args["superblock"]:
            self.end_victim(event.time_ns, state)
        self.track(FTL, 2, "superblocks")
        self.instant(2, event)
        self.counter("free superblocks", "superblocks", args["free"], event.time_ns)

    def row(self, event: Event) -> None:
        args = event.args
        self.rows[args["superblock"], args["row"]] = event
        self.levels(event)
        self.units.append((event.time_ns, args["host_units"], args["programmed"]))
        while len(self.units) > 2 and \
                self.units[1][0] < event.time_ns - AMPLIFICATION_NS:
            self.units.popleft()
        host = self.units[-1][1] - self.units[0][1]
        if host > 0:
            self.counter("write amplification", "programmed per written",
                         round((self.units[-1][2] - self.units[0][2]) / host, 2),
                         event.time_ns)

    def levels(self, event: Event) -> None:
        self.counter("write buffer", "units", event.args["buffer"], event.time_ns)
        self.counter("free superblocks", "superblocks", event.args["free"], event.time_ns)

    def row_done(self, event: Event) -> None:
        args = event.args
        begun = self.rows.pop((args["superblock"], args["row"]), None)
        self.levels(event)
        if begun is None:
            return
        self.process(FTL, "flash translation layer")
        self.async_slice(
            FTL, f"rows of stream {name_of(STREAMS, args['stream'])}",
            f"{args['superblock']}-{args['row']}-{begun.time_ns}",
            f"row for {cause_name(args)}", begun.time_ns, event.time_ns,
            {"superblock": args["superblock"], "row": args["row"],
             "units": begun.args["units"], "request": event.request})

    def wait(self, event: Event) -> None:
        args = event.args
        key = (event.request, args["reason"])
        self.counter("write buffer", "units", args["buffer"], event.time_ns)
        if not args["is_over"]:
            self.throttled[key] = event.time_ns
            return
        begun_ns = self.throttled.pop(key, None)
        if begun_ns is not None:
            self.process(FTL, "flash translation layer")
            self.async_slice(FTL, "commands that wait", f"{event.request}-{begun_ns}",
                             name_of(WAITS, args["reason"]), begun_ns, event.time_ns,
                             {"request": event.request})

    def activity(self, event: Event) -> None:
        number = event.args["activity"]
        self.end_activity(number, event.time_ns)
        phase = activity_phase(event.args)
        if phase not in IDLE:
            self.activities[number] = (phase, event.time_ns)

    def end_activity(self, number: int, time_ns: int) -> None:
        name = name_of(ACTIVITIES, number)
        if number in self.activities:
            phase, begun_ns = self.activities.pop(number)
            self.track(FTL, SECTION.get(name, 0), name)
            self.slice(FTL, SECTION.get(name, 0), f"{name}: {phase}", begun_ns, time_ns, {})

    def rebuilt(self, event: Event) -> None:
        args = event.args
        self.process(FTL, "flash translation layer")
        self.async_slice(FTL, "rebuilds", f"{event.request}-{event.time_ns}",
                         f"rebuild for {cause_name(args)}",
                         event.time_ns - 1000 * args["us"], event.time_ns,
                         {"row": row_of(args), "units": args["units"],
                          "complete": bool(args["is_complete"]),
                          "request": event.request})

    def end(self, time_ns: int) -> None:
        """Write what has not ended when the trace ends."""
        self.end_victim(time_ns, "goes on")
        for number in list(self.activities):
            self.end_activity(number, time_ns)
