# SPDX-License-Identifier: BSD-2-Clause
"""Linux's aoe driver uses a namespace by both ports, and an NVMe host the same one.

The host is user-mode Linux, whose kernel has the stock driver; the stock guest has it only
in the variant of the peers (docs/peers.md).
"""

from collections.abc import Callable, Iterator

import pytest
import uart_dialogue

from essd.drive import mgmt
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]

DISK = "/dev/etherd/e7.0"
BLOCK = "/sys/block/etherd!e7.0"
FIO = ("fio --name=own --filename={device} --direct=1 --ioengine=libaio --bsrange=512-64k "
       "--iodepth=16 --rw=randwrite --size={size} --verify=crc32c --verify_fatal=1")
START_FIO = ("(" + FIO.format(device=DISK, size="4m") + " --loops=5 > /tmp/fio.log 2>&1; "
             "echo $? > /tmp/fio.end) < /dev/null > /dev/null 2>&1 & sleep 1; "
             "[ ! -e /tmp/fio.end ]")
WAIT_FIO = ("for n in $(seq 900); do [ -e /tmp/fio.end ] && break; sleep 0.1; done; "
            "cat /tmp/fio.log; end=$(cat /tmp/fio.end); rm /tmp/fio.end; exit $end")
KEY = 0x11
WRITE_EXCLUSIVE, EXCLUSIVE_ACCESS = 1, 2


def ask_for_disk(job: Job) -> None:
    """Discover until the driver has the disk by both ports."""
    job.quiet("for n in $(seq 300); do echo > /dev/etherd/discover; "
              f"grep -qx up '{BLOCK}/state' 2>/dev/null && "
              f"grep -q eth0 '{BLOCK}/netif' && grep -q eth1 '{BLOCK}/netif' && exit 0; "
              "sleep 0.1; done; "
              f"ls /dev/etherd; cat '{BLOCK}'/*; exit 1")


def restart(job: Job, *settings: str) -> None:
    """Cut the power, after a change of the settings."""
    lines = [f"config set {words}" for words in settings]
    for line in [*lines, "config save"] if lines else []:
        assert uart_dialogue.ask(job.instance, line)[-1].startswith("ok")
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.wait_target(job)


@pytest.fixture(scope="module")
def aoe(session_job: Job) -> Iterator[Job]:
    if not any(host.uml for host in session_job.instance.config.hosts.values()):
        pytest.skip("the stock guest has no aoe driver")
    steps.clean_host(session_job)
    restart(session_job, "aoe.export 1", "aoe.shelf 7")
    yield session_job
    steps.clean_host(session_job)
    restart(session_job, "aoe.export none", "aoe.shelf 0")


@pytest.fixture(autouse=True)
def disk(aoe: Job) -> Iterator[None]:
    ask_for_disk(aoe)
    yield
    steps.clean_host(aoe)


def test_both_ports_serve_one_durable_disk(aoe: Job) -> None:
    assert aoe.quiet(f"cat '{BLOCK}/queue/write_cache'").strip() == "write through"
    sectors = int(aoe.quiet(f"cat '{BLOCK}/size'"))
    steps.connect(aoe)
    assert int(aoe.quiet(f"blockdev --getsz {aoe.device()}")) == sectors


def test_what_a_host_writes_it_reads(aoe: Job) -> None:
    aoe.quiet(FIO.format(device=DISK, size="8m"))


def test_a_file_system(aoe: Job) -> None:
    aoe.quiet(f"mkfs.ext4 -q -F {DISK} && mount {DISK} /mnt && "
              "head -c 3000000 /dev/urandom > /tmp/data && cp /tmp/data /mnt/data && "
              f"umount /mnt && mount {DISK} /mnt && cmp /tmp/data /mnt/data && umount /mnt")


def received(job: Job) -> int:
    return int(mgmt.ask(job.instance, "counters")["aoe"]["received"])


def test_a_cable_is_pulled_while_data_is_written(aoe: Job) -> None:
    """The driver repeats its writes by the other port, which executes them.

    It gives a port up after 10 s without an answer, or after its first time-out if that is
    longer.  A disk that was just opened begins with 16.5 s, which many answers make short.
    """
    aoe.quiet(f"dd if={DISK} of=/dev/null bs=1k count=2000 iflag=direct status=none")
    aoe.quiet(START_FIO)
    aoe.instance.ask("port", port=0, plugged=False)
    before = received(aoe)
    aoe.quiet(WAIT_FIO)
    assert received(aoe) > before + 1000
    aoe.instance.ask("port", port=0, plugged=True)
    aoe.quiet("echo all > /dev/etherd/flush")   # It would use port 0 late.


def test_what_was_answered_survives_a_power_cut(aoe: Job) -> None:
    aoe.quiet("head -c 1048576 /dev/urandom > /tmp/answered && "
              f"dd if=/tmp/answered of={DISK} bs=4k oflag=direct status=none")
    restart(aoe)
    ask_for_disk(aoe)
    aoe.quiet(f"dd if={DISK} bs=64k count=16 iflag=direct status=none | cmp - /tmp/answered")


def test_a_saved_drive_goes_on(aoe: Job) -> None:
    """The driver repeats what the drive has not answered while it was saved."""
    aoe.quiet(START_FIO)
    for _ in range(2):
        aoe.instance.ask("save")
        aoe.instance.ask("load")
    aoe.quiet(WAIT_FIO)


def test_large_frames_carry_8_kib(booted: Callable[..., Job]) -> None:
    """16 sectors of them: 17 would fit, but begin within units of 4 KiB.

    The cards of user-mode Linux have the MTU with which it starts.
    """
    job = booted(mtu=9000)
    restart(job, "aoe.export 1", "aoe.shelf 7")
    ask_for_disk(job)
    assert "e7.0: setting 8192 byte data frames" in job.quiet("dmesg")
    job.quiet(FIO.format(device=DISK, size="8m"))
    job.quiet(f"dd if={DISK} of=/dev/null bs=64k count=16 iflag=direct status=none")


def test_an_nvme_host_uses_the_same_namespace(aoe: Job) -> None:
    """They write in turn, and each reads what the other one has written."""
    steps.connect(aoe)
    device = aoe.device()
    for turn, (writer, reader) in enumerate([(DISK, device), (device, DISK)] * 3):
        aoe.quiet(f"head -c 262144 /dev/urandom > /tmp/turn && "
                  f"dd if=/tmp/turn of={writer} bs=16k seek={turn} oflag=direct status=none && "
                  f"dd if={reader} bs=16k skip={turn} count=16 iflag=direct status=none "
                  "| cmp - /tmp/turn")


def fails(job: Job, command: str) -> bool:
    return job.result(command, check=False).status != 0


WRITES = f"dd if=/dev/zero of={DISK} bs=4k count=1 oflag=direct status=none"
READS = f"dd if={DISK} of=/dev/null bs=4k count=1 iflag=direct status=none"


@pytest.mark.parametrize(("kind", "is_readable"), [(WRITE_EXCLUSIVE, True),
                                                   (EXCLUSIVE_ACCESS, False)])
def test_a_reservation_of_an_nvme_host_fences_it(aoe: Job, kind: int,
                                                 is_readable: bool) -> None:
    steps.connect(aoe)
    device = aoe.device()
    aoe.quiet(f"nvme resv-register {device} --nrkey={KEY} --rrega=0 && "
              f"nvme resv-acquire {device} --crkey={KEY} --rtype={kind} --racqa=0")
    try:
        assert fails(aoe, WRITES)
        assert fails(aoe, READS) != is_readable
    finally:
        aoe.quiet(f"nvme resv-register {device} --crkey={KEY} --rrega=1")
    assert not fails(aoe, WRITES) and not fails(aoe, READS)


def test_a_write_protected_namespace_is_only_read(aoe: Job) -> None:
    steps.connect(aoe)
    protect = f"nvme set-feature {aoe.controller()} -n 1 -f 0x84 --value={{}}"
    aoe.quiet(protect.format(1))
    try:
        assert fails(aoe, WRITES)
        assert not fails(aoe, READS)
    finally:
        aoe.quiet(protect.format(0))
    assert not fails(aoe, WRITES)


def test_smart_counts_what_aoe_does(aoe: Job) -> None:
    steps.connect(aoe)

    def written() -> int:
        log = aoe.quiet(f"nvme smart-log {aoe.controller()} -o json")
        return int(log.split('"host_write_commands":')[1].split(",")[0].strip(' "'))
    before = written()
    for _ in range(3):
        aoe.quiet(WRITES)
    assert written() >= before + 3
