# SPDX-License-Identifier: BSD-2-Clause
"""Floods of every kind from a host that runs verified I/O at the same time.

One fio runs all the time and verifies what it wrote.  Under each flood it has to make
progress, and afterwards it has to be as fast as just before the flood.  The drive's
counters show that the flood arrived.
"""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flood_frames
import pytest
from flood_frames import Ends

from essd.drive import port
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.long]

FLOOD_S = 2
RATE = 2000             # frames a second; emulated hosts send little more
QUIET_S = 2
WORK = "head -c 4000000 /dev/zero | sha256sum"
BACK_S = 60.0           # time limit to reach the former speed again
BACK = 0.33             # fraction by which two such measurements may differ
FIO = ("fio --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 "
       "--filename={device} --name=flooded --rw=randwrite --bs=4k --iodepth=4 "
       "--size=8m --verify_backlog=64 --time_based --runtime=3600 "
       "> /tmp/fio.txt 2>&1; echo $? > /tmp/fio.status")


# One flood for each part of the drive: network stack, RNIC, CM, unknown protocols.
# `essd test --all` runs the others too; each takes 15 s.
ALWAYS = (flood_frames.arp_requests, flood_frames.fragments,
          flood_frames.roce_bad_icrc, flood_frames.cm_requests, flood_frames.noise)
KINDS = [pytest.param(kind, id=kind.__name__,
                      marks=() if kind in ALWAYS else pytest.mark.long)
         for kind in flood_frames.KINDS]


@dataclass
class Flooded:
    """A connected host on which fio runs."""

    job: Job
    device: str
    ends: Ends

    def during(self, command: str) -> tuple[int, float, str]:
        """The I/Os that fio completed meanwhile, and the seconds on the host's clock."""
        stamp = f"cat /sys/block/{self.device[5:]}/stat; cat /proc/uptime"
        lines = self.job.quiet(f"{stamp}; {command}; {stamp}").splitlines()
        (first, since), (last, until) = ([x.split() for x in lines[:2]],
                                         [x.split() for x in lines[-2:]])
        # Reads and writes that the kernel has completed.
        done = int(last[0]) + int(last[4]) - int(first[0]) - int(first[4])
        return done, float(until[0]) - float(since[0]), "\n".join(lines[2:-2])

    def pace(self) -> float:
        """The I/Os completed in the time that the host needs for a fixed piece of work.

        Both change with the load of the machine, so that their ratio does not.
        """
        done, seconds, _ = self.during(f"sleep {QUIET_S}")
        _, work_s, _ = self.during(WORK)
        return done / seconds * work_s

    def expect_running(self) -> None:
        status = self.job.quiet("cat /tmp/fio.status 2>/dev/null; true").strip()
        assert status == "", self.job.quiet("tail -n 30 /tmp/fio.txt")
        self.job.instance.check()

    def frames_in(self) -> int:
        counters = port.state(self.job.instance, 0)["counters"]
        return int(counters["aFramesReceivedOK"])

    def expect_back(self, before: float) -> float:
        """Wait until fio is as fast as before; return its speed."""
        deadline = time.monotonic() + BACK_S
        while (now := self.pace()) < before * BACK:
            self.expect_running()
            assert time.monotonic() < deadline, (
                f"a pace of {now:.0f}, {before:.0f} before the flood")
        return now


def link_local_of(mac: str) -> str:
    part = [int(x, 16) for x in mac.split(":")]
    words = [part[0] ^ 2, part[1], part[2], 0xff, 0xfe, *part[3:]]
    return "fe80::" + ":".join(f"{words[i] << 8 | words[i + 1]:x}" for i in (0, 2, 4, 6))


def ends_of(job: Job) -> Ends:
    drive = job.addresses[0]
    mac = flood_frames.neighbour_mac(job, drive)
    own = re.search(r"inet (\S+)/", job.quiet("ip -4 addr show eth0"))
    assert own
    return Ends(job.quiet("cat /sys/class/net/eth0/address").strip(), own[1], mac,
                drive, link_local_of(mac))


@pytest.fixture(scope="module")
def flooded(session_job: Job, host_programs: dict[str, Path]) -> Iterator[Flooded]:
    from conftest import set_right
    job = session_job
    set_right(job)
    ends = ends_of(job)
    job.instance.put(host_programs["flood"], "/tmp/flood")
    device = steps.connect(job)
    job.quiet("dmesg -C; rm -f /tmp/fio.*")     # earlier tests pull cables
    job.quiet(f"(({FIO.format(device=device)}) &) </dev/null >/dev/null 2>&1")
    pair = Flooded(job, device, ends)
    deadline = time.monotonic() + 60
    while pair.pace() == 0:
        pair.expect_running()
        assert time.monotonic() < deadline, "fio does not begin"
    yield pair
    job.quiet("pkill -INT -x fio; true", check=False)
    steps.clean_host(job)


@pytest.mark.parametrize("kind", KINDS)
def test_io_continues_under_a_flood_of(
        flooded: Flooded, kind: Callable[[Ends], list[bytes]], tmp_path: Path,
        record_property: Callable[[str, Any], None]) -> None:
    job = flooded.job
    frames = tmp_path / "frames"
    frames.write_bytes(flood_frames.to_file(kind(flooded.ends)))
    job.instance.put(frames, "/tmp/frames")
    before, seen = flooded.pace(), flooded.frames_in()
    done, seconds, output = flooded.during(
        f"/tmp/flood eth0 /tmp/frames {FLOOD_S} {RATE}")
    sent, arrived = int(output), flooded.frames_in() - seen
    flooded.expect_running()
    assert sent >= 50
    # If the drive is slower than the host, frames without room are counted elsewhere.
    # The frames of the I/O are counted here too.
    assert arrived >= sent // 2, f"{arrived} frames came in of {sent}"
    assert done > 0
    after = flooded.expect_back(before)
    text = (f"{kind.__name__}: {sent / seconds:.0f} frames and {done / seconds:.0f} I/O "
            f"a second; pace {before:.0f} before, {after:.0f} after")
    record_property("flood", text)
    print(text)


def test_io_continues_under_ping_f(flooded: Flooded) -> None:
    """ping -f sends the next request as soon as it gets an answer."""
    before = flooded.pace()
    done, _, output = flooded.during(
        f"ping -f -w {FLOOD_S} -s 1000 {flooded.ends.drive}")
    assert done > 0
    match = re.search(r"(\d+) packets transmitted, (\d+) received", output)
    assert match and int(match[2]) > 0, output
    flooded.expect_running()
    flooded.expect_back(before)


def test_after_all_floods_the_drive_answers_and_fio_had_no_error(flooded: Flooded) -> None:
    """This test is the last one: it ends fio and makes a new connection."""
    job = flooded.job
    flooded.expect_running()
    job.quiet("pkill -INT -x fio")
    deadline = time.monotonic() + 60
    while not job.quiet("cat /tmp/fio.status 2>/dev/null; true").strip():
        assert time.monotonic() < deadline, "fio does not end"
        time.sleep(0.5)
    report = job.quiet("cat /tmp/fio.txt")
    assert "err= 0" in report and "bad magic" not in report, report
    steps.disconnect(job)
    steps.ping(job)
    steps.discover(job)
    steps.connect(job)
    kernel = job.quiet("dmesg | grep -iE 'nvme.*(error|timeout|reconnect)'; true")
    assert "I/O error" not in kernel and "reconnect" not in kernel, kernel
    text = (job.instance.folder / "drive/console.log").read_text(errors="replace")
    assert "assert" not in text.lower()
