# SPDX-License-Identifier: BSD-2-Clause
"""Errors of DRAM in the machine with the real firmware: corrected, or logged before a reset."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_soc import Machine

from essd import crash, fw_build, qemu_build
from essd import flash as fl

STARTED = "nvme-of: listening"
NM = "riscv64-unknown-elf-nm"


class Drive:
    def __init__(self, folder: Path) -> None:
        self.firmware = fw_build.ensure_firmware()
        self.flash = folder / "flash.bin"
        fl.new_flash(self.firmware, fl.Identity.random(), fl.Config()).save(self.flash)
        self.machine = Machine(qemu_build.ensure_qemu(), folder, self.flash,
                               machine="essd,media=media")
        self.machine.wait_for(STARTED)

    def symbol(self, name: str) -> int:
        """The address of a symbol of the firmware, a multiple of 8."""
        for line in subprocess.run([NM, self.firmware.elf], capture_output=True, text=True,
                                   check=True, timeout=30).stdout.splitlines():
            address, _, found = line.split(maxsplit=2)
            if found == name:
                return int(address, 16) & ~7
        raise AssertionError(f"the firmware has no {name}")

    def flip(self, address: int, bits: int) -> None:
        self.machine.ask("qom-set", path="/machine/ecc", property="inject",
                         value=f"{address:x} {bits:x}")

    def words(self) -> object:
        return self.machine.ask("qom-get", path="/machine/ecc", property="words")

    def wait_corrected(self) -> None:
        deadline = time.monotonic() + 30
        while self.words() != 0:
            assert time.monotonic() < deadline, self.machine.log()
            time.sleep(0.05)


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Drive]:
    drive = Drive(tmp_path)
    yield drive
    drive.machine.close()


def test_single_errors_of_data_and_code_are_corrected_and_logged(drive: Drive) -> None:
    data, code = drive.symbol("loop"), drive.symbol("loop_turn")
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
    address = drive.symbol("loop")
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


def test_what_cannot_be_flipped_is_refused(drive: Drive) -> None:
    for value in ("80000001 1", "80000000 0", "10000000 1", "x", "80000000"):
        with pytest.raises(AssertionError, match="error"):
            drive.machine.ask("qom-set", path="/machine/ecc", property="inject", value=value)
