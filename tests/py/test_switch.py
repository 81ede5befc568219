# SPDX-License-Identifier: BSD-2-Clause
"""essd-switch with stream sockets instead of drives and hosts."""

import contextlib
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from switch_bed import (
    BROADCAST, FRAME_MAX, WAIT_S, Control, Peer, Switch, frame, mac, running, tagged,
    wait_until, wire)

from essd.build import native_build

LLDP, PAUSE = b"\x01\x80\xc2\0\0\x0e", b"\x01\x80\xc2\0\0\x01"
Start = Callable[..., Switch]


@pytest.fixture(scope="session")
def program() -> Path:
    """The switch with sanitizers."""
    return native_build.native_program("native", "tools/switch/essd-switch", "the switch")


@pytest.fixture
def start(program: Path, tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda *ports, **more: stack.enter_context(
            running(program, tmp_path, *ports, **more))


def run(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], check=False, text=True, capture_output=True,
                          timeout=60)


def test_a_frame_to_an_unknown_address_goes_to_all_other_ports(start: Start) -> None:
    a, b, c = start("", "", "").connect_all(3)
    a.send(frame(mac(2), mac(1)))
    assert b.receive() == c.receive() == frame(mac(2), mac(1))
    assert a.hears_nothing()


def test_a_comma_in_a_path_is_written_twice(start: Start, tmp_path: Path) -> None:
    switch = start(f"listen={tmp_path}/a,,b,,,,c,name=x", f"listen={tmp_path}/d,,,name=y", "")
    for number, (name, file) in enumerate((("x", "a,b,,c"), ("y", "d,"))):
        assert switch.port(number)["name"] == name
        assert (tmp_path / file).is_socket()


def test_a_frame_to_a_known_address_goes_to_its_port_alone(start: Start) -> None:
    switch = start("", "", "")
    a, b, c = switch.connect_all(3)
    b.send(frame(BROADCAST, mac(2)))
    assert a.receive() == c.receive()
    a.send(frame(mac(2), mac(1)))
    assert b.receive() == frame(mac(2), mac(1))
    assert c.hears_nothing()
    macs = switch.control.ask("macs")["macs"]
    assert sorted((m["mac"], m["port"], m["vlan"]) for m in macs) == [
        ("02:00:00:00:00:01", 0, 1), ("02:00:00:00:00:02", 1, 1)]


# VLANs, link-local frames

def test_vlans_separate_ports_and_a_trunk_tags(start: Start) -> None:
    a, b, trunk = start("vlan=10", "vlan=20", "trunk=10+20,native=30").connect_all(3)
    a.send(frame(BROADCAST, mac(1)))
    assert trunk.receive() == tagged(frame(BROADCAST, mac(1)), 10)
    trunk.send(tagged(frame(BROADCAST, mac(3)), 20, priority=5))
    assert b.receive() == frame(BROADCAST, mac(3))
    assert a.hears_nothing()
    assert b.hears_nothing()


@pytest.mark.parametrize(("setting", "passes"), [("drop", False), ("forward", True)])
def test_lldp_is_forwarded_only_on_request(start: Start, setting: str, passes: bool) -> None:
    switch = start("", "", options=("--link-local", setting))
    a, b = switch.connect_all(2)
    a.send(frame(LLDP, mac(1), b"\x88\xcc"), frame(PAUSE, mac(1)), frame(BROADCAST, mac(1)))
    expected = [frame(LLDP, mac(1), b"\x88\xcc")] if passes else []
    for data in [*expected, frame(BROADCAST, mac(1))]:
        assert b.receive() == data
    assert b.hears_nothing()
    assert switch.counter(0, "rx_link_local") == (1 if passes else 2)
    switch.control.ask("set link-local=drop")
    a.send(frame(LLDP, mac(1)))
    assert b.hears_nothing()


# Back-pressure

def fill(peer: Peer, make: Callable[[int], bytes]) -> int:
    """Send until nothing more is taken for a while; return how many frames."""
    peer.socket.settimeout(1)
    data, sent = bytearray(), 0
    try:
        while True:
            if not data:
                data += wire(make(sent))
            del data[:peer.socket.send(data)]
            sent += not data
            assert sent < 100000, "there is no back-pressure"
    except TimeoutError:
        pass
    finally:
        peer.socket.settimeout(WAIT_S)
        peer.rest = bytes(data)         # of the frame that was begun
    return sent + bool(data)


def numbered(dst: int, src: int, number: int, size: int = 1000) -> bytes:
    return frame(mac(dst), mac(src), struct.pack("!I", number), size)


def number_of(data: bytes) -> int:
    return struct.unpack_from("!I", data, 14)[0]


def learn(peers: list[Peer]) -> None:
    """Station n is at port n from now on."""
    for number, peer in enumerate(peers):
        peer.send(frame(mac(99), mac(number)))
        for other in peers:
            if other is not peer:
                other.receive()


def test_a_reader_that_stalls_loses_nothing_and_stops_no_others(start: Start) -> None:
    switch = start("", "", "", "")
    peers = switch.connect_all(4)
    learn(peers)
    memory = switch.memory_kib()
    sent = fill(peers[0], lambda n: numbered(1, 0, n))
    assert switch.port(0)["paused"]
    # The others, to whom the one that waits does not send.
    for number in range(2000):
        peers[2].send(numbered(3, 2, number, 4200))
        assert number_of(peers[3].receive()) == number
    before = switch.cpu_s()
    time.sleep(0.5)
    assert switch.cpu_s() - before <= 0.02, "a paused port costs CPU time"
    assert switch.memory_kib() - memory < 8192
    assert switch.port(1)["queued_bytes"] > 900_000
    # Now it reads: everything is there, in order.
    thread = threading.Thread(target=peers[0].socket.sendall, args=(peers[0].rest,))
    thread.start()
    for number in range(sent):
        assert number_of(peers[1].receive()) == number
    thread.join(WAIT_S)
    assert peers[1].hears_nothing()
    counters = switch.port(1)["counters"]
    assert counters["tx_full"] == counters["tx_stalled"] == 0
    assert counters["tx_frames"] == sent + 3


def test_many_frames_in_both_directions_are_whole_and_in_order(start: Start) -> None:
    switch = start("", "")
    a, b = switch.connect_all(2)
    learn([a, b])
    count, rng = 5000, random.Random(5)
    sizes = [rng.choice((60, 64, 1000, 1514, 4200, 9018)) for _ in range(count)]

    def sender(peer: Peer, dst: int, src: int) -> threading.Thread:
        data = b"".join(wire(numbered(dst, src, n, size)) for n, size in enumerate(sizes))

        def send() -> None:
            view, at, pieces = memoryview(data), 0, random.Random(src)
            while at < len(data):
                at += peer.socket.send(view[at:at + pieces.choice((1, 3, 5000, 200000))])
        thread = threading.Thread(target=send)
        thread.start()
        return thread

    def check(peer: Peer, dst: int, src: int) -> None:
        for number, size in enumerate(sizes):
            assert peer.receive() == numbered(dst, src, number, size)

    threads = [sender(a, 1, 0), sender(b, 0, 1)]
    reader = threading.Thread(target=check, args=(b, 1, 0))
    reader.start()
    check(a, 0, 1)
    for thread in (*threads, reader):
        thread.join(WAIT_S)
        assert not thread.is_alive()
    assert switch.counter(1, "tx_frames") == count + 1


def test_with_full_drop_a_stalled_port_drops_and_the_sender_goes_on(start: Start) -> None:
    sent = 20000        # more than the queue and the socket's buffer hold together
    switch = start("", "full=drop")
    peers = switch.connect_all(2)
    learn(peers)
    for number in range(sent):
        peers[0].send(numbered(1, 0, number))
    wait_until(lambda: switch.counter(0, "rx_frames") == sent + 1, "all frames taken")
    counters = switch.port(1)["counters"]
    assert counters["tx_full"] > 500
    got = sent - counters["tx_full"]
    numbers = [number_of(peers[1].receive()) for _ in range(got)]
    assert numbers == sorted(numbers)
    assert peers[1].hears_nothing()


def test_a_stalled_port_drops_after_the_time_that_is_set(start: Start) -> None:
    switch = start("", "stall=300ms", "")
    peers = switch.connect_all(3)
    learn(peers)
    for number in range(4000):
        peers[0].send(numbered(1, 0, number))       # blocks once, for 300 ms
    peers[0].send(numbered(2, 0, 1))
    assert number_of(peers[2].receive()) == 1
    assert switch.counter(1, "tx_stalled") > 500


# Loss, delay, speed

def test_losses_are_those_of_the_seed(start: Start) -> None:
    switch = start("", "", "")
    peers = switch.connect_all(3)
    learn(peers)
    switch.control.ask("set port=1 loss-out=0.2")

    def losses() -> list[int]:
        came = []
        for number in range(1000):
            peers[0].send(numbered(1, 0, number, 60))
        peers[0].send(numbered(2, 0, 0, 60))
        peers[2].receive()
        lost = switch.counter(1, "tx_lost")
        switch.control.ask("reset port=1")
        came = [number_of(peers[1].receive()) for _ in range(1000 - lost)]
        return sorted(set(range(1000)) - set(came))

    switch.control.ask("reset")
    switch.control.ask("set port=1 seed=7")
    first = losses()
    assert 140 < len(first) < 260
    switch.control.ask("set port=1 seed=7")
    assert losses() == first
    switch.control.ask("set port=1 seed=8")
    assert losses() != first
    switch.control.ask("set port=1 loss=0")
    assert losses() == []


def test_a_cable_delays_by_its_time_and_keeps_the_order(start: Start) -> None:
    switch = start("delay-in=30ms", "delay-out=40ms,jitter-out=20ms")
    peers = switch.connect_all(2)
    learn(peers)
    times = []
    for number in range(20):
        begin = time.monotonic()
        peers[0].send(numbered(1, 0, number, 60))
        assert number_of(peers[1].receive()) == number
        times.append(time.monotonic() - begin)
    assert min(times) >= 0.07
    assert max(times) < 2
    assert max(times) - min(times) > 0.003
    peers[0].send(*(numbered(1, 0, number, 60) for number in range(500)))
    assert [number_of(data) for data in peers[1].frames(500)] == list(range(500))
    before = switch.cpu_s()
    time.sleep(0.5)
    assert switch.cpu_s() - before <= 0.02


def test_a_cable_of_a_speed_carries_no_more(start: Start) -> None:
    switch = start("", "speed-out=10M")
    peers = switch.connect_all(2)
    learn(peers)
    begin = time.monotonic()
    peers[0].send(*(numbered(1, 0, number, 1226) for number in range(200)))
    peers[1].frames(200)
    # 200 times 1250 bytes are 2 Mbit.
    assert 0.19 < time.monotonic() - begin < 3


def test_a_slow_output_stops_its_sender_and_no_one_else(start: Start) -> None:
    switch = start("", "speed-out=1M,queue=128K", "", "")
    peers = switch.connect_all(4)
    learn(peers)
    fill(peers[0], lambda n: numbered(1, 0, n))
    begin = time.monotonic()
    for number in range(1000):
        peers[2].send(numbered(3, 2, number))
        assert number_of(peers[3].receive()) == number
    # What the slow port has in its queue alone takes a second.
    assert switch.port(0)["paused"]
    assert time.monotonic() - begin < 15
    assert switch.counter(1, "tx_full") == 0


# Connections

def test_a_device_that_comes_again_finds_its_port(start: Start) -> None:
    switch = start("", "")
    a, b = switch.connect_all(2)
    for cycle in range(5):
        b.close()
        wait_until(lambda: not switch.port(1)["connected"], "disconnected")
        a.send(frame(mac(2), mac(1)))
        b = switch.connect(1)
        assert b.hears_nothing(0.05), "a frame from before the connection"
        b.send(frame(BROADCAST, mac(2), bytes((cycle,))))
        assert a.receive() == frame(BROADCAST, mac(2), bytes((cycle,)))
        a.send(frame(mac(2), mac(1)))
        assert b.receive() == frame(mac(2), mac(1))
    assert switch.port(1)["connections"] == 6


def test_a_frame_that_is_cut_by_a_disconnect_is_dropped(start: Start) -> None:
    switch = start("", "")
    a, b = switch.connect_all(2)
    data = wire(frame(BROADCAST, mac(1), b"whole"))
    for cut in (1, 3, 4, 5, len(data) - 1):
        a.socket.sendall(data + data[:cut])
        a.close()
        wait_until(lambda: not switch.port(0)["connected"], "disconnected")
        a = switch.connect(0)
        a.send(frame(BROADCAST, mac(1), b"next"))
        assert b.receive() == frame(BROADCAST, mac(1), b"whole")
        assert b.receive() == frame(BROADCAST, mac(1), b"next")
    assert switch.counter(0, "rx_cut") == 5


def test_a_reader_that_goes_in_the_middle_of_a_frame_begins_with_a_frame(
        start: Start) -> None:
    switch = start("", "")
    peers = switch.connect_all(2)
    learn(peers)
    fill(peers[0], lambda n: numbered(1, 0, n))
    peers[1].socket.recv(1501)
    peers[1].close()
    wait_until(lambda: not switch.port(1)["connected"], "disconnected")
    peers[1] = switch.connect(1)
    peers[0].socket.sendall(peers[0].rest)
    peers[1].send(frame(mac(99), mac(1)))
    assert peers[0].receive()
    peers[0].send(numbered(1, 0, 12345678))
    while number_of(data := peers[1].receive()) != 12345678:
        assert data == numbered(1, 0, number_of(data))
    assert switch.counter(1, "tx_unplugged") > 0


def test_a_second_connection_waits_for_the_end_of_the_first(start: Start) -> None:
    switch = start("", "")
    a, b = switch.connect_all(2)
    waiting = socket.socket(socket.AF_UNIX)
    waiting.connect(str(switch.path(0)))
    second = Peer(waiting)
    second.send(frame(BROADCAST, mac(7)))
    assert b.hears_nothing()
    a.close()
    assert b.receive() == frame(BROADCAST, mac(7))
    second.close()


def test_a_sender_that_hangs_up_while_it_is_paused_frees_its_port(start: Start) -> None:
    switch = start("", "")
    peers = switch.connect_all(2)
    learn(peers)
    fill(peers[0], lambda n: numbered(1, 0, n))
    peers[0].close()
    wait_until(lambda: not switch.port(0)["connected"], "disconnected")
    before = switch.cpu_s()
    time.sleep(0.3)
    assert switch.cpu_s() - before <= 0.02
    a = switch.connect(0)
    a.send(frame(mac(99), mac(0)))
    frames = 0
    while peers[1].receive() != frame(mac(99), mac(0)):
        frames += 1
    assert frames > 1000


def test_a_device_that_closes_its_receiving_half_is_gone(start: Start) -> None:
    switch = start("", "")
    a, b = switch.connect_all(2)
    b.socket.shutdown(socket.SHUT_RD)
    a.send(frame(BROADCAST, mac(1)))
    wait_until(lambda: not switch.port(1)["connected"], "disconnected")
    for _ in range(3000):
        a.send(frame(BROADCAST, mac(1), b"", 1000))     # stops at nobody


def test_descriptors_that_a_peer_passes_are_closed(start: Start) -> None:
    switch = start("", "")
    a, b = switch.connect_all(2)
    folder = Path(f"/proc/{switch.process.pid}/fd")
    before = len(list(folder.iterdir()))
    with open("/dev/null", "rb") as null:
        for _ in range(300):
            socket.send_fds(a.socket, [wire(frame(BROADCAST, mac(1)))], [null.fileno()] * 10)
            b.receive()
    assert len(list(folder.iterdir())) == before


def test_a_dialling_port_connects_whenever_somebody_listens(
        start: Start, tmp_path: Path) -> None:
    switch = start(f"dial={tmp_path}/qemu", "")
    b = switch.connect(1)
    for cycle in range(3):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{tmp_path}/qemu")
            server.listen()
            server.settimeout(WAIT_S)
            a = Peer(server.accept()[0])
            a.send(frame(BROADCAST, mac(1), bytes((cycle,))))
            assert b.receive() == frame(BROADCAST, mac(1), bytes((cycle,)))
            a.close()
        (tmp_path / "qemu").unlink()


def test_two_switches_are_joined_by_tcp(program: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "1", tmp_path / "2"]
    for folder in folders:
        folder.mkdir()
    with ExitStack() as stack:
        one = stack.enter_context(running(program, folders[0], "tcp-listen=127.0.0.1:0", ""))
        address = one.port(0)["address"]
        two = stack.enter_context(running(program, folders[1], f"tcp={address}", ""))
        wait_until(lambda: one.port(0)["connected"] and two.port(0)["connected"], "joined")
        a, b = one.connect(1), two.connect(1)
        learn([a, b])
        sent = fill(a, lambda n: numbered(1, 0, n, 9018))
        thread = threading.Thread(target=a.socket.sendall, args=(a.rest,))
        thread.start()
        for number in range(sent):
            assert number_of(b.receive()) == number
        thread.join(WAIT_S)


def test_an_inherited_socket_is_a_port(start: Start) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        switch = start(f"fd={theirs.fileno()}", "", pass_fds=(theirs.fileno(),))
    a, b = Peer(ours), switch.connect(1)
    a.send(frame(BROADCAST, mac(1)))
    assert b.receive() == frame(BROADCAST, mac(1))
    a.close()
    wait_until(lambda: not switch.port(0)["connected"], "disconnected")


def test_a_link_that_is_down_carries_nothing_either_way(start: Start) -> None:
    switch = start("", "", "")
    a, b, c = switch.connect_all(3)
    switch.control.ask("set port=1 link=down")
    a.send(frame(BROADCAST, mac(1)))
    assert c.receive() == frame(BROADCAST, mac(1))
    b.send(frame(BROADCAST, mac(2)))
    assert b.hears_nothing() and a.hears_nothing() and c.hears_nothing()
    assert switch.counter(1, "rx_link_down") == 1
    switch.control.ask("set port=1 link=up")
    b.send(frame(BROADCAST, mac(2)))
    assert a.receive() == c.receive() == frame(BROADCAST, mac(2))


# Hostile peers

@pytest.mark.parametrize("length", [FRAME_MAX + 1, 0x7fffffff, 0x80000000, 0xffffffff])
def test_a_length_that_no_frame_has_ends_the_connection(start: Start, length: int) -> None:
    switch = start("", "")
    a, b = switch.connect_all(2)
    a.socket.sendall(wire(frame(BROADCAST, mac(1))) + struct.pack("!I", length) + b"x" * 100)
    assert b.receive() == frame(BROADCAST, mac(1))
    assert a.is_closed()
    a = switch.connect(0)
    a.send(frame(BROADCAST, mac(1)))
    assert b.receive() == frame(BROADCAST, mac(1))
    assert b.hears_nothing()
    assert "longer than 69632" in switch.log.read_text()


def test_frames_of_no_length_are_counted_and_harmless(start: Start) -> None:
    switch = start("", "")
    a, b = switch.connect_all(2)
    a.socket.sendall(bytes(4) * 100000 + wire(frame(BROADCAST, mac(1))))
    assert b.receive() == frame(BROADCAST, mac(1))
    assert switch.counter(0, "rx_short") == 100000


def test_the_longest_frame_passes(start: Start) -> None:
    a, b = start("", "").connect_all(2)
    data = frame(BROADCAST, mac(1), random.Random(1).randbytes(FRAME_MAX - 14))
    assert len(data) == FRAME_MAX
    a.send(data, data)
    assert b.receive() == b.receive() == data


def test_noise_on_every_port_stops_nothing(start: Start) -> None:
    switch = start("", "", "vlan=10", "trunk=all,native=5")
    rng = random.Random(11)
    for _ in range(30):
        for number in range(4):
            with socket.socket(socket.AF_UNIX) as noise:
                noise.connect(str(switch.path(number)))
                noise.settimeout(WAIT_S)
                try:
                    for _ in range(rng.randrange(20)):
                        noise.sendall(wire(rng.randbytes(rng.randrange(200))))
                    noise.sendall(rng.randbytes(rng.randrange(5000)))
                except OSError:
                    pass
    wait_until(lambda: not any(switch.port(n)["connected"] for n in range(4)), "all gone")
    a, b = switch.connect_all(2)
    a.send(frame(BROADCAST, mac(1)))
    assert b.receive() == frame(BROADCAST, mac(1))


def test_many_addresses_of_one_port_leave_the_switch_working(start: Start) -> None:
    switch = start("", "", "")
    a, b, c = switch.connect_all(3)
    for block in range(20):
        a.send(*(frame(BROADCAST, b"\x02\0\0" + struct.pack("!I", n)[1:])
                 for n in range(block * 1000, block * 1000 + 1000)))
        b.frames(1000)
        c.frames(1000)
    assert 4000 < switch.control.ask("show")["macs"] <= 8192
    assert len(switch.control.ask("macs")["macs"]) > 4000
    switch.control.ask("flush")
    assert switch.control.ask("macs") == {"macs": []}
    c.send(frame(mac(2), mac(3)))
    assert a.receive() == b.receive() == frame(mac(2), mac(3))


class Restless(threading.Thread):
    """A device that comes and goes, sends, reads, or does not.  What it receives has
    to be whole and in order.
    """

    def __init__(self, number: int, path: Path, end: float) -> None:
        super().__init__()
        self.path, self.end, self.number = path, end, number
        self.random = random.Random(number)
        self.sent = self.received = 0
        self.last: dict[bytes, int] = {}

    def run(self) -> None:
        while time.monotonic() < self.end:
            with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
                connection.connect(str(self.path))
                self.serve(connection, time.monotonic() + self.random.choice((0.01, 0.2, 2)))

    def serve(self, connection: socket.socket, end: float) -> None:
        sends, reads = self.random.choice(((True, True), (True, False), (False, True)))
        out, peer = bytearray(), Peer(connection)
        connection.settimeout(0.02)
        while time.monotonic() < min(end, self.end):
            if sends and len(out) < 100000:
                out += wire(*(self.make() for _ in range(self.random.randrange(20))))
            with contextlib.suppress(TimeoutError):
                del out[:connection.send(out[:self.random.choice((1, 5, 1000, 100000))])]
            if reads:
                with contextlib.suppress(TimeoutError):
                    peer.data += connection.recv(self.random.choice((1, 100, 1 << 16)))
            while (data := peer.take()) is not None:
                self.check(data)

    def make(self) -> bytes:
        self.sent += 1
        dst = self.random.choice((BROADCAST, *map(mac, range(4))))
        size = self.random.choice((60, 61, 200, 1514, 4200, 9018))
        body = struct.pack("!IH", self.sent, size) + bytes((self.sent % 256,)) * (size - 20)
        return frame(dst, mac(self.number), body)

    def check(self, data: bytes) -> None:
        if data[12:14] == b"\x81\0":
            data = data[:12] + data[16:]
        source, number, size = data[6:12], *struct.unpack_from("!IH", data, 14)
        assert data == frame(data[:6], source, data[14:20] + bytes((number % 256,)) * (size - 20))
        assert number > self.last.get(source, 0), "a frame came twice, or was overtaken"
        self.last[source] = number
        self.received += 1


def test_devices_and_settings_that_change_all_the_time_tear_no_frame(
        start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: failures.append(args.exc_value))
    switch, rng = start("", "", "", ""), random.Random(3)
    devices = [Restless(n, switch.path(n), time.monotonic() + 6) for n in range(4)]
    for device in devices:
        device.start()
    while devices[0].is_alive():
        words = rng.choice((
            "link=down", "link=up", "link=up", "loss=0.1", "loss=0", "delay=20ms", "delay=0",
            "jitter=3ms", "jitter=0", "speed=10M", "speed=0", "full=drop", "full=pause",
            "stall=20ms", "stall=0", "capture=/dev/full", "capture=off", "vlan=7", "vlan=any"))
        switch.control.ask(f"set port={rng.randrange(4)} {words}")
        time.sleep(rng.choice((0, 0.001, 0.05)))
    for device in devices:
        device.join(WAIT_S)
    assert failures == []
    # Chance can keep a single port down, or in a VLAN of its own, the whole time.
    assert any(device.received > 0 for device in devices)
    # And then it is a switch as before.
    for number in range(4):
        switch.control.ask(f"set port={number} link=up loss=0 delay=0 jitter=0 speed=0 vlan=any "
                           "full=pause stall=0")
    wait_until(lambda: not any(switch.port(n)["connected"] for n in range(4)), "all gone")
    peers = switch.connect_all(4)
    peers[0].send(frame(BROADCAST, mac(9), b"the end"))
    for peer in peers[1:]:
        while peer.receive() != frame(BROADCAST, mac(9), b"the end"):
            pass                # frames that were on the way


def test_an_idle_switch_uses_no_cpu_time(start: Start) -> None:
    switch = start(*[""] * 64)
    switch.connect_all(64)
    before = switch.cpu_s()
    time.sleep(1)
    assert switch.cpu_s() == before


def test_a_log_that_nobody_reads_stops_nothing(start: Start) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    switch = start("", "", stderr=writer)
    os.close(writer)
    a, b = switch.connect_all(2)
    a.send(frame(BROADCAST, mac(1)))
    assert b.receive() == frame(BROADCAST, mac(1))
    os.close(reader)
    a.close()
    wait_until(lambda: not switch.port(0)["connected"], "disconnected")
    a = switch.connect(0)
    a.send(frame(BROADCAST, mac(1)))
    assert b.receive() == frame(BROADCAST, mac(1))


# Control

def test_watch_tells_of_connections_and_links(start: Start) -> None:
    switch = start("name=drive0", "")
    watcher = Control(switch.folder / "control")
    state = watcher.ask("watch")["ports"]
    assert state == [
        {"port": 0, "name": "drive0", "connected": False, "link": "up"},
        {"port": 1, "name": "port1", "connected": False, "link": "up"}]
    peer = switch.connect(0)
    event = {"event": "connection", "port": 0, "name": "drive0", "connected": True,
             "link": "up"}
    assert watcher.event() == event
    switch.control.ask("set port=drive0 link=down")
    assert watcher.event() == event | {"link": "down"}
    peer.close()
    assert watcher.event() == event | {"link": "down", "connected": False}
    watcher.socket.sendall(b"set port=0 link=up\nshow port=0\n")
    assert watcher.reply()["return"]["link"] == "up"
    assert watcher.events == [event | {"link": "up", "connected": False}]
    assert watcher.reply()["return"]["connected"] is False
    watcher.close()


@pytest.mark.parametrize(("request_", "error"), [
    ("", ": there is no such request; help lists them"),
    ("frobnicate now", "frobnicate: there is no such request; help lists them"),
    ("set", "set needs words, such as port=3 loss=0.01"),
    ("set port=2 loss=1", "port=2: there is no such port; the switch has ports 0 to 1"),
    ("set port=0 loss=1.1", "loss=1.1: must be a probability from 0 to 1, such as 0.01"),
    ("set port=0 loss=-1", "loss=-1: must be a probability from 0 to 1, such as 0.01"),
    ("set port=0 loss=0.1 vlan=5000", "vlan=5000: must be 1 to 4094 or any"),
    ("set port=0 vlan=0", "vlan=0: must be 1 to 4094 or any"),
    ("set port=0 native=3", "native= needs trunk="),
    ("set port=0 trunk=3-2", "trunk=3-2: must be VLANs from 1 to 4094, such as 10+20-30, "
     "or all"),
    ("set port=0 delay=61s", "delay=61s: must be a time up to 60s, such as 10us, or 0"),
    ("set port=0 delay=5", "delay=5: must be a time up to 60s, such as 10us, or 0"),
    ("set port=0 speed=999", "speed=999: must be 1k to 1000G bits per second, such as 25G, "
     "or 0 for no limit"),
    ("set port=0 speed=99999999999999999999999G", "speed=99999999999999999999999G: must be "
     "1k to 1000G bits per second, such as 25G, or 0 for no limit"),
    ("set port=0 queue=1M", "queue= cannot change while the switch runs"),
    ("set port=0 listen=/x", "listen= cannot change while the switch runs"),
    ("set port=0 link", "link: must have the form KEY=VALUE"),
    ("set port=0 frob=1", "frob=1: there is no such word"),
    ("set port=0 capture=/nowhere/x", "capture=/nowhere/x: No such file or directory"),
    ("set ageing=x", "ageing=x: set takes port= and words of the port, or ageing=SECONDS and "
     "link-local=drop|forward"),
    ("show ports", "show takes port=NUMBER, or nothing"),
])
def test_a_request_that_makes_no_sense_changes_nothing(
        start: Start, request_: str, error: str) -> None:
    switch = start("", "")
    before = switch.control.ask("show")
    assert switch.control.error(request_) == error
    assert switch.control.ask("show") == before


def test_what_is_set_is_shown(start: Start) -> None:
    switch = start("", "name=a-b.c:1")
    shown = switch.control.ask(
        "set port=a-b.c:1 trunk=10+20-30+4094 native=7 speed=25G speed-in=1.5k delay=1.5us "
        "jitter-out=2ms loss-in=0.000000001 full=drop stall=1s seed=18446744073709551615")
    assert shown | {"counters": None} == {
        "port": 1, "name": "a-b.c:1", "connected": False, "link": "up", "kind": "listen",
        "address": str(switch.path(1)), "connections": 0, "vlan": "trunk",
        "trunk": "10+20-30+4094", "native": 7,
        "in": {"speed": 1500, "delay_ns": 1500, "jitter_ns": 0, "loss": 1e-9},
        "out": {"speed": 25000000000, "delay_ns": 1500, "jitter_ns": 2000000, "loss": 0},
        "seed": 2**64 - 1, "full": "drop", "stall_ns": 1000000000, "queue": 1048576,
        "queued_bytes": 0, "queued_frames": 0, "paused": False, "capture": None,
        "counters": None}
    assert switch.control.ask("set port=1 trunk=all native=none")["trunk"] == "1-4094"
    assert switch.control.ask("set port=1 vlan=3")["vlan"] == 3
    assert switch.control.ask("set port=1 vlan=any")["vlan"] == "any"
    switch.control.ask("set ageing=5 link-local=forward")
    shown = switch.control.ask("show")
    assert (shown["ageing_s"], shown["link_local"]) == (5, "forward")
    assert "trunk" in switch.control.ask("help")["words"]


def test_a_client_that_does_not_read_is_dropped_and_holds_up_nobody(start: Start) -> None:
    switch = start("", "")
    a, b = switch.connect_all(2)
    deaf = Control(switch.folder / "control")
    deaf.ask("watch")
    deaf.socket.settimeout(0.3)
    try:
        while True:
            deaf.socket.sendall(b"show\n" * 500)
    except (TimeoutError, OSError):
        pass
    a.send(frame(BROADCAST, mac(1)))
    assert b.receive() == frame(BROADCAST, mac(1))
    changes = b"".join(b"set port=0 link=%s\n" % state for state in (b"down", b"up") * 50)
    for _ in range(140):         # more than the MiB that is kept for a client
        switch.control.socket.sendall(changes)
        for _ in range(100):
            assert "return" in switch.control.reply()
    assert switch.memory_kib() < 64 * 1024
    deaf.socket.settimeout(WAIT_S)
    with pytest.raises((AssertionError, ConnectionError)):
        while True:
            deaf.line()
    deaf.close()


@pytest.mark.parametrize(("request_", "answer"), [
    ("#7 show port=0", {"id": 7}), ("#8 set port=0 link=down", {"id": 8}),
    ("#9 set ageing=5", {"id": 9}), ("#10 watch", {"id": 10}), ("#0 frobnicate", {"id": 0}),
    ("#9223372036854775807", {"id": 2**63 - 1}), (f"#5 {'x ' * 100}", {"id": 5}),
    ("#seven show", {}), ("#-1 show", {}), ("#7show", {}), ("#", {}),
    ("#9223372036854775808 show", {}), ("#1\tshow", {}), (" #1 show", {})])
def test_an_answer_repeats_the_number_of_its_request(
        start: Start, request_: str, answer: dict[str, int]) -> None:
    switch = start("")
    switch.control.socket.sendall(request_.encode() + b"\n")
    reply = switch.control.reply()
    assert {key: value for key, value in reply.items() if key == "id"} == answer
    assert ("return" in reply) == (answer.get("id") in (7, 8, 9, 10)), reply


def test_a_line_without_end_is_refused(start: Start) -> None:
    switch = start("")
    client = Control(switch.folder / "control")
    client.socket.sendall(b"show" * 5000)
    assert client.line() == {"error": "a request has at most 4096 bytes"}
    client.close()
    client = Control(switch.folder / "control")
    assert client.error("x " * 100) == "the request has more than 64 words"
    assert client.error("\0\xff") == ": there is no such request; help lists them"
    client.close()


def test_a_client_that_ends_its_requests_gets_the_answers(start: Start) -> None:
    switch = start("")
    client = Control(switch.folder / "control")
    client.socket.sendall(b"reset\nshow port=0")
    client.socket.shutdown(socket.SHUT_WR)
    assert client.line() == {"return": {}}
    assert client.line()["return"]["port"] == 0
    assert client.file.readline() == b""
    client.close()


def test_silent_clients_give_way_to_new_ones(start: Start) -> None:
    switch = start("")
    silent = [Control(switch.folder / "control") for _ in range(40)]
    new = Control(switch.folder / "control")
    assert new.ask("show port=0")["port"] == 0
    for client in (*silent, new):
        client.close()
    switch.control = Control(switch.folder / "control")


# Captures

def records(path: Path) -> list[tuple[float, bytes]]:
    """The frames of a pcap file, with their times."""
    data = path.read_bytes()
    assert data[:24] == struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, 1)
    found, at = [], 24
    while at < len(data):
        seconds, nanos, length, whole = struct.unpack_from("<4I", data, at)
        assert length == whole and nanos < 1_000_000_000
        found.append((seconds + nanos / 1e9, data[at + 16:at + 16 + length]))
        at += 16 + length
    assert at == len(data)
    return found


def test_a_capture_has_both_directions(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "a b.pcap"
    switch = start(f"capture={file}", "")
    a, b = switch.connect_all(2)
    begin = time.time()
    learn([a, b])
    a.send(frame(mac(1), mac(0), b"to b", 9018))
    b.receive()
    wait_until(lambda: file.stat().st_size == 24 + 3 * 16 + 2 * 60 + 9018, "written")
    shown = switch.control.ask("set port=0 capture=off")
    assert shown["capture"] is None
    found = records(file)
    assert [data for _, data in found] == [
        frame(mac(99), mac(0)), frame(mac(99), mac(1)), frame(mac(1), mac(0), b"to b", 9018)]
    assert all(begin - 1 < at < time.time() + 1 for at, _ in found)


def test_a_capture_is_rotated(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "c.pcap"
    switch = start(f"capture={file},capture-size=128K,capture-files=2", "")
    a, b = switch.connect_all(2)
    learn([a, b])
    for number in range(1000):
        a.send(numbered(1, 0, number))
        b.receive()
    wait_until(lambda: switch.port(0)["capture"]["records"] == 1002, "captured")
    switch.control.ask("set port=0 capture=off")
    names = ("c.pcap.2", "c.pcap.1", "c.pcap")

    def numbers() -> list[int]:
        try:
            return [number_of(data) for name in names for _, data in records(tmp_path / name)]
        except (OSError, AssertionError, struct.error):
            return []           # while it is renamed, or written
    wait_until(lambda: numbers()[-1:] == [999], "written")
    assert sorted(p.name for p in tmp_path.glob("c.pcap*")) == sorted(names)
    assert all((tmp_path / name).stat().st_size <= 128 * 1024 for name in names)
    assert numbers() == list(range(numbers()[0], 1000))


def test_a_capture_that_cannot_be_written_stops_no_frame(start: Start) -> None:
    """/dev/full is a disk that is always full."""
    switch = start("capture=/dev/full", "")
    a, b = switch.connect_all(2)
    learn([a, b])
    for number in range(2000):
        a.send(numbered(1, 0, number))
        assert number_of(b.receive()) == number
    wait_until(lambda: switch.port(0)["capture"]["lost"] == 2002, "losses counted")
    assert "cannot write /dev/full" in switch.log.read_text()


def test_a_capture_into_a_pipe_that_is_not_read_stops_no_frame(
        start: Start, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    switch = start(f"capture={tmp_path}/pipe", "")
    a, b = switch.connect_all(2)
    learn([a, b])
    for number in range(3000):
        a.send(numbered(1, 0, number, 9018))
        assert number_of(b.receive()) == number
    assert switch.port(0)["capture"]["lost"] > 0
    before = switch.cpu_s()
    time.sleep(0.3)
    assert switch.cpu_s() - before <= 0.02
    os.close(reader)


# Start and end

@pytest.mark.parametrize(("words", "line"), [
    ([], "a switch needs at least one --port; see --help"),
    (["--port", "vlan=3"], "--port 0: says not what it is: listen=, dial=, tcp-listen=, tcp=, "
     "fd=, tap= or iface="),
    (["--port", "listen=/a,dial=/b"], "--port 0: a port is either listen= or dial="),
    (["--port", "dial=/a", "--port", "dial=/b,vlan=5000"],
     "--port 1: vlan=5000: must be 1 to 4094 or any"),
    (["--port", "dial=/a,name=x", "--port", "dial=/b,name=x"],
     "--port 1: name=x: port 0 has that name"),
    (["--port", "dial=/a,name=1"], "--port 0: name=1: must be 1 to 63 letters, digits, '.', "
     "'_', '-' or ':', and begin with no digit"),
    (["--port", "dial=/a,queue=1K"], "--port 0: queue=1K: must be 128K to 64M"),
    (["--ageing", "x", "--port", "dial=/a"],
     "--ageing x: must be a number of seconds; 0: never"),
    (["--link-local", "x", "--port", "dial=/a"], "--link-local x: must be drop or forward"),
    (["x", "--port", "dial=/a"], "argument x: is no option"),
    (["--port", "dial=/a"] * 65, "--port dial=/a: a switch has at most 64 ports"),
])
def test_a_mistake_on_the_command_line_is_one_line_and_status_2(
        program: Path, words: list[str], line: str) -> None:
    done = run(program, *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"essd-switch: {line}\n")


@pytest.mark.parametrize(("words", "line"), [
    (["--port", "tcp=localhost:1"], "--port 0: localhost:1: Name or service not known"),
    (["--port", "tcp=::1:5"], "--port 0: ::1:5: must be ADDRESS:PORT; an IPv6 address stands "
     "in brackets"),
    (["--port", "fd=9"], "--port 0: fd=9: is no stream socket"),
    (["--port", "fd=0"], "--port 0: fd=0: must be 3 or more"),
    (["--port", "listen=/nowhere/x"],
     "--port 0: /nowhere/x: cannot listen: No such file or directory"),
    (["--port", "iface=nothere0"], "--port 0: iface=nothere0: there is no such interface"),
])
def test_a_port_that_cannot_be_opened_is_one_line_and_status_1(
        program: Path, words: list[str], line: str) -> None:
    done = run(program, *words)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"essd-switch: {line}\n")


def test_a_socket_in_use_is_refused_and_a_stale_one_replaced(
        program: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        done = run(program, "--port", f"listen={path}")
        assert done.returncode == 1
        assert "another program listens there" in done.stderr
    (tmp_path / "file").write_text("keep me")
    done = run(program, "--port", f"listen={tmp_path}/file")
    assert "exists and is no socket" in done.stderr
    assert (tmp_path / "file").read_text() == "keep me"
    with running(program, tmp_path, f"listen={path}") as switch:
        assert path.stat().st_mode & 0o777 == 0o600
        assert switch.stop() == 0
    assert not path.exists()
    assert not (tmp_path / "control").exists()


def test_a_missing_privilege_is_named(program: Path) -> None:
    """In a user namespace of its own a process has no privilege over the real devices."""
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all",
               program]
    if os.geteuid() == 0:
        command[1:1] = ["--reuid=65534", "--clear-groups"]
    done = subprocess.run([*command, "--port", "iface=lo"], check=False, text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 1
    assert "iface=lo: needs CAP_NET_RAW" in done.stderr
    assert len(done.stderr.splitlines()) == 1


# Tap devices and interfaces: with the privilege for them

def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=60)


@pytest.fixture
def veth() -> Iterator[tuple[str, str]]:
    """Two ends of a cable of the kernel's; the MTU is 9000."""
    names = (f"sw{os.getpid() % 100000}a", f"sw{os.getpid() % 100000}b")
    try:
        ip("link", "add", names[0], "type", "veth", "peer", "name", names[1])
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs CAP_NET_ADMIN to make a veth pair")
    try:
        for name in names:
            # IPv6 would send frames of its own.
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
            ip("link", "set", name, "mtu", "9000", "up")
        yield names
    finally:
        subprocess.run(["ip", "link", "del", names[0]], check=False, timeout=60,
                       stderr=subprocess.DEVNULL)


def raw_socket(name: str) -> socket.socket:
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88b5))
    raw.bind((name, 0x88b5))
    raw.settimeout(WAIT_S)
    return raw


def test_an_interface_is_a_port(start: Start, veth: tuple[str, str]) -> None:
    switch = start(f"iface={veth[0]}", "")
    host = switch.connect(1)
    with raw_socket(veth[1]) as raw:
        for size in (60, 1514, 9014):
            raw.send(frame(mac(1), mac(2), b"to the switch", size))
            assert host.receive() == frame(mac(1), mac(2), b"to the switch", size)
            host.send(frame(mac(2), mac(1), b"to the veth", size))
            assert raw.recv(10000) == frame(mac(2), mac(1), b"to the veth", size)
        for number in range(2000):
            raw.send(numbered(1, 2, number))
        assert [number_of(data) for data in host.frames(2000)] == list(range(2000))
        # Too long for the interface.
        host.send(frame(mac(2), mac(1), b"", 9100), frame(mac(2), mac(1), b"next"))
        assert raw.recv(10000) == frame(mac(2), mac(1), b"next")
    assert switch.counter(0, "tx_long") == 1
    assert f"ip link set {veth[0]} mtu" in switch.log.read_text()


def test_a_tag_that_the_kernel_took_out_is_put_back(
        start: Start, veth: tuple[str, str]) -> None:
    switch = start(f"iface={veth[0]}", "")
    host = switch.connect(1)
    with raw_socket(veth[1]) as raw:
        data = tagged(frame(BROADCAST, mac(2), b"tagged"), 100, priority=3)
        raw.send(data)
        assert host.receive() == data
        host.send(data)
        assert switch.counter(0, "rx_frames") == 1


def test_a_frame_that_the_kernel_joined_is_dropped_and_named(
        start: Start, veth: tuple[str, str]) -> None:
    switch = start(f"iface={veth[0]}", "")
    host = switch.connect(1)
    # The switch has looked at the MTU; a longer frame is what GRO makes.
    for name in veth:
        ip("link", "set", name, "mtu", "20000")
    with raw_socket(veth[1]) as raw:
        raw.send(frame(mac(1), mac(2), b"", 15000))
        raw.send(frame(mac(1), mac(2), b"next"))
        assert host.receive() == frame(mac(1), mac(2), b"next")
    assert switch.counter(0, "rx_offloaded") == 1
    assert f"ethtool -K {veth[0]} gro off" in switch.log.read_text()


def test_an_interface_that_vanishes_is_a_port_that_is_not_connected(
        start: Start, veth: tuple[str, str]) -> None:
    switch = start(f"iface={veth[0]}", "")
    host = switch.connect(1)
    ip("link", "del", veth[0])
    wait_until(lambda: not switch.port(0)["connected"], "disconnected")
    host.send(frame(BROADCAST, mac(1)))
    ip("link", "add", veth[0], "type", "veth", "peer", "name", veth[1])
    for name in veth:
        ip("link", "set", name, "up")
    wait_until(lambda: switch.port(0)["connected"], "opened again")
    with raw_socket(veth[1]) as raw:
        raw.send(frame(mac(1), mac(2), b"again"))
        while host.receive() != frame(mac(1), mac(2), b"again"):
            pass            # IPv6 of the kernel's


def test_a_tap_device_is_a_port(start: Start) -> None:
    name = f"swt{os.getpid() % 100000}"
    if os.geteuid() != 0 or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("needs CAP_NET_ADMIN and /dev/net/tun to make a tap device")
    switch = start(f"tap={name}", "")
    host = switch.connect(1)
    Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
    ip("link", "set", name, "mtu", "9000", "up")
    with raw_socket(name) as raw:
        for size in (60, 1514, 9014):
            raw.send(frame(mac(1), mac(2), b"from the kernel", size))
            assert host.receive() == frame(mac(1), mac(2), b"from the kernel", size)
            host.send(frame(mac(2), mac(1), b"to the kernel", size))
            assert raw.recv(10000) == frame(mac(2), mac(1), b"to the kernel", size)
        for number in range(200):
            raw.send(numbered(1, 2, number))
        assert [number_of(data) for data in host.frames(200)] == list(range(200))


@pytest.fixture
def spaces() -> Iterator[tuple[str, str]]:
    """Two network namespaces that a cable joins: 10.99.7.1 in one, .2 and .3 in the other."""
    names = (f"sw{os.getpid()}x", f"sw{os.getpid()}y")
    with ExitStack() as stack:
        for name in names:
            try:
                ip("netns", "add", name)
            except (OSError, subprocess.CalledProcessError):
                pytest.skip("needs CAP_NET_ADMIN to make network namespaces")
            stack.callback(ip, "netns", "del", name)
        ip("-n", names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable",
           "netns", names[1])
        for name, hosts in zip(names, ((1,), (2, 3)), strict=True):
            for host in hosts:
                ip("-n", name, "addr", "add", f"10.99.7.{host}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
        yield names


def test_a_machine_that_vanished_and_connects_again_over_tcp_is_heard(
        tmp_path: Path, program: Path, spaces: tuple[str, str]) -> None:
    """Its address goes away, so that nothing answers for its first connection."""
    wrapper = tmp_path / "switch"
    wrapper.write_text(f"#!/bin/sh\nexec ip netns exec {spaces[0]} {program} \"$@\"\n")
    wrapper.chmod(0o755)
    with ExitStack() as stack:
        switch = stack.enter_context(running(wrapper, tmp_path, "tcp-listen=10.99.7.1:0", ""))
        b = switch.connect(1)
        port = switch.port(0)["address"].rpartition(":")[2]

        def connect(address: str, data: bytes) -> None:
            script = ("import socket, time; s = socket.create_connection("
                      f"('10.99.7.1', {port}), source_address=('{address}', 0)); "
                      f"s.sendall({data!r}); time.sleep(100)")
            process = subprocess.Popen(["ip", "netns", "exec", spaces[1], sys.executable, "-c",
                                        script])
            stack.callback(process.wait, timeout=WAIT_S)
            stack.callback(process.kill)

        connect("10.99.7.3", bytes(4))
        wait_until(lambda: switch.counter(0, "rx_short"), "connected")
        # .3 is the secondary address: .2 stays.
        ip("-n", spaces[1], "addr", "del", "10.99.7.3/24", "dev", "cable")
        b.send(frame(BROADCAST, mac(1)))        # is on its way for ever
        connect("10.99.7.2", wire(frame(BROADCAST, mac(2))))
        assert b.receive() == frame(BROADCAST, mac(2))
        assert switch.port(0)["connections"] == 2
        assert "does not answer" in switch.log.read_text()
