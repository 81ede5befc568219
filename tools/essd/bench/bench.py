# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench`: compare the drive with Linux nvmet, with the same host and cables.

Each workload runs on both targets in turn, so that other load on the machine
affects both.  CPU times are those of the whole QEMU process of the target and of
the host during each fio run.

An emulated host limits the results by its own work.  The "ceiling" of a row is
the IOPS of a host that never waits for its target: the measured IOPS divided by
the fraction of time in which the host's virtual CPUs were running or waited for a
core of the machine.
"""

import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ..base import cpu, interrupts, show
from ..base.chosen import check_word
from ..base.errors import EssdError
from ..instance.instance import Instance
from ..instance.steps import Job, wait_target
from ..observe import losses
from ..setup import setup
from ..setup.setup import Wish
from ..storage.nand import TIMINGS, VIRTUAL
from . import report as bench_report

NAMES = {"peer": "nvmet"}       # of targets that are called otherwise in the results
ROUNDS = 2
MTU = 1500

# The names are those of --native, too (bench_native.WORKLOADS).
WORKLOADS = [
    ("4k-randread-qd1", "--rw=randread --bs=4k --iodepth=1"),
    ("4k-randread-qd64", "--rw=randread --bs=4k --iodepth=64"),
    ("4k-randwrite-qd1", "--rw=randwrite --bs=4k --iodepth=1"),
    ("4k-randwrite-qd64", "--rw=randwrite --bs=4k --iodepth=64"),
    ("128k-read-qd64", "--rw=read --bs=128k --iodepth=64"),
    ("128k-write-qd64", "--rw=write --bs=128k --iodepth=64"),
]
# nvme connect options, the same for both targets: queue size and I/O queues.
QUEUES = "-Q 64 -i 1"


@dataclass(frozen=True)
class Row:
    workload: str
    target: str
    iops: float
    mb_s: float
    mean_us: float
    p99_us: float
    target_cpu: float           # CPU seconds per million I/Os
    host_cpu: float             # the same for the host guest's QEMU
    host_busy: float            # fraction of time; 1: the host never waits

    @property
    def ceiling(self) -> float:
        """IOPS at which the host's virtual CPUs are always busy."""
        return self.iops / self.host_busy if self.host_busy else 0.0


def process(instance: Instance, part: str) -> int:
    pid = instance.status()["parts"][part]["pid"]
    if pid is None:
        instance.check()
        raise EssdError(f"{part} is not running")
    return int(pid)


def host_threads(job: Job) -> list[int]:
    """Thread ids of the host's virtual CPUs."""
    cpus = job.instance.ask("qmp", part="host", execute="query-cpus-fast",
                            arguments={})
    return [int(one["thread-id"]) for one in cpus]


def measure(job: Job, workload: str, options: str, seconds: int) -> Row:
    device = job.device()
    target, host = (process(job.instance, p) for p in (job.target, "host"))
    command = (f"fio --name=bench --filename={device} --ioengine=libaio --direct=1 "
               f"--size=256m --time_based --runtime={seconds} "
               f"--output-format=json {options}")
    threads = host_threads(job)

    def readings() -> tuple[float, float, float, float]:
        return (cpu.seconds(target), cpu.seconds(host), time.monotonic(),
                sum(cpu.thread_seconds(host, t) for t in threads))

    before = readings()
    output = job.instance.run(command, timeout_s=seconds * 4 + 120, apart=True).output
    after = readings()
    report: dict[str, Any] = json.loads(output[output.index("{"):])["jobs"][0]
    side = report["read" if "read" in options else "write"]
    if report["error"] or not side["total_ios"]:
        raise EssdError(f"fio: {workload} on {job.target} ended with error "
                        f"{report['error']}")
    # fio runs without a ramp time, so every I/O that costs CPU time is counted.
    # The host's CPU time includes the start of fio, about 0.3 s under emulation.
    every = side["total_ios"]
    return Row(workload, job.target, side["iops"], side["bw_bytes"] / 1e6,
               side["clat_ns"]["mean"] / 1000,
               side["clat_ns"]["percentile"]["99.000000"] / 1000,
               (after[0] - before[0]) * 1e6 / every,
               (after[1] - before[1]) * 1e6 / every,
               (after[3] - before[3]) / (after[2] - before[2]) / len(threads))


def fill(job: Job) -> None:
    """Write all blocks first, so that no read hits unallocated media."""
    job.quiet(f"fio --name=fill --filename={job.device()} --ioengine=libaio "
              "--direct=1 --rw=write --bs=128k --iodepth=16 --size=256m")


def name_of(target: str) -> str:
    return NAMES.get(target, target)


def wanted_workloads(only: str, workloads: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The workloads whose names contain a text; EssdError if there is none."""
    found = [workload for workload in workloads if only.lower() in workload[0]]
    if not found:
        raise EssdError(f"--only {only}: no workload contains this text; use "
                        f"{', '.join(workload for workload, _ in workloads)}")
    return found


def run(jobs: list[Job], seconds: int, rounds: int, workloads: list[tuple[str, str]],
        row_done: Callable[[Row], None]) -> tuple[list[Row], losses.Losses]:
    """Run all workloads on all targets in turn.

    Returns the medians of the rounds, and the frames that were lost meanwhile.
    """
    before = losses.read(jobs[0].instance)
    for job in jobs:
        job.run(f"nvme connect -t rdma -a {job.addresses[0]} -s 4420 "
                f"-n {job.nqn} {QUEUES}")
        fill(job)
    medians = []
    for workload, options in workloads:
        rows: dict[str, list[Row]] = {job.target: [] for job in jobs}
        for _ in range(rounds):
            for job in jobs:
                rows[job.target].append(measure(job, workload, options, seconds))
        for job in jobs:
            runs = rows[job.target]
            middle = Row(workload, job.target, *(
                statistics.median(getattr(r, name) for r in runs)
                for name in ("iops", "mb_s", "mean_us", "p99_us", "target_cpu",
                             "host_cpu", "host_busy")))
            medians.append(middle)
            row_done(middle)
    lost = losses.grown(before, losses.read(jobs[0].instance))
    show.line(losses.words(lost))
    for job in jobs:
        job.run(f"nvme disconnect -n {job.nqn}")
    return medians, lost


def check_known(lost: losses.Losses) -> None:
    """EssdError if nobody knows whether repeated frames are a part of the figures."""
    if lost.unknown:
        raise EssdError("these results may be those of a connection that lost frames: "
                        + losses.words(lost))


def show_rows(rows: list[Row]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("workload", "target", "IOPS", "MB/s", "mean us", "p99 us",
                    "CPU", "host CPU", "ceiling", "of it"):
        table.add_column(heading, no_wrap=True, justify="left" if heading in
                         ("workload", "target") else "right")
    for row in rows:
        table.add_row(row.workload, name_of(row.target), f"{row.iops:.0f}",
                      f"{row.mb_s:.1f}", f"{row.mean_us:.0f}", f"{row.p99_us:.0f}",
                      f"{row.target_cpu:.0f}", f"{row.host_cpu:.0f}",
                      f"{row.ceiling:.0f}", f"{100 * row.iops / row.ceiling:.0f}%")
    show.console.print(table)
    show.line("CPU: CPU seconds of the target's QEMU process per million I/Os; host CPU: "
              "the same for the host's QEMU; ceiling: IOPS of a host that never waits "
              "for its target; of it: IOPS as a part of the ceiling")


def show_shares(rows: list[Row]) -> None:
    """Print which part of nvmet's CPU the drive takes, if both were measured."""
    by_workload: dict[str, dict[str, float]] = {}
    for row in rows:
        by_workload.setdefault(row.workload, {})[row.target] = row.target_cpu
    for workload, cost in by_workload.items():
        if len(cost) == 2:
            show.line(f"{workload}: the drive takes "
                      f"{100 * cost['drive'] / cost['peer']:.0f}% of nvmet's CPU")


@dataclass(frozen=True)
class Output:
    """What becomes of the results besides a table."""

    as_json: bool = False
    html: Path | None = None
    compare: str | None = None      # results of an earlier run, or an earlier drive

    @property
    def base(self) -> str | None:
        """The earlier drive that runs beside this one, if that was asked for."""
        from . import base as bench_base
        return self.compare if self.compare and bench_base.is_base(self.compare) else None

    def earlier(self) -> list[bench_report.Result] | None:
        return bench_report.load(Path(self.compare)) if self.compare else None

    def write(self, data: Any, earlier: list[bench_report.Result] | None,
              title: str) -> None:
        """Write the results, as --json prints them, in the forms asked for."""
        results = bench_report.results_of(data)
        if earlier is not None and not self.as_json:
            show.line()
            show.line(f"beside {self.compare}:")
            show.console.print(bench_report.compare(earlier, results))
        if self.html:
            bench_report.write_page(self.html, results, earlier, title)
        self.print_data(data)

    def print_data(self, data: Any) -> None:
        if self.as_json:
            print(json.dumps(data, indent=2))


@dataclass(frozen=True)
class Timing:
    """Whether operations of the NAND flash take time; without a name, the default holds."""

    name: str | None = None
    seed: int | None = None     # only of virtual time
    mips: int | None = None     # the same
    steady: bool = False        # the same: random writes while garbage is collected

    @property
    def is_virtual(self) -> bool:
        return self.name == VIRTUAL

    @property
    def nand(self) -> str | None:
        """The drive's NAND options."""
        return f"timing={self.name}" if self.name else None

    def check(self, native: bool, silent: int, nand: str | None, block: bool,
              target: str = "both") -> None:
        if self.name is not None:
            check_word("--timing", self.name, (*TIMINGS, VIRTUAL))
        if self.seed is not None and not self.is_virtual:
            raise EssdError("--seed: only with --native --timing virtual")
        if self.mips is not None and not self.is_virtual:
            raise EssdError("--mips: only with --native --timing virtual")
        if self.steady and not self.is_virtual:
            raise EssdError("--steady: only with --native --timing virtual")
        if self.steady and (self.seed is not None or self.mips is not None):
            raise EssdError("--steady: not with --seed or --mips: instructions take no time")
        if self.is_virtual and not native:
            raise EssdError("--timing virtual: only with --native; a Linux host and QEMU "
                            "run in real time")
        if self.is_virtual and silent:
            raise EssdError("--timing virtual: not with --silent")
        if self.name and target == "nvmet":
            raise EssdError("--timing is about the drive: not with --target nvmet")
        if self.name and block:
            raise EssdError("--timing is about NAND flash: not with --block")
        if self.name and nand is not None and not self.is_virtual:
            raise EssdError(f"--timing {self.name}: with --nand, write it there: "
                            f"--nand {nand},timing={self.name}")


def refuse(kind: str, target: str, silent: int, timing: Timing,
           others: tuple[tuple[str, object], ...] = ()) -> None:
    """EssdError for options of other kinds of runs than those of several drives in turns."""
    for option, is_given in (("--target", target != "both"), ("--silent", silent),
                             ("--timing", timing.name), *others):
        if is_given:
            raise EssdError(f"{option} does not go with {kind}, which runs several drives in "
                            "turns, with essd's own initiator")


def goals_command(native: bool, seconds: float, rounds: int | None, only: str,
                  mtu: int | None, target: str, silent: int, nand: str | None,
                  output: Output, block: bool, timing: Timing) -> None:
    from . import goals_report as bench_goals
    refuse("--goals", target, silent, timing, (
        ("--native", native), ("--nand", nand), ("--block", block), ("--html", output.html),
        ("--steady", timing.steady),
        ("--compare FILE", output.compare is not None and output.base is None)))
    if output.as_json:
        show.only_data()
    bench_goals.command(seconds, rounds, only, mtu, output)


def links_command(native: bool, seconds: float, rounds: int | None, only: str, mtu: int,
                  target: str, silent: int, nand: str | None, output: Output, block: bool,
                  timing: Timing) -> None:
    from . import links as bench_links
    for option, is_given in (("--native", native), ("--target", target != "both"),
                             ("--silent", silent), ("--nand", nand), ("--block", block),
                             ("--timing", timing.name), ("--steady", timing.steady),
                             ("--html", output.html), ("--compare", output.compare)):
        if is_given:
            raise EssdError(f"{option} does not go with --links, which runs a drive and a Linux "
                            "host for each kind of cable")
    if output.as_json:
        show.only_data()
    bench_links.command(whole(seconds), rounds, only, mtu, output)


def whole(seconds: float) -> int:
    """EssdError for a part of a second, which fio and virtual time do not take here."""
    if seconds != int(seconds):
        raise EssdError(f"--seconds {seconds:g}: use whole seconds, except with --native, "
                        "--growth, --goals and --compare BASE")
    return int(seconds)


def command(native: bool, seconds: float, rounds: int | None, only: str, mtu: int | None,
            target: str, silent: int, nand: str | None, output: Output,
            block: bool = False, timing: Timing | None = None, mount: bool = False,
            growth: bool = False, goals: bool = False, links: bool = False) -> None:
    """Run `essd bench`."""
    kinds = [kind for kind, is_given in (("--goals", goals), ("--links", links),
                                         ("--mount", mount), ("--growth", growth)) if is_given]
    if len(kinds) > 1:
        raise EssdError(f"{kinds[1]} does not go with {kinds[0]}")
    if goals:
        goals_command(native, seconds, rounds, only, mtu, target, silent, nand, output, block,
                      timing or Timing())
        return
    mtu = MTU if mtu is None else mtu
    if links:
        links_command(native, seconds, rounds, only, mtu, target, silent, nand, output, block,
                      timing or Timing())
        return
    if mount:
        from . import mount as bench_mount
        for option, is_given in (
                ("--native", native), ("--only", only), ("--silent", silent),
                ("--block", block), ("--timing", timing is not None and timing.name),
                ("--steady", timing is not None and timing.steady),
                ("--html", output.html), ("--compare", output.compare),
                ("--target", target != "both")):
            if is_given:
                raise EssdError(f"{option} does not go with --mount, which starts a drive "
                                "with NAND flash again and again")
        if output.as_json:
            show.only_data()
        bench_mount.command(bench_mount.ROUNDS if rounds is None else rounds, nand, output)
        return
    given_rounds, rounds = rounds, ROUNDS if rounds is None else rounds
    check_word("--target", target, ("both", "drive", "nvmet"))
    timing = timing or Timing()
    timing.check(native, silent, nand, block, target)
    if output.as_json:
        show.only_data()
    if growth:
        from . import growth as bench_growth
        refuse("--growth", target, silent, timing, (
            ("--nand", nand), ("--compare", output.compare)))
        bench_growth.command(seconds, given_rounds, only, mtu, block, output)
        return
    if output.base is not None:
        from . import base as bench_base
        refuse("--compare BASE", target, silent, timing)
        if nand is not None and block:
            raise EssdError("--nand does not go with --block: a drive has either a NAND array "
                            "or a block medium")
        bench_base.command(output.base, seconds, given_rounds, only, mtu, block, nand, output)
        return
    earlier = output.earlier()      # a file that cannot be read is refused first
    if timing.is_virtual:
        from . import virtual as bench_virtual
        if timing.steady:
            if only or output.html or output.compare:
                raise EssdError("--steady has one workload and no report: not with --only, "
                                "--html or --compare")
            bench_virtual.steady_command(nand, output.as_json)
            return
        mips = bench_virtual.MIPS if timing.mips is None else timing.mips
        bench_virtual.command(whole(seconds), only, nand, timing.seed or 1, mips, output, earlier)
        return
    if nand is not None and silent:
        raise EssdError("--nand: not with --silent")
    if nand is not None and target != "both":
        raise EssdError(f"--nand measures two drives: not with --target {target}")
    if block and (nand is not None or target == "nvmet"):
        raise EssdError("--block is for a drive alone: not with --nand, which measures both "
                        "media, and not with --target nvmet")
    if nand is not None and not native:
        from . import media as bench_media
        bench_media.command(whole(seconds), rounds, only, mtu, nand, output, earlier)
        return
    if nand is not None:
        from . import nand as bench_nand
        bench_nand.command(seconds, rounds, only, mtu, nand, output, earlier)
        return
    if native:
        from . import native as bench_native
        bench_native.command(seconds, only, mtu, silent, output, earlier, block,
                             timing.nand)
        return
    if silent:
        raise EssdError("--silent: only with --native")
    workloads = wanted_workloads(only, WORKLOADS)
    fio_seconds = whole(seconds)
    instance = Instance("bench")
    wish = Wish(name="bench", mtu=mtu, beside=target == "both", block=block,
                nand=None if target == "nvmet" else timing.nand,
                target="nvmet" if target == "nvmet" else "drive")
    if target == "nvmet":
        wish.size = "8"
    with instance.claimed("essd bench"):
        try:
            setup.forget("bench")
            instance.start(setup.configure(wish), bound=True)
            instance.wait_ready("host")
            names = {"both": ["drive", "peer"], "drive": ["drive"], "nvmet": ["peer"]}
            jobs = [Job.on(instance, name) for name in names[target]]
            for job in jobs:
                wait_target(job)
            rows, lost = run(jobs, fio_seconds, rounds, workloads, lambda row: show.line(
                f"{row.workload}, {name_of(row.target)}: {row.iops:.0f} IOPS"))
        finally:
            with interrupts.ignored():
                instance.stop_started()
                setup.forget("bench")
    if not output.as_json:
        show_rows(rows)
        show_shares(rows)
    output.write([dataclasses.asdict(row) for row in rows], earlier,
                 "essd bench: the drive and Linux nvmet, with a Linux host")
    check_known(lost)
