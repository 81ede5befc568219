# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --native`: measure the drive with essd's own initiator.

Without a Linux host, the drive itself limits the results.  The initiator
(tests/bench) listens on the socket that the drive's netdev connects to, once for
each workload.  The time from starting QEMU to a connection on port 4420 and the
cost of an idle drive are measured too.
"""

import contextlib
import dataclasses
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ..base import claims, cpu, interrupts, show
from ..base.errors import EssdError, LOOK_UP_S
from ..build import native_build
from ..instance.config import Config, console_log, part_file, process_log
from ..machine.drive import drive_command
from ..setup import setup
from ..setup.setup import Wish
from .report import Result

if TYPE_CHECKING:
    from .bench import Output

NAME = "bench-native"
CONNECT_S = 60
POWER_ON_LOAD_S = 0.1   # of I/O after a start that is measured
IDLE_S = 3.0
SETTLE_S = 1.0
SILENT_END_S = 12.0     # the drive's retries to a silent host end after 8 s
SILENT_MOST = 60        # hosts
SILENT_MOST_S = 4       # so that they do not end during a measurement
SPAN_MIB = 256          # of the medium, which the workloads use
FILL = "128k-write-qd64"
FILL_S = 60.0           # at most
WORKLOADS = ("4k-randread-qd1", "4k-randread-qd64", "4k-randwrite-qd1",
             "4k-randwrite-qd64", "128k-read-qd64", "128k-write-qd64")


@dataclass(frozen=True)
class Row:
    workload: str
    iops: float
    mb_s: float
    mean_us: float
    p99_us: float
    drive_cpu: float            # CPU seconds per million I/Os
    initiator_cpu: float
    target: str = "drive"       # or what --nand compares: "block" and "nand"


@dataclass(frozen=True)
class Load:
    """Who loads the drive: hosts, their queues, and what they use of it."""

    hosts: int = 1
    queues: int = 1             # of each host
    depth: int = 0              # commands outstanding in all queues; 0: as the workload says
    namespaces: int = 1
    ports: int = 1              # the hosts are divided among these
    span_mib: int = SPAN_MIB

    def options(self, config: Config, folder: Path) -> list[str]:
        """The initiator's options for this load and these cables."""
        links = [config.link(n) for n in range(self.ports)]
        return [*(word for link in links for word in (
                    "--listen", str(link.socket(folder)), "--peer", link.target_address,
                    "--local", link.hosts[0].partition("/")[0])),
                "--hosts", str(self.hosts), "--queues", str(self.queues),
                "--depth", str(self.depth), "--namespaces", str(self.namespaces),
                "--span-mib", str(self.span_mib)]


@dataclass(frozen=True)
class Facts:
    power_on_s: float           # from starting QEMU to a connection on 4420
    idle_mib: float
    idle_cpu: float             # fraction of one core
    loaded_mib: float


def build_initiator() -> Path:
    """Build the initiator for this machine, without sanitizers."""
    return native_build.native_program("fast", "tests/bench/native_initiator",
                                  "the initiator")


class Bench:
    def __init__(self, config: Config, program: Path, folder: Path,
                 mtu: int) -> None:
        assert config.drive is not None
        self.config = config
        self.nqn = config.drive.nqn
        self.link = config.link(0)
        self.program = program
        self.folder = folder
        self.mtu = mtu

    def initiator(self, workload: str, seconds: float, silent: int = 0,
                  span_mib: int = SPAN_MIB, who: Load | None = None,
                  once: bool = False) -> "subprocess.Popen[str]":
        """Start the initiator; it listens when this function returns.

        With `once`, it ends when it has used the whole area.
        """
        who = who or Load(span_mib=span_mib)
        for n in range(who.ports):
            self.config.link(n).socket(self.folder).unlink(missing_ok=True)
        socket = self.link.socket(self.folder)
        process = subprocess.Popen(
            [self.program, *who.options(self.config, self.folder), "--nqn", self.nqn,
             "--mtu", str(self.mtu), "--seconds", str(seconds),
             "--only", workload, "--silent", str(silent), *["--once"] * once],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        while not socket.exists() and process.poll() is None:
            time.sleep(0.002)
        return process

    def filler(self, who: Load | None = None) -> "subprocess.Popen[str]":
        """Start an initiator that writes all blocks that the workloads use.

        Reads of blocks that were never written cost less than those of others.
        """
        return self.initiator(FILL, FILL_S, who=who, once=True)

    def result(self, process: "subprocess.Popen[str]", timeout_s: float,
               drive: "subprocess.Popen[bytes] | None" = None) -> Any:
        """What the initiator has measured.

        With `drive`, an EssdError comes at once if the drive ends, and not after the time.
        """
        if drive is not None:
            self.wait_beside(process, timeout_s, drive)
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate(timeout=LOOK_UP_S)
            raise EssdError("the initiator got no connection or no answer within "
                            f"{timeout_s:.0f} s; see {console_log(self.folder, 'drive')}"
                            ) from None
        except interrupts.INTERRUPTS:
            process.kill()
            raise
        if process.returncode != 0:
            last = (errors.strip() or output.strip()).splitlines()[-1:]
            raise EssdError(f"the initiator failed: {''.join(last)}; see "
                            f"{console_log(self.folder, 'drive')}")
        return json.loads(output)

    def wait_beside(self, process: "subprocess.Popen[str]", timeout_s: float,
                    drive: "subprocess.Popen[bytes]") -> None:
        """Wait until the initiator ends, which prints little, or the time is over.

        EssdError, after the initiator was ended, if the drive ends first.
        """
        deadline = time.monotonic() + timeout_s
        try:
            while process.poll() is None and time.monotonic() < deadline:
                if drive.poll() is not None:
                    log = process_log(self.folder, "drive")
                    said = log.read_text(errors="replace").strip().splitlines()
                    raise EssdError("the drive's QEMU has ended: "
                                    + (said[-1] if said else f"status {drive.returncode}"))
                time.sleep(0.02)
        except BaseException:
            process.kill()
            process.communicate(timeout=LOOK_UP_S)
            raise

    def power_on_s(self) -> float:
        """Start the drive, end it again, and return the time from the start of QEMU to a
        connection on port 4420."""
        process = self.initiator(WORKLOADS[0], POWER_ON_LOAD_S)
        begin = time.monotonic()
        with self.drive() as drive:
            return float(self.result(process, CONNECT_S, drive)["connected_s"]) - begin

    def load(self, workload: str, seconds: float, silent: int,
             span_mib: int = SPAN_MIB) -> Any:
        return self.result(self.initiator(workload, seconds, silent, span_mib),
                           seconds + 60)

    @contextlib.contextmanager
    def drive(self) -> Iterator["subprocess.Popen[bytes]"]:
        """Run the drive's QEMU; end it in any case."""
        part_file(self.folder, "drive", "").mkdir(exist_ok=True)
        with open(process_log(self.folder, "drive"), "w", encoding="utf-8") as log:
            process = subprocess.Popen(drive_command(self.config, self.folder),
                                       stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(LOOK_UP_S)

    def measure(self, pid: int, workload: str, seconds: float,
                silent: int = 0) -> Row:
        """Measure a workload, beside so many hosts that fall silent."""
        before = cpu.seconds(pid)
        reply = self.load(workload, seconds, silent)["workloads"][0]
        spent = cpu.seconds(pid) - before
        million = reply["ios"] / 1e6
        name = f"{workload} beside {silent} silent hosts" if silent else workload
        return Row(name, reply["iops"], reply["mb_per_s"], reply["mean_us"],
                   reply["p99_us"], spent / million, reply["cpu_s"] / million)


def wanted_workloads(only: str, names: tuple[str, ...] = WORKLOADS) -> list[str]:
    wanted = [name for name in names if only.lower() in name]
    if not wanted:
        raise EssdError(f"--only {only}: no workload contains this text; use "
                        f"{', '.join(names)}")
    return wanted


def run(bench: Bench, seconds: float, only: str,
        silent: int) -> tuple[list[Row], Facts]:
    wanted = wanted_workloads(only)
    first = bench.filler()
    power_on = time.monotonic()
    with bench.drive() as process:
        power_on_s = bench.result(first, 60 + FILL_S)["connected_s"] - power_on
        show.line(f"port 4420 answers {power_on_s:.2f} s after power on")
        rows = []
        for name in wanted:
            rows.append(bench.measure(process.pid, name, seconds))
            show.line(f"{name}: {rows[-1].iops:.0f} IOPS")
        for name in wanted if silent else ():
            rows.append(bench.measure(process.pid, name, min(seconds, SILENT_MOST_S),
                                      silent))
            show.line(f"{rows[-1].workload}: {rows[-1].iops:.0f} IOPS")
            time.sleep(SILENT_END_S)
        loaded_mib = cpu.resident_mib(process.pid)
    with bench.drive() as process:
        time.sleep(SETTLE_S)
        before = cpu.seconds(process.pid)
        time.sleep(IDLE_S)
        idle = (cpu.seconds(process.pid) - before) / IDLE_S
        idle_mib = cpu.resident_mib(process.pid)
    return rows, Facts(power_on_s, idle_mib, idle, loaded_mib)


def show_rows(rows: list[Row], facts: Facts) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("workload", "IOPS", "MB/s", "mean us", "p99 us", "CPU",
                    "initiator CPU"):
        table.add_column(heading, no_wrap=True,
                         justify="left" if heading == "workload" else "right")
    for row in rows:
        table.add_row(row.workload, f"{row.iops:.0f}", f"{row.mb_s:.1f}",
                      f"{row.mean_us:.0f}", f"{row.p99_us:.0f}",
                      f"{row.drive_cpu:.1f}", f"{row.initiator_cpu:.1f}")
    show.console.print(table)
    show.line("CPU: CPU seconds of the drive's QEMU process per million I/Os; "
              "initiator CPU: the same for the initiator")
    show.line(f"power on to a connection on 4420: {facts.power_on_s:.2f} s; memory: "
              f"{facts.idle_mib:.0f} MiB idle, {facts.loaded_mib:.0f} MiB after the "
              f"load; idle CPU: {100 * facts.idle_cpu:.1f}% of a core")


def command(seconds: float, only: str, mtu: int, silent: int, output: "Output",
            earlier: list[Result] | None, block: bool = False,
            nand: str | None = None) -> None:
    """Run `essd bench --native`."""
    if not 0 <= silent <= SILENT_MOST:
        raise EssdError(f"--silent {silent}: use 0 to {SILENT_MOST} hosts")
    program = build_initiator()
    with claims.claimed(NAME, "essd bench"):
        rows, facts = run_new(seconds, only, mtu, silent, program, block, nand)
    if not output.as_json:
        show_rows(rows, facts)
    output.write({"workloads": [dataclasses.asdict(r) for r in rows],
                  **dataclasses.asdict(facts)}, earlier,
                 "essd bench --native: the drive alone")


def run_new(seconds: float, only: str, mtu: int, silent: int, program: Path, block: bool,
            nand: str | None) -> tuple[list[Row], Facts]:
    """Measure a new drive, whose name is claimed, and delete it."""
    setup.forget(NAME)
    try:
        config = setup.configure(Wish(name=NAME, mtu=mtu, host=False, block=block,
                                      nand=nand))
        with tempfile.TemporaryDirectory(prefix="essd-bench-") as folder:
            return run(Bench(config, program, Path(folder), mtu), seconds, only,
                              silent)
    finally:
        with interrupts.ignored():
            setup.forget(NAME)
