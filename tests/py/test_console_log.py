# SPDX-License-Identifier: BSD-2-Clause
"""The log file of the drive's UART contains what its socket delivered
(qemu-patches/0009).
"""

import socket

from test_port_media import Machine, medium, qemu, start  # noqa: F401

UART = 0x10000000
DATA, FIFO_CONTROL, LINE_STATUS = 0, 2, 5
TRANSMITTER_IS_EMPTY = 0x20
FIFO_BYTES = 16
MOST = 20000


class Uart:
    """The UART's registers, and a terminal that reads only when a test tells it to."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.sent = b""
        self.terminal = machine.connect("console")
        machine.do(f"writeb {UART + FIFO_CONTROL:#x} 0x7")

    def has_room(self) -> bool:
        status = self.machine.do(f"readb {UART + LINE_STATUS:#x}")[0]
        return bool(int(status, 16) & TRANSMITTER_IS_EMPTY)

    def send_burst(self) -> None:
        """Fill the UART's FIFO with characters that continue a count."""
        for _ in range(FIFO_BYTES):
            character = 33 + len(self.sent) % 90
            self.machine.do(f"writeb {UART + DATA:#x} {character:#x}")
            self.sent += bytes([character])

    def fill(self) -> None:
        """Send until the terminal's socket takes no more."""
        while self.has_room():
            assert len(self.sent) < MOST, "the socket's buffer has no end"
            self.send_burst()

    def read(self, size: int) -> bytes:
        self.terminal.settimeout(30)
        data = b""
        while len(data) < size:
            more = self.terminal.recv(size - len(data))
            assert more, "the terminal's connection is gone"
            data += more
        return data


def test_console_log_holds_each_character_once_when_the_terminal_is_slow(
        start, tmp_path, monkeypatch) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    machine = start("-chardev", "socket,id=c,path=m0/console,server=on,wait=off,"
                    "logfile=m0/console.log", "-serial", "chardev:c")
    uart = Uart(machine)
    received = b""
    for _ in range(3):
        uart.fill()
        received += uart.read(len(uart.sent) - len(received))
        machine.wait(uart.has_room, "the rest has left")
    uart.terminal.shutdown(socket.SHUT_RDWR)
    assert received == uart.sent
    assert (tmp_path / "m0/console.log").read_bytes() == uart.sent
