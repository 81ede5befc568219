# SPDX-License-Identifier: BSD-2-Clause
"""`essd conform --clauses`: how many tests each clause has.

untested.py lists by hand the clauses without a test.
"""

import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable

from . import conform, untested
from ..base.errors import EssdError, LOOK_UP_S

# (pattern of a specification in the list, its full name); the first match counts
SPECIFICATIONS = (
    (r"IBTA(?: Vol 1)?", "IBTA Vol 1"),
    (r"NVMe-oF(?: 1\.1)?", "NVMe-oF 1.1"),
    (r"NVM Command Set (1\.\d)", r"NVM Command Set \1"),
    (r"(?:NVMe Base|NVMe|Base) 2\.0", "NVMe Base 2.0"),
    (r"AoEr11", "AoE revision 11"),
    (r"OCP DC NVMe SSD 2\.0", "OCP Datacenter NVMe SSD 2.0"),
    (r"NVMe TP (\d+)", r"NVMe TP \1"),
    (r"NVMe TCP 1\.0", "NVMe TCP Transport 1.0"),
    (r"NVMe 1\.2\.1", "NVMe Base 1.2.1"),
    (r"NVMe(?: 1\.4)?", "NVMe Base 1.4"),
    (r"NVM Command Set(?: 1\.0)?", "NVM Command Set 1.0"),
    (r"(RFC \d+|IEEE [\d.]+[A-Za-z]*)(?:-\d+)?", r"\1"),
)
NO_SPECIFICATION = r"data sheet$|docs/"
CLAUSE = r"(?:(?:[A-Z]{0,2}\d+[A-Z]?|[A-Z](?=\.\d))(?:\.\d+[a-z]?)*)"
LINE = re.compile(r"^([a-z-]+\.\S+) +(\S.*?)(?:  +|$)")


def read_list(text: str) -> list[tuple[str, str]]:
    """The (identifier, clauses) of each test in the list."""
    found = [LINE.match(line) for line in text.splitlines() if line.strip()]
    if None in found or not found:
        raise EssdError("essd_conform --list --all has printed something else than a list")
    return [(match[1], match[2]) for match in found if match]


def clauses(text: str) -> Iterable[tuple[str, str]]:
    """(specification, clause): "NVMe 1.4 4.2, 6.1; RFC 768 Length" has three.

    A number without a specification belongs to the one before it.  What is no
    specification, such as "data sheet", has no clauses.
    """
    name = ""
    for part in re.split(r"[,;] *", text):
        words, is_named = part.strip(), False
        for pattern, full in SPECIFICATIONS:
            match = re.match(rf"{pattern}(?: |$)", words)
            if match:
                name, words, is_named = match.expand(full), words[match.end():], True
        found = re.match(CLAUSE, words)
        if name and found:
            yield name, found[0]
        elif is_named and name.startswith(("RFC", "IEEE", "NVMe TP", "OCP")):
            yield name, ""
        elif not is_named:
            name = ""


def unknown(tests: list[tuple[str, str]]) -> list[str]:
    """What tests name as a specification and SPECIFICATIONS does not list."""
    parts = {part.strip() for _, text in tests for part in text.split(";")}
    return sorted(part for part in parts
                  if not re.match(rf"{NO_SPECIFICATION}|{CLAUSE}", part)
                  and not list(clauses(part)))


def order(clause: str) -> tuple[object, ...]:
    parts = re.findall(r"[A-Z]+|\d+", clause)
    return tuple((part.isalpha(), int(part) if part.isdigit() else 0, part)
                 for part in parts)


def table(tests: list[tuple[str, str]]) -> str:
    lines = ["| specification | clauses with tests (how many) |", "| --- | --- |"]
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for _, text in tests:
        for name, clause in dict.fromkeys(clauses(text)):
            found[name][clause] += 1
    for name in sorted(found, key=lambda n: (n.split()[0], order(n))):
        numbers = ", ".join(f"{clause or 'whole'} ({found[name][clause]})"
                            for clause in sorted(found[name], key=order))
        lines.append(f"| {name} | {numbers} |")
    return "\n".join(lines)


def of_program(options: conform.Options) -> str:
    """The table of the chosen tests, long ones included."""
    program = conform.build(conform.LINK_PRESET)
    conform.test_ids(program, options)          # refuses names of no test
    only = [word for word in options.selection if word != "--all"]
    done = subprocess.run([str(program), "--list", *only, "--all"], check=True, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=LOOK_UP_S)
    tests = read_list(done.stdout)
    if unknown(tests):
        raise EssdError("tools/essd/conform/clauses.py: SPECIFICATIONS has no row for "
                        + ", ".join(unknown(tests)))
    return table(tests) + untested.text()
