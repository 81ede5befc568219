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
