# SPDX-License-Identifier: BSD-2-Clause
"""`essd paper`: the white paper's four rows, the same bytes in every run."""

import json
import re
from pathlib import Path

import check_paper
import pytest

from essd.base.errors import EssdError
from essd.bench import paper, paper_profile

CONSTANTS = paper_profile.load("samsung-2021") | paper.SMALL_ARRAY
SMALL = paper.settings_of(CONSTANTS, paper.SMALL, 1, 1500)
# Without instructions, whose number depends on the compiler: I/Os in the 20 ms measured, and
# the digest of their latencies.  They change whenever the firmware or a model does something
# at another time; look at the difference, and store the new figures if it is meant.
# Only the harts take time, so that reads need as many harts as they can get.
HARTS_ONLY = {"hosts": 4, "warm_us": 2000, "measure_us": 5000,
              "rows": paper.ROW_BITS["4k-randread"]} | {
    name: 0 for name in ("port_mbps", "channel_mbps", "read_lower_ns", "read_middle_ns",
                         "read_upper_ns", "command_ns", "decode_ns", *paper.FREE["memory"])}
STORED = {"128k-read": (405, "5fce0433d8f18407"), "128k-write": (72, "cc0a88a141b64f57"),
          "4k-randread": (1474, "449510695b557fd1"), "4k-randwrite": (1054, "fe17866142e4b808")}
# The same of a host with a path through each of two ports of 5 Gb/s.
SLOW = {"hart_mips": 0, "port_mbps": 5000}
STORED_PORTS = {
    "128k-read": (176, "ab0266610675cb6a"), "128k-write": (89, "3363a1fee34eccc1"),
    "4k-randread": (1448, "152905b8bf2a42ca"), "4k-randwrite": (1005, "beaa5da6e345e9be")}


@pytest.fixture(scope="module")
def found() -> dict[str, dict]:
    """The small rows as they are, with a free hart, and with a free hart and a slow port."""
    return paper.run(SMALL, {"free": {"hart_mips": 0},
                             "again": {"hart_mips": 0},
                             "harts-1": HARTS_ONLY, "harts-2": HARTS_ONLY | {"harts": 2},
                             "harts-2-again": HARTS_ONLY | {"harts": 2},
                             "slow": SLOW, "scenarios": {"rows": paper.SCENARIO_BITS}})


@pytest.fixture(scope="module")
def two_ports() -> dict[str, dict]:
    """The small rows with two slow ports, and a free hart."""
    return paper.run(SMALL | {"ports": 2} | SLOW)["base"]


def test_the_small_rows_with_two_ports_have_the_stored_figures(
        two_ports: dict[str, dict]) -> None:
    assert {name: (row["ios"], row["digest"]) for name, row in two_ports.items()} \
        == STORED_PORTS


def test_two_ports_carry_twice_as_much_as_one(
        found: dict[str, dict], two_ports: dict[str, dict]) -> None:
    one = found["slow"]["128k-read"]
    both = two_ports["128k-read"]
    assert 1.9 < both["mb_s"] / one["mb_s"] < 2.01
    assert 0.9 < both["busy"]["port_out"] <= 1.001


def test_two_slow_ports_do_not_change_the_random_rows(
        found: dict[str, dict], two_ports: dict[str, dict]) -> None:
    """The flash limits them, if they do not repeat the places of the overwrites."""
    for name in ("4k-randread", "4k-randwrite"):
        assert two_ports[name]["iops"] == pytest.approx(found["free"][name]["iops"], rel=0.08)


@pytest.mark.long
def test_the_translation_layer_alone_leaves_the_flash_as_writes_of_a_host_do() -> None:
    """The mean of five seeds: a window of 0.15 s would be off by 8% in either direction."""
    tiny = SMALL | {"blocks": 40, "wordlines": 2, "overwrites_percent": 100, "warm_us": 40_000,
                    "measure_us": 600_000, "hart_mips": 0,
                    "rows": paper.ROW_BITS["4k-randread"] + paper.ROW_BITS["4k-randwrite"]}
    alone, hosts = ([paper.run(tiny | {"seed": seed, "is_direct": is_direct})["base"]
                     for seed in range(1, 6)] for is_direct in (1, 0))
    for row, figure, part in (("4k-randwrite", "write_amplification", 0.02),
                              ("4k-randwrite", "iops", 0.03), ("4k-randread", "iops", 0.03)):
        assert sum(one[row][figure] for one in alone) \
            == pytest.approx(sum(one[row][figure] for one in hosts), rel=part)


@pytest.mark.long
def test_short_blocks_with_shorter_erasures_are_as_fast_as_the_blocks_of_the_part() -> None:
    """Each wordline is charged 1/704 of the erasure of a block with 704 wordlines."""
    die = SMALL | {"channels": 1, "dies": 1, "blocks": 24, "overwrites_percent": 0,
                   "hart_mips": 0, "warm_us": 500_000, "measure_us": 4_000_000,
                   "rows": paper.ROW_BITS["128k-write"]}
    short, real = (paper.run(die | {"wordlines": wordlines})["base"]["128k-write"]["iops"]
                   for wordlines in (11, 704))
    assert short == pytest.approx(real, rel=0.02)


def test_memory_and_its_bus_take_time(found: dict[str, dict]) -> None:
    busy = found["base"]["128k-read"]["busy"]
    # Each byte is written to memory once by the flash, and read once by the RNIC.
    expected = 2 * found["base"]["128k-read"]["mb_s"] * 8 / CONSTANTS["memory_mbps"]
    assert 0.95 * expected < busy["memory"] < 1.3 * expected


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


def test_the_network_and_the_flash_work_while_the_hart_computes(
        found: dict[str, dict]) -> None:
    """A hart that is busy for a third of the time does not slow 128K reads."""
    assert 0.2 < found["base"]["128k-read"]["busy"]["hart"] < 0.5
    assert found["base"]["128k-read"]["mb_s"] > 0.98 * found["free"]["128k-read"]["mb_s"]


def test_two_harts_serve_more_reads_of_four_queue_pairs_than_one(
        found: dict[str, dict]) -> None:
    """Messages, and visits that find fewer commands together, cost a sixth of the second."""
    one, two = found["harts-1"]["4k-randread"], found["harts-2"]["4k-randread"]
    assert one["busy"]["hart"] > 0.98
    assert two["iops"] > 1.6 * one["iops"]
    assert sum(one["stages"].values()) == 0
    assert all(two["stages"][stage] > 0.2 for stage in ("transport", "target", "medium"))


def test_only_the_wanted_rows_are_measured(found: dict[str, dict]) -> None:
    assert list(found["harts-2"]) == ["4k-randread"]
    scenarios = paper.scenarios_of(found)
    assert [one["scenario"] for one in scenarios] == ["cdn", "objects"]
    assert all(one["write_amplification"] > 1 for one in scenarios)
    assert list(found["base"]) == ["128k-read", "128k-write", "4k-randread", "4k-randwrite"]


def test_two_harts_have_the_same_figures_in_each_run(found: dict[str, dict]) -> None:
    assert found["harts-2-again"] == found["harts-2"]


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
            paper.command(paper.Wish(profile, seed, mtu, small=True))
        assert "\n" not in str(caught.value)
    with pytest.raises(EssdError, match="--ports 3: the drive has two; use 1 or 2"):
        paper.command(paper.Wish(ports=3))
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


def canned(figures: dict[str, float]) -> dict[str, dict]:
    """What the program would print if all rows had one figure in each variant."""
    row = {"ios": 4, "virtual_s": 0.1, "mean_ns": 1500, "p99_ns": 2000, "p99_9_ns": 2000,
           "write_amplification": 1.5, "busy": {"hart": 0.5}, "over_time": [1, 1, 2, 0],
           "histogram": {"unit": "ns", "counts": [[1000, 2], [2000, 2]]}}
    return {variant: {one.name: {"row": one.name, "iops": figure, "mb_s": figure, **row}
                      for one in paper.ROWS} for variant, figure in figures.items()}


@pytest.mark.parametrize(("figures", "limits", "after"), [
    ({"hart": 150, "dies": 101, "hart+dies": 400, "hart+port": 150}, ["hart"], "dies"),
    ({"hart": 150, "dies": 101, "hart+dies": 152}, ["hart"], ""),
    ({"hart": 102, "dies": 101, "hart+dies": 400}, ["hart", "dies"], ""),
    ({"hart": 102, "dies": 97, "hart+dies": 102}, [], ""),
])
def test_what_limits_a_row_is_what_it_grows_without(
        figures: dict[str, float], limits: list[str], after: str) -> None:
    row = paper.facts_of(CONSTANTS, SMALL, canned({"base": 100} | figures))["rows"][0]
    assert (row["limits"], row["next_limit"]) == (limits, after)
    assert row["freed_percent"]["hart"] == figures["hart"] - 100
    said = paper.limit_text(row)
    assert all(name in said for name in [*limits, after]) and (bool(limits) == ("limited" in said))


def test_each_constant_is_changed_by_a_tenth_in_both_directions() -> None:
    constants = paper_profile.load("samsung-2021")
    variants = paper.sensitivity_variants(constants)
    assert len(variants) == 2 * len(paper_profile.TIMES)
    assert variants["cable_ns-10"] == {"cable_ns": 14}
    assert variants["hart_mips+10"] == {"hart_mips": 1100}
    changed = [value != constants[name] for change in variants.values()
               for name, value in change.items()]
    assert all(changed)


def test_tables_and_page_show_the_facts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    constants = paper_profile.load("samsung-2021")
    names = [*paper.free_variants(), *paper.sensitivity_variants(constants)]
    figures = canned({"base": 100.0} | {name: 100.0 + n for n, name in enumerate(names)})
    figures["scenarios"] = {one.name: figures["base"]["4k-randread"] | {"mb_s": 4321.0}
                            for one in paper.SCENARIOS}
    figures["base"]["precondition"] = {"points": [[100.0, 9000.0, 1.0], [200.0, 7654.0, 2.25]]}
    monkeypatch.setattr(paper, "run", lambda _settings, _variants=(): figures)
    for name in ("first.html", "second.html"):
        paper.command(paper.Wish(sensitivity=True, curve=True, scenarios=True,
                                html=tmp_path / name))
    page = (tmp_path / "first.html").read_bytes()
    assert page == (tmp_path / "second.html").read_bytes()
    assert page.count(b"<svg") == 9 and b"M60.0 210.0" in page and b"http" not in page
    said = capsys.readouterr().out
    assert "4,321" in said and "7,654" in said and b"9,900" in page
    assert "4K random read" in said and "-100.0%" in said and "hart_mips" in said
    with pytest.raises(EssdError, match="--html"):
        paper.command(paper.Wish(html=tmp_path / "none" / "page.html"))


def test_json_is_what_the_table_shows(found: dict[str, dict]) -> None:
    facts = json.loads(json.dumps(paper.facts_of(CONSTANTS, SMALL, {"base": found["base"]})))
    assert [row["row"] for row in facts["rows"]] == [row.name for row in paper.ROWS]
    read = facts["rows"][0]
    assert read["difference_percent"] == pytest.approx(100 * read["iops"] / 669_000 - 100, abs=0.01)
