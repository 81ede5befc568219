# SPDX-License-Identifier: BSD-2-Clause
"""The sanitize log, as nvme-cli shows it."""

import json
import re
import time

from essd.instance.steps import Job

WAIT_S = 120
DONE, IN_PROGRESS, FAILED = 1, 2, 3     # SSTAT


def sanitize_log(job: Job) -> dict:
    log = json.loads(job.quiet(f"nvme sanitize-log {job.controller()} -o json"))
    return next(iter(log.values())) if "sprog" not in log else log


def sanitize_status(job: Job) -> int:
    match = re.search(r"\d+", str(sanitize_log(job)["sstat"]["status"]))
    assert match
    return int(match[0])


def wait_sanitize(job: Job) -> int:
    """Wait until no operation is in progress; return the status."""
    deadline = time.monotonic() + WAIT_S
    while (status := sanitize_status(job)) == IN_PROGRESS:
        assert time.monotonic() < deadline, sanitize_log(job)
        time.sleep(0.2)
    return status
