# SPDX-License-Identifier: BSD-2-Clause
"""essd aoe: what a drive exports by ATA over Ethernet."""

import json
from typing import Any

import pytest
from fake_supervisor import FakeSupervisor

from essd.cli.commands import look
from essd.drive import aoe
from essd.instance.instance import Instance

DEVICE: dict[str, Any] = {"nsid": 1, "slot": 0, "exported": True, "why": "",
                          "string-bytes": 0, "masks": 0, "holders": 0}
GUARDED = DEVICE | {"nsid": 2, "slot": 1, "string-bytes": 6, "masks": 2, "holders": 1}
LARGE = DEVICE | {"nsid": 40, "slot": 39, "exported": False,
                  "why": "its blocks have 4096 bytes, and the sectors of AoE have 512"}


class Drive(FakeSupervisor):
    """A drive whose devices need two replies."""

    forgotten = 0

    def ask_drive(self, request: dict[str, Any]) -> Any:
        if request["request"] == "aoe-forget":
            self.forgotten += 1
            return {}
        pages = {1: {"on": True, "shelf": 58280, "devices": [DEVICE, GUARDED], "next": 33},
                 33: {"on": True, "shelf": 58280, "devices": [LARGE]}}
        assert request["request"] == "aoe"
        return pages[request["arguments"]["from"]]


def test_all_pages_are_read() -> None:
    with Drive("unit"):
        assert aoe.read(Instance("unit")) == {"on": True, "shelf": 58280,
                                              "devices": [DEVICE, GUARDED, LARGE]}


def test_devices_have_the_names_that_linux_gives_them(
        capsys: pytest.CaptureFixture[str]) -> None:
    with Drive("unit"):
        look.aoe(name="unit")
        shown = capsys.readouterr().out.splitlines()
        look.aoe(name="unit", as_json=True)
    assert shown == [
        "e58280.0  namespace 1",
        "e58280.1  namespace 2, only 2 MAC addresses may use it, reserved for 1 MAC addresses, "
        "config string of 6 bytes",
        "namespace 40 is not exported: its blocks have 4096 bytes, and the sectors of AoE have "
        "512"]
    assert json.loads(capsys.readouterr().out)["shelf"] == 58280


def test_what_stations_have_set_is_forgotten_on_demand(
        capsys: pytest.CaptureFixture[str]) -> None:
    with Drive("unit") as drive:
        look.aoe(name="unit", forget=True)
    assert drive.forgotten == 1 and "e58280.0" in capsys.readouterr().out


def test_a_drive_that_exports_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeSupervisor("unit") as drive:
        drive.mgmt["aoe"] = {"on": False, "devices": []}
        look.aoe(name="unit")
    assert "nothing is exported" in capsys.readouterr().out
