# SPDX-License-Identifier: BSD-2-Clause
"""Optional commands of the drive, used with the host's nvme-cli."""

import re

import pytest

from essd import telemetry
from essd.steps import Job

pytestmark = pytest.mark.drive
BLOCK = 512


def fill(job: Job, device: str, lba: int, blocks: int) -> None:
    """Write random data, which also stay in /tmp/data."""
    job.quiet(f"head -c {blocks * BLOCK} /dev/urandom > /tmp/data && "
              f"dd if=/tmp/data of={device} bs={BLOCK} seek={lba} oflag=direct "
              "conv=notrunc status=none")


def blocks_of(job: Job, device: str, lba: int, blocks: int) -> str:
    """The checksum of some blocks."""
    return job.quiet(f"dd if={device} bs={BLOCK} skip={lba} count={blocks} "
                     "iflag=direct status=none | sha256sum").split()[0]


def test_compare_verify_and_copy_work_with_nvme_cli(connected: Job) -> None:
    job = connected
    device = job.device()
    fill(job, device, 100, 2000)
    compare = (f"nvme compare {device} --start-block=100 --block-count=1999 "
               f"--data-size={2000 * BLOCK} --data=/tmp/data")
    job.quiet(compare)
    job.quiet("printf x | dd of=/tmp/data bs=1 seek=700000 conv=notrunc status=none")
    said = job.quiet(f"{compare} 2>&1; true", check=False)
    assert "Compare Failure" in said, said
    job.quiet(f"nvme verify {device} --start-block=0 --block-count=65535")
    job.quiet(f"nvme copy {device} --sdlba=50000 --slbs=100,1100 --blocks=999,999")
    assert blocks_of(job, device, 50000, 2000) == blocks_of(job, device, 100, 2000)


def test_nvme_cli_reads_the_pages_about_support_and_ocp_smart(connected: Job) -> None:
    job = connected
    controller = job.controller()
    pages = job.quiet(f"nvme supported-log-pages {controller}")
    for lid in (1, 2, 3, 4, 5, 0x12, 0xc0, 0xd0):
        assert f"0x{lid:x}" in pages, (lid, pages)
    features = job.quiet(f"nvme fid-support-effects-log {controller}")
    assert "FID 06" in features, features
    smart = job.quiet(f"nvme ocp smart-add-log {controller}")
    assert "Physical media units written" in smart, smart
    assert "Log page version" in smart, smart


def test_nvme_cli_shows_the_persistent_events(connected: Job) -> None:
    job = connected
    controller = job.controller()
    log = f"nvme persistent-event-log {controller}"
    for value in (0, 1):
        job.quiet(f"nvme set-feature {controller} --feature-id=6 --value={value}")
    job.quiet(f"{log} --action=1")
    shown = job.quiet(f"{log} --action=0")
    raw = bytes.fromhex(job.quiet(
        f"{log} --action=0 --raw-binary | od -An -v -tx1 | tr -d ' \\n'"))
    job.quiet(f"{log} --action=2")
    assert "Support Power-on or Reset Event" in shown, shown
    assert "Volatile Write Cache" in shown and "Time Stamp Change Event" in shown, shown
    # nvme-cli leaves the oldest event out, so look at the bytes, too.
    types, at = [], 512
    while at < len(raw):
        types.append(raw[at])
        at += 3 + raw[at + 2] + int.from_bytes(raw[at + 22:at + 24], "little")
    assert types[:2] == [0x0b, 0x0b] and types[-2:] == [0x01, 0x04], types
    said = job.quiet(f"{log} --action=0 2>&1; true", check=False)
    assert "command sequence" in said.lower().replace("_", " "), said


def test_nvme_cli_fetches_a_dump_of_the_drives_state(connected: Job) -> None:
    job = connected
    job.quiet(f"nvme telemetry-log {job.controller()} --output-file=/tmp/dump.bin "
              "--data-area=3")
    dump = telemetry.parse(bytes.fromhex(
        job.quiet("od -An -v -tx1 /tmp/dump.bin | tr -d ' \\n'")))
    found = {section.name: section.value() for section in dump.sections}
    assert dump.page == "host-initiated" and dump.generation > 0
    assert any(one["state"] == "ready" for one in found["controllers"]["controllers"])
    assert found["queue-pairs"]["queue-pairs"][0]["entries"] > 0
    assert "nvme-of: RDMA host" in found["log"]
    assert "data area 3: log" in telemetry.text(dump)


def test_nvme_cli_copies_with_format_2_and_reads_the_endurance_group(connected: Job) -> None:
    job = connected
    device, controller = job.device(), job.controller()
    fill(job, device, 100, 64)
    job.quiet("head -c 512 /dev/zero > /tmp/behavior && "
              "printf '\\004' | dd of=/tmp/behavior bs=1 seek=4 conv=notrunc status=none && "
              f"nvme set-feature {controller} -f 0x16 --data-len=512 --data=/tmp/behavior")
    nsid = job.quiet(f"nvme get-ns-id {device}").rpartition(":")[2].strip()
    job.quiet(f"nvme copy {device} --sdlba=60000 --slbs=100 --blocks=63 --format=2 "
              f"--snsids={nsid}")
    assert blocks_of(job, device, 60000, 64) == blocks_of(job, device, 100, 64)
    page = job.quiet(f"nvme endurance-log {controller} --group-id=1")
    assert re.search(r"total_end_grp_cap\s*: [1-9]", page), page
