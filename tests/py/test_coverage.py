# SPDX-License-Identifier: BSD-2-Clause
"""essd test --coverage: which files count, and the table for docs/coverage.md."""

import datetime

import check_measured

from essd.testrun import coverage


def test_all_code_of_the_drive_counts_and_no_other() -> None:
    for name in ("lib/crc.c", "net/cm/cm.c", "nvmeof/target/connect/ctrl.c",
                 "hw-model/nand/nand_op.c", "storage/ftl/io/ftl_io.c", "firmware/app/drive.c"):
        assert coverage.is_ours(name), name
    for name in ("tests/native/test_io.c", "firmware/native/native.c", "../x/crypto.c"):
        assert not coverage.is_ours(name), name


def test_the_table_for_the_document_is_in_the_form_that_the_lint_wants() -> None:
    files = {"net/cm/a.c": {1: coverage.Line(3, [1, 0]), 2: coverage.Line(0)},
             "net/wire/b.c": {1: coverage.Line(1)}}
    text = coverage.markdown(files, datetime.date(2026, 11, 8), "12345678")
    assert text.splitlines()[-3:] == [
        "| `net/cm` | 50.0 % (1 of 2) | 50.0 % (1 of 2) |",
        "| `net/wire` | 100.0 % (1 of 1) | - (0 of 0) |",
        "| `net`, all | 66.7 % (2 of 3) | 50.0 % (1 of 2) |"]
    block = next(check_measured.blocks("coverage.md", text))
    assert block.date == datetime.date(2026, 11, 8) and block.commit == "12345678"
    assert block.command and set(block.paths) >= {"net", "firmware", "tests"}
