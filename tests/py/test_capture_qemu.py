# SPDX-License-Identifier: BSD-2-Clause
"""A dump filter at the drive's port sees each frame of a burst, once and in order.

With qemu-patches/0008, QEMU passes several frames in one call from the drive's port to its
netdev and back; a filter takes one frame at a time.
"""

import asyncio
import struct
import time
from pathlib import Path
from typing import Any

from scapy.utils import RawPcapReader
from test_cable_bursts import LEN, Sender, frame, start_port
from test_cable_stream import connected, in_folder, sent  # noqa: F401
from test_port_media import Machine, medium, qemu, received, start  # noqa: F401

from essd.instance.config import Link
from essd.machine.drive import TIME_QUERY
from essd.supervisor import capture_rotation
from essd.supervisor.capture_keeper import virtual_ns

COUNT = 16


def test_a_dump_filter_sees_all_frames_of_bursts_in_both_directions(
        start, in_folder) -> None:  # noqa: F811
    machine, cable = connected(start)
    start_port(machine)
    sender = Sender(machine)
    file = in_folder / "live.pcap"
    machine.ask("object-add", **{"qom-type": "filter-dump", "id": "live1", "netdev": "s",
                                 "file": str(file), "maxlen": 65536})
    sender.post(COUNT)
    for number in range(COUNT):
        assert cable.frame() == frame(number)
    cable.socket.sendall(b"".join(struct.pack("!I", LEN) + frame(100 + number)
                                  for number in range(COUNT)))
    machine.wait(lambda: received(machine) == COUNT, "not all frames were received")
    machine.ask("object-del", id="live1")
    sender.post(COUNT)      # The dump has ended.
    machine.wait(lambda: sent(machine) == 2 * COUNT, "not all frames were sent")
    with RawPcapReader(str(file)) as reader:
        found = [packet for packet, _ in reader]
    assert found == [frame(number) for number in (*range(COUNT), *range(100, 100 + COUNT))]


class Captured:
    """Stands for the supervisor's part: commands go to the machine's monitor."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine = machine
        self.folder = folder

    async def execute(self, command: str, arguments: dict[str, Any]) -> object:
        return self.machine.ask(command, **arguments)


def test_a_full_capture_is_continued_with_every_frame_once_and_at_its_time(
        start, in_folder) -> None:  # noqa: F811
    machine, cable = connected(start)
    start_port(machine)
    sender = Sender(machine)
    link = Link(0, [])
    machine.ask("object-add", **{"qom-type": "filter-dump", "id": "dump0", "netdev": "s",
                                 "file": str(link.pcap(in_folder)), "maxlen": 65536})
    rotation = capture_rotation.Rotation(Captured(machine, in_folder), "s", link, 2 * LEN)
    for burst in range(6):
        sender.post(COUNT)
        for number in range(COUNT):
            assert cable.frame() == frame(COUNT * burst + number)
        machine.do("clock_step 1000000000")
        asyncio.run(rotation.look())
        time.sleep(0.4)         # The filters are added in different seconds.
    rotation.now.correct()      # as when the part ends
    files = [*capture_rotation.numbered(link.pcap(in_folder)), link.pcap(in_folder)]
    assert len(files) == 4
    found, times = [], []
    for file in files:
        with RawPcapReader(str(file)) as reader:
            for packet, facts in reader:
                found.append(packet)
                times.append((facts.sec, facts.usec))
    assert found == [frame(number) for number in range(6 * COUNT)]
    second, usec = times[0]
    assert times == [(second + number // COUNT, usec) for number in range(6 * COUNT)]


def test_the_monitor_tells_the_machines_time(start) -> None:  # noqa: F811
    machine = start()
    command, arguments = TIME_QUERY
    machine.do("clock_step 5000000000")
    before = virtual_ns(machine.ask(command, **arguments))
    machine.do("clock_step 1000000000")
    assert virtual_ns(machine.ask(command, **arguments)) - before == 1000000000
    assert before >= 5000000000
