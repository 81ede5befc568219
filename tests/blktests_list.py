# SPDX-License-Identifier: BSD-2-Clause
"""What blktests printed, compared with the list tests/blktests/expected.txt."""

import re
from dataclasses import dataclass, field

from essd.base import paths

SOURCE = paths.TOP / "tests/blktests"
EXPECTED = SOURCE / "expected.txt"
STATUS = {"passed": "pass", "failed": "fail", "not run": "skip"}


@dataclass
class Outcome:
    """What blktests says of one of its tests."""

    name: str
    status: str                     # "pass", "fail" or "skip"
    details: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n    ".join([f"{self.name} {self.status}", *self.details])


def parse_outcomes(output: str) -> list[Outcome]:
    """Read what ./check prints; lines of a running test have no status."""
    found: list[Outcome] = []
    for line in output.splitlines():
        head = re.match(r"(nvme/\d+)\b.*\[(passed|failed|not run)\]$", line)
        if head:
            found.append(Outcome(head[1], STATUS[head[2]]))
        elif line.startswith("    ") and found and found[-1].status != "pass":
            found[-1].details.append(line[4:])
    return found


@dataclass(frozen=True)
class Expected:
    """A line of the list: what a test does with one of the targets, and why."""

    status: str
    reason: str


def read_expected(text: str, run: str, target: str) -> dict[str, Expected]:
    """The tests of one run, by name.

    The list has the columns test, run, drive, nvmet and reason.
    """
    column = {"drive": 2, "nvmet": 3}[target]
    found = {}
    for line in text.splitlines():
        words = line.split("#")[0].split(maxsplit=4)
        if words and words[1] == run:
            found[words[0]] = Expected(words[column],
                                       words[4].strip() if len(words) > 4 else "")
    return found


def surprises(outcomes: list[Outcome], expected: dict[str, Expected]) -> list[str]:
    """What differs from the list.  A test that is not on the list must not fail."""
    there = {outcome.name for outcome in outcomes}
    found = [f"{name} has no outcome" for name, line in expected.items()
             if name not in there and line.status != "hang"]
    for outcome in outcomes:
        wanted = expected[outcome.name].status if outcome.name in expected else ""
        if wanted != "?" and outcome.status != wanted and (
                wanted or outcome.status == "fail"):
            found.append(f"{outcome} (expected: {wanted or 'pass or skip'})")
    return found


def run_name(run: str, transport: str) -> str:
    """The name of a run in the list."""
    return run if transport == "rdma" else f"{run}-{transport}"


def hanging(run: str, target: str) -> list[str]:
    """Tests that the list says hang with this target, which are not run."""
    expected = read_expected(EXPECTED.read_text(encoding="utf-8"), run, target)
    return [name for name, line in expected.items() if line.status == "hang"]
