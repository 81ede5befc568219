#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that every source beside a sources.cmake is listed in it, once.

CMake itself refuses a listed file that does not exist.
"""
import pathlib
import re
import sys

import lint_baseline

LIST = re.compile(r"^set\((?:NATIVE_|RV64_)?SOURCES\s([^)]*)\)", re.M)


def complaints(root: pathlib.Path) -> list[str]:
    found = []
    for path in lint_baseline.files("sources.cmake", root=root):
        folder = path.parent
        where = folder.relative_to(root).as_posix()
        listed = [name for block in LIST.findall(path.read_text())
                  for name in block.split()]
        for name in sorted({n for n in listed if listed.count(n) > 1}):
            found.append(f"{where}/sources.cmake: lists {name} twice")
        for source in sorted(folder.glob("*.c")):
            if source.name not in listed:
                found.append(f"{where}/{source.name}: is in no list of "
                             f"{where}/sources.cmake")
    return found


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    found = complaints(root)
    for line in found:
        print(line)
    print(f"check_sources: {len(found)} complaint(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
