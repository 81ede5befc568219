# SPDX-License-Identifier: BSD-2-Clause
"""`essd conform --only`: refuse names that no test can have before anything is built.

Only the program knows all names, because macros make many of them.  If it is as new
as its sources, it is asked.  Otherwise a name is refused if its chapter does not exist
or one of its words occurs in no string of the chapter's sources; what is left is
checked by the program when it has been built.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from ..base import chosen, paths

SOURCES = "tests/conformance"
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
WORD = re.compile(r"[a-z0-9]+")
TABLE = re.compile(r'\bCONF_TESTS\(\s*\w+\s*,\s*"([\w-]+)"\s*,')


def sources() -> list[Path]:
    return sorted((paths.TOP / SOURCES).rglob("*.[ch]"))


def is_new(program: Path) -> bool:
    """Whether the program was built after the last change of its sources."""
    try:
        built = program.stat().st_mtime
        return bool(found := sources()) and all(x.stat().st_mtime < built for x in found)
    except OSError:
        return False


def words_of(text: str) -> set[str]:
    return {word for string in STRING.findall(text) for word in WORD.findall(string)}


def chapters() -> dict[str, set[str]]:
    """The words in the strings of each chapter's sources; those of headers are in all."""
    found: dict[str, set[str]] = {}
    shared: set[str] = set()
    for path in sources():
        text = path.read_text(encoding="utf-8", errors="replace")
        tables = TABLE.findall(text)
        for name in tables:
            found.setdefault(name, set()).update(words_of(text))
        if not tables:
            shared |= words_of(text)
    return {name: words | shared for name, words in found.items()}


def impossible(names: Iterable[str]) -> str:
    """Why the first of these names cannot be that of a test, group or chapter; or ""."""
    known = chapters()
    if not known:
        return ""       # There are no sources here: the program will know.
    for name in names:
        chapter, _, rest = name.partition(".")
        if chapter not in known:
            return (f"--only {name}: no chapter is called {chapter}: "
                    f"{chosen.mean_or(chapter, sorted(known))}")
        # A macro may make a number out of something else.
        unknown = [word for word in WORD.findall(rest) if word not in known[chapter]
                   and not re.search(r"\d", word)]
        if unknown:
            return (f"--only {name}: no test of {chapter} has {unknown[0]} in its name"
                    f"{chosen.mean(unknown[0], known[chapter])}; ./essd conform --list shows "
                    "the names")
    return ""
