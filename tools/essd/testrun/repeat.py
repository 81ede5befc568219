# SPDX-License-Identifier: BSD-2-Clause
"""`essd test`: a test in real time that fails is run once more, alone, after the others.

A machine that does something else for a second makes such a test fail although the
drive is right.  Both results are printed, and what is known of the first failure is
kept.  A test that fails twice in a row has failed.  Tests whose time is virtual, and
tests of Python code that use no other program and no socket, are not repeated.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from ..base.errors import EssdError

# A test that fails by chance is rare.  If more fail, something is broken.
MOST = 8
# What the evidence of a failed test says of a drive (evidence.restart_lines()).
RESTARTED = "restarted by itself"
# The property of a test in a JUnit report that depends on other programs (tests/py/conftest.py).
REAL_TIME = ("real-time", "yes")


@dataclass
class Repeat:
    """What the second runs of the failed tests of a stage have shown."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)       # too many to repeat them

    @property
    def complaint(self) -> str:
        """Why the stage has failed; "" if every test has passed at last."""
        if self.left:
            return f"{len(self.left)} tests failed"
        return f"failed twice in a row: {', '.join(self.failed)}" if self.failed else ""


def first_failures(log: Path) -> Path:
    """The folder beside a stage's log with the evidence of the first failures."""
    return log.with_name(f"{log.stem}-first-failures")


def again(tests: Sequence[str], run_one: Callable[[str], None],
          show_line: Callable[[str], None], kept: Path) -> Repeat:
    """Run each test alone; `run_one` raises EssdError if it fails again."""
    found = Repeat()
    if len(tests) > MOST:
        show_line(f"{len(tests)} tests failed, which is more than chance explains: "
                  "none of them is repeated")
        found.left = list(tests)
        return found
    for test in tests:
        show_line(f"-- {test} failed; it is repeated alone (evidence of the first failure: "
                  f"{kept})")
        try:
            run_one(test)
        except EssdError as error:
            found.failed.append(test)
            show_line(f"-- {test}: failed, and failed again when repeated alone: {error}")
        else:
            found.passed.append(test)
            show_line(f"-- {test}: failed, and passed when repeated alone")
    return found


def are_all(junit: Path, failed: Mapping[str, Counter[str]]) -> bool:
    """Whether what went wrong in these tests is all that went wrong in a run of pytest."""
    try:
        suites = list(ElementTree.parse(junit).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return False
    found = sum(int(suite.get(kind, "0")) for suite in suites for kind in ("failures", "errors"))
    return found == sum(count.total() for count in failed.values()) > 0


def are_real(junit: Path) -> bool:
    """Whether every test that failed in a run of pytest was in real time."""
    try:
        cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return False
    failed = [case for case in cases
              if case.find("failure") is not None or case.find("error") is not None]
    return bool(failed) and all(
        any((one.get("name"), one.get("value")) == REAL_TIME for one in case.iter("property"))
        for case in failed)


def has_restarted(log: Path) -> bool:
    """Whether a failed test had a drive that restarted by itself.  That is no chance."""
    return RESTARTED in log.read_text(encoding="utf-8", errors="replace").lower()


def targets(failed: Mapping[str, Counter[str]]) -> dict[str, Counter[str]]:
    """What is repeated, with what went wrong there: tests, and files with an error."""
    files = {test.partition("::")[0] for test, count in failed.items() if count["errors"]}
    found: dict[str, Counter[str]] = {}
    for test, count in failed.items():
        file = test.partition("::")[0]
        name = file if file in files else test
        found[name] = found.get(name, Counter()) + count
    return found


def failed_in(junit: Path) -> list[str]:
    """The tests that failed in a conformance run, from its JUnit report.

    The list is empty if anything else was wrong with the run, such as a drive that
    restarted by itself or a test without a result: that is no chance.
    """
    try:
        root = ElementTree.parse(junit).getroot()
    except (OSError, ElementTree.ParseError):
        return []
    if int(root.get("errors", "1")):
        return []
    return [f"{case.get('classname', '').removeprefix('conform.')}.{case.get('name')}"
            for case in root.iter("testcase") if case.find("failure") is not None]


def keep(kept: Path, *sources: Path) -> None:
    """Copy files and folders to where the evidence is kept."""
    kept.mkdir(parents=True, exist_ok=True)
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, kept / source.name, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy(source, kept / source.name)


def forget(kept: Path) -> None:
    shutil.rmtree(kept, ignore_errors=True)


def summary(stage: str, found: Repeat) -> list[str]:
    """The lines for the end of the output."""
    return ([f"{stage}: passed when repeated: {test}" for test in found.passed]
            + [f"{stage}: failed twice: {test}" for test in found.failed])
