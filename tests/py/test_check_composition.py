# SPDX-License-Identifier: BSD-2-Clause
"""The lint that keeps logic out of firmware/app."""

from pathlib import Path

import check_composition
import pytest

SOURCE = """/* Whether it is so: if it is, and not? */
static int decide(int a)
{
%s
    return a;
}

void %s(void)
{
}
"""


def source(*lines: str) -> str:
    return SOURCE % ("\n".join(f"    {line}" for line in lines), "others")


def test_the_tree_has_no_other_decisions_than_those_listed() -> None:
    assert check_composition.main() == 0


@pytest.mark.parametrize(("line", "count"), [
    ("if (a) { a = 1; }", 1), ("while (a) { a--; }", 1), ("for (; a > 0; a--) { }", 1),
    ("a = a > 1 ? 1 : 2;", 1), ("a = a && 1;", 1), ("a = a || 1;", 1),
    ("switch (a) { case 1: case 2: default: }", 2), ("if (a || b) { }", 2),
    ('log_line("if && for ? ||");', 0), ("a = '?';", 0), ("/* if (a) while */", 0),
    ("// if (a)", 0), ("lift(a); before(a); as_if = 1;", 0), ("a = a & b | c;", 0)])
def test_each_branch_is_a_decision_and_words_are_none(line: str, count: int) -> None:
    assert dict(check_composition.functions(source(line))) == {"decide": count, "others": 0}


def test_a_comment_of_several_lines_hides_no_function() -> None:
    text = source("/* if", " * for", " */ if (a) { }")
    assert dict(check_composition.functions(text)) == {"decide": 1, "others": 0}


def test_a_head_of_several_lines_has_its_name() -> None:
    text = "static __attribute__((noinline)) int one(\n    int a, int b)\n{\n    if (a) { }\n}\n"
    assert dict(check_composition.functions(text)) == {"one": 1}


def test_a_table_is_no_function() -> None:
    assert dict(check_composition.functions("static const int a[] = {\n    1 ? 2 : 3,\n};\n")) == {}


def test_only_functions_above_the_limit_are_found(tmp_path: Path) -> None:
    place = tmp_path / check_composition.PLACE
    place.mkdir(parents=True)
    (place / "a.c").write_text(source(*["if (a) { }"] * 3))
    (place / "b.h").write_text(source(*["if (a) { }"] * 4))
    assert check_composition.all_found(tmp_path) == {"firmware/app/b.h:decide": 4}


def test_the_list_only_shrinks() -> None:
    known = {"a.c:f": 5}
    assert check_composition.complaints({"a.c:f": 5}, known) == []
    for found, word in (({"a.c:f": 6}, "1 more than"), ({"a.c:f": 4}, "--shrink"),
                        ({}, "--shrink"), ({"a.c:f": 5, "a.c:g": 4}, "directory of its own")):
        lines = check_composition.complaints(found, known)
        assert len(lines) == 1 and word in lines[0]


def test_shrink_lowers_and_removes_and_adds_nothing(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_composition.lint_baseline, "LISTS", tmp_path)
    names = tmp_path / "composition.txt"
    names.write_text("# head\na.c:f 5\na.c:g 4\n")
    check_composition.shrink({"a.c:f": 4, "a.c:h": 9})
    assert names.read_text() == "# head\na.c:f 4\n"
    check_composition.shrink({"a.c:h": 9})
    assert not names.exists()
