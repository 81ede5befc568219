# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --links`: what each kind of cable costs the drive and a Linux host.

Each link has a drive and a host of its own.  All of them run at the same time, and each
workload goes to one after the other, in changing order.  Costs are compared with those of
the same kind of host on a cable of streams.
"""

import contextlib
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from rich.table import Table

from ..base import cpu, interrupts, show
from ..base.errors import EssdError
from ..instance.config import STOCK, STREAM, UML, VHOST_USER
from ..instance.instance import Instance
from ..instance.steps import Job, wait_target
from ..setup import setup
from ..setup.setup import Wish
from . import bench, contest, turns

if TYPE_CHECKING:
    from .bench import Output

ROUNDS = 3
WORKLOADS = ("4k-randread-qd1", "4k-randread-qd64")


@dataclass(frozen=True)
class Cable:
    name: str
    what: str
    host_kind: str
    link: str
    base: str           # the cable with which it is compared


CABLES = (
    Cable("stream", "emulated host, stream socket", STOCK, STREAM, "stream"),
    Cable("vhost-user", "emulated host, shared memory", STOCK, VHOST_USER, "stream"),
    Cable("uml-datagram", "user-mode Linux, datagrams to a relay, then a stream", UML, STREAM,
          "uml-datagram"),
    Cable("uml-vhost-user", "user-mode Linux, shared memory", UML, VHOST_USER, "uml-datagram"),
)


@dataclass(frozen=True)
class Turn:
    iops: float
    mean_us: float
    p99_us: float
    drive_cpu: float            # microseconds for each I/O
    host_cpu: float             # the same of all processes of the host


@dataclass(frozen=True)
class Row:
    """Medians of the turns; ratios are those to `base` in the same round, if it was
    measured."""

    workload: str
    link: str
    iops: float
    mean_us: float
    p99_us: float
    drive_cpu: float
    host_cpu: float
    drive_ratio: float | None
    host_ratio: float | None
    iops_ratio: float | None


def wanted_cables(only: str) -> list[Cable]:
    found = [cable for cable in CABLES if only.lower() in cable.name]
    if not found:
        raise EssdError(f"--only {only}: no link contains this text; use "
                        f"{', '.join(cable.name for cable in CABLES)}")
    return found


@contextlib.contextmanager
def connected(cable: Cable, mtu: int) -> Iterator[tuple[Job, str]]:
    """A drive and its host, which has written the blocks that are read, and the device."""
    name = f"bench-{cable.name}"
    instance = Instance(name)
    with instance.claimed("essd bench"):
        try:
            setup.forget(name)
            instance.start(setup.configure(Wish(
                name=name, mtu=mtu, block=True, host_kind=cable.host_kind,
                link=cable.link)), bound=True)
            instance.wait_ready("host")
            job = Job.on(instance, "drive")
            wait_target(job)
            job.run(f"nvme connect -t rdma -a {job.addresses[0]} -s 4420 -n {job.nqn} "
                    f"{bench.QUEUES}")
            device = job.device()
            contest.fill(instance, device)
            yield job, device
        finally:
            with interrupts.ignored():
                instance.stop_started()
                setup.forget(name)


def turn(job: Job, device: str, workload: str, seconds: int) -> Turn:
    """Run fio once.  The host's CPU time includes the start of fio."""
    parts = job.instance.status()["parts"]
    pids = [parts[part]["pids"] for part in ("drive", "host")]
    before = [cpu.tree_seconds(some) for some in pids]
    report = contest.fio(job.instance, device, dict(bench.WORKLOADS)[workload], seconds)
    drive_s, host_s = (cpu.tree_seconds(some) - first
                       for some, first in zip(pids, before, strict=True))
    side = report["mixed"]
    if report["error"] or not side["total_ios"]:
        raise EssdError(f"fio: {workload} ended with error {report['error']}")
    late, million = side["clat_ns"], side["total_ios"] / 1e6
    return Turn(side["iops"], late["mean"] / 1000, late["percentile"]["99.000000"] / 1000,
                drive_s / million, host_s / million)


def row(workload: str, cable: Cable, found: dict[str, list[Turn]]) -> Row:
    some, first = found[cable.name], found.get(cable.base)

    def ratio(name: str) -> float | None:
        if first is None or cable.name == cable.base:
            return None
        return float(statistics.median(getattr(one, name) / max(getattr(other, name), 1e-9)
                                       for one, other in zip(some, first, strict=True)))

    return Row(workload, cable.name, **{
        one.name: statistics.median(getattr(turn, one.name) for turn in some)
        for one in fields(Turn)}, drive_ratio=ratio("drive_cpu"),
        host_ratio=ratio("host_cpu"), iops_ratio=ratio("iops"))


def measured(cables: Sequence[Cable], seconds: int, rounds: int, mtu: int,
             row_done: Callable[[Row], None]) -> tuple[list[Row], dict[str, str]]:
    """The rows, and why links were left out."""
    reasons: dict[str, str] = {}
    rows = []
    with contextlib.ExitStack() as stack:
        jobs: dict[str, tuple[Job, str]] = {}
        for cable in cables:
            with show.busy(f"starting drive and host of {cable.name}"):
                try:
                    jobs[cable.name] = stack.enter_context(connected(cable, mtu))
                except EssdError as error:
                    reasons[cable.name] = " ".join(str(error).split())
        for workload in WORKLOADS if jobs else ():
            def act(name: str, workload: str = workload) -> Turn:
                return turn(*jobs[name], workload, seconds)

            found = contest.in_turns(list(jobs), rounds, act)
            for cable in cables:
                if cable.name in jobs:
                    rows.append(row(workload, cable, found))
                    row_done(rows[-1])
    return rows, reasons


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def table_of(rows: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    for n, heading in enumerate(("workload", "link", "CPU", "/ base", "host CPU", "/ base",
                                 "IOPS", "/ base", "mean us", "p99 us")):
        table.add_column(heading, no_wrap=True, justify="left" if n < 2 else "right")
    for one in rows:
        table.add_row(one.workload, one.link, f"{one.drive_cpu:.0f}", number(one.drive_ratio),
                      f"{one.host_cpu:.0f}", number(one.host_ratio), f"{one.iops:.0f}",
                      number(one.iops_ratio), f"{one.mean_us:.0f}", f"{one.p99_us:.0f}")
    return table


def command(seconds: int, rounds: int | None, only: str, mtu: int, output: "Output") -> None:
    """Run `essd bench --links`."""
    rounds = ROUNDS if rounds is None else rounds
    for option, value in (("--seconds", seconds), ("--rounds", rounds)):
        if value < 1:
            raise EssdError(f"{option} {value}: use 1 or more")
    cables = wanted_cables(only)
    load = turns.now()
    rows, reasons = measured(cables, seconds, rounds, mtu, lambda one: show.line(
        f"{one.workload}, {one.link}: {one.drive_cpu:.0f} us of CPU for each I/O, "
        f"{one.iops:.0f} IOPS"))
    if not output.as_json:
        show.line()
        show.console.print(table_of(rows))
        for cable in cables:
            show.line(f"{cable.name}: {cable.what}" + (
                f"; / base: divided by {cable.base} in the same round"
                if cable.base != cable.name else ""))
        show.line("CPU, host CPU: microseconds of CPU time of the drive's QEMU, and of all "
                  "processes of the host, for each I/O; medians of the rounds")
        show.line(turns.machine_line(load))
    for name, reason in reasons.items():
        show.line(f"{name} is left out: {reason}", "yellow")
    output.print_data({"workloads": [asdict(one) for one in rows], "missing": reasons})
    if not rows:
        raise EssdError(f"no link can be measured: {next(iter(reasons.values()))}")
