#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that tools/nand/profile_sources.md has every number of the NAND model.

The numbers of the code are the initialisers in nand_profile.c.  The document has them
in tables: one row for each field, with a column for each profile and for each SLC
mode.  A number that differs, or that only one of both has, is a complaint.  So is a
number without a source: a row names letters of the document's list of sources, or
says "chosen", and then the list below the table says why.

Constants of enums in SOURCES are the same for every profile.  The comment of each
says what it is and why; a constant without a comment is a complaint.
"""
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lint_baseline import ROOT

DOCUMENT = "tools/nand/profile_sources.md"
PROFILES = "hw-model/nand/nand_profile.c"
SOURCES = (PROFILES, "hw-model/nand/nand_profile.h",
           "hw-model/nand/nand_errors.c", "hw-model/nand/nand_errors.h")

Number = int | Fraction
# The macros with a parameter that initialisers use: how the code has to define them,
# and what one of them stands for.
MACROS: dict[str, tuple[str, Number]] = {
    "UINT64_C": ("", 1),
    "PER_MILLION": ("((uint32_t)((UINT64_C(n) << 32) / 1000000))", Fraction(1, 10**6)),
    "PER_BILLION": ("((uint32_t)((UINT64_C(n) << 32) / 1000000000))", Fraction(1, 10**9)),
    "RATE_E6": ("(UINT64_C(n) * UINT64_C(1000000000))", 10**9),
}
UNITS = {"µs": 10**3, "ms": 10**6}      # of the document, in those of the code
AROUND = ("number", "field", "source")  # columns that are not of a profile
IDENTITY = "DRAW_"                      # constants that only have to differ

TOKEN = re.compile(r'\.(\w+)\s*=|([{},])|"([^"]*)"|(\w+)(?:\((\d+)\))?|(\S)')

# A field's numbers by its place, such as ("tlc2021", "slc.rber.fresh").
Numbers = dict[tuple[str, str], list[Number]]


class CheckError(Exception):
    """The code or the document has a form that this program does not know."""


# The code

def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def expand_macros(text: str) -> str:
    """Check the macros with a parameter, and replace those without one."""
    text = text.replace("\\\n", " ")
    for name, (body, _) in MACROS.items():
        found = re.search(rf"#define {name}\(n\)(.*)", text)
        if body and (found is None or found[1].strip() != body):
            raise CheckError(f"{PROFILES}: the macro {name} has changed")
    for name, body in re.findall(r"#define (\w+)[ \t]+(\{.*\})", text):
        text = re.sub(rf"(?<!#define )\b{name}\b", body.replace("\\", r"\\"), text)
    return text


def number_of(macro: str, argument: str) -> Number:
    if not argument:
        return int(macro, 0)
    if macro not in MACROS:
        raise CheckError(f"{PROFILES}: unknown macro {macro}")
    return int(argument) * MACROS[macro][1]


def numbers_of_profiles(text: str) -> Numbers:
    text = expand_macros(without_comments(text))
    start = re.search(r"nand_profile profiles\[\] = \{", text)
    if start is None:
        raise CheckError(f"{PROFILES}: there is no array of profiles")
    numbers: Numbers = {}
    outer: list[str] = []               # the fields whose braces are open
    field = profile = ""
    for match in TOKEN.finditer(text, start.end()):
        name, sign, string, word, argument, other = match.groups()
        if name:
            field = name
        elif sign == "{":
            outer.append(field)
            field = ""
        elif sign == "}" and not outer:
            return numbers
        elif sign == "}":
            outer.pop()
        elif sign == ",":
            field = ""
        elif string and field == "name":
            profile = string
        elif word:
            place = ".".join(filter(None, [*outer, field]))
            numbers.setdefault((profile, place), []).append(number_of(word, argument))
        elif other:
            raise CheckError(f"{PROFILES}: cannot read {match[0].strip()!r}")
    raise CheckError(f"{PROFILES}: the array of profiles does not end")


def constants(text: str) -> dict[str, int]:
    """The constants of enums that have a number."""
    return {name: int(value)
            for body in re.findall(r"\benum\b[^{;]*\{([^}]*)\}", without_comments(text))
            for name, value in re.findall(r"(\w+)\s*=\s*(\d+)\s*(?:,|$)", body.strip())
            if not name.startswith(IDENTITY)}


# The document

@dataclass
class Row:
    line: int
    section: int                # line of the heading
    cells: dict[str, str]       # by the heading of their column


def rows_of(text: str) -> Iterator[Row]:
    """All rows of the tables."""
    headings: list[str] = []
    section = 0
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("#"):
            section = number
        if not line.startswith("|"):
            headings = []
        elif not headings:
            headings = cells
        elif not set(line) <= set("|-: "):
            yield Row(number, section, dict(zip(headings, cells, strict=True)))


def reasons(text: str) -> set[tuple[int, str]]:
    """The fields that the lists below the tables explain, with their section."""
    found, section = set(), 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            section = number
        if line.startswith("* `"):
            found |= {(section, field) for field in re.findall(r"`([\w.]+)`",
                                                               line.split(":")[0])}
    return found


def source_letters(text: str) -> set[str]:
    return set(re.findall(r"^\* \*\*([A-Z])\*\*: ", text, flags=re.M))


def parse_value(text: str) -> Fraction:
    """A number such as 1,170 or 3.73e-9 or 0.5%."""
    is_percent = text.endswith("%")
    try:
        number = Fraction(re.sub(r"(?<=\d),(?=\d{3})", "", text.rstrip("%")))
    except ValueError as error:
        raise CheckError(f"{text!r} is not a number") from error
    return number / 100 if is_percent else number


def in_code(text: str, label: str, field: str) -> Fraction:
    """The number that the code has to have."""
    number = parse_value(text)
    if field.endswith("_ns"):
        unit = label.rpartition(", ")[2]
        if unit not in UNITS:
            raise CheckError(f"{unit!r} is not a unit of time")
        number *= UNITS[unit]
    elif field.endswith("_exp"):
        number *= 100
    elif field.startswith("rber."):
        number *= 10**15
    return number


def column_place(heading: str, field: str, code: Numbers) -> tuple[str, str]:
    """What a cell is about: its profile, and the place of the field there."""
    profile, _, mode = heading.partition(" ")
    if mode == "SLC":
        return profile, f"slc.{field}"
    is_of_mode = any(name == f"native.{field}" for _, name in code)
    return profile, f"native.{field}" if is_of_mode else field


# Both

def listed(numbers: Sequence[Number]) -> str:
    return ", ".join(map(str, numbers)) or "missing"


def check_sources(row: Row, count: int, letters: set[str],
                  explained: set[tuple[int, str]]) -> Iterator[str]:
    field = row.cells["field"].strip("`")
    sources = row.cells["source"].split("; ")
    if len(sources) not in (1, count):
        yield f"{count} numbers have {len(sources)} sources"
    for source in sorted(set(sources) - {"chosen"} - letters):
        yield f"there is no source {source!r}"
    if "chosen" in sources and (row.section, field) not in explained:
        yield f"no list below the table says why {field} was chosen"


def check_numbers(row: Row, code: Numbers, seen: set[tuple[str, str]]) -> Iterator[str]:
    """Compare one row; `seen` gets the numbers that the document has."""
    label, field = row.cells["number"], row.cells["field"].strip("`")
    for heading, cell in row.cells.items():
        if heading in AROUND:
            continue
        place = column_place(heading, field, code)
        if not cell:
            continue                    # What the code has is reported as missing.
        wanted = [in_code(value, label, field) for value in cell.split(", ")]
        if place in seen:
            yield f"{field} of {heading} is there twice"
        seen.add(place)
        if code.get(place) != wanted:
            yield (f"{field} of {heading} is {listed(wanted)} here, and "
                   f"{listed(code.get(place, []))} in the code")


def check_profiles(text: str, code: Numbers) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    letters, explained = source_letters(text), reasons(text)
    for row in rows_of(text):
        if "field" not in row.cells:
            continue
        count = sum(bool(cell) for cell in row.cells.values()) - len(AROUND)
        try:
            found = [*check_numbers(row, code, seen),
                     *check_sources(row, count, letters, explained)]
        except CheckError as error:
            found = [str(error)]
        yield from (f"{DOCUMENT}:{row.line}: {what}" for what in found)
    yield from (f"{DOCUMENT}: {name} of {profile} is missing"
                for profile, name in sorted(code.keys() - seen))


def has_comment(text: str, constant: str) -> bool:
    """Whether a comment follows the constant in its line, or stands above it."""
    lines = text.splitlines()
    found = [number for number, line in enumerate(lines)
             if re.match(rf"\s+{constant} = ", line)]
    if not found or "/*" in lines[found[0]]:
        return bool(found)
    at = found[0] - 1
    if not lines[at].rstrip().endswith("*/"):
        return False
    while lines[at].lstrip().startswith("*"):
        at -= 1
    return lines[at].lstrip().startswith("/*")


def check_constants(name: str, text: str) -> Iterator[str]:
    yield from (f"{name}: {constant} has no comment that says why" for constant
                in constants(text) if not has_comment(text, constant))


def complaints(text: str, sources: dict[str, str]) -> list[str]:
    """What is wrong with the document, for these texts of the sources."""
    try:
        found = [*check_profiles(text, numbers_of_profiles(sources[PROFILES]))]
        for name, source in sources.items():
            found += check_constants(name, source)
        return found
    except CheckError as error:
        return [str(error)]


def main() -> int:
    found = complaints((ROOT / DOCUMENT).read_text(encoding="utf-8"),
                       {name: (ROOT / name).read_text(encoding="utf-8")
                        for name in SOURCES})
    print("\n".join([*found, f"check_nand_profiles: {len(found)} complaint(s)"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
