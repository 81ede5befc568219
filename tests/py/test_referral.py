# SPDX-License-Identifier: BSD-2-Clause
"""`essd referral`: what the discovery log of a drive refers to."""

import json
from pathlib import Path
from typing import Any

import pytest
from fake_supervisor import FakeSupervisor
from typer.testing import CliRunner

from essd.cli import app


@pytest.fixture(autouse=True)
def folder_of_instances(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "essd").mkdir(mode=0o700)


class Drive(FakeSupervisor):
    """A fake drive with a list of referrals."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.referrals: list[dict[str, Any]] = []

    def ask_drive(self, request: dict[str, Any]) -> Any:
        entry = {key: str(value) for key, value in request.get("arguments", {}).items()}
        if request["request"] == "referral-add":
            self.referrals.append(entry)
        elif request["request"] == "referral-remove":
            self.referrals.remove(entry)
        else:
            return {"referrals": self.referrals}
        return {}


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["referral", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_referrals_are_added_shown_and_removed() -> None:
    with Drive("unit"):
        run("10.0.0.20")
        assert "10.0.0.20 4420" in run("fd00::1", "--service", "8009")
        assert json.loads(run("--json"))["referrals"][1] == {
            "address": "fd00::1", "service": "8009"}
        run("fd00::1", "--service", "8009", "--remove")
        assert "fd00::1" not in run()
