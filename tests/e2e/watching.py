# SPDX-License-Identifier: BSD-2-Clause
"""Helpers that wait for a condition, read the drive's console log and keep cores busy."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

from essd.instance.steps import Job

POLL_S = 0.5
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
