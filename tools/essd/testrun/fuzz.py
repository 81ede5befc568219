# SPDX-License-Identifier: BSD-2-Clause
"""Run libFuzzer on every target of tests/fuzz for a limited time.

A run starts from the kept corpus (tests/fuzz/corpus) and from what earlier runs
found (build/test/fuzz/<target>/corpus).  An input that crashes or hangs is kept in
build/test/fuzz/<target>; build/native/tests/fuzz/fuzz_<target> replays it.
"""

import os
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path

from ..base import interrupts, paths
from ..base.errors import LOOK_UP_S

BUILT = paths.TOP / "build" / "clang" / "tests" / "fuzz"
KEPT = paths.TOP / "tests" / "fuzz" / "corpus"
WORK = paths.TOP / "build" / "test" / "fuzz"
SUFFIX = "_libfuzzer"
INPUT_S = 10            # an input that takes longer is a finding
LATE_S = 180            # time to read a large corpus; after it, the fuzzer hangs
TAIL_LINES = 30
# The target that runs the whole drive makes hundreds of runs a second instead of
# thousands, so it gets this part of the budget in addition to the others' time.
WHOLE, WHOLE_PART = "sequence", 0.6
DONE = re.compile(r"DONE\s+cov: (\d+) ft: (\d+) corp: (\d+)/(\S+)")
RUNS = re.compile(r"Done (\d+) runs in (\d+) second")


@dataclass
class Outcome:
    """The result of fuzzing one target."""

    name: str
    status: int
    runs: int = 0
    seconds: int = 1
    edges: int = 0
    features: int = 0
    inputs: int = 0
    output: str = ""

    @property
    def is_good(self) -> bool:
        return self.status == 0 and self.runs > 0

    def line(self) -> str:
        if not self.is_good:
            return f"{self.name:10} FAILED: status {self.status}, {self.runs} runs"
        return (f"{self.name:10} {self.runs:8} runs, {self.runs // self.seconds:6} per "
                f"second; covered: {self.edges:4} edges, {self.features:5} features; "
                f"corpus: {self.inputs} inputs")


def targets() -> list[Path]:
    return sorted(BUILT.glob(f"fuzz_*{SUFFIX}"))


def name_of(target: Path) -> str:
    return target.name.removeprefix("fuzz_").removesuffix(SUFFIX)


def outcome(name: str, status: int, output: str) -> Outcome:
    """Read libFuzzer's final statistics."""
    found = Outcome(name, status, output=output)
    if match := RUNS.search(output):
        found.runs, found.seconds = int(match[1]), max(1, int(match[2]))
    if match := DONE.search(output):
        found.edges, found.features, found.inputs = (int(match[1]), int(match[2]),
                                                     int(match[3]))
    return found


def run_one(target: Path, seconds: int) -> Outcome:
    name = name_of(target)
    work = WORK / name
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    folders = [corpus]
    if (KEPT / name).is_dir():
        folders.append(KEPT / name)
    elif not any(corpus.iterdir()):     # The program itself contains its seeds.
        subprocess.run([target.with_name(f"fuzz_{name}"), "--seeds", corpus],
                       check=True, timeout=LOOK_UP_S)
    command: list[str | Path] = [target, f"-max_total_time={seconds}", f"-timeout={INPUT_S}",
               f"-artifact_prefix={work}/", "-print_final_stats=1", *folders]
    try:
        done = subprocess.run(command, check=False, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds + LATE_S)
    except subprocess.TimeoutExpired as late:
        return Outcome(name, -1, output=str(late.stdout or b"", "utf-8", "replace")
                       if isinstance(late.stdout, bytes) else str(late.stdout))
    return outcome(name, done.returncode, done.stdout)


def run(budget_s: int, show_line: Callable[[str], None]) -> list[Outcome]:
    """Run all targets, which share `budget_s` of processor time.

    Returns the outcomes of those that failed.
    """
    # The target with the longest time begins first, so that no core waits for it alone.
    names = sorted(targets(), key=lambda target: name_of(target) != WHOLE)
    share_s = max(1, round(budget_s / max(1, len(names))))

    def seconds(target: Path) -> int:
        return share_s if name_of(target) != WHOLE else round(WHOLE_PART * budget_s)
    failed = []
    with interrupts.pool(os.cpu_count() or 1) as pool:
        running = [pool.submit(run_one, target, seconds(target)) for target in names]
        for one in as_completed(running):
            result = one.result()
            show_line(result.line())
            if not result.is_good:
                failed.append(result)
                for line in result.output.splitlines()[-TAIL_LINES:]:
                    show_line(f"    {line}")
    return failed
