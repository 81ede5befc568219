# SPDX-License-Identifier: BSD-2-Clause
"""The document of the NAND profiles against the code: the lint nand_profiles."""

import re
from collections.abc import Iterator

import check_nand_profiles as lint
import pytest

from essd.base import paths

DOCUMENT = (paths.TOP / lint.DOCUMENT).read_text(encoding="utf-8")
PROFILES = ("tlc2021", "slc", "mlc2d", "qlc")
SOURCES = {name: (paths.TOP / name).read_text(encoding="utf-8") for name in lint.SOURCES}


def complaints(document: str = DOCUMENT, **changed: str) -> list[str]:
    """Complaints, with other texts of sources by the name of their file."""
    files = {name: changed.get(name.rpartition("/")[2].replace(".", "_"), text)
             for name, text in SOURCES.items()}
    return lint.complaints(document, files)


def numbers_in(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """The numbers of a part of a text that are not part of a name or of a string."""
    for match in re.compile(r"(?<![\w.])\d+").finditer(text, start, end):
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if '"' not in line and "/*" not in line:
            yield match


def with_other_number(text: str, match: re.Match[str]) -> str:
    return f"{text[:match.start()]}{int(match[0]) + 1}{text[match.end():]}"


def test_the_document_has_the_numbers_of_the_code() -> None:
    assert complaints() == []


def test_a_number_that_changes_in_the_profiles_is_noticed() -> None:
    code = SOURCES[lint.PROFILES]
    ranges = [(code.index("#define SLC_MODE_RBER"), code.index("static const")),
              (code.index("profiles[] ="), code.index("\n};\n", code.index("profiles[] =")))]
    found = [match for start, end in ranges for match in numbers_in(code, start, end)]
    assert len(found) > 150
    for match in found:
        assert complaints(nand_profile_c=with_other_number(code, match)), match


@pytest.mark.parametrize("name", lint.SOURCES)
def test_a_constant_without_a_reason_is_noticed(name: str) -> None:
    code = SOURCES[name]
    file = name.rpartition("/")[2].replace(".", "_")
    found = lint.constants(code)
    assert found
    for constant in found:
        bare = re.sub(rf"^(?:    /\*(?:(?!\*/)[\s\S])*\*/\n)?(    {constant} = \d+,).*",
                      r"\1", code, count=1, flags=re.M)
        assert bare != code, constant
        assert f"{name}: {constant} has no comment" in complaints(**{file: bare})[0]


def test_a_number_that_changes_in_the_document_is_noticed() -> None:
    changed = 0
    for row in lint.rows_of(DOCUMENT):
        if "field" not in row.cells:
            continue
        lines = DOCUMENT.splitlines()
        before = lines[row.line - 1]
        for heading, cell in row.cells.items():
            if heading.split()[0] in PROFILES:
                for match in re.finditer(r"[\d.e-]+(?=[, %]|$)", cell):
                    other = f"{cell[:match.end()]}1{cell[match.end():]}"
                    lines[row.line - 1] = before.replace(f"| {cell} |", f"| {other} |", 1)
                    assert complaints("\n".join(lines)), (before, other)
                    changed += 1
    assert changed > 150


def test_a_number_that_only_one_of_both_has_is_noticed() -> None:
    code = SOURCES[lint.PROFILES]
    assert complaints(nand_profile_c=code.replace(".steps = 1,", ".steps = 1, .new = 7,"))
    assert complaints(nand_profile_c=code.replace(".steps = 1,", ""))
    row = next(line for line in DOCUMENT.splitlines() if "`erase_ns`" in line)
    assert complaints(DOCUMENT.replace(f"{row}\n", ""))
    assert complaints(DOCUMENT.replace(row, f"{row}\n{row}"))


def test_a_number_without_a_source_is_noticed() -> None:
    assert complaints(DOCUMENT.replace("| E; F; C; chosen; chosen; chosen |", "| |"))
    assert complaints(DOCUMENT.replace("| E; F; C; chosen; chosen; chosen |", "| E; F |"))
    assert complaints(DOCUMENT.replace("* **F**: ", "* "))
    assert complaints(DOCUMENT.replace("* `erase_ns`: ", "* "))


def test_code_that_the_lint_cannot_read_is_an_error() -> None:
    code = SOURCES[lint.PROFILES]
    assert "PER_MILLION" in complaints(nand_profile_c=code.replace("<< 32", "<< 31"))[0]
    assert "cannot read" in complaints(
        nand_profile_c=code.replace("endurance = 3000", "endurance = 3 * 1000"))[0]
    assert "unknown macro" in complaints(
        nand_profile_c=code.replace("PER_MILLION(20)", "PER_THOUSAND(1)"))[0]
    assert "no array" in complaints(nand_profile_c=code.replace(" profiles[]", " parts[]"))[0]


def test_the_share_of_blocks_that_fail_is_that_of_the_document() -> None:
    """The sum of the probabilities of all programs and erasures of a rated life."""
    code = lint.numbers_of_profiles(SOURCES[lint.PROFILES])
    new = lint.constants(SOURCES["hw-model/nand/nand_errors.c"])["FAILURE_MIN_PART"]
    for profile in PROFILES:
        erasures, wordlines, program, erase = (
            float(code[profile, name][0]) for name in (
                "native.endurance", "wordlines", "program_failure", "erase_failure"))
        share = sum(((k / erasures) ** 3 + 1 / new) * (erase + wordlines * program)
                    for k in range(1, int(erasures) + 1))
        said = re.search(rf"(\d\.\d)%\s+(?:of the blocks\s+)?of\s+`{profile}`", DOCUMENT)
        assert said is not None and abs(100 * share - float(said[1])) < 0.06, profile
