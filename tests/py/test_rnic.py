# SPDX-License-Identifier: BSD-2-Clause
"""essd-rnic in QEMU, without firmware.

Two queue pairs of one drive are connected to each other through port 0; the test
returns each frame that the port sends.
"""

import signal
import struct
from pathlib import Path

from test_port_media import DRAM, MAC, PORT0, Machine, medium, qemu, start, start_port  # noqa: F401

RNIC = 0x10200000

# hw-model/regs/rnic.h
CTRL, IRQ_STATUS, IRQ_ENABLE, HART, COUNTERS = 0x10, 0x20, 0x24, 0x100, 0x400
(PD_CREATE, MR_CREATE, CQ_CREATE, RQ_CREATE, QP_CREATE, QP_MODIFY, QP_QUERY,
 LADDR_SET, NEIGH_SET) = 1, 3, 5, 7, 9, 10, 12, 13, 15
WRITE, SIGNALED = 2, 1
TX_PACKETS, RX_PACKETS, TIMEOUTS, RETRANSMITTED = 1, 0, 15, 16

PAGE, COMMANDS, DOORBELLS, EVENTS, CQ, RECORDS, RINGS, DATA = (
    0x100000, 0x101000, 0x104000, 0x105000, 0x106000, 0x107000, 0x110000, 0x200000)
KEY = 0
ADDRESS = bytes(10) + b"\xff\xff" + bytes([10, 0, 0, 1])
QPNS = (0x802, 0x803)


class Rnic:
    """A minimal driver with one hart, one memory region and one completion queue."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine
        self.commands = self.doorbells = self.taken = 0
        machine.write32(RNIC + CTRL, 1 << 31)
        assert machine.read32(RNIC) == 0x52444d01
        machine.write(PAGE, bytes(0x8000))
        for register, offset in ((0, PAGE), (8, COMMANDS), (0x10, DOORBELLS),
                                 (0x18, EVENTS)):
            machine.write_address(RNIC + HART + register, offset)
        machine.write32(RNIC + HART + 0x20, 4 | 4 << 8 | 4 << 16)
        machine.write32(RNIC + HART + 0x24, 1)
        assert machine.read32(RNIC + HART + 0x24) == 1

    def kick(self) -> None:
        self.m.wait(lambda: self.m.read(PAGE + 0x100, 1) == b"\1", "sleep")
        self.m.write32(RNIC + HART + 0x28, 1)

    def command(self, opcode: int, index: int, *fields: tuple[int, str, int]) -> int:
        entry = bytearray(128)
        struct.pack_into("<BxxxxxxxI", entry, 0, opcode, index)
        for offset, form, value in fields:
            struct.pack_into("<" + form, entry, offset, value)
        at = COMMANDS + self.commands % 16 * 128
        self.m.write(at, bytes(entry))
        self.commands += 1
        self.m.write(PAGE, struct.pack("<I", self.commands))
        self.kick()
        self.m.wait(lambda: self.m.read(at + 1, 1) != b"\0", "command")
        status, result = struct.unpack("<xBxxI", self.m.read(at, 8))
        assert status == 1
        return result

    def connect(self) -> None:
        """Connect both queue pairs to each other, in state RTS and with MTU 1024."""
        self.command(PD_CREATE, 0)
        self.command(MR_CREATE, 0, (18, "B", 7), (24, "Q", DRAM),
                     (32, "Q", 16 << 20), (40, "Q", DRAM))
        self.command(CQ_CREATE, 0, (17, "B", 5), (24, "Q", DRAM + CQ),
                     (32, "Q", DRAM + RECORDS))
        words = struct.unpack("<QQ", ADDRESS)
        mac = int.from_bytes(MAC, "little")
        self.command(LADDR_SET, 0, (18, "Q", mac), (24, "Q", words[0]),
                     (32, "Q", words[1]))
        self.command(NEIGH_SET, 0, (18, "Q", mac), (24, "Q", words[0]),
                     (32, "Q", words[1]), (40, "H", 0xffff))
        for i, qpn in enumerate(QPNS):
            record = DRAM + RECORDS + 64 * (1 + i)
            self.command(RQ_CREATE, i, (18, "B", 2), (24, "Q", DRAM + RINGS + 0x8000),
                         (32, "Q", record + 4))
            self.command(QP_CREATE, qpn, (17, "B", 3), (24, "H", i),
                         (32, "Q", DRAM + RINGS + 0x1000 * i), (40, "Q", record))
            for state in (1, 2, 3):
                self.command(QP_MODIFY, qpn, (16, "B", state), (20, "B", 3),
                             (21, "B", 7), (22, "B", 1), (23, "B", 1),
                             (24, "I", QPNS[1 - i]), (32, "I", 100), (36, "I", 100),
                             (40, "B", 14), (41, "B", 7))
        self.m.write32(RNIC + IRQ_ENABLE, 1)
        self.m.write32(RNIC + CTRL, 1)

    def post_write(self, count: int, size: int, source: int, target: int) -> None:
        """Post work request number `count` on queue pair 0."""
        entry = bytearray(128)
        struct.pack_into("<BBB", entry, 0, WRITE, SIGNALED, 1)
        struct.pack_into("<QQI", entry, 8, 1000 + count, DRAM + target, KEY)
        struct.pack_into("<QII", entry, 64, DRAM + source, size, KEY)
        self.m.write(RINGS + count % 8 * 128, bytes(entry))
        self.m.write(RECORDS + 64, struct.pack("<I", count + 1))
        self.m.write(DOORBELLS + self.doorbells % 16 * 4, struct.pack("<I", QPNS[0]))
        self.doorbells += 1
        self.m.write(PAGE + 0x40, struct.pack("<I", self.doorbells))
        self.kick()

    def completion(self) -> tuple[int, int]:
        """Return frames until the next completion; its wr_id and status."""
        at = CQ + self.taken % 32 * 32
        phase = self.taken // 32 % 2 == 0
        self.m.cable.settimeout(0.01)

        def arrived() -> bool:
            reflect(self.m)
            return self.m.read(at + 31, 1)[0] & 1 == phase

        self.m.wait(arrived, "completion")
        self.taken += 1
        self.m.write(RECORDS, struct.pack("<I", self.taken))
        entry = self.m.read(at, 32)
        return struct.unpack_from("<Q", entry)[0], entry[23]

    def counter(self, number: int) -> int:
        return self.m.read32(RNIC + COUNTERS + 8 * number)


def frames(machine: Machine) -> list[bytes]:
    found = []
    try:
        while True:
            found.append(machine.cable.recv(5000))
    except TimeoutError:
        return found


def reflect(machine: Machine) -> None:
    for frame in frames(machine):
        machine.cable.sendto(frame, str(machine.folder / "near"))


def start_rnic(machine: Machine) -> Rnic:
    start_port(machine)
    machine.write32(PORT0 + 0x10, 0x23)  # RoCEv2 to the RNIC
    rnic = Rnic(machine)
    rnic.connect()
    return rnic


def test_an_rdma_write_between_two_queue_pairs_completes(start) -> None:  # noqa: F811
    machine = start()
    rnic = start_rnic(machine)
    data = bytes(range(256)) * 20 + b"end"
    machine.write(DATA, data)
    machine.write(PAGE + 0x140, struct.pack("<I", 1))  # ARMED
    rnic.post_write(0, len(data), DATA, DATA + 0x10000)
    assert rnic.completion() == (1000, 0)
    assert machine.read(DATA + 0x10000, len(data)) == data
    assert machine.read32(RNIC + IRQ_STATUS) == 1
    machine.write32(RNIC + IRQ_STATUS, 1)
    assert machine.read32(RNIC + IRQ_STATUS) == 0
    assert rnic.counter(RETRANSMITTED) == 0
    assert rnic.counter(TX_PACKETS) == rnic.counter(RX_PACKETS) == 7  # 6 and an ACK


def test_a_write_completes_after_save_and_load(
        start, tmp_path: Path) -> None:  # noqa: F811
    machine = start()
    rnic = start_rnic(machine)
    data = bytes(range(251)) * 20
    machine.write(DATA, data)
    rnic.post_write(0, len(data), DATA, DATA + 0x10000)
    machine.cable.settimeout(0.2)
    assert len(frames(machine)) == 5  # and lost
    machine.ask("stop")
    machine.ask("migrate", uri=f"file:{tmp_path}/state")
    machine.wait(lambda: machine.ask("query-migrate").get("status") == "completed", "save")
    machine.end(signal.SIGTERM)

    machine = start("-incoming", f"file:{tmp_path}/state")
    machine.wait(lambda: machine.ask("query-status")["status"] != "inmigrate", "load")
    machine.ask("cont")
    rnic.m = machine
    machine.do("clock_step 100000000")  # the ACK timeout is 67 ms
    assert rnic.completion() == (1000, 0)
    assert machine.read(DATA + 0x10000, len(data)) == data
    assert rnic.counter(TIMEOUTS) == 1
    assert rnic.command(QP_QUERY, QPNS[0]) == 3
    rnic.post_write(1, 10, DATA, DATA + 0x20000)
    assert rnic.completion() == (1001, 0)


def test_a_machine_reset_resets_the_rnic(start) -> None:  # noqa: F811
    machine = start()
    start_rnic(machine)
    machine.ask("system_reset")
    machine.ask("query-status")
    assert machine.read32(RNIC + CTRL) == 0
    assert machine.read32(RNIC + HART + 0x24) == 0
    assert start_rnic(machine).command(QP_QUERY, QPNS[1]) == 3
