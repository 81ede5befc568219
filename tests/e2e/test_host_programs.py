# SPDX-License-Identifier: BSD-2-Clause
"""The programs of tests/host, run in the host guest."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from watching import busy_loops

from essd.instance.instance import Instance
from essd.instance.steps import Job

SECONDS = 3             # between two looks at the clocks
LOOKS = 8


@pytest.mark.drive
@pytest.mark.parametrize("name", ["test_cpu", "test_libnvme", "test_rdma_cm"])
def test_program(job: Job, host_programs: dict[str, Path], name: str) -> None:
    job.instance.put(host_programs[name], f"/tmp/{name}")
    result = job.instance.run(
        f"DRIVE_ADDR={job.addresses[0]} DRIVE_NQN={job.nqn} /tmp/{name}",
        check=False)
    print(result.output)
    assert result.status == 0, result.output
    assert "[  PASSED  ]" in result.output


def clock_rate(instance: Instance) -> float:
    """How fast the host's clock runs, where 1 is as fast as this machine's."""
    script = "while read -r line; do read -r up rest < /proc/uptime; echo $up; done"
    with subprocess.Popen([*instance.ssh(), "--", script], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None

        def look() -> tuple[float, float]:
            """The two clocks at about the same moment: in the quickest of some answers."""
            best = (float("inf"), 0.0, 0.0)
            for _ in range(LOOKS):
                before = time.monotonic()
                process.stdin.write(b"\n")
                process.stdin.flush()
                there = float(process.stdout.readline())
                took = time.monotonic() - before
                best = min(best, (took, before + took / 2, there))
            return best[1], best[2]

        here, there = look()
        time.sleep(SECONDS)
        here_then, there_then = look()
        process.stdin.close()
        process.wait(30)
    return (there_then - there) / (here_then - here)


def test_the_clock_of_a_host_runs_as_fast_as_this_machines(job: Job) -> None:
    with busy_loops():
        rate = clock_rate(job.instance)
    print(f"the host's clock runs at {rate:.4f} of this machine's")
    assert abs(rate - 1) < 0.02


@pytest.mark.long
def test_a_host_that_boots_on_a_busy_machine_has_the_same_clock(
        booted: Callable[..., Job]) -> None:
    """Linux measured it wrong there: with the PIT by a factor, with the HPET by a quarter."""
    with busy_loops():
        job = booted()
        rate = clock_rate(job.instance)
        print(f"the host's clock runs at {rate:.4f} of this machine's")
        print(job.quiet("dmesg | grep -i 'tsc\\|clocksource'"))
    assert abs(rate - 1) < 0.02


def test_an_emulated_host_has_no_pit_to_measure_its_clock_with(job: Job) -> None:
    """It is wrong by a factor when the machine that runs the host is busy."""
    said = job.quiet("dmesg | grep 'tsc: \\|kvm-clock'")
    if "kvm-clock" in said:
        pytest.skip("KVM tells the guest how fast its clock is")
    # Its counter, eight times: nothing is behind a port that says ff.
    counter = job.run("for i in 1 2 3 4 5 6 7 8; do dd if=/dev/port bs=1 skip=64 "
                      "count=1 2>/dev/null; done | od -An -tx1")
    assert counter.split() == ["ff"] * 8, counter
