# SPDX-License-Identifier: BSD-2-Clause
"""A crash of the real firmware: its dump in flash, on the console, and with `essd dump`."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_soc import Machine
from typer.testing import CliRunner

from essd import cli
from essd.build import fw_build, qemu_build
from essd.storage import flash as fl

STARTED = "nvme-of: listening"
SOURCE = "firmware/app/board_crash.c"


@dataclass
class Crashed:
    """A drive whose firmware has failed once, and runs again."""

    machine: Machine
    firmware: fw_build.Firmware
    flash: Path
    keys: int

    def type(self, line: str) -> None:
        os.write(self.keys, line.encode() + b"\r")


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashed]:
    folder = tmp_path_factory.mktemp("crash")
    firmware = fw_build.ensure_firmware()
    flash, fifo = folder / "flash.bin", folder / "keys"
    fl.new_flash(firmware, fl.Identity.random(), fl.Config()).save(flash)
    os.mkfifo(fifo)
    keys = os.open(fifo, os.O_RDWR)     # so that neither side waits for the other one
    machine = Machine(qemu_build.ensure_qemu(), folder, flash, machine="essd,media=media",
                      keys=fifo)
    try:
        drive = Crashed(machine, firmware, flash, keys)
        machine.wait_for(STARTED)
        drive.type("crash")
        machine.wait_for("no crash is recorded")
        drive.type("crash assertion")
        machine.wait_for("panic: ")
        machine.wait_for_count(STARTED, 2)
        yield drive
    finally:
        machine.close()
        os.close(keys)


def dump(*words: str) -> str:
    result = CliRunner().invoke(cli.app, ["dump", *words])
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.output


def test_the_console_prints_why_the_firmware_has_crashed(crashed: Crashed) -> None:
    log = crashed.machine.log()
    crashed.type("crash")
    said = crashed.machine.wait_for("  pc 0x")[len(log):]
    assert "crash 1: assertion, boot 1, " in said
    assert f"of {SOURCE}: " in said
    crashed.type("crash nonsense")
    crashed.machine.wait_for("error: choose assertion, trap or watchdog, not nonsense")


def test_essd_dump_shows_the_crash_with_functions_and_lines(crashed: Crashed,
                                                            tmp_path: Path) -> None:
    flash, symbols = str(crashed.flash), str(crashed.firmware.elf)
    listed = dump("--file", flash, "--list")
    assert listed.startswith("crash 1: assertion failed: ") and SOURCE in listed
    said = dump("--file", flash, "--elf", symbols)
    assert " provoke_assertion (" in said and f" at {SOURCE}:" in said
    assert "the last lines of the log:" in said
    facts = json.loads(dump("--file", flash, "--elf", symbols, "--json", "--number", "1"))
    assert facts["number"] == 1 and facts["cause"] == "assertion"
    assert "run_crash" in [frame["function"] for frame in facts["backtrace"]]
    assert facts["registers"]["pc"] == facts["backtrace"][0]["pc"]
    dump("--file", flash, "--elf", symbols, "--core", str(tmp_path / "core"))
    assert (tmp_path / "core").read_bytes()[:4] == b"\x7fELF"
    wrong = CliRunner().invoke(cli.app, ["dump", "--file", flash, "--number", "2"])
    assert "there is no crash dump 2: there are 1" in str(wrong.exception)
