# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --goals`: each goal of docs/performance.md, measured, and whether it is met.

All goals are about the drive alone, with essd's own initiator.  With `--compare BASE`, an
earlier drive runs beside this one and both are measured in turns, so the ratios can be
trusted on a busy machine; whether a goal is met cannot.  The drives of one kind run only
while their rows are measured.
"""

import contextlib
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..base import show
from ..base.errors import EssdError
from ..instance.config import NATIVE
from ..setup.setup import Binaries, Wish
from . import base as bench_base, turns
from .growth import MANY, QUEUE_DEPTH
from .native import Bench, Load
from .turns import Running, Side

MTU = 9000
NEW, BASE = "new", "base"           # the sides
BLOCK, FLASH, HART, START = "block", "nand", "hart", "start"    # kinds of drives
KINDS = (BLOCK, FLASH, HART, START)
NOT_IN_BASE = "not in BASE"
# What QEMU says about an option that it does not have.
UNKNOWN_OPTION = ("Property '", "is not a valid", "invalid option", "Invalid parameter")
# Seconds besides those of --seconds, for the time that is told at the beginning.
TURN_S = 0.7            # one turn: the initiator connects
MANY_S = 3.0            # the same of many hosts
CREATE_S = 8.0          # a drive is created, started and filled
POWER_ON_S = 1.5        # a start


@dataclass(frozen=True)
class Figure:
    """A measured quantity that a goal limits, and how it is printed."""

    word: str
    goal: str           # how a limit is written
    value: str          # how a value is written
    is_less_better: bool
    goal_unit: float = 1

    def asked(self, limit: float) -> str:
        return self.goal.format(limit / self.goal_unit)


FIGURES = {
    "drive_cpu": Figure("CPU", "{:g} us", "{:.1f}", True),
    "mean_us": Figure("mean", "mean {:g} us", "mean {:.0f} us", True),
    "iops": Figure("IOPS", "{:g}k IOPS", "{:,.0f} IOPS", False, 1000),
    "gb_s": Figure("GB/s", "{:g} GB/s", "{:.2f} GB/s", False),
    "share": Figure("share", "{:.0%} of 1 pair", "{:.0%} of 1 pair", False),
    "start_s": Figure("time", "{:g} s", "{:.2f} s", True),
}


@dataclass(frozen=True)
class Goal:
    name: str
    drive: str                      # one of KINDS
    workload: str
    asked: dict[str, float]         # limits of some of FIGURES
    few: Load | None = None         # its IOPS are those of which `share` is a part
    load: Load = field(default_factory=Load)


GOALS = (
    Goal("block 4K random read, depth 64", BLOCK, "4k-randread-qd64",
         {"drive_cpu": 6, "iops": 150_000}),
    Goal("NAND 4K random read, depth 64", FLASH, "4k-randread-qd64",
         {"drive_cpu": 8, "iops": 100_000}),
    Goal("block 4K random read, depth 1", BLOCK, "4k-randread-qd1",
         {"drive_cpu": 35, "mean_us": 45}),
    Goal("NAND 4K random read, depth 1", FLASH, "4k-randread-qd1",
         {"drive_cpu": 45, "mean_us": 60}),
    Goal("NAND 4K random write, depth 64", FLASH, "4k-randwrite-qd64",
         {"drive_cpu": 12, "iops": 80_000}),
    Goal("block 128K read", BLOCK, "128k-read-qd64", {"gb_s": 1.9}),
    Goal("block 128K write", BLOCK, "128k-write-qd64", {"gb_s": 0.9}),
    Goal("NAND 128K read", FLASH, "128k-read-qd64", {"gb_s": 0.8}),
    Goal("NAND 128K write", FLASH, "128k-write-qd64", {"gb_s": 0.6}),
    Goal("NAND 960 busy queue pairs", FLASH, "4k-randread-qd64", {"share": 0.8},
         Load(depth=QUEUE_DEPTH), Load(60, MANY // 60, QUEUE_DEPTH)),
    Goal("hart=native 4K random read, depth 64", HART, "4k-randread-qd64",
         {"drive_cpu": 4, "iops": 200_000}),
    Goal("power-on to port 4420", START, "", {"start_s": 0.25}),
)


@dataclass(frozen=True)
class Row:
    """One goal, as --json prints it; keys of the dicts are some of FIGURES."""

    goal: str
    workload: str
    asked: dict[str, float]
    median: dict[str, float] = field(default_factory=dict)      # of the rounds
    best: dict[str, float] = field(default_factory=dict)        # of the best round of each
    base: dict[str, float] = field(default_factory=dict)        # medians of BASE
    # This drive's divided by BASE's in the same round: the median, the smallest, the largest.
    ratio: dict[str, float] = field(default_factory=dict)
    ratio_low: dict[str, float] = field(default_factory=dict)
    ratio_high: dict[str, float] = field(default_factory=dict)
    met: dict[str, str] = field(default_factory=dict)   # "yes", "no", or "best": in the best round
    reason: str = ""            # why it was not measured
    base_reason: str = ""       # the same of BASE; NOT_IN_BASE is no failure

    @property
    def has_failed(self) -> bool:
        return bool(self.reason) or self.base_reason not in ("", NOT_IN_BASE)


Round = dict[str, float]        # figures of one round on one side


def row_of(goal: Goal, new: Sequence[Round], base: Sequence[Round], base_reason: str) -> Row:
    """`base` is empty, or has as many rounds as `new`."""
    median = middle(new)
    best = {name: (min if FIGURES[name].is_less_better else max)(
        one[name] for one in new) for name in new[0]}
    ratios = {name: [one[name] / other[name] for one, other in zip(new, base, strict=True)]
              for name in new[0]} if base else {}
    return Row(
        goal.name, goal.workload, goal.asked, median, best, middle(base) if base else {},
        {name: statistics.median(some) for name, some in ratios.items()},
        {name: min(some) for name, some in ratios.items()},
        {name: max(some) for name, some in ratios.items()},
        {name: "yes" if is_met(name, limit, median) else
               "best" if is_met(name, limit, best) else "no"
         for name, limit in goal.asked.items()}, base_reason=base_reason)


def middle(rounds: Sequence[Round]) -> Round:
    return {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}


def is_met(name: str, limit: float, found: Round) -> bool:
    return found[name] <= limit if FIGURES[name].is_less_better else found[name] >= limit


# Measuring

@dataclass(frozen=True)
class Plan:
    """What is measured, and how."""

    goals: Sequence[Goal]
    seconds: float
    rounds: int
    mtu: int
    program: Path
    earlier: Binaries | None = None     # of BASE

    def of(self, kind: str) -> list[Goal]:
        """The rows of a kind of drive in the order in which they are measured: random
        writes spread the blocks, which makes sequential reads slower (nand.py)."""
        return sorted((goal for goal in self.goals if goal.drive == kind),
                      key=lambda goal: ("rand" in goal.workload, "write" in goal.workload))

    def sides(self, kind: str) -> list[Side]:
        wish = Wish(block=kind in (BLOCK, HART), mtu=self.mtu, lower_floor=True)
        if kind == HART:
            wish.hart = NATIVE
        earlier = [] if self.earlier is None else [
            Side(BASE, replace(wish, binaries=self.earlier))]
        return [Side(NEW, wish), *earlier]

    def about_s(self) -> float:
        """How long all of it takes on a quiet machine."""
        total = 0.0
        sides = 1 if self.earlier is None else 2
        for kind in {goal.drive for goal in self.goals}:
            total += sides * (2 * POWER_ON_S if kind == START else CREATE_S)
        for goal in self.goals:
            turn = (POWER_ON_S if goal.drive == START else self.seconds + TURN_S
                    if goal.few is None else 2 * self.seconds + TURN_S + MANY_S)
            total += self.rounds * sides * turn
        return total


def figures(turn: turns.Turn) -> Round:
    return {"drive_cpu": turn.drive_cpu, "mean_us": turn.mean_us, "iops": turn.iops,
            "gb_s": turn.mb_s / 1000}


def loaded_round(goal: Goal, one: Running, seconds: float, is_odd: bool) -> Round:
    """The figures of a workload; beside those of few queue pairs, if that is the goal."""
    loads = [goal.load] if goal.few is None else [goal.few, goal.load]
    found = [figures(Running(replace(one.side, load=load), one.benches, one.pids).turn(
        goal.workload, seconds)) for load in loads[::-1 if is_odd else 1]]
    if goal.few is None:
        return found[0]
    few, many = found[::-1 if is_odd else 1]
    return {**many, "share": many["iops"] / few["iops"]}


def started_round(bench: Bench) -> Round:
    return {"start_s": bench.power_on_s()}


def reason_of(error: EssdError, name: str) -> str:
    """Why a side was not measured, in one line; NOT_IN_BASE if BASE is too old."""
    text = " ".join(str(error).split())
    if name == BASE and any(words in text for words in UNKNOWN_OPTION):
        return NOT_IN_BASE
    return text


def measured_row(goal: Goal, parts: dict[str, Callable[[bool], Round]], rounds: int,
                 base_reason: str) -> Row:
    """One row; `parts` has, for each side that runs, what measures one round of it."""
    found: dict[str, list[Round]] = {name: [] for name in parts}
    reasons = {BASE: base_reason} if base_reason else {}
    for n in range(rounds):
        for name in list(parts)[::-1 if n % 2 else 1]:
            if name in reasons:
                continue
            try:
                found[name].append(parts[name](n % 2 == 1))
            except EssdError as error:
                reasons[name] = reason_of(error, name)
        if NEW in reasons:
            return Row(goal.name, goal.workload, goal.asked, reason=reasons[NEW])
    return row_of(goal, found[NEW], [] if BASE in reasons else found.get(BASE, []),
                  reasons.get(BASE, ""))


@contextlib.contextmanager
def drives(plan: Plan, kind: str) -> Iterator[tuple[dict[str, Running | Bench], str]]:
    """The drives of one kind by their sides, and why BASE's is not there, or ""."""
    with tempfile.TemporaryDirectory(prefix="essd-bench-") as folder, \
            contextlib.ExitStack() as stack:
        found: dict[str, Running | Bench] = {}
        reason = ""
        for n, side in enumerate(plan.sides(kind)):
            try:
                if (side.name == BASE and kind == HART and side.wish.binaries is not None
                        and side.wish.binaries.native_hart is None):
                    reason = NOT_IN_BASE
                elif kind == START:
                    bench, = stack.enter_context(turns.created(
                        side, n, plan.program, Path(folder)))
                    bench.power_on_s()      # The first start makes the namespace.
                    found[side.name] = bench
                else:
                    found[side.name] = stack.enter_context(turns.running(
                        side, n, plan.program, Path(folder)))
            except EssdError as error:
                if side.name == NEW:
                    raise
                reason = reason_of(error, BASE)
        yield found, reason


def part_of(goal: Goal, one: Running | Bench, seconds: float) -> Callable[[bool], Round]:
    if isinstance(one, Bench):
        return lambda _: started_round(one)
    return lambda is_odd: loaded_round(goal, one, seconds, is_odd)


def measured_kind(plan: Plan, kind: str) -> Iterator[Row]:
    """The rows of one kind of drive.  After a row that fails, new drives are started for
    the rows that are left."""
    left = plan.of(kind)
    while left:
        try:
            with drives(plan, kind) as (found, base_reason):
                while left:
                    goal = left.pop(0)
                    row = measured_row(
                        goal, {name: part_of(goal, one, plan.seconds)
                               for name, one in found.items()}, plan.rounds, base_reason)
                    yield row
                    if row.reason or row.base_reason != base_reason:
                        break
        except EssdError as error:
            yield from (Row(goal.name, goal.workload, goal.asked, reason=reason_of(error, NEW))
                        for goal in left)
            return


def measured(plan: Plan, row_done: Callable[[Row], None]) -> list[Row]:
    """All rows, in the order of GOALS."""
    found = {}
    for kind in KINDS:
        for row in measured_kind(plan, kind):
            found[row.goal] = row
            row_done(row)
    return [found[goal.name] for goal in plan.goals]


def wanted_goals(only: str) -> list[Goal]:
    found = [goal for goal in GOALS if only.lower() in goal.name.lower()]
    if not found:
        raise EssdError(f"--only {only}: no goal contains this text; use a part of "
                        f"{'; '.join(goal.name for goal in GOALS)}")
    return found


def plan_of(base: str | None, seconds: float, rounds: int | None, only: str,
            mtu: int | None, build: Callable[[], Path]) -> Plan:
    """Check the options, and build what is missing."""
    rounds = turns.ROUNDS if rounds is None else rounds
    if rounds < 1:
        raise EssdError(f"--rounds {rounds}: use 1 or more")
    if seconds <= 0:
        raise EssdError(f"--seconds {seconds:g}: use more than 0")
    goals = wanted_goals(only)
    earlier = None if base is None else bench_base.binaries(
        base, any(goal.drive == HART for goal in goals))
    return Plan(goals, seconds, rounds, MTU if mtu is None else mtu, build(), earlier)


def tell_plan(plan: Plan, load: tuple[float, float, float]) -> None:
    sides = "" if plan.earlier is None else ", on two drives in turns"
    show.line(f"{len(plan.goals)} rows, {plan.rounds} rounds of {plan.seconds:g} s{sides}: "
              f"about {max(1, round(plan.about_s() / 60))} minutes on a quiet machine; load "
              f"average now {load[0]:.1f}")
