# SPDX-License-Identifier: BSD-2-Clause
"""A drive with a native hart: what it does, and what it refuses in words."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from essd.base.errors import EssdError
from essd.build import fw_build, qemu_build
from essd.instance.config import Config, Drive
from essd.machine.drive import drive_command
from essd.setup import native_hart, setup
from essd.storage import flash as fl
from test_soc import MEDIA, Machine

SERVES = "nvme-of: listening on 4420"


@pytest.fixture(scope="module")
def qemu() -> Path:
    return qemu_build.ensure_qemu()


@pytest.fixture(scope="module")
def image() -> Path:
    return fw_build.ensure_native_hart()


@pytest.fixture
def flash(tmp_path: Path) -> Path:
    path = tmp_path / "flash.bin"
    fl.new_flash(fw_build.ensure_firmware(), fl.Identity.random(), fl.Config()).save(path)
    return path


@pytest.fixture
def machine(qemu: Path, image: Path, flash: Path, tmp_path: Path) -> Iterator[Machine]:
    found = Machine(qemu, tmp_path, flash,
                    machine=f"essd,media=media,hart=native,hart-image={image}")
    yield found
    found.close()


def refusal(qemu: Path, flash: Path, machine: str, *options: str) -> str:
    """What QEMU says when it does not start."""
    done = subprocess.run(
        [qemu, "-M", f"essd,media=media,{machine}", "-display", "none", *MEDIA,
         "-drive", f"if=mtd,format=raw,file={flash}", *options],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    return done.stderr.strip().partition(": ")[2]


# The machine

def test_it_runs_the_firmware_without_a_boot_rom(machine: Machine) -> None:
    log = machine.wait_for(SERVES)
    assert "reset by power-on, slot -" in log
    assert "boot:" not in log


def test_a_reset_starts_the_firmware_with_new_variables(machine: Machine) -> None:
    machine.wait_for(SERVES)
    for resets in range(1, 4):
        machine.ask("system_reset")
        machine.wait_for_count(SERVES, 1 + resets)
    log = machine.log()
    assert log.count("reset by") == 4 and log.count("reset by power-on") == 1
    assert "boot 4" in log          # counted in flash, not in a variable
    assert "panic" not in log


def test_it_stands_still_while_the_machine_is_stopped(machine: Machine) -> None:
    machine.wait_for(SERVES)
    machine.ask("stop")
    assert machine.ask("query-status")["status"] == "paused"    # type: ignore[index]
    machine.ask("system_reset")
    before = machine.log()
    time.sleep(0.5)
    assert machine.log() == before
    machine.ask("cont")
    machine.wait_for_count(SERVES, 2)


def test_it_ends_when_qemu_is_told_to(machine: Machine) -> None:
    machine.wait_for(SERVES)
    machine.ask("quit")
    assert machine.process.wait(30) == 0


def test_its_state_cannot_be_saved(machine: Machine, tmp_path: Path) -> None:
    machine.wait_for(SERVES)
    request = {"execute": "migrate", "arguments": {"uri": f"file:{tmp_path}/state"}}
    machine.socket.sendall(json.dumps(request).encode())
    answers = (json.loads(line) for line in machine.lines)
    answer = next(a for a in answers if "error" in a or "return" in a)
    assert "a drive with hart=native cannot be saved" in answer["error"]["desc"]
    assert machine.ask("query-status")["status"] == "running"   # type: ignore[index]


@pytest.mark.parametrize(("machine_words", "options", "why"), [
    ("hart=native", (), "essd: hart=native needs hart-image=FILE"),
    ("hart=slow", (), "hart: it is riscv or native, not slow"),
    ("hart-image={image}", (), "essd: hart-image is for hart=native"),
    ("hart=native,hart-image={image}", ("-smp", "2"), "essd: hart=native has one hart"),
    ("hart=native,hart-image={image}", ("-icount", "shift=1"),
     "essd: hart=native needs a thread of the hart's own"),
    ("hart=native,hart-image=/nowhere", (), "essd: hart-image: Failed to open file"),
    ("hart=native,hart-image={flash}", (), "is not firmware for a native hart")])
def test_what_it_cannot_be_is_refused(qemu: Path, image: Path, flash: Path,
                                      machine_words: str, options: tuple[str, ...],
                                      why: str) -> None:
    assert why in refusal(qemu, flash, machine_words.format(image=image, flash=flash),
                          *options)


# The tools

def a_drive(hart_image: str = "") -> Drive:
    return Drive("qemu", "flash", "media", "raw", "nqn", hart_image=hart_image)


def test_the_command_line_names_the_firmware(tmp_path: Path) -> None:
    config = Config("x", "", "tcg", [], {"drive": a_drive("/some,where/image")})
    words = drive_command(config, tmp_path)
    machine = words[words.index("-M") + 1]
    assert ",hart=native,hart-image=/some,,where/image," in machine
    assert "-gdb" not in words
    config = Config("x", "", "tcg", [], {"drive": a_drive()})
    assert "-gdb" in drive_command(config, tmp_path)
    assert "hart=" not in " ".join(drive_command(config, tmp_path))


def test_a_build_does_not_change_what_a_drive_runs(tmp_path: Path) -> None:
    built, flash = tmp_path / "built", tmp_path / "drive/flash.img"
    flash.parent.mkdir()
    built.write_bytes(b"first")
    kept = Path(native_hart.kept(built, flash))
    built.write_bytes(b"second")
    assert kept.parent == flash.parent and kept.read_bytes() == b"first"
    native_hart.kept(built, flash)
    assert kept.read_bytes() == b"second"
    assert native_hart.kept(None, flash) == ""


def test_a_drive_with_a_boot_key_has_no_native_hart() -> None:
    wish = setup.Wish(hart="native")
    native_hart.check(wish, False)
    native_hart.check(setup.Wish(), True)
    with pytest.raises(EssdError, match="has a boot key"):
        native_hart.check(wish, True)
    with pytest.raises(EssdError, match="--hart is for a drive"):
        native_hart.check(setup.Wish(hart="native", target="nvmet"), False)
