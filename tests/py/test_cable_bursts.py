# SPDX-License-Identifier: BSD-2-Clause
"""Bursts of frames on a cable that is a stream socket (qemu-patches/0008).

Frames stay whole and in order, in whatever pieces the peer reads or writes them, and
when the machine stops or the connection ends in the middle of a frame.
"""

import fcntl
import itertools
import socket
import struct
import termios

from test_cable_stream import Cable, connected, in_folder, sent  # noqa: F401
from test_port_media import (  # noqa: F401
    DRAM, MAC, PORT0, Machine, medium, qemu, received, start)

MTU = 9000
LEN = 14 + MTU
TX_RING, RX_RING = 16, 256
SLOT = 0x2400
RX_TABLE, TX_TABLE, RX_DATA, TX_DATA = 0x100000, 0x110000, 0x200000, 0x600000
HEADER = MAC + MAC + b"\x88\xb5"


def start_port(machine: Machine) -> None:
    """Start port 0 with jumbo frames, and with rings that hold a burst."""
    machine.write(0x20000, bytes(0x180))
    machine.write(RX_TABLE, b"".join(
        struct.pack("<QII", DRAM + RX_DATA + SLOT * i, SLOT, 0).ljust(32, b"\0")
        for i in range(RX_RING)))
    machine.write_address(PORT0 + 0x100, 0x20000)
    machine.write_address(PORT0 + 0x108, RX_TABLE)
    machine.write_address(PORT0 + 0x110, TX_TABLE)
    for offset, value in ((0x118, 8 | 4 << 8), (0x14, MTU), (0x11c, 1),
                          (0x40, 0x22334455), (0x44, 0x80000211), (0x10, 3),
                          (0x1c, 25000 << 8 | 1 << 4 | 1)):
        machine.write32(PORT0 + offset, value)
    assert machine.read32(PORT0 + 0x11c) == 1


def frame(number: int, size: int = LEN) -> bytes:
    """A frame whose words contain the frame's number and their own position."""
    words = struct.pack(f"!{(size - 14) // 4 + 1}I",
                        *(number << 16 | i for i in range((size - 14) // 4 + 1)))
    return (HEADER + words)[:size]


class Sender:
    """Sends numbered frames from the drive, in bursts of up to 16."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.posted = 0

    def asleep(self) -> bool:
        return self.machine.read(0x20100, 4) != bytes(4)

    def put(self, count: int) -> None:
        """Put frames into the ring, without a doorbell."""
        machine = self.machine
        for number in range(self.posted, self.posted + count):
            at = TX_DATA + SLOT * (number % TX_RING)
            machine.write(at, frame(number))
            machine.write(TX_TABLE + 16 * (number % TX_RING),
                          struct.pack("<QII", DRAM + at, LEN, 0))
        self.posted += count
        machine.write(0x20080, struct.pack("<I", self.posted))

    def post(self, count: int) -> None:
        """Send with one doorbell; return when all have left, or the link is blocked."""
        machine = self.machine
        self.put(count)
        machine.write32(PORT0 + 0x120, 1)
        machine.wait(lambda: sent(machine) == self.posted or not self.asleep(),
                     "the port did not read the doorbell")

    def fill(self) -> None:
        """Send bursts until the peer's socket takes no more."""
        for _ in range(400):
            self.post(TX_RING)
            if sent(self.machine) < self.posted:
                return
        raise AssertionError("the peer's socket never became full")


def unread(cable: Cable) -> int:
    return struct.unpack("i", fcntl.ioctl(cable.socket, termios.FIONREAD, bytes(4)))[0]


def filled(start) -> tuple[Machine, Cable, Sender, int]:  # noqa: F811
    """Fill the peer's socket, so that it ends in the middle of a frame.

    The last value returned is the number of the first unread frame, which is whole.
    """
    machine, cable = connected(start)
    start_port(machine)
    sender = Sender(machine)
    sender.post(3)
    sender.fill()
    first = 0
    while unread(cable) % (4 + LEN) == 0:
        assert first < 1000, "the socket takes whole bursts only"
        assert cable.frame() == frame(first)
        first += 1
        machine.ask("query-status")
        if sent(machine) == sender.posted:
            sender.fill()
    return machine, cable, sender, first


def test_a_peer_that_reads_in_pieces_gets_whole_frames(start, in_folder) -> None:  # noqa: F811
    machine, cable, sender, number = filled(start)
    pieces = itertools.cycle((1, 3, 4, 1000, 9017, 9018, 9019, 40000))
    got, end = b"", sender.posted + 100
    while number < end:
        got += cable.socket.recv(next(pieces))
        while len(got) >= 4 + LEN:
            assert got[:4 + LEN] == struct.pack("!I", LEN) + frame(number)
            got = got[4 + LEN:]
            number += 1
        if sender.posted < end and sent(machine) == sender.posted:
            sender.post(min(TX_RING, end - sender.posted))
    assert (got, sent(machine)) == (b"", end)


def test_a_machine_that_stops_in_the_middle_of_a_frame_sends_the_rest_of_it(
        start, in_folder) -> None:  # noqa: F811
    machine, cable, sender, first = filled(start)
    begun = first + unread(cable) // (4 + LEN)
    machine.ask("stop")
    # QEMU drops frames that wait and of which no byte was sent: one frame at most.
    for number in range(first, begun + 1):
        assert cable.frame() == frame(number)
    machine.ask("cont")
    machine.wait(lambda: sent(machine) == sender.posted, "all are sent")
    assert unread(cable) % (4 + LEN) == 0
    numbers = range(sender.posted - unread(cable) // (4 + LEN), sender.posted)
    assert numbers[0] in (begun + 1, begun + 2)
    for number in numbers:
        assert cable.frame() == frame(number)


def test_the_rest_of_a_frame_is_sent_when_its_cable_is_pulled(
        start, in_folder) -> None:  # noqa: F811
    machine, cable, sender, first = filled(start)
    begun = first + unread(cable) // (4 + LEN)
    machine.ask("set_link", name="s", up=False)
    for number in range(first, begun + 1):
        assert cable.frame() == frame(number)
    machine.wait(lambda: sent(machine) == sender.posted, "the others are dropped")
    machine.ask("set_link", name="s", up=True)
    machine.wait(lambda: machine.read32(PORT0 + 0x18) & 1 == 1, "link")
    sender.post(1)
    assert cable.frame() == frame(sender.posted - 1)


def test_frames_from_before_a_cable_was_pulled_are_not_sent_after_it(
        start, in_folder) -> None:  # noqa: F811
    machine, cable, sender, first = filled(start)
    begun = first + unread(cable) // (4 + LEN)
    machine.ask("set_link", name="s", up=False)
    machine.wait(lambda: sent(machine) == sender.posted, "the others are dropped")
    machine.ask("set_link", name="s", up=True)
    machine.wait(lambda: machine.read32(PORT0 + 0x18) & 1 == 1, "link")
    sender.post(1)
    for number in range(first, begun + 1):
        assert cable.frame() == frame(number)
    # QEMU's queue may have kept one frame.
    found = cable.frame()
    if found == frame(begun + 1):
        found = cable.frame()
    assert found == frame(sender.posted - 1)


def test_a_burst_is_dropped_when_its_peer_disconnects(start, in_folder) -> None:  # noqa: F811
    machine, cable, sender, _ = filled(start)
    cable.socket.shutdown(socket.SHUT_RDWR)
    cable.socket.close()
    machine.wait(lambda: sent(machine) == sender.posted, "the others are dropped")
    cable = Cable(machine)
    sender.post(TX_RING)
    for number in range(sender.posted - TX_RING, sender.posted):
        assert cable.frame() == frame(number)


class Receiver:
    """Makes numbered frames of many sizes, and checks that the drive received them."""

    SIZES = (60, 61, 1514, 64, LEN, 100)

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.made = self.seen = 0

    def one(self) -> bytes:
        number, self.made = self.made, self.made + 1
        data = frame(number, self.SIZES[number % len(self.SIZES)])
        return struct.pack("!I", len(data)) + data

    def many(self, count: int) -> bytes:
        return b"".join(self.one() for _ in range(count))

    def check(self) -> None:
        """Check that the drive received every frame made so far, and no other."""
        machine = self.machine
        machine.wait(lambda: received(machine) >= self.made, "frames")
        assert received(machine) == self.made
        for number in range(self.seen, self.made):
            size = self.SIZES[number % len(self.SIZES)]
            assert machine.read(RX_DATA + SLOT * (number % RX_RING),
                                size) == frame(number, size)
        self.seen = self.made
        machine.write(0x20040, struct.pack("<I", self.seen))


def receiving(start) -> tuple[Machine, Cable, Receiver]:  # noqa: F811
    machine, cable = connected(start)
    start_port(machine)
    return machine, cable, Receiver(machine)


def test_frames_are_received_in_whatever_pieces_they_arrive(
        start, in_folder) -> None:  # noqa: F811
    machine, cable, receiver = receiving(start)
    cable.socket.sendall(receiver.many(200))
    receiver.check()
    # A length of 0 between frames: it is skipped.
    cable.socket.sendall(receiver.many(2) + bytes(4) + receiver.many(2))
    receiver.check()
    data = receiver.many(100)
    sizes = itertools.cycle((1, 2, 63, 64, 65, 1515, 9018, 30000))
    while data:
        size = next(sizes)
        cable.socket.sendall(data[:size])
        # Wait until QEMU has read this piece, so that it does not join the next one.
        machine.wait(lambda: unsent(cable) == 0, "read")
        data = data[size:]
    receiver.check()


def unsent(cable: Cable) -> int:
    """The number of bytes that QEMU has not read yet."""
    return struct.unpack("i", fcntl.ioctl(cable.socket, termios.TIOCOUTQ, bytes(4)))[0]


def test_frames_that_arrive_while_the_machine_is_stopped_are_received_later(
        start, in_folder) -> None:  # noqa: F811
    machine, cable, receiver = receiving(start)
    cable.socket.sendall(receiver.many(3))
    receiver.check()
    machine.ask("stop")
    data = receiver.many(100)
    cable.socket.settimeout(0.2)
    count = cable.socket.send(data)
    assert received(machine) == 3
    machine.ask("cont")
    cable.socket.settimeout(30)
    cable.socket.sendall(data[count:])
    receiver.check()


def test_a_length_that_no_frame_has_ends_the_connection_after_the_earlier_frames(
        start, in_folder) -> None:  # noqa: F811
    machine, cable, receiver = receiving(start)
    cable.socket.sendall(receiver.many(5) + struct.pack("!I", 0x10000000) + b"x" * 100)
    receiver.check()
    assert cable.socket.recv(1) == b""
    cable = Cable(machine)
    cable.socket.sendall(receiver.many(5))
    receiver.check()


def test_half_a_frame_is_forgotten_when_its_connection_ends(
        start, in_folder) -> None:  # noqa: F811
    machine, cable, receiver = receiving(start)
    cable.socket.sendall(receiver.many(1) + struct.pack("!I", 1514) + b"x" * 100)
    cable.socket.close()
    receiver.check()
    cable = Cable(machine)
    cable.socket.sendall(receiver.many(5))
    receiver.check()


