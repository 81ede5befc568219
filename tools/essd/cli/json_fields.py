# SPDX-License-Identifier: BSD-2-Clause
"""The fields that commands print with --json: json_fields.toml, and its tables as text."""

import textwrap
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..base import chosen
from ..base.errors import EssdError

FILE = Path(__file__).with_suffix(".toml")
COLUMNS = 100
WIDEST = 40             # A longer field has a line of its own.


class Table(NamedTuple):
    """What one command prints, or one command with certain options."""

    fields: dict[str, str]      # the meaning of each field
    note: str                   # what concerns all of them, or ""
    like: str                   # the command that prints the same fields, or ""


@cache
def tables() -> dict[str, Table]:
    """Each table by its command, such as "port" and "port --neighbours"."""
    read = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {title: Table(one.get("fields", {}), one.get("note", ""), one.get("like", ""))
            for title, one in read.items()}


def fields(title: str) -> dict[str, str]:
    """The fields of a command, also if it prints those of another one; {} if it has none."""
    table = tables().get(title)
    return {} if table is None else fields(table.like) if table.like else table.fields


def titles(words: list[str]) -> list[str]:
    """The tables whose names begin with these words: "bench" stands for all of bench."""
    found = [title for title in tables() if title.split()[:len(words)] == words]
    if not found:
        wrong = " ".join(words)
        raise EssdError(f"no command {wrong!r} has fields{chosen.mean(wrong, tables())}")
    return found


def text(title: str) -> str:
    """A table for people."""
    lines = [f"essd {title}"]
    table = tables()[title]
    if table.like:
        lines.append(f"  The fields of essd {table.like}.")
    lines += textwrap.wrap(table.note, COLUMNS, initial_indent="  ", subsequent_indent="  ")
    width = min(WIDEST, max(map(len, table.fields), default=0))
    for field, meaning in table.fields.items():
        head = f"  {field:{width}}  "
        if len(field) > width:
            lines.append(f"  {field}")
            head = " " * len(head[:width + 4])
        lines += textwrap.wrap(meaning, COLUMNS, initial_indent=head,
                               subsequent_indent=" " * (width + 4))
    return "\n".join(lines)
