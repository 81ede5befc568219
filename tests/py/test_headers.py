# SPDX-License-Identifier: BSD-2-Clause
"""The report of headers that rebuild many objects."""
from collections import Counter
from pathlib import Path

import pytest

from essd.testrun import headers

# As ninja -t deps prints it: relative paths from the build's folder, and absolute ones.
DEPS = """\
lib/CMakeFiles/a.dir/a.c.o: #deps 4, deps mtime 1796024696920696241 (VALID)
    ../../lib/a.c
    ../../lib/a.h
    /usr/include/stdio.h
    /top/net/b.h

lib/CMakeFiles/c.dir/c.c.o: #deps 4, deps mtime 1796024696920696241 (STALE)
    ../../lib/c.c
    made/c_main.h
    ../../lib/a.h
    ../../../other/d.h
"""


def test_each_object_counts_once_for_each_header_of_the_project() -> None:
    counts, objects = headers.rebuilt(DEPS.splitlines(), Path("/top/build/native"),
                                      Path("/top"))

    assert objects == 2
    assert counts == {"lib/a.h": 2, "net/b.h": 1, "build/native/made/c_main.h": 1}


@pytest.mark.parametrize(("count", "is_listed", "words"), [
    (275, False, ""), (276, False, "new.h rebuilds 276 objects"),
    (251, True, ""), (9999, True, ""), (226, True, ""), (225, True, "remove it"),
    (0, True, "rebuilds 0 objects now: remove it")])
def test_the_list_only_shrinks(count: int, is_listed: bool, words: str) -> None:
    lines = headers.complaints(Counter({"new.h": count}), {"new.h"} if is_listed else set())

    assert bool(lines) == bool(words)
    assert not words or words in lines[0]


def test_the_summary_names_the_three_that_cost_most() -> None:
    counts = Counter({"lib/util.h": 900, "a.h": 400, "b.h": 300, "c.h": 251, "d.h": 250})

    assert headers.summary(counts, 1905) == (
        "4 headers rebuild more than 250 of 1,905 objects; those of lib apart, the most: "
        "a.h 400, b.h 300, c.h 251")


def test_the_list_is_read_without_its_comments(tmp_path: Path) -> None:
    assert headers.listed(tmp_path) == set()
    (tmp_path / headers.LIST).parent.mkdir(parents=True)
    (tmp_path / headers.LIST).write_text("# why\n\na/x.h\nb/y.h\n")

    assert headers.listed(tmp_path) == {"a/x.h", "b/y.h"}


def test_every_header_of_the_list_exists() -> None:
    missing = [name for name in headers.listed() if not (headers.TOP / name).is_file()]

    assert missing == []
    assert headers.listed()
