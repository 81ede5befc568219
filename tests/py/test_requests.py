# SPDX-License-Identifier: BSD-2-Clause
"""`essd requests`: the commands in the drive, read in pages and shown as a table."""

import json
from pathlib import Path
from typing import Any

import pytest
from fake_supervisor import FakeSupervisor

from essd.base import show
from essd.cli.commands import look
from essd.instance.instance import Instance
from essd.observe import requests

READ = {"request": 7, "qpn": 0x805, "qid": 1, "cid": 3, "opcode": 2, "nsid": 1,
        "lba": 4096, "bytes": 4096, "state": "media", "age-us": 1500}
EVENT = {"request": 8, "qpn": 0x804, "qid": 0, "cid": 31, "opcode": 0x0c, "nsid": 0,
         "bytes": 0, "state": "waits-for-event", "age-us": 9000000}
CONNECT = {"request": 9000, "qpn": 0x806, "qid": 0, "cid": 0, "opcode": 0x7f,
           "fctype": 1, "bytes": 1024, "state": "responding", "age-us": 20}


@pytest.fixture(autouse=True)
def folder_of_instances(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "essd").mkdir(mode=0o700)


class Drive(FakeSupervisor):
    """A fake drive whose table of requests has three pages, the second one empty."""

    def ask_drive(self, request: dict[str, Any]) -> Any:
        pages = {0: {"requests": [READ, EVENT], "next": 64},
                 64: {"requests": [], "next": 2112}, 2112: {"requests": [CONNECT]}}
        assert request["request"] == "requests"
        return pages[request["arguments"]["from"]]


def test_all_pages_are_read_and_the_oldest_command_comes_first() -> None:
    with Drive("unit"):
        assert requests.read(Instance("unit")) == [EVENT, READ, CONNECT]


def test_a_page_that_points_back_does_not_read_for_ever() -> None:
    with FakeSupervisor("unit") as drive:
        drive.mgmt["requests"] = {"requests": [READ], "next": 0}
        assert requests.read(Instance("unit")) == [READ]


def test_the_table_names_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with Drive("unit"):
        with show.console.capture() as captured:
            look.requests(name="unit")
        look.requests(name="unit", as_json=True)
    rows = captured.get().splitlines()
    assert [row.split()[0] for row in rows] == ["request", "8", "7", "9000"]
    assert "Async Event Request" in rows[1] and "9000.0 ms" in rows[1]
    assert "0x000805" in rows[2] and "Read" in rows[2] and "4096" in rows[2]
    assert "Connect" in rows[3] and "responding" in rows[3]
    assert json.loads(capsys.readouterr().out)[1] == READ


def test_an_idle_drive_says_so() -> None:
    with FakeSupervisor("unit") as drive:
        drive.mgmt["requests"] = {"requests": []}
        with show.console.capture() as captured:
            look.requests(name="unit")
    assert "no command is in the drive" in captured.get()
