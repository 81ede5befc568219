#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The TCP engine (net/tcp) against the kernel of this computer.

Makes a network namespace of its own, in which the program tcp_tap has a TAP device, and talks to
it with ordinary sockets: both address families, both directions, with a clean cable and with one
that loses, delays, reorders and doubles frames in both directions.  Exits with 77 (skipped) where
a namespace or a TAP device cannot be made.
"""
import json
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import Self

from kernel_peer import (
    DISCARD, ECHO, LIMIT_S, Host, connect, echo, main, read_all, run, wait_closed)

V4: Host = ("10.77.0.2", socket.AF_INET)
V6: Host = ("fd77::2", socket.AF_INET6)
SOURCE = 19
BAD_CABLE = ["loss=3", "reorder=10", "duplicate=1", "delay_ms=5"]


class Engine:
    """tcp_tap with its options, while the block lasts."""

    def __init__(self, tool: str, *options: str) -> None:
        self.command = [tool, "tap0", "seed=5", *options]
        self.counters: dict[str, int] = {}

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit("tcp_tap did not start")
        run("ip", "link", "set", "tap0", "address", "02:77:00:00:00:01", "up")
        run("ip", "addr", "add", "10.77.0.1/24", "dev", "tap0")
        run("ip", "addr", "add", "fd77::1/64", "dev", "tap0", "nodad")
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            out, _ = self.process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        if self.process.returncode != 0:
            raise SystemExit(f"tcp_tap failed with {self.process.returncode}")
        self.counters = json.loads(out)


def pattern_byte(offset: int) -> int:
    """host_pattern() of tests/unit/net/tcp/host.c."""
    mask = (1 << 64) - 1
    x = (offset // 8 + 0x9e3779b97f4a7c15) & mask
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & mask
    x = (x ^ x >> 27) * 0x94d049bb133111eb & mask
    return (x ^ x >> 31) >> offset % 8 * 8 & 0xff


def source(host: Host, size: int) -> None:
    with connect(host, SOURCE) as sock:
        data = read_all(sock)
    assert len(data) == size, f"the source sent {len(data)} of {size} bytes"
    for at in range(0, size, 997):
        assert data[at] == pattern_byte(at), f"byte {at} of the source"


def active_open(tool: str, size: int) -> None:
    """The engine opens the connection, and the kernel accepts it."""
    with socket.socket() as listener:
        listener.settimeout(LIMIT_S)
        listener.bind(("0.0.0.0", 5001))
        listener.listen()
        with Engine(tool, f"source={size}", "connect=5001", "loss=5") as engine:
            sock, peer = listener.accept()
            with sock:
                sock.settimeout(LIMIT_S)
                data = read_all(sock)
            wait_closed()
    assert peer[0] == V4[0] and len(data) == size, f"{peer} sent {len(data)} bytes"
    assert all(data[at] == pattern_byte(at) for at in range(0, size, 997))
    check_left(engine.counters)


def tcp_info(sock: socket.socket) -> tuple[int, ...]:
    """The kernel's own view: state, retransmissions, options and so on (struct tcp_info)."""
    return struct.unpack("8B", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8))


def options() -> None:
    """Timestamps, SACK and window scale are agreed (bits of tcpi_options)."""
    with connect(V4, DISCARD) as sock:
        assert tcp_info(sock)[5] & 7 == 7, f"tcpi_options {tcp_info(sock)[5]:#x}"


def slow_reader() -> None:
    """The echo service waits while nobody reads: a closed window in both directions."""
    data = random.Random(1).randbytes(1 << 20)
    with connect(V4, ECHO) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        thread = threading.Thread(target=sock.sendall, args=(data,))
        thread.start()
        time.sleep(1.0)
        back = b""
        while len(back) < len(data):
            back += sock.recv(1 << 16)
        thread.join()
    assert back == data


def reset() -> None:
    """A peer that resets, and a port without a listener."""
    with connect(V4, ECHO) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    try:
        connect(V4, 4321)
    except ConnectionRefusedError:
        return
    raise AssertionError("a port without a listener accepted")


def many() -> None:
    socks = [connect(V4, ECHO) for _ in range(60)]
    for number, sock in enumerate(socks):
        sock.sendall(f"connection {number}".encode())
    for number, sock in enumerate(socks):
        want = f"connection {number}".encode()
        got = b""
        while len(got) < len(want):
            got += sock.recv(100)
        assert got == want
        sock.close()


def check_left(counters: dict[str, int]) -> None:
    for kind in ("connections", "half_open", "pages"):
        assert counters[kind] == 0, f"{counters[kind]} {kind} are left"
    for kind in ("rx_checksum", "rx_malformed", "rx_bad_ack", "rx_bad_sack"):
        assert counters[kind] == 0, f"{kind} is {counters[kind]}"


def inside(tool: str) -> None:
    run("ip", "link", "set", "lo", "up")
    with Engine(tool, "source=300000") as engine:
        for host in (V4, V6):
            for size in (1, 1447, 1448, 1449, 100_000, 2_000_000):
                echo(host, size)
            source(host, 300_000)
        options()
        slow_reader()
        reset()
        many()
        wait_closed()
    check_left(engine.counters)
    for extra in ([], ["newreno"]):
        with Engine(tool, "source=400000", *BAD_CABLE, *extra) as engine:
            for host in (V4, V6):
                echo(host, 200_000)
                source(host, 400_000)
            wait_closed()
        check_left(engine.counters)
        print({name: value for name, value in engine.counters.items() if value})
        assert engine.counters["recoveries"] > 0, "nothing was repaired"
    other_kernels(tool)
    active_open(tool, 100_000)


def set_kernel(settings: dict[str, int]) -> None:
    """Settings of this namespace's TCP."""
    for name, value in settings.items():
        with open(f"/proc/sys/net/ipv4/{name}", "w", encoding="ascii") as file:
            file.write(str(value))


# What a peer may lack, or want.
KERNELS = (
    {"tcp_sack": 0},
    {"tcp_timestamps": 0},
    {"tcp_window_scaling": 0},
    {"tcp_sack": 0, "tcp_timestamps": 0, "tcp_window_scaling": 0},
    {"tcp_ecn": 1},
)


def other_kernels(tool: str) -> None:
    """Bad cables with peers that do not agree every option, and with ECN."""
    for settings in KERNELS:
        usual = dict.fromkeys(settings, 1) | ({"tcp_ecn": 2} if "tcp_ecn" in settings else {})
        set_kernel(settings)
        with Engine(tool, "source=60000", *BAD_CABLE) as engine:
            echo(V4, 60_000)
            source(V4, 60_000)
            wait_closed()
        check_left(engine.counters)
        set_kernel(usual)


if __name__ == "__main__":
    sys.exit(main(__file__, inside))
