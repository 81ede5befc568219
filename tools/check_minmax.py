#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that no argument of MIN() or MAX() does anything.

These macros evaluate one of their arguments twice.  A call in it happens twice, too: a
timer runs twice, a number is drawn twice, and a clock that goes on between the two gives
a result that is neither of them.  So the value of a call gets a variable first.  Calls of
macros (their names are capitals) and of ALLOWED functions are not calls in this sense.

With --shrink, files that have become clean leave the list of exceptions (see
lint_baseline.py), which has those whose functions only look something up.
"""
import re
import sys
from collections.abc import Iterator

import lint_baseline
from check_composition import without_text

LINT = "minmax"
# They only read memory that nothing changes meanwhile.
ALLOWED = re.compile(r"sizeof|strlen|get_[bl]e(?:16|24|32|64)|[A-Z][A-Z0-9_]*")
MACRO = re.compile(r"\b(?:MIN|MAX)\(")
CHANGE = re.compile(r"\+\+|--|[^=!<>]=(?!=)")


def arguments(source: str) -> Iterator[tuple[int, str]]:
    """Line and arguments of each MIN() and MAX()."""
    for found in MACRO.finditer(source):
        depth, end = 1, found.end()
        while depth and end < len(source):
            depth += {"(": 1, ")": -1}.get(source[end], 0)
            end += 1
        yield source.count("\n", 0, found.start()) + 1, source[found.end():end - 1]


def actions(text: str) -> list[str]:
    """The calls and assignments in arguments."""
    calls = [name for name in re.findall(r"(\w+)\s*\(", text) if not ALLOWED.fullmatch(name)]
    return calls + CHANGE.findall(text)


def complaints(name: str, text: str) -> list[str]:
    return [f"{name}:{line}: {', '.join(found)} in an argument of MIN() or MAX(), which evaluate "
            "it twice: use a variable"
            for line, words in arguments(without_text(text)) if (found := actions(words))]


def main() -> int:
    found = {}
    for path in lint_baseline.files("*.c", "*.h"):
        name = path.relative_to(lint_baseline.ROOT).as_posix()
        if lines := complaints(name, path.read_text(encoding="utf-8")):
            found[name] = lines
    if "--shrink" in sys.argv[1:]:
        lint_baseline.shrink(LINT, set(found))
    lines = lint_baseline.complaints(LINT, found)
    for line in lines:
        print(line)
    print(f"check_minmax: {len(lines)} complaint(s), {len(lint_baseline.read(LINT))} "
          "files not checked yet")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
