# SPDX-License-Identifier: BSD-2-Clause
"""A Linux host by NVMe over iWARP (siw): discovery, I/O, loss, and RoCE beside it."""

import json
import re
from collections.abc import Iterator

import pytest
import uart_dialogue

from essd.drive import mgmt
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]

FIO = ("fio --name=own --filename={device} --direct=1 --ioengine=libaio --bsrange=512-256k "
       "--iodepth=16 --rw=randwrite --size={size} --verify=crc32c --verify_fatal=1")
PARAMETERS = "/sys/module/siw/parameters"


def use(job: Job, port: int, kind: str) -> None:
    """Give the card of a port, by which nothing is connected, a device of siw or rxe."""
    job.quiet(f"for link in siw{port} rxe{port}; do rdma link delete $link 2>/dev/null; done; "
              f"rdma link add {kind}{port} type {kind} netdev eth{port}")


def switch(job: Job, value: str) -> None:
    steps.clean_host(job)
    for line in (f"config set nvme.iwarp {value}", "config save"):
        assert uart_dialogue.ask(job.instance, line)[-1].startswith("ok")
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.wait_target(job)


@pytest.fixture(scope="module")
def iwarp(session_job: Job) -> Iterator[Job]:
    if session_job.result("modprobe siw", check=False).status != 0:
        pytest.skip("this host's kernel has no siw")
    switch(session_job, "on")
    for port in range(2):
        use(session_job, port, "siw")
    yield session_job
    steps.clean_host(session_job)
    for port in range(2):
        use(session_job, port, "rxe")
    switch(session_job, "off")


@pytest.fixture(autouse=True)
def clean(iwarp: Job) -> Iterator[None]:
    yield
    steps.clean_host(iwarp)


def counters(job: Job) -> dict[str, int]:
    return dict(mgmt.ask(job.instance, "counters")["iwarp"])


def work(job: Job, size: str = "4m") -> None:
    job.quiet(FIO.format(device=job.device(), size=size))


def test_discovery_lists_both_rdma_protocols(iwarp: Job) -> None:
    log = iwarp.quiet(f"nvme discover -t rdma -a {iwarp.addresses[0]} -s 4420")
    entries = re.findall(r"subtype:\s+nvme.*?trsvcid:\s+(\d+).*?traddr:\s+(\S+).*?"
                         r"rdma_prtype:\s+(\S+)", log, re.DOTALL)
    assert sorted(entries) == sorted(("4420", address, kind) for address in iwarp.addresses
                                     for kind in ("iwarp", "roce-v2")), log


def test_what_a_host_writes_it_reads(iwarp: Job) -> None:
    before = counters(iwarp)
    steps.connect(iwarp, 0)
    work(iwarp, "8m")
    steps.disconnect(iwarp)
    grown = {name: value - before[name] for name, value in counters(iwarp).items()
             if value != before[name]}
    assert set(grown) == {"fpdus-in", "fpdus-out", "requests", "accepted"}, grown
    assert grown["fpdus-in"] > 4000 and grown["fpdus-out"] > 4000, grown
    assert grown["requests"] == grown["accepted"] == 2, grown


def test_a_file_system(iwarp: Job) -> None:
    device = steps.connect(iwarp, 1)
    iwarp.quiet(f"mkfs.ext4 -q -F {device} && mount {device} /mnt && "
                "head -c 3000000 /dev/urandom > /tmp/data && cp /tmp/data /mnt/data && "
                f"umount /mnt && mount {device} /mnt && cmp /tmp/data /mnt/data && umount /mnt")


def test_a_host_that_asks_for_crc_and_begins_by_itself(iwarp: Job) -> None:
    names = ("peer_to_peer", "mpa_crc_required")
    iwarp.quiet("; ".join(f"echo 1 > {PARAMETERS}/{name}" for name in names))
    steps.connect(iwarp, 0)
    work(iwarp)
    iwarp.quiet("; ".join(f"echo 0 > {PARAMETERS}/{name}" for name in names))


def test_a_cable_that_loses_and_reorders(iwarp: Job) -> None:
    steps.connect(iwarp, 0)
    iwarp.quiet("tc qdisc replace dev eth0 root netem loss 2% reorder 5% delay 2ms")
    work(iwarp, "2m")
    iwarp.quiet("tc qdisc del dev eth0 root")


def test_connect_all_connects_each_address_once(iwarp: Job) -> None:
    """Mixed entries: a host takes what its card has, and no attempt fails."""
    use(iwarp, 1, "rxe")
    said = iwarp.quiet(f"nvme connect-all -t rdma -a {iwarp.addresses[0]} -s 4420 2>&1")
    paths = json.loads(iwarp.quiet("nvme list-subsys -o json"))
    states = sorted(path["State"] for host in paths for system in host["Subsystems"]
                    for path in system["Paths"])
    assert states == ["live", "live"] and "fail" not in said, (said, paths)
    work(iwarp)
    steps.clean_host(iwarp)
    use(iwarp, 1, "siw")


def test_roce_and_iwarp_are_paths_of_one_device(iwarp: Job) -> None:
    options = "--ctrl-loss-tmo=60 --reconnect-delay=1 --keep-alive-tmo=2"
    use(iwarp, 1, "rxe")
    steps.connect(iwarp, 0, options)
    steps.connect(iwarp, 1, options)
    work(iwarp)
    iwarp.instance.ask("port", port=0, plugged=False)   # RoCE alone
    work(iwarp)
    iwarp.instance.ask("port", port=0, plugged=True)
    iwarp.quiet("for n in $(seq 300); do grep -q live /sys/class/nvme/nvme*/state && "
                "! grep -qv live /sys/class/nvme/nvme*/state && exit 0; sleep 0.1; done; exit 1")
    iwarp.instance.ask("port", port=1, plugged=False)   # iWARP alone, connected again
    work(iwarp)
    iwarp.instance.ask("port", port=1, plugged=True)
    steps.clean_host(iwarp)
    use(iwarp, 1, "siw")


def test_rping(iwarp: Job) -> None:
    """The echo service: SEND, READ and WRITE by a stock program, in both directions."""
    assert uart_dialogue.ask(iwarp.instance, "echo on")
    for size in (64, 4096, 65535):
        said = iwarp.quiet(f"timeout 60 rping -c -a {iwarp.addresses[0]} -p 7174 -C 20 -v -V "
                           f"-S {size} 2>&1")
        assert said.count("ping data: rdma-ping-") == 20, said
    assert uart_dialogue.ask(iwarp.instance, "echo off")
    assert iwarp.result(f"timeout 20 rping -c -a {iwarp.addresses[0]} -p 7174 -C 1 2>&1",
                        check=False).status != 0


def test_a_power_cut(iwarp: Job) -> None:
    """The host connects again, and reads what was flushed."""
    options = "--ctrl-loss-tmo=60 --reconnect-delay=1 --keep-alive-tmo=2"
    device = steps.connect(iwarp, 0, options)
    iwarp.quiet(f"head -c 1048576 /dev/urandom > /tmp/data && "
                f"dd if=/tmp/data of={device} bs=64k oflag=direct conv=fsync status=none")
    iwarp.instance.ask("power-cut")
    iwarp.instance.ask("power-on")
    iwarp.quiet(f"dd if={device} bs=64k count=16 iflag=direct status=none | cmp - /tmp/data")
