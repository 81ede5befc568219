#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that firmware/app only puts the drive together.

A function there decides at most DECISIONS times: a decision is an `if`, a loop, a `case`,
`&&`, `||` or `?`.  Whoever needs more writes logic, which gets a directory and unit tests
(docs/decisions/0034-rooms-of-the-application.md).  Every function of firmware/app counts,
also those in headers.

tools/not_yet_clean/composition.txt lists the functions that decided more often when the
lint came, with their number of decisions:

    firmware/app/drive.c:reserve_target 5

That list only shrinks.  The lint fails when a function that is not listed decides too
often, when a listed one has grown, and when an entry is too high or no longer needed.
--shrink removes and lowers such entries; it never adds or raises one.
"""
import pathlib
import re
import sys
from collections.abc import Iterator

import lint_baseline

LINT = "composition"
PLACE = "firmware/app"
DECISIONS = 3
DECISION = re.compile(r"\b(?:if|for|while|case)\b|&&|\|\||\?")
# Comments, strings and characters, which hold no decisions.
SILENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
NAME = re.compile(r"\b(?!__attribute__|_Alignas)(\w+)\(")


def without_text(source: str) -> str:
    """The source with the same lines, but without comments and strings."""
    return SILENT.sub(lambda found: "\n" * found[0].count("\n"), source)


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Each function's name and number of decisions, in the layout of clang-format."""
    lines = without_text(source).splitlines()
    opened = None
    for number, line in enumerate(lines):
        if line == "{":
            opened = number
        elif line.startswith("}") and opened is not None:
            head = opened
            while head > 0 and lines[head - 1].strip() and not lines[head - 1].startswith(
                    ("}", "#")):
                head -= 1
            name = NAME.search("\n".join(lines[head:opened]))
            if name is not None:
                yield name[1], len(DECISION.findall("\n".join(lines[opened:number])))
            opened = None


def too_much(name: str, source: str) -> dict[str, int]:
    """The functions of a file that decide too often, each with how often."""
    return {f"{name}:{function}": count for function, count in functions(source)
            if count > DECISIONS}


def listed() -> dict[str, int]:
    return {name: int(count) for name, count in
            (line.rsplit(" ", 1) for line in lint_baseline.read(LINT))}


def complaints(found: dict[str, int], known: dict[str, int]) -> list[str]:
    lines = []
    for name in sorted(found.keys() | known.keys()):
        count, most = found.get(name, 0), known.get(name, 0)
        if most == 0:
            lines.append(f"{name}: decides {count} times; at most {DECISIONS} in {PLACE}: "
                         "logic belongs to a directory of its own, with unit tests")
        elif count > most:
            lines.append(f"{name}: decides {count} times, {count - most} more than in "
                         f"tools/not_yet_clean/{LINT}.txt: put the addition elsewhere")
        elif count < most:
            lines.append(f"{name}: decides less often than in tools/not_yet_clean/{LINT}.txt: "
                         "lower or remove its entry with --shrink")
    return lines


def shrink(found: dict[str, int]) -> None:
    path = lint_baseline.LISTS / f"{LINT}.txt"
    if not path.exists():
        return
    comments = [line for line in path.read_text(encoding="utf-8").splitlines()
                if line.startswith("#")]
    kept = [f"{name} {min(count, found[name])}" for name, count in listed().items()
            if name in found]
    if kept:
        path.write_text("\n".join([*comments, *kept]) + "\n", encoding="utf-8")
    else:
        path.unlink()


def all_found(root: pathlib.Path = lint_baseline.ROOT) -> dict[str, int]:
    found: dict[str, int] = {}
    for path in sorted((root / PLACE).glob("**/*.[ch]")):
        found |= too_much(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    return found


def main() -> int:
    found = all_found()
    if "--shrink" in sys.argv[1:]:
        shrink(found)
    lines = complaints(found, listed())
    for line in lines:
        print(line)
    print(f"check_composition: {len(lines)} complaint(s), {len(listed())} exceptions")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
