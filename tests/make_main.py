#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Make the main() of cmocka programs: each runs every test of its source.

    make_main.py TOP [SOURCE OUTPUT]...

SOURCE is relative to TOP, the project's folder.  An OUTPUT that would not change
is not written.

A test is a function `static void test_...(void **state)`; tests/test_fixture.h
says how it gets a setup and a teardown.  OUTPUT includes SOURCE, so that tests
stay static and the compiler complains about helpers that nothing uses.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

FIXTURE = r"\(\s*(\w+)\s*,\s*(\w+)\s*\)"
TEST = re.compile(rf"(?P<fixtures>(?:^WITH_FIXTURE{FIXTURE}\s*)*)"
                  r"^static\s+void\s+(?P<name>test_\w+)\(\s*void\s*\*\*\s*\w+\s*\)\s*\{",
                  re.M)
# Anything that looks like a test and is not one would be left out silently.
LOOKS_LIKE_ONE = re.compile(r"\b(test_\w+)\(\s*void\s*\*\*")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


class Mistake(Exception):
    """Why no main() can be made for a source; one line."""


@dataclass(frozen=True)
class Test:
    name: str
    setup: str
    teardown: str


def one(word: str, text: str) -> tuple[str, str]:
    """The two names of a line that stands at most once in a file."""
    found = re.findall(rf"^{word}{FIXTURE}", text, re.M)
    if len(found) > 1:
        raise Mistake(f"{word} is there more than once")
    return found[0] if found else ("NULL", "NULL")


def tests(text: str) -> list[Test]:
    """Every test of a source, in the order of their definitions."""
    text = COMMENT.sub(" ", text)
    default = one("TEST_FIXTURE", text)
    found = []
    for match in TEST.finditer(text):
        fixtures = re.findall(FIXTURE, match["fixtures"]) or [default]
        found += [Test(match["name"], *fixture) for fixture in fixtures]
    names = {test.name for test in found}
    for name in LOOKS_LIKE_ONE.findall(text):
        if name not in names:
            raise Mistake(f"{name} is not defined as static void {name}(void **state)")
    if len(re.findall(r"\bWITH_FIXTURE\b", text)) != sum(
            len(re.findall(FIXTURE, m["fixtures"])) for m in TEST.finditer(text)):
        raise Mistake("a WITH_FIXTURE does not stand directly before a test")
    if not found:
        raise Mistake("holds no test")
    if re.search(r"^int main\(", text, re.M):
        raise Mistake("has a main() of its own; the build makes one")
    return found


def program(source: str, text: str) -> str:
    group = one("GROUP_FIXTURE", COMMENT.sub(" ", text))
    found = tests(text)
    names = [test.name for test in found]
    rows = []
    for test in found:
        shown = test.name if names.count(test.name) == 1 else \
            f"{test.name} with {test.setup}"
        rows.append(f'        {{"{shown}", {test.name}, {test.setup}, '
                    f"{test.teardown}, NULL}},\n")
    return ("/* SPDX-License-Identifier: BSD-2-Clause */\n"
            "/* Made by tests/make_main.py. */\n"
            f'#include "{source}"\n\n'
            "int main(void)\n{\n"
            "    const struct CMUnitTest tests[] = {\n" + "".join(rows) + "    };\n\n"
            f"    return cmocka_run_group_tests(tests, {group[0]}, {group[1]});\n}}\n")


def main() -> int:
    top, *files = sys.argv[1:]
    status = 0
    for source, output in zip(files[::2], files[1::2], strict=True):
        try:
            text = program(source, (Path(top) / source).read_text(encoding="utf-8"))
        except Mistake as mistake:
            print(f"{source}: {mistake}", file=sys.stderr)
            status = 1
            continue
        if not Path(output).exists() or Path(output).read_text(encoding="utf-8") != text:
            Path(output).write_text(text, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
