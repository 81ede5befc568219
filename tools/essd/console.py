# SPDX-License-Identifier: BSD-2-Clause
"""The drive's UART on this terminal; Ctrl-] leaves."""

import contextlib
import os
import select
import socket
import sys
import termios
import time
import tty
from collections.abc import Iterator

from .instance import Instance

LEAVE = b"\x1d"         # Ctrl-]
TAIL_BYTES = 4096


@contextlib.contextmanager
def raw_terminal(descriptor: int) -> Iterator[None]:
    """Every key goes through as it is; the terminal is restored at the end."""
    if not os.isatty(descriptor):
        yield
        return
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        # Output keeps its line ends: the UART sends \r\n, our own notes \n.
        mode = termios.tcgetattr(descriptor)
        mode[1] |= termios.OPOST | termios.ONLCR
        termios.tcsetattr(descriptor, termios.TCSANOW, mode)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def dial(instance: Instance) -> socket.socket | None:
    """Connect to the UART; waits through a power cycle, None when it is over."""
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(instance.folder / "console.sock"))
            return connection
        except OSError:
            connection.close()
        if not instance.is_running:
            return None
        time.sleep(0.1)


def log(instance: Instance) -> bytes:
    with contextlib.suppress(OSError):
        return (instance.folder / "drive.console").read_bytes()
    return b""


def attach(instance: Instance) -> None:
    """Copy both ways until Ctrl-], end of input, or the instance is gone."""
    keyboard = sys.stdin.fileno()
    screen = sys.stdout.fileno()
    os.write(screen, log(instance)[-TAIL_BYTES:])
    with raw_terminal(keyboard):
        while True:
            uart = dial(instance)
            if uart is None:
                return
            with uart:
                while True:
                    ready, _, _ = select.select([uart, keyboard], [], [])
                    if uart in ready:
                        data = uart.recv(4096)
                        if not data:
                            os.write(screen, b"\n[the drive is powered off]\n")
                            break
                        os.write(screen, data)
                    if keyboard in ready:
                        data = os.read(keyboard, 4096)
                        if not data or LEAVE in data:
                            return
                        uart.sendall(data)
            time.sleep(0.2)
