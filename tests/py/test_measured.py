# SPDX-License-Identifier: BSD-2-Clause
"""tools/check_measured.py: measured figures say where they come from, and age."""

import datetime
from pathlib import Path

import check_measured
import check_release
import pytest

from essd.testrun import lints

BLOCK = """| measured | 5 November 2026, commit `1234567` |
|---|---|
| command | `essd bench` |
| of | `firmware`, `net/roce` |
| on | an idle machine |
"""


def one_block(text: str) -> check_measured.Block:
    found = list(check_measured.blocks("a.md", text))
    assert len(found) == 1
    return found[0]


def test_a_block_is_read_with_its_section_and_rows() -> None:
    block = one_block(f"# A\n## Speed\n{BLOCK}\n| other | table |\n")
    assert (block.place, block.section, block.commit) == ("a.md:3", "Speed", "1234567")
    assert block.date == datetime.date(2026, 11, 5)
    assert block.command == "`essd bench`" and block.paths == ["firmware", "net/roce"]
    assert "other" not in block.rows


def test_a_commit_may_be_unknown_but_has_to_be_said() -> None:
    assert one_block(BLOCK.replace("`1234567`", "not noted")).commit == ""
    wrong = BLOCK.replace(", commit `1234567`", "")
    assert "not in the form" in check_measured.complaints("a.md", wrong)[0]


def test_a_block_in_a_code_block_is_an_example() -> None:
    assert check_measured.complaints("a.md", f"```\n{BLOCK}```\n") == []


@pytest.mark.parametrize(("old", "new", "why"), [
    ("| command | `essd bench` |\n", "", 'no row "command"'),
    ("`firmware`, `net/roce`", "the firmware", "in backticks"),
    ("net/roce", "net/gone", "there is no net/gone"),
    ("1234567", "fffffff", "there is no commit fffffff")])
def test_a_mistake_in_a_block_is_found(old: str, new: str, why: str) -> None:
    if "commit" in why and not check_measured.is_checkout():
        pytest.skip("this is not a git checkout")
    block = one_block(BLOCK.replace(old, new))
    assert any(why in line for line in check_measured.mistakes(block))


@pytest.mark.parametrize("figure", [
    "The drive reaches 30,000 IOPS.", "It writes 12.5 MB/s.", "| x | IOPS | CPU |",
    "It was measured twice.", "The figures are from May.", "Measured with a stopwatch:",
    "It took 1161 s on two cores.", "A read takes 2.8 µs.", "It takes about 30 to 40 minutes.",
    "The suite takes about a minute.", "It runs all of them in 31 minutes.",
    "In about a minute, it is ready.",
    "It took 0.5 CPU seconds.", "It makes about 900 runs a second.",
    "It answers 1,200 small requests per second.",
    "It sends 20 a second; 5 are lost.", "| runs | 900 a second |", "(12 frames a second)"])
def test_figures_without_a_block_are_found(figure: str) -> None:
    text = f"# A\n## B\n{figure}\n## C\n"
    assert [line.split(":")[1] for line in check_measured.uncovered("a.md", text)] == ["3"]
    assert check_measured.uncovered("a.md", f"# A\n## B\n{BLOCK}\n{figure}\n") == []


@pytest.mark.parametrize("line", [
    "It took long.", "It answers within a second.", "After 10 s the connection ends.",
    "It takes a second path.", "The port has 25000 Mb/s.", "netem adds 10 ms.",
    "2 ports and a second switch", "10 s later a second.", "With 4 drives a second host starts.",
    "| [Somebody](https://example.org/) | 1120 thousand a second, 12 MB/s |"])
def test_limits_and_what_others_have_published_are_no_figures(line: str) -> None:
    assert check_measured.uncovered("a.md", f"# A\n## B\n{line}\n") == []


def test_a_block_is_for_the_sections_below_but_not_for_the_next() -> None:
    text = f"# A\n## B\n{BLOCK}\n### C\n10 IOPS\n## D\n10 IOPS\n"
    found = check_measured.uncovered("a.md", text)
    assert len(found) == 1 and '"D"' in found[0]
    assert check_measured.uncovered("a.md", f"# A\n{BLOCK}\n## B\n10 IOPS\n") == []


@pytest.mark.parametrize(("changes", "days", "stale"), [
    (0, 10_000, False), (1, 90, False), (1, 91, True), (99, 0, False), (100, 0, True),
    (None, 0, True)])
def test_a_block_is_stale_after_many_changes_or_a_long_time(
        changes: int | None, days: int, stale: bool) -> None:
    block = one_block(BLOCK)
    today = block.date + datetime.timedelta(days=days)
    assert check_measured.is_stale(block, changes, today) is stale


def test_documents_of_this_project_say_where_their_figures_come_from() -> None:
    found = [line for page, text in check_measured.pages()
             for line in check_measured.complaints(page, text)]
    assert found == []


def test_a_commit_of_a_rebased_branch_is_not_in_the_history(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        done = check_measured.git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", *words)
        assert done is not None, words
        return done

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "-m", "first")
    git("commit", "--quiet", "--allow-empty", "-m", "second")
    dropped = git("rev-parse", "--short", "HEAD")
    git("reset", "--quiet", "--hard", "HEAD~1")
    block = one_block(BLOCK.replace("1234567", dropped))
    assert check_measured.commit_of(block, tmp_path) is None
    kept = one_block(BLOCK.replace("1234567", git("rev-parse", "--short", "HEAD")))
    assert check_measured.commit_of(kept, tmp_path) == git("rev-parse", "HEAD")


def test_without_history_no_release_is_good(tmp_path: Path) -> None:
    assert "not known" in check_release.complaints(tmp_path)[0]


def test_the_release_check_runs_only_by_its_name() -> None:
    assert "release" in lints.names() and "release" not in lints.default_names()
    assert "measured" in lints.default_names()
