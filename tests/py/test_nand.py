# SPDX-License-Identifier: BSD-2-Clause
"""essd-nand in QEMU, without firmware.

The tests access registers and rings over qtest and keep the array in a file.
"""

import contextlib
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_port_media import (  # noqa: F401
    DRAM,
    MIB,
    TOP,
    CommandQueue,
    Machine,
    medium,
    qemu,
)
from test_soc import Bench

from essd.build import fw_build, native_build
from essd.drive import fault_rules

NAND = 0x10310000
POWER, POWER_DONE = 0x10001044, 0x1000104c  # registers of hw-model/regs/sysctl.h
BACKED, FAILING = 1, 2
SOURCES = ["tests/py/nand_new.c", "hw-model/nand/nand_file.c", "hw-model/nand/nand_profile.c",
           "hw-model/nand/nand_errors.c", "lib/assert_native.c",
           "lib/crc32_small.c"]

# hw-model/regs/nand.h
READ, PROGRAM, ERASE, MARKS = 1, 2, 3, 4
OK, RULE, ERASED, UNCORRECTABLE = 0, 4, 5, 6
URGENT = 2
PAGE_BYTES, UNITS = 16384, 12           # of a wordline in one plane, with 3 pages


class NandQueue(CommandQueue):
    """Queue 0 of the NAND controller."""

    LIST, DATA = 0x18000, 0x100000

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, NAND, 64)

    def post(self, opcode: int, block: int = 0, wordline: int = 0, entries: int = 0,
             place: tuple[int, int] = (0, 0), flags: int = 0) -> None:
        """Post one command for plane 0 of a die."""
        command = struct.pack("<BBHBBBxQQ4HHxxI", opcode, flags, entries, *place, 1,
                              self.posted, DRAM + self.LIST, block, 0, 0, 0, wordline, 0)
        self.put_command(command)

    def run(self, *args, **kwargs) -> int:
        self.post(*args, **kwargs)
        return self.take()

    def erase(self, block: int) -> int:
        return self.run(ERASE, block)

    def put_program(self, byte: bytes) -> None:
        self.m.write(self.DATA, byte * 4096)
        entry = struct.pack("<QQHH4xBB2xI16s", DRAM + self.DATA, 0, 0, 4096, 0, 0, 0,
                            b"system bytes")
        self.m.write(self.LIST, entry.ljust(64, b"\0") * UNITS)

    def program(self, block: int, wordline: int, byte: bytes) -> int:
        self.put_program(byte)
        return self.run(PROGRAM, block, wordline, UNITS)

    def put_read(self, wordline: int) -> None:
        self.m.write(self.DATA, b"?" * 4096)
        entry = struct.pack("<QQHHHBBBB2xI", DRAM + self.DATA, 0, 0, 4096, wordline, 0, 2,
                            3, 0, 0)
        self.m.write(self.LIST, entry.ljust(64, b"\0"))

    def read(self, block: int, wordline: int) -> tuple[int, bytes]:
        """The status, and the byte that fills the last unit of the wordline."""
        self.put_read(wordline)
        status = self.run(READ, block, 0, 1)
        data = self.m.read(self.DATA, 4096)
        if status == OK:
            assert data == data[:1] * 4096
            assert self.m.read(self.LIST + 32, 12) == b"system bytes"
        return status, data[:1]


@pytest.fixture(scope="session")
def nand_new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("nand") / "nand_new"
    subprocess.run(["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", TOP,
                    *(TOP / name for name in SOURCES), "-o", program], check=True,
                   timeout=120)
    return program


@pytest.fixture
def array(tmp_path: Path, nand_new: Path) -> Path:
    path = tmp_path / "array"
    subprocess.run([nand_new, path, "1"], check=True, timeout=60)
    return path


@pytest.fixture
def start(qemu: Path, tmp_path: Path, medium: Path,     # noqa: F811
          array: Path) -> Iterator[Callable[..., Machine]]:
    machines: list[Machine] = []

    def new(*options: str, file: Path = array) -> Machine:
        machines.append(Machine(
            qemu, tmp_path / f"m{len(machines)}", medium, "-M", "essd,nand=n",
            "-blockdev", "driver=raw,node-name=n,discard=unmap,file.driver=file,"
            f"file.filename={file}", *options))
        return machines[-1]

    yield new
    for machine in machines:
        machine.end()


def save(machine: Machine, tmp_path: Path) -> None:
    machine.ask("stop")
    machine.ask("migrate", uri=f"file:{tmp_path}/state")
    machine.wait(lambda: machine.ask("query-migrate").get("status") == "completed", "save")
    machine.end(signal.SIGTERM)


def test_the_geometry_is_that_of_the_file(start) -> None:
    machine = start()
    assert machine.read32(NAND) == 0x4e4e4401
    assert machine.read32(NAND + 0x30) == 2 | 2 << 8 | 4 << 16 | 4 << 24
    assert machine.read32(NAND + 0x34) == 4 | 4 << 16
    assert machine.read32(NAND + 0x38) == 3


def test_a_machine_without_an_array_has_a_controller_without_geometry(
        qemu: Path, tmp_path: Path, medium: Path) -> None:      # noqa: F811
    machine = Machine(qemu, tmp_path / "m", medium)
    try:
        assert machine.read32(NAND) == 0x4e4e4401
        assert machine.read32(NAND + 0x30) == 0
    finally:
        machine.end()


def test_what_was_programmed_survives_a_power_cut(start) -> None:
    machine = start()
    queue = NandQueue(machine)
    assert queue.erase(1) == OK
    assert queue.read(1, 0) == (ERASED, b"?")
    assert queue.program(1, 0, b"A") == OK
    assert queue.program(1, 1, b"B") == OK
    assert queue.program(1, 1, b"C") == RULE
    assert queue.read(1, 1) == (OK, b"B")
    machine.end(signal.SIGKILL)
    queue = NandQueue(start())
    assert (queue.read(1, 0), queue.read(1, 1)) == ((OK, b"A"), (OK, b"B"))
    assert queue.read(1, 2)[0] == ERASED
    assert queue.program(1, 2, b"D") == OK
    assert queue.erase(1) == OK
    assert queue.read(1, 0)[0] == ERASED


def test_operations_take_their_time_and_a_power_cut_leaves_half_of_one(start) -> None:
    machine = start("-global", "essd-nand.timing=realtime")
    queue = NandQueue(machine)
    queue.post(ERASE, 1)
    machine.do("clock_step 9000000")
    assert not queue.is_done()
    machine.do("clock_step 2000000")
    assert queue.take() == OK
    queue.put_program(b"A")
    queue.post(PROGRAM, 1, 0, UNITS)
    machine.do("clock_step 100000")     # the transfer has ended
    machine.ask("query-status")
    assert not queue.is_done()
    machine.end(signal.SIGKILL)
    queue = NandQueue(start())
    assert queue.read(1, 0)[0] in (ERASED, UNCORRECTABLE)
    assert queue.erase(1) == OK
    assert queue.program(1, 0, b"B") == OK
    assert queue.read(1, 0) == (OK, b"B")


def test_a_stop_ends_operations_that_take_time(start) -> None:
    machine = start("-global", "essd-nand.timing=realtime")
    queue = NandQueue(machine)
    queue.post(ERASE, 1)
    machine.do("clock_step 1000000")
    assert not queue.is_done()
    machine.ask("stop")
    assert queue.is_done() and queue.take() == OK
    machine.ask("cont")
    queue.post(ERASE, 1)
    machine.do("clock_step 11000000")
    assert queue.take() == OK


def test_a_saved_machine_resumes_with_its_array(start, tmp_path: Path) -> None:
    machine = start()
    queue = NandQueue(machine)
    assert queue.erase(0) == OK
    assert queue.program(0, 0, b"A") == OK
    save(machine, tmp_path)
    machine = start("-incoming", f"file:{tmp_path}/state")
    machine.wait(lambda: machine.ask("query-status")["status"] != "inmigrate", "load")
    machine.ask("cont")
    queue.m = machine
    assert queue.read(0, 0) == (OK, b"A")
    assert machine.read32(NAND + 0x400) == 1        # units read
    assert machine.read32(NAND + 0x408) == UNITS    # units programmed


def cut_power_by(machine: Machine, number: int, text: str) -> None:
    rule = fault_rules.parse_line(text)
    machine.ask("qom-set", path="/machine/faults", property="add",
                value=rule.for_model(number))


def ends(machine: Machine, act: Callable[[], None]) -> bool:
    """Whether the power of the machine is off then; it may end before it answers."""
    with contextlib.suppress(AssertionError, OSError):
        act()
    return machine.process.wait(60) == -signal.SIGKILL


def test_a_rule_that_cuts_the_power_ends_the_machine_at_once(start) -> None:
    queue = NandQueue(start())
    assert queue.erase(0) == OK
    cut_power_by(queue.m, 7, "nand operation=program do power-cut")
    queue.put_program(b"A")
    assert ends(queue.m, lambda: queue.post(PROGRAM, 0, 0, UNITS))
    assert "fault rule 7 cuts the power" in queue.m.errors.read_text()
    queue = NandQueue(start())
    assert queue.read(0, 0)[0] == ERASED


@pytest.mark.parametrize("timing", ["fast", "realtime"])
def test_a_rule_cuts_the_power_during_a_program(start, timing: str) -> None:
    queue = NandQueue(start())
    assert [queue.erase(0), queue.program(0, 0, b"A")] == [OK, OK]
    queue.m.end(signal.SIGTERM)
    queue = NandQueue(start("-global", f"essd-nand.timing={timing}"))
    cut_power_by(queue.m, 9, "nand operation=program do power-cut=during")
    queue.put_program(b"B")
    queue.post(PROGRAM, 0, 1, UNITS)
    assert ends(queue.m, lambda: queue.m.do("clock_step 200000"))
    assert "fault rule 9 cuts the power" in queue.m.errors.read_text()
    queue = NandQueue(start())
    assert queue.read(0, 0) == (OK, b"A")
    assert queue.read(0, 1)[0] == UNCORRECTABLE
    assert [queue.program(0, wordline, b"C") for wordline in (1, 2)] == [RULE, RULE]
    assert [queue.erase(0), queue.program(0, 0, b"D")] == [OK, OK]
    assert queue.read(0, 0) == (OK, b"D")


def test_a_rule_cuts_the_power_during_an_erasure(start) -> None:
    queue = NandQueue(start())
    assert [queue.erase(block) for block in (0, 1)] == [OK, OK]
    assert [queue.program(block, 0, b"A") for block in (0, 1)] == [OK, OK]
    cut_power_by(queue.m, 9, "nand operation=erase block=1 do power-cut=during")
    assert ends(queue.m, lambda: queue.post(ERASE, 1))
    queue = NandQueue(start())
    assert queue.read(0, 0) == (OK, b"A")
    assert queue.read(1, 0)[0] == UNCORRECTABLE
    assert queue.program(1, 0, b"B") == RULE
    assert [queue.erase(1), queue.program(1, 0, b"B")] == [OK, OK]
    assert queue.read(1, 0) == (OK, b"B")


def test_with_capacitors_an_operation_ends_although_the_power_fails_during_it(start) -> None:
    queue = NandQueue(start("-M", "plp=on"))
    assert queue.erase(0) == OK
    cut_power_by(queue.m, 9, "nand operation=program do power-cut=during")
    assert queue.program(0, 0, b"A") == OK
    assert queue.m.read32(POWER) == BACKED | FAILING
    assert ends(queue.m, lambda: queue.m.write32(POWER_DONE, 1))
    queue = NandQueue(start())
    assert queue.read(0, 0) == (OK, b"A")
    assert queue.program(0, 1, b"B") == OK


def test_each_broken_rule_is_a_guest_error(start, tmp_path: Path) -> None:
    log = tmp_path / "guest-errors"
    queue = NandQueue(start("-d", "guest_errors", "-D", str(log)))
    assert [queue.erase(1), queue.program(1, 0, b"A")] == [OK, OK]
    assert "breaks rule" not in log.read_text()
    assert [queue.program(1, wordline, b"B") for wordline in (0, 3)] == [RULE, RULE]
    assert queue.program(1, 1, b"B") == OK
    assert [line for line in log.read_text().splitlines() if "breaks rule" in line] == [
        f"essd-nand: PROGRAM of channel 0, die 0, planes 0x1, block 1, wordline {wordline} "
        "breaks rule 1 of the flash: it is not the next wordline of an erased block"
        for wordline in (0, 3)]


def test_with_capacitors_the_machine_goes_on_until_firmware_needs_no_power(start) -> None:
    queue = NandQueue(start("-M", "plp=on"))
    assert queue.erase(0) == OK
    assert queue.m.read32(POWER) == BACKED
    for number in (7, 8):
        cut_power_by(queue.m, number, "nand operation=program do power-cut")
    assert queue.program(0, 0, b"A") == OK
    assert queue.m.read32(POWER) == BACKED | FAILING
    assert queue.program(0, 1, b"B") == OK      # The rules do nothing any more.
    said = queue.m.errors.read_text()
    assert said.count("cuts the power") == 1 and "fault rule 7 cuts the power" in said
    assert ends(queue.m, lambda: queue.m.write32(POWER_DONE, 1))
    queue = NandQueue(start())
    assert [queue.read(0, wordline) for wordline in (0, 1)] == [(OK, b"A"), (OK, b"B")]


def start_two_programs(start, array: Path) -> NandQueue:
    """Program two blocks: one is in the array, the data of the other one in the cache
    register.  The beginning of the first one is in the file."""
    machine = start()
    assert [NandQueue(machine).erase(block) for block in (0, 1)] == [OK, OK]
    machine.end(signal.SIGTERM)
    machine = start("-global", "essd-nand.timing=realtime")
    queue = NandQueue(machine)
    queue.put_program(b"A")
    for block in (0, 1):
        queue.post(PROGRAM, block, 0, UNITS)
    machine.do("clock_step 200000")
    machine.wait(lambda: b"BEGN" in array.read_bytes(), "the program's beginning in the file")
    assert not queue.is_done()
    return queue


def test_a_power_cut_loses_a_program_whose_data_is_in_the_cache_register(
        start, array: Path) -> None:
    start_two_programs(start, array).m.end(signal.SIGKILL)
    queue = NandQueue(start())
    assert queue.read(0, 0)[0] == UNCORRECTABLE
    assert queue.read(1, 0)[0] == ERASED
    assert queue.program(1, 0, b"B") == OK
    assert queue.read(1, 0) == (OK, b"B")


def test_a_machine_is_saved_while_both_registers_of_a_die_are_in_use(
        start, array: Path, tmp_path: Path) -> None:
    queue = start_two_programs(start, array)
    save(queue.m, tmp_path)
    machine = start("-incoming", f"file:{tmp_path}/state")
    machine.wait(lambda: machine.ask("query-status")["status"] != "inmigrate", "load")
    machine.ask("cont")
    queue.m = machine
    assert [queue.take(), queue.take()] == [OK, OK]
    assert [queue.read(block, 0) for block in (0, 1)] == [(OK, b"A")] * 2
    assert machine.read32(NAND + 0x408) == 2 * UNITS    # units programmed


def test_a_machine_is_saved_while_a_program_is_suspended(start, array: Path,
                                                         tmp_path: Path) -> None:
    machine = start()
    queue = NandQueue(machine)
    assert [queue.erase(block) for block in (0, 1)] == [OK, OK]
    assert queue.program(0, 0, b"A") == OK
    machine.end(signal.SIGTERM)
    machine = start("-global", "essd-nand.timing=realtime")
    queue = NandQueue(machine)
    queue.put_program(b"B")
    queue.post(PROGRAM, 1, 0, UNITS)
    machine.do("clock_step 200000")
    machine.wait(lambda: array.read_bytes().count(b"BEGN") == 2, "the program's beginning")
    queue.put_read(0)
    queue.post(READ, 0, 0, 1, flags=URGENT)
    machine.do("clock_step 10000")
    machine.wait(lambda: machine.read32(NAND + 0x448) == 1, "suspension")
    assert not queue.is_done()
    save(machine, tmp_path)
    machine = start("-incoming", f"file:{tmp_path}/state")
    machine.wait(lambda: machine.ask("query-status")["status"] != "inmigrate", "load")
    machine.ask("cont")
    queue.m = machine
    assert [queue.take(), queue.take()] == [OK, OK]
    assert machine.read(queue.DATA, 4096) == b"A" * 4096
    assert queue.read(1, 0) == (OK, b"B")


CHANGED = "essd-nand: the NAND file is another one, or has changed since the machine was saved"

Load = Callable[[Path | None], str]


@pytest.fixture
def refused(qemu: Path, tmp_path: Path, medium: Path) -> Load:      # noqa: F811
    """Load the saved machine over a file, or without an array, and return the line that
    refuses it."""
    flash = tmp_path / "flash"
    with open(flash, "wb") as file:
        file.truncate(32 * MIB)

    def load(array: Path | None) -> str:
        before = array.read_bytes() if array else b""
        options = ["-M", "essd,media=m"]
        if array:
            options = ["-M", "essd,media=m,nand=n", "-blockdev",
                       f"driver=raw,node-name=n,file.driver=file,file.filename={array}"]
        run = subprocess.run(
            [qemu, *options, "-accel", "qtest", "-display", "none", "-nodefaults",
             "-drive", f"if=mtd,format=raw,file={flash}",
             "-blockdev", "driver=raw,node-name=m,file.driver=file,"
             f"file.filename={medium}", "-incoming", f"file:{tmp_path}/state"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        assert run.returncode == 1, run.stderr
        assert not array or array.read_bytes() == before
        lines = [line for line in run.stderr.splitlines() if "essd-nand: " in line]
        assert len(lines) == 1, run.stderr
        return lines[0].partition(": ")[2]

    return load


def erase(machine: Machine) -> Machine:
    """Change the array."""
    assert NandQueue(machine).erase(0) == OK
    return machine


def loads(start, tmp_path: Path, file: Path) -> None:
    machine = start("-incoming", f"file:{tmp_path}/state", file=file)
    machine.wait(lambda: machine.ask("query-status")["status"] != "inmigrate", "load")
    machine.end(signal.SIGTERM)


def state_of(array: Path) -> tuple[int, int, int, int]:
    """Number, generation, nonce and flags of the state in the file."""
    data = array.read_bytes()
    copies = [struct.unpack_from("<4sIQQ40xQ", data, at) for at in (4096, 8192)]
    return max((number, generation, nonce, flags)
               for word, flags, number, generation, nonce in copies if word == b"STAT")


def test_a_saved_machine_refuses_an_array_that_has_changed(start, array: Path, tmp_path: Path,
                                                           refused: Load) -> None:
    save(erase(start()), tmp_path)
    loads(start, tmp_path, array)
    before = state_of(array)
    erase(start()).end(signal.SIGTERM)
    after = state_of(array)
    assert refused(array) == (
        f"{CHANGED}: its generation is {after[1]} with nonce {after[2]:016x}, not "
        f"{before[1]} with nonce {before[2]:016x}; use the file that was saved with the machine")


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_saved_machine_refuses_another_array_of_the_same_generation(
        start, array: Path, tmp_path: Path, nand_new: Path, refused: Load, seed: str) -> None:
    other = tmp_path / "other"
    subprocess.run([nand_new, other, seed], check=True, timeout=60)
    save(erase(start()), tmp_path)
    erase(start(file=other)).end(signal.SIGTERM)
    assert state_of(other)[1] == state_of(array)[1] == 2
    assert refused(other).startswith(CHANGED)
    loads(start, tmp_path, array)


def test_a_machine_that_has_changed_nothing_refuses_another_new_array(
        start, array: Path, tmp_path: Path, nand_new: Path, refused: Load) -> None:
    new, used = tmp_path / "new", tmp_path / "used"
    for path in (new, used):
        subprocess.run([nand_new, path, "1"], check=True, timeout=60)
    save(start(), tmp_path)
    start(file=used).end(signal.SIGTERM)
    assert state_of(used)[1] == state_of(array)[1] == 2
    assert refused(new).startswith(CHANGED)
    assert refused(used).startswith(CHANGED)
    loads(start, tmp_path, array)


def test_two_copies_of_an_array_that_were_used_are_not_confused(
        start, array: Path, tmp_path: Path, refused: Load) -> None:
    erase(start()).end(signal.SIGTERM)
    fork = tmp_path / "fork"
    fork.write_bytes(array.read_bytes())
    save(erase(start()), tmp_path)
    erase(start(file=fork)).end(signal.SIGTERM)
    assert state_of(fork)[1] == state_of(array)[1]
    assert refused(fork).startswith(CHANGED)
    fork.write_bytes(array.read_bytes())
    loads(start, tmp_path, fork)


def test_a_copy_of_a_file_in_use_is_not_what_was_saved_later(
        start, array: Path, tmp_path: Path, refused: Load) -> None:
    machine = erase(start())
    copy = tmp_path / "copy"
    copy.write_bytes(array.read_bytes())
    save(machine, tmp_path)
    assert state_of(copy)[1:3] == state_of(array)[1:3]
    damaged = "was copied while a machine used it, or is damaged"
    assert damaged in refused(copy)
    start(file=copy).end(signal.SIGTERM)    # It changes nothing.
    assert refused(copy).startswith(CHANGED)
    loads(start, tmp_path, array)


@pytest.mark.parametrize("damage", [b"\0" * 512, b"?" * 512])
def test_an_array_whose_last_state_is_lost_is_not_what_was_saved(
        start, array: Path, tmp_path: Path, refused: Load, damage: bytes) -> None:
    save(erase(start()), tmp_path)
    machine = erase(start())
    number = state_of(array)[0]
    machine.end(signal.SIGKILL)
    with open(array, "r+b") as file:
        file.seek(4096 + number % 2 * 4096)
        file.write(damage)
    assert state_of(array)[3] == 1      # Nothing has changed, says the older copy.
    assert "is damaged" in refused(array)
    queue = NandQueue(start())          # Without the saved state, the array can be used.
    assert queue.erase(1) == OK


def test_states_with_and_without_an_array_are_not_confused(
        start, qemu: Path, array: Path, tmp_path: Path, medium: Path,   # noqa: F811
        refused: Load) -> None:
    save(start(), tmp_path)
    assert refused(None) == ("essd-nand: the machine was saved with a NAND array, and this one "
                             "has none")
    machine = Machine(qemu, tmp_path / "without", medium)
    save(machine, tmp_path)
    assert refused(array) == ("essd-nand: the machine was saved without a NAND array, and this "
                              "one has one")
    machine = Machine(qemu, tmp_path / "again", medium, "-incoming", f"file:{tmp_path}/state")
    try:
        machine.wait(lambda: machine.ask("query-status")["status"] != "inmigrate", "load")
    finally:
        machine.end()


def test_a_machine_that_has_never_run_is_not_saved_over_a_file_after_a_power_cut(
        start, tmp_path: Path) -> None:
    erase(start()).end(signal.SIGKILL)
    machine = start("-S")
    machine.ask("migrate", uri=f"file:{tmp_path}/state")
    machine.wait(lambda: machine.ask("query-migrate").get("status") == "failed", "refusal")
    assert ("a machine that has never run cannot be saved, because its NAND file was not brought "
            "up to date") in machine.errors.read_text()


def test_the_firmware_reports_an_array_and_refuses_one_that_is_too_small(
        qemu: Path, tmp_path: Path, array: Path) -> None:    # noqa: F811
    bench = Bench(qemu, fw_build.ensure_firmware(), tmp_path)
    try:
        machine = bench.start("-M", "essd,nand=n", "-blockdev",
                              f"driver=raw,node-name=n,file.driver=file,file.filename={array}")
        log = machine.wait_for("drive: serves no hosts: nand: it cannot be used")
        assert "nand: 2 channels, 2 dies each, 4 planes of 4 blocks of 192 KiB" in log
        assert "ftl: an array with 4 blocks of 4 wordlines in each plane is too small" in log
    finally:
        for machine in bench.machines:
            machine.close()


@pytest.mark.parametrize("words", ["--profile qlc --channels 16 --dies 16",
                                   "--profile slc --channels 16 --dies 16"])
def test_the_map_of_the_largest_array_that_a_drive_can_have_fits_into_its_dram(
        qemu: Path, tmp_path: Path, words: str) -> None:    # noqa: F811
    program = native_build.native_program("native", "tools/nand/essd-nand", "essd-nand")
    refused = subprocess.run([program, "space", "--capacity", "96G", *words.split()],
                             check=False, text=True, capture_output=True, timeout=60)
    size = refused.stderr.split()[-1]
    path = tmp_path / "array"
    subprocess.run([program, "create", path, "--capacity", size, *words.split()], check=True,
                   timeout=60)
    bench = Bench(qemu, fw_build.ensure_firmware(), tmp_path)
    try:
        machine = bench.start("-M", "essd,nand=n", "-blockdev",
                              f"driver=raw,node-name=n,file.driver=file,file.filename={path}")
        machine.wait_for("KiB of write buffer")
        machine.wait_for("nvme-of: listening")     # what the services need is left, too
    finally:
        for machine in bench.machines:
            machine.close()


@pytest.mark.parametrize("change, options, complaint", [
    (lambda data: data[:len(data) // 2], "",
     "the array 'n' cannot be used: the file is shorter than its array"),
    (lambda data: b"?" + data[1:], "",
     "the array 'n' cannot be used: this is not the file of a NAND array"),
    (lambda data: data, ",read-only=on", "the array 'n' is read-only"),
])
def test_unusable_files_are_refused_in_one_line(qemu: Path, tmp_path: Path,    # noqa: F811
                                                array: Path, change, options: str,
                                                complaint: str) -> None:
    flash = tmp_path / "flash"
    with open(flash, "wb") as file:
        file.truncate(32 * MIB)
    array.write_bytes(change(array.read_bytes()))
    run = subprocess.run(
        [qemu, "-M", "essd,media=m,nand=n", "-accel", "qtest", "-display", "none",
         "-nodefaults", "-drive", f"if=mtd,format=raw,file={flash}",
         "-blockdev", f"driver=null-co,node-name=m,size={64 * MIB},read-zeroes=on",
         "-blockdev", f"driver=raw,node-name=n{options},file.driver=file,"
         f"file.filename={array}"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False)
    assert run.returncode != 0
    assert complaint in run.stderr
    assert len(run.stderr.strip().split("\n")) == 1
