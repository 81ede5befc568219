# SPDX-License-Identifier: BSD-2-Clause
"""`essd namespaces`: the namespaces of a drive, read in pages and shown as a table."""

import json
from pathlib import Path
from typing import Any

import pytest
from fake_supervisor import FakeSupervisor

from essd.base import show
from essd.cli.commands import look
from essd.drive import namespaces
from essd.instance.instance import Instance

CAPACITY = {"total-bytes": 8 << 30, "free-bytes": 3 << 29, "granularity-bytes": 2 << 20}
FIRST = {"nsid": 1, "state": "ready", "size-bytes": 4 << 30, "block-bytes": 512,
         "creation": 1, "private": False, "for-all-hosts": True, "other-hosts": 0,
         "ana-group": 1, "write-protection": "off"}
SECOND = {**FIRST, "nsid": 40, "size-bytes": 513 * 4096, "block-bytes": 4096,
          "creation": 7, "private": True, "for-all-hosts": False, "other-hosts": 1}
THIRD = {**FIRST, "nsid": 41, "other-hosts": 2, "state": "format-failed"}


@pytest.fixture(autouse=True)
def folder_of_instances(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "essd").mkdir(mode=0o700)


class Drive(FakeSupervisor):
    """A fake drive whose table of namespaces has two pages."""

    def ask_drive(self, request: dict[str, Any]) -> Any:
        pages = {1: {**CAPACITY, "namespaces": [FIRST], "next": 33},
                 33: {**CAPACITY, "namespaces": [SECOND, THIRD]}}
        assert request["request"] == "namespaces"
        return pages[request["arguments"]["from"]]


def test_all_pages_are_read() -> None:
    with Drive("unit"):
        assert namespaces.read(Instance("unit")) == {
            **CAPACITY, "namespaces": [FIRST, SECOND, THIRD]}


def test_the_table_says_who_has_each_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    with Drive("unit"):
        with show.console.capture() as captured:
            look.namespaces(name="unit")
        look.namespaces(name="unit", as_json=True)
    rows = captured.get().splitlines()
    assert rows[1].split() == ["1", "4", "GiB", "512", "all", "no", "1", "off", "ready"]
    assert rows[2].split() == ["40", "2052", "KiB", "4096", "1", "yes", "1", "off", "ready"]
    assert "all but 2" in rows[3] and "format-failed" in rows[3]
    assert rows[4] == "Namespace 41 takes no I/O: its Format has failed.  Format it again."
    assert "1536 MiB of 8 GiB are free" in rows[5] and "multiples of 2 MiB" in rows[5]
    assert json.loads(capsys.readouterr().out)["namespaces"][1] == SECOND
