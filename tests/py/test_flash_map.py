# SPDX-License-Identifier: BSD-2-Clause
"""`essd media map` and `essd media info` of a drive that runs, and of one that is off."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from essd import cli
from essd.base import paths
from essd.observe import flash_map, flash_page
from essd.storage import nand
from fake_supervisor import FakeSupervisor
from test_cli_instances import make_drive
from test_json import check as check_fields
from typer.testing import CliRunner

NAME = "mapped"


def row(number: int, state: str, valid: int = 0, **more: Any) -> dict[str, Any]:
    return {"superblock": number, "state": state, "valid": valid, "capacity": 100,
            "erasures": number, "age-rows": 0, **more}


ROWS = [row(0, "closed", 100), row(1, "closed", 35, **{"moves-for": "scrub"}),
        row(2, "open", 3, stream="host"), row(3, "open", 4, stream="move"),
        row(4, "free"), row(5, "retired"), row(6, "checkpoint"), row(7, "erasing")]
FACTS = {"name": NAME, "drive": "drive", "running": True, "mounted": True,
         "dies": flash_map.dies_of(nand.Nand("/x", "300M", "tlc2021", 2, 1, 1, "realtime",
                                             "off", 0, 200, 8, 7), [1], [0.25, 0.0]),
         "superblocks": [{"stream": None, "moves-for": None, **found} for found in ROWS]}


def test_the_map_shows_each_superblock_and_each_die() -> None:
    text = "\n".join(line.plain for line in flash_map.lines(FACTS))
    assert "8 superblocks: 1 free, 2 open, 2 closed, 1 retired, 1 checkpoint, 1 erasing" in text
    assert "142 of 700 units valid (20.3%); erasures 0 to 7, mean 3.5" in text
    assert "superblock 1 is moved for scrub" in text
    assert "channel 0 die 0: 25.0% busy\nchannel 1 die 0: dead" in text
    assert "     0  93hm.xce\n" in text


def test_dead_dies_and_retired_superblocks_are_red() -> None:
    dead = flash_map.die_line(FACTS["dies"][1])         # type: ignore[index]
    assert "bold red" in [str(span.style) for span in dead.spans]
    styles = [str(span.style) for span in flash_map.grid(FACTS["superblocks"]).spans]  # type: ignore[arg-type]
    assert "red" in styles and "yellow" in styles


def test_the_page_needs_nothing_else_and_says_the_same() -> None:
    page = flash_page.page({**FACTS, "name": "<b>"})
    assert not re.search(r"https?:|<script|src=", page)
    assert "&lt;b&gt;" in page and "<b>" not in page
    assert page.count("<li ") == 8
    assert ('title="superblock 1: closed, 35 of 100 units valid (35%), 1 erasures, '
            'moved for scrub"') in page
    assert '<tr class="dead"><td>channel 1 die 0</td><td>dead</td>' in page


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSupervisor]:
    """A drive that runs, whose array has a record but no file: nothing may be built."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    paths.runtime()
    folder = make_drive(NAME)
    nand.record(nand.Nand(str(folder / nand.FILE), "300M", "tlc2021", 2, 1, 1, "realtime",
                          "off", 256 << 20, 200, 8, 7))

    def refuse() -> None:
        raise AssertionError("something is built")

    monkeypatch.setattr(nand, "program", refuse)
    monkeypatch.setattr(flash_map, "BUSY_S", 0)
    times = itertools.cycle(["1000,10,0", "2000,260,0"])
    with FakeSupervisor(NAME) as supervisor:
        supervisor.replies["mgmt"] = answer
        supervisor.replies["qmp"] = lambda _request: next(times)
        yield supervisor


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["request"] == "counters":
        return {"flash": {"failed-blocks": 3}, "ftl": {"free-superblocks": 1}}
    assert request["request"] == "superblocks"
    first = request["arguments"].get("from", 0)
    return {"mounted": True, "dead-dies": [1], "superblocks": ROWS[first:first + 4],
            **({"next": first + 4} if first + 4 < len(ROWS) else {})}


def essd(*words: str) -> str:
    done = CliRunner().invoke(cli.app, ["media", *words, "--name", NAME])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_running_drive_is_asked_for_its_map(running: FakeSupervisor) -> None:
    facts = json.loads(essd("map", "--json"))
    check_fields("media map", facts)
    assert [found["superblock"] for found in facts["superblocks"]] == list(range(8))
    assert facts["running"] and facts["superblocks"][2]["stream"] == "host"
    assert facts["superblocks"][0]["stream"] is None
    assert facts["dies"] == [
        {"channel": 0, "die": 0, "dead": False, "busy": 0.25},
        {"channel": 1, "die": 0, "dead": True, "busy": 0.0}]


def test_info_works_while_the_drive_runs(running: FakeSupervisor) -> None:
    text = essd("info")
    assert "NAND array of 300M, hosts see 256M, at least 7% spare; the drive runs" in text
    assert "dead dies: channel 1 die 0" in text and "8 superblocks, 1 free" in text
    facts = json.loads(essd("info", "--json"))
    assert facts["is_running"] and facts["failed_blocks"] == 3
    assert [die["is_dead"] for die in facts["die_map"]] == [False, True]
    assert (facts["min_erasures"], facts["max_erasures"]) == (0, 7)


def test_a_page_is_written(running: FakeSupervisor, tmp_path: Path) -> None:
    assert "wrote" in essd("map", "--html", str(tmp_path / "map.html"))
    assert "<title>Flash of drive of mapped</title>" in (tmp_path / "map.html").read_text()
    done = CliRunner().invoke(cli.app, ["media", "map", "--name", NAME, "--html",
                                        str(tmp_path / "none/map.html")])
    assert done.exit_code == 1


def test_a_drive_of_older_firmware_says_that_it_has_no_map(running: FakeSupervisor) -> None:
    def refuse(request: dict[str, Any]) -> None:
        raise ValueError(f"the drive does not know the request {request['request']}")

    running.replies["mgmt"] = refuse
    done = CliRunner().invoke(cli.app, ["media", "map", "--name", NAME])
    assert done.exit_code != 0
    assert "does not know the request superblocks" in str(done.exception or done.output)
