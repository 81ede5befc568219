# SPDX-License-Identifier: BSD-2-Clause
"""Resets and losses of power while a host writes to a drive with NAND flash.

No write that the host has an answer to is lost by a reset with power on, flushed or
not (docs/nand.md, "Power cuts and resets").  With capacitors, neither is it by a power
cut.  Capacitors that fail are noticed.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from test_nand import SMALL, cut_power
from test_reset import LONGEST_WAIT_S, wait_console, wait_live, wait_live_again
from watching import until

import essd
from essd.debug import crash
from essd.demo import nand_steps
from essd.instance import steps
from essd.instance.instance import Result
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]
STOP = "/tmp/stop-writing"
PASSES_S = 600
CAPACITORS_FAILED = 1 << 4      # SMART: the volatile memory backup device has failed
# Nothing is flushed.  When all blocks of a pass are written, all are read and compared: so
# a block that was lost at any time since its write is noticed.
LOAD = "--rw=randwrite --bssplit=4k/50:16k/30:128k/20 --iodepth=8 --size=8m"


@pytest.fixture
def start(booted: Callable[..., Job]) -> Callable[[str], Job]:
    """Return a function that starts a drive with this array and connects to it."""
    def connected(array: str) -> Job:
        job = booted(nand=array, size=None)
        steps.connect(job)
        return job
    return connected


@contextmanager
def writes(job: Job) -> Iterator["Future[Result]"]:
    """Write and verify in the background until the end of the block, without an error.

    Each pass writes other data, so that the check also finds data of an earlier pass.
    """
    command = steps.FIO.format(device=job.device(), name="load", options=LOAD)
    loop = (f"rm -f {STOP}; pass=0; while [ ! -e {STOP} ]; do pass=$((pass + 1)); "
            f"{command} --randseed=$pass --output=/tmp/fio.log || "
            "{ cat /tmp/fio.log; exit 1; }; done")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(job.instance.run, loop, timeout_s=PASSES_S, check=False)
        try:
            yield running
        finally:
            job.run(f"touch {STOP}")
        result = running.result()
    assert result.status == 0, result.output


def written(job: Job) -> int:
    """The number of writes that have ended; the host counts them also while it reconnects."""
    return int(job.quiet("cat /sys/block/nvme*/stat | awk '{ n += $5 } END { print n }'"))


def wait_writes(job: Job, running: "Future[Result]") -> None:
    """Wait until the host writes again.

    Its last writes are usually in the drive's write buffer then, but not if a pass has just
    ended, or if the computer is so slow that the buffer is written between two writes.
    """
    wait_live(job, 1)
    enough = written(job) + 100
    deadline = time.monotonic() + LONGEST_WAIT_S
    while written(job) < enough:
        assert not running.done(), running.result().output
        assert time.monotonic() < deadline, job.quiet("dmesg | tail -n 30")
        time.sleep(0.1)


def test_resets_under_writes_lose_no_acknowledged_write(
        start: Callable[[str], Job]) -> None:
    job = start(SMALL)
    with writes(job) as running:
        for cause in ("watchdog", "trap"):
            wait_writes(job, running)
            crash.provoke(job.instance, cause)
        wait_writes(job, running)
        controller = job.controller()
        job.run(f"nvme subsystem-reset {controller}")
        wait_live_again(job, controller.removeprefix("/dev/"), LONGEST_WAIT_S)
        wait_writes(job, running)
    wait_console(job, "reset by watchdog")
    wait_console(job, "reset by panic")


def kill_drive(job: Job) -> None:
    """End the drive's QEMU as a loss of power with broken capacitors does."""
    os.kill(job.instance.status()["parts"][job.target]["pid"], signal.SIGKILL)
    deadline = time.monotonic() + LONGEST_WAIT_S
    while job.instance.status()["parts"][job.target]["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    job.instance.ask("power-on")
    steps.forget_target(job)
    steps.wait_target(job)
    steps.connect(job)


def test_capacitors_save_acknowledged_writes_and_are_missed_when_they_fail(
        start: Callable[[str], Job]) -> None:
    job = start(SMALL + ",plp=on")
    cache = job.quiet(f"cat /sys/block/{job.device()[5:]}/queue/write_cache")
    assert cache.strip() == "write through"
    with writes(job) as running:
        for _ in range(2):
            wait_writes(job, running)
            job.instance.ask("power-cut")
            job.instance.ask("power-on")
        wait_writes(job, running)
    wait_console(job, "power: the write buffer was saved in")
    assert nand_steps.smart(job)["critical_warning"] == 0

    job.run(f"tr '\\0' 'f' < /dev/zero | dd of={job.device()} bs=64k count=16 "
            "iflag=fullblock oflag=direct status=none")
    job.run(f"nvme flush {job.device()}")
    kill_drive(job)
    wait_console(job, "power: the capacitors have failed")
    assert nand_steps.smart(job)["critical_warning"] & CAPACITORS_FAILED
    same = job.quiet(f"dd if={job.device()} bs=64k count=16 iflag=direct status=none | "
                     "tr -d f | wc -c")
    assert int(same) == 0, "flushed data was lost"

    # Capacitors that work at the next loss of power end the warning.
    cut_power(job)
    assert nand_steps.smart(job)["critical_warning"] == 0


UNIT_BYTES = 4096
FIRST_UNIT, UNITS = 4096, 4     # too few units for a row of the flash
STRIDE = 2                      # Linux would make one command of neighbours.
ANSWERS = ("send-only", "send-only-invalidate")


def fill_units(job: Job, letter: str) -> Result:
    """Write the units with a command each, all at once."""
    return job.result(
        f"fio --name=units --filename={job.device()} --ioengine=libaio --direct=1 "
        f"--rw=write:{(STRIDE - 1) * UNIT_BYTES} --bs={UNIT_BYTES} "
        f"--offset={FIRST_UNIT * UNIT_BYTES} --io_size={UNITS * UNIT_BYTES} "
        f"--size={STRIDE * UNITS * UNIT_BYTES} --iodepth={UNITS} "
        f"--iodepth_batch_submit={UNITS} --buffer_pattern='\"{letter}\"'", check=False)


def cut_before_last_answer(job: Job, letter: str) -> bool:
    """Write the units, and let the drive's answer to the last command cut the power.

    Return whether all units were in the write buffer then, which has no answer of the host
    to wait for.  They were not if the host took so long to send its commands that the drive
    began to write the buffer: this cuts the power, too.
    """
    drive = essd.Drive(job.instance, job.target)
    for opcode in ANSWERS:
        drive.faults.add(f"wire direction=out bth.opcode={opcode} when nth={UNITS} "
                         "do power-cut", f"at-{opcode}")
    drive.faults.add("nand operation=program do power-cut", "at-program")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(fill_units, job, letter)
        try:
            until(lambda: not drive.is_on)
        finally:
            drive.faults.remove()
        why = drive.status()["why"]
        drive.power_on()
        assert writing.result().status == 0, writing.result().output
    return why in [f"the fault rule at-{opcode} has cut the power" for opcode in ANSWERS]


def test_capacitors_save_units_that_wait_in_the_write_buffer(
        start: Callable[[str], Job]) -> None:
    job = start(SMALL + ",plp=on")
    for letter in "abcdefgh":
        assert fill_units(job, "-").status == 0
        job.run(f"nvme flush {job.device()}")
        did_wait = cut_before_last_answer(job, letter)
        found = job.quiet(f"dd if={job.device()} bs={UNIT_BYTES} skip={FIRST_UNIT} "
                          f"count={STRIDE * UNITS} iflag=direct status=none | "
                          f"tr '\\0' . | fold -w {UNIT_BYTES} | cut -c 1 | tr -d '\n'")
        assert found[::STRIDE] == letter * UNITS
        if did_wait:
            return
    pytest.fail("the drive has always begun to write its buffer before the last command")
