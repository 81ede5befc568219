# SPDX-License-Identifier: BSD-2-Clause
"""A Linux host by NVMe over iWARP (siw): discovery, I/O, loss, and RoCE beside it."""

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator

import pytest
import uart_dialogue
import vlans
from watching import until

from essd.drive import mgmt, tcp
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]

FIO = ("fio --name=own --filename={device} --direct=1 --ioengine=libaio --bsrange=512-256k "
       "--iodepth=16 --rw=randwrite --size={size} --verify=crc32c --verify_fatal=1")
PARAMETERS = "/sys/module/siw/parameters"


def use(job: Job, port: int, kind: str, card: str = "eth") -> None:
    """Give the card of a port, by which nothing is connected, a device of siw or rxe."""
    job.quiet(f"for link in siw{port} rxe{port}; do rdma link delete $link 2>/dev/null; done; "
              f"rdma link add {kind}{port} type {kind} netdev {card}{port}")


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
    use(iwarp, 1, "rxe")
    steps.connect(iwarp, 0, OPTIONS)
    steps.connect(iwarp, 1, OPTIONS)
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


def test_vlans_and_ipv6_at_both_ports(iwarp: Job) -> None:
    with vlans.tagged(iwarp):
        for own, _, port in vlans.TAGGED:
            address = vlans.address_of(own)
            use(iwarp, port, "siw", "tagged")
            iwarp.quiet(f"nvme connect -t rdma -a {address} -s 4420 -n {iwarp.nqn}")
            work(iwarp)
            found = {(entry["port"], entry["vlan"], entry["user"])
                     for entry in tcp.read(iwarp.instance) if entry["local"] == address
                     and entry["state"] == "ESTABLISHED"}
            assert found == {(port, vlans.VLAN, "iwarp")}
            steps.clean_host(iwarp)
            use(iwarp, port, "siw")


HOSTS = 64


def test_queues_of_64_hosts(iwarp: Job) -> None:
    """64 controllers, each of a host of its own, and I/O through all of them.

    Each has two queues: user-mode Linux has one processor.
    """
    iwarp.quiet(f"for n in $(seq {HOSTS}); do nvme connect -t rdma -a {iwarp.addresses[0]} "
                f"-s 4420 -n {iwarp.nqn} --hostnqn=nqn.2014-08.org.example:host$n "
                "--hostid=$(printf 5d3a09d8-0000-4000-8000-%012x $n) || exit 1; done")
    states = [entry["state"] for entry in tcp.read(iwarp.instance) if entry["user"] == "iwarp"]
    assert states.count("ESTABLISHED") == 2 * HOSTS, states
    iwarp.quiet("for file in /sys/class/nvme-subsystem/*/iopolicy; do "
                "echo round-robin > $file; done")
    before = counters(iwarp)["fpdus-in"]
    work(iwarp, "8m")
    assert counters(iwarp)["fpdus-in"] > before + 1000
    steps.clean_host(iwarp)
    until(lambda: not [entry for entry in tcp.read(iwarp.instance)
                       if entry["user"] == "iwarp"], 30)


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


# ---- What ends connections while a host writes.

OPTIONS = "--ctrl-loss-tmo=60 --reconnect-delay=1 --keep-alive-tmo=2"
# About 3 s of durable writes, then everything is read and compared.
LOAD = ("fio --name=own --filename={device} --direct=1 --sync=1 --ioengine=libaio --bs=4k "
        "--iodepth=8 --rw=randwrite --size=4m --rate_iops=400 --verify=crc32c --verify_fatal=1")
START = f"({LOAD} > /tmp/fio.log 2>&1; echo $? > /tmp/fio.end) < /dev/null > /dev/null 2>&1 & "
WAIT = ("for n in $(seq 900); do [ -e /tmp/fio.end ] && break; sleep 0.1; done; "
        "cat /tmp/fio.log; end=$(cat /tmp/fio.end); rm /tmp/fio.end; exit $end")


def save_and_load(job: Job) -> None:
    """Connections of TCP are not loaded: the drive answers them with a RST."""
    job.instance.ask("save")
    job.instance.ask("load")


def stop_for_3_s(job: Job) -> None:
    pid = job.instance.status()["parts"]["drive"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(3)
    finally:
        os.kill(pid, signal.SIGCONT)


def pull_for_4_s(job: Job) -> None:
    """Longer than the keep-alive time-outs of both sides."""
    job.instance.ask("port", port=0, plugged=False)
    time.sleep(4)
    job.instance.ask("port", port=0, plugged=True)


def cut_the_power(job: Job) -> None:
    job.instance.ask("power-cut")
    job.instance.ask("power-on")


@pytest.mark.parametrize("disturb", [save_and_load, stop_for_3_s, pull_for_4_s, cut_the_power])
def test_writes_go_on_after(iwarp: Job, disturb: Callable[[Job], None]) -> None:
    device = steps.connect(iwarp, 0, OPTIONS)
    iwarp.quiet(START.format(device=device))
    time.sleep(1)
    assert iwarp.result("[ -e /tmp/fio.end ]", check=False).status != 0
    disturb(iwarp)
    iwarp.quiet(WAIT)
    assert iwarp.device() == device


def test_a_connection_that_was_cut_leaves_nothing_behind(iwarp: Job) -> None:
    """The slots of TCP and the queue pairs are free again, whatever has ended them."""
    def used() -> int:
        return sum(entry["user"] == "iwarp" for entry in tcp.read(iwarp.instance))
    steps.connect(iwarp, 0, OPTIONS)
    assert used() > 0
    pull_for_4_s(iwarp)
    steps.clean_host(iwarp)
    until(lambda: used() == 0, 30)


def test_a_power_cut(iwarp: Job) -> None:
    """The host connects again, and reads what was flushed."""
    device = steps.connect(iwarp, 0, OPTIONS)
    iwarp.quiet(f"head -c 1048576 /dev/urandom > /tmp/data && "
                f"dd if=/tmp/data of={device} bs=64k oflag=direct conv=fsync status=none")
    iwarp.instance.ask("power-cut")
    iwarp.instance.ask("power-on")
    iwarp.quiet(f"dd if={device} bs=64k count=16 iflag=direct status=none | cmp - /tmp/data")
