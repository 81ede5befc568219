/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which setup and teardown run around a test. tests/make_main.py reads these
 * lines, and makes a main() that runs every static test_* function of the file;
 * the compiler ignores them. NULL means none.
 */
#ifndef TESTS_TEST_FIXTURE_H
#define TESTS_TEST_FIXTURE_H

/* The fixture of all tests of the file that have no WITH_FIXTURE. */
#define TEST_FIXTURE(setup, teardown)
/*
 * The fixture of the test that follows directly. With several such lines the
 * test runs once with each.
 */
#define WITH_FIXTURE(setup, teardown)
/* These run once, before the first and after the last test of the file. */
#define GROUP_FIXTURE(setup, teardown)

#endif
