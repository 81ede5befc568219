#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check the documents: the width of their lines, and that no link is dead.

A line has at most 100 columns, except for rows of tables, which Markdown cannot
wrap.  A relative link names a file of the tree and, after a "#", one of its
headings.  A path such as docs/nvme.md in any source must exist too.  With
--shrink, documents that have become clean leave the list of those that are too
wide (see lint_baseline.py); dead links are never excepted.
"""
import pathlib
import re
import sys
import unicodedata

import lint_baseline
from lint_baseline import ROOT

LINT = "docs"
COLUMNS = 100
LINK = re.compile(r"(?<!\\)!?\[[^][]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)"
                  r"|^\[[^]]+\]:\s+(\S+)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
FENCE = re.compile(r"^\s*(```|~~~)")
MENTION = re.compile(r"(?<![\w./-])docs/[\w./-]*\w\.md\b")
SOURCES = ("*.c", "*.h", "*.py", "*.txt", "*.cmake", "*.toml", "*.build", "*.S", "*.yml",
           "*.yaml", "essd")


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else
               0 if unicodedata.combining(c) else 1 for c in line)


def wide_lines(name: str, text: str) -> list[str]:
    return [f"{name}:{number}: {columns(line)} columns; at most {COLUMNS}"
            for number, line in enumerate(text.splitlines(), 1)
            if columns(line) > COLUMNS and not line.lstrip().startswith("|")]


def without_code_blocks(text: str) -> list[str]:
    """The lines of a document, with empty lines in place of code blocks."""
    lines, fence = [], ""
    for line in text.splitlines():
        match = FENCE.match(line)
        if match and fence in ("", match[1]):
            fence = "" if fence else match[1]
            line = ""
        lines.append("" if fence else line)
    return lines


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to a document's headings."""
    found: set[str] = set()
    for line in without_code_blocks(text):
        match = HEADING.match(line)
        if match:
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", match[1])
            words = re.sub(r"[^\w\- ]", "", words.lower())
            slug = base = words.replace(" ", "-")
            number = 0
            while slug in found:
                number += 1
                slug = f"{base}-{number}"
            found.add(slug)
    return found


def dead_link(document: pathlib.Path, link: str) -> str:
    """Why a link of a document is dead; "" if it is not."""
    if re.match(r"[a-z][a-z+.-]*:", link):
        return ""                       # other sites are not checked
    path, _, anchor = link.partition("#")
    target = (document.parent / path) if path else document
    if not target.resolve().is_relative_to(ROOT) or not target.exists():
        return f"there is no {path}"
    if anchor and target.suffix == ".md" and \
            anchor not in anchors(target.read_text(encoding="utf-8")):
        return f"{target.name} has no heading #{anchor}"
    return ""


def dead_links(document: pathlib.Path, text: str) -> list[str]:
    name = document.relative_to(ROOT).as_posix()
    found = []
    for number, line in enumerate(without_code_blocks(text), 1):
        for match in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
            link = match[1] or match[2]
            why = dead_link(document, link)
            if why:
                found.append(f"{name}:{number}: dead link {link}: {why}")
    return found


def dead_mentions() -> list[str]:
    """Documents that sources name and that do not exist."""
    found = []
    for path in lint_baseline.files(*SOURCES):
        if path.is_dir():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found += [f"{path.relative_to(ROOT)}:{number}: there is no {name}"
                      for name in MENTION.findall(line) if not (ROOT / name).exists()]
    return found


def main() -> int:
    wide, dead = {}, []
    for path in lint_baseline.files("*.md"):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        lines = wide_lines(name, text)
        if lines:
            wide[name] = lines
        dead += dead_links(path, text)
    if "--shrink" in sys.argv[1:]:
        lint_baseline.shrink(LINT, set(wide))
    lines = lint_baseline.complaints(LINT, wide) + dead + dead_mentions()
    for line in lines:
        print(line)
    print(f"check_docs: {len(lines)} complaint(s), {len(lint_baseline.read(LINT))} "
          "documents not checked for width yet")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
