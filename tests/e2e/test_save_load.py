# SPDX-License-Identifier: BSD-2-Clause
"""The drive's state is saved during I/O and resumed in a new process."""

import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from watching import console

from essd import qemu_build, steps
from essd.instance import Result
from essd.steps import Job

# About 14 s of writes at a modest rate, then everything is read and compared.
LOAD = ("--rw=randwrite --bssplit=4k/60:16k/40 --iodepth=8 --size=24m "
        "--rate_iops=250")


@contextmanager
def verified_io(job: Job) -> Iterator["Future[Result]"]:
    """Run fio with verification in the background; it must end without an error."""
    command = steps.FIO.format(device=job.device(), name="background", options=LOAD)
    with ThreadPoolExecutor(1) as pool:
        fio = pool.submit(job.instance.run, command, timeout_s=300, check=False)
        time.sleep(3)
        assert not fio.done(), fio.result().output
        yield fio
        result = fio.result()
    assert result.status == 0 and "err= 0" in result.output, result.output


@pytest.mark.drive
def test_fio_continues_after_the_drive_is_saved_and_loaded(connected: Job) -> None:
    """The loaded drive does not boot but resumes, and fio sees no error.

    The host may lose its connection when its carrier comes and goes; then it
    reconnects, to the same drive.
    """
    job = connected
    before = console(job)
    with verified_io(job) as fio:
        for _ in range(3):
            assert not fio.done()
            job.instance.ask("save")
            assert job.instance.status()["parts"]["drive"]["pid"] is None
            job.instance.ask("load")
            time.sleep(0.7)
    assert "boot:" not in console(job)[len(before):]
    assert job.instance.status()["cables"]["0"]["carrier"]
    assert job.namespaces() == [job.device()]


@pytest.mark.drive
def test_a_host_that_gave_up_meanwhile_reconnects(connected: Job) -> None:
    """The drive is saved for longer than the host waits."""
    job = connected
    with verified_io(job):
        job.instance.ask("save")
        time.sleep(20)
        job.instance.ask("load")
    assert job.namespaces() == [job.device()]


@pytest.mark.drive
def test_a_drive_with_a_qcow2_image_is_saved_and_loaded(booted: Callable[..., Job],
                                                    tmp_path: Path) -> None:
    media = tmp_path / "media.qcow2"
    qemu_img = qemu_build.ensure_qemu().with_name("qemu-img")
    subprocess.run([qemu_img, "create", "-q", "-f", "qcow2", media, "256M"],
                   check=True, timeout=60)
    job = booted(media=media, media_format="qcow2")
    steps.connect(job)
    with verified_io(job):
        job.instance.ask("save")
        job.instance.ask("load")
    steps.disconnect(job)
    job.instance.check()
