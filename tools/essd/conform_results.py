# SPDX-License-Identifier: BSD-2-Clause
"""What a run of the conformance program found, as it tells it line by line."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import EssdError

VERDICTS = ("pass", "fail", "na", "not-run")
VERDICT_WORDS = {"pass": "passed", "fail": "failed", "na": "not applicable",
                 "not-run": "not run"}


class ResultsError(EssdError):
    """A line is not what docs/conformance.md says."""


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

    @classmethod
    def from_event(cls, event: dict[str, Any]) -> "Test":
        verdict = event["verdict"]
        if verdict not in VERDICTS:
            raise ResultsError(f"{event['id']}: no verdict is called {verdict!r}")
        return cls(str(event["id"]), str(event["chapter"]),
                   str(event.get("clause") or ""), str(event.get("purpose") or ""),
                   verdict, str(event.get("reason") or ""),
                   float(event.get("seconds") or 0),
                   tuple(map(str, event.get("steps") or ())),
                   str(event.get("pcap") or ""))


@dataclass
class Count:
    """Of a chapter, or of all."""

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
    """One run: what was under test, each test, and what went wrong besides."""

    target: str = ""
    seed: int = 0
    drive: dict[str, Any] = field(default_factory=dict)
    announced: int = 0              # tests that the run was going to have
    tests: list[Test] = field(default_factory=list)
    is_over: bool = False           # the program said that it was done
    seconds: float = 0.0
    complaints: list[str] = field(default_factory=list)
    is_partial: bool = False        # only chosen tests were asked for

    def take(self, line: str) -> Test | None:
        """Read one line; the test it was about, if it was about one."""
        try:
            event = json.loads(line)
            kind = event["event"]
            if kind == "run":
                self.target = str(event.get("target") or "")
                self.seed = int(event.get("seed") or 0)
                # What the drive itself says, before what was known of it.
                self.drive |= {key: value for key, value in {
                    "subnqn": event.get("nqn"), **(event.get("drive") or {})
                }.items() if value}
                # Behind those of a target that had to be started again.
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
        """The last test has killed the target: that is what is wrong."""
        last = self.tests[-1]
        self.tests[-1] = replace(last, verdict="fail", reason="\n".join(
            filter(None, [f"the target died: {cause}", last.reason])))
        return self.tests[-1]

    def of_verdict(self, verdict: str) -> list[Test]:
        return [test for test in self.tests if test.verdict == verdict]

    @property
    def total(self) -> Count:
        """Of all tests, those included that the program did not come to."""
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
        """In the order in which they came."""
        found: dict[str, Count] = {}
        for test in self.tests:
            found.setdefault(test.chapter, Count()).add(test)
        return found

    @property
    def is_conforming(self) -> bool:
        """Everything that applies was tried and passed; nothing tried is no."""
        count = self.total.of
        return (self.is_over and not self.complaints and count["pass"] > 0
                and count["fail"] == count["not-run"] == 0)

    @property
    def verdict(self) -> str:
        if not self.is_conforming:
            return "not conforming" if self.total.of["fail"] else "inconclusive"
        return "conforming in the chosen tests" if self.is_partial else "conforming"

    @property
    def last_line(self) -> str:
        return f"{self.total.words()}: {self.verdict}"
