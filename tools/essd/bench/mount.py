# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --mount`: how long a drive with NAND flash takes to start, and its memory.

The firmware measures how long the medium's mount takes, and writes it to the console.  A
new drive, one with little data and one that is nearly full are started again and again:
after an orderly stop, and after a power cut while a host writes to random places.
"""

import dataclasses
import re
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ..base import cpu, interrupts, show
from ..base.errors import EssdError
from ..drive import mgmt
from ..instance.config import Nand
from ..instance.instance import Instance
from ..setup import setup
from ..setup.setup import Wish
from ..storage import nand, nand_look
from ..storage.nand_look import Fill
from .native import Bench, build_initiator

if TYPE_CHECKING:
    from .bench import Output

NAME = "bench-mount"
ROUNDS = 5
# What the drives hold.  4% of 8 GiB are 328 MiB.
CONTENTS = {"4% written": Fill(4), "80% written, as much again at random": Fill(80, 1)}
LOAD = "4k-randwrite-qd64"
# Few writes, so that the drive holds about as much at the last start as at the first one.
LOAD_S = 0.3        # of writes, before the memory of the drive is read again
CUT_S = 0.2         # after so much time of writes, the power is cut
IDLE_S = 2.0        # before the memory is read
READY_S = 120
READY = re.compile(r"ftl: ready after (\d+) ms, (\d+) rows")


@dataclass(frozen=True)
class Start:
    mount_ms: float
    rows_read: float        # rows of the flash that the mount has read
    idle_mib: float         # resident memory of QEMU after the start
    used_mib: float | None  # the same, after writes of a host
    file_mib: float         # disk space of the array's file


@dataclass(frozen=True)
class Row(Start):
    """Starts of one kind: the median of each figure; `file_mib` is that of the first start."""

    contents: str
    start: str              # "new", "stop" or "cut": what was before the start
    starts: int             # how many
    most_mount_ms: float    # of the slowest start


def median(contents: str, start: str, starts: list[Start]) -> Row:
    middle: dict[str, Any] = {}
    for field in dataclasses.fields(Start):
        values = [getattr(one, field.name) for one in starts]
        middle[field.name] = None if None in values else statistics.median(values)
    middle["file_mib"] = starts[0].file_mib     # The file grows from cut to cut.
    return Row(**middle, contents=contents, start=start, starts=len(starts),
               most_mount_ms=max(one.mount_ms for one in starts))


def ready_lines(console: Path) -> list[tuple[int, int]]:
    """Milliseconds of the mount, and rows that it has read, for each start so far."""
    text = console.read_text(errors="replace") if console.exists() else ""
    return [(int(ms), int(rows)) for ms, rows in READY.findall(text)]


class Machine:
    """The drive under test, in an instance without a host."""

    def __init__(self, wish: Wish, program: Path) -> None:
        self.wish = wish
        self.program = program
        self.instance = Instance(wish.name)

    def start(self) -> None:
        self.instance.start(self.config, bound=True)
        self.instance.wait_started()

    def stop(self) -> None:
        mgmt.shut_down(self.instance)
        self.instance.stop()

    def start_new(self) -> None:
        setup.forget(self.wish.name)
        self.config = setup.configure(self.wish)
        self.start()

    @property
    def array(self) -> Nand:
        assert self.config.drive is not None and self.config.drive.nand is not None
        return self.config.drive.nand

    def wait_ready(self, boots: int = 1) -> tuple[int, int]:
        """Wait for the mount of the last start; earlier ones are on the console, too."""
        console = self.instance.file("console.log")
        deadline = time.monotonic() + READY_S
        while len(found := ready_lines(console)) < boots:
            self.instance.check()
            if time.monotonic() > deadline:
                raise EssdError(f"the drive was not ready within {READY_S} s; see {console}")
            time.sleep(0.05)
        return found[-1]

    def idle_mib(self) -> float:
        time.sleep(IDLE_S)
        return cpu.resident_mib(int(self.instance.status()["parts"]["drive"]["pid"]))

    def file_mib(self) -> float:
        return Path(self.array.path).stat().st_blocks * 512 / (1 << 20)

    def initiator(self) -> Bench:
        return Bench(self.config, self.program, self.instance.folder, 1500)

    def write(self, span_mib: int) -> None:
        self.initiator().load(LOAD, LOAD_S, 0, span_mib)

    def cut_under_writes(self, span_mib: int) -> None:
        """Cut the power while a host writes."""
        with self.initiator().initiator(LOAD, READY_S, 0, span_mib) as process:
            timer = interrupts.kill_after(process, READY_S)
            try:
                assert process.stdout is not None
                if not process.stdout.readline():   # It prints a line when it is connected.
                    raise EssdError("the initiator got no connection; see "
                                    f"{self.instance.file('console.log')}")
                time.sleep(CUT_S)
                if process.poll() is not None:
                    raise EssdError("the initiator has ended before the power cut")
                self.instance.ask("power-cut")
            finally:
                timer.cancel()
                process.kill()


def measure_new(machine: Machine, rounds: int) -> list[Row]:
    starts = []
    for n in range(rounds):
        show.note(f"start {n + 1} of a new drive")
        machine.start_new()
        ready = machine.wait_ready()
        starts.append(Start(*ready, machine.idle_mib(), None, machine.file_mib()))
        machine.stop()
    return [median("nothing", "new", starts)]


def measure(machine: Machine, contents: str, fill: Fill, rounds: int) -> list[Row]:
    """Fill a drive, and start it after stops and after power cuts in turn."""
    machine.start_new()         # It creates its namespace.
    machine.wait_ready()
    machine.stop()
    nand_look.precondition(machine.wish.name, "", fill)
    space = machine.array.capacity or nand.look(Path(machine.array.path))["space_bytes"]
    span_mib = (space * fill.percent // 100) >> 20
    stopped, cut = [], []
    for n in range(rounds):
        show.note(f"start {n + 1} after a stop and after a power cut; {contents}")
        machine.start()
        ready = machine.wait_ready()
        file_mib, idle_mib = machine.file_mib(), machine.idle_mib()
        machine.write(span_mib)
        stopped.append(Start(*ready, idle_mib, machine.idle_mib(), file_mib))
        machine.cut_under_writes(span_mib)
        machine.instance.ask("power-on")
        ready = machine.wait_ready(boots=2)
        cut.append(Start(*ready, machine.idle_mib(), None, machine.file_mib()))
        machine.stop()
    return [median(contents, "stop", stopped), median(contents, "cut", cut)]


def run(machine: Machine, rounds: int) -> list[Row]:
    rows = measure_new(machine, rounds)
    for contents, fill in CONTENTS.items():
        rows += measure(machine, contents, fill, rounds)
    return rows


def show_rows(rows: list[Row]) -> None:
    table = Table(box=None, pad_edge=False)
    for n, heading in enumerate(("contents", "start after", "starts", "mount ms", "slowest",
                                 "rows read", "idle MiB", "after writes", "file MiB")):
        table.add_column(heading, no_wrap=True, justify="left" if n < 2 else "right")
    for row in rows:
        table.add_row(row.contents, row.start, str(row.starts), f"{row.mount_ms:.0f}",
                      f"{row.most_mount_ms:.0f}", f"{row.rows_read:.0f}",
                      f"{row.idle_mib:.0f}",
                      "" if row.used_mib is None else f"{row.used_mib:.0f}",
                      f"{row.file_mib:.0f}")
    show.console.print(table)
    show.line("start after: new: a new drive; stop: an orderly power-off; cut: a power cut during "
              "random writes; idle MiB: resident memory of the drive's QEMU; after writes: "
              f"the same, after {LOAD_S} s of random writes; file MiB: disk space of the "
              "array's file at the first of the starts")


def command(rounds: int, wanted: str | None, output: "Output") -> None:
    """Run `essd bench --mount`."""
    if rounds < 1:
        raise EssdError(f"--rounds {rounds}: use 1 or more")
    machine = Machine(Wish(name=NAME, host=False, nand=wanted), build_initiator())
    with machine.instance.claimed("essd bench"):
        try:
            rows = run(machine, rounds)
        finally:
            with interrupts.ignored():
                machine.instance.stop_started()
                setup.forget(NAME)
    if not output.as_json:
        show_rows(rows)
    output.print_data([dataclasses.asdict(row) for row in rows])
