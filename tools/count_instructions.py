#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Count the instructions that the firmware needs for each command.

The program native_cost runs a drive and its hosts in virtual time, and callgrind
counts what the drive's main loop executes: drive_turn() and what it calls, except for
hw_nand_move(), the copies and XOR that the NAND controller does, and
native_world_charge(), which moves the clock of virtual time.  Only the commands between
the program's calls of cost_begins() and cost_ends() count, so that the figures do not
contain what connecting costs.  The same program gives the same figures in every run, however
busy the machine is, but another compiler makes another program:
tests/bench/instructions.toml holds the figures to compare with, and the compiler they
were counted with.  With another one, nothing is counted unless workloads are named.

    tools/count_instructions.py                     # count all workloads, compare
    tools/count_instructions.py 4k-read-qd64        # one of them
    tools/count_instructions.py 4k-read-qd64 --functions
                                                    # by function, without callees
    tools/count_instructions.py --write             # keep what was counted

Exit status: 1 if a workload needs more than the file allows, 2 if nothing could
be counted.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from essd.build import fw_build

TOP = pathlib.Path(__file__).resolve().parents[1]
BINARY = TOP / "build/fast/tests/bench/native_cost"
EXPECTED = TOP / "tests/bench/instructions.toml"
LOOP = "drive_turn"         # the drive's main loop
# What it calls that the firmware does not do: the work of the NAND controller during a
# register write, and the clock of virtual time.
NOT_COUNTED = ("hw_nand_move", "native_world_charge")
BEGIN, END = "cost_begins", "cost_ends"     # calls around the commands that count
SHORT = 1000                # commands that count
LONG = 200                  # of 128 KiB and more
RUN_S = 900
BUILD_S = 1800
SHOWN = 40                  # functions that --functions shows

HEAD = """\
# SPDX-License-Identifier: BSD-2-Clause
# Instructions of the firmware for each command: tools/count_instructions.py
# compares with them, and --write replaces them.  A workload may need
# `tolerance_percent` more.
"""


class CountError(Exception):
    """Nothing could be counted; the text says why."""


@dataclass
class Count:
    """Instructions by function, without those of the functions that it calls."""

    by_function: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return sum(self.by_function.values())


def read_callgrind(lines: Iterable[str]) -> Count:
    """Read callgrind's output file (valgrind manual, chapter "Callgrind Format")."""
    count = Count()
    names: dict[str, str] = {}
    function = ""
    is_call = False         # the next line has the cost of a call, not of the caller
    for line in lines:
        if named := re.match(r"(c?fn)=\((\d+)\)(?: (.*))?", line):
            if named[3]:
                names[named[2]] = re.sub(r"'\d+$", "", named[3].strip())
            if named[1] == "fn":
                function = names[named[2]]
        elif line.startswith("calls="):
            is_call = True
        elif function and (cost := re.match(r"[-+*\d]\S* (\d+)", line)):
            if not is_call:
                count.by_function[function] += int(cost[1])
            is_call = False
    return count


def run(binary: pathlib.Path, workload: str, commands: int) -> Count:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind.out"
        dump = out.with_name("callgrind.out.1")     # of the moment when END is called
        words = ["valgrind", "--tool=callgrind", f"--toggle-collect={LOOP}",
                 *(f"--toggle-collect={name}" for name in NOT_COUNTED),
                 f"--zero-before={BEGIN}", f"--dump-before={END}",
                 f"--callgrind-out-file={out}",
                 str(binary), workload, str(commands)]
        try:
            subprocess.run(words, check=True, text=True, timeout=RUN_S,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE)
        except subprocess.CalledProcessError as error:
            raise CountError(f"{' '.join(words)}: status {error.returncode}\n"
                             f"{error.stderr}") from None
        if not dump.exists():
            raise CountError(f"{binary} has not called {END}(); is it of an older commit?")
        return read_callgrind(dump.read_text(encoding="utf-8").splitlines())


def count(binary: pathlib.Path, workload: str) -> dict[str, float]:
    """Instructions of each function for one command of the workload."""
    commands = SHORT if re.search(r"\b4k-", workload) else LONG
    counted = run(binary, workload, commands)
    if counted.total == 0:
        raise CountError(f"{workload}: {commands} commands took no instructions; is {LOOP}() "
                         "still the drive's main loop?")
    return {name: cost / commands for name, cost in counted.by_function.items()}


def compiler() -> str:
    done = subprocess.run(["gcc", "-dumpfullversion"], check=True, text=True,
                          stdout=subprocess.PIPE, timeout=RUN_S)
    return f"gcc {done.stdout.strip()}"


def build() -> None:
    with fw_build.alone(TOP / "build/fast", TOP):
        for words in (["cmake", "--preset", "fast"],
                      ["cmake", "--build", "build/fast", "--target", "native_cost"]):
            done = subprocess.run(words, cwd=TOP, check=False, text=True, timeout=BUILD_S,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode != 0:
                raise CountError(f"{' '.join(words)}: status {done.returncode}\n{done.stdout}")


def judge(expected: dict[str, int], counted: dict[str, int], tolerance: float
          ) -> tuple[list[str], list[str]]:
    """A line for each workload, and those of them that need too much."""
    lines, worse = [], []
    for name, now in counted.items():
        before = expected.get(name)
        if before is None:
            lines.append(f"{name:24} {now:7}   (no figure to compare with)")
            continue
        change = 100 * (now / before - 1)
        lines.append(f"{name:24} {now:7}   {before:7} {change:+6.1f} %")
        if 100 * now > (100 + tolerance) * before:
            worse.append(f"{name} needs {now} instructions instead of {before} "
                         f"({change:+.1f} %, allowed are {tolerance:+.1f} %)")
    return lines, worse


def write(path: pathlib.Path, tolerance: float, counted: dict[str, int]) -> None:
    rows = "".join(f'"{name}" = {value}\n' for name, value in counted.items())
    path.write_text(f'{HEAD}compiler = "{compiler()}"\ntolerance_percent = {tolerance}\n\n'
                    f"[instructions]\n{rows}", encoding="utf-8")


def show_functions(workload: str, by_function: dict[str, float]) -> None:
    print(f"{workload}:")
    for name, cost in sorted(by_function.items(), key=lambda x: -x[1])[:SHOWN]:
        print(f"  {cost:8.1f}  {name}")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", nargs="*", help="default: those of the file")
    parser.add_argument("--functions", action="store_true",
                        help="show which functions execute them")
    parser.add_argument("--binary", type=pathlib.Path,
                        help="a native_cost that is built already, of another commit")
    parser.add_argument("--write", action="store_true", help="keep what was counted")
    options = parser.parse_args(words)
    file = tomllib.loads(EXPECTED.read_text(encoding="utf-8"))
    expected, tolerance = file["instructions"], file["tolerance_percent"]
    if not (options.workload or options.write) and compiler() != file["compiler"]:
        print(f"count_instructions: the figures of {EXPECTED.name} are of "
              f"{file['compiler']}, this is {compiler()}, so nothing is compared")
        return 0
    try:
        if shutil.which("valgrind") is None:
            raise CountError("valgrind is missing: apt-get install valgrind")
        if options.binary is None:
            build()
        names = options.workload or list(expected)
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            counts = dict(zip(names, pool.map(
                lambda name: count(options.binary or BINARY, name), names), strict=True))
    except CountError as error:
        print(f"count_instructions: {error}", file=sys.stderr)
        return 2
    counted = {name: round(sum(by.values())) for name, by in counts.items()}
    lines, worse = judge(expected, counted, tolerance)
    print("\n".join(lines))
    if options.functions:
        for name in names:
            show_functions(name, counts[name])
    if options.write:
        write(EXPECTED, tolerance, {**expected, **counted})
        return 0
    if compiler() != file["compiler"]:
        print(f"count_instructions: the figures of {EXPECTED.name} are of "
              f"{file['compiler']}, this is {compiler()}, so they are not compared")
        return 0
    for text in worse:
        print(f"count_instructions: {text}; see --functions", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
