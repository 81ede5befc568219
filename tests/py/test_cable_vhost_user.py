# SPDX-License-Identifier: BSD-2-Clause
"""A cable of kind vhost-user (docs/decisions/0069): the test is the front-end.

What a front-end does wrong ends its connection, and the machine goes on.
"""

import contextlib
import mmap
import os
import select
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import test_cable_bursts as bursts
from essd.instance.config import VHOST_USER, Config, End, Link
from essd.machine import vm
from test_cable_bursts import Sender, frame, start_port
from test_cable_stream import sent
from test_port_media import Machine, medium, qemu, received, start  # noqa: F401

CABLE = ("-machine", "port0-netdev=v", "-chardev",
         "socket,id=c,server=on,wait=off,path=m0/cable", "-netdev", "vhost-user,id=v,chardev=c")
GUEST, USER = 0x40000000, 0x7f0000000000
SIZE = 64                       # entries of a ring
RING = 0x4000                   # bytes of the memory for each ring
AVAIL, USED = 0x1000, 0x2000
DATA, SLOT = 0x8000, 0x2800
MEMORY = DATA + 2 * SIZE * SLOT
HEADER = 12
NEXT, WRITE = 1, 2
TO_DRIVER, FROM_DRIVER = 0, 1
FEATURES = 1 << 15 | 1 << 29 | 1 << 30 | 1 << 32
PROTOCOL = 1 << 3               # REPLY_ACK
(GET_FEATURES, SET_FEATURES, SET_OWNER, SET_MEM_TABLE, SET_VRING_NUM, SET_VRING_ADDR,
 SET_VRING_BASE, GET_VRING_BASE, SET_VRING_KICK, SET_VRING_CALL, SET_PROTOCOL_FEATURES,
 SET_VRING_ENABLE) = 1, 2, 3, 5, 8, 9, 10, 11, 12, 13, 16, 18


def memory_file() -> int:
    fd = os.memfd_create("guest")
    os.ftruncate(fd, MEMORY)
    return fd


class FrontEnd:
    """A virtual machine with one network card."""

    def __init__(self, machine: Machine, cable: str = "cable") -> None:
        self.socket = machine.connect(cable)
        self.socket.settimeout(30)
        self.fd = memory_file()
        self.memory = mmap.mmap(self.fd, MEMORY)
        self.kick = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2)]
        self.call = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2)]
        self.added = [0, 0]
        self.seen = [0, 0]
        self.kept: list[object] = []    # what the drive has, too

    def send(self, request: int, payload: bytes = b"", *fds: int) -> bytes:
        """Send a message that asks for a reply; return the reply's payload."""
        socket.send_fds(self.socket, [struct.pack("<III", request, 9, len(payload)) + payload],
                        list(fds))
        answer = self.socket.recv(12, socket.MSG_WAITALL)
        if not answer:
            raise EOFError
        number, flags, size = struct.unpack("<III", answer)
        assert (number, flags) == (request, 5)
        return self.socket.recv(size, socket.MSG_WAITALL)

    def share(self) -> None:
        self.send(SET_MEM_TABLE, struct.pack("<II4Q", 1, 0, GUEST, MEMORY, USER, 0), self.fd)

    def start_ring(self, n: int) -> None:
        base = USER + n * RING
        self.send(SET_VRING_NUM, struct.pack("<II", n, SIZE))
        self.send(SET_VRING_BASE, struct.pack("<II", n, 0))
        self.send(SET_VRING_ADDR, struct.pack("<II4Q", n, 0, base, base + USED, base + AVAIL, 0))
        self.send(SET_VRING_CALL, struct.pack("<Q", n), self.call[n])
        self.send(SET_VRING_KICK, struct.pack("<Q", n), self.kick[n])
        self.send(SET_VRING_ENABLE, struct.pack("<II", n, 1))

    def begin(self) -> "FrontEnd":
        # Without REPLY_ACK there are no replies yet.
        self.socket.sendall(struct.pack("<IIIQ", SET_PROTOCOL_FEATURES, 1, 8, PROTOCOL))
        self.send(SET_FEATURES, struct.pack("<Q", FEATURES))
        self.share()
        for n in (TO_DRIVER, FROM_DRIVER):
            self.start_ring(n)
        return self

    def put(self, offset: int, fmt: str, *values: int) -> None:
        struct.pack_into(fmt, self.memory, offset, *values)

    def get(self, offset: int, fmt: str) -> int:
        return int(struct.unpack_from(fmt, self.memory, offset)[0])

    def slot(self, n: int, idx: int) -> int:
        return DATA + (n * SIZE + idx % SIZE) * SLOT

    def add(self, n: int, size: int) -> None:
        """Make a buffer of one descriptor available."""
        idx = self.added[n]
        self.put(n * RING + 16 * (idx % SIZE), "<QIHH", GUEST + self.slot(n, idx), size,
                 WRITE if n == TO_DRIVER else 0, 0)
        self.put(n * RING + AVAIL + 4 + 2 * (idx % SIZE), "<H", idx % SIZE)
        self.added[n] += 1
        self.put(n * RING + AVAIL + 2, "<H", self.added[n] & 0xffff)

    def notify(self, n: int) -> None:
        os.eventfd_write(self.kick[n], 1)

    def offer(self, count: int) -> None:
        for _ in range(count):
            self.add(TO_DRIVER, SLOT)
        self.notify(TO_DRIVER)

    def transmit(self, *frames: bytes) -> None:
        for data in frames:
            at = self.slot(FROM_DRIVER, self.added[FROM_DRIVER]) + HEADER
            self.memory[at:at + len(data)] = data
            self.add(FROM_DRIVER, HEADER + len(data))
        self.notify(FROM_DRIVER)

    def used(self, n: int) -> int:
        return self.get(n * RING + USED + 2, "<H")

    def frame(self) -> bytes:
        """The next frame from the drive."""
        idx = self.seen[TO_DRIVER]
        Machine.wait(lambda: self.used(TO_DRIVER) != idx & 0xffff, "no frame has come")
        size = self.get(USED + 4 + 8 * (idx % SIZE) + 4, "<I")
        self.seen[TO_DRIVER] += 1
        at = self.slot(TO_DRIVER, idx)
        return self.memory[at + HEADER:at + size]

    def is_ended(self) -> bool:
        with contextlib.suppress(ConnectionError):
            return self.socket.recv(100) == b""
        return True


@pytest.fixture
def linked(start, tmp_path: Path,  # noqa: F811
           monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[Machine, FrontEnd]]:
    monkeypatch.chdir(tmp_path)

    def new() -> tuple[Machine, FrontEnd]:
        machine = start(*CABLE)
        front_end = FrontEnd(machine).begin()
        start_port(machine)
        return machine, front_end
    return new


def is_alive(machine: Machine) -> bool:
    return machine.ask("query-status")["status"] == "running" and received(machine) >= 0


def test_frames_pass_both_ways_and_wait_for_room(linked) -> None:
    machine, front_end = linked()
    sender = Sender(machine)
    front_end.offer(3)
    sender.put(8)
    machine.write32(bursts.PORT0 + 0x120, 1)
    for number in range(3):
        assert front_end.frame() == frame(number)
    assert select.select([front_end.call[TO_DRIVER]], [], [], 30)[0]
    front_end.offer(SIZE - 3)
    for number in range(3, 8):
        assert front_end.frame() == frame(number)
    machine.wait(lambda: sent(machine) == 8, "not all frames were sent")
    front_end.transmit(*(frame(number) for number in range(20)))
    machine.wait(lambda: received(machine) == 20, "not all frames were received")
    machine.wait(lambda: front_end.used(FROM_DRIVER) == 20, "not all buffers are used")
    at = bursts.RX_DATA + bursts.SLOT * 19
    assert machine.read(at, len(frame(19))) == frame(19)


def test_stopped_machine_answers_messages_and_takes_frames_later(linked) -> None:
    machine, front_end = linked()
    machine.ask("stop")
    front_end.transmit(frame(0), frame(1), frame(2))
    assert len(front_end.send(GET_FEATURES)) == 8
    assert received(machine) == 0
    machine.ask("cont")
    machine.wait(lambda: received(machine) == 3, "frames were lost")


def test_stopped_ring_goes_on_where_it_was(linked) -> None:
    machine, front_end = linked()
    front_end.transmit(frame(0), frame(1))
    machine.wait(lambda: received(machine) == 2, "not all frames were received")
    for n, base in ((TO_DRIVER, 0), (FROM_DRIVER, 2)):
        assert struct.unpack("<II", front_end.send(GET_VRING_BASE, struct.pack("<II", n, 0))) \
            == (n, base)
    front_end.transmit(frame(2))
    front_end.share()
    for n in (TO_DRIVER, FROM_DRIVER):
        front_end.start_ring(n)
    machine.wait(lambda: received(machine) == 3, "the frame was lost")


def test_pulled_cable_loses_frames(linked) -> None:
    machine, front_end = linked()
    machine.ask("set_link", name="v", up=False)
    front_end.transmit(frame(0))
    machine.wait(lambda: front_end.used(FROM_DRIVER) == 1, "the buffer is not used")
    assert received(machine) == 0
    machine.ask("set_link", name="v", up=True)
    front_end.transmit(frame(1))
    machine.wait(lambda: received(machine) == 1, "the frame was lost")


def test_machine_records_frames_of_the_cable(linked) -> None:
    machine, front_end = linked()
    machine.ask("object-add", **{"qom-type": "filter-dump", "id": "d", "netdev": "v",
                                 "file": str(machine.folder / "pcap"), "maxlen": 65536})
    front_end.transmit(frame(7))
    machine.wait(lambda: received(machine) == 1, "the frame was lost")
    machine.ask("object-del", id="d")
    assert frame(7) in (machine.folder / "pcap").read_bytes()


def bad_descriptor(front_end: FrontEnd) -> None:
    front_end.put(RING, "<QIHH", GUEST + MEMORY, 64, 0, 0)
    front_end.put(RING + AVAIL + 2, "<H", 1)
    front_end.notify(FROM_DRIVER)


def bad_index(front_end: FrontEnd) -> None:
    front_end.put(RING + AVAIL + 2, "<H", SIZE + 1)
    front_end.notify(FROM_DRIVER)


def loop(front_end: FrontEnd) -> None:
    front_end.put(RING, "<QIHH", GUEST + DATA, 1, NEXT, 0)
    front_end.put(RING + AVAIL + 2, "<H", 1)
    front_end.notify(FROM_DRIVER)


def no_message(front_end: FrontEnd) -> None:
    front_end.socket.sendall(b"\xff" * 12)


def ring_outside(front_end: FrontEnd) -> None:
    front_end.socket.sendall(struct.pack("<III2I4Q", SET_VRING_ADDR, 1, 40, 0, 0, 16, 0, 0, 0))


def unknown_ring(front_end: FrontEnd) -> None:
    front_end.socket.sendall(struct.pack("<III2I", SET_VRING_NUM, 1, 8, 200, SIZE))


def notification_that_cannot_be_read(front_end: FrontEnd) -> None:
    # An epoll descriptor can be polled, but not read.
    epoll = select.epoll()
    ready = os.eventfd(1)
    epoll.register(ready, select.EPOLLIN)
    message = struct.pack("<IIIQ", SET_VRING_KICK, 1, 8, FROM_DRIVER)
    socket.send_fds(front_end.socket, [message], [epoll.fileno()])
    front_end.kept += [epoll, ready]


@pytest.mark.parametrize("break_rules", (bad_descriptor, bad_index, loop, no_message,
                                         ring_outside, unknown_ring,
                                         notification_that_cannot_be_read),
                         ids=lambda function: str(function.__name__))
def test_broken_rules_end_only_the_connection(linked, break_rules) -> None:
    machine, front_end = linked()
    break_rules(front_end)
    assert front_end.is_ended()
    assert is_alive(machine)
    assert b"the vhost-user connection ends" in machine.errors.read_bytes()
    again = FrontEnd(machine).begin()
    again.transmit(frame(0))
    machine.wait(lambda: received(machine) == 1, "the new connection takes no frames")


def test_half_a_message_holds_up_nobody(linked) -> None:
    machine, front_end = linked()
    front_end.socket.sendall(struct.pack("<II", SET_MEM_TABLE, 1))
    assert is_alive(machine)
    front_end.transmit(frame(0))
    machine.wait(lambda: received(machine) == 1, "the frame was lost")
    front_end.socket.close()
    FrontEnd(machine).begin()
    assert is_alive(machine)


def test_connection_that_ends_takes_waiting_frames_along(linked) -> None:
    machine, front_end = linked()
    sender = Sender(machine)
    front_end.offer(1)
    sender.put(8)
    machine.write32(bursts.PORT0 + 0x120, 1)
    assert front_end.frame() == frame(0)
    front_end.socket.close()
    machine.wait(lambda: sent(machine) == 8, "the port waits for nobody")


@pytest.mark.parametrize("size", (0, RING + AVAIL))
def test_memory_that_is_shortened_ends_only_the_connection(linked, size: int) -> None:
    machine, front_end = linked()
    front_end.transmit(frame(0))
    machine.wait(lambda: received(machine) == 1, "the frame was lost")
    os.ftruncate(front_end.fd, size)
    front_end.notify(FROM_DRIVER)
    assert front_end.is_ended()
    assert b"a page of the guest's memory is not there" in machine.errors.read_bytes()
    assert is_alive(machine)
    FrontEnd(machine).begin().transmit(frame(1))
    machine.wait(lambda: received(machine) == 2, "the new connection takes no frames")


def test_memory_that_is_shortened_before_frames_for_the_driver(linked) -> None:
    machine, front_end = linked()
    front_end.offer(3)
    os.ftruncate(front_end.fd, DATA)
    Sender(machine).post(1)
    assert front_end.is_ended()
    assert is_alive(machine)


def test_memory_in_an_ordinary_file_is_refused(start, tmp_path: Path,  # noqa: F811
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    machine = start(*CABLE)
    front_end = FrontEnd(machine)
    with open("/proc/self/exe", "rb") as file, pytest.raises(EOFError):
        front_end.fd = file.fileno()
        front_end.begin()
    assert b"the guest's memory cannot be shared" in machine.errors.read_bytes()
    assert is_alive(machine)
    FrontEnd(machine).begin()


def test_frames_that_wait_are_not_for_the_next_driver(linked) -> None:
    machine, front_end = linked()
    sender = Sender(machine)
    front_end.offer(1)
    sender.put(8)
    machine.write32(bursts.PORT0 + 0x120, 1)
    assert front_end.frame() == frame(0)
    # The host restarts: its front-end stops the rings, and a new driver starts them.
    for n in (TO_DRIVER, FROM_DRIVER):
        front_end.send(GET_VRING_BASE, struct.pack("<II", n, 0))
    machine.wait(lambda: sent(machine) == 8, "the port waits for nobody")
    front_end.memory[:] = bytes(MEMORY)
    front_end.added, front_end.seen = [0, 0], [0, 0]
    for n in (TO_DRIVER, FROM_DRIVER):
        front_end.start_ring(n)
    front_end.offer(SIZE)
    sender.post(1)
    assert front_end.frame() == frame(8)


def test_removed_cable_ends_its_connection(start, tmp_path: Path,  # noqa: F811
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    machine = start("-chardev", "socket,id=d,server=on,wait=off,path=m0/other")
    for _ in range(10):
        machine.ask("netdev_add", type="vhost-user", id="w", chardev="d")
        front_end = FrontEnd(machine, "other").begin()
        # The messages' bottom half may still be scheduled when the cable is removed.
        front_end.socket.sendall(struct.pack("<III2I", SET_VRING_ENABLE, 1, 8, 0, 1) * 20)
        machine.ask("netdev_del", id="w")
        assert front_end.is_ended()
        assert is_alive(machine)


def test_host_shares_its_memory_only_with_such_cables() -> None:
    link = Link(0, ["10.0.0.10/24"], ends=[End("drive", 0), End("host", 0)], kind=VHOST_USER)
    assert link.is_shared and link.listens("drive")
    words = " ".join(vm.card("02:00:00:00:00:01", link, Path("/f"), "host"))
    assert "-chardev socket,id=vhost0,reconnect=1,path=/f/port0.sock" in words
    assert "-netdev vhost-user,id=cable0,chardev=vhost0" in words and "vectors=0" in words
    kept = Config.from_json(Config("c", "", "tcg", [link]).to_json())
    assert kept.links == [link]
    # This text is the same without a drive.
    assert vm.cables_connected("cable0: index=0,type=vhost-user,vhost-user0 to vhost0\r\n") \
        == {}
