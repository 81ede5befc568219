# SPDX-License-Identifier: BSD-2-Clause
"""Show a conformance run on the screen: progress, failures and the summary.

On a terminal, each chapter has a progress bar.  Otherwise, one line is printed
at the end of each chapter.  A failure is printed at once with its steps.
"""

import textwrap
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from ..base import show
from .results import Count, Results, Test, VERDICTS, VERDICT_WORDS

COLOURS = {"pass": "green", "fail": "bold red", "na": "dim", "not-run": "yellow"}
COMMANDS_SHOWN = 16     # the last commands of a failed test
STEPS_SHOWN = 60        # steps of a failed test; the reports contain all of them


def chapter_words(count: Count) -> str:
    """The number of tests by verdict, without verdicts that did not occur."""
    return ", ".join(f"{count.of[v]} {VERDICT_WORDS[v]}" for v in VERDICTS
                     if count.of[v])


def chapter_markup(count: Count) -> str:
    return ", ".join(f"[{COLOURS[v]}]{count.of[v]} {VERDICT_WORDS[v]}[/]"
                     for v in VERDICTS if count.of[v])


def failure_lines(test: Test) -> list[str]:
    """The lines that are printed for a test that did not pass."""
    lines = [f"{VERDICT_WORDS[test.verdict].upper()} {test.id}  [{test.clause}]"]
    lines += [f"    {line}" for line in test.reason.splitlines()]
    lines += textwrap.wrap(f"Tested: {test.purpose}", 76, initial_indent="    ",
                           subsequent_indent="    ")
    if test.exchange:
        lines.append("    The commands, in the order in which they were sent:")
        left_out = max(0, len(test.exchange) - COMMANDS_SHOWN)
        lines += [f"      ... {left_out} commands before these"] if left_out else []
        lines += [f"      {line}" for line in test.exchange[left_out:]]
    if test.exchange and test.steps:
        lines.append("    The steps:")
    steps = list(test.steps)
    if len(steps) > STEPS_SHOWN:
        # The last steps matter more than the first, so only five of those are kept.
        left_out = len(steps) - STEPS_SHOWN
        steps = [*steps[:5], f"... {left_out} more steps", *steps[left_out + 5:]]
    lines += [f"      {line}" for step in steps for line in step.splitlines()]
    if test.state:
        lines.append("    What the drive has counted since power-on, and its pools in use:")
        lines += textwrap.wrap(", ".join(test.state), 90, initial_indent="      ",
                               subsequent_indent="      ")
    if test.pcap and test.verdict == "fail":
        lines.append(f"    capture: {test.pcap}")
    return lines


class Screen:
    """Shows the progress; test() is called after each test.

    Several threads may call test(), each for chapters of its own.
    """

    def __init__(self, ids: Sequence[str] = ()) -> None:
        self.console = show.console
        self.expected = Counter(one.partition(".")[0] for one in ids)
        self.width = max(map(len, [*self.expected, "robust"]))
        self.counts: dict[str, Count] = {}
        self.shown: set[str] = set()        # chapters whose line was printed
        self.turn = threading.Lock()
        self.bars: dict[str, Any] = {}
        self.progress = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(24), MofNCompleteColumn(),
            TextColumn("{task.fields[words]}"), console=self.console
        ) if self.console.is_terminal else None

    def __enter__(self) -> "Screen":
        if self.progress is not None:
            self.progress.start()
            for chapter in self.expected:
                self.add_bar(chapter)
        return self

    def __exit__(self, *_details: object) -> None:
        if self.progress is not None:
            self.progress.stop()
        else:
            for chapter in self.counts:
                self.end_chapter(chapter)

    def add_bar(self, chapter: str) -> None:
        assert self.progress is not None
        self.bars[chapter] = self.progress.add_task(
            f"{chapter:{self.width}}", total=self.expected[chapter] or None, words="")

    def test(self, test: Test) -> None:
        with self.turn:
            self.show_test(test)

    def show_test(self, test: Test) -> None:
        count = self.counts.setdefault(test.chapter, Count())
        count.add(test)
        if self.progress is not None:
            if test.chapter not in self.bars:
                self.add_bar(test.chapter)
            self.progress.update(self.bars[test.chapter], completed=count.tests,
                                 words=chapter_markup(count))
        if test.verdict in ("fail", "not-run"):
            first, *others = failure_lines(test)
            show.line(first, COLOURS[test.verdict])
            for line in others:
                show.line(line)
        if self.progress is None and count.tests == self.expected[test.chapter]:
            self.end_chapter(test.chapter)

    def end_chapter(self, chapter: str) -> None:
        if chapter not in self.shown:
            self.shown.add(chapter)
            count = self.counts[chapter]
            show.line(f"{chapter:{self.width}}  {count.seconds:7.1f} s  "
                      + chapter_words(count))


def table(results: Results) -> Table:
    found = Table(box=None, pad_edge=False)
    for heading in ("chapter", "tests", *VERDICT_WORDS.values(), "seconds"):
        found.add_column(heading, justify="left" if heading == "chapter" else "right")
    chapters = results.chapters
    for name, count in [*chapters.items(), ("all", results.total)]:
        cells = [Text(str(count.of[v]), COLOURS[v] if count.of[v] else "")
                 for v in VERDICTS]
        found.add_row(name, str(count.tests), *cells, f"{count.seconds:.1f}",
                      style="bold" if name == "all" else None)
    return found


def summary(results: Results) -> None:
    """Print why tests do not apply, a table, other faults, and the verdict."""
    reasons = Counter(test.reason or "no reason given"
                      for test in results.of_verdict("na"))
    if reasons:
        show.line()
        show.line("Not applicable:")
        for reason, times in reasons.most_common():
            show.line(f"  {times:4} {reason}")
    show.line()
    show.console.print(table(results))
    show.line()
    if results.missing:
        show.line(f"{results.missing} announced tests have no result", "bold red")
    if results.transport:
        show.line("The drive's RNIC has counted: " + ", ".join(results.transport))
    for text in results.complaints:
        show.line(text, "bold red")
    show.line(results.last_line,
              "bold green" if results.is_conforming else "bold red")
