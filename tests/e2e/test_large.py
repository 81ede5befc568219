# SPDX-License-Identifier: BSD-2-Clause
"""Commands of up to 1 MiB from a stock host."""

import pytest

from essd.instance import steps
from essd.instance.steps import FIO, Job

MIB = 1 << 20


@pytest.mark.drive
def test_the_host_may_send_commands_of_a_mebibyte(connected: Job) -> None:
    job = connected
    name = job.device().removeprefix("/dev/")
    queue = f"/sys/block/{name}/queue"
    # The kernel uses the smaller of MDTS and the size that its RDMA device can register.
    assert int(job.quiet(f"cat {queue}/max_hw_sectors_kb")) == MIB // 1024
    job.quiet(f"echo {MIB // 1024} > {queue}/max_sectors_kb")
    job.run(FIO.format(device=job.device(), name="large",
                       options="--rw=write --bs=1m --iodepth=8 --size=64m"))
    job.run(FIO.format(device=job.device(), name="mixed",
                       options="--rw=randrw --bsrange=4k-1m --blockalign=4k --iodepth=16 "
                               "--size=64m --io_size=64m"))


@pytest.mark.drive
@pytest.mark.parametrize("size", [131072 + 512, 262144, 524288, MIB - 512, MIB])
def test_a_passthrough_command_of_any_size_has_its_data(connected: Job, size: int) -> None:
    job = connected
    blocks = size // 512 - 1
    device = job.device()
    job.quiet(f"head -c {size} /dev/urandom > /tmp/large.out")
    job.run(f"nvme write {device} -s 8 -c {blocks} -z {size} -d /tmp/large.out")
    job.run(f"nvme read {device} -s 8 -c {blocks} -z {size} -d /tmp/large.in")
    job.quiet("cmp /tmp/large.out /tmp/large.in")
    # The page cache, which reads in other sizes, reads the same data.
    job.quiet(f"dd if={device} iflag=direct bs=512 skip=8 count={blocks + 1} status=none "
              "| cmp - /tmp/large.out" if size < 300000 else
              f"dd if={device} bs=512 skip=8 count={blocks + 1} status=none "
              "| cmp - /tmp/large.out")


@pytest.mark.drive
def test_a_write_beyond_a_mebibyte_comes_in_several_commands(connected: Job) -> None:
    job = connected
    job.quiet("head -c 4194304 /dev/urandom > /tmp/large.out")
    job.run(f"dd if=/tmp/large.out of={job.device()} oflag=direct bs=4M count=1")
    job.quiet(f"dd if={job.device()} iflag=direct bs=4M count=1 status=none "
              "| cmp - /tmp/large.out")
    steps.disconnect(job)
