# SPDX-License-Identifier: BSD-2-Clause
"""Tables for terminals of any width: what does not fit is left out, never cut."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

GAP = 2                 # spaces between two columns
FOLDED_LEAST = 16       # columns of the terminal that a column of long texts needs


@dataclass(frozen=True)
class Column:
    """A column of a board."""

    heading: str
    is_number: bool = False
    # Where the terminal is too narrow, the columns with the largest number are left out
    # first, all of them together; 0: it is always there.
    rank: int = 0
    folds: bool = False     # its texts may be long, and take several lines then


def number(heading: str, rank: int = 0) -> Column:
    return Column(heading, is_number=True, rank=rank)


def width_of(cell: object) -> int:
    text = cell.plain if isinstance(cell, Text) else str(cell)
    return max((cell_len(line) for line in text.splitlines()), default=0)


class Board(Table):
    """A table that leaves out columns, those with the largest rank first."""

    def __init__(self, columns: Sequence[Column]) -> None:
        super().__init__(box=None, pad_edge=False, header_style="bold")
        self.kinds = list(columns)
        for column in columns:
            self.add_column(column.heading, no_wrap=not column.folds,
                            overflow="fold" if column.folds else "ellipsis",
                            justify="right" if column.is_number else "left")

    def needed(self, index: int) -> int:
        """The terminal columns that a column needs."""
        widest = max(width_of(cell)
                     for cell in (self.kinds[index].heading, *self.columns[index].cells))
        return min(widest, FOLDED_LEAST) if self.kinds[index].folds else widest

    def chosen(self, width: int) -> list[int]:
        """The columns that fit into so many columns of the terminal."""
        kept = list(range(len(self.kinds)))
        needed = [self.needed(index) for index in kept]
        while sum(needed[index] + GAP for index in kept) - GAP > width:
            least = max(self.kinds[index].rank for index in kept)
            if least == 0:
                break
            kept = [index for index in kept if self.kinds[index].rank != least]
        return kept

    def fitted(self, width: int) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        kept = self.chosen(width)
        for index in kept:
            column = self.columns[index]
            table.add_column(column.header, no_wrap=column.no_wrap, overflow=column.overflow,
                             justify=column.justify)
        for cells in zip(*(self.columns[index].cells for index in kept), strict=True):
            table.add_row(*cells)
        return table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.fitted(options.max_width)


class Flow:
    """Short texts one after the other, in as many lines as they need."""

    def __init__(self, heading: str, texts: Sequence[Text]) -> None:
        self.heading = Text(heading, "bold")
        self.texts = texts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = self.heading.copy()
        for text in self.texts:
            if line.plain and line.cell_len + 3 + text.cell_len > options.max_width:
                yield line
                line = Text()
            if line.plain:
                line.append("   ")
            line.append_text(text)
        yield line
