# SPDX-License-Identifier: BSD-2-Clause
"""The sandbox around every QEMU of an instance, that of a stock host, too."""

from pathlib import Path

import pytest

from essd.instance.steps import Job


@pytest.mark.drive
def test_every_qemu_of_an_instance_filters_its_system_calls(job: Job) -> None:
    """In /proc/PID/status, "Seccomp: 2" means that a filter is active (proc(5))."""
    for name, part in job.instance.status()["parts"].items():
        status = Path(f"/proc/{part['pid']}/status").read_text()
        assert "\nSeccomp:\t2\n" in status, name
