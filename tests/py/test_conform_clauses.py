# SPDX-License-Identifier: BSD-2-Clause
"""The table of tested clauses that `essd conform --clauses` prints."""

import pytest

from essd.conform import clauses as cc, untested


@pytest.mark.parametrize("text, found", [
    ("IBTA 9.7.5.1.1, A17.3", [("IBTA Vol 1", "9.7.5.1.1"), ("IBTA Vol 1", "A17.3")]),
    ("NVMe 1.4 4.12, 6.6", [("NVMe Base 1.4", "4.12"), ("NVMe Base 1.4", "6.6")]),
    ("NVMe 2.0 5.16.1.8, 8.24",
     [("NVMe Base 2.0", "5.16.1.8"), ("NVMe Base 2.0", "8.24")]),
    ("NVM Command Set 1.0 3.2.2; Base 2.0 5.17.2.1",
     [("NVM Command Set 1.0", "3.2.2"), ("NVMe Base 2.0", "5.17.2.1")]),
    ("NVMe 1.2.1 5.11", [("NVMe Base 1.2.1", "5.11")]),
    ("OCP DC NVMe SSD 2.0 C.2.3, C.4", [("OCP Datacenter NVMe SSD 2.0", "C.2.3"),
                                        ("OCP Datacenter NVMe SSD 2.0", "C.4")]),
    ("OCP DC NVMe SSD 2.0 page C1h", [("OCP Datacenter NVMe SSD 2.0", "")]),
    ("RFC 768 Length; NVMe-oF 1.1 3.3", [("RFC 768", ""), ("NVMe-oF 1.1", "3.3")]),
    ("data sheet; RFC 4861 7.3", [("RFC 4861", "7.3")]),
    ("NVMe-oF 1.1 3.3; docs/echo.md, 4.2", [("NVMe-oF 1.1", "3.3")])])
def test_clauses_belong_to_the_specification_before_them(
        text: str, found: list[tuple[str, str]]) -> None:
    assert list(cc.clauses(text)) == found


def test_a_specification_without_a_row_is_reported() -> None:
    tests = [("nvme.a", "NVMe 1.4 6.6; Base 9.0 1.2"), ("limits.a", "data sheet; RFC 768"),
             ("roce.a", "IBTA 9.2, 9.3"), ("cm.a", "docs/echo.md")]
    assert cc.unknown(tests) == ["Base 9.0 1.2"]


def test_the_table_has_a_row_for_each_specification() -> None:
    table = cc.table([("nvme.a", "NVM Command Set 1.0 3.2.2; Base 2.0 6.1"),
                      ("nvme.b", "NVMe 2.0 6.1, 5.16"), ("nvme.c", "NVMe 1.4 6.6")])
    assert table.splitlines()[2:] == [
        "| NVM Command Set 1.0 | 3.2.2 (1) |",
        "| NVMe Base 1.4 | 6.6 (1) |",
        "| NVMe Base 2.0 | 5.16 (1), 6.1 (2) |"]


def test_the_clauses_without_tests_follow_the_table() -> None:
    text = untested.text()
    assert text.startswith("\n\n| not implemented")
    for clause, _ in (*untested.NOT_IMPLEMENTED, *untested.FEW_TESTS):
        assert f"\n| {clause} | " in text
