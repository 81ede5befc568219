# SPDX-License-Identifier: BSD-2-Clause
"""A cable that is a stream socket, as `essd` and `essd conform` have it: whatever
its other end does, the machine goes on (qemu-patches/0006 and 0007).
"""

import socket
import struct

from test_port_media import (  # noqa: F401
    DRAM, MAC, PORT0, Machine, medium, qemu, start, start_port)

LEN = 1514
RING = 4
STREAM = ("-machine", "port0-netdev=s", "-netdev",
          "stream,id=s,server=on,addr.type=unix,addr.path=m0/cable")


def is_listening(machine: Machine) -> bool:
    """Whether port 0's cable has no other end, as the monitor shows it.

    QEMU now and then loses the event NETDEV_STREAM_CONNECTED on a loaded machine.
    """
    network = machine.ask("human-monitor-command", **{"command-line": "info network"})
    return "type=stream,listening" in network


class Cable:
    """The other end of port 0: it connects, and reads only when it is told to."""

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
            assert more, "the cable is gone"
            data += more
        return data


def connected(start) -> tuple[Machine, Cable]:  # noqa: F811
    machine = start(*STREAM)
    return machine, Cable(machine)


def sent(machine: Machine) -> int:
    return struct.unpack("<I", machine.read(0x200c0, 4))[0]


def send(machine: Machine, number: int) -> None:
    """Frame `number`, which its bytes tell."""
    slot = number % RING
    at = 0x50000 + 0x1000 * slot
    machine.write(at, MAC + MAC + b"\x88\xb5" + struct.pack("!I", number)
                  + bytes(LEN - 18))
    machine.write(0x22000 + 16 * slot, struct.pack("<QII", DRAM + at, LEN, 0))
    machine.write(0x20080, struct.pack("<I", number + 1))
    machine.write32(PORT0 + 0x120, 1)


def fill(machine: Machine) -> int:
    """Send until nothing more leaves. @return frames posted"""
    posted = 0
    for _ in range(4000):
        if posted - sent(machine) == RING:
            break
        send(machine, posted)
        posted += 1
    assert posted - sent(machine) == RING, "the peer's buffer has no end"
    return posted


def test_peer_that_does_not_read_stops_no_doorbell(
        start, tmp_path, monkeypatch) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    machine, cable = connected(start)
    start_port(machine)
    posted = fill(machine)
    assert posted > 2 * RING
    # The doorbell came back, and so does everything else.
    assert machine.read32(PORT0) >> 8 != 0
    assert machine.ask("query-status")["status"] == "running"
    for number in range(posted):
        assert struct.unpack("!I", cable.frame()[14:18])[0] == number
    machine.wait(lambda: sent(machine) == posted, "all are sent")
    send(machine, posted)
    assert struct.unpack("!I", cable.frame()[14:18])[0] == posted


def test_peer_that_goes_in_the_middle_of_a_frame_holds_up_nobody(
        start, tmp_path, monkeypatch) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    machine, cable = connected(start)
    start_port(machine)
    posted = fill(machine)
    cable.socket.shutdown(socket.SHUT_RDWR)
    cable.socket.close()
    machine.wait(lambda: sent(machine) == posted, "what it did not take is dropped")
    # The next one begins with a frame, not with the rest of one.
    cable = Cable(machine)
    send(machine, posted)
    assert struct.unpack("!I", cable.frame()[14:18])[0] == posted


def test_frame_before_anybody_has_connected_is_dropped(
        start, tmp_path, monkeypatch) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    machine = start(*STREAM)
    start_port(machine)
    send(machine, 0)
    machine.wait(lambda: sent(machine) == 1, "it is dropped")
    assert machine.ask("query-status")["status"] == "running"
