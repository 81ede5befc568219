# SPDX-License-Identifier: BSD-2-Clause
"""A host that takes no frames on one port does not disturb the other port.

`ip link set eth0 down` in the guest stops its network card from taking frames,
but the drive still sees a link.  Frames wait on the cable, and after two
seconds the drive's port drops what is sent there (docs/hardware/port.md).
"""

import re
import time
from collections.abc import Callable, Iterator

import pytest

from essd.drive import mgmt, port
from essd.instance.instance import Instance
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.long]

QUIET_HOSTS = 40
BUSY_HOSTS = 6
KINDS = ("randread", "randwrite")
BUSY_BYTES = 20 << 20       # in the drive's buffers when the stall begins
BUSY_S = 60.0
STALL_S = 30.0
# The guest needs seconds for a connection while it tears down 46 others.
CONNECT_S = 30.0
BACK_S = 30.0
MAX_CM_SEND_BUFFERS = 128   # of 256
FIO = ("fio --filename={device} --direct=1 --ioengine=libaio --name=stalled --rw={kind} "
       "--bs=128k --iodepth=63 --size=256m --time_based --runtime=3600")


def connect(job: Job, number: int, options: str = "", count: int = 1) -> list[str]:
    """Connect as several hosts; return their controllers."""
    output = job.quiet(
        f"for i in $(seq {count}); do h=$(cat /proc/sys/kernel/random/uuid); "
        f"nvme connect -t rdma -a {job.addresses[number]} -s 4420 -n {job.nqn} -i 1 "
        f"--hostnqn=nqn.2014-08.org.nvmexpress:uuid:$h --hostid=$h -D {options}; done")
    found = re.findall(r"nvme\d+$", output, re.M)
    assert len(found) == count, output
    return found


def uptime(job: Job) -> float:
    return float(job.quiet("cat /proc/uptime").split()[0])


def in_use(instance: Instance, pool: str) -> int:
    return int(mgmt.ask(instance, "pools", timeout_s=20)[pool]["used"])


def wait_for(what: str, is_so: Callable[[], bool], timeout_s: float) -> float:
    start = time.monotonic()
    while not is_so():
        assert time.monotonic() - start < timeout_s, f"not in {timeout_s:.0f} s: {what}"
        time.sleep(0.2)
    return time.monotonic() - start


@pytest.fixture
def stalled(booted: Callable[..., Job]) -> Iterator[Job]:
    """Port 0 takes no frames; 46 hosts are connected there, six are busy."""
    job = booted()
    # Without multipath each controller has a block device of its own.
    job.quiet("modprobe -r nvme_rdma nvme_fabrics nvme_core; "
              "modprobe nvme_core multipath=N && modprobe nvme_rdma")
    options = "-k 8 --ctrl-loss-tmo=600 --reconnect-delay=3 -Q "
    connect(job, 0, options + "16", QUIET_HOSTS)
    busy = connect(job, 0, options + "64", BUSY_HOSTS)
    work = [FIO.format(device=f"/dev/{name}n1", kind=kind)
            for name, kind in zip(busy, KINDS * (BUSY_HOSTS // 2), strict=True)]
    job.quiet("".join(f"({line} </dev/null >/dev/null 2>&1 &) ; " for line in work))
    wait_for("the drive's buffers are in use",
             lambda: in_use(job.instance, "buffer-bytes") > BUSY_BYTES, BUSY_S)
    job.quiet("ip link set eth0 down")
    yield job
    job.quiet("pkill -KILL -x fio; ip link set eth0 up", check=False)


def test_a_host_connects_to_one_port_while_the_other_is_stalled(
        stalled: Job, record_property: Callable[[str, object], None]) -> None:
    job, start = stalled, time.monotonic()
    taken, most, left = [], 0, [in_use(stalled.instance, "buffer-bytes")]
    while time.monotonic() - start < STALL_S:
        since = uptime(job)
        name = connect(job, 1)[0]
        taken.append(uptime(job) - since)
        most = max(most, in_use(job.instance, "cm-send-buffers"))
        left.append(in_use(job.instance, "buffer-bytes"))
        job.quiet(f"nvme disconnect -d {name}")
    wait_for("data buffers come back",
             lambda: in_use(job.instance, "buffer-bytes") == 0, BACK_S)
    dropped = int(port.state(job.instance, 0)["counters"].get("txDroppedTimeout", 0))
    text = (f"connections to port 1 took {[round(x, 2) for x in taken]} s; at most {most} "
            f"CM send buffers in use; bytes of data buffers in use: {left}; "
            f"{dropped} frames dropped on port 0")
    record_property("stall", text)
    print(text)
    # Dropped frames show that the port's time-out has expired.
    assert dropped > 0, text
    assert max(taken) < CONNECT_S, text
    assert most < MAX_CM_SEND_BUFFERS, text
