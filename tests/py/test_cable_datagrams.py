# SPDX-License-Identifier: BSD-2-Clause
"""Bursts of frames on a cable that is a datagram socket (qemu-patches/0019).

The kernel of a user-mode Linux is at the other end of such a socket, and a hub joins it
with the stream socket of its cable.  All frames arrive, and in order, whatever the other
ends take.
"""

import fcntl
import json
import socket
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_cable_bursts import TX_RING, Receiver, Sender, frame, start_port
from test_cable_stream import sent
from test_port_media import Machine, medium, qemu, received, start  # noqa: F401

SIZES = (60, 61, 1514, 64, 9014, 100)


def test_datagrams_of_many_sizes_are_received(start) -> None:  # noqa: F811
    machine = start()
    start_port(machine)
    receiver = Receiver(machine)
    for count in (1, 200, 64, 65, 130):
        for _ in range(count):
            machine.cable.sendto(receiver.one()[4:], str(machine.folder / "near"))
        receiver.check()


def test_datagrams_that_arrive_while_the_machine_is_stopped_are_received_later(
        start) -> None:  # noqa: F811
    machine = start()
    start_port(machine)
    receiver = Receiver(machine)
    machine.ask("stop")
    count = 0
    machine.cable.setblocking(False)
    data = receiver.one()[4:]
    try:
        while True:
            machine.cable.sendto(data, str(machine.folder / "near"))
            count += 1
            data = receiver.one()[4:]
    except BlockingIOError:
        assert count > 1
    machine.cable.settimeout(30)
    assert received(machine) == 0
    machine.ask("cont")
    machine.cable.sendto(data, str(machine.folder / "near"))
    receiver.check()


def test_a_burst_that_the_socket_does_not_take_at_once_arrives_in_order(
        start) -> None:  # noqa: F811
    machine = start()
    start_port(machine)
    sender = Sender(machine)
    sender.fill()               # The socket is full, and nobody reads it.
    for number in range(sender.posted):
        assert machine.cable.recv(1 << 16) == frame(number)
    machine.wait(lambda: sent(machine) == sender.posted, "all are sent")
    sender.post(TX_RING)
    for number in range(sender.posted - TX_RING, sender.posted):
        assert machine.cable.recv(1 << 16) == frame(number)


class Hub:
    """A QEMU without a machine, whose hub joins a stream socket and a datagram socket."""

    def __init__(self, qemu: Path, folder: Path) -> None:  # noqa: F811
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.datagrams = ours
        with theirs:
            self.process = subprocess.Popen(
                [qemu, "-nodefaults", "-display", "none", "-M", "none", "-netdev",
                 f"stream,id=cable,server=on,addr.type=unix,addr.path={folder}/cable",
                 "-netdev", f"dgram,id=card,local.type=fd,local.str={theirs.fileno()}",
                 "-netdev", "hubport,id=h0,hubid=0,netdev=cable",
                 "-netdev", "hubport,id=h1,hubid=0,netdev=card",
                 "-qmp", f"unix:{folder}/qmp,server=on,wait=off"],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.dial(folder)
        except BaseException:
            self.end()
            raise

    def dial(self, folder: Path) -> None:
        self.stream = self.connected(folder / "cable")
        self.qmp = self.connected(folder / "qmp").makefile("rw")
        json.loads(self.qmp.readline())
        self.ask("qmp_capabilities")
        for one in (self.stream, self.datagrams):
            one.settimeout(30)
        # The hub knows the connection before anything is sent to it.  Until then, the
        # netdev is "initializing" or "listening", and drops what it gets.
        Machine.wait(lambda: f"unix:{folder}/cable" in self.ask(
            "human-monitor-command", **{"command-line": "info network"}), "accepted")

    def end(self) -> None:
        self.process.kill()
        self.process.wait(30)
        self.datagrams.close()

    def connected(self, path: Path) -> socket.socket:
        found = socket.socket(socket.AF_UNIX)
        Machine.wait(lambda: found.connect_ex(str(path)) == 0, path.name)
        return found

    def ask(self, command: str, **arguments: object):
        self.qmp.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.qmp.flush()
        while True:
            answer = json.loads(self.qmp.readline())
            if "event" not in answer:
                assert "return" in answer, (command, answer)
                return answer["return"]

    def stream_frame(self) -> bytes:
        size, = struct.unpack("!I", self.read(4))
        return self.read(size)

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self.stream.recv(size - len(data))
        return data


@pytest.fixture
def hub(qemu: Path, tmp_path: Path,  # noqa: F811
        monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.chdir(tmp_path)
    made = Hub(qemu, Path("."))
    yield made
    made.end()
    made.stream.close()


def sized(number: int) -> bytes:
    return frame(number, SIZES[number % len(SIZES)])


def pass_on(hub: Hub, first: int, end: int) -> None:
    """All frames of these numbers arrive in order.

    They are read while others are sent: the two sockets do not take them all, and less if
    the hub passes on each frame by itself.
    """
    count = made = first
    hub.datagrams.setblocking(False)
    while count < end:
        try:
            while made < end:
                hub.datagrams.send(sized(made))
                made += 1
        except BlockingIOError:
            pass
        for _ in range(min(50, made - count)):
            assert hub.stream_frame() == sized(count)
            count += 1


def test_a_hub_passes_bursts_from_datagrams_to_a_stream(hub: Hub) -> None:
    """The socket of the stream is full many times."""
    pass_on(hub, 0, 3000)


def test_a_hub_passes_bursts_from_a_stream_to_datagrams(hub: Hub) -> None:
    """The datagram socket is full many times."""
    count, made, left = 0, 0, b""
    hub.stream.setblocking(False)
    while count < 3000:
        try:
            while left or made < 3000:
                if not left:
                    left = struct.pack("!I", len(sized(made))) + sized(made)
                    made += 1
                left = left[hub.stream.send(left):]
        except BlockingIOError:
            pass
        for _ in range(min(50, made - (1 if left else 0) - count)):
            assert hub.datagrams.recv(1 << 16) == sized(count)
            count += 1


def test_a_hub_drops_bursts_while_the_cable_is_pulled(hub: Hub) -> None:
    hub.ask("set_link", name="cable", up=False)
    for number in range(100):
        hub.datagrams.send(sized(number))
    Machine.wait(lambda: not pending(hub), "read and dropped")
    hub.ask("set_link", name="cable", up=True)
    pass_on(hub, 100, 200)


def pending(hub: Hub) -> int:
    """Bytes that QEMU has not read from the datagram socket."""
    return struct.unpack("i", fcntl.ioctl(hub.datagrams, termios.TIOCOUTQ, bytes(4)))[0]
