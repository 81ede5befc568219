#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The drive's TCP offload engine, echo and discard against the kernel of this computer.

Makes a network namespace of its own, in which the program toe_tap (the drive's firmware and
hardware models in a process) has a TAP device at each port, and talks to it with ordinary sockets:
both ports, both address families.  Exits with 77 (skipped) where a namespace or a TAP device
cannot be made.
"""
import random
import socket
import struct
import sys
import threading
import time

from kernel_peer import (
    DISCARD, ECHO, Host, connect, echo, main, read_all, run_toe_tap, wait_closed)

HOSTS: tuple[Host, ...] = (
    ("10.77.0.2", socket.AF_INET), ("fd00:0:0:1::1", socket.AF_INET6),
    ("10.78.0.2", socket.AF_INET), ("fd00:0:0:2::1", socket.AF_INET6))
SERVED = 64                             # connections of the services


def discard(host: Host, size: int) -> None:
    """Everything is taken, nothing comes back but the end of the stream."""
    with connect(host, DISCARD) as sock:
        sock.sendall(bytes(size))
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock) == b""


def slow_reader() -> None:
    """The service waits while nobody reads: closed windows in both directions."""
    data = random.Random(1).randbytes(1 << 20)
    with connect(HOSTS[0], ECHO) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        thread = threading.Thread(target=sock.sendall, args=(data,))
        thread.start()
        time.sleep(0.3)
        back = b""
        while len(back) < len(data):
            back += sock.recv(1 << 16)
        thread.join()
    assert back == data


def refusals() -> None:
    """A port without a listener, and a peer that resets with data under way."""
    try:
        connect(HOSTS[0], 4321)
    except ConnectionRefusedError:
        pass
    else:
        raise AssertionError("a port without a listener accepted")
    with connect(HOSTS[1], ECHO) as sock:
        sock.sendall(bytes(100_000))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def exchange(sock: socket.socket, text: str) -> None:
    sock.sendall(text.encode())
    got = b""
    while len(got) < len(text):
        got += sock.recv(100)
    assert got == text.encode()


def many() -> None:
    """As many connections as the services have; the next one is refused.

    Each has its echo first: one whose last ACK the drive has not seen yet, because it comes
    through the other port, would make room for the next one.
    """
    socks = [connect(HOSTS[n % len(HOSTS)], ECHO) for n in range(SERVED)]
    for number, sock in enumerate(socks):
        exchange(sock, f"connection {number}")
    try:
        connect(HOSTS[0], ECHO)
    except ConnectionRefusedError:
        pass
    else:
        raise AssertionError(f"connection {SERVED + 1} was accepted")
    for number, sock in enumerate(socks):
        exchange(sock, f"connection {number} again")
        sock.close()


def exercise() -> None:
    for host in HOSTS:
        for size in (1, 1448, 100_000, 3_000_000):
            echo(host, size)
        discard(host, 1_000_000)
    slow_reader()
    refusals()
    many()
    wait_closed()


def inside(tool: str) -> None:
    counters = run_toe_tap(tool, exercise, (
        "connections", "half_open", "pages", "slots", "served", "rx_checksum", "rx_malformed",
        "rx_bad_ack", "rx_bad_sack", "refused_commands"))
    assert counters["discarded"] == 4_000_000, counters["discarded"]


if __name__ == "__main__":
    sys.exit(main(__file__, inside))
