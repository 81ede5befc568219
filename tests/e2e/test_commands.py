# SPDX-License-Identifier: BSD-2-Clause
"""Optional commands of the drive, used with the host's nvme-cli."""

import json
import re
from typing import Any

import pytest

import essd
from essd.debug import telemetry
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]
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
    recovery = job.quiet(f"nvme ocp error-recovery-log {controller}")
    assert re.search(r"Device Recovery Action 1 *: 0x1\n", recovery), recovery
    assert re.search(r"Panic ID *: 0x0\n", recovery), recovery
    able = job.quiet(f"nvme ocp device-capability-log {controller}")
    assert re.search(r"Sanitize Command Support\s*: 0x1d\n", able), able


def latency_page(job: Job) -> dict[str, Any]:
    """OCP's latency monitor page, as nvme-cli shows it."""
    shown = job.quiet(f"nvme ocp latency-monitor-log {job.controller()} -o json")
    page: dict[str, Any] = json.loads(shown[shown.index("{"):shown.rindex("}") + 1])
    return page


def test_nvme_cli_finds_slow_commands_with_the_latency_monitor(
        connected: Job, essd_drive: essd.Drive) -> None:
    job = connected
    device = job.device()
    # Buckets begin at 50, 100, 500 and 1280 ms.
    monitor = f"nvme ocp set-latency-monitor-feature {job.controller()}"
    said = job.quiet(f"{monitor} -a 9 -b 19 -c 99 -d 255")
    assert "latency monitor feature enable: 0x1" in said, said
    try:
        page = latency_page(job)
        assert page["Feature Status"] == 7 and page["Active Threshold B"] == 100, page
        for rule in ("nvme queue=io opcode=read", "nvme queue=io opcode=write",
                     "nvme queue=io opcode=dataset-management"):
            essd_drive.faults.add(f"{rule} when times=3 do delay=150ms")
        job.quiet(f"dd if={device} of=/dev/null bs=4k count=3 skip=5000 iflag=direct "
                  "status=none && "
                  f"dd if=/dev/zero of={device} bs=4k count=3 seek=5000 oflag=direct "
                  f"status=none && for i in 1 2 3; do blkdiscard -l 4096 {device}; done")
        page = latency_page(job)
        for kind in ("Read", "Write", "Trim"):
            assert page["Active Bucket Counter: Bucket 1"][kind] >= 3, (kind, page)
            assert page["Active Measured Latency: Bucket 1"][kind] >= 150, (kind, page)
            assert page["Active Latency Time Stamp: Bucket 1"][kind] != "NA", (kind, page)
    finally:
        essd_drive.faults.remove()
        job.quiet(f"{monitor} -e 0")
    assert latency_page(job)["Feature Status"] == 6


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
    said = job.quiet(
        "head -c 512 /dev/zero > /tmp/behavior && "
        "printf '\\004' | dd of=/tmp/behavior bs=1 seek=4 conv=notrunc status=none && "
        f"nvme set-feature {controller} -f 0x16 --data-len=512 --data=/tmp/behavior 2>&1",
        check=False)
    nsid = job.quiet(f"nvme get-ns-id {device}").rpartition(":")[2].strip()
    copied = job.quiet(f"nvme copy {device} --sdlba=60000 --slbs=100 --blocks=63 --format=2 "
                       f"--snsids={nsid} 2>&1", check=False)
    if "Permission denied" in said:
        # Newer kernels (6.12.117, for instance) keep this feature to themselves, so the
        # drive never gets the command, and has to refuse copies with format 2.
        assert "Invalid Field" in copied, copied
    else:
        assert blocks_of(job, device, 60000, 64) == blocks_of(job, device, 100, 64), copied
    page = job.quiet(f"nvme endurance-log {controller} --group-id=1")
    assert re.search(r"total_end_grp_cap\s*: [1-9]", page), page


def smart_errors(job: Job) -> int:
    return int(json.loads(job.quiet(f"nvme smart-log {job.controller()} -o json"))
               ["num_err_log_entries"])


def test_smartctl_shows_everything_and_leaves_no_error_behind(connected: Job) -> None:
    """Debian's smartctl asks for the log pages with the NSID of its device."""
    job = connected
    before = smart_errors(job)
    for device in (job.device(), job.controller()):
        said = job.run(f"smartctl -x {device}")
        assert "SMART overall-health self-assessment test result: PASSED" in said, said
        assert "failed" not in said.lower(), said
        assert "Self-test Log" in said and "Error Information" in said, said
    assert smart_errors(job) == before
