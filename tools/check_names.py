#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that the name of every static C function has more than one word.

A name such as sntp_use_sample can be found with grep and read in a backtrace;
`use` cannot.  With --shrink, files that have become clean leave the list of
exceptions (see lint_baseline.py).
"""
import re
import sys

import lint_baseline

LINT = "names"
# Names that have one meaning in C and in cmocka.
ALLOWED = {"main", "min", "max", "setup", "teardown"}
# clang-format puts a function's name directly before its parenthesis.  A declaration
# with "=" or ";" before the parenthesis is data.
FUNCTION = re.compile(r"^static\b[^;={}()]*?\b(\w+)\(", re.M)
# static void (*name)(void) and attributes that take arguments.
NO_FUNCTION = {"__attribute__", "_Alignas"}


def one_word_functions(text: str) -> list[tuple[int, str]]:
    """Line and name of each static function whose name is one word."""
    return [(text.count("\n", 0, match.start(1)) + 1, match[1])
            for match in FUNCTION.finditer(text)
            if "_" not in match[1].strip("_") and match[1] not in ALLOWED | NO_FUNCTION]


def main() -> int:
    found = {}
    for path in lint_baseline.files("*.c", "*.h"):
        name = path.relative_to(lint_baseline.ROOT).as_posix()
        lines = [f"{name}:{number}: the static function {word}() needs a noun "
                 f"in its name, such as {path.stem}_{word}_<what>()"
                 for number, word in one_word_functions(path.read_text(encoding="utf-8"))]
        if lines:
            found[name] = lines
    if "--shrink" in sys.argv[1:]:
        lint_baseline.shrink(LINT, set(found))
    lines = lint_baseline.complaints(LINT, found)
    for line in lines:
        print(line)
    print(f"check_names: {len(lines)} complaint(s), {len(lint_baseline.read(LINT))} "
          "files not checked yet")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
