# SPDX-License-Identifier: BSD-2-Clause
"""The captures of both cables, checked with Wireshark and scapy."""

from collections.abc import Callable

import pytest

from essd.instance import steps
from essd.instance.steps import Job
from essd.testrun import pcap_check


@pytest.mark.drive
@pytest.mark.parametrize("mtu", [1500, 9000])
def test_capture_has_no_bad_packet_and_decodes_as_nvme(
        booted: Callable[..., Job], mtu: int) -> None:
    job = booted(capture=True, mtu=mtu)
    steps.discover(job)
    device = steps.connect(job)
    steps.identify(job)
    for block in ("4k", "64k"):
        job.run(f"dd if=/dev/urandom of={device} bs={block} count=16 oflag=direct")
        job.run(f"dd if={device} of=/dev/null bs={block} count=16 iflag=direct")
    steps.disconnect(job)
    verdict = pcap_check.check(job.instance.folder / "link0.pcap")
    assert not verdict.complaints, "\n".join(verdict.complaints[:10])
    assert verdict.icrc_checked > 100
    assert verdict.nvme_commands
