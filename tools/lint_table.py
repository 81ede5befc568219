# SPDX-License-Identifier: BSD-2-Clause
"""A table in a document of which one column is generated and the others are written by hand."""
import re
from collections.abc import Mapping
from dataclasses import dataclass

ROW = re.compile(r"^\| `([^`]+)` \| (.*?) ?\| ([^|]*) ?\|$")


@dataclass(frozen=True)
class Table:
    """A table with the columns name, description and the generated one, between markers."""

    page: str           # the document, for messages
    tool: str           # what writes the last column
    what: str           # what the table is of: "layers"
    unknown: str        # the description of a row that is new
    head: str           # the table's two first lines

    @property
    def begin(self) -> str:
        return f"<!-- {self.tool} --write makes the last column. -->\n"

    @property
    def end(self) -> str:
        return f"<!-- End of the table of {self.what}. -->\n"

    def written(self, page: str, cells: Mapping[str, str]) -> str:
        """The page with the table as it should be; ValueError without markers.

        Rows keep their order and their description.  A name of `cells` that has no row
        gets one at the end, and a row without a name in `cells` goes.
        """
        before, begin, rest = page.partition(self.begin)
        old, end, after = rest.partition(self.end)
        if not begin or not end:
            raise ValueError(f"{self.page} has no markers around the table of {self.what}")
        about = {match[1]: match[2] for line in old.splitlines()
                 if (match := ROW.match(line)) is not None}
        order = [name for name in about if name in cells]
        order += [name for name in cells if name not in about]
        rows = [f"| `{name}` | {about.get(name, self.unknown)} | {cells[name]} |\n"
                for name in order]
        return before + begin + "\n" + self.head + "".join(rows) + "\n" + end + after

    def complaints(self, page: str, cells: Mapping[str, str]) -> list[str]:
        """What is wrong with the table in the page."""
        found = []
        if self.written(page, cells) != page:
            found.append(f"{self.page}: the table of {self.what} is not that of {self.tool}: "
                         f"run {self.tool} --write")
        if self.unknown in page:
            found.append(f'{self.page}: a row of the table of {self.what} says '
                         f'"{self.unknown}"')
        return found
