# SPDX-License-Identifier: BSD-2-Clause
"""Helpers that wait for a condition, read the drive's console log, keep cores busy, and find
out for how long the drive has stood still."""

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from essd.drive import mgmt
from essd.instance.instance import Instance
from essd.instance.steps import Job

POLL_S = 0.5
STILL_S = 0.5               # the drive takes up to so much lateness for none
ANSWER_S = 300              # a drive that answers nothing for so long has failed
BUSY_LOOPS = 2 * (os.cpu_count() or 1)


def until(what: Callable[[], Any], timeout_s: float = 60) -> Any:
    """Call what() until its result is true, and return that result."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < deadline
        time.sleep(POLL_S)


def console(job: Job) -> str:
    """Everything that the drive has printed on its serial console."""
    return (job.instance.folder / "drive/console.log").read_text(errors="replace")


@contextlib.contextmanager
def busy_loops() -> Iterator[None]:
    """Programs that do nothing but keep every core busy, twice."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
             for _ in range(BUSY_LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()


class Standstill:
    """For how long the drive's main loop has made no turn, on a computer that does not run it.

    Each answer to a question is a turn.  What an answer takes beyond STILL_S is a time in
    which none of the drive's own limits can have passed (nvmeof/target/io/patience.c).
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.seconds = 0.0
        self.ends = threading.Event()
        self.pool = ThreadPoolExecutor(1)

    def __enter__(self) -> "Standstill":
        self.watching = self.pool.submit(self.watch)
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.set()
        self.pool.shutdown()
        self.watching.result()

    def watch(self) -> None:
        while not self.ends.wait(STILL_S / 5):
            asked = time.monotonic()
            mgmt.ask(self.instance, "pools", timeout_s=ANSWER_S)
            self.seconds += max(0.0, time.monotonic() - asked - STILL_S)
