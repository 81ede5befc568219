# SPDX-License-Identifier: BSD-2-Clause
"""The turns of `essd compare`: each workload goes to one row after the other.

All rows are connected all the time, and one is active.  The order changes in each round,
so that other load of the machine hits all alike.
"""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ..base import cpu
from ..base.errors import EssdError
from ..instance.instance import Instance
from .contenders import Contender, HOST, wire

SPAN = "48m"                # of each medium, which the workloads use
JOBS = 16
COMMAND_S = 120             # beyond the time that a workload takes
BLOCK = 512
MIB = 1 << 20
COPY_TO = 64 * MIB          # where copies go; their sources begin at 0

WORKLOADS = (
    ("4k-mixed-jobs", f"--rw=randrw --rwmixread=70 --bs=4k --iodepth=1 --numjobs={JOBS} "
                      "--thread"),
    ("4k-randread-qd1", "--rw=randread --bs=4k --iodepth=1"),
    ("4k-randread-qd128", "--rw=randread --bs=4k --iodepth=128"),
    ("128k-read", "--rw=read --bs=128k --iodepth=8"),
    ("128k-write", "--rw=write --bs=128k --iodepth=8"),
)


@dataclass(frozen=True)
class Turn:
    """One run of a workload on one row; the names are those of --json."""

    iops: float
    mb_s: float
    mean_us: float
    p50_us: float
    p99_us: float
    p999_us: float
    target_cpu: float           # CPU seconds per million I/Os
    host_cpu: float
    frames: float               # on the host's cable, both directions, for each I/O
    bytes: float
    ios: float                  # of the whole turn


@dataclass(frozen=True)
class Shape:
    """What is copied at a time."""

    name: str
    ranges: int
    bytes: int                  # of each range
    times: int                  # copies in one turn


SHAPES = (Shape("copy-8k-x1", 1, 8 << 10, 20), Shape("copy-2m-x16", 16, 2 * MIB, 1))
BY_DRIVE, BY_HOST = "drive", "host"


@dataclass(frozen=True)
class CopyTurn:
    """Copies in one turn; each figure is for one copy."""

    ms: float                   # with the start of programs
    start_ms: float             # of as many starts of the same programs that do nothing
    target_cpu_ms: float
    host_cpu_ms: float
    frames: float
    bytes: float


@dataclass(frozen=True)
class Reading:
    """What the target, the host and the cable have used so far."""

    target_s: float
    host_s: float
    frames: int
    bytes: int

    @classmethod
    def of(cls, instance: Instance, row: Contender) -> "Reading":
        parts = instance.status()["parts"]
        return cls(cpu.tree_seconds(parts[row.target]["pids"]),
                   cpu.tree_seconds(parts[HOST]["pids"]), *wire(instance, row.card))

    def since(self, before: "Reading") -> "Reading":
        return Reading(self.target_s - before.target_s, self.host_s - before.host_s,
                       self.frames - before.frames, self.bytes - before.bytes)


def turn_of(report: Any, used: Reading) -> Turn:
    """The figures in fio's report of one run, and what was used for it."""
    side = report["mixed"]
    every = side["total_ios"]
    if report["error"] or not every:
        raise EssdError(f"fio ended with error {report['error']} after {every} I/Os")
    late = side["clat_ns"]
    p50, p99, p999 = (late["percentile"][f"{rank:.6f}"] / 1000 for rank in (50, 99, 99.9))
    return Turn(side["iops"], side["bw_bytes"] / 1e6, late["mean"] / 1000, p50, p99, p999,
                used.target_s * 1e6 / every, used.host_s * 1e6 / every,
                used.frames / every, used.bytes / every, every)


def fio(instance: Instance, device: str, options: str, seconds: int) -> Any:
    """Run fio in the host; its report, in which reads and writes are one."""
    output = instance.run(
        f"fio --name=compare --filename={device} --ioengine=libaio --direct=1 --size={SPAN} "
        f"--time_based --runtime={seconds} --group_reporting --unified_rw_reporting=mixed "
        f"--percentile_list=50:99:99.9 --output-format=json {options}",
        timeout_s=4 * seconds + COMMAND_S, apart=True).output
    return json.loads(output[output.index("{"):])["jobs"][0]


def fill(instance: Instance, device: str) -> None:
    """Write all blocks that the workloads read."""
    instance.run(f"fio --name=fill --filename={device} --ioengine=libaio --direct=1 --rw=write "
                 f"--bs=128k --iodepth=8 --size={SPAN}", timeout_s=COMMAND_S)


def fill_all(instance: Instance, rows: Sequence[Contender], devices: dict[str, str]) -> None:
    filled = set()
    for row in rows:
        if row.medium not in filled:
            fill(instance, devices[row.name])
            filled.add(row.medium)


# Copies

def copy_commands(device: str, shape: Shape, by: str) -> tuple[str, str]:
    """The command for one copy, and one that starts the same programs only."""
    size, blocks = shape.bytes, shape.bytes // BLOCK
    # The sources are apart from each other, as the parts of a file can be.
    if by == BY_DRIVE:
        sources = ",".join(str(2 * n * blocks) for n in range(shape.ranges))
        counts = ",".join([str(blocks - 1)] * shape.ranges)
        return (f"nvme copy {device} --sdlba={COPY_TO // BLOCK} --slbs={sources} "
                f"--blocks={counts}", "nvme version")
    return (" && ".join(
        f"dd if={device} of={device} bs={size} count=1 skip={2 * n} "
        f"seek={COPY_TO // size + n} iflag=direct oflag=direct conv=notrunc status=none"
        for n in range(shape.ranges)),
        " && ".join(["dd if=/dev/null of=/dev/null status=none"] * shape.ranges))


def seconds_of(instance: Instance, command: str, times: int) -> float:
    """How long a command takes by this computer's clock, done so many times in the host."""
    begin = time.monotonic()
    instance.run(f"i=0; while [ $i -lt {times} ]; do {{ {command}; }} > /dev/null || exit 1; "
                 "i=$((i + 1)); done", timeout_s=COMMAND_S, apart=True)
    return time.monotonic() - begin


def copy_turn(instance: Instance, row: Contender, device: str, shape: Shape,
              by: str) -> CopyTurn:
    command, start = copy_commands(device, shape, by)
    start_s = seconds_of(instance, start, shape.times)
    before = Reading.of(instance, row)
    taken_s = seconds_of(instance, command, shape.times)
    used = Reading.of(instance, row).since(before)
    return CopyTurn(*(value / shape.times for value in (
        taken_s * 1e3, start_s * 1e3, used.target_s * 1e3, used.host_s * 1e3, used.frames,
        used.bytes)))


# Rounds

def medians(turns: Sequence[Any]) -> dict[str, float]:
    return {one.name: statistics.median(getattr(turn, one.name) for turn in turns)
            for one in fields(turns[0])}


def in_turns(names: Sequence[str], rounds: int, act: Callable[[str], Any]) -> dict[str, list[Any]]:
    """What `act` returns for each name in each round, which begins with another name."""
    found: dict[str, list[Any]] = {name: [] for name in names}
    for n in range(rounds):
        first = n % len(names)
        for name in (*names[first:], *names[:first]):
            found[name].append(act(name))
    return found


class Contest:
    """The rows that are connected, and what is told about each turn.

    A row that fails has no more turns; `reasons` then says why, and the others go on.
    """

    def __init__(self, instance: Instance, rows: Sequence[Contender], devices: dict[str, str],
                 rounds: int, progress: Callable[[str], None]) -> None:
        self.instance = instance
        self.rows = {row.name: row for row in rows if row.name in devices}
        self.devices = devices
        self.rounds = rounds
        self.progress = progress
        self.reasons: dict[str, str] = {}

    def turn(self, workload: str, row: Contender, act: Callable[[], Any]) -> Any:
        """What `act` returns; None for a row that has failed.  EssdError if a part has."""
        if row.name in self.reasons:
            return None
        try:
            return act()
        except EssdError as error:
            self.instance.check()
            self.reasons[row.name] = f"from {workload} on: {error}"
            return None

    def run(self, workload: str, seconds: int) -> list[dict[str, Any]]:
        """One workload on all rows: the medians, and the lowest and highest IOPS."""
        options = dict(WORKLOADS)[workload]

        def act(name: str) -> Turn:
            row = self.rows[name]
            before = Reading.of(self.instance, row)
            report = fio(self.instance, self.devices[name], options, seconds)
            return turn_of(report, Reading.of(self.instance, row).since(before))

        def turn(name: str) -> Any:
            self.progress(f"{workload}, {name}")
            return self.turn(workload, self.rows[name], lambda: act(name))

        found = in_turns(list(self.rows), self.rounds, turn)
        return [{"workload": workload, "row": name, **medians(turns),
                 "iops_low": min(turn.iops for turn in turns),
                 "iops_high": max(turn.iops for turn in turns)}
                for name, turns in found.items() if name not in self.reasons]

    def copy(self, shape: Shape) -> list[dict[str, Any]]:
        """Copy by the drive and through the host, by each row that can."""
        ways = {f"{row.name} {by}": (row, by) for row in self.rows.values() if row.copies
                for by in (BY_DRIVE, BY_HOST)}
        if not ways:
            return []

        def turn(way: str) -> Any:
            self.progress(f"{shape.name}, {way}")
            row, by = ways[way]
            return self.turn(shape.name, row, lambda: copy_turn(
                self.instance, row, self.devices[row.name], shape, by))

        found = in_turns(list(ways), self.rounds, turn)
        return [{"workload": shape.name, "row": ways[way][0].name, "by": ways[way][1],
                 **medians(turns)} for way, turns in found.items()
                if ways[way][0].name not in self.reasons]
