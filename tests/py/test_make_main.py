# SPDX-License-Identifier: BSD-2-Clause
"""The generated main() of a cmocka program runs every test with its fixture."""

import sys
from pathlib import Path

import make_main
import pytest

SOURCE = """
static int setup(void **state) { return 0; }
static void
test_with_a_long_name(void **state)
{
}
/* static void test_in_a_comment(void **state) { } */
WITH_FIXTURE(setup_other, NULL)
WITH_FIXTURE(setup, teardown)
static void test_with_two_fixtures(void **state)
{
}
WITH_FIXTURE(NULL, NULL)
static void test_alone(void **state)
{
}
TEST_FIXTURE(setup, teardown)
"""


def test_every_test_runs_with_its_fixture() -> None:
    assert make_main.tests(SOURCE) == [
        make_main.Test("test_with_a_long_name", "setup", "teardown"),
        make_main.Test("test_with_two_fixtures", "setup_other", "NULL"),
        make_main.Test("test_with_two_fixtures", "setup", "teardown"),
        make_main.Test("test_alone", "NULL", "NULL"),
    ]


def test_a_test_that_runs_twice_has_two_names() -> None:
    text = make_main.program("tests/test_x.c", SOURCE + "GROUP_FIXTURE(open, NULL)\n")
    assert '"test_with_two_fixtures with setup_other"' in text
    assert "cmocka_run_group_tests(tests, open, NULL)" in text
    assert '#include "tests/test_x.c"' in text


@pytest.mark.parametrize("text, why", [
    ("void test_a(void **state)\n{\n}\n", "test_a is not defined as static"),
    ("static void test_a(void **state)\n{\n}\nint test_b(void **state)\n{\n}\n",
     "test_b is not defined"),
    ("static void help(void)\n{\n}\n", "no test"),
    ("static void test_a(void **state)\n{\n}\nint main(void)\n{\n}\n", "main"),
    ("WITH_FIXTURE(a, b)\nstatic void help(void)\n{\n}\n"
     "static void test_a(void **state)\n{\n}\n", "directly before"),
    ("TEST_FIXTURE(a, b)\nTEST_FIXTURE(c, d)\nstatic void test_a(void **state)\n{\n}\n",
     "more than once"),
])
def test_a_test_that_would_not_run_is_refused(text: str, why: str) -> None:
    with pytest.raises(make_main.Mistake, match=why):
        make_main.tests(text)


def test_an_output_that_would_not_change_is_not_written(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call makes the main() of every test of a directory; few of them change."""
    for name in ("a.c", "b.c"):
        (tmp_path / name).write_text("static void test_a(void **state)\n{\n}\n")
    words = [str(tmp_path)]
    for name in ("a.c", "b.c"):
        words += [name, str(tmp_path / f"{name}_main.c")]
    monkeypatch.setattr(sys, "argv", ["make_main.py", *words])
    assert make_main.main() == 0
    before = {name: (tmp_path / f"{name}_main.c").stat().st_mtime_ns
              for name in ("a.c", "b.c")}
    (tmp_path / "b.c").write_text("static void test_b(void **state)\n{\n}\n")
    assert make_main.main() == 0
    assert (tmp_path / "a.c_main.c").stat().st_mtime_ns == before["a.c"]
    assert "test_b" in (tmp_path / "b.c_main.c").read_text()
    # A source with a mistake does not keep the others from being made.
    (tmp_path / "a.c").write_text("static void help(void)\n{\n}\n")
    (tmp_path / "b.c").write_text("static void test_c(void **state)\n{\n}\n")
    assert make_main.main() == 1
    assert "test_c" in (tmp_path / "b.c_main.c").read_text()
