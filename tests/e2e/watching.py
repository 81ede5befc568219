# SPDX-License-Identifier: BSD-2-Clause
"""Helpers that wait for a line in the log of a drive or of its host."""

import time
from collections.abc import Callable
from typing import Any

from essd.steps import Job

POLL_S = 0.5


def until(what: Callable[[], Any], timeout_s: float = 60) -> Any:
    """The first thing that is true of what what() gives."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < deadline
        time.sleep(POLL_S)


def console(job: Job) -> str:
    """All that the drive has said on its serial console."""
    return (job.instance.folder / "drive.console").read_text(errors="replace")
