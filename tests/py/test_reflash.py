# SPDX-License-Identifier: BSD-2-Clause
"""`essd flash` and halting at reset, with a drive that is played by a few functions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_supervisor import FakeSupervisor
from typer.testing import CliRunner

from essd import cli
from essd.base import paths
from essd.base.errors import EssdError
from essd.build import elf, fw_build
from essd.debug import reflash
from essd.instance.config import flash_lock
from essd.storage import flash


def image_of(number: int) -> bytes:
    """A firmware image whose build ID consists of this number."""
    return b"code" + elf.NOTE + bytes([number] * elf.ID_LEN) + b"more code"


class FakeDrive(FakeSupervisor):
    """Starts the newest image of its flash file when its power comes on."""

    def __init__(self, folder: Path) -> None:
        super().__init__("lab")
        self.flash = folder / "flash.img"
        self.flash_file = str(self.flash)
        self.runs: int | None = None        # the number of the image that runs
        self.slot: str | None = None
        self.broken: set[int] = set()       # numbers of images that do not start
        image = flash.FlashImage()
        image.set_firmware(image_of(1), "0.1.0")
        image.save(self.flash)
        self.replies |= {"power-cut": self.power_cut, "power-on": self.power_on,
                         "reset": None}
        self.mgmt = {"status": {"firmware": "0.1.0"}, "shutdown": {}}
        Path(self.parts["drive"]["console"]).parent.mkdir(parents=True, exist_ok=True)

    def power_cut(self, _request: dict[str, Any] | None = None) -> None:
        self.parts["drive"] |= {"state": "off"}
        self.runs = self.slot = None

    def power_on(self, request: dict[str, Any]) -> None:
        image = flash.FlashImage.load(self.flash)
        self.slot = image.starting_slot
        assert self.slot
        kept = image.image(self.slot)
        assert kept
        self.runs = kept.data[4 + len(elf.NOTE)]
        if request.get("forget_restarts"):
            self.parts["drive"]["restarts"] = []
        self.parts["drive"] |= {"state": "running"}
        with open(self.parts["drive"]["console"], "a", encoding="utf-8") as console:
            console.write(f"boot: starting slot {self.slot}\n")
            if self.runs in self.broken:
                console.write("panic: something is wrong\n")
                self.parts["drive"]["restarts"] = ["firmware: panic"]

    def qmp(self, request: dict[str, Any]) -> Any:
        arguments = request["arguments"]
        if request["execute"] == "human-monitor-command":
            assert arguments["command-line"] == "xp /1wx 0x1000100c"
            return f"000000001000100c: 0x8000000{' AB'.find(self.slot or ' ')}\r\n"
        if request["execute"] == "pmemsave":
            Path(arguments["filename"]).write_bytes(image_of(self.runs or 0))
        return {}


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDrive]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "drives"))
    paths.runtime()
    with FakeDrive(tmp_path) as drive:
        drive.power_on({})
        yield drive


def build(monkeypatch: pytest.MonkeyPatch, drive: FakeDrive, number: int) -> None:
    """Let the next build make this image."""
    path = drive.flash.with_name(f"firmware{number}.bin")
    path.write_bytes(image_of(number))
    monkeypatch.setattr(fw_build, "ensure_firmware", lambda: fw_build.Firmware(
        path, path, path, path, "0.1.0"))


def run(*words: str) -> str:
    done = CliRunner().invoke(cli.app, list(words), catch_exceptions=True)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_a_new_image_goes_into_the_slot_that_does_not_run(drive, monkeypatch) -> None:
    for number, slot in ((2, "B"), (3, "A")):
        build(monkeypatch, drive, number)
        before = drive.runs
        said = run("flash")
        assert f"running: slot {slot}, firmware 0.1.0, build {f'{number:02x}' * 6}" in said
        for step in ("build", "power off", "write", "start"):
            assert f"{step}: " in said
        assert (drive.runs, drive.slot) == (number, slot)
        kept = flash.FlashImage.load(drive.flash).image(reflash.other(slot))
        assert kept and kept.data == image_of(before)
    asked = [entry["request"] for entry in drive.asked if entry["command"] == "mgmt"]
    assert "shutdown" in asked


def test_a_second_essd_flash_is_refused_while_one_writes(drive, monkeypatch) -> None:
    build(monkeypatch, drive, 2)
    with paths.locked(flash_lock(drive.folder)):
        for words in (["flash"], ["flash", "--back"]):
            with pytest.raises(EssdError, match="another essd flash writes the flash of the "
                                                "drive now"):
                run(*words)
    assert drive.runs == 1 and "power-cut" not in [x["command"] for x in drive.asked]
    run("flash")
    assert drive.runs == 2


def floor(drive: FakeDrive, security: int) -> None:
    """Let the drive have proven an image with this security version."""
    image = flash.FlashImage.load(drive.flash)
    image.slot_record = flash.SlotRecord(security=security, stores=3)
    image.save(drive.flash)


def floor_of(drive: FakeDrive) -> int:
    record = flash.FlashImage.load(drive.flash).slot_record
    return record.security if record else 0


def test_a_lower_security_version_is_refused_before_anything_is_written(
        drive, monkeypatch) -> None:
    floor(drive, 3)
    build(monkeypatch, drive, 2)
    before = drive.flash.read_bytes()
    for words in (["flash"], ["flash", "--slot", "A"], ["flash", "--back"]):
        with pytest.raises(EssdError, match="security version 0, and the drive has had 3.*"
                                            "--lower-floor"):
            run(*words)
    assert drive.flash.read_bytes() == before
    assert drive.runs == 1 and "power-cut" not in [x["command"] for x in drive.asked]
    run("flash", "--lower-floor")
    assert drive.runs == 2 and floor_of(drive) == 0
    run("flash", "--back")
    assert drive.runs == 1


def test_flash_keeps_the_floor(drive, monkeypatch) -> None:
    floor(drive, 3)
    image = flash.FlashImage.load(drive.flash)
    image.set_image("B", flash.Image(image_of(2), "0.1.0", security=4, made_here=True))
    image.save(drive.flash)
    run("flash", "--back", "--slot", "B")
    assert drive.runs == 2 and floor_of(drive) == 3
    build(monkeypatch, drive, 3)
    with pytest.raises(EssdError, match="the drive has had 4"):
        run("flash")        # the image in slot B has run


def test_a_floor_that_rises_meanwhile_starts_the_drive_again(drive, monkeypatch) -> None:
    build(monkeypatch, drive, 2)
    cut = drive.power_cut

    def rise(request: dict[str, Any] | None = None) -> None:
        cut(request)
        floor(drive, 3)

    drive.replies["power-cut"] = rise
    with pytest.raises(EssdError, match="the drive has had 3"):
        run("flash")
    assert drive.runs == 1


def test_flash_reports_as_json(drive, monkeypatch) -> None:
    build(monkeypatch, drive, 2)
    said = json.loads(run("--quiet", "flash", "--json", "--slot", "A"))
    assert said["slot"] == drive.slot == "A"
    assert said["build_id"] == "02" * 20
    assert set(said["seconds"]) == {"build", "power off", "write", "start"}


def test_a_failed_build_changes_nothing(drive, monkeypatch) -> None:
    def fail() -> None:
        raise fw_build.BuildError("building the firmware failed: a.c:1: error: x")

    monkeypatch.setattr(fw_build, "ensure_firmware", fail)
    before = drive.flash.read_bytes()
    drive.asked.clear()
    with pytest.raises(EssdError, match="building the firmware failed: a.c:1"):
        run("flash")
    assert drive.flash.read_bytes() == before and drive.runs == 1
    assert not {"power-cut", "power-on"} & {entry["command"] for entry in drive.asked}


def test_an_image_that_does_not_run_is_reported_with_the_uart_and_the_way_back(
        drive, monkeypatch) -> None:
    build(monkeypatch, drive, 2)
    drive.broken = {2}
    with pytest.raises(EssdError) as caught:
        run("flash")
    assert str(caught.value).splitlines() == [
        "the image in slot B (build 020202020202) does not run: it has restarted by itself "
        "(firmware: panic); the UART's last lines:",
        "    boot: starting slot B", "    panic: something is wrong",
        "the way back to the image that ran before: ./essd flash --name lab --back"]
    assert "running: slot A" in run("flash", "--back")
    assert (drive.runs, drive.slot) == (1, "A")
    assert drive.parts["drive"]["restarts"] == []


def test_a_drive_that_does_not_answer_is_reported_after_a_time_limit(
        drive, monkeypatch) -> None:
    build(monkeypatch, drive, 2)
    monkeypatch.setattr(reflash, "STARTS_S", 0.2)
    drive.mgmt.clear()
    with pytest.raises(EssdError, match="does not run: it does not answer within"):
        run("flash")


def test_back_is_refused_if_the_other_slot_is_damaged(drive) -> None:
    image = flash.FlashImage.load(drive.flash)
    image.corrupt_slot("B")
    image.save(drive.flash)
    drive.asked.clear()
    with pytest.raises(EssdError, match="slot B holds no good image to go back to"):
        run("flash", "--back")
    assert drive.runs == 1


def test_a_drive_whose_power_is_off_is_started_with_the_new_image(
        drive, monkeypatch) -> None:
    drive.power_cut()
    build(monkeypatch, drive, 2)
    assert "power off:" not in run("flash")
    assert (drive.runs, drive.slot) == (2, "B")


def test_a_flash_file_that_cannot_be_written_leaves_the_old_image_running(
        drive, monkeypatch) -> None:
    def fail(_image: flash.FlashImage, _path: Path) -> None:
        raise OSError(28, "No space left on device")

    build(monkeypatch, drive, 2)
    monkeypatch.setattr(flash.FlashImage, "save", fail)
    with pytest.raises(EssdError, match="No space left on device; the drive runs its old"):
        run("flash")
    assert drive.runs == 1


@pytest.mark.parametrize("changes, words, said", [
    ({"state": "off", "saved": True}, (), "resume it first with ./essd load --name lab"),
    ({}, ("--slot", "C"), "--slot C: must be A or B")])
def test_flash_is_refused_before_the_build(drive, changes, words, said) -> None:
    drive.parts["drive"] |= changes
    with pytest.raises(EssdError, match=said):
        run("flash", *words)


def test_reset_with_halt_names_what_continues_the_drive(drive) -> None:
    assert run("reset") == "reset\n"
    said = run("reset", "--halt")
    assert [one["halt"] for one in drive.asked if "halt" in one] == [False, True]
    assert "halted at the reset vector: continue it with ./essd gdb --name lab" in said


def test_status_shows_which_image_runs(drive) -> None:
    drive.mgmt["status"] |= {"model": "essd", "serial": "S1"}
    drive.mgmt["lag"] = {"mode": "off"}
    assert ("drive: firmware 0.1.0, build 010101010101, slot A; essd, serial S1"
            in run("status"))
    assert json.loads(run("status", "--json"))["drive"]["build-id"] == "01" * 20
