# SPDX-License-Identifier: BSD-2-Clause
"""essd-port and essd-media in QEMU, without firmware.

The tests access registers and rings over qtest, keep the media in a file, and are the
peer on port 0's cable.
"""

import json
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))

from essd.build import qemu_build  # noqa: E402

DRAM = 0x80000000
MEDIA = 0x10300000
PORT0 = 0x10100000
MIB = 1 << 20

# hw-model/regs/media.h
READ, WRITE, FLUSH, ZEROES, DEALLOCATE = 1, 2, 3, 4, 5
FUA = 1
OK, LBA_RANGE = 0, 4

MAC = bytes.fromhex("021122334455")
ARP = MAC + b"\x02" * 6 + b"\x08\x06" + b"x" * 28


@pytest.fixture(scope="session")
def qemu() -> Path:
    return qemu_build.ensure_qemu()


class Machine:
    """A QEMU that a test controls over qtest."""

    def __init__(self, qemu: Path, folder: Path, medium: Path, *options: str,
                 accel: tuple[str, ...] = ("-accel", "qtest"),
                 flash: Path | None = None) -> None:
        folder.mkdir()
        self.folder = folder
        self.events: list[dict] = []
        if flash is None:
            flash = folder / "flash"
            with open(flash, "wb") as file:
                file.truncate(32 * MIB)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(folder / "qtest"))
        listener.listen(1)
        listener.settimeout(30)
        self.errors = folder / "errors"
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [qemu, "-M", "essd,media=m,port0-netdev=n", *accel,
                 "-qtest", f"unix:{folder}/qtest", "-qtest-log", "none",
                 "-display", "none", "-nodefaults",
                 "-qmp", f"unix:{folder}/qmp,server=on,wait=off",
                 "-drive", f"if=mtd,format=raw,file={flash}",
                 "-blockdev", "driver=raw,node-name=m,file.driver=file,"
                 f"file.filename={medium}",
                 "-netdev", "dgram,id=n,local.type=unix,remote.type=unix,"
                 f"local.path={folder}/near,remote.path={folder}/far", *options],
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        self.cable = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.cable.bind(str(folder / "far"))
        self.cable.settimeout(30)
        qtest = listener.accept()[0]
        qtest.settimeout(60)
        self.qtest = qtest.makefile("rw")
        self.qmp = self.connect("qmp").makefile("rw")
        json.loads(self.qmp.readline())
        self.ask("qmp_capabilities")

    def connect(self, name: str) -> socket.socket:
        found = socket.socket(socket.AF_UNIX)
        found.settimeout(60)
        self.wait(lambda: found.connect_ex(str(self.folder / name)) == 0, name)
        return found

    def end(self, how: int = signal.SIGKILL) -> None:
        self.process.send_signal(how)
        self.process.wait(60)

    @staticmethod
    def wait(true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 30
        while not true():
            assert time.monotonic() < deadline, what
            time.sleep(0.002)

    def ask(self, command: str, **arguments: object):
        text = json.dumps({"execute": command, "arguments": arguments})
        self.qmp.write(text + "\n")
        self.qmp.flush()
        for line in self.qmp:
            answer = json.loads(line)
            if "event" in answer:
                self.events.append(answer)
            else:
                assert "return" in answer, (command, answer)
                return answer["return"]
        raise AssertionError(self.errors.read_text())

    def do(self, command: str) -> list[str]:
        self.qtest.write(command + "\n")
        self.qtest.flush()
        answer = self.qtest.readline().split()
        assert answer and answer[0] == "OK", (command[:80], answer)
        return answer[1:]

    def read32(self, addr: int) -> int:
        return int(self.do(f"readl {addr:#x}")[0], 16)

    def write32(self, addr: int, value: int) -> None:
        self.do(f"writel {addr:#x} {value:#x}")

    def read(self, offset: int, size: int) -> bytes:
        return bytes.fromhex(self.do(f"read {DRAM + offset:#x} {size}")[0][2:])

    def write(self, offset: int, data: bytes) -> None:
        self.do(f"write {DRAM + offset:#x} {len(data)} 0x{data.hex()}")

    def write_address(self, register: int, offset: int) -> None:
        self.write32(register, DRAM + offset)
        self.write32(register + 4, 0)

    def links(self) -> list[tuple[int, bool]]:
        self.ask("query-status")
        return [(e["data"]["port"], e["data"]["up"]) for e in self.events
                if e["event"] == "ESSD_PORT_LINK"]


class CommandQueue:
    """Queue 0 of a device with rings of 16 entries, used as firmware uses it.

    Registers and structures: hw-model/regs/queue.h.
    """

    PAGE, COMMANDS, COMPLETIONS = 0x0, 0x8000, 0x10000

    def __init__(self, machine: Machine, registers: int, command_bytes: int) -> None:
        self.m = machine
        self.registers = registers
        self.command_bytes = command_bytes
        self.taken = self.posted = 0
        machine.write32(registers + 0x10, 1 << 31)
        machine.wait(lambda: machine.read32(registers + 0x10) == 0, "reset")
        machine.write(self.PAGE, bytes(0x140))
        machine.write(self.COMPLETIONS, bytes(16 * 32))
        machine.write_address(registers + 0x100, self.PAGE)
        machine.write_address(registers + 0x108, self.COMMANDS)
        machine.write_address(registers + 0x110, self.COMPLETIONS)
        machine.write32(registers + 0x118, 4 | 4 << 8)
        machine.write32(registers + 0x11c, 1)
        assert machine.read32(registers + 0x11c) == 1

    def put_command(self, command: bytes) -> None:
        """Write a command into the ring, and wake the device if it is asleep."""
        size = self.command_bytes
        self.m.write(self.COMMANDS + self.posted % 16 * size, command.ljust(size, b"\0"))
        self.posted += 1
        self.m.write(self.PAGE, struct.pack("<I", self.posted))
        if self.m.read(self.PAGE + 0xc0, 1) == b"\1":
            self.m.write32(self.registers + 0x120, 1)

    def is_done(self) -> bool:
        entry = self.COMPLETIONS + self.taken % 16 * 32
        return self.m.read(entry + 31, 1)[0] & 1 == (self.taken // 16 % 2 == 0)

    def take(self) -> int:
        """Wait for the next completion; return its status."""
        entry = self.COMPLETIONS + self.taken % 16 * 32
        self.m.wait(self.is_done, "completion")
        self.taken += 1
        self.m.write(self.PAGE + 0x80, struct.pack("<I", self.taken))
        return self.m.read(entry + 16, 1)[0]


class MediaQueue(CommandQueue):
    """Queue 0 of the media engine."""

    DATA = 0x100000

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, MEDIA, 128)

    def run(self, opcode: int, lba: int = 0, count: int = 0, flags: int = 0) -> int:
        """Run one command on the buffer at DATA; return when it has completed."""
        has_data = opcode in (READ, WRITE)
        command = struct.pack("<BBHIQQQ", opcode, flags, has_data, count,
                              self.posted, lba, 0)
        command += struct.pack("<QII", DRAM + self.DATA, count * 512, 0)
        self.put_command(command)
        return self.take()

    def put(self, lba: int, byte: bytes, flags: int = 0) -> None:
        self.m.write(self.DATA, byte * 4096)
        assert self.run(WRITE, lba, 8, flags) == OK

    def get(self, lba: int) -> bytes:
        """The byte that fills the 4 KiB at `lba`."""
        assert self.run(READ, lba, 8) == OK
        data = self.m.read(self.DATA, 4096)
        assert data == data[:1] * 4096
        return data[:1]


@pytest.fixture
def medium(tmp_path: Path) -> Path:
    path = tmp_path / "medium"
    with open(path, "wb") as file:
        file.truncate(64 * MIB)
    return path


@pytest.fixture
def start(qemu: Path, tmp_path: Path, medium: Path) -> Iterator[Callable[..., Machine]]:
    machines: list[Machine] = []

    def new(*options: str) -> Machine:
        machines.append(Machine(qemu, tmp_path / f"m{len(machines)}", medium, *options))
        return machines[-1]

    yield new
    for machine in machines:
        machine.end()


def on_medium(medium: Path, lba: int) -> bytes:
    with open(medium, "rb") as file:
        file.seek(lba * 512)
        return file.read(1)


def test_a_power_cut_loses_only_unflushed_writes(start, medium: Path) -> None:
    machine = start()
    queue = MediaQueue(machine)
    assert machine.read32(MEDIA + 0x18) == 64 * MIB // 512
    queue.put(8, b"A")
    assert (queue.get(8), on_medium(medium, 8)) == (b"A", b"\0")
    assert queue.run(FLUSH) == OK
    assert on_medium(medium, 8) == b"A"
    queue.put(8, b"B")
    queue.put(16, b"C", FUA)
    assert queue.get(8) == b"B"
    machine.end(signal.SIGKILL)
    queue = MediaQueue(start())
    assert (queue.get(8), queue.get(16)) == (b"A", b"C")


def test_reset_keeps_the_cache_and_stop_and_quit_flush_it(start, medium: Path) -> None:
    machine = start()
    queue = MediaQueue(machine)
    queue.put(8, b"A")
    machine.ask("system_reset")
    machine.ask("query-status")
    queue = MediaQueue(machine)
    assert (queue.get(8), on_medium(medium, 8)) == (b"A", b"\0")
    machine.ask("stop")
    assert on_medium(medium, 8) == b"A"
    machine.ask("cont")
    queue.put(8, b"B")
    machine.end(signal.SIGTERM)
    assert on_medium(medium, 8) == b"B"


def test_media_write_zeroes_deallocate_and_check_the_range(start) -> None:
    queue = MediaQueue(start())
    queue.put(8, b"A", FUA)
    queue.put(16, b"A")
    assert queue.run(ZEROES, 8, 8) == OK
    assert queue.run(DEALLOCATE, 16, 8) == OK
    assert (queue.get(8), queue.get(16)) == (b"\0", b"\0")
    assert queue.run(READ, 64 * MIB // 512 - 7, 8) == LBA_RANGE


def test_the_cache_is_flushed_when_there_are_no_writes(start, medium: Path) -> None:
    machine = start()
    queue = MediaQueue(machine)
    queue.put(8, b"A")
    for _ in range(10):
        machine.do("clock_step 20000000")
    machine.wait(lambda: on_medium(medium, 8) == b"A", "destage")


def start_port(machine: Machine) -> None:
    """Start port 0: rings of 4 at 0x21000 and 0x22000, page at 0x20000, one address."""
    machine.write(0x20000, bytes(0x180))
    for i in range(4):
        machine.write(0x21000 + 32 * i,
                      struct.pack("<QII", DRAM + 0x30000 + 0x2400 * i, 0x2400, 0))
    machine.write_address(PORT0 + 0x100, 0x20000)
    machine.write_address(PORT0 + 0x108, 0x21000)
    machine.write_address(PORT0 + 0x110, 0x22000)
    for offset, value in ((0x118, 2 | 2 << 8), (0x11c, 1), (0x40, 0x22334455),
                          (0x44, 0x80000211), (0x10, 3), (0x1c, 25000 << 8 | 1 << 4 | 1)):
        machine.write32(PORT0 + offset, value)
    assert machine.read32(PORT0 + 0x11c) == 1


def received(machine: Machine) -> int:
    return struct.unpack("<I", machine.read(0x20000, 4))[0]


def test_a_port_sends_and_receives_frames(start) -> None:
    machine = start()
    start_port(machine)
    machine.cable.sendto(ARP, str(machine.folder / "near"))
    machine.wait(lambda: received(machine) == 1, "frame")
    assert machine.read(0x30000, 60) == ARP + bytes(18)
    machine.write(0x50000, ARP)
    machine.write(0x22000, struct.pack("<QII", DRAM + 0x50000, len(ARP), 0))
    machine.write(0x20080, struct.pack("<I", 1))
    machine.write32(PORT0 + 0x120, 1)
    assert machine.cable.recv(2000) == ARP + bytes(18)
    found = machine.ask("query-rx-filter")[0]
    assert found["unicast-table"] == ["02:11:22:33:44:55"]
    assert found["unicast"] == "normal"


def test_a_port_reports_its_link(start) -> None:
    machine = start()
    start_port(machine)
    assert machine.links() == [(0, True)]
    assert machine.ask("qom-get", path="/machine/port0", property="link-up") is True
    machine.ask("set_link", name="n", up=False)
    assert machine.read32(PORT0 + 0x18) & 3 == 0
    machine.ask("set_link", name="n", up=True)
    machine.write32(PORT0 + 0x1c, 25000 << 8 | 1 << 4)  # the firmware's turn
    assert machine.read32(PORT0 + 0x18) & 3 == 2
    assert machine.links() == [(0, True), (0, False), (0, True), (0, False)]
    assert machine.ask("qom-get", path="/machine/port0", property="link-up") is False


def port_state(machine: Machine) -> dict:
    return machine.ask("qom-get", path="/machine/port0", property="state")


def set_partner(machine: Machine, **settings: object) -> None:
    for name, value in settings.items():
        machine.ask("qom-set", path="/machine/port0",
                    property=name.replace("_", "-"), value=value)


def test_a_link_needs_the_same_fec_and_speed_on_both_sides(start) -> None:
    machine = start()
    start_port(machine)
    assert port_state(machine)["up"]
    set_partner(machine, partner_fec="rs")
    state = port_state(machine)
    assert (state["up"], state["reason"]) == (False, "FEC mismatch")
    assert (state["signal"], state["local-fault"]) == (True, True)
    assert machine.read32(PORT0 + 0x200) >> 4 & 15 == 5
    machine.write32(PORT0 + 0x1c, 25000 << 8 | 2 << 4 | 1)  # the firmware's turn
    assert port_state(machine)["fec-in-use"] == "rs"
    set_partner(machine, partner_speed=10)
    assert port_state(machine)["reason"] == "speed mismatch"
    set_partner(machine, partner_speed=25, present=False)
    state = port_state(machine)
    assert (state["reason"], state["signal"]) == ("no partner", False)
    set_partner(machine, present=True, partner_fault=True)
    assert port_state(machine)["remote-fault"]
    set_partner(machine, partner_fault=False)
    assert machine.links() == [(0, n % 2 == 0) for n in range(9)]


def test_bit_errors_lose_the_same_frames_with_the_same_seed(start, tmp_path: Path) -> None:
    machine = start()
    start_port(machine)

    def lost(seed: int, sent: int = 100) -> int:
        before = port_state(machine)["counters"]
        set_partner(machine, seed=seed, ber=3e-4)
        for n in range(sent):
            machine.cable.sendto(ARP, str(machine.folder / "near"))
            machine.wait(lambda n=n: port_state(machine)["counters"]["etherStatsPkts"]
                         == before["etherStatsPkts"] + n + 1, "frame")
        set_partner(machine, ber=0)
        after = port_state(machine)["counters"]
        assert after["aFECCorrectedBlocks"] > before["aFECCorrectedBlocks"]
        return (after["aFrameCheckSequenceErrors"]
                - before["aFrameCheckSequenceErrors"])

    first = lost(7)
    assert 3 <= first <= 50         # 15 % of codewords, more than one a frame
    assert lost(7) == first


def test_a_link_partner_can_be_set_at_the_start_and_is_saved(start,
                                                           tmp_path: Path) -> None:
    machine = start("-global", "essd-port.partner-fec=rs",
                    "-global", "essd-port.ber=1e-6")
    start_port(machine)
    assert port_state(machine)["reason"] == "FEC mismatch"
    set_partner(machine, partner_fec="fc")
    machine.ask("stop")
    machine.ask("migrate", uri=f"file:{tmp_path}/state")
    machine.wait(lambda: machine.ask("query-migrate").get("status") == "completed", "save")
    machine.end(signal.SIGTERM)
    machine = start("-incoming", f"file:{tmp_path}/state")
    machine.wait(lambda: machine.ask("query-status")["status"] != "inmigrate", "load")
    assert port_state(machine)["up"]
    for name, value in (("partner-fec", "fc"), ("ber", 1e-6), ("partner-speed", 25)):
        assert machine.ask("qom-get", path="/machine/port0", property=name) == value


def test_a_saved_machine_resumes(start, tmp_path: Path) -> None:
    machine = start()
    queue = MediaQueue(machine)
    queue.put(8, b"A")
    start_port(machine)
    machine.cable.sendto(ARP, str(machine.folder / "near"))
    machine.wait(lambda: received(machine) == 1, "frame")
    machine.ask("stop")
    machine.ask("migrate", uri=f"file:{tmp_path}/state")
    machine.wait(lambda: machine.ask("query-migrate").get("status") == "completed", "save")
    machine.end(signal.SIGTERM)

    machine = start("-incoming", f"file:{tmp_path}/state")
    machine.wait(lambda: machine.ask("query-status")["status"] != "inmigrate", "load")
    machine.ask("cont")
    queue.m = machine
    assert queue.get(8) == b"A"
    machine.cable.sendto(ARP, str(machine.folder / "near"))
    machine.wait(lambda: received(machine) == 2, "frame")


@pytest.mark.parametrize("size, options, complaint", [
    (63 * MIB, "", "the media has 66060288 bytes, not 64 MiB to 16 TiB"),
    (16 * 1024 * 1024 * MIB + 4096, "", "not 64 MiB to 16 TiB"),
    (64 * MIB, ",read-only=on", "the media 'm' is read-only"),
])
def test_unusable_media_are_refused_in_one_line(qemu: Path, tmp_path: Path, size: int,
                                     options: str, complaint: str) -> None:
    flash = tmp_path / "flash"
    with open(flash, "wb") as file:
        file.truncate(32 * MIB)
    run = subprocess.run(
        [qemu, "-M", "essd,media=m", "-accel", "qtest", "-display", "none",
         "-nodefaults", "-drive", f"if=mtd,format=raw,file={flash}",
         "-blockdev", f"driver=null-co,node-name=m,size={size},"
         f"read-zeroes=on{options}"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False)
    assert run.returncode != 0
    assert complaint in run.stderr
    assert len(run.stderr.strip().split("\n")) == 1
