# SPDX-License-Identifier: BSD-2-Clause
"""Helpers that wait for a condition and read the drive's console log."""

import time
from collections.abc import Callable
from typing import Any

from essd.steps import Job

POLL_S = 0.5


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
