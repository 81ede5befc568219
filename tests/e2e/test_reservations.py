# SPDX-License-Identifier: BSD-2-Clause
"""Two stock hosts share a namespace: reservations fence one of them off."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import SESSION

from essd.instance.instance import Instance
from essd.setup import setup
from essd.topology import reader as topology_yaml, setup as topology_setup, topology

pytestmark = [pytest.mark.drive, pytest.mark.long]

NAME = f"{SESSION}-reservations"
DRIVE = "drive0"
HOSTS = ("host0", "host1")
KEYS = {"host0": 0xaaaa, "host1": 0xbbbb}
KEYS_HEX = {host: f"{key:x}" for host, key in KEYS.items()}
WRITE_EXCLUSIVE, EXCLUSIVE_ACCESS = 1, 2
REGISTRANTS_ONLY = 4        # types 5 and 6 make every registrant a holder
ACQUIRE, PREEMPT, PREEMPT_AND_ABORT = 0, 1, 2
REPLACE = 2
PTPL_ON = 3
EVENTS = "/sys/kernel/tracing/events/nvme/nvme_async_event/enable"
RESERVATION_EVENT = 6       # type I/O command set specific


@pytest.fixture(scope="module")
def instance() -> Iterator[Instance]:
    """One drive with two hosts on two switches, as `essd up --hosts 2` starts them."""
    found = Instance(NAME)
    text = topology.of_drives(1, "128M", None, 1, 2)
    try:
        started = topology_setup.start(
            topology_yaml.load(text, "two.yaml", Path.cwd()), NAME, True, False, 0)
        connect(started)
        yield started
    finally:
        found.stop()
        setup.forget(NAME)


def connect(instance: Instance) -> None:
    address = instance.config.ports_of(DRIVE)[0].target_address
    nqn = instance.config.drives[DRIVE].nqn
    for host in HOSTS:
        instance.run("nvme disconnect-all", part=host)
        instance.run(f"until ping -c 1 -W 1 {address} > /dev/null; do :; done", part=host)
        instance.run(f"nvme connect -t rdma -a {address} -s 4420 -n {nqn}", part=host)
        instance.run("n=0; until [ -b /dev/nvme0n1 ]; do n=$((n + 1)); [ $n -lt 100 ] || "
                     "exit 1; sleep 0.1; done", part=host)


def reservation(instance: Instance, host: str, command: str, **fields: int) -> int:
    """Run `nvme resv-...`.  Return its exit status, 0 after success."""
    words = " ".join(f"--{key}={value}" for key, value in fields.items())
    return instance.run(f"nvme resv-{command} /dev/nvme0n1 {words}", part=host,
                        check=False).status


def report(instance: Instance, host: str) -> dict[str, Any]:
    text = instance.run("nvme resv-report /dev/nvme0n1 --eds -o json", part=host, apart=True).output
    return dict(json.loads(text[text.index("{"):]))


def can(instance: Instance, host: str, what: str) -> bool:
    """Whether a host can read or write; a refusal must be a reservation conflict."""
    ends = {"read": "if=/dev/nvme0n1 of=/dev/null iflag=direct",
            "write": "if=/dev/zero of=/dev/nvme0n1 oflag=direct"}[what]
    done = instance.run(f"dd {ends} bs=4k count=4 status=none", part=host, check=False)
    assert done.status == 0 or "Invalid exchange" in done.output, done.output
    return done.status == 0


def fresh(instance: Instance) -> None:
    """No host is registered, then both are."""
    instance.run("nvme resv-register /dev/nvme0n1 --nrkey=1 --rrega=2 --cptpl=2 --iekey",
                 part="host0")
    assert reservation(instance, "host0", "release", crkey=1, rrela=1) == 0
    for host, key in KEYS.items():
        assert reservation(instance, host, "register", nrkey=key, rrega=0) == 0


def test_a_stock_host_finds_the_capabilities_of_reservations(instance: Instance) -> None:
    def shown(command: str) -> dict[str, int]:
        return dict(json.loads(instance.run(f"nvme {command} -o json", part="host0",
                                            apart=True).output))

    found = shown("id-ns /dev/nvme0n1")
    assert found["rescap"] == 0xff
    found = shown("id-ctrl /dev/nvme0")
    assert found["oncs"] & 0x20


def test_the_holder_fences_the_other_host_off_and_can_let_it_in(instance: Instance) -> None:
    fresh(instance)
    assert reservation(instance, "host0", "acquire", crkey=KEYS["host0"],
                       rtype=WRITE_EXCLUSIVE, racqa=ACQUIRE) == 0
    found = report(instance, "host1")
    assert (found["rtype"], found["regctl"]) == (WRITE_EXCLUSIVE, 2)
    assert can(instance, "host0", "write")
    assert can(instance, "host1", "read")
    assert not can(instance, "host1", "write")
    assert reservation(instance, "host1", "acquire", crkey=KEYS["host1"],
                       rtype=WRITE_EXCLUSIVE, racqa=ACQUIRE) != 0
    assert reservation(instance, "host0", "release", crkey=KEYS["host0"],
                       rtype=WRITE_EXCLUSIVE, rrela=0) == 0
    assert can(instance, "host1", "write")


def test_a_preempted_host_loses_access_and_its_kernel_gets_the_event(
        instance: Instance) -> None:
    fresh(instance)
    assert reservation(instance, "host0", "acquire", crkey=KEYS["host0"],
                       rtype=EXCLUSIVE_ACCESS, racqa=ACQUIRE) == 0
    assert not can(instance, "host1", "read")
    instance.run("mount -t tracefs none /sys/kernel/tracing 2> /dev/null; "
                 f"echo 1 > {EVENTS}", part="host0")
    assert reservation(instance, "host1", "acquire", crkey=KEYS["host1"],
                       prkey=KEYS["host0"], rtype=EXCLUSIVE_ACCESS,
                       racqa=PREEMPT_AND_ABORT) == 0
    assert can(instance, "host1", "write")
    assert not can(instance, "host0", "read")
    assert not can(instance, "host0", "write")
    trace = instance.run("cat /sys/kernel/tracing/trace", part="host0", apart=True).output
    assert "nvme_async_event" in trace, trace
    log = instance.run("nvme get-log /dev/nvme0 --log-id=0x80 --log-len=64 --raw-binary "
                       "| od -An -tu1 -j8 -N1", part="host0", apart=True).output
    assert log.split() == ["1"]         # registration preempted


def test_a_reservation_with_ptpl_outlives_a_power_cut(instance: Instance) -> None:
    fresh(instance)
    assert reservation(instance, "host1", "acquire", crkey=KEYS["host1"],
                       rtype=WRITE_EXCLUSIVE, racqa=ACQUIRE) == 0
    assert reservation(instance, "host1", "register", crkey=KEYS["host1"],
                       nrkey=KEYS["host1"], rrega=REPLACE, cptpl=PTPL_ON) == 0
    instance.ask("power-cut", part=DRIVE)
    instance.ask("power-on", part=DRIVE)
    connect(instance)
    found = report(instance, "host0")
    assert (found["rtype"], found["regctl"], found["ptpls"]) == (WRITE_EXCLUSIVE, 2, 1)
    assert can(instance, "host1", "write")
    assert not can(instance, "host0", "write")


def test_a_reservation_without_ptpl_ends_with_power(instance: Instance) -> None:
    fresh(instance)
    assert reservation(instance, "host1", "acquire", crkey=KEYS["host1"],
                       rtype=WRITE_EXCLUSIVE, racqa=ACQUIRE) == 0
    instance.ask("power-cut", part=DRIVE)
    instance.ask("power-on", part=DRIVE)
    connect(instance)
    found = report(instance, "host0")
    assert (found["rtype"], found["regctl"]) == (0, 0)
    assert can(instance, "host0", "write")


def kernel(instance: Instance, host: str, *words: object) -> int:
    """Call Linux's interface for persistent reservations.  Return 0, or 1 for a refusal."""
    return instance.run(f"/tmp/block_pr /dev/nvme0n1 {' '.join(map(str, words))}", part=host,
                        check=False).status


def test_linuxs_own_interface_reserves_preempts_and_clears(
        instance: Instance, host_programs: dict[str, Path]) -> None:
    for host in HOSTS:
        instance.put(host_programs["block_pr"], "/tmp/block_pr", host)
    fresh(instance)
    assert reservation(instance, "host0", "release", crkey=KEYS["host0"], rrela=1) == 0
    for host in HOSTS:
        assert kernel(instance, host, "register", 0, KEYS_HEX[host]) == 0
    for kind in range(1, 7):        # enum pr_type numbers the types as NVMe does
        assert kernel(instance, "host0", "reserve", KEYS_HEX["host0"], kind) == 0
        assert report(instance, "host1")["rtype"] == kind
        assert can(instance, "host0", "write")
        assert can(instance, "host1", "write") == (kind > EXCLUSIVE_ACCESS)
        assert kernel(instance, "host1", "reserve", KEYS_HEX["host1"], kind) == (
            kind <= REGISTRANTS_ONLY)
        assert kernel(instance, "host0", "release", KEYS_HEX["host0"], kind) == 0
    assert kernel(instance, "host0", "reserve", KEYS_HEX["host0"], EXCLUSIVE_ACCESS) == 0
    assert kernel(instance, "host1", "preempt-abort", KEYS_HEX["host1"], KEYS_HEX["host0"],
                  EXCLUSIVE_ACCESS) == 0
    assert not can(instance, "host0", "read")
    assert can(instance, "host1", "write")
    assert kernel(instance, "host1", "clear", KEYS_HEX["host1"]) == 0
    assert report(instance, "host1")["regctl"] == 0
    assert can(instance, "host0", "write")
