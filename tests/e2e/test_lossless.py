# SPDX-License-Identifier: BSD-2-Clause
"""Congestion control with a Linux host: the drive answers ECN marks with CNPs.

rdma_rxe can send marked packets, but it does not slow down, and nothing in Linux sends
PFC.  tests/native/test_lossless.c tests both.
"""

import re
from collections.abc import Iterator

import pytest

from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.long]

TOS = "/sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_tos"
DSCP = 26
ECT_0, CE = 2, 3
CNP = "udp port 4791 and udp[8] = 0x81"
CNP_TOS = 48 << 2 | ECT_0       # docs/hardware/rnic.md


@pytest.fixture
def tos(job: Job) -> Iterator[Job]:
    """A host in which the file TOS sets the type of service of new connections."""
    job.quiet("mkdir -p /sys/kernel/config/rdma_cm/rxe0")
    yield job
    steps.clean_host(job)
    job.quiet(f"echo 0 > {TOS}; rmdir /sys/kernel/config/rdma_cm/rxe0")


def heard(job: Job, device: str) -> dict[tuple[str, int], int]:
    """Transfer a megabyte each way; count RoCE packets by kind and type of service."""
    job.quiet("rm -f /tmp/heard; (tcpdump -p -i eth0 -U -w /tmp/heard -s 64 'udp port "
              "4791' </dev/null >/dev/null 2>&1 &); "
              "while ! [ -s /tmp/heard ]; do sleep 0.1; done; "
              f"dd if=/dev/zero of={device} bs=64k count=16 oflag=direct 2>&1; "
              f"dd if={device} of=/dev/null bs=64k count=16 iflag=direct 2>&1; "
              "pkill -INT -x tcpdump; while pgrep -x tcpdump; do sleep 0.1; done; true")
    found = {}
    for sort, what in (("cnp", f"src {job.addresses[0]} and {CNP}"),
                       ("ours", f"src {job.addresses[0]} and not ({CNP})"),
                       ("host", f"dst {job.addresses[0]}")):
        text = job.quiet(f"tcpdump -n -v -r /tmp/heard '{what}' 2>/dev/null; true")
        for tos in re.findall(r"tos 0x([0-9a-f]+)", text):
            key = (sort, int(tos, 16))
            found[key] = found.get(key, 0) + 1
    return found


def test_marks_are_answered_with_cnps(tos: Job) -> None:
    """All packets of the host are marked as congested, or none is."""
    job = tos
    job.quiet(f"echo {DSCP << 2 | ECT_0} > {TOS}")
    device = steps.connect(job)
    calm = heard(job, device)
    assert {sort for sort, _ in calm} == {"ours", "host"}, calm
    # The drive's packets have the DSCP of the connection.
    assert calm.keys() <= {("host", DSCP << 2 | ECT_0), ("ours", DSCP << 2 | ECT_0)}
    steps.disconnect(job)
    job.quiet(f"echo {DSCP << 2 | CE} > {TOS}")
    device = steps.connect(job)
    marked = heard(job, device)
    assert marked["host", DSCP << 2 | CE] > 100
    assert 0 < marked["cnp", CNP_TOS] < marked["host", DSCP << 2 | CE], marked
    # The drive's own packets do not repeat the mark.
    assert ("ours", DSCP << 2 | CE) not in marked, marked
    steps.disconnect(job)
