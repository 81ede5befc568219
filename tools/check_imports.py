#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check which packages of tools/essd import which others, and that there is no circle.

Each package has a row in MAY_IMPORT with the packages that it may import.  These stand
above it, so that no packages import each other in a circle.  An import inside of a function
counts as one at the top of the file does: it makes a command start faster, and does not
make a package independent.  A package that a row allows and nobody imports is a mistake,
too, so the rows are what is true.  Every module is in a package, except those of TOP.

The column "may import" of the table in docs/architecture.md is made from the same rows:
the check fails if it differs, and with --write it is written anew.
"""
import argparse
import ast
import pathlib
import sys
from collections.abc import Iterator

from lint_table import Table

# For each package, the packages besides its own from which it may import.
MAY_IMPORT: dict[str, list[str]] = {
    "base": [],
    "settings": ["base"],
    "build": ["base"],
    "instance": ["base", "build"],
    "machine": ["base", "build", "instance"],
    "storage": ["base", "settings", "build", "instance", "machine"],
    "drive": ["base", "instance", "machine"],
    "debug": ["base", "build", "instance", "machine", "storage", "drive"],
    "supervisor": ["base", "build", "instance", "machine", "storage", "drive"],
    "observe": ["base", "instance", "machine", "storage", "drive", "debug"],
    "setup": ["base", "settings", "build", "instance", "machine", "storage", "drive", "debug"],
    "topology": ["base", "settings", "build", "instance", "machine", "storage", "observe",
                 "setup"],
    "api": ["base", "build", "instance", "machine", "storage", "drive", "observe", "setup",
            "topology"],
    "demo": ["base", "build", "instance", "machine", "storage", "drive", "observe", "setup",
             "topology", "api"],
    "bench": ["base", "build", "instance", "machine", "storage", "drive", "observe",
              "setup", "topology"],
    "conform": ["base", "settings", "build", "instance", "machine", "storage", "drive",
                "observe", "setup", "topology"],
    "testrun": ["base", "build", "instance", "machine", "setup"],
    "cockpit": ["base", "instance", "drive", "observe"],
    "cli": ["base", "settings", "build", "instance", "machine", "storage", "drive", "debug",
            "supervisor", "observe", "setup", "topology", "api", "demo", "bench", "conform",
            "testrun", "cockpit"],
}
# These files are no part of a package, and may import everything.
TOP = ("__init__", "__main__", "pytest_plugin")

PAGE = "docs/architecture.md"
TABLE = Table(PAGE, "tools/check_imports.py", "packages", "(describe this package)",
              "| package | what is in it | may import |\n|---|---|---|\n")


def cells() -> dict[str, str]:
    return {name: ", ".join(f"`{other}`" for other in others) or "nothing"
            for name, others in MAY_IMPORT.items()}


def imported(path: pathlib.Path, folder: pathlib.Path) -> Iterator[tuple[int, list[str]]]:
    """The line of each import of something of essd, with its name in parts: after "essd"."""
    place = list(path.relative_to(folder).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            yield from ((node.lineno, name[1:]) for name in names if name[0] == "essd")
        elif isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            if node.level:
                base = place[:len(place) - (node.level - 1)] + module
            elif module[:1] == ["essd"]:
                base = module[1:]
            else:
                continue
            yield from ((node.lineno, [*base, alias.name]) for alias in node.names)


def complaints(folder: pathlib.Path) -> list[str]:
    """What is wrong with the packages in this folder."""
    order = list(MAY_IMPORT)
    found = [f"check_imports.py: {name} may not import {other}, which does not stand above it"
             for n, name in enumerate(order) for other in MAY_IMPORT[name]
             if other not in order[:n]]
    used: set[tuple[str, str]] = set()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        package = name.partition("/")[0]
        if "/" not in name:
            if path.stem not in TOP:
                found.append(f"{name}: belongs into a package; TOP has the files that do not")
            continue
        if package not in MAY_IMPORT:
            found.append(f"{name}: MAY_IMPORT has no row for its package")
            continue
        for line, parts in imported(path, folder):
            other = parts[0] if parts else ""
            if other == package or other not in MAY_IMPORT:
                continue
            used.add((package, other))
            if other not in MAY_IMPORT[package]:
                found.append(f"{name}:{line}: {package} may not import {other}")
    found += [f"check_imports.py: {name} does not import {other} any more: take it out"
              for name, others in MAY_IMPORT.items() for other in others
              if (name, other) not in used]
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Check which packages import which.")
    parser.add_argument("--write", action="store_true",
                        help=f"write the table of packages in {PAGE}")
    options = parser.parse_args(arguments)
    root = pathlib.Path(__file__).resolve().parent.parent
    page = root / PAGE
    if options.write:
        page.write_text(TABLE.written(page.read_text(encoding="utf-8"), cells()),
                        encoding="utf-8")
    found = complaints(root / "tools/essd") + TABLE.complaints(
        page.read_text(encoding="utf-8"), cells())
    for line in found:
        print(line)
    print(f"check_imports: {len(found)} complaint(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
