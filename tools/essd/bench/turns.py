# SPDX-License-Identifier: BSD-2-Clause
"""Drives that run at the same time and are measured in turns.

On a shared machine, IOPS differ by a factor of five within an hour, and CPU time for each
I/O by two thirds.  So what is compared runs side by side: each workload goes to one side
after the other, for a second or a few, several times and in changing order.  The ratio of
two sides in one round means something, and the median of these ratios even more.

A side is one drive, or several that are loaded at the same time.
"""

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from ..base import claims, cpu, interrupts, show
from ..base.cpu import Spent
from ..base.errors import EssdError, LOOK_UP_S
from ..instance.config import console_log
from ..setup import setup
from ..setup.setup import Wish
from ..storage import nand_look
from ..storage.nand_look import Fill
from .native import Bench, CONNECT_S, FILL_S, Load

ROUNDS = 5
CALLS_S = 1.0           # how long system calls are counted
SEED = 1                # of a preconditioned array


@dataclass(frozen=True)
class Side:
    """One of the things that are compared."""

    name: str
    wish: Wish = field(default_factory=Wish)    # its name is set here
    load: Load = field(default_factory=Load)
    drives: int = 1
    fill: int = 0               # per cent of the NAND array that are written first


@dataclass(frozen=True)
class Turn:
    """One run of a workload on a side; of several drives the sums, or the worst latency."""

    iops: float
    mb_s: float
    mean_us: float
    p99_us: float
    drive_cpu: float            # microseconds of the drives' CPU time for each I/O
    initiator_cpu: float        # the same for the initiators
    switches: float             # context switches of the drives for each I/O


@dataclass(frozen=True)
class Row:
    """Medians of the turns; ratios are those to the first side in the same round."""

    workload: str
    target: str                 # the side's name
    iops: float
    mb_s: float
    mean_us: float
    p99_us: float
    drive_cpu: float
    initiator_cpu: float
    switches: float
    calls: float | None         # system calls of the drives for each I/O; None: not counted
    cpu_ratio: float
    cpu_ratio_low: float
    cpu_ratio_high: float
    iops_ratio: float


def wait_line(process: "subprocess.Popen[str]", text: str, timeout_s: float) -> str:
    """What the initiator prints up to a line with this beginning, or all that there is."""
    assert process.stdout is not None
    timer = interrupts.kill_after(process, timeout_s)
    found = ""
    try:
        for line in process.stdout:
            found += line
            if line.startswith(text):
                break
    finally:
        timer.cancel()
    return found


class Running:
    """The drives of a side, which run until the end of the block."""

    def __init__(self, side: Side, benches: list[Bench], pids: list[int]) -> None:
        self.side = side
        self.benches = benches
        self.pids = pids

    def initiators(self, workload: str, seconds: float) -> "list[subprocess.Popen[str]]":
        return [bench.initiator(workload, seconds, who=self.side.load)
                for bench in self.benches]

    def spent(self) -> Spent:
        return sum((cpu.spent(pid) for pid in self.pids), Spent())

    def loaded(self, workload: str, seconds: float,
               begun: Callable[[], None] = lambda: None) -> tuple[list[Any], Spent]:
        """Run a workload; its results, and what the drives used from the time at which all
        initiators were connected to the end of the last workload."""
        processes = self.initiators(workload, seconds)
        try:
            texts = [wait_line(process, "{", CONNECT_S) for process in processes]
            before = self.spent()
            begun()
            texts = [text + wait_line(process, "]", seconds + CONNECT_S)
                     for text, process in zip(texts, processes, strict=True)]
            used = self.spent() - before
            return [self.result(bench, process, text) for bench, process, text
                    in zip(self.benches, processes, texts, strict=True)], used
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.communicate(timeout=LOOK_UP_S)

    def result(self, bench: Bench, process: "subprocess.Popen[str]", text: str) -> Any:
        try:
            _, errors = process.communicate(timeout=CONNECT_S)
        except subprocess.TimeoutExpired:
            raise EssdError(f"{self.side.name}: the initiator did not disconnect within "
                            f"{CONNECT_S} s") from None
        if process.returncode != 0:
            last = (errors.strip() or text.strip() or "no output").splitlines()[-1]
            raise EssdError(f"{self.side.name}: the initiator failed: {last}; see "
                            f"{console_log(bench.folder, 'drive')}")
        return json.loads(text)["workloads"][0]

    def turn(self, workload: str, seconds: float) -> Turn:
        found, used = self.loaded(workload, seconds)
        ios = sum(one["ios"] for one in found)
        return Turn(iops=sum(one["iops"] for one in found),
                    mb_s=sum(one["mb_per_s"] for one in found),
                    mean_us=sum(one["mean_us"] * one["ios"] for one in found) / ios,
                    p99_us=max(one["p99_us"] for one in found),
                    drive_cpu=used.cpu_s / ios * 1e6,
                    initiator_cpu=sum(one["cpu_s"] for one in found) / ios * 1e6,
                    switches=used.switches / ios)

    def calls(self, workload: str) -> float | None:
        """System calls for each I/O; None if they cannot be counted.

        strace slows the drive, so this is a run of its own.
        """
        if shutil.which("strace") is None:
            return None
        with tempfile.TemporaryDirectory(prefix="essd-calls-") as folder:
            counters: list[tuple[subprocess.Popen[bytes], Path]] = []

            def count() -> None:
                for n, pid in enumerate(self.pids):
                    counts = Path(folder) / str(n)
                    counters.append((subprocess.Popen(
                        ["strace", "-f", "-c", "-q", "-o", counts, "-p", str(pid)],
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL), counts))
            try:
                found, _ = self.loaded(workload, CALLS_S, count)
            finally:
                for process, _ in counters:
                    process.send_signal(signal.SIGINT)
                for process, _ in counters:
                    process.wait(LOOK_UP_S)
            totals = [total_calls(counts) for _, counts in counters]
        if None in totals:
            return None
        ios: int = sum(one["ios"] for one in found)
        return sum(n for n in totals if n is not None) / ios


def total_calls(counts: Path) -> int | None:
    """The number of calls in the table that strace -c has written."""
    lines = counts.read_text().splitlines() if counts.exists() else []
    if not lines or not lines[-1].endswith(" total"):
        return None
    return int(lines[-1].split()[3])


@contextlib.contextmanager
def created(side: Side, number: int, program: Path, folder: Path) -> Iterator[list[Bench]]:
    """Create the drives of a side, and delete them at the end."""
    with contextlib.ExitStack() as stack:
        benches: list[Bench] = []
        for n in range(side.drives):
            name = f"bench-{number}-{n}"
            stack.enter_context(claims.claimed(name, "essd bench"))
            setup.forget(name)
            stack.callback(forget, name)
            mtu = side.wish.mtu or 1500
            config = setup.configure(replace(side.wish, name=name, host=False, mtu=mtu))
            place = folder / name
            place.mkdir()
            benches.append(Bench(config, program, place, mtu))
            if side.fill:
                fill_array(benches[-1], name, side.fill)
        yield benches


@contextlib.contextmanager
def running(side: Side, number: int, program: Path, folder: Path) -> Iterator[Running]:
    """Create and start the drives of a side, and write all blocks that are used."""
    with contextlib.ExitStack() as stack:
        benches = stack.enter_context(created(side, number, program, folder))
        started = Running(side, benches, [])
        for bench in benches:       # one by one, because a start takes a core
            first = bench.filler(side.load)
            drive = stack.enter_context(bench.drive())
            started.pids.append(drive.pid)
            bench.result(first, CONNECT_S + FILL_S, drive)
        yield started


def forget(name: str) -> None:
    with interrupts.ignored():
        setup.forget(name)


def fill_array(bench: Bench, name: str, percent: int) -> None:
    """Let the drive start once, so that it has its namespace, and fill its array."""
    process = bench.initiator("4k-randread-qd1", 0.1)
    with bench.drive():
        bench.result(process, CONNECT_S)
    show.note(f"{name}: writing {percent}% of the array")
    nand_look.precondition(name, "", Fill(percent, 0, False, SEED))


def measured(sides: Sequence[Side], workloads: Sequence[str], seconds: float, rounds: int,
             program: Path, row_done: Callable[[Row], None]) -> list[Row]:
    """Run each workload on all sides in turn, several times."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="essd-bench-") as folder, \
            contextlib.ExitStack() as stack:
        started = [stack.enter_context(running(side, n, program, Path(folder)))
                   for n, side in enumerate(sides)]
        for workload in workloads:
            turns: dict[str, list[Turn]] = {side.name: [] for side in sides}
            for n in range(rounds):
                for one in started[::-1 if n % 2 else 1]:
                    turns[one.side.name].append(one.turn(workload, seconds))
            for one in started:
                found.append(row(workload, one.side.name, turns[sides[0].name],
                                 turns[one.side.name], one.calls(workload)))
                row_done(found[-1])
    return found


def row(workload: str, name: str, first: list[Turn], turns: list[Turn],
        calls: float | None) -> Row:
    ratios = [turn.drive_cpu / other.drive_cpu
              for turn, other in zip(turns, first, strict=True)]
    medians = {one.name: statistics.median(getattr(turn, one.name) for turn in turns)
               for one in fields(Turn)}
    return Row(workload, name, **medians, calls=calls, cpu_ratio=statistics.median(ratios),
               cpu_ratio_low=min(ratios), cpu_ratio_high=max(ratios),
               iops_ratio=statistics.median(turn.iops / other.iops for turn, other
                                            in zip(turns, first, strict=True)))


# Output

def machine_line(before: tuple[float, float, float]) -> str:
    """What else this machine did meanwhile."""
    after = os.getloadavg()
    return (f"the machine: {os.cpu_count()} cores; load average {before[0]:.1f} at the "
            f"start and {after[0]:.1f} at the end")


def table_of(rows: list[Row], heading: str, first: str) -> Table:
    """A table of rows, CPU first; `first` is the name of the side with the ratio 1."""
    table = Table(box=None, pad_edge=False)
    for name in ("workload", heading, "CPU", f"/ {first}", "rounds", "switches", "calls",
                 "mean us", "p99 us", "IOPS", f"/ {first}", "MB/s", "limit"):
        table.add_column(name, no_wrap=True,
                         justify="left" if name in ("workload", heading) else "right")
    last = ""
    for one in rows:
        is_first = one.target == first
        table.add_row(
            "" if one.workload == last else one.workload, one.target,
            f"{one.drive_cpu:.1f}", "" if is_first else f"{one.cpu_ratio:.2f}",
            "" if is_first else f"{one.cpu_ratio_low:.2f}-{one.cpu_ratio_high:.2f}",
            f"{one.switches:.2f}", "" if one.calls is None else f"{one.calls:.1f}",
            f"{one.mean_us:.0f}", f"{one.p99_us:.0f}", f"{one.iops:.0f}",
            "" if is_first else f"{one.iops_ratio:.2f}", f"{one.mb_s:.1f}",
            f"{1e6 / one.initiator_cpu:.0f}" if one.initiator_cpu else "")
        last = one.workload
    return table


def show_legend(rows: list[Row], first: str, rounds: int,
                load: tuple[float, float, float]) -> None:
    show.line("CPU: microseconds of CPU time of the drive's QEMU for each I/O; switches, calls: "
              "its context switches and system calls for each I/O")
    show.line(f"/ {first}: divided by the value of {first} in the same round, the median of "
              f"{rounds} rounds; rounds: the smallest and the largest of these ratios of CPU")
    show.line("limit: IOPS with which the initiator alone would keep a core busy")
    if any(one.calls is None for one in rows):
        show.line("calls are not counted: that takes strace, and the right to attach it to the "
                  "drive's QEMU", "yellow")
    show.line(machine_line(load))
    show.line("Compare ratios. CPU time for each I/O grows when the machine is busy, and IOPS "
              "and latencies depend on it more than on the drive.")


def progress_line(one: Row) -> str:
    return (f"{one.workload}, {one.target}: {one.drive_cpu:.1f} us of CPU for each I/O, "
            f"{one.iops:.0f} IOPS")


def now() -> tuple[float, float, float]:
    return os.getloadavg()
