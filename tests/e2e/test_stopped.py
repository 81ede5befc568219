# SPDX-License-Identifier: BSD-2-Clause
"""A computer that stops the drive's process for a while.

The drive has not failed, and the hosts have not been silent: nobody could hear them.
So the drive does not restart, and ends no connection because of the pause.  Linux
itself gives up a connection whose frames are not acknowledged for some seconds; then
it connects again.
"""

import os
import signal
import time

import pytest
from test_save_load import verified_io

from essd.debug import crash
from essd.instance.steps import Job

pytestmark = pytest.mark.drive

AFTER_S = 2.0


def stop_drive(job: Job, seconds: float) -> None:
    pid = job.instance.status()["parts"]["drive"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)


def facts(job: Job) -> tuple[object, int, int]:
    """What a restart of the drive would change."""
    status = job.instance.status()["parts"]["drive"]
    console = (job.instance.folder / "drive/console.log").read_text(errors="replace")
    return status["restarts"], len(crash.in_drive(job.instance)), console.count("boot:")


def reconnects(job: Job) -> int:
    return job.quiet("dmesg").count("starting error recovery")


@pytest.mark.parametrize("seconds", [
    0.3, 3.0, pytest.param(30.0, marks=pytest.mark.long)])
def test_a_drive_that_is_stopped_neither_restarts_nor_loses_data(
        connected: Job, seconds: float) -> None:
    job = connected
    before, recoveries = facts(job), reconnects(job)
    with verified_io(job) as fio:
        assert not fio.done()
        stop_drive(job, seconds)
        time.sleep(AFTER_S)
    assert facts(job) == before
    assert job.namespaces() == [job.device()]
    if seconds < 1:
        assert reconnects(job) == recoveries
