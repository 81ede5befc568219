#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that no C file of the product is longer than 600 lines, no function than 60.

The product is everything but tests/ and examples/.  A function counts from the first
line of its head to its closing brace.  tools/not_yet_clean/sizes.txt lists what was
longer when the lint came, with its length:

    storage/ftl/io/ftl_io.c 1039
    firmware/app/main.c:start_drive 132

That list only shrinks.  The lint fails when something that is not listed is too long,
when something that is listed has grown, and when an entry is no longer needed or is
SLACK lines or more above what is true.  --shrink removes and lowers such entries; it
never adds or raises one.
"""
import re
import sys
from collections.abc import Iterator

import lint_baseline

LINT = "sizes"
FILE_LINES = 600
FUNCTION_LINES = 60
SLACK = 20          # a listed file may become a little shorter without a new entry
NOT_PRODUCT = ("tests/", "examples/")
HEAD = re.compile(r"^[A-Za-z_]")
NAME = re.compile(r"\b(?!__attribute__|_Alignas)(\w+)\(")


def functions(text: str) -> Iterator[tuple[str, int]]:
    """The name and the length of each function, in the layout of clang-format."""
    head, opened = 0, False
    name = ""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line == "{":
            found = NAME.search("\n".join(lines[head:number]))
            opened, name = found is not None, found[1] if found else ""
        elif line.startswith("}"):
            if opened:
                yield name, number - head + 1
            opened = False
        elif HEAD.match(line) and not opened and not line.rstrip().endswith(":"):
            # A head may have several lines that begin in the first column.
            if number == 0 or not HEAD.match(lines[number - 1]) \
                    or lines[number - 1].endswith((";", "}")):
                head = number


def too_long(name: str, text: str) -> dict[str, int]:
    """What is too long in a file, with its length."""
    found = {}
    count = len(text.splitlines())
    if count > FILE_LINES:
        found[name] = count
    for function, length in functions(text):
        if length > FUNCTION_LINES:
            key = f"{name}:{function}"
            found[key] = max(length, found.get(key, 0))
    return found


def listed() -> dict[str, int]:
    return {name: int(length) for name, length in
            (line.rsplit(" ", 1) for line in lint_baseline.read(LINT))}


def complaints(found: dict[str, int], known: dict[str, int]) -> list[str]:
    lines = []
    for name in sorted(found.keys() | known.keys()):
        length, most = found.get(name, 0), known.get(name, 0)
        limit = FUNCTION_LINES if ":" in name else FILE_LINES
        if most == 0:
            lines.append(f"{name}: {length} lines; at most {limit}: divide it")
        elif length > most:
            lines.append(f"{name}: {length} lines, {length - most} more than in "
                         f"tools/not_yet_clean/{LINT}.txt: put the addition elsewhere")
        elif length == 0:
            lines.append(f"{name}: has {limit} lines or fewer now; remove it from "
                         f"tools/not_yet_clean/{LINT}.txt with --shrink")
        elif length <= most - SLACK:
            lines.append(f"{name}: has {length} lines now; lower its entry in "
                         f"tools/not_yet_clean/{LINT}.txt with --shrink")
    return lines


def shrink(found: dict[str, int]) -> None:
    path = lint_baseline.LISTS / f"{LINT}.txt"
    if not path.exists():
        return
    comments = [line for line in path.read_text(encoding="utf-8").splitlines()
                if line.startswith("#")]
    kept = [f"{name} {min(length, found[name])}" for name, length in listed().items()
            if name in found]
    if kept:
        path.write_text("\n".join([*comments, *kept]) + "\n", encoding="utf-8")
    else:
        path.unlink()


def main() -> int:
    found: dict[str, int] = {}
    for path in lint_baseline.files("*.c", "*.h"):
        name = path.relative_to(lint_baseline.ROOT).as_posix()
        if not name.startswith(NOT_PRODUCT):
            found |= too_long(name, path.read_text(encoding="utf-8"))
    if "--shrink" in sys.argv[1:]:
        shrink(found)
    lines = complaints(found, listed())
    for line in lines:
        print(line)
    print(f"check_sizes: {len(lines)} complaint(s), {len(listed())} exceptions")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
