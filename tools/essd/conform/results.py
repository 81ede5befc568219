# SPDX-License-Identifier: BSD-2-Clause
"""The results of the conformance program, which it writes line by line."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..base.errors import EssdError
from .exchange import name_statuses, of_event

VERDICTS = ("pass", "fail", "na", "not-run")
VERDICT_WORDS = {"pass": "passed", "fail": "failed", "na": "not applicable",
                 "not-run": "not run"}


class ResultsError(EssdError):
    """A line does not have the format that docs/conformance.md describes."""


@dataclass(frozen=True)
class Test:
    id: str
    chapter: str
    clause: str
    purpose: str
    verdict: str
    reason: str = ""
    seconds: float = 0.0
    steps: tuple[str, ...] = ()
    pcap: str = ""
    started: float = 0.0                # when it began, in seconds since 1970
    exchange: tuple[str, ...] = ()      # a failed test's commands and completions
    state: tuple[str, ...] = ()         # what the drive counted until the failure

    @classmethod
    def from_event(cls, event: dict[str, Any]) -> "Test":
        verdict = event["verdict"]
        if verdict not in VERDICTS:
            raise ResultsError(f"{event['id']}: unknown verdict {verdict!r}")
        return cls(str(event["id"]), str(event["chapter"]),
                   str(event.get("clause") or ""), str(event.get("purpose") or ""),
                   verdict, name_statuses(str(event.get("reason") or "")),
                   float(event.get("seconds") or 0),
                   tuple(map(str, event.get("steps") or ())),
                   str(event.get("pcap") or ""), float(event.get("started") or 0),
                   of_event(event))

    @property
    def when(self) -> str:
        """The time of day when the test began; "" if it is not known."""
        return time.strftime("%H:%M:%S", time.localtime(self.started)) if self.started else ""


@dataclass
class Count:
    """The number of tests by verdict, of one chapter or of all."""

    of: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    seconds: float = 0.0

    def add(self, test: Test) -> None:
        self.of[test.verdict] += 1
        self.seconds += test.seconds

    @property
    def tests(self) -> int:
        return sum(self.of.values())

    @property
    def applicable(self) -> int:
        return self.tests - self.of["na"]

    def words(self) -> str:
        return ", ".join(f"{self.of[v]} {VERDICT_WORDS[v]}" for v in VERDICTS)


@dataclass
class Results:
    """The results of one run: the target, each test, and other faults."""

    target: str = ""
    seed: int = 0
    drive: dict[str, Any] = field(default_factory=dict)
    announced: int = 0              # number of tests announced by the program
    tests: list[Test] = field(default_factory=list)
    is_over: bool = False           # the program has reported its end
    seconds: float = 0.0
    complaints: list[str] = field(default_factory=list)
    is_partial: bool = False        # --only selected some of the tests
    transport: list[str] = field(default_factory=list)  # what went wrong on the wire

    def take(self, line: str) -> Test | None:
        """Read one line; return the test if the line reports one."""
        try:
            event = json.loads(line)
            kind = event["event"]
            if kind == "run":
                self.target = str(event.get("target") or "")
                self.seed = int(event.get("seed") or 0)
                # What the drive reports replaces what was known before the run.
                self.drive |= {key: value for key, value in {
                    "subnqn": event.get("nqn"), **(event.get("drive") or {})
                }.items() if value}
                # After a restart of the target, only the remaining tests are
                # announced.
                self.announced = len(self.tests) + int(event["tests"])
            elif kind == "test":
                self.tests.append(Test.from_event(event))
                return self.tests[-1]
            elif kind == "end":
                self.is_over = True
                self.seconds = float(event.get("seconds") or 0)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ResultsError(f"not a result: {line.strip()[:200]!r} "
                               f"({type(error).__name__}: {error})") from None
        return None

    def killed_by_last(self, cause: str) -> Test:
        """Mark the last test as failed, because it killed the target."""
        last = self.tests[-1]
        self.tests[-1] = replace(last, verdict="fail", reason="\n".join(
            filter(None, [f"the target died: {cause}", last.reason])))
        return self.tests[-1]

    def restarted_in_last(self, causes: Sequence[str]) -> Test:
        """Mark the last test as failed, because the target restarted by itself in it."""
        last = self.tests[-1]
        self.tests[-1] = replace(last, verdict="fail", reason="\n".join(filter(None, [
            f"the target restarted by itself during this test: {', '.join(causes)}",
            last.reason])))
        return self.tests[-1]

    def failed_with(self, state: Sequence[str]) -> Test:
        """Add to the last test, which failed, what the drive has counted until then."""
        self.tests[-1] = replace(self.tests[-1], state=tuple(state))
        return self.tests[-1]

    def of_verdict(self, verdict: str) -> list[Test]:
        return [test for test in self.tests if test.verdict == verdict]

    @property
    def total(self) -> Count:
        """The count of all tests; announced tests without a result are not run."""
        count = Count()
        for test in self.tests:
            count.add(test)
        count.of["not-run"] += self.missing
        return count

    @property
    def missing(self) -> int:
        return max(0, self.announced - len(self.tests))

    @property
    def chapters(self) -> dict[str, Count]:
        """The counts by chapter, in the order in which the chapters ran."""
        found: dict[str, Count] = {}
        for test in self.tests:
            found.setdefault(test.chapter, Count()).add(test)
        return found

    @property
    def is_conforming(self) -> bool:
        """Every applicable test was run and passed, and at least one was run."""
        count = self.total.of
        return (self.is_over and not self.complaints and count["pass"] > 0
                and count["fail"] == count["not-run"] == 0)

    def as_json(self) -> dict[str, Any]:
        """What `essd conform --json` prints (docs/json.md)."""
        total = self.total
        return {"verdict": self.verdict, "conforming": self.is_conforming,
                "target": self.target, "seed": self.seed, "seconds": self.seconds,
                "drive": self.drive, "counts": total.of, "complaints": self.complaints,
                "tests": [asdict(test) for test in self.tests]}

    @property
    def verdict(self) -> str:
        if not self.is_conforming:
            return "not conforming" if self.total.of["fail"] else "inconclusive"
        return "conforming in the chosen tests" if self.is_partial else "conforming"

    @classmethod
    def load(cls, path: Path) -> "Results":
        """The results that `essd conform --json` has written to a file."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return cls(str(data["target"]), int(data["seed"]), dict(data["drive"]),
                       len(data["tests"]),
                       [Test.from_event(test) for test in data["tests"]], True,
                       float(data["seconds"]), [str(c) for c in data["complaints"]])
        except OSError as error:
            raise ResultsError(f"{path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ResultsError(f"{path}: the file has no results; write one with "
                               "./essd conform --json > FILE") from None

    def changes(self, before: "Results") -> list[str]:
        """A line for each test whose verdict differs from an earlier run's."""
        old = {test.id: test for test in before.tests}
        lines = [f"{test.id}: {VERDICT_WORDS[old[test.id].verdict]} before, "
                 f"{VERDICT_WORDS[test.verdict]} now"
                 for test in self.tests if test.id in old
                 and old[test.id].verdict != test.verdict]
        new = {test.id for test in self.tests}
        lines += [f"{test.id}: {VERDICT_WORDS[test.verdict]} now, not in the earlier run"
                  for test in self.tests if test.id not in old]
        lines += [f"{test.id}: {VERDICT_WORDS[test.verdict]} before, not in this run"
                  for test in before.tests if test.id not in new]
        return lines

    @property
    def last_line(self) -> str:
        return f"{self.total.words()}: {self.verdict}"
