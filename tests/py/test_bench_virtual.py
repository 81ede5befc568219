# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --native --timing virtual`: the same seed gives the same figures."""

import json
import subprocess
from pathlib import Path

import pytest

from essd.base import paths
from essd.base.errors import EssdError
from essd.bench import bench, report as bench_report, virtual as bench_virtual
from essd.build import native_build
from essd.storage import nand

SMALL = ["slc", "2", "2"]
WORKLOADS = ["4k-randread-qd64", "4k-randwrite-qd64", "128k-read-qd64"]
MILLISECONDS = 20


def test_two_runs_with_the_same_seed_have_the_same_figures() -> None:
    first = bench_virtual.run(SMALL, 7, MILLISECONDS, WORKLOADS)
    assert [row["workload"] for row in first["workloads"]] == WORKLOADS
    assert all(row["ios"] > 10 for row in first["workloads"])
    assert bench_virtual.run(SMALL, 7, MILLISECONDS, WORKLOADS) == first
    assert bench_virtual.run(SMALL, 8, MILLISECONDS, WORKLOADS)["digest"] \
        != first["digest"]


def test_more_dies_read_faster() -> None:
    """Virtual time passes as the flash needs it, so parallelism shows."""
    few, many = (bench_virtual.run(["tlc2021", "1", dies], 1, MILLISECONDS, WORKLOADS[:1])
                 for dies in ("2", "8"))
    assert many["workloads"][0]["iops"] > 2 * few["workloads"][0]["iops"]


def test_reads_do_not_wait_for_writes_beside_them() -> None:
    """Reads suspend programs and erasures of 10 ms, and the writes go on nevertheless."""
    reads, writes = bench_virtual.run(["tlc2021", "4", "2"], 1, 200,
                                      ["4k-mixed-qd1-qd16"])["workloads"]
    assert (reads["workload"], writes["workload"]) \
        == ("4k-mixed-qd1-qd16-reads", "4k-mixed-qd1-qd16-writes")
    assert reads["mean_us"] < 250 and reads["p99_us"] < 2000
    assert reads["iops"] > 4000 and writes["iops"] > 100_000


def test_instructions_take_time() -> None:
    """A slower hart answers later, and is the limit when it is slow enough."""
    none, fast, slow = (bench_virtual.run(SMALL, 1, MILLISECONDS,
                                          ["4k-randread-qd1", "4k-randread-qd64"], mips)
                        ["workloads"] for mips in (0, 1000, 50))
    assert [row["hart_busy"] for row in none] == [0, 0]
    assert all(row["instructions"] > 500 for row in none + fast + slow)
    for row, beside in zip(fast, none, strict=True):
        # A read at depth 1 waits for all of its instructions, except for those that the
        # firmware executes while the flash reads, and after its completion was sent.
        least_us = row["instructions"] / 1000 / 2
        assert row["workload"].endswith("qd64") \
            or row["mean_us"] > beside["mean_us"] + least_us
    assert slow[1]["hart_busy"] > 0.99
    limit = 50e6 / slow[1]["instructions"]
    assert 0.95 < slow[1]["iops"] / limit < 1.05


def test_the_command_prints_these_figures_for_other_programs() -> None:
    done = subprocess.run(
        [paths.TOP / "essd", "bench", "--native", "--timing", "virtual", "--seconds", "1",
         "--seed", "3", "--only", "128k-read", "--nand", "profile=slc,channels=1,dies=4",
         "--json"], check=True, text=True, stdout=subprocess.PIPE, timeout=600)
    found = json.loads(done.stdout)
    assert found == bench_virtual.run(["slc", "1", "4"], 3, 1000, ["128k-read-qd64"])
    assert [result.workload for result in bench_report.results_of(found)] \
        == ["128k-read-qd64"]


@pytest.mark.parametrize(("words", "why"), [
    ("8G", "only profile, channels and dies"),
    ("plp=on", "only profile, channels and dies"),
    ("seed=3", "--seed gives the seed"),
    ("spare=20", "spare only matters with --steady"),
    ("profile=tcl2021", "tlc2021"),
    ("channels=16,dies=16", "32 dies in all"),
    ("channels=0", "channels 0 is outside 1 to 16"),
])
def test_an_array_that_does_not_fit_is_refused_in_a_line(words: str, why: str) -> None:
    with pytest.raises(EssdError, match=why) as caught:
        bench_virtual.array_words(bench_virtual.array_of(words), words)
    assert "\n" not in str(caught.value)


def test_the_steady_state_is_measured_with_the_drive_that_is_asked_for(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
        capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n"
                       'echo "$@" > "$0.words"\n'
                       'echo \'{"profile": "tlc2021", "channels": 8, "dies": 4, "blocks": 200, '
                       '"wordlines": 32, "capacity_bytes": 59861106688, "iops": 97000, '
                       '"mb_s": 397.3, "write_amplification": 5.8}\'\n')
    program.chmod(0o755)
    monkeypatch.setattr(native_build, "native_program", lambda *names: program)
    monkeypatch.setattr(nand, "check_profile", lambda name: None)
    bench_virtual.steady_command("profile=samsung-2021", as_json=False)
    assert Path(f"{program}.words").read_text() == "tlc2021 8 4 200 32 63 11\n"
    said = " ".join(capsys.readouterr().out.split())
    assert "97,000 random writes of 4 KiB a second (397 MB/s)" in said
    assert "11% spare; hosts see 59.9 GB" in said


@pytest.mark.parametrize(("timing", "why"), [
    (bench.Timing(None, steady=True), "--steady: only with --native --timing virtual"),
    (bench.Timing("virtual", seed=2, steady=True), "--steady: not with --seed or --mips"),
])
def test_the_steady_state_needs_virtual_time(timing: bench.Timing, why: str) -> None:
    with pytest.raises(EssdError, match=why):
        timing.check(True, 0, None, False)


@pytest.mark.parametrize(("timing", "facts", "why"), [
    (bench.Timing("virtual"), (False, 0, None, False), "only with --native"),
    (bench.Timing("virtual"), (True, 4, None, False), "not with --silent"),
    (bench.Timing("fast"), (True, 0, None, True), "not with --block"),
    (bench.Timing("realtime"), (True, 0, "8G", False), "--nand 8G,timing=realtime"),
    (bench.Timing("fast"), (False, 0, None, False, "nvmet"), "not with --target nvmet"),
    (bench.Timing("virtual"), (True, 0, None, False, "nvmet"), "not with --target nvmet"),
    (bench.Timing("fast", 1), (True, 0, None, False), "--seed: only with"),
    (bench.Timing("fast", None, 0), (True, 0, None, False), "--mips: only with"),
    (bench.Timing("virtua"), (True, 0, None, False), "did you mean virtual"),
])
def test_a_timing_that_is_impossible_is_refused(timing: bench.Timing, facts: tuple,
                                                why: str) -> None:
    with pytest.raises(EssdError, match=why):
        timing.check(*facts)


def test_a_drive_in_qemu_has_no_virtual_time() -> None:
    with pytest.raises(EssdError, match="essd bench --native --timing virtual") as caught:
        nand.parse("8G,timing=virtual")
    assert "\n" not in str(caught.value)
