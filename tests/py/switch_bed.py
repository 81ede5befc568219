# SPDX-License-Identifier: BSD-2-Clause
"""Run essd-switch for a test; peers are stream sockets, as QEMU has them."""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

WAIT_S = 20.0
FRAME_MAX = 4096 + 65536
# Freed memory is not kept, so that memory that is used can be measured.
SANITIZERS = {"ASAN_OPTIONS": "quarantine_size_mb=0:thread_local_quarantine_size_kb=0"}


def mac(number: int) -> bytes:
    return bytes((2, 0, 0, 0, number >> 8, number & 255))


BROADCAST = b"\xff" * 6


def frame(dst: bytes, src: bytes, body: bytes = b"", size: int = 60) -> bytes:
    """An untagged frame of at least `size` bytes."""
    return (dst + src + b"\x88\xb5" + body).ljust(size, b"\0")


def tagged(data: bytes, vlan: int, priority: int = 0) -> bytes:
    return data[:12] + struct.pack("!HH", 0x8100, priority << 13 | vlan) + data[12:]


def wire(*frames: bytes) -> bytes:
    """Frames as they are on a stream."""
    return b"".join(struct.pack("!I", len(data)) + data for data in frames)


def wait_until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"not within {WAIT_S} s: {what}"
        time.sleep(0.005)


class Peer:
    """The device at the other end of a port's cable."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.socket.settimeout(WAIT_S)
        self.data = bytearray()
        self.rest = b""          # of a frame that was sent in part

    def send(self, *frames: bytes) -> None:
        self.socket.sendall(wire(*frames))

    def receive(self) -> bytes:
        """The next frame; the connection must not end."""
        while (data := self.take()) is None:
            more = self.socket.recv(1 << 20)
            assert more, "the switch closed the connection"
            self.data += more
        return data

    def take(self) -> bytes | None:
        """The next frame of those that came; None: it is not whole."""
        if len(self.data) < 4:
            return None
        end = 4 + struct.unpack_from("!I", self.data)[0]
        if len(self.data) < end:
            return None
        data = bytes(self.data[4:end])
        del self.data[:end]
        return data

    def frames(self, count: int) -> list[bytes]:
        return [self.receive() for _ in range(count)]

    def hears_nothing(self, seconds: float = 0.2) -> bool:
        self.socket.settimeout(seconds)
        try:
            self.data += self.socket.recv(1 << 20)
        except TimeoutError:
            pass
        finally:
            self.socket.settimeout(WAIT_S)
        return not self.data

    def is_closed(self) -> bool:
        """Wait for the end of the connection."""
        try:
            while self.socket.recv(1 << 20):
                pass
        except ConnectionError:
            pass
        return True

    def close(self) -> None:
        self.socket.close()


class Control:
    """A client of the control socket."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.socket.settimeout(WAIT_S)
        self.file = self.socket.makefile("rb")
        self.events: list[dict[str, Any]] = []

    def line(self) -> dict[str, Any]:
        line = self.file.readline()
        assert line.endswith(b"\n"), "the switch closed the control connection"
        return json.loads(line)

    def reply(self) -> dict[str, Any]:
        while "event" in (line := self.line()):
            self.events.append(line)
        return line

    def ask(self, request: str) -> Any:
        self.socket.sendall(request.encode() + b"\n")
        reply = self.reply()
        assert "return" in reply, f"{request}: {reply}"
        return reply["return"]

    def error(self, request: str) -> str:
        self.socket.sendall(request.encode() + b"\n")
        return self.reply()["error"]

    def event(self) -> dict[str, Any]:
        return self.events.pop(0) if self.events else self.line()

    def close(self) -> None:
        self.file.close()
        self.socket.close()


class Switch:
    """A running essd-switch."""

    def __init__(self, program: Path, folder: Path, *ports: str, options: tuple[str, ...] = (),
                 **more: Any) -> None:
        self.folder = folder
        self.log = folder / "switch.log"
        self.peers: list[Peer] = []
        words = [str(program), "--control", str(folder / "control"), *options]
        for number, port in enumerate(ports):
            if not any(f"{kind}=" in port for kind in ("listen", "dial", "tcp", "fd", "tap",
                                                       "iface")):
                port = f"listen={self.path(number)}" + (f",{port}" if port else "")
            words += ["--port", port]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL,
                                            env=os.environ | SANITIZERS,
                                            **{"stderr": log} | more)
        wait_until(lambda: self.is_ready() or self.process.poll() is not None, "control socket")
        assert self.process.poll() is None, self.log.read_text()
        self.control = Control(folder / "control")

    def is_ready(self) -> bool:
        """Whether the control socket takes connections; its file is there before that."""
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.folder / "control")) == 0

    def path(self, number: int) -> Path:
        return self.folder / f"p{number}"

    def connect(self, number: int) -> Peer:
        """The device of a listening port."""
        connection = socket.socket(socket.AF_UNIX)
        before = self.port(number)["connections"]
        connection.connect(str(self.path(number)))
        wait_until(lambda: self.port(number)["connections"] == before + 1, "accepted")
        self.peers.append(Peer(connection))
        return self.peers[-1]

    def connect_all(self, count: int) -> list[Peer]:
        return [self.connect(number) for number in range(count)]

    def port(self, number: int) -> dict[str, Any]:
        return self.control.ask(f"show port={number}")

    def counter(self, number: int, name: str) -> int:
        return self.port(number)["counters"][name]

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_kib(self) -> int:
        """Resident memory of its own."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
        raise AssertionError("no RssAnon")

    def stop(self) -> int:
        """End the switch; return its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        for peer in self.peers:
            peer.close()
        self.control.close()
        try:
            return self.process.wait(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=WAIT_S)
            raise


@contextlib.contextmanager
def running(program: Path, folder: Path, *ports: str, **more: Any) -> Iterator[Switch]:
    """A switch that has to end well; what a sanitizer says fails the test."""
    switch = Switch(program, folder, *ports, **more)
    try:
        yield switch
    finally:
        status = switch.stop()
    assert status == 0, switch.log.read_text()
