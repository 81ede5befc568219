# SPDX-License-Identifier: BSD-2-Clause
"""A drive with a block medium (`essd up --block`), used by a Linux host.

The other end-to-end tests use the default drive, whose medium is NAND flash.  These are
about the media engine: its cache, its faults and its trace events.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import queue_limits
from test_operations import wait_self_test
from test_power_cut import cut_after_writes
from test_trace import traced
from watching import until

import essd
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]
SIZE_BYTES = 512 << 20
BLOCK = 512


@pytest.fixture(scope="module")
def block_drive(host_kind: str) -> Iterator[essd.Drive]:
    with essd.up(size="512M", block=True, host_kind=host_kind) as system:
        yield system.drives[0]


@pytest.fixture
def drive(block_drive: essd.Drive) -> Iterator[essd.Drive]:
    """A drive that its host is connected to; each test's fault rules are removed after it."""
    job = Job.of(block_drive.instance)
    steps.settle(job)
    steps.connect(job)
    yield block_drive
    block_drive.faults.remove()
    steps.clean_host(job)
    block_drive.instance.check()


@pytest.fixture
def job(drive: essd.Drive) -> Job:
    return Job.of(drive.instance)


def read_block(drive: essd.Drive, lba: int, options: str = "") -> int:
    """The exit status of a read of 4 KiB at this LBA."""
    host = drive.system.host
    return host.run(f"{options} dd if={host.device(drive)} of=/dev/null bs=4k count=1 "
                    f"skip={lba * BLOCK} iflag=direct,skip_bytes status=none",
                    check=False).status


def test_its_capacity_is_exact_and_fio_reads_back_what_it_wrote(job: Job) -> None:
    device = job.device()
    assert int(job.quiet(f"blockdev --getsize64 {device}")) == SIZE_BYTES
    queue_limits.check(job, device, BLOCK, BLOCK, 0, BLOCK, BLOCK)
    steps.run_fio(job, steps.FIO.format(device=device, name="block", options=(
        "--rw=randwrite --bssplit=4k/60:16k/40 --iodepth=16 --size=32m")))


def test_a_stuck_medium_goes_on_when_its_rule_is_removed(drive: essd.Drive) -> None:
    drive.faults.add("media operation=read lba=4000-4007 do stuck", "stuck")
    assert read_block(drive, 4000, "timeout -s KILL 2") != 0
    assert read_block(drive, 5000) == 0
    drive.faults.remove("stuck")
    assert read_block(drive, 4000) == 0


def cache_counters(drive: essd.Drive) -> tuple[int, int]:
    """Words of the cache with one wrong bit, and with more, that were read so far."""
    media = drive.ask("counters")["media"]
    return media["cache-corrected"], media["cache-lost"]


def test_wrong_bits_of_the_write_cache_are_corrected_or_reported(drive: essd.Drive) -> None:
    """With more than one wrong bit, neither a read nor a flush succeeds."""
    host = drive.system.host
    device = host.device(drive)
    write = (f"head -c 4096 /dev/urandom > /tmp/block; dd if=/tmp/block of={device} bs=4k "
             "count=1 seek=600 oflag=direct status=none")
    read = f"dd if={device} bs=4k count=1 skip=600 iflag=direct status=none | cmp - /tmp/block"
    flush = f"nvme flush {device} --namespace-id=1"
    corrected, lost = cache_counters(drive)
    drive.faults.add("media lba=4800-4807 do bits=1", "one")
    host.run(write)
    host.run(flush)
    host.run(read)
    assert cache_counters(drive) == (corrected + 1, lost)
    drive.faults.remove("one")
    drive.faults.add("media lba=4800-4807 do bits=2", "more")
    host.run(write)
    assert host.run(flush, check=False).status != 0
    assert read_block(drive, 4800) != 0
    assert cache_counters(drive)[1] > lost + 1
    drive.faults.remove("more")
    host.run(flush)
    host.run(read)
    host.run(write)     # Get LBA Status no longer lists the blocks.


def lba_status(drive: essd.Drive, action: int) -> list[str]:
    """The descriptors that nvme get-lba-status prints for the first 4096 blocks."""
    host = drive.system.host
    # As JSON, nvme-cli 2.13 ends with an assertion of its own.
    shown = host.read(f"nvme get-lba-status {host.device(drive)} --namespace-id=1 "
                      f"--start-lba=0 --max-dw=65 --action={action} --range-len=4096")
    assert re.search(r"\(CMPC\): 2\b", shown), shown
    return [line for line in shown.splitlines() if "DSLBA" in line]


def test_nvme_cli_shows_the_block_that_cannot_be_read(drive: essd.Drive) -> None:
    host = drive.system.host
    device = host.device(drive)
    bad = ["{ DSLBA: 0x000000000007d0, NLB: 00000000, Status: 0x1 }"]
    drive.faults.add("media operation=read lba=2000 do error", "unreadable")
    assert lba_status(drive, 0x11) == []        # nobody has read it yet
    assert read_block(drive, 2000) != 0
    assert lba_status(drive, 0x10) == bad       # one of the eight blocks of that read
    assert lba_status(drive, 0x11) == bad
    log = json.loads(host.read(f"nvme lba-status-log {device} -o json"))
    assert (log["nlslne"], log["estulb"]) == (1, 1)
    assert log["ns_elements"][0]["descs"] == [{"rslba": 2000, "rnlb": 0}]
    host.run(f"dd if=/dev/zero of={device} bs=512 count=1 seek=2000 oflag=direct")
    assert lba_status(drive, 0x11) == []


def test_the_media_engines_events_name_the_hosts_request(job: Job, tmp_path: Path) -> None:
    with traced(job, tmp_path) as events:
        job.instance.run(f"dd if={job.device()} of=/dev/null bs=4k count=1 skip=777 "
                         "iflag=direct")
    reads = [e for e in events if e["event"] == "command" and e["opcode"] == 2
             and e["lba"] == 777 * 8]
    engine = [e for e in events if e["source"] == "media" and e["lba"] == 777 * 8]
    assert [e["event"] for e in engine] == ["engine_started", "engine_ended"]
    assert {e["request"] for e in engine} == {reads[0]["request"]}
    assert engine[1]["status"] == 0 and engine[1]["us"] <= reads[0]["media_us"] + 1


@pytest.mark.long
def test_a_self_test_names_the_block_that_fails(job: Job, drive: essd.Drive) -> None:
    drive.faults.add("media operation=read lba=100001-100001 do error", "bad")
    job.run(f"nvme device-self-test {job.controller()} -n 1 -s 2")
    newest = wait_self_test(job)[0]
    assert int(newest["Self test result"]) == 7, newest
    assert int(newest["Segment number"]) == 3, newest
    assert int(newest["Failing LBA"]) == 100001, newest
    assert int(newest["Valid Diagnostic Information"]) == 0xf, newest


def stop_write_out(job: Job) -> None:
    """Stop the drive from writing out its cache by itself, however slow this machine is."""
    job.instance.ask("qmp", part="drive", execute="qom-set", arguments={
        "path": "/machine/media-engine", "property": "write-out", "value": False})


def test_a_power_cut_loses_exactly_what_nobody_has_flushed(job: Job) -> None:
    survived = cut_after_writes(job, stop_write_out)
    assert survived == 0, "the cut lost less than what nobody had flushed"


def test_a_rule_cuts_the_power_at_a_flush(job: Job, drive: essd.Drive) -> None:
    drive.faults.add("media operation=flush when nth=1 do power-cut", "cut")
    job.instance.run(f"dd if=/dev/zero of={job.device()} bs=4k count=1 seek=512 oflag=direct "
                     "conv=fsync status=none & sleep 1; kill $! 2>/dev/null", check=False)
    until(lambda: not drive.is_on)
    assert drive.status()["why"] == "the fault rule cut has cut the power"
    drive.power_on()
    assert read_block(drive, 992) == 0          # the host has connected again
