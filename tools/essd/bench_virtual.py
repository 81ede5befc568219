# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --native --timing virtual`: a drive and a host in one virtual time.

Firmware, device models and host are one program (tests/bench/native_virtual.c).  Nothing
in it depends on the computer, so the same arguments print the same figures.  The program
counts what the firmware executes, which depends on the compiler.
"""

import json
import subprocess
from typing import TYPE_CHECKING, Any

from rich.table import Table

from . import nand as nand_module
from . import prepare, show
from .bench_native import wanted_workloads
from .bench_report import Result
from .errors import EssdError

if TYPE_CHECKING:
    from .bench import Output

PROGRAM = "tests/bench/native_virtual"
PROFILE, CHANNELS, DIES = "tlc2021", 4, 2       # as of a new drive
DIES_MOST = 32
MIPS = 1000                 # of the drive's hart: docs/nand.md, "Time"
REAL_S_OF_VIRTUAL_S = 600   # of one workload; an idle computer needs some seconds


def array_words(nand: str | None) -> list[str]:
    """The words of the program that choose the array; EssdError if one does not fit."""
    wanted = nand_module.parse(nand) if nand else nand_module.Wanted()
    if wanted.size or wanted.plp or wanted.timing or wanted.seed is not None:
        raise EssdError(f"--nand {nand}: with --timing virtual, only profile, channels and "
                        "dies can be chosen; --seed gives the seed")
    if wanted.profile:
        nand_module.check_profile(wanted.profile)
    channels = CHANNELS if wanted.channels is None else wanted.channels
    dies = DIES if wanted.dies is None else wanted.dies
    if not (1 <= channels <= 16 and 1 <= dies <= 16 and channels * dies <= DIES_MOST):
        raise EssdError(f"--nand {nand}: use 1 to 16 channels, 1 to 16 dies of each, and "
                        f"{DIES_MOST} dies in all: the array is in this computer's memory")
    return [wanted.profile or PROFILE, str(channels), str(dies)]


def run(words: list[str], seed: int, milliseconds: int, workloads: list[str],
        mips: int = MIPS) -> dict[str, Any]:
    """The figures of the workloads, one after the other on the same drive.

    `mips`: millions of instructions that the firmware executes in a second; with 0, they
    take no time.
    """
    program = prepare.native_program("counted", PROGRAM, "the drive in virtual time")
    try:
        done = subprocess.run(
            [program, *words, str(mips), str(seed), str(milliseconds), *workloads],
            check=False, text=True, capture_output=True,
            timeout=REAL_S_OF_VIRTUAL_S * len(workloads) * max(1, milliseconds / 1000))
    except subprocess.TimeoutExpired as error:
        raise EssdError(f"virtual time passes too slowly: not done after "
                        f"{error.timeout:.0f} s; use fewer --seconds") from None
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise EssdError(f"the drive in virtual time has failed: {''.join(last)}")
    found: dict[str, Any] = json.loads(done.stdout)
    for row in found["workloads"]:
        # Not measured: CPU time differs from run to run.
        row.update(target="drive", drive_cpu=0.0)
    return found


def show_rows(found: dict[str, Any], mips: int) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("workload", "IOPS", "MB/s", "mean us", "p99 us",
                    "instructions", "hart busy"):
        table.add_column(heading, no_wrap=True,
                         justify="left" if heading == "workload" else "right")
    for row in found["workloads"]:
        table.add_row(row["workload"], f"{row['iops']:.0f}", f"{row['mb_s']:.1f}",
                      f"{row['mean_us']:.1f}", f"{row['p99_us']:.1f}",
                      f"{row['instructions']:.0f}", f"{row['hart_busy']:.0%}")
    show.console.print(table)
    show.line(f"in virtual time: operations and channels of the flash take their time, the "
              f"firmware executes {mips} million instructions a second, frames take no time"
              if mips else "in virtual time: operations and channels of the flash take their "
              "time, instructions and frames take none")
    show.line("instructions: of the firmware for each I/O, estimated from the basic blocks "
              "that it has executed")
    show.line(f"digest of all latencies: {found['digest']}")


def command(seconds: int, only: str, nand: str | None, seed: int, mips: int,
            output: "Output", earlier: list[Result] | None) -> None:
    """Run `essd bench --native --timing virtual`."""
    if seconds < 1:
        raise EssdError(f"--seconds {seconds}: use 1 or more")
    workloads = wanted_workloads(only)
    found = run(array_words(nand), seed, seconds * 1000, workloads, mips)
    if not output.as_json:
        show_rows(found, mips)
    output.write(found, earlier, "essd bench --native --timing virtual")
