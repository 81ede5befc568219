# SPDX-License-Identifier: BSD-2-Clause
"""The I2C controllers and what is on their buses in QEMU, without firmware.

The tests access registers over qtest, and are the program on the BMC's bus.
"""

import select
import signal
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from test_port_media import Machine, medium, qemu, start  # noqa: F401

from essd.machine.drive import MODULE_PROPERTIES, module_get, module_set

I2C = (0x10007000, 0x10008000, 0x10009000)
BMC_BUS, SENSOR_BUS = 1, 2

# hw-model/regs/i2c.h
CTRL, IRQ_STATUS, IRQ_ENABLE, SPEED, ADDR, LENGTHS = 0x04, 0x08, 0x0c, 0x10, 0x14, 0x18
START, STATUS, MAIL_ADDR, IMAGE0_ADDR, COMMIT = 0x1c, 0x20, 0x30, 0x34, 0x3c
MAIL_STATUS, MAIL_POP, MDIO = 0x40, 0x44, 0x50
TX, RX, MAIL, IMAGE0 = 0x100, 0x200, 0x300, 0x400
ENABLE, TARGET, MDIO_PINS = 1, 2, 4
DONE, MAIL_IRQ = 1, 2
BUSY = 1
OK, NO_TARGET = 0, 1
ANSWERS = 1 << 7        # in MAIL_ADDR and IMAGE0_ADDR
MDIO_READ = 2 << 26 | 1 << 21

MODULE_AT, PROGRAM_AT = 0x50, 0x10
MAIL_AT, IMAGE_AT, MEDIA_SENSOR_AT = 0x1d, 0x6a, 0x49
TRANSFER_NS = 10_000_000        # more than the longest one takes at 1 MHz
# What the sockets' buffers hold is far less than this many requests or messages.
FLOOD = 100_000
QUIET_S = 1.0           # a socket that takes nothing for so long is full


class Bus:
    """One controller as a driver of it."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.m, self.base = machine, I2C[number]

    @classmethod
    def enabled(cls, machine: Machine, number: int) -> "Bus":
        bus = cls(machine, number)
        bus.set(CTRL, ENABLE)
        bus.set(SPEED, 1000)
        return bus

    def set(self, register: int, value: int) -> None:
        self.m.write32(self.base + register, value)

    def get(self, register: int) -> int:
        return self.m.read32(self.base + register)

    def put(self, data: bytes, buffer: int = TX) -> None:
        words = data.ljust(-len(data) // 4 * -4, b"\0")
        for at in range(0, len(words), 4):
            self.set(buffer + at, int.from_bytes(words[at:at + 4], "little"))

    def begin(self, addr: int, write: int, read: int = 0) -> None:
        self.set(ADDR, addr)
        self.set(LENGTHS, read << 16 | write)
        self.set(START, 1)

    def run(self, addr: int, write: int, read: int = 0) -> int:
        """Transfer bytes, those to write from the buffer; return the result."""
        self.begin(addr, write, read)
        return self.end()

    def end(self) -> int:
        """Let the time of a transfer pass; return the transfer's result."""
        self.m.do(f"clock_step {TRANSFER_NS}")
        status = self.get(STATUS)
        assert not status & BUSY
        return status >> 8 & 0xf

    def took(self, count: int, buffer: int = RX) -> bytes:
        return b"".join(struct.pack("<I", self.get(buffer + at))
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
    bus = Bus.enabled(machine, BMC_BUS)
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
    program, bus = Program(machine), Bus.enabled(machine, BMC_BUS)
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
    assert Bus.enabled(machine, BMC_BUS).run(PROGRAM_AT, 1) == NO_TARGET


@pytest.mark.parametrize("number", range(3))
def test_a_device_of_qemu_can_be_put_on_each_bus(on_bus, number: int) -> None:
    machine = on_bus("-device", f"tmp421,bus=i2c.{number},address=0x4c",
                     "-device", "essd-sfp,bus=i2c.2")
    bus = Bus.enabled(machine, number)
    bus.put(bytes([0xfe]))              # the manufacturer's number
    assert bus.run(0x4c, 1, 1) == OK
    assert bus.took(1) == b"\x55"
    assert Bus.enabled(machine, SENSOR_BUS).run(MODULE_AT, 0) == OK


# Modules and saved state

CHANGES = {0: {"rx-power": 80000, "temperature": -5500, "voltage": 3_400_000},
           1: {"present": False, "bias": 9000}}
DEFAULTS = {"present": True, "temperature": 38000, "voltage": 3_300_000, "bias": 7000,
            "tx-power": 794300, "rx-power": 631000}


def qom(machine: Machine, command: tuple[str, dict[str, object]]) -> object:
    return machine.ask(command[0], **command[1])


def modules(machine: Machine) -> dict[int, dict[str, object]]:
    return {port: {name: qom(machine, module_get(port, name)) for name in MODULE_PROPERTIES}
            for port in (0, 1)}


def changed() -> dict[int, dict[str, object]]:
    return {port: DEFAULTS | changes for port, changes in CHANGES.items()}


def test_a_module_can_be_changed_at_the_start(on_bus) -> None:
    machine = on_bus()
    assert modules(machine) == {0: DEFAULTS, 1: DEFAULTS}
    machine.end()
    machine = on_bus("-global", "essd-module0.rx-power=80000",
                     "-global", "essd-module0.temperature=-5500",
                     "-global", "essd-module0.voltage=3400000",
                     "-global", "essd-module1.present=off",
                     "-global", "essd-module1.bias=9000")
    assert modules(machine) == changed()
    assert Bus.enabled(machine, 0).run(MODULE_AT, 0) == OK
    assert Bus.enabled(machine, 1).run(MODULE_AT, 0) == NO_TARGET


def test_what_a_module_reports_can_be_set_again_without_a_change(on_bus) -> None:
    machine = on_bus()
    bus = Bus.enabled(machine, 0)
    bus.put(bytes([96]))                # the measured temperature, in two bytes
    for celsius in range(-40_000, 86_000, 3_171):
        qom(machine, module_set(0, "temperature", celsius))
        assert bus.run(MODULE_AT + 1, 1, 2) == OK
        sent = bus.took(2)
        reported = qom(machine, module_get(0, "temperature"))
        assert isinstance(reported, int)
        assert abs(reported - celsius) <= 4
        qom(machine, module_set(0, "temperature", reported))
        assert bus.run(MODULE_AT + 1, 1, 2) == OK
        assert bus.took(2) == sent


def save(machine: Machine, state: Path) -> None:
    machine.ask("stop")
    machine.ask("migrate", uri=f"file:{state}")
    machine.wait(lambda: machine.ask("query-migrate").get("status") == "completed", "save")
    machine.end(signal.SIGTERM)


def load(machine: Machine, state: Path) -> Machine:
    machine.ask("migrate-incoming", uri=f"file:{state}")
    machine.wait(lambda: machine.ask("query-status")["status"] != "inmigrate", "load")
    machine.ask("cont")
    return machine


def test_modules_and_sensors_are_saved(on_bus, tmp_path: Path) -> None:
    """The module that was out and the temperature of a hot drive are as before."""
    machine = on_bus()
    for port, changes in CHANGES.items():
        for name, value in changes.items():
            qom(machine, module_set(port, name, value))
    qom(machine, module_set(0, "serial", "ANOTHER"))
    machine.ask("qom-set", path="/machine/sensor-media", property="temperature",
                value=75000)
    module, sensor = Bus.enabled(machine, 0), Bus.enabled(machine, SENSOR_BUS)
    module.put(bytes([68]))             # the serial number in A0h
    assert module.run(MODULE_AT, 1, 4) == OK and module.took(4) == b"ANOT"
    sensor.put(b"\0")
    assert sensor.run(MEDIA_SENSOR_AT, 1, 2) == OK
    assert sensor.took(2) == bytes([75, 0])
    save(machine, tmp_path / "state")

    machine = load(on_bus("-incoming", "defer"), tmp_path / "state")
    assert modules(machine) == changed()
    assert qom(machine, module_get(0, "serial")) == "ANOTHER"
    module, sensor = Bus(machine, 0), Bus(machine, SENSOR_BUS)
    assert module.took(4) == b"ANOT"
    # A read without an offset goes on where the last one has ended.
    assert module.run(MODULE_AT, 0, 3) == OK and module.took(3) == b"HER"
    assert Bus.enabled(machine, 1).run(MODULE_AT, 0) == NO_TARGET
    assert sensor.run(MEDIA_SENSOR_AT, 0, 2) == OK
    assert sensor.took(2) == bytes([75, 0])
    assert machine.ask("qom-get", path="/machine/sensor-media",
                       property="temperature") == 75000


def test_transfers_and_messages_in_progress_are_saved(on_bus, tmp_path: Path) -> None:
    machine = on_bus()
    frame, bmc, sensor = (Bus.enabled(machine, number) for number in range(3))
    # Of the BMC, two messages wait, and it has read a part of an image.
    bmc.set(MAIL_ADDR, ANSWERS | MAIL_AT)
    bmc.set(IMAGE0_ADDR, ANSWERS | IMAGE_AT)
    bmc.put(b"published", IMAGE0)
    bmc.set(COMMIT, 1)
    bmc.put(b"a draft", IMAGE0)
    bmc.set(IRQ_ENABLE, MAIL_IRQ)
    bmc.set(CTRL, ENABLE | TARGET)
    program = Program(machine)
    assert program.ask(f"transfer {MAIL_AT:x} 0102030405 0") == "ack "
    assert program.ask(f"transfer {MAIL_AT:x} 060708 0") == "ack "
    assert program.ask(f"transfer {IMAGE_AT:x} 00 4") == "ack " + b"publ".hex()
    # A transfer and an MDIO frame are under way.
    frame.set(CTRL, ENABLE | MDIO_PINS)
    frame.set(MDIO, MDIO_READ)
    sensor.set(SPEED, 100)
    sensor.put(b"\0")
    sensor.begin(MEDIA_SENSOR_AT, 1, 2)
    assert sensor.get(STATUS) == frame.get(STATUS) == BUSY
    save(machine, tmp_path / "state")

    machine = load(on_bus("-incoming", "defer"), tmp_path / "state")
    frame, bmc, sensor = (Bus(machine, number) for number in range(3))
    # The machine's time begins at 0 here: the frame needs 25.6 us, the transfer 480 us.
    machine.do("clock_step 25000")
    assert sensor.get(STATUS) == frame.get(STATUS) == BUSY
    machine.do("clock_step 1000")
    assert (frame.get(STATUS), frame.get(MDIO)) == (0, MDIO_READ | 0xffff)
    assert sensor.get(STATUS) == BUSY
    machine.do("clock_step 400000")
    assert sensor.get(STATUS) == BUSY
    assert sensor.end() == OK
    assert (sensor.took(2), sensor.get(IRQ_STATUS)) == (bytes([40, 0]), DONE)
    assert bmc.get(IRQ_STATUS) == bmc.get(IRQ_ENABLE) == MAIL_IRQ
    assert bmc.get(MAIL_STATUS) == 5 << 16 | 2
    assert bmc.took(5, MAIL) == bytes([1, 2, 3, 4, 5])
    bmc.set(MAIL_POP, 1)
    assert bmc.get(MAIL_STATUS) == 3 << 16 | 1
    assert bmc.took(3, MAIL) == bytes([6, 7, 8])
    assert bmc.took(7, IMAGE0) == b"a draft"
    program = Program(machine)
    assert program.ask(f"transfer {IMAGE_AT:x} - 5") == "ack " + b"ished".hex()
    assert program.ask(f"transfer {MAIL_AT:x} 09 0") == "ack "
    assert bmc.get(MAIL_STATUS) & 0xff == 2


# The PHYs on MDIO

CLAUSE_22, PMA, PCS = 0, 1 << 28 | 1 << 16, 1 << 28 | 3 << 16
TO_REGISTER, READ_ON, READ = 0 << 26, 2 << 26, 3 << 26


def frame_on_mdio(bus: Bus, frame: int) -> int:
    """Send a frame to the PHY at address 0; return the data afterwards."""
    bus.set(CTRL, ENABLE | MDIO_PINS)
    bus.set(MDIO, frame)
    assert bus.end() == OK
    return bus.get(MDIO) & 0xffff


def phy_register(bus: Bus, device: int, number: int) -> int:
    if device == CLAUSE_22:
        return frame_on_mdio(bus, READ_ON | number << 16)
    frame_on_mdio(bus, TO_REGISTER | device | number)
    return frame_on_mdio(bus, READ | device)


def test_each_port_has_a_phy_on_mdio(on_bus) -> None:
    """The port of this machine without a network has a PHY that receives nothing."""
    machine = on_bus()
    for number, received in ((0, 1), (1, 0)):
        bus = Bus.enabled(machine, number)
        assert [phy_register(bus, CLAUSE_22, n) for n in (2, 3)] == [0x28a8, 0x0010]
        assert phy_register(bus, PMA, 10) == received
        assert phy_register(bus, PMA, 0) == 0x2850      # 25 Gb/s, not enabled
        assert phy_register(bus, PCS, 7) == 7
        assert frame_on_mdio(bus, MDIO_READ) == 0xffff  # at another address


def test_the_state_of_a_phy_is_saved(on_bus, tmp_path: Path) -> None:
    """The number of the next register, and whether a link bit was 0 meanwhile."""
    machine = on_bus()
    bus = Bus.enabled(machine, 0)
    assert [phy_register(bus, PMA, 1) for _ in range(2)] == [0x0002, 0x0006]
    frame_on_mdio(bus, TO_REGISTER | PMA | 1)
    frame_on_mdio(bus, TO_REGISTER | PCS | 2)
    assert frame_on_mdio(bus, READ_ON | PCS) == 0x28a8
    save(machine, tmp_path / "state")
    bus = Bus(load(on_bus("-incoming", "defer"), tmp_path / "state"), 0)
    assert frame_on_mdio(bus, READ_ON | PCS) == 0x0010
    assert frame_on_mdio(bus, READ | PMA) == 0x0006
    assert [phy_register(bus, PCS, 1) for _ in range(2)] == [0x0002, 0x0002]
