# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --mount`: starts of a drive with NAND flash."""

import json
from pathlib import Path

import pytest
from test_json import check as check_fields
from typer.testing import CliRunner

from essd import cli
from essd.base import paths
from essd.base.errors import EssdError
from essd.bench import mount as bench_mount
from essd.bench.mount import Start
from essd.storage.nand_look import Fill


def test_the_console_says_how_long_each_mount_took(tmp_path: Path) -> None:
    console = tmp_path / "drive.console"
    assert bench_mount.ready_lines(console) == []
    console.write_bytes(b"[ 0.1] ftl: ready after 234 ms, 0 rows were read\r\n"
                        b"[ 0.2] \xff\n[ 9.1] ftl: ready after 1420 ms, 37 rows were read\r\n")
    assert bench_mount.ready_lines(console) == [(234, 0), (1420, 37)]


def test_a_row_has_the_medians_of_the_starts() -> None:
    row = bench_mount.median("nothing", "new", [
        Start(300, 0, 90, None, 2), Start(200, 4, 95, None, 3), Start(900, 1, 70, None, 4)])
    assert (row.mount_ms, row.most_mount_ms, row.rows_read, row.idle_mib, row.used_mib,
            row.starts) == (300, 900, 1, 90, None, 3)
    assert row.file_mib == 2, "each power cut comes after more writes"


@pytest.mark.parametrize("words", [["--native"], ["--block"], ["--only", "4k"],
                                   ["--compare", "x"], ["--timing", "fast"]])
def test_options_of_other_measurements_are_refused(words: list[str]) -> None:
    done = CliRunner().invoke(cli.app, ["bench", "--mount", *words])
    assert isinstance(done.exception, EssdError)
    assert str(done.exception).startswith(f"{words[0]} does not go with --mount")


def test_a_drive_is_started_new_after_a_stop_and_after_a_power_cut(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    paths.runtime()
    for name in ("IDLE_S", "LOAD_S", "CUT_S"):
        monkeypatch.setattr(bench_mount, name, 0.3)
    monkeypatch.setattr(bench_mount, "CONTENTS", {"30%": Fill(30)})
    done = CliRunner().invoke(cli.app, ["bench", "--mount", "--json", "--rounds", "1",
                                        "--nand", "300M,channels=1"])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    rows = json.loads(done.stdout)
    check_fields("bench --mount", rows)
    assert [(row["contents"], row["start"], row["starts"]) for row in rows] == [
        ("nothing", "new", 1), ("30%", "stop", 1), ("30%", "cut", 1)]
    assert rows[0]["file_mib"] < 3 < 30 < rows[1]["file_mib"] < 60
    assert all(0 < row["mount_ms"] == row["most_mount_ms"] for row in rows)
    assert all(20 < row["idle_mib"] < 1000 for row in rows)
    assert rows[0]["used_mib"] is rows[2]["used_mib"] is None and rows[1]["used_mib"] > 20
    assert not (paths.drives() / bench_mount.NAME).exists()
