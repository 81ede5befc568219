# SPDX-License-Identifier: BSD-2-Clause
"""The I2C controllers and what is on their buses in QEMU, without firmware.

The tests access registers over qtest, and are the program on the BMC's bus.
"""

import select
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from test_port_media import Machine, medium, qemu, start  # noqa: F401

I2C = (0x10007000, 0x10008000, 0x10009000)
BMC_BUS, SENSOR_BUS = 1, 2

# hw-model/regs/i2c.h
CTRL, SPEED, ADDR, LENGTHS, START, STATUS = 0x04, 0x10, 0x14, 0x18, 0x1c, 0x20
TX, RX = 0x100, 0x200
ENABLE = 1
BUSY = 1
OK, NO_TARGET = 0, 1

MODULE_AT, PROGRAM_AT = 0x50, 0x10
TRANSFER_NS = 10_000_000        # more than the longest one takes at 1 MHz
# What the sockets' buffers hold is far less than this many requests or messages.
FLOOD = 100_000
QUIET_S = 1.0           # a socket that takes nothing for so long is full


class Bus:
    """One controller as a driver of it."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.m, self.base = machine, I2C[number]
        self.set(CTRL, ENABLE)
        self.set(SPEED, 1000)

    def set(self, register: int, value: int) -> None:
        self.m.write32(self.base + register, value)

    def get(self, register: int) -> int:
        return self.m.read32(self.base + register)

    def put(self, data: bytes) -> None:
        words = data.ljust(-len(data) // 4 * -4, b"\0")
        for at in range(0, len(words), 4):
            self.set(TX + at, int.from_bytes(words[at:at + 4], "little"))

    def begin(self, addr: int, write: int, read: int = 0) -> None:
        self.set(ADDR, addr)
        self.set(LENGTHS, read << 16 | write)
        self.set(START, 1)

    def run(self, addr: int, write: int, read: int = 0) -> int:
        """Transfer bytes, those to write from the buffer; return the result."""
        self.begin(addr, write, read)
        self.m.do(f"clock_step {TRANSFER_NS}")
        status = self.get(STATUS)
        assert not status & BUSY
        return status >> 8 & 0xf

    def took(self, count: int) -> bytes:
        return b"".join(struct.pack("<I", self.get(RX + at))
                        for at in range(0, count, 4))[:count]


class Program:
    """A program on the BMC's bus that can send without reading."""

    def __init__(self, machine: Machine) -> None:
        self.socket = machine.connect("bmc")
        self.file = self.socket.makefile("r")
        self.rest = b""

    def flood(self, line: str) -> int:
        """Send the line again and again, without reading, until the device takes no more.

        @return how many lines it has taken; the rest of another one is in `rest`
        """
        data, sent = line.encode() + b"\n", 0
        self.socket.setblocking(False)
        while select.select([], [self.socket], [], QUIET_S)[1]:
            sent += self.socket.send(data[sent % len(data):] + data * 99)
            assert sent < FLOOD * len(data), "the device takes requests without end"
        self.socket.settimeout(60)
        self.rest = data[sent % len(data):] if sent % len(data) else b""
        return sent // len(data)

    def ask(self, line: str) -> str:
        self.socket.sendall(line.encode() + b"\n")
        return self.line()

    def line(self) -> str:
        return self.file.readline().rstrip("\n")

    def close(self) -> None:
        self.file.close()
        self.socket.close()


@pytest.fixture
def on_bus(start, tmp_path: Path) -> Callable[..., Machine]:  # noqa: F811
    """Like `start`, but the BMC's bus has a socket for a program."""
    count = iter(range(9))

    def new(*options: str) -> Machine:
        path = tmp_path / f"m{next(count)}" / "bmc"
        return start("-machine", "bmc=bmc", "-chardev",
                     f"socket,id=bmc,path={path},server=on,wait=off", *options)
    return new


def test_a_program_that_does_not_read_stops_neither_the_machine_nor_the_bus(
        on_bus) -> None:
    """Its requests wait until it reads; then each of them is answered once."""
    machine = on_bus()
    program = Program(machine)
    expected = program.ask(f"transfer {MODULE_AT:x} 00 256")
    assert len(expected) == 4 + 512
    taken = program.flood(f"transfer {MODULE_AT:x} 00 256")
    assert machine.ask("query-status")["running"]
    bus = Bus(machine, BMC_BUS)
    bus.put(b"\0")
    assert bus.run(MODULE_AT, 1, 16) == OK
    assert bus.took(16) == bytes.fromhex(expected[4:])[:16]
    for number in range(taken):
        assert program.line() == expected, number
    program.socket.sendall(program.rest)
    if program.rest:
        assert program.line() == expected
    assert program.ask("listen off") == "ack "


def test_messages_are_refused_while_a_program_does_not_read(on_bus) -> None:
    """A controller of the bus gets no acknowledgement, and may try again later."""
    machine = on_bus()
    program, bus = Program(machine), Bus(machine, BMC_BUS)
    message = bytes(range(256))
    assert program.ask(f"listen {PROGRAM_AT:x}") == "ack "
    bus.put(message)
    results = []
    while not results or results[-1] == OK:
        results.append(bus.run(PROGRAM_AT, len(message)))
        assert len(results) < FLOOD
    assert results[-1] == NO_TARGET
    for _ in results[:-1]:
        assert program.line() == f"message {PROGRAM_AT:x} {message.hex()}"
    assert bus.run(PROGRAM_AT, 2) == OK
    assert program.line() == f"message {PROGRAM_AT:x} 0001"


def test_the_next_program_gets_nothing_of_one_that_did_not_read(on_bus) -> None:
    machine = on_bus()
    program = Program(machine)
    program.ask(f"listen {PROGRAM_AT:x}")
    program.flood(f"transfer {MODULE_AT:x} 00 256")
    program.close()
    program = Program(machine)
    assert program.ask("listen off") == "ack "
    assert Bus(machine, BMC_BUS).run(PROGRAM_AT, 1) == NO_TARGET
