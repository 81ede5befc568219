# SPDX-License-Identifier: BSD-2-Clause
"""The programs of tests/host, run in the host guest."""

from pathlib import Path

import pytest

from essd.steps import Job


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


def test_an_emulated_host_has_no_pit_to_measure_its_clock_with(job: Job) -> None:
    """It is wrong by a factor when the machine that runs the host is busy."""
    said = job.quiet("dmesg | grep 'tsc: \\|kvm-clock'")
    if "kvm-clock" in said:
        pytest.skip("KVM tells the guest how fast its clock is")
    assert "tsc: using HPET reference calibration" in said, said
    # Its counter, eight times: nothing is behind a port that says ff.
    counter = job.run("for i in 1 2 3 4 5 6 7 8; do dd if=/dev/port bs=1 skip=64 "
                      "count=1 2>/dev/null; done | od -An -tx1")
    assert counter.split() == ["ff"] * 8, counter
