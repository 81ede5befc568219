# SPDX-License-Identifier: BSD-2-Clause
"""The drive's state is saved during I/O and resumed in a new process."""

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from watching import console, until

from essd.build import qemu_build
from essd.instance import steps
from essd.instance.instance import Result
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]

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
    if result.status != 0:
        job.instance.check()        # fio's end is that of its host, perhaps.
    assert result.status == 0 and "err= 0" in result.output, result.output


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


def test_a_host_that_gave_up_meanwhile_reconnects(connected: Job) -> None:
    """The drive is saved for longer than the host waits."""
    job = connected
    with verified_io(job):
        job.instance.ask("save")
        time.sleep(20)
        job.instance.ask("load")
    assert job.namespaces() == [job.device()]


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


# A part with cache operations, whose channel is so slow that the host waits for the flash.
SLOW = "300M,channels=1,profile=mlc2d,timing=realtime"
FILL = "--rw=write --bs=128k --iodepth=8 --size=32m --do_verify=0 --end_fsync=1"
READ = "--rw=read --bs=128k --iodepth=32 --size=32m --loops=10"
STOP = "/tmp/stop-reading"
SAVES = 5
COMMANDS = 16               # of two dies: both registers of a die are in use, usually
LONGEST_WAIT_S = 180


@contextmanager
def verified_reads(job: Job) -> Iterator["Future[Result]"]:
    """Fill a part of the namespace, then read and verify it until the end of the block."""
    steps.run_fio(job, steps.FIO.format(device=job.device(), name="reads", options=FILL))
    command = steps.FIO.format(device=job.device(), name="reads", options=READ)
    loop = (f"rm -f {STOP}; while [ ! -e {STOP} ]; do {command} --output=/tmp/fio.log || "
            "{ cat /tmp/fio.log; exit 1; }; done")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(job.instance.run, loop, timeout_s=600, check=False)
        try:
            yield running
        except BaseException:
            steps.clean_host(job)       # fio would wait for a drive that is gone
            raise
        finally:
            job.run(f"touch {STOP}")
        result = running.result()
    assert result.status == 0, result.output


def wait_reads(job: Job) -> None:
    """Wait until another read has ended."""
    command = "cat /sys/block/nvme*/stat | awk '{ n += $1 } END { print n }'"
    before = job.quiet(command)
    until(lambda: job.quiet(command) != before)


def qmp(job: Job, command: str, **arguments: object) -> None:
    job.instance.ask("qmp", part="drive", execute=command, arguments=arguments)


def stop_during_reads(job: Job, running: "Future[Result]") -> None:
    """Stop the drive while its flash has several commands.

    The host may be so slow that the flash has none most of the time.
    """
    qmp(job, "trace-event-set-state", name="essd_nand_quiesce", enable=True)
    log = job.instance.folder / "drive/process.log"
    deadline = time.monotonic() + LONGEST_WAIT_S
    while True:
        qmp(job, "stop")
        counts = re.findall(r"essd_nand_quiesce commands (\d+)", log.read_text(errors="replace"))
        if int(counts[-1]) >= COMMANDS:
            return
        qmp(job, "cont")
        assert not running.done(), running.result().output
        assert time.monotonic() < deadline, counts
        time.sleep(0.02)


@pytest.mark.long
def test_a_drive_is_saved_while_its_flash_reads(booted: Callable[..., Job]) -> None:
    """The flash takes its time, so that a save comes while dies read and send pages."""
    job = booted(nand=SLOW, size=None)
    steps.connect(job)
    before = console(job)
    with verified_reads(job) as running:
        for _ in range(SAVES):
            stop_during_reads(job, running)
            job.instance.ask("save")
            job.instance.ask("load")
            wait_reads(job)
    assert "boot:" not in console(job)[len(before):]
    assert job.namespaces() == [job.device()]
