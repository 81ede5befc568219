# SPDX-License-Identifier: BSD-2-Clause
"""Errors of DRAM and SRAM in the machine with the real firmware: corrected, or logged before a
reset."""

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_soc import Machine

from essd.build import fw_build, qemu_build
from essd.debug import crash
from essd.storage import flash as fl

STARTED = "nvme-of: listening"
LOST = "memory: the word at 0x{:x} was lost before the reset"
NM = "riscv64-unknown-elf-nm"
DRAM, SRAM = 0x80000000, 0x08000000
MIB = 1 << 20
COUNTS = 32  # offset of poll_count, all_count and others in struct loop (firmware/loop/loop.h)
# An ARP request of 60 bytes to all stations, which the firmware receives and does not answer.  A
# device writes 60 bytes as 7 words and a half.
FRAME = bytes.fromhex("ffffffffffff02112233445508060001080006040001021122334455c0a8ff01"
                      "000000000000c0a8ff02") + b"found by its end!!"
assert len(FRAME) == 60


class Drive:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.firmware = fw_build.ensure_firmware()
        self.flash = folder / "flash.bin"
        self.starts = 0
        fl.new_flash(self.firmware, fl.Identity.random(), fl.Config()).save(self.flash)
        self.cable = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.cable.bind(str(folder / "far"))
        self.power_on()
        self.machine.wait_for(STARTED)

    def power_on(self) -> None:
        """Start QEMU with the flash as it is."""
        self.starts += 1
        self.name = f"machine{self.starts}"
        self.machine = Machine(
            qemu_build.ensure_qemu(), self.folder, self.flash, "-chardev",
            f"socket,id=m,path={self.folder}/{self.name}.mgmt,server=on,wait=off", "-netdev",
            "dgram,id=n,local.type=unix,remote.type=unix,"
            f"local.path={self.folder}/{self.name}.near,remote.path={self.folder}/far",
            machine="essd,media=media,mgmt=m,port0-netdev=n", name=self.name)

    def cut_power(self) -> None:
        self.machine.close()
        self.power_on()
        self.machine.wait_for(STARTED)

    def symbol(self, name: str, elf: Path | None = None) -> int:
        """The address of a symbol of the firmware, a multiple of 8."""
        for line in subprocess.run([NM, elf or self.firmware.elf], capture_output=True, text=True,
                                   check=True, timeout=30).stdout.splitlines():
            address, _, found = line.split(maxsplit=2)
            if found == name:
                return int(address, 16) & ~7
        raise AssertionError(f"the firmware has no {name}")

    def read_only_word(self) -> int:
        """The address of a word that each turn of the main loop reads and nothing writes.

        Overwriting a lost word makes it good again, and nobody notices.  So the test needs a word
        that is read in each turn and never written.
        """
        address = self.symbol("loop") + COUNTS
        polls, steps = self.memory(address - DRAM + 8)[-8:-6]
        assert 0 < polls < steps < 64, "the table of the main loop is somewhere else"
        return address

    def memory(self, size: int) -> bytes:
        """What is at the beginning of DRAM."""
        copy = self.folder / "dram"
        self.machine.ask("pmemsave", val=DRAM, size=size, filename=str(copy))
        return copy.read_bytes()

    def find(self, data: bytes) -> int:
        """The address of these bytes in DRAM, where they are once."""
        memory = self.memory(64 * MIB)
        assert memory.count(data) == 1
        return DRAM + memory.index(data)

    def flip(self, address: int, bits: int) -> None:
        self.machine.ask("qom-set", path="/machine/ecc", property="inject",
                         value=f"{address:x} {bits:x}")

    def flip_before_reset(self, addresses: list[int], bits: int) -> None:
        """Flip bits that nobody reads until the machine has been reset."""
        self.machine.ask("stop")
        for address in addresses:
            self.flip(address, bits)
        self.machine.ask("system_reset")
        self.machine.ask("cont")

    def words(self) -> object:
        return self.machine.ask("qom-get", path="/machine/ecc", property="words")

    def wait_until(self, is_true: Callable[[], bool], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not is_true():
            assert time.monotonic() < deadline, self.machine.log()
            time.sleep(0.05)

    def wait_corrected(self) -> None:
        self.wait_until(lambda: self.words() == 0)

    def wait_started(self, times: int) -> None:
        self.wait_until(lambda: self.machine.log().count(STARTED) >= times)

    def send(self, frame: bytes, times: int = 1) -> None:
        for _ in range(times):
            self.cable.sendto(frame, str(self.folder / f"{self.name}.near"))

    def errors(self) -> list[dict[str, Any]]:
        """The drive's log of hardware errors, the newest first."""
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(30)
            channel.connect(str(self.folder / f"{self.name}.mgmt"))
            channel.sendall(b'{"v": 1, "id": 1, "request": "hardware-errors"}\n')
            for line in channel.makefile():
                answer = json.loads(line)
                if answer["id"] == 1:
                    return list(answer["result"]["errors"])
        raise AssertionError(self.machine.log())

    def lost(self) -> list[int]:
        """The addresses of the lost words in this log."""
        return [error["address"] for error in self.errors() if error["kind"] == "memory-lost"]


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Drive]:
    drive = Drive(tmp_path)
    yield drive
    drive.machine.close()


def test_single_errors_of_data_and_code_are_corrected_and_logged(drive: Drive) -> None:
    data, code = drive.read_only_word(), drive.symbol("loop_turn")
    drive.flip(data, 1 << 5)
    drive.wait_corrected()
    drive.machine.wait_for(f"memory: an error at 0x{data:x} was corrected")
    drive.flip(code, 1 << 63)
    drive.wait_corrected()
    assert "panic" not in drive.machine.log()


def test_pages_with_errors_change_while_the_harts_run(drive: Drive) -> None:
    """QEMU used to abort now and then: a hart had an entry of the older memory map in its TLB."""
    address = drive.symbol("loop")
    for _ in range(2500):
        drive.flip(address, 1)
        drive.flip(address, 1)  # turns the same bit back: there is no error any more
    drive.wait_corrected()  # what the scrubber found in between
    assert "panic" not in drive.machine.log()


def test_a_lost_word_stops_the_firmware_and_is_in_the_dump(drive: Drive) -> None:
    address = drive.read_only_word()
    drive.flip(address, 3)
    log = drive.machine.wait_for(f"memory: the word at 0x{address:x} was lost before the reset")
    assert "a word of memory is lost" in log
    drive.machine.wait_for("crash: dump 1 (memory) is in flash")
    deadline = time.monotonic() + 30
    while drive.machine.log().count(STARTED) < 2:
        assert time.monotonic() < deadline, drive.machine.log()
        time.sleep(0.05)
    assert drive.words() == 0
    (found,) = crash.in_file(drive.flash)
    assert found.cause == "memory"
    assert (found.mtval & ~7) == address
    frames = crash.backtrace(found, crash.symbols(found, None))
    assert frames[-2]["function"] == "arch_main"


def test_a_word_that_a_hart_has_lost_is_in_the_log_of_hardware_errors(drive: Drive) -> None:
    address = drive.read_only_word()
    drive.flip(address, 3)
    drive.wait_started(2)
    assert drive.lost() == [address]
    drive.cut_power()
    (error,) = [error for error in drive.errors() if error["kind"] == "memory-lost"]
    assert (error["address"], error["fatal"], error["info"]) == (address, True, 1)


def test_a_word_that_a_device_has_lost_stops_the_firmware_once(drive: Drive) -> None:
    """A port has lost the last word of a receive buffer: only a part of it is written."""
    drive.send(FRAME)
    time.sleep(1)
    address = drive.find(FRAME) + 56
    drive.flip(address, 3)
    drive.send(FRAME, 1024)
    log = drive.machine.wait_for("panic: firmware/memory/memory_check.c")
    assert f"memory: the word at 0x{address:x} is lost: more than one bit is wrong" in log
    drive.wait_started(2)
    assert drive.words() == 0
    drive.send(FRAME, 1024)
    time.sleep(3)
    assert drive.machine.log().count("panic:") == 1
    drive.cut_power()
    # The port may have found the word a second time before the reset.
    assert set(drive.lost()) == {address}


def test_a_lost_word_in_a_buffer_does_not_outlive_a_reset(drive: Drive) -> None:
    drive.send(FRAME)
    time.sleep(1)
    drive.flip_before_reset([drive.find(FRAME) + 56], 3)
    drive.wait_started(2)
    drive.send(FRAME, 1024)
    time.sleep(3)
    assert "panic" not in drive.machine.log()
    assert drive.words() == 0


def test_a_device_that_overwrites_a_lost_word_makes_it_right(drive: Drive) -> None:
    drive.send(FRAME)
    time.sleep(1)
    drive.flip(drive.find(FRAME), 3)
    drive.send(FRAME, 1024)
    drive.wait_corrected()
    assert "memory:" not in drive.machine.log()


def test_the_firmware_starts_with_lost_words_in_its_stack(drive: Drive) -> None:
    top = drive.symbol("__stack_top")
    drive.flip_before_reset([top - 8 - 8 * n for n in range(60)], 3)
    drive.wait_started(2)
    assert drive.words() == 0
    assert "panic" not in drive.machine.log()


def pad_image(drive: Drive, size: int) -> None:
    """Append zeroes to the image in slot A, and start with it."""
    drive.machine.close()
    flash = fl.FlashImage.load(drive.flash)
    image = flash.image("A")
    assert image is not None
    flash.set_image("A", fl.Image(image.data.ljust(size, b"\0"), image.version, image.sequence))
    flash.save(drive.flash)
    drive.power_on()


def test_the_boot_rom_loads_an_image_over_a_lost_word(drive: Drive) -> None:
    """The image ends in the middle of the word."""
    size = drive.firmware.image.stat().st_size // 8 * 8 + 11
    pad_image(drive, size)
    drive.machine.wait_for(STARTED)
    drive.flip_before_reset([DRAM + size - 3], 3)
    drive.wait_started(2)
    assert "panic" not in drive.machine.log()
    assert drive.words() == 0


def test_a_dump_is_made_although_a_second_word_is_lost(drive: Drive) -> None:
    """The second word is in the ring of log lines, which is a part of the dump."""
    word = drive.read_only_word()
    drive.flip(drive.find(b"VPD at 53\r\n[") & ~7, 3)
    drive.flip(word, 3)
    drive.machine.wait_for("crash: dump 1 (memory) is in flash")
    drive.wait_started(2)
    assert drive.words() == 0
    (found,) = crash.in_file(drive.flash)
    assert found.mtval & ~7 == word


def test_an_error_of_sram_is_corrected_counted_and_logged(drive: Drive) -> None:
    """The boot ROM corrects it, and the firmware logs it."""
    drive.flip_before_reset([SRAM + 0x10000], 1)
    drive.wait_started(2)
    assert drive.words() == 0
    drive.machine.wait_for(f"memory: an error at 0x{SRAM + 0x10000:x} was corrected; 1 since "
                           "power-on")
    drive.wait_until(lambda: [SRAM + 0x10000] == [
        error["address"] for error in drive.errors() if error["kind"] == "memory-corrected"])


def test_lost_words_of_sram_do_not_keep_the_boot_rom_from_starting(drive: Drive) -> None:
    rom = qemu_build.ensure_qemu().with_name(fw_build.ROM_ELF.name)
    top = drive.symbol("__stack_top", rom)
    drive.flip_before_reset([SRAM] + [top - 8 - 8 * n for n in range(60)], 3)
    drive.wait_started(2)
    assert drive.words() == 0
    assert "panic" not in drive.machine.log()


def test_a_lost_word_of_sram_stops_the_boot_rom_once(drive: Drive) -> None:
    """The words are lost while the boot ROM loads an image, which is large here."""
    rom = qemu_build.ensure_qemu().with_name(fw_build.ROM_ELF.name)
    top = drive.symbol("__stack_top", rom)
    pad_image(drive, 7 * MIB)
    drive.wait_until(lambda: drive.memory(8) != bytes(8))
    drive.machine.ask("stop")
    assert "boot: starting slot" not in drive.machine.log()
    for n in range(60):
        drive.flip(top - 8 - 8 * n, 3)
    drive.machine.ask("cont")
    drive.wait_started(1)
    log = drive.machine.log()
    assert log.count("a word of memory is lost") == 1
    assert log.count("boot: mask ROM, reset by panic") == 1
    assert drive.words() == 0
    (address,) = drive.lost()
    assert top - 8 * 60 <= address < top


def test_what_cannot_be_flipped_is_refused(drive: Drive) -> None:
    for value in ("80000001 1", "80000000 0", "10000000 1", "x", "80000000"):
        with pytest.raises(AssertionError, match="error"):
            drive.machine.ask("qom-set", path="/machine/ecc", property="inject", value=value)
