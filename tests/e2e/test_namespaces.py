# SPDX-License-Identifier: BSD-2-Clause
"""Namespaces are created, attached, formatted and deleted with nvme-cli on a stock host."""

import json
import re
import time
from collections.abc import Iterator

import pytest
import queue_limits
from kept_flash import kept_flash

from essd.drive import namespaces
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = pytest.mark.uml

MIB = 1 << 20
WAIT_S = 30


@pytest.fixture
def divided(connected: Job) -> Iterator[Job]:
    with kept_flash(connected) as job:
        yield job


def wait_devices(job: Job, count: int) -> list[str]:
    """Wait until the host has this many namespaces, which only the event tells it."""
    deadline = time.monotonic() + WAIT_S
    while len(found := job.namespaces()) != count:
        assert time.monotonic() < deadline, f"the host has {found}, not {count}"
        time.sleep(0.1)
    return found


def cntlid(job: Job) -> int:
    return int(json.loads(job.quiet(f"nvme id-ctrl {job.controller()} -o json"))["cntlid"])


def create(job: Job, size_mib: int, block: int) -> int:
    blocks = size_mib * MIB // block
    output = job.run(f"nvme create-ns {job.controller()} --nsze={blocks} --ncap={blocks} "
                     f"--block-size={block} --nmic=1")
    match = re.search(r"nsid:(\d+)", output)
    assert match, output
    job.run(f"nvme attach-ns {job.controller()} --namespace-id={match[1]} "
            f"--controllers={cntlid(job)}")
    return int(match[1])


def block_size(job: Job, device: str) -> int:
    return int(job.quiet(f"cat /sys/block/{device[5:]}/queue/logical_block_size"))


def identifiers(job: Job) -> dict[str, str]:
    """UUID of each device that the host has."""
    return {device: job.quiet(f"cat /sys/block/{device[5:]}/uuid").strip()
            for device in job.namespaces()}


def verify(job: Job, devices: list[str]) -> str:
    """fio on all of these at once."""
    jobs = " ".join(f"--name=j{i} --filename={device} --bs=4k --size=8m"
                    for i, device in enumerate(devices))
    return (f"fio --direct=1 --ioengine=libaio --iodepth=8 --rw=randwrite --verify=crc32c "
            f"--do_verify=1 {jobs} --minimal > /dev/null && echo verified")


@pytest.mark.drive
def test_namespaces_are_created_used_kept_and_deleted(divided: Job) -> None:
    job = divided
    old = identifiers(job)
    job.run(f"nvme delete-ns {job.controller()} --namespace-id=1")
    wait_devices(job, 0)
    assert create(job, 64, 512) == 1
    wait_devices(job, 1)
    assert create(job, 96, 4096) == 2
    small, large = wait_devices(job, 2)
    assert block_size(job, small) == 512
    assert block_size(job, large) == 4096
    assert int(job.quiet(f"blockdev --getsize64 {large}")) == 96 * MIB
    queue_limits.check(job, small, 4096, 4096, 4096, 4096, 4096)
    queue_limits.check(job, large, 4096, 4096, 0, 4096, 4096)
    shown = namespaces.read(job.instance)
    assert [(row["nsid"], row["size-bytes"], row["block-bytes"])
            for row in shown["namespaces"]] == [(1, 64 * MIB, 512), (2, 96 * MIB, 4096)]
    assert shown["total-bytes"] - shown["free-bytes"] == 160 * MIB
    new = identifiers(job)
    assert len(set(new.values()) | set(old.values())) == 3, "an identifier was used again"
    # A namespace that was created has no data of the one before.
    assert job.quiet(f"head -c 64M {small} | tr -d '\\0' | wc -c").strip() == "0"
    assert "verified" in job.run(verify(job, [small, large]))
    job.run(f"mkfs.ext4 -q {large} && mount {large} {steps.MOUNT}")
    job.run(f"dd if=/dev/urandom of={steps.MOUNT}/file bs=1M count=16 status=none && "
            f"sha256sum {steps.MOUNT}/file > /tmp/sum && umount {steps.MOUNT}")

    steps.disconnect(job)
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.wait_target(job)
    job.run(f"nvme connect -t rdma -a {job.addresses[0]} -s {steps.SERVICE} -n {job.nqn}")
    wait_devices(job, 2)
    # Linux scans namespaces in parallel, so that a device may have another number now.
    device_of = {uuid: device for device, uuid in identifiers(job).items()}
    assert set(device_of) == set(new.values())
    small, large = device_of[new[small]], device_of[new[large]]
    job.run(f"mount {large} {steps.MOUNT} && sha256sum -c /tmp/sum && umount {steps.MOUNT}")

    # A namespace is formatted and deleted while another one is in use.
    job.run(f"({verify(job, [large])}) > /tmp/fio.log 2>&1 & "
            f"nvme format {job.controller()} --namespace-id=1 --lbaf=1 --force && wait && "
            "grep verified /tmp/fio.log")
    assert block_size(job, small) == 4096
    job.run(f"nvme delete-ns {job.controller()} --namespace-id=1")
    assert wait_devices(job, 1) == [large]
    refused = job.run(f"nvme create-ns {job.controller()} --nsze=0x10000000000 "
                      "--ncap=0x10000000000 --block-size=512", check=False)
    assert "Insufficient Capacity" in refused or "0x4115" in refused, refused
