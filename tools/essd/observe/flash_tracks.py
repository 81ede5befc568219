# SPDX-License-Identifier: BSD-2-Clause
"""The flash in a Perfetto trace: dies, channels and the translation layer.

Each die and each channel has a track that shows what it does and for whom, so a
wait of a host's read stands beside what it waited for.  The name of that is also
among the arguments of the read itself.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .trace import Event
from .trace_file import Place, TraceFile
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
COMMAND_TRACKS = 2001       # of the first track of the commands of channel 0 die 0
LANES_MAX = 100             # tracks of one name
ROW_TRACKS = 101            # of the first track of the rows of stream 0
WAIT_TRACKS = 1001          # of the first track of commands that wait
REBUILD_TRACKS = 1101       # of the first track of rebuilds
STEPS_MAX = 16              # arrows of one command
GAP_NS = 100                # between the ends of an arrow, and after the begin of a slice
SECTION = {"collection": 1, **{name: 10 + n for n, name in enumerate(ACTIVITIES)}}
UNKNOWN_TRACK = 3           # of an activity that this program does not know
IDLE = ("idle", "none", "ready", "failed")      # phases in which an activity has ended


@dataclass(frozen=True)
class Busy:
    """A time in which a die or a channel was busy for one command."""

    begun_ns: int
    end_ns: int
    label: str
    owner: tuple[Any, ...]
    tid: int                    # where its slice is


@dataclass
class HostWaits:
    """What a host's command waited for in the flash."""

    us: dict[str, float] = field(default_factory=dict)      # by what it waited for
    place: dict[str, int] = field(default_factory=dict)     # of its last read of the flash
    others: list[Busy] = field(default_factory=list)        # for which it waited
    own: list[Busy] = field(default_factory=list)

    def steps(self) -> list[Place]:
        """The slices of the flash, each joined later than the one before.

        The page joins arrows in the order of time, and at random if times are equal: to
        those of other arrows, or to the begin of the slice.
        """
        found: list[Place] = []
        earliest_ns = 0
        for busy in sorted(self.others + self.own,
                           key=lambda busy: (busy.begun_ns, busy.tid)):
            time_ns = max(busy.begun_ns + GAP_NS, earliest_ns)
            if time_ns < busy.end_ns and len(found) < STEPS_MAX:
                found.append(Place(time_ns, NAND, busy.tid))
                earliest_ns = time_ns + GAP_NS
        return found

    def causes(self, begun_ns: int, end_ns: int) -> list[Place]:
        """Where the slices of others are, once the command waits for them."""
        moments = ((max(busy.begun_ns, begun_ns) + GAP_NS, busy) for busy in self.others)
        return [Place(time_ns, NAND, busy.tid) for time_ns, busy in moments
                if time_ns < busy.end_ns and time_ns + GAP_NS < end_ns][:STEPS_MAX]


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
    of_request: dict[int | None, HostWaits] = field(default_factory=dict)

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
        used, waited_for = [], []
        for track in (die, f"channel {channel}"):
            for busy in self.during(track, begun_ns):
                if busy.owner == mine:
                    rest, _ = without(rest, busy)
                    used.append(busy)
                else:
                    others.append((track.split()[0], busy))
        for what, busy in others:
            rest, ns = without(rest, busy)
            if ns:
                found[f"{what}: {busy.label}"] += ns / 1000
                waited_for.append(busy)
        waits = {label: round(us, 1)
                 for label, us in sorted(found.items(), key=lambda item: -item[1])}
        if event.request is not None and cause_name(event.args) == "host read":
            self.note_host(event, waits, used, waited_for)
        return waits

    def note_host(self, event: Event, waits: dict[str, float], own: list[Busy],
                  others: list[Busy]) -> None:
        host = self.of_request.setdefault(event.request, HostWaits())
        host.place = {"channel": event.args["channel"], "die": event.args["die"]}
        host.own += own
        host.others += others
        for label, us in waits.items():
            host.us[label] = max(host.us.get(label, 0.0), us)

    def of_host(self, request: int | None) -> HostWaits:
        """The same for a host's command that has ended."""
        return self.of_request.pop(request, HostWaits())


@dataclass
class Tracks:
    """Writes the events of the flash."""

    file: TraceFile
    waits: Waits = field(default_factory=Waits)
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

    def lane(self, pid: int, tid: int, track: str, name: str, begun_ns: int, end_ns: int,
             args: dict[str, Any]) -> None:
        """A slice that may overlap others of the same track."""
        self.name_process(pid)
        tid = self.file.lane(pid, tid, track, begun_ns, end_ns)
        self.file.slice(pid, tid, name, begun_ns, end_ns, args)

    def slice(self, pid: int, tid: int, track: str, name: str, begun_ns: int, end_ns: int,
              args: dict[str, Any]) -> None:
        self.name_process(pid)
        self.file.track(pid, tid, track)
        self.file.slice(pid, tid, name, begun_ns, end_ns, args)

    def name_process(self, pid: int) -> None:
        self.file.process(pid, "NAND dies and channels" if pid == NAND
                          else "flash translation layer")

    def counter(self, name: str, unit: str, value: float, time_ns: int) -> None:
        self.name_process(FTL)
        self.file.counter(FTL, name, unit, value, time_ns)

    # ---- The NAND controller

    def command(self, event: Event) -> None:
        args = event.args
        waits = self.waits.of_command(event)
        place = args["channel"] * DIES_MAX + args["die"]
        self.lane(
            NAND, COMMAND_TRACKS + LANES_MAX * place,
            f"commands of channel {args['channel']} die {args['die']}", label_of(args),
            event.time_ns - 1000 * args["us"], event.time_ns,
            {**({"waited us": waits} if waits else {}), "request": event.request,
             "channel": args["channel"], "die": args["die"], "planes": args["planes"],
             "block": args["block"], "superblock": args["block"],
             "wordline": args["wordline"],
             "entries": args["entries"], "cause": cause_name(args),
             "status": name_of(NAND_STATUSES, args["status"])})

    def phase(self, event: Event) -> None:
        args = event.args
        channel, die = args["channel"], args["die"]
        phase = name_of(PHASES, args["phase"])
        begun_ns, end_ns = args["begun_ns"], args["begun_ns"] + args["ns"]
        if phase in ON_DIE:
            key, track = f"die {channel}.{die}", f"channel {channel} die {die}"
            tid = channel * DIES_MAX + die + 1
        elif phase in ON_CHANNEL:
            key = track = f"channel {channel}"
            tid = CHANNEL_TRACKS + channel + 1
        else:
            return
        busy = Busy(begun_ns, end_ns, label_of(args), owner_of(event), tid)
        self.waits.note(key, busy)
        self.slice(NAND, tid, track, busy.label, begun_ns, end_ns,
                   {"superblock": args["block"], "block": args["block"],
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
        self.slice(FTL, SECTION["collection"], "collection",
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
        self.name_process(FTL)
        self.file.track(FTL, 2, "superblocks")
        self.file.instant(FTL, 2, "t", WORDS[event.kind.name](args), event.time_ns)
        self.counter("free", "superblocks", args["free"], event.time_ns)

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
            self.counter("write", "amplification",
                         round((self.units[-1][2] - self.units[0][2]) / host, 2),
                         event.time_ns)

    def levels(self, event: Event) -> None:
        self.counter("write buffer", "units", event.args["buffer"], event.time_ns)
        self.counter("free", "superblocks", event.args["free"], event.time_ns)

    def row_done(self, event: Event) -> None:
        args = event.args
        begun = self.rows.pop((args["superblock"], args["row"]), None)
        self.levels(event)
        if begun is None:
            return
        self.lane(
            FTL, ROW_TRACKS + LANES_MAX * args["stream"],
            f"rows of stream {name_of(STREAMS, args['stream'])}",
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
            self.lane(FTL, WAIT_TRACKS, "commands that wait",
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
            self.slice(FTL, SECTION.get(name, UNKNOWN_TRACK), name, f"{name}: {phase}",
                       begun_ns, time_ns, {})

    def rebuilt(self, event: Event) -> None:
        args = event.args
        self.lane(FTL, REBUILD_TRACKS, "rebuilds", f"rebuild for {cause_name(args)}",
                  event.time_ns - 1000 * args["us"], event.time_ns,
                  {"row": row_of(args), "units": args["units"],
                   "complete": bool(args["is_complete"]), "request": event.request})

    def end(self, time_ns: int) -> None:
        """Write what has not ended when the trace ends."""
        self.end_victim(time_ns, "goes on")
        for number in list(self.activities):
            self.end_activity(number, time_ns)
