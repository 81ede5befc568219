# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --native --timing virtual`: a drive and a host in one virtual time.

Firmware, device models and host are one program (tests/bench/native_virtual.c).  Nothing
in it depends on the computer, so the same arguments print the same figures.  The program
counts what the firmware executes, which depends on the compiler.

With --steady, another program (tests/bench/native_steady.c) first overwrites the whole
drive, and then measures random writes while garbage is collected.
"""

import json
import subprocess
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ..base import show
from ..base.errors import EssdError
from ..build import native_build
from ..storage import nand as nand_module
from .native import WORKLOADS, wanted_workloads
from .report import Result

if TYPE_CHECKING:
    from .bench import Output

PROGRAM = "tests/bench/native_virtual"
PROFILE, CHANNELS, DIES = "tlc2021", 4, 2       # as of a new drive
SPARE = nand_module.RANGES["spare"][0]          # the same
STEADY = "tests/bench/native_steady"
# Blocks of a plane and wordlines of a block, for --steady.  In shorter blocks, erasures
# would take a larger part of the time than in those of real parts.
STEADY_BLOCKS, STEADY_WORDLINES = 200, 32
STEADY_DEPTH = 63                               # commands outstanding
STEADY_S = 4 * 3600                             # an idle computer needs 7 to 25 minutes
DIES_MOST = 32
MIPS = 1000                 # of the drive's hart: docs/nand.md, "Time"
# Random reads at the first depth beside random writes at the second one; they are two rows.
MIXED = ("4k-mixed-qd1-qd16", "4k-mixed-qd16-qd16")
REAL_S_OF_VIRTUAL_S = 600   # of one workload; an idle computer needs some seconds


def array_of(nand: str | None, steady: bool = False) -> nand_module.Wanted:
    """The array that is asked for; EssdError if a key does not fit to virtual time."""
    wanted = nand_module.parse(nand) if nand else nand_module.Wanted()
    if wanted.size or wanted.plp or wanted.timing or wanted.seed is not None:
        raise EssdError(f"--nand {nand}: with --timing virtual, only profile, channels and "
                        "dies can be chosen, and spare with --steady; --seed gives the seed")
    if not steady and "spare=" in (nand or ""):
        raise EssdError(f"--nand {nand}: spare only matters with --steady: the other "
                        "workloads use a small part of the array")
    return wanted


def array_words(wanted: nand_module.Wanted, nand: str | None) -> list[str]:
    """The words of the program that choose the array; EssdError if one does not fit."""
    if wanted.profile:
        nand_module.check_profile(wanted.profile)
    channels = CHANNELS if wanted.channels is None else wanted.channels
    dies = DIES if wanted.dies is None else wanted.dies
    if channels * dies > DIES_MOST:
        raise EssdError(f"--nand {nand}: use at most {DIES_MOST} dies in all: the array is in "
                        "this computer's memory")
    return [wanted.profile or PROFILE, str(channels), str(dies)]


def run(words: list[str], seed: int, milliseconds: int, workloads: list[str],
        mips: int = MIPS) -> dict[str, Any]:
    """The figures of the workloads, one after the other on the same drive.

    `mips`: millions of instructions that the firmware executes in a second; with 0, they
    take no time.
    """
    program = native_build.native_program("counted", PROGRAM, "the drive in virtual time")
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


def run_steady(wanted: nand_module.Wanted, nand: str | None) -> dict[str, Any]:
    """The figures of random writes in the steady state."""
    words = [*array_words(wanted, nand), str(STEADY_BLOCKS), str(STEADY_WORDLINES),
             str(STEADY_DEPTH), str(wanted.spare or SPARE)]
    program = native_build.native_program("fast", STEADY, "the drive in virtual time")
    show.note("writing the drive twice sequentially and twice at random, natively; this takes "
              "7 minutes for 8 dies, and 25 minutes and 2 GB of memory for 32 dies")
    try:
        done = subprocess.run([program, *words], check=False, text=True, capture_output=True,
                              timeout=STEADY_S)
    except subprocess.TimeoutExpired:
        raise EssdError(f"the steady state was not reached in {STEADY_S // 3600} hours: use "
                        "fewer dies") from None
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise EssdError(f"the drive in virtual time has failed: {''.join(last)}")
    found: dict[str, Any] = json.loads(done.stdout)
    found["spare"] = wanted.spare or SPARE
    return found


def show_steady(found: dict[str, Any]) -> None:
    show.line(f"{found['iops']:,.0f} random writes of 4 KiB a second ({found['mb_s']:.0f} MB/s) "
              f"in the steady state, queue depth {STEADY_DEPTH}")
    show.line(f"write amplification, without parity: {found['write_amplification']:.2f}")
    show.line(f"array: {found['profile']}, {found['channels']} channels with {found['dies']} "
              f"dies each, {found['blocks']} blocks of a plane, {found['wordlines']} wordlines "
              f"of a block, {found['spare']}% spare; hosts see "
              f"{found['capacity_bytes'] / 1e9:.1f} GB")
    show.line("in virtual time: operations and channels of the flash take their time, "
              "instructions and frames take none")


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
    if any(row["workload"].startswith("4k-mixed") for row in found["workloads"]):
        show.line("4k-mixed: random reads at the first depth, and at the same time random "
                  "writes at the second one; instructions are the mean of both")
    show.line(f"digest of all latencies: {found['digest']}")


def steady_command(nand: str | None, as_json: bool) -> None:
    """Run `essd bench --native --timing virtual --steady`."""
    found = run_steady(array_of(nand, steady=True), nand)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        show_steady(found)


def command(seconds: int, only: str, nand: str | None, seed: int, mips: int,
            output: "Output", earlier: list[Result] | None) -> None:
    """Run `essd bench --native --timing virtual`."""
    if seconds < 1:
        raise EssdError(f"--seconds {seconds}: use 1 or more")
    workloads = wanted_workloads(only, WORKLOADS + MIXED)
    found = run(array_words(array_of(nand), nand), seed, seconds * 1000, workloads, mips)
    if not output.as_json:
        show_rows(found, mips)
    output.write(found, earlier, "essd bench --native --timing virtual")
