# SPDX-License-Identifier: BSD-2-Clause
"""A stock host creates 128 namespaces on a busy computer.

After each one, Linux reads the properties of all namespaces through both paths, with as
many commands at a time as its admin queues take.  The drive's hart runs late and seldom,
and still has a receive buffer for each command.
"""

import json
import time
from collections.abc import Callable

import pytest
from watching import busy_loops

import transport
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.long, pytest.mark.timeout(3600)]

NAMESPACES = 128
KEPT = 4                    # those that the drive is divided into
# Time is not the subject: how long 128 take depends on what else the computer does.  Each
# limit is for the next step only.
TOGETHER = 4                # namespaces that one command of the host creates
TIMEOUT_S = 300             # for these
SCAN_S = 60                 # for the next device that a scan of the host finds
SCRIPT = """
for n in $(seq {first} {last}); do
    said=$(nvme create-ns {controller} --nsze=16384 --ncap=16384 --block-size=512 --nmic=1) &&
    said=$(nvme attach-ns {controller} --namespace-id=${{said##*nsid:}} \\
           --controllers={controllers} 2>&1) || {{ echo "$n: $said"; exit 1; }}
done
"""


def cntlid(job: Job, controller: str) -> int:
    return int(json.loads(job.quiet(f"nvme id-ctrl {controller} -o json"))["cntlid"])


def wait_for_devices(job: Job) -> None:
    found, deadline = 0, time.monotonic() + SCAN_S
    while found != NAMESPACES:
        assert time.monotonic() < deadline, f"{found} devices, and no further one for {SCAN_S} s"
        before, found = found, len(job.namespaces())
        if found > before:
            deadline = time.monotonic() + SCAN_S
        time.sleep(1)


def test_a_busy_computer_causes_no_rnr_nak(booted: Callable[..., Job]) -> None:
    job = booted(size="2G", namespaces=f"{KEPT}x64M")
    for address in job.addresses[:2]:
        job.run(f"nvme connect -t rdma -a {address} -s {steps.SERVICE} -n {job.nqn}")
    controllers = job.quiet("ls -d /dev/nvme[0-9]").split()
    assert len(controllers) == 2, controllers
    ids = ",".join(map(str, sorted(cntlid(job, controller) for controller in controllers)))
    with busy_loops():
        for first in range(KEPT + 1, NAMESPACES + 1, TOGETHER):
            job.run(SCRIPT.format(first=first, last=first + TOGETHER - 1,
                                  controller=controllers[0], controllers=ids),
                    timeout_s=TIMEOUT_S)
    wait_for_devices(job)
    said = job.quiet("dmesg")
    assert "error recovery" not in said and "flushed" not in said, said
    assert transport.read(job.instance)[transport.RNR] == 0
