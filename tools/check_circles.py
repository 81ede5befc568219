#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Report circles of C files: groups in which each file needs every other one.

A file needs another one if it names a function that the other one defines: it calls
the function, or takes its address.  Files are .c files, and headers with inline
functions.  A file of a circle can be understood, tested or replaced only together with
all others of its circle.

    tools/check_circles.py                    # the circles of each directory
    tools/check_circles.py nvmeof/target      # those of one, with their files
    tools/check_circles.py --calls storage/ftl  # and the functions that close them

A directory's circles include the files of the directories below it.  As a lint, it looks
at the directories in tools/not_yet_clean/circles.txt, each with the size of its largest
circle:

    nvmeof/target 39

The directories of CLEAN, below, have no circle of more than two files any more.
That list only shrinks.  The lint fails when a circle has grown, and when an entry is no
longer needed or is more than SLACK above what is true.  --shrink lowers and removes such
entries; it never adds or raises one.
"""
import argparse
import pathlib
import re
import sys
from collections.abc import Iterable

import lint_baseline

LINT = "circles"
MOST = 2            # files of a circle that need no entry
CLEAN = ("storage/ftl",)    # directories that have no larger circle, and get no entry
SLACK = 2           # a circle may become a little smaller without a new entry
NOT_CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|'
                      r"^[ \t]*#[^\n]*", re.DOTALL | re.MULTILINE)
# The layout is that of clang-format: a function's head begins in the first column, and
# its brace stands alone there.
DEFINITION = re.compile(r"^(?P<head>[A-Za-z_][^;{}=]*?)\b(?P<name>\w+)"
                        r"\((?P<rest>[^;{}]*)\)\s*\n\{$", re.MULTILINE)
BODY = re.compile(r"^\{$.*?^\}$", re.DOTALL | re.MULTILINE)
WORD = re.compile(r"\b[A-Za-z_]\w+\b")
Graph = dict[str, dict[str, set[str]]]


def code(text: str) -> str:
    """The text without comments, strings and preprocessor lines."""
    return NOT_CODE.sub(" ", text)


def definitions(text: str) -> dict[str, bool]:
    """The functions that a file defines, and whether each is static."""
    found = {}
    for match in DEFINITION.finditer(text):
        head = match["head"]
        if "(" in head and not head.startswith(("static", "__attribute__", "MUST_USE")):
            continue
        found[match["name"]] = "static" in head.split()
    return found


def graph(sources: dict[str, str]) -> Graph:
    """For each file, the files that it needs, with the functions."""
    texts = {name: code(text) for name, text in sources.items()}
    defined = {name: definitions(text) for name, text in texts.items()}
    home: dict[str, str] = {}
    for name, functions in defined.items():
        for function, is_static in functions.items():
            # Others can name a header's static functions, but not a .c file's.
            if not is_static or name.endswith(".h"):
                home[function] = name
    needs: Graph = {}
    for name, text in texts.items():
        mine: dict[str, set[str]] = {}
        if name.endswith(".h"):     # what it only declares, it does not need
            text = "\n".join(BODY.findall(text))
        for word in set(WORD.findall(text)) - defined[name].keys():
            if word in home:
                mine.setdefault(home[word], set()).add(word)
        needs[name] = mine
    return needs


def circles(needs: Graph) -> list[list[str]]:
    """The strongly connected groups of more than one file, the largest first."""
    reached = {name: reach(needs, name) for name in needs}
    left, found = set(needs), []
    while left:
        name = left.pop()
        circle = {name} | {other for other in reached[name] & left
                           if name in reached[other]}
        left -= circle
        if len(circle) > 1:
            found.append(sorted(circle))
    return sorted(found, key=lambda circle: (-len(circle), circle))


def reach(needs: Graph, name: str) -> set[str]:
    seen, todo = set(), [name]
    while todo:
        for other in needs[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def sources_of(directory: str, root: pathlib.Path = lint_baseline.ROOT) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
            for pattern in ("*.c", "*.h") for path in (root / directory).rglob(pattern)}


def listed() -> dict[str, int]:
    return {name: int(size) for name, size in
            (line.rsplit(" ", 1) for line in lint_baseline.read(LINT))}


def unclean(largest: dict[str, int]) -> list[str]:
    """What is wrong in the directories that were clean."""
    return [f"{name}: a circle of {largest[name]} files; at most {MOST}: "
            f"tools/check_circles.py --calls {name} shows what closes it"
            for name in CLEAN if largest[name] > MOST]


def complaints(largest: dict[str, int], known: dict[str, int]) -> list[str]:
    """What is wrong with the largest circle of each listed directory."""
    lines = []
    for name, most in known.items():
        size = largest.get(name, 0)
        if size > most:
            lines.append(f"{name}: a circle of {size} files; at most {most}: "
                         f"tools/check_circles.py --calls {name} shows what closes it")
        elif size <= MOST or size < most - SLACK:
            lines.append(f"{name}: the largest circle has {size} files now: lower its entry "
                         f"in tools/not_yet_clean/{LINT}.txt with --shrink")
    return lines


def shrink(largest: dict[str, int]) -> None:
    path = lint_baseline.LISTS / f"{LINT}.txt"
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, size = line.rpartition(" ")
        if line and not line.startswith("#"):
            now = min(largest.get(name, 0), int(size))
            if now <= MOST:
                continue
            line = f"{name} {now}"
        lines.append(line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def show(directory: str, with_calls: bool) -> None:
    needs = graph(sources_of(directory))
    found = circles(needs)
    print(f"{directory}: {len(needs)} files, "
          f"circles of {', '.join(str(len(c)) for c in found) or 'no'} files")
    for circle in found:
        print(f"  {len(circle)}:", ", ".join(pathlib.Path(name).name for name in circle))
        for name in circle if with_calls else ():
            for other in sorted(needs[name].keys() & set(circle)):
                print(f"     {name} -> {other}: {', '.join(sorted(needs[name][other]))}")


def main(arguments: Iterable[str]) -> int:
    parser = argparse.ArgumentParser(description="Report circles of C files.")
    parser.add_argument("directories", nargs="*", help="show these instead of the check")
    parser.add_argument("--calls", action="store_true", help="and what closes the circles")
    parser.add_argument("--shrink", action="store_true", help="lower the entries of the list")
    options = parser.parse_args(list(arguments))
    if options.directories:
        for directory in options.directories:
            show(directory, options.calls)
        return 0
    largest = {name: max(map(len, circles(graph(sources_of(name)))), default=0)
               for name in (*listed(), *CLEAN)}
    if options.shrink:
        shrink(largest)
    lines = complaints(largest, listed()) + unclean(largest)
    for line in lines:
        print(line)
    print(f"check_circles: {len(lines)} complaint(s); largest circles: "
          + ", ".join(f"{name} {size}" for name, size in largest.items()))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
