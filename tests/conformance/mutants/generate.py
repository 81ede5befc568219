#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plant the defects of defects/*.toml into copies of the sources.

    generate.py SOURCE_ROOT FOLDER OUTPUT      writes the copies
    generate.py SOURCE_ROOT FOLDER             lists the sources, one a line
    generate.py --tests FOLDER                 lists the programs that find defects,
                                               besides the conformance tests

Each defect names a file, a text that occurs exactly once in that file, and its
replacement, in which DEFECT is true while this defect is on.
"""

import sys
import tomllib
from collections import defaultdict
from pathlib import Path


NUMBERS = 10000         # MUTANT_NUMBERS in mutant.h


def fail(text: str) -> None:
    sys.exit(f"generate.py: {text}")


def read(folder: Path) -> dict[str, list[dict]]:
    """Defects by source, checked."""
    files: dict[str, list[dict]] = defaultdict(list)
    numbers: set[int] = set()
    defects = [defect for path in sorted(folder.glob("*.toml"))
               for defect in tomllib.loads(path.read_text())["defect"]]
    for defect in defects:
        number = defect["id"]
        if number in numbers:
            fail(f"defect {number} is there twice")
        numbers.add(number)
        if not 0 < number < NUMBERS:
            fail(f"defect {number} has no number from 1 to {NUMBERS - 1}")
        if "DEFECT" not in defect["replace"]:
            fail(f"defect {number} does not say DEFECT")
        files[defect["file"]].append(defect)
    return files


def plant(name: str, text: str, defects: list[dict]) -> str:
    places = []
    for defect in defects:
        find, number = defect["find"], defect["id"]
        if text.count(find) != 1:
            fail(f"defect {number}: its text occurs {text.count(find)} times in {name}: "
                 "the source has changed, so must the defect")
        places.append((text.index(find), len(find),
                       defect["replace"].replace("DEFECT", f"MUTANT({number})")))
    places.sort()
    done, at = "", 0
    for start, length, replacement in places:
        if start < at:
            fail(f"two defects of {name} overlap")
        done += text[at:start] + replacement
        at = start + length
    return done + text[at:]


def main() -> None:
    root, defects = Path(sys.argv[1]), Path(sys.argv[2])
    files = read(defects)
    if sys.argv[1] == "--tests":
        print("\n".join(sorted({defect["test"] for found in files.values()
                                for defect in found if "test" in defect})))
        return
    if len(sys.argv) == 3:
        print("\n".join(sorted(files)))
        return
    for name, planted in files.items():
        text = plant(name, (root / name).read_text(), planted)
        to = Path(sys.argv[3]) / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if not to.exists() or to.read_text() != text:
            to.write_text(text)


if __name__ == "__main__":
    main()
