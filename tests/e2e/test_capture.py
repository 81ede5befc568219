# SPDX-License-Identifier: BSD-2-Clause
"""`essd capture` during the I/O of a host."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from essd.base.paths import TOP
from essd.instance import steps
from essd.instance.steps import Job
from essd.testrun import pcap_check

pytestmark = [pytest.mark.drive, pytest.mark.uml]


def test_a_live_capture_shows_connect_and_reads(job: Job, tmp_path: Path) -> None:
    file = tmp_path / "live.pcap"
    command = [str(TOP / "essd"), "capture", "--name", job.instance.name, "--write", str(file)]
    begin = time.time()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                          env=os.environ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "capturing port 0" in line, line
        steps.connect(job)
        job.instance.run("dd if=/dev/nvme0n1 of=/dev/null bs=64k count=100 iflag=direct")
        steps.clean_host(job)
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and rest.startswith("captured "), rest
    found = pcap_check.check(file)
    assert found.complaints == []
    assert found.icrc_checked > 1000
    for command, least in (("NVMeOF Connect", 1), ("NVMe Read", 100)):
        seen = sum(count for words, count in found.nvme_commands.items()
                   if words.endswith(f"| {command}"))
        assert seen >= least, found.nvme_commands
    with RawPcapReader(str(file)) as packets:
        times = [packet.sec + packet.usec / 1e6 for _, packet in packets]
    assert begin - 1 < times[0] <= times[-1] < time.time() + 1
    assert rest == f"captured {len(times)} frames\n"


def test_a_capture_of_connected_hosts_says_how_to_have_nvme_decoded(
        connected: Job, tmp_path: Path) -> None:
    """What it says is true: without the Connect, tshark decodes no NVMe."""
    file = tmp_path / "late.pcap"
    command = [str(TOP / "essd"), "capture", "--name", connected.instance.name, "--write",
               str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                          env=os.environ) as process:
        assert process.stderr is not None
        assert "capturing port 0" in process.stderr.readline()
        line = process.stderr.readline()
        assert "queue pairs were connected before this capture" in line, line
        connected.instance.run("dd if=/dev/nvme0n1 of=/dev/null bs=4k count=8 iflag=direct")
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and rest.startswith("captured "), rest
    assert pcap_check.check(file).nvme_commands == {}
