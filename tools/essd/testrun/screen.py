# SPDX-License-Identifier: BSD-2-Clause
"""What `essd test` shows of pytest and ctest: a line per file or folder, failures whole.

Their whole output is in the stage's log.  Each class takes the lines of one run,
one after another, and knows in the end which tests have failed.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from ..base import show

ShowLine = Callable[[str], None]

# The outcomes of pytest by the words that are shown, in their order.
WORDS = {"PASSED": "passed", "XPASS": "passed", "FAILED": "failed", "ERROR": "errors",
         "SKIPPED": "skipped", "XFAIL": "failed as expected"}
OUTCOME = "(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)"
# A result with several workers, and with one process.
OF_WORKER = re.compile(rf"^\[(gw\d+)\] \[ *\d+%\] {OUTCOME} ((\S+?)::.*?) *$")
ALONE = re.compile(rf"^((\S+?)::.*?) {OUTCOME}(?: \(.*\))? +\[ *\d+%\]$")
BEGINS = re.compile(r"^\S+\.py::.* $")      # With several workers: a test begins.
HEADING = re.compile(r"^=+ (.*?) =+$")
# Parts of pytest's output that are shown; a failure is one of them.
SHOWN = ("FAILURES", "ERRORS", "warnings summary")
# What pytest says about itself before the first test, and about its JUnit report.
HEADER = re.compile(r"^-+ generated xml file|^(platform|rootdir|configfile|plugins|cachedir|"
                    r"timeout|created|scheduling tests|collecting|collected|\d+ workers)\b")
# How many tests will run: with several workers, and with one process, where others may be
# left out by their marks.
COLLECTED = re.compile(r"^\d+ workers? \[(\d+) items?\]|"
                       r"^(?:collecting.*)?collected (?:.* / )?(\d+)(?: items?| selected)")
REPEATED = "passed when repeated"
WIDTH = 44          # of the names of files and folders


def counted(count: Counter[str]) -> str:
    """The counts that are not 0: `12 passed, 1 failed`."""
    words = dict.fromkeys([*WORDS.values(), REPEATED])
    return ", ".join(f"{count[word]} {word}" for word in words if count[word])


@dataclass
class Group:
    """A file or folder of tests."""

    name: str
    seconds: float = 0.0
    count: Counter[str] = field(default_factory=Counter)

    @property
    def line(self) -> str:
        return f"{self.name:{WIDTH}} {self.seconds:7.1f} s  {counted(self.count)}"


@dataclass
class PytestScreen:
    """Takes the lines of `pytest -v`.  A worker runs its files one after another."""

    show_line: ShowLine = show.line
    clock: Callable[[], float] = time.monotonic
    count: Counter[str] = field(default_factory=Counter)
    failed: dict[str, Counter[str]] = field(default_factory=dict)   # by node id
    files: dict[str, Group] = field(default_factory=dict)    # the file of each worker
    last: dict[str, float] = field(default_factory=dict)     # when a worker's test ended
    is_shown: bool = True
    collected: int | None = None        # tests that will run; None: it was not said
    ended: set[str] = field(default_factory=set)    # tests that have a result

    def __post_init__(self) -> None:
        self.begin = self.clock()

    def __call__(self, line: str) -> None:
        if match := COLLECTED.match(line):
            self.collected = int(match[1] or match[2])
        if match := OF_WORKER.match(line):
            self.result(match[1], match[2], match[3], match[4])
        elif match := ALONE.match(line):
            self.result("", match[3], match[1], match[2])
        elif match := HEADING.match(line):
            self.end_files()
            self.is_shown = match[1].startswith(SHOWN)
            if self.is_shown:
                self.show_line(line)
        elif self.is_shown or not (BEGINS.match(line) or HEADER.match(line)
                                   or not line.strip()):
            self.show_line(line)

    def result(self, worker: str, outcome: str, test: str, file: str) -> None:
        now = self.clock()
        group = self.files.get(worker)
        if group is None or group.name != file:
            if group is not None:
                self.show_line(group.line)
            group = self.files[worker] = Group(file)
        group.seconds += now - self.last.get(worker, self.begin)
        self.last[worker] = now
        for count in (group.count, self.count):
            count[WORDS[outcome]] += 1
        if outcome in ("FAILED", "ERROR"):
            self.show_line(f"{outcome} {test}")
            self.failed.setdefault(test, Counter())[WORDS[outcome]] += 1
        self.ended.add(test)
        self.is_shown = False

    @property
    def lost(self) -> str:
        """What is wrong if a test has no result, as after the end of its worker; or ""."""
        if self.collected is None:
            return "pytest has not said how many tests it runs"
        if self.collected == len(self.ended):
            return ""
        return (f"{self.collected} tests were collected, and {len(self.ended)} have a result: "
                "a process that ran tests has ended early")

    def end_files(self) -> None:
        for group in self.files.values():
            self.show_line(group.line)
        self.files = {}


CTEST_RESULT = re.compile(r"^ *\d+/\d+ +Test +#\d+: (\S+) \.* *(\S.*?) +([\d.]+) sec *$")
CTEST_BEGINS = re.compile(r"^ +Start +\d+: ")


REAL_TIME = "real-time"     # label of tests with another program or the kernel as peer
DEPTH = 3           # of the folders that have a line of their own: tests/unit/net


def folders(listed: str, build: PurePath) -> dict[str, str]:
    """The folder of each test, from what `ctest --show-only=json-v1` prints."""
    found = {}
    for test in json.loads(listed)["tests"]:
        place = {one["name"]: one["value"] for one in test.get("properties", [])}
        folder = PurePath(str(place.get("WORKING_DIRECTORY", build)))
        if folder.is_relative_to(build):
            folder = PurePath(*folder.relative_to(build).parts[:DEPTH])
        found[str(test["name"])] = str(folder)
    return found


def real_time(listed: str) -> set[str]:
    """The tests with the label of those in real time, from the same list."""
    return {str(test["name"]) for test in json.loads(listed)["tests"]
            for one in test.get("properties", [])
            if one["name"] == "LABELS" and REAL_TIME in one["value"]}


class CtestScreen:
    """Takes the lines of ctest; `folder` has the folder of each test that will run."""

    def __init__(self, folder: dict[str, str], show_line: ShowLine = show.line) -> None:
        self.folder = folder
        self.show_line = show_line
        self.left = Counter(folder.values())
        self.groups: dict[str, Group] = {}
        self.count: Counter[str] = Counter()
        self.failed: list[str] = []

    def __call__(self, line: str) -> None:
        if match := CTEST_RESULT.match(line):
            self.result(match[1], match[2], float(match[3]), line)
        elif not CTEST_BEGINS.match(line):
            self.show_line(line)

    def result(self, test: str, outcome: str, seconds: float, line: str) -> None:
        name = self.folder.get(test, "other tests")
        group = self.groups.setdefault(name, Group(name))
        word = {"Passed": "passed", "***Skipped": "skipped"}.get(outcome, "failed")
        group.seconds += seconds
        for count in (group.count, self.count):
            count[word] += 1
        if word == "failed":
            self.failed.append(test)
            self.show_line(line)        # ctest prints the test's output after it.
        self.left[name] -= 1
        if self.left[name] == 0:
            self.show_line(group.line)

    @property
    def lost(self) -> str:
        """What is wrong if a test has no result; or ""."""
        ended = sum(count.total() for count in (group.count for group in self.groups.values()))
        return ("" if ended == len(self.folder) else
                f"{len(self.folder)} tests were listed, and {ended} have a result")


# Counts at the end of a conformance run, as conform_results.Count.words() prints them.
CONFORM_COUNTS = re.compile(
    r"^(\d+) passed, (\d+) failed, (\d+) not applicable, (\d+) not run: ")


def conform_count(line: str) -> Counter[str]:
    """The counts of a conformance run's last line; {} if the line is another one."""
    match = CONFORM_COUNTS.match(line)
    words = ("passed", "failed", "skipped", "errors")
    return Counter({word: int(number) for word, number in zip(words, match.groups(),
                                                              strict=True)} if match else {})


def last_line(counts: Iterable[Counter[str]], failures: Sequence[str]) -> str:
    """The numbers of all tests, and the verdict."""
    total: Counter[str] = sum(counts, Counter())
    words = [f"{total['passed']} passed", f"{total['failed'] + total['errors']} failed",
             f"{total['skipped']} skipped"]
    words += [f"{total[REPEATED]} {REPEATED}"] if total[REPEATED] else []
    verdict = f"FAILED in {', '.join(failures)}" if failures else "every stage passed"
    return f"essd test: {', '.join(words)}: {verdict}"


def share_lines(times: dict[str, float], results: dict[str, str],
                counts: dict[str, Counter[str]]) -> Iterable[str]:
    """A line for each stage: its time, its share of the whole, its result and counts."""
    total = sum(times.values()) or 1
    for name, seconds in times.items():
        count = counted(counts.get(name, Counter()))
        yield (f"{name:12} {seconds:6.0f} s {100 * seconds / total:4.0f} %  {results[name]}"
               + (f": {count}" if count and results[name] == "passed" else
                  f" ({count})" if count else ""))
