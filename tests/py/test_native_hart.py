# SPDX-License-Identifier: BSD-2-Clause
"""A drive with a native hart: what it does, and what it refuses in words."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import essd
import pytest
from essd.base.errors import EssdError
from essd.build import fw_build, qemu_build
from essd.instance.config import Config, Drive
from essd.machine.drive import drive_command
from essd.setup import native_hart, setup
from essd.storage import flash as fl
from essd.topology import reader, topology
from essd.topology import setup as topology_setup
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


def raw(machine: Machine, command: str, arguments: dict[str, object]) -> dict:
    """The answer of QMP, which may be an error."""
    machine.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
    answers: Iterator[dict] = (json.loads(line) for line in machine.lines)
    return next(a for a in answers if "error" in a or "return" in a)


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
    answer = raw(machine, "migrate", {"uri": f"file:{tmp_path}/state"})
    assert "a drive with hart=native cannot be saved" in answer["error"]["desc"]
    assert machine.ask("query-status")["status"] == "running"   # type: ignore[index]


@pytest.mark.parametrize("command", ["snapshot-save", "snapshot-load"])
def test_snapshots_are_refused_before_anything_changes(machine: Machine, command: str) -> None:
    machine.wait_for(SERVES)
    arguments = {"job-id": "j", "tag": "t", "vmstate": "media", "devices": ["media"]}
    answer = raw(machine, command, arguments)
    assert answer["error"]["desc"] == (
        f"Command {command} has been disabled: a drive with hart=native can neither be saved "
        "nor loaded")
    assert machine.ask("query-jobs") == []
    assert machine.ask("query-status")["status"] == "running"   # type: ignore[index]


def test_loadvm_of_the_monitor_is_refused(machine: Machine) -> None:
    machine.wait_for(SERVES)
    for command in ("savevm t", "loadvm t"):
        said = machine.ask("human-monitor-command", **{"command-line": command})
        assert isinstance(said, str) and said.startswith("Error: ") and said.count("\n") == 1
    machine.ask("cont")     # QEMU stops the machine before it looks whether it can load.
    assert machine.ask("query-status")["status"] == "running"   # type: ignore[index]


@pytest.mark.parametrize(("machine_words", "options", "why"), [
    ("hart=native", (), "essd: hart=native needs hart-image=FILE"),
    ("hart=slow", (), "hart: it is riscv or native, not slow"),
    ("hart-image={image}", (), "essd: hart-image is for hart=native"),
    ("hart=native,hart-image={image}", ("-smp", "2"), "essd: hart=native has one hart"),
    ("hart=native,hart-image={image}", ("-icount", "shift=1"),
     "essd: hart=native needs a thread of the hart's own"),
    ("hart=native,hart-image={image}", ("-incoming", "defer"),
     "essd: hart=native cannot be loaded: omit -incoming"),
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


def test_a_topology_names_the_kind_of_hart() -> None:
    cables = "switches:\n  s: {}\ncables:\n  - a:0 - s\n  - b:0 - s\n"
    found = reader.load("drives:\n  a: {hart: native}\n  b: {}\n" + cables, "t.yaml",
                        Path.cwd())
    wishes = topology_setup.wishes(found, "t")
    assert (wishes["a"].hart, wishes["b"].hart) == ("native", "riscv")
    with pytest.raises(EssdError, match="hart 'slow': must be riscv or native"):
        reader.load("drives:\n  a: {hart: slow}\n  b: {}\n" + cables, "t.yaml", Path.cwd())
    text = topology.of_drives(2, None, None, 1, 1, hart="native")
    assert {drive.hart for drive in reader.load(text, "t", Path.cwd()).drives.values()} \
        == {"native"}


def test_a_topology_with_a_boot_key_has_no_native_hart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "drive_boot_key", lambda wish: object())
    with pytest.raises(EssdError, match="has a boot key"):
        topology_setup.boot_key_of(setup.Wish(hart="native"))


def test_python_programs_choose_the_kind_of_hart(monkeypatch: pytest.MonkeyPatch,
                                                 tmp_path: Path) -> None:
    with pytest.raises(EssdError, match="hart slow: must be riscv or native"):
        essd.up(hart="slow")
    with pytest.raises(EssdError, match="hart and config are not for a topology"):
        essd.up(hart="native", topology=tmp_path / "t.yaml")

    def made(wish: setup.Wish, config: object, new: bool) -> None:
        raise EssdError(f"made with {wish.hart}")
    monkeypatch.setattr(setup, "made", made)
    with pytest.raises(EssdError, match="made with native"):
        essd.up(hart="native")
