# SPDX-License-Identifier: BSD-2-Clause
"""`essd compare` with some rows, between hosts of user-mode Linux."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from essd.base import paths
from essd.build import guest_variant
from essd.instance.config import UML

pytestmark = [pytest.mark.uml, pytest.mark.long]


def compare(*words: str, timeout_s: float = 600) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "essd", "--quiet", "compare", "--json", "--rounds", "1",
         "--seconds", "1", *words], cwd=paths.TOP, check=False, capture_output=True, text=True,
        timeout=timeout_s)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(autouse=True)
def needs_user_mode_linux(host_kind: str) -> None:
    if host_kind != UML:
        pytest.skip("user-mode Linux is not used")


def test_protocols_of_the_drive_beside_linux(tmp_path: Path) -> None:
    if not guest_variant.is_built(guest_variant.PEERS):
        pytest.skip("the guest of the peers is not built")
    page = tmp_path / "x.html"
    data = compare("--only", "drive,nvmet-roce,4k-randread-qd128,copy-2m", "--html", str(page))
    reasons = {row["row"]: row["reason"] for row in data["rows"] if row["reason"]}
    assert not reasons
    found = {(row["workload"], row["row"]): row for row in data["workloads"]}
    rows = {"drive-roce", "drive-iwarp", "drive-tcp", "drive-tcp-digests", "drive-tcp-tls",
            "drive-aoe", "nvmet-roce"}
    assert {row for name, row in found if name == "4k-randread-qd128"} == rows
    for row in rows:
        one = found["4k-randread-qd128", row]
        # 4 KiB and their headers in both directions, and no second copy of them.
        assert 4096 < one["bytes"] < 6000 and 2 <= one["frames"] < 16, one
        assert one["target_cpu"] > 0 and one["host_cpu"] > 0, one
    copies = {(one["row"], one["by"]): one["bytes"] for one in data["copies"]}
    for row in ("drive-roce", "drive-tcp"):
        assert copies[row, "host"] > 2 * 16 * (2 << 20) > 1000 * copies[row, "drive"], copies
    assert "drive-tcp-tls" in page.read_text()


def test_all_rows_and_workloads() -> None:
    if not guest_variant.is_built(guest_variant.PEERS):
        pytest.skip("the guest of the peers is not built")
    data = compare(timeout_s=900)
    reasons = {row["row"]: row["reason"] for row in data["rows"] if row["reason"]}
    assert not reasons
    assert len(data["workloads"]) == 5 * 11 and len(data["copies"]) == 2 * 4
