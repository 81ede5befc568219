# SPDX-License-Identifier: BSD-2-Clause
"""The fuzz stage reads libFuzzer's output and reports targets that fail."""

import stat
from pathlib import Path

import pytest

from essd.testrun import fuzz

GOOD = """#81179	DONE   cov: 240 ft: 947 corp: 106/8105b lim: 422 exec/s: 11597 rss: 84Mb
Done 81179 runs in 7 second(s)
stat::number_of_executed_units: 81179
"""


def test_the_final_statistics_become_one_line() -> None:
    found = fuzz.outcome("arp", 0, GOOD)
    assert (found.runs, found.edges, found.features, found.inputs) == (81179, 240, 947,
                                                                      106)
    assert found.is_good
    assert "11597 per second" in found.line() and "240 edges" in found.line()


def test_a_target_that_made_no_runs_is_a_failure() -> None:
    assert not fuzz.outcome("arp", 0, "INFO: seed corpus\n").is_good
    assert not fuzz.outcome("arp", 77, GOOD).is_good


@pytest.mark.parametrize("status, failures", [(0, 0), (77, 1)])
def test_all_targets_run_although_one_fails(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int,
        failures: int) -> None:
    monkeypatch.setattr(fuzz, "BUILT", tmp_path)
    monkeypatch.setattr(fuzz, "WORK", tmp_path / "work")
    kept = tmp_path / "kept"
    monkeypatch.setattr(fuzz, "KEPT", kept)
    for name in ("a", "b"):
        (kept / name).mkdir(parents=True)
        program = tmp_path / f"fuzz_{name}_libfuzzer"
        program.write_text(f"#!/bin/sh\necho \"$@\"\ncat <<'E'\n{GOOD}E\n"
                           f"exit {status if name == 'b' else 0}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    lines: list[str] = []
    failed = fuzz.run(60, lines.append)
    assert len(failed) == failures
    assert sum("81179 runs" in line for line in lines) >= 1
    if failures:
        assert failed[0].name == "b" and "FAILED: status 77" in "\n".join(lines)
        assert "-max_total_time=30" in failed[0].output
        assert str(kept / "b") in failed[0].output
