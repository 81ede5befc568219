# SPDX-License-Identifier: BSD-2-Clause
"""`essd paper`: the white paper's four rows, the same bytes in every run."""

import json
import re
from pathlib import Path

import check_paper
import pytest

from essd.base.errors import EssdError
from essd.bench import paper, paper_profile

SMALL = paper.settings_of(paper_profile.load("samsung-2021") | paper.SMALL_ARRAY, paper.SMALL,
                          1, 1500)
# Without instructions, whose number depends on the compiler: I/Os in the 20 ms measured, and
# the digest of their latencies.  They change whenever the firmware or a model does something
# at another time; look at the difference, and store the new figures if it is meant.
STORED = {"128k-read": (408, "74340a3a86ee3d03"), "128k-write": (62, "961cff82337720e5"),
          "4k-randread": (1455, "f2ab0c5a018a288a"), "4k-randwrite": (872, "ee871299b27d47f1")}


@pytest.fixture(scope="module")
def found() -> dict[str, dict]:
    """The small rows as they are, with a free hart, and with a free hart and a slow port."""
    return paper.run(SMALL, {"free": {"hart_mips": 0},
                             "again": {"hart_mips": 0},
                             "slow": {"hart_mips": 0, "port_mbps": 5000}})


def test_the_small_rows_have_the_stored_figures(found: dict[str, dict]) -> None:
    assert {name: (row["ios"], row["digest"]) for name, row in found["free"].items()} == STORED


def test_rows_do_not_depend_on_the_rows_before_them(found: dict[str, dict]) -> None:
    assert found["again"] == found["free"]


def test_two_runs_have_the_same_figures_and_another_seed_has_others(
        found: dict[str, dict]) -> None:
    assert paper.run(SMALL) == {"base": found["base"]}
    assert paper.run(SMALL | {"seed": 2})["base"]["4k-randread"]["digest"] \
        != found["base"]["4k-randread"]["digest"]


def test_a_port_is_not_faster_than_its_line_rate(found: dict[str, dict]) -> None:
    """A 128K read is 128 packets of 1024 bytes and a SEND: 141,682 bytes on the cable."""
    read, write = found["slow"]["128k-read"], found["slow"]["128k-write"]
    line_mb_s = 131072 / 141_682 * 5000 / 8
    assert 0.97 * line_mb_s < read["mb_s"] <= 1.001 * line_mb_s
    assert 0.97 < read["busy"]["port_out"] <= 1.001
    assert write["mb_s"] < line_mb_s
    assert found["free"]["128k-read"]["mb_s"] > 4 * read["mb_s"]


def test_a_histogram_has_all_latencies(found: dict[str, dict]) -> None:
    for row in found["base"].values():
        counts = row["histogram"]["counts"]
        assert sum(count for _, count in counts) == row["ios"] == sum(row["over_time"])
        below = 0
        for top, count in counts:
            below += count
            if below >= row["ios"] / 2:
                assert row["p50_ns"] == top
                break
        assert counts[-1][0] >= row["max_ns"] > counts[-1][0] * 0.99
        assert row["p50_ns"] <= row["p90_ns"] <= row["p99_ns"] <= row["max_ns"]


def test_the_command_refuses_what_it_cannot_do_in_a_line(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    good = (paper_profile.FOLDER / "samsung-2021.toml").read_text()
    for profile, seed, mtu, why in (
            ("samsung", 1, 1500, "no such profile; use samsung-2021"),
            (str(tmp_path / "none.toml"), 1, 1500, "No such file"),
            ("samsung-2021", 0, 1500, "--seed 0: use 1 or more"),
            ("samsung-2021", 1, 500, "--mtu 500: use 1280 to 9000")):
        with pytest.raises(EssdError, match=re.escape(why)) as caught:
            paper.command(profile, seed, mtu, True, True)
        assert "\n" not in str(caught.value)
    for text, why in ((good.replace("[dies]", "[deis]"), "no constant dies"),
                      (good + "[deis]\nvalue = 1\n", "did you mean dies?"),
                      (good.replace("value = 15\n", "value = 16\n"),
                       "cable_ns is 16, but its source is for 15"),
                      (good.replace("value = 15\n", "value = -1\n"), "not a whole number"),
                      (good.replace("[dies", "[[dies"), "mine.toml")):
        mine.write_text(text)
        with pytest.raises(EssdError, match=re.escape(why)):
            paper_profile.load(str(mine))


def test_the_lint_finds_a_value_that_was_changed_without_its_source(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
        ) -> None:
    assert check_paper.main() == 0
    good = (paper_profile.FOLDER / "samsung-2021.toml").read_text()
    (tmp_path / "samsung-2021.toml").write_text(
        good.replace("value = 1170000\n", "value = 1000000\n")
            .replace('source = "15: chosen: a copper', 'source = "15'))
    monkeypatch.setattr(paper_profile, "FOLDER", tmp_path)
    assert check_paper.main() == 1
    said = capsys.readouterr().out
    assert "program_ns is 1000000, but its source is for 1170000" in said
    assert 'cable_ns: no source; write source = "15: ..."' in said


def test_json_is_what_the_table_shows(found: dict[str, dict]) -> None:
    facts = json.loads(json.dumps(paper.facts_of({}, SMALL, found["base"])))
    assert [row["row"] for row in facts["rows"]] == [row.name for row in paper.ROWS]
    read = facts["rows"][0]
    assert read["difference_percent"] == pytest.approx(100 * read["iops"] / 669_000 - 100, abs=0.01)
