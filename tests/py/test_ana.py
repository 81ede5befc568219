# SPDX-License-Identifier: BSD-2-Clause
"""`essd ana`: the states of groups of namespaces at the drive's ports."""

import json
from pathlib import Path
from typing import Any

import pytest
from fake_supervisor import FakeSupervisor
from typer.testing import CliRunner

from essd.cli import app
from essd.drive import ana


@pytest.fixture(autouse=True)
def folder_of_instances(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "essd").mkdir(mode=0o700)


class Drive(FakeSupervisor):
    """A fake drive with one namespace, in group 1."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.wishes: list[dict[str, Any]] = []
        self.groups = [{"group": n, "namespaces": int(n == 1), "port0": "optimized",
                        "port1": "optimized"} for n in range(1, 17)]

    def ask_drive(self, request: dict[str, Any]) -> Any:
        if request["request"] == "ana":
            return {"groups": self.groups}
        assert request["request"] == "ana-set"
        wish = request["arguments"]
        self.wishes.append(wish)
        for group in self.groups:
            if wish.get("group", group["group"]) == group["group"]:
                for port in (0, 1):
                    if wish.get("port", port) == port:
                        group[f"port{port}"] = wish["state"]
        return {}


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["ana", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_only_groups_with_namespaces_or_another_state_are_shown() -> None:
    with Drive("unit"):
        assert [line.split() for line in run().splitlines()[1:]] == [
            ["1", "1", "optimized", "optimized"]]
        shown = run("inaccessible", "--group", "3", "--port", "1")
    assert shown.splitlines()[2].split() == ["3", "0", "optimized", "inaccessible"]


def test_what_is_not_named_is_left_out_of_the_request() -> None:
    with Drive("unit") as drive:
        run("non-optimized")
        run("inaccessible", "--group", "1", "--port", "0", "--transition", "1.5")
    assert drive.wishes == [
        {"state": "non-optimized"},
        {"state": "inaccessible", "group": 1, "port": 0, "transition-ms": 1500}]


def test_json_has_all_groups() -> None:
    with Drive("unit"):
        assert len(json.loads(run("--json"))["groups"]) == 16


def test_status_names_groups_with_namespaces_that_are_not_optimized() -> None:
    groups = [{"group": 1, "namespaces": 2, "port0": "change", "port1": "optimized"},
              {"group": 2, "namespaces": 0, "port0": "optimized", "port1": "inaccessible"}]
    assert ana.lines("drive", groups) == ["drive: ANA group 1 is change at port 0"]
