# SPDX-License-Identifier: BSD-2-Clause
"""libFuzzer on every target of tests/fuzz, for a bounded time.

Starts from the kept corpus (tests/fuzz/corpus) and what earlier runs found
(build/test/fuzz/<target>/corpus).  An input that ends the process is left in
build/test/fuzz/<target>, to be replayed with build/native/tests/fuzz/fuzz_<target>.
"""

import os
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import paths
from .errors import LOOK_UP_S

BUILT = paths.TOP / "build" / "clang" / "tests" / "fuzz"
KEPT = paths.TOP / "tests" / "fuzz" / "corpus"
WORK = paths.TOP / "build" / "test" / "fuzz"
SUFFIX = "_libfuzzer"
INPUT_S = 10            # one that takes longer is a finding
LATE_S = 180            # beyond its time, for a grown corpus: it hangs outside of an input
TAIL_LINES = 30
# The whole drive, hundreds of runs a second instead of thousands: besides the
# others' time it has this part of it for itself.
WHOLE, WHOLE_PART = "sequence", 0.6
DONE = re.compile(r"DONE\s+cov: (\d+) ft: (\d+) corp: (\d+)/(\S+)")
RUNS = re.compile(r"Done (\d+) runs in (\d+) second")


@dataclass
class Outcome:
    """What became of one target."""

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
        return (f"{self.name:10} {self.runs:8} runs, {self.runs // self.seconds:6} a "
                f"second; covered: {self.edges:4} edges, {self.features:5} features; "
                f"corpus: {self.inputs} inputs")


def targets() -> list[Path]:
    return sorted(BUILT.glob(f"fuzz_*{SUFFIX}"))


def name_of(target: Path) -> str:
    return target.name.removeprefix("fuzz_").removesuffix(SUFFIX)


def outcome(name: str, status: int, output: str) -> Outcome:
    """Read libFuzzer's last words."""
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
    elif not any(corpus.iterdir()):     # its seeds are in the program
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


def run(budget_s: int, say: Callable[[str], None]) -> list[Outcome]:
    """All targets, `budget_s` of processor time among them; those that failed."""
    names = targets()
    share_s = max(1, round(budget_s / max(1, len(names))))

    def seconds(target: Path) -> int:
        return share_s if name_of(target) != WHOLE else round(WHOLE_PART * budget_s)
    failed = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for result in pool.map(lambda x: run_one(x, seconds(x)), names):
            say(result.line())
            if not result.is_good:
                failed.append(result)
                for line in result.output.splitlines()[-TAIL_LINES:]:
                    say(f"    {line}")
    return failed
