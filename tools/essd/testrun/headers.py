# SPDX-License-Identifier: BSD-2-Clause
"""Which headers make the native build compile many objects again when they change.

Headers that rebuild more than MANY objects of build/native are on a list,
tools/not_yet_clean/headers.txt, which only shrinks: the native stage fails when a header
that is not listed rebuilds SLACK more than that, and when an entry is no longer needed.
After a whole build, this prints all of them:

    PYTHONPATH=tools python3 -m essd.testrun.headers
"""
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ..base.errors import LOOK_UP_S
from ..base.paths import TOP

MANY = 250
# So far may a header be above or below MANY: a few new tests change nothing.
SLACK = 25
LIST = "tools/not_yet_clean/headers.txt"


def rebuilt(lines: Iterable[str], build: Path, top: Path) -> tuple[Counter[str], int]:
    """How many objects need each header of the project, and how many objects there are.

    `lines` is what `ninja -t deps` prints: a line for each object, followed by a line with
    four blanks for each file that its compiler has read.
    """
    counts: Counter[str] = Counter()
    names: dict[str, str] = {}
    objects = 0
    for line in lines:
        if not line.startswith(" "):
            objects += ": #deps " in line
            continue
        path = line.strip()
        if not path.endswith(".h"):
            continue
        if path not in names:
            # Without links: a path below the top stays one.
            names[path] = os.path.relpath(os.path.normpath(build / path), top)
        if not names[path].startswith("../"):
            counts[names[path]] += 1
    return counts, objects


def read_build(build: Path, top: Path = TOP) -> tuple[Counter[str], int]:
    printed = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, text=True,
                             stdout=subprocess.PIPE, timeout=LOOK_UP_S).stdout
    return rebuilt(printed.splitlines(), build, top)


def listed(top: Path = TOP) -> set[str]:
    path = top / LIST
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {line for line in lines if line and not line.startswith("#")}


def complaints(counts: Counter[str], known: set[str]) -> list[str]:
    """What is wrong with the headers, and with the list."""
    lines = [f"{name} rebuilds {count} objects, more than {MANY}: let fewer files include "
             "it, or divide it"
             for name, count in sorted(counts.items())
             if count > MANY + SLACK and name not in known]
    lines += [f"{name} rebuilds {counts[name]} objects now: remove it from {LIST}"
              for name in sorted(known) if counts[name] <= MANY - SLACK]
    return lines


def summary(counts: Counter[str], objects: int) -> str:
    many = sum(count > MANY for count in counts.values())
    above = Counter({name: count for name, count in counts.items()
                     if not name.startswith("lib/")})
    most = ", ".join(f"{name} {count}" for name, count in above.most_common(3))
    return (f"{many} headers rebuild more than {MANY} of {objects:,} objects; those of lib "
            f"apart, the most: {most or 'none'}")


def main() -> int:
    counts, objects = read_build(TOP / "build/native")
    for name, count in counts.most_common():
        if count > MANY:
            print(f"{count:5} {name}")
    wrong = complaints(counts, listed())
    print("\n".join([*wrong, summary(counts, objects)]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
