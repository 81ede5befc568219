#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check the blocks in documents that say where measured figures come from.

A section with measured figures begins with such a block:

    | measured | 28 November 2026, commit `2156a919` |
    |---|---|
    | command | `./essd bench --nand 8G` |
    | of | `firmware`, `nvmeof` |

It says when and with which commit the figures were measured, with which command, and
of which files and folders they are: those whose changes may change the figures.  Other
rows may follow, such as the machine.  "not noted" stands for a commit or a command
that nobody has written down.  A block is for its section and the ones below it.

The lint fails when a block lacks a row or names a commit or a path that does not exist,
and when a section has figures of speed (IOPS, MB/s, 900 runs a second) or of time (took
12 s), or says that something was measured, but has no block.

A block is stale when STALE_COMMITS commits or more have changed what its figures are
of, or when one has and STALE_DAYS have passed since.  If the commit was not noted, the
last one of that day counts.  --report lists all blocks with their state, the stale ones
first.  Stale blocks do not fail the lint, but tools/check_release.py.
"""
import argparse
import datetime
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import lint_baseline
from check_docs import HEADING, without_code_blocks
from lint_baseline import ROOT

STALE_COMMITS = 100
STALE_DAYS = 90
GIT_S = 60
BEGIN = re.compile(r"^\| measured \| (\d{1,2} \w+ \d{4}), "
                   r"commit (?:`([0-9a-f]{7,40})`|not noted) \|$")
ROW = re.compile(r"^\| ([\w ]+) \| (.*) \|$")
PATH = re.compile(r"`([^`]+)`")
# What a measured figure looks like: its unit, the head of a table, a duration, a rate, or
# the sentence that says how it was measured.
TIME = (r"(?:about |some |only |at most |less than |nearly )*\d[\d,.]*(?: to \d[\d,.]*)? "
        r"(?:CPU )?(?:ns|µs|us|ms|s|min|seconds|minutes|hours)\b")
UNITS = r"(?: (?!(?:and|later)\b)[\w-]+){0,3}"
FEW = r"(?:a|an|one|two|three|four|five|six|ten)"
FIGURE = re.compile(r"\b\d[\d,.]* (?:k|M)?(?:IOPS|MB/s|MiB/s|GB/s)\b"
                    r"|^\|[^|]*\|.*\bIOPS\b.*\|$"
                    r"|\b[Mm]easured (?:with|on|for|while)\b|\b(?:was|were) measured\b"
                    r"|\b[Ff]igures are (?:from|of)\b"
                    rf"|\b(?:took|takes?|taking) {TIME}"
                    rf"|\b(?:took|takes?) (?:about |some |nearly )?{FEW} (?:minutes?|hours?)\b"
                    r"|\b[Ii]n (?:about )?\d[\d,.]* (?:minutes|hours)\b"
                    rf"|\b[Ii]n about {FEW} (?:minutes?|hours?)\b"
                    rf"|\b\d[\d,.]*{UNITS} per second\b"
                    # Not "2 ports and a second switch".
                    rf"|\b\d[\d,.]*{UNITS} a second(?=\s*[.,;:)|]|$)")
# What others have published has a link to it in the same line.
PUBLISHED = re.compile(r"\]\(https?://")
# Figures of others, of settings and of the hardware that is modelled.
NO_MEASUREMENTS = ("docs/hardware/", "docs/decisions/", "docs/json.md", "CHANGELOG.md",
                   "tools/nand/profile_sources.md")


@dataclass
class Block:
    page: str
    line: int
    section: str
    date: datetime.date
    commit: str                     # "" if it was not noted
    rows: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def command(self) -> str:
        return self.rows.get("command", "")

    @property
    def paths(self) -> list[str]:
        return PATH.findall(self.rows.get("of", ""))


def blocks(page: str, text: str) -> Iterator[Block]:
    section = ""
    block = None
    for number, line in enumerate(without_code_blocks(text), 1):
        heading = HEADING.match(line)
        if heading:
            section = heading[1]
        begin = BEGIN.match(line)
        row = ROW.match(line)
        if begin:
            date = datetime.datetime.strptime(begin[1], "%d %B %Y").date()
            block = Block(page, number, section, date, begin[2] or "")
        elif block and row:
            block.rows[row[1]] = row[2]
        elif block and not line.startswith("|"):
            yield block
            block = None
    if block:
        yield block


def uncovered(page: str, text: str) -> list[str]:
    """The sections with measured figures and without a block in them or above them."""
    found = []
    has_block: list[bool] = [False] * 7     # by the level of the headings above
    level, heading_of, figures = 0, page, 0

    def end_section() -> None:
        if figures and not any(has_block[:level + 1]):
            found.append(f'{page}:{figures}: "{heading_of}" has measured figures and no '
                         f"block that says where they come from (tools/check_measured.py)")

    for number, line in enumerate(without_code_blocks(text), 1):
        heading = HEADING.match(line)
        if heading:
            end_section()
            level = len(line) - len(line.lstrip("#"))
            has_block[level:] = [False] * (7 - level)
            heading_of, figures = heading[1], 0
        elif line.startswith("| measured |"):
            has_block[level] = True
        elif FIGURE.search(line) and not PUBLISHED.search(line) and not figures:
            figures = number
    end_section()
    return found


def git(root: pathlib.Path, *words: str) -> str | None:
    """What git prints; None if it fails or this is not a checkout."""
    done = subprocess.run(["git", *words], cwd=root, check=False, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=GIT_S)
    return done.stdout.strip() if done.returncode == 0 else None


def commit_of(block: Block, root: pathlib.Path = ROOT) -> str | None:
    """The commit that was measured, if it is in the history of what is checked out.

    A commit of a branch that was rebased may still lie in this repository; a fresh clone does
    not have it, and nobody could measure it again.
    """
    if block.commit:
        name = git(root, "rev-parse", "--verify", "--quiet", block.commit + "^{commit}")
        return name if name and git(root, "merge-base", "--is-ancestor", name, "HEAD") is not None \
            else None
    return git(root, "rev-list", "-1", f"--before={block.date} 23:59:59", "HEAD")


def is_checkout(root: pathlib.Path = ROOT) -> bool:
    """Whether git knows the history; a copy without it cannot be compared."""
    return git(root, "rev-parse", "--is-shallow-repository") == "false"


def mistakes(block: Block, root: pathlib.Path = ROOT) -> list[str]:
    found = [f'{block.place}: the block has no row "{name}"' for name in ("command", "of")
             if not block.rows.get(name)]
    if block.rows.get("of") and not block.paths:
        found.append(f"{block.place}: write the paths in backticks")
    found += [f"{block.place}: there is no {path}" for path in block.paths
              if not (root / path).exists()]
    if block.commit and is_checkout(root) and not commit_of(block, root):
        found.append(f"{block.place}: there is no commit {block.commit} in this history")
    return found


def pages(root: pathlib.Path = ROOT) -> Iterator[tuple[str, str]]:
    for path in lint_baseline.files("*.md", root=root):
        yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def changes_since(block: Block, root: pathlib.Path = ROOT) -> int | None:
    """How many commits have changed what the figures are of; None: not known."""
    commit = commit_of(block, root)
    count = git(root, "rev-list", "--count", f"{commit}..HEAD", "--", *block.paths) \
        if commit else None
    return int(count) if count is not None else None


def is_stale(block: Block, changes: int | None, today: datetime.date) -> bool:
    """What is not known counts as stale."""
    return changes is None or changes >= STALE_COMMITS or (
        changes > 0 and (today - block.date).days > STALE_DAYS)


def report(root: pathlib.Path = ROOT) -> tuple[list[str], list[str]]:
    """A line for each stale block, and one for each of the others."""
    stale: list[str] = []
    fresh: list[str] = []
    for block in (block for page, text in pages(root) for block in blocks(page, text)):
        changes = changes_since(block, root)
        line = (f'{block.place}: "{block.section}", {block.date}, '
                f"{'an unknown number of' if changes is None else changes} changes since; "
                f"command: {block.command}")
        (stale if is_stale(block, changes, datetime.date.today()) else fresh).append(line)
    return stale, fresh


def complaints(page: str, text: str) -> list[str]:
    found = [line for block in blocks(page, text) for line in mistakes(block)]
    found += [f"{page}:{number}: this block is not in the form of tools/check_measured.py"
              for number, line in enumerate(without_code_blocks(text), 1)
              if line.startswith("| measured |") and not BEGIN.match(line)]
    return found if page.startswith(NO_MEASUREMENTS) else found + uncovered(page, text)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Check where measured figures come from.")
    parser.add_argument("--report", action="store_true",
                        help="list all blocks, the stale ones first")
    options = parser.parse_args(arguments)
    if options.report:
        stale, fresh = report()
        for line in stale:
            print(f"stale: {line}")
        for line in fresh:
            print(f"good:  {line}")
        print(f"{len(stale)} of {len(stale) + len(fresh)} blocks are stale")
        return 0
    found = [line for page, text in pages() for line in complaints(page, text)]
    for line in found:
        print(line)
    print(f"check_measured: {len(found)} complaint(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
