# SPDX-License-Identifier: BSD-2-Clause
"""A cable that is a stream socket, as `essd` and `essd conform` use it.

The machine continues whatever the peer does (qemu-patches/0006, 0007 and 0022).
"""

import contextlib
import socket
import struct
from pathlib import Path

import pytest
from test_port_media import (  # noqa: F401
    DRAM, MAC, PORT0, Machine, medium, qemu, start, start_port)

LEN = 1514
RING = 4
STREAM = ("-machine", "port0-netdev=s", "-netdev",
          "stream,id=s,server=on,addr.type=unix,addr.path=m0/cable")


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, because STREAM names a socket by a relative path: absolute
    paths of sockets may have 107 bytes only."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def is_listening(machine: Machine) -> bool:
    """Whether no peer is connected to port 0's cable, as the monitor shows it.

    QEMU now and then loses the event NETDEV_STREAM_CONNECTED on a loaded machine.
    """
    network = machine.ask("human-monitor-command", **{"command-line": "info network"})
    return "type=stream,listening" in network


class Cable:
    """The peer of port 0: it connects, and reads only when a test tells it to."""

    def __init__(self, machine: Machine) -> None:
        machine.wait(lambda: is_listening(machine), "listening")
        self.socket = machine.connect("cable")
        self.socket.settimeout(30)
        machine.wait(lambda: not is_listening(machine), "accepted")

    def frame(self) -> bytes:
        return self.read(struct.unpack("!I", self.read(4))[0])

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more, "QEMU closed the cable's connection"
            data += more
        return data


def connected(start) -> tuple[Machine, Cable]:  # noqa: F811
    machine = start(*STREAM)
    return machine, Cable(machine)


def sent(machine: Machine) -> int:
    return struct.unpack("<I", machine.read(0x200c0, 4))[0]


def send(machine: Machine, number: int) -> None:
    """Send a frame that contains its number."""
    slot = number % RING
    at = 0x50000 + 0x1000 * slot
    machine.write(at, MAC + MAC + b"\x88\xb5" + struct.pack("!I", number)
                  + bytes(LEN - 18))
    machine.write(0x22000 + 16 * slot, struct.pack("<QII", DRAM + at, LEN, 0))
    machine.write(0x20080, struct.pack("<I", number + 1))
    machine.write32(PORT0 + 0x120, 1)


def fill(machine: Machine) -> int:
    """Send until the peer's socket takes no more; return the number of frames."""
    posted = 0
    for _ in range(4000):
        if posted - sent(machine) == RING:
            break
        send(machine, posted)
        posted += 1
    assert posted - sent(machine) == RING, "the peer's socket never became full"
    return posted


def test_a_doorbell_returns_although_the_peer_does_not_read(
        start, in_folder) -> None:  # noqa: F811
    machine, cable = connected(start)
    start_port(machine)
    posted = fill(machine)
    assert posted > 2 * RING
    # The machine still answers register reads and its monitor.
    assert machine.read32(PORT0) >> 8 != 0
    assert machine.ask("query-status")["status"] == "running"
    for number in range(posted):
        assert struct.unpack("!I", cable.frame()[14:18])[0] == number
    machine.wait(lambda: sent(machine) == posted, "not all frames were sent")
    send(machine, posted)
    assert struct.unpack("!I", cable.frame()[14:18])[0] == posted


def test_the_next_connection_begins_with_a_whole_frame(start, in_folder) -> None:  # noqa: F811
    machine, cable = connected(start)
    start_port(machine)
    posted = fill(machine)
    cable.socket.shutdown(socket.SHUT_RDWR)
    cable.socket.close()
    machine.wait(lambda: sent(machine) == posted, "unsent frames were not dropped")
    # The next connection begins with a whole frame, not with the rest of one.
    cable = Cable(machine)
    send(machine, posted)
    assert struct.unpack("!I", cable.frame()[14:18])[0] == posted


def test_a_frame_is_dropped_while_no_peer_is_connected(start, in_folder) -> None:  # noqa: F811
    machine = start(*STREAM)
    start_port(machine)
    send(machine, 0)
    machine.wait(lambda: sent(machine) == 1, "the frame was not dropped")
    assert machine.ask("query-status")["status"] == "running"


def test_frames_are_dropped_on_a_cable_that_was_plugged_without_a_peer(
        start, in_folder) -> None:  # noqa: F811
    machine = start(*STREAM)
    start_port(machine)
    for plugged in (False, True):
        machine.ask("set_link", name="s", up=plugged)
    machine.wait(lambda: machine.read32(PORT0 + 0x18) & 1 == 1, "link")
    send(machine, 0)
    machine.wait(lambda: sent(machine) == 1, "the frame was not dropped")
    cable = Cable(machine)
    send(machine, 1)
    assert struct.unpack("!I", cable.frame()[14:18])[0] == 1


def numbers_until_quiet(cable: Cable) -> list[int]:
    """Read frames until none has come for a second; return their numbers."""
    numbers = []
    cable.socket.settimeout(1)
    with contextlib.suppress(TimeoutError):
        while True:
            numbers.append(struct.unpack("!I", cable.frame()[14:18])[0])
    cable.socket.settimeout(30)
    return numbers


def test_a_delayed_frame_that_waits_for_room_is_sent_after_a_stop(
        start, in_folder) -> None:  # noqa: F811
    machine, cable = connected(start)
    start_port(machine)
    machine.ask("qom-set", path="/machine/faults", property="add",
                value="id=1 site=wire do=delay argument=1000000 nth=1")
    fill(machine)
    machine.do("clock_step 2000000")    # now frame 0 is due, and there is no room
    machine.write32(PORT0 + 0x10, 0)    # no other frame is sent from now on
    machine.ask("stop")
    assert 0 not in numbers_until_quiet(cable)
    machine.ask("cont")
    assert struct.unpack("!I", cable.frame()[14:18])[0] == 0
