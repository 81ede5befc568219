#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that the pictures of the documents are those of their sources.

docs/pictures/*.dot are drawn by hand.  docs/pictures/states.toml names tables
of allowed transitions in the code, which are drawn as they are, so that the
picture of a state machine cannot differ from the machine.  Each SVG file holds
the checksum of what it was drawn from.

    tools/check_pictures.py --write    # draw those that are not current; needs
                                       # Graphviz: apt-get install graphviz
"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass

TOP = pathlib.Path(__file__).resolve().parents[1]
FOLDER = TOP / "docs/pictures"
DOT_S = 60
MARK = "made by tools/check_pictures.py from {source}; sha256 {checksum}"
ALWAYS = re.compile(r"every state may also go to (\w+)(?: and (\w+))?")
STYLE = """
    graph [bgcolor=white, fontname="DejaVu Sans", fontsize=11, pad=0.2]
    node [shape=box, style="rounded,filled", fillcolor="#eef3f8", color="#44607a",
          fontname="DejaVu Sans", fontsize=11, margin="0.14,0.07"]
    edge [color="#44607a", fontname="DejaVu Sans", fontsize=9, arrowsize=0.7]
"""


class PictureError(Exception):
    """A source from which no picture can be made."""


@dataclass(frozen=True)
class Machine:
    """A state machine, as the code's table of allowed transitions has it."""

    moves: dict[str, list[str]]     # from each state to others
    always: list[str]               # states to which every state may go


def read_table(text: str, name: str, prefix: str) -> Machine:
    """The table `name` of a C source: [STATE] = BIT(STATE) | BIT(STATE), ..."""
    found = re.search(rf"(?:/\*(?P<comment>(?:(?!\*/).)*)\*/\n)?"
                      rf"static const uint\w+ {name}\[\w+\] = {{\n(?P<body>.*?)\n}};",
                      text, re.S)
    if found is None:
        raise PictureError(f"there is no table {name}")
    body = re.sub(r"/\*.*?\*/", "", found["body"], flags=re.S)
    rows = re.findall(rf"\[{prefix}(\w+)\] =\s*([^\[]+?),\s*(?=\[|$)", body)
    names = list(dict.fromkeys(re.findall(rf"\b{prefix}(\w+)", body)))
    bits = {state: 1 << at for at, state in enumerate(names)}

    def value(expression: str) -> int:
        numbers = re.sub(rf"BIT\({prefix}(\w+)\)", lambda m: str(bits[m[1]]),
                         " ".join(expression.split()))
        if not re.fullmatch(r"(?:0x[0-9a-f]+|\d+|[&|~() ])+", numbers):
            raise PictureError(f"{name}: cannot read {expression!r}")
        return int(eval(numbers))   # digits and operators only

    moves = {}
    for state, expression in rows:
        allowed = value(expression)
        moves[state] = [other for other in names if allowed & bits[other]]
    comment = " ".join((found["comment"] or "").replace("*", " ").split())
    named = ALWAYS.search(comment)
    always = [state for state in named.groups() if state] if named else []
    return Machine(moves, always)


def draw_machine(title: str, machine: Machine) -> str:
    """The machine in Graphviz's language."""
    def label(state: str) -> str:
        return f'"{state.replace("_", " ")}"'

    lines = [f'digraph "{title}" {{', STYLE.strip("\n"), "    rankdir=TB"]
    first = next(iter(machine.moves))
    lines.append(f'    {label(first)} [fillcolor="#cfe0f0"]')
    lines += [f"    {label(state)} -> {label(other)}"
              for state, others in machine.moves.items() for other in others]
    if machine.always:
        lines.append('    any [label="any state", shape=plaintext, style="", '
                     'fontsize=10]')
        lines += [f"    any -> {label(state)} [style=dashed]" for state in machine.always]
    return "\n".join([*lines, "}", ""])


def sources() -> dict[str, tuple[str, str]]:
    """For each picture: where it comes from, and its text in Graphviz's language."""
    found = {}
    for path in sorted(FOLDER.glob("*.dot")):
        text = path.read_text(encoding="utf-8").replace("STYLE;", STYLE.strip())
        found[path.stem] = (str(path.relative_to(TOP)), text)
    table = tomllib.loads((FOLDER / "states.toml").read_text(encoding="utf-8"))
    for name, one in table.items():
        text = (TOP / one["file"]).read_text(encoding="utf-8")
        try:
            machine = read_table(text, one["table"], one["prefix"])
        except PictureError as error:
            raise PictureError(f"docs/pictures/states.toml: {name}: {one['file']}: "
                               f"{error}") from None
        found[f"states-{name}"] = (one["file"], draw_machine(name, machine))
    return found


def mark(source: str, text: str) -> str:
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return MARK.format(source=source, checksum=checksum)


def render(source: str, text: str) -> str:
    """The picture as SVG, with its mark."""
    done = subprocess.run(["dot", "-Tsvg"], input=text, text=True, check=True,
                          stdout=subprocess.PIPE, timeout=DOT_S)
    svg = done.stdout[done.stdout.index("<svg"):]
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.S)     # Graphviz's own comments
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            "<!-- SPDX-License-Identifier: BSD-2-Clause -->\n"
            f"<!-- {mark(source, text)} -->\n{svg}")


def complaints(write: bool) -> list[str]:
    wanted = sources()
    found = []
    for name, (source, text) in wanted.items():
        path = FOLDER / f"{name}.svg"
        if path.is_file() and mark(source, text) in path.read_text(encoding="utf-8"):
            continue
        if write:
            path.write_text(render(source, text), encoding="utf-8")
            print(f"drew {path.relative_to(TOP)}")
        else:
            found.append(f"{path.relative_to(TOP)}: {source} has changed since it was "
                         "drawn; run tools/check_pictures.py --write")
    found += [f"{path.relative_to(TOP)}: nothing is its source"
              for path in sorted(FOLDER.glob("*.svg")) if path.stem not in wanted]
    return found


def main(words: list[str]) -> int:
    write = words == ["--write"]
    if words and not write:
        print("usage: tools/check_pictures.py [--write]", file=sys.stderr)
        return 2
    if write and shutil.which("dot") is None:
        print("check_pictures: Graphviz is missing: apt-get install graphviz",
              file=sys.stderr)
        return 2
    try:
        found = complaints(write)
    except PictureError as error:
        found = [str(error)]
    print("\n".join([*found, f"check_pictures: {len(found)} complaint(s)"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
