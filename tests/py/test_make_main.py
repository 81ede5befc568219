# SPDX-License-Identifier: BSD-2-Clause
"""The generated main() of a cmocka program runs every test with its fixture."""

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
