# SPDX-License-Identifier: BSD-2-Clause
"""Firmware images, their signatures, and updates of a drive that is off."""

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import essd
from essd import cli
from essd.base.errors import EssdError, Mistakes
from essd.debug import reflash
from essd.instance import config as drives
from essd.instance.instance import Instance
from essd.machine.drive import drive_command
from essd.settings.block import Config
from essd.setup import firmware_update, setup
from essd.storage import boot_key
from essd.storage.flash import FlashImage, SlotRecord
from essd.storage.image import Image, ImageError, make_key, openssl, public_key
from essd.topology import reader as topology_yaml, setup as topology_setup

CODE = bytes(range(256)) * 50


@pytest.fixture
def flash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The flash file of a drive that is off."""
    path = tmp_path / "flash.img"
    file = FlashImage()
    file.set_firmware(CODE, "0.1.0")
    file.save(path)
    monkeypatch.setattr(setup, "flash_path", lambda name, part: path)
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    make_key(tmp_path / "key.pem")
    return tmp_path / "key.pem"


def off() -> Instance:
    return Instance("off")


def test_an_image_is_read_as_it_was_made() -> None:
    image = Image(CODE, "1.2.3", security=7)
    assert Image.of_file(image.file()) == image
    assert len(image.file()) % 4096 == 0
    old = Image(CODE, "1.2.3", format=1)
    assert Image.of_file(old.file()) == replace(old, made_here=True)


def test_every_mistake_in_an_image_is_named() -> None:
    good = Image(CODE, "1.2.3").file()

    def changed(at: int, value: int) -> bytes:
        data = bytearray(good)
        data[at:at + 4] = struct.pack("<I", value)
        data[252:256] = struct.pack("<I", zlib.crc32(data[:252]))
        return bytes(data)

    for data, words in ((b"", "does not begin"), (b"x" * 5000, "does not begin"),
                        (good[:-4096], "header says that"), (good + bytes(4096), "header says"),
                        (good[:40] + b"9" + good[41:], "header with a wrong CRC"),
                        (changed(8, 9), "unknown version 9"),
                        (changed(72, 1), "another board"),
                        (changed(36, 1), "wrong CRC"), (changed(96, 1), "wrong hash"),
                        (good[:5000] + b"x" + good[5001:], "wrong CRC")):
        with pytest.raises(ImageError, match=words):
            Image.of_file(data)
    for text in (b"\x1b[2j", b"a\0b\0", bytes(8), b"\xc3\xa4\0\0"):
        data = bytearray(good)
        data[40:40 + len(text)] = text
        data[252:256] = struct.pack("<I", zlib.crc32(data[:252]))
        with pytest.raises(ImageError, match="not 1 to 32 printable characters"):
            Image.of_file(bytes(data))
    with pytest.raises(ImageError, match="does not fit into a slot"):
        Image(bytes(9 << 20), "1").header()
    with pytest.raises(ImageError, match="not 1 to 32 characters"):
        Image(CODE, "1" * 33).header()


@pytest.mark.parametrize(("load", "entry"), [
    (0, 0), (0x7ffffffc, 0x80000000), (0xa0000000 - 8, 0xa0000000 - 8), (2**64 - 8, 2**64 - 8),
    (0x80000000, 0x7ffffffc), (0x80000000, 0x80000000 + len(CODE)), (0x80000000, 0x80000002)])
def test_an_image_that_the_boot_rom_refuses_is_refused_and_not_kept(load: int,
                                                                    entry: int) -> None:
    image = Image(CODE, "1.2.3", load_addr=load, entry=entry)
    with pytest.raises(ImageError, match="does not fit into the DRAM at its load address"):
        Image.of_file(image.file())
    file = FlashImage()
    file.set_image("A", image)
    assert file.image("A") is None


def test_an_image_may_end_where_the_dram_ends() -> None:
    end = 0xa0000000
    image = Image(CODE, "1.2.3", load_addr=end - len(CODE), entry=end - 4)
    assert Image.of_file(image.file()) == image


def test_a_signature_holds_for_its_key_and_image_only(key: Path, tmp_path: Path) -> None:
    image = Image(CODE, "1.2.3").sign(key)
    assert Image.of_file(image.file()) == image
    assert image.is_signed_with(public_key(key))
    assert replace(image, sequence=9).is_signed_with(public_key(key))
    assert not image.is_signed_with(make_key(tmp_path / "other.pem"))
    for change in ({"data": CODE[:-1]}, {"version": "1.2.4"}, {"security": 1}):
        assert not replace(image, **change).is_signed_with(public_key(key))
    with pytest.raises(ImageError, match="exists already"):
        make_key(key)


def test_an_update_of_a_drive_that_is_off_starts_next_and_stays(flash: Path) -> None:
    facts = firmware_update.update(off(), Image(b"new!" * 1000, "0.2.0"), "", True, print)
    assert facts["running"] is None and facts["starts-next"] == "B" and facts["trial"]
    assert facts["slots"]["B"]["version"] == "0.2.0" and facts["slots"]["B"]["updated"]
    assert FlashImage.load(flash).was_updated
    facts = firmware_update.activate(off(), "A", print)
    assert facts["starts-next"] == "A" and not FlashImage.load(flash).was_updated


def test_an_image_that_is_only_stored_does_not_start(flash: Path) -> None:
    facts = firmware_update.update(off(), Image(CODE, "0.2.0"), "B", False, print)
    assert facts["starts-next"] == "A" and facts["slots"]["B"]["version"] == "0.2.0"


def test_an_update_keeps_the_last_good_image(flash: Path) -> None:
    file = FlashImage.load(flash)
    file.corrupt_slot("B")
    file.save(flash)
    with pytest.raises(EssdError, match="holds the only good image"):
        firmware_update.update(off(), Image(CODE, "0.2.0"), "A", True, print)
    file.slot_record = SlotRecord(read_only=True)
    file.save(flash)
    with pytest.raises(EssdError, match="read-only"):
        firmware_update.update(off(), Image(CODE, "0.2.0"), "A", True, print)
    with pytest.raises(EssdError, match="holds no good image"):
        firmware_update.activate(off(), "B", print)


def test_a_lower_security_version_is_refused(flash: Path) -> None:
    firmware_update.update(off(), Image(CODE, "0.2.0", security=2), "", True, print)
    with pytest.raises(EssdError, match="security version 1, the drive has had 2"):
        firmware_update.update(off(), Image(CODE, "0.3.0", security=1), "", True, print)


def test_an_image_that_has_not_passed_its_trial_is_no_way_back(flash: Path) -> None:
    for activate in (True, False):
        firmware_update.update(off(), Image(CODE, "0.2.0"), "B", activate, print)
        with pytest.raises(EssdError, match="slot B has not passed its trial"):
            firmware_update.update(off(), Image(CODE, "0.3.0"), "A", True, print)
    facts = firmware_update.update(off(), Image(CODE, "0.4.0"), "", True, print)
    assert facts["starts-next"] == "B" and facts["slots"]["A"]["version"] == "0.1.0"
    record = FlashImage.load(flash).slot_record
    assert record and record.unproven == 2 and record.stores == 3


def test_the_slot_that_starts_can_be_written_and_then_the_other_one_starts(
        flash: Path) -> None:
    facts = firmware_update.update(off(), Image(CODE, "0.2.0"), "A", False, print)
    assert facts["starts-next"] == "B" and facts["slots"]["A"]["version"] == "0.2.0"


def test_an_old_image_is_not_activated_beyond_its_security_version(flash: Path) -> None:
    firmware_update.update(off(), Image(CODE, "0.2.0", security=2), "B", True, print)
    file = FlashImage.load(flash)
    # The drive has started, and its image has passed the trial.
    file.slot_record = SlotRecord(chosen=2, previous=1, security=2)
    file.save(flash)
    with pytest.raises(EssdError, match="security version 0, the drive has had 2"):
        firmware_update.activate(off(), "A", print)
    with pytest.raises(EssdError, match="too low a security version"):
        firmware_update.update(off(), Image(CODE, "0.3.0", security=2), "B", True, print)


def test_a_record_from_before_unproven_slots_is_understood() -> None:
    for record, unproven in ((SlotRecord(2, 1, True), 2), (SlotRecord(1, 2, failed=2), 2),
                             (SlotRecord(2, 1, failed=2), 0), (SlotRecord(1, 2), 0)):
        assert SlotRecord.unpack(record.pack()) == replace(record, unproven=unproven)


def test_a_version_cannot_control_the_terminal() -> None:
    data = bytearray(Image(CODE, "1.2.3").file())
    data[40:44] = b"\x1b[2j"
    data[252:256] = struct.pack("<I", zlib.crc32(data[:252]))
    assert Image.of_slot(bytes(data)).version == "?[2j3"


def test_the_commands_pack_sign_and_show(key: Path, tmp_path: Path) -> None:
    binary, file = tmp_path / "code.bin", tmp_path / "fw.img"
    binary.write_bytes(CODE)

    def run(*words: object) -> tuple[int, str]:
        result = CliRunner().invoke(cli.app, ["firmware", *map(str, words)])
        return result.exit_code, result.output

    assert run("pack", file, "--binary", binary, "--version", "3.0")[0] == 0
    assert run("show", file, "--key", key)[0] == 1
    link = tmp_path / "link.img"
    link.symlink_to(file)
    assert run("sign", link, "--key", key)[0] == 0 and link.is_symlink()
    status, said = run("show", file, "--key", key)
    assert status == 0 and "signature-is-right:  True" in said
    assert run("key", key)[1].strip() == public_key(key).hex()


# A drive with a boot key

@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a drive that does not exist yet."""
    folder = tmp_path / "drive"
    monkeypatch.setattr(setup, "data_folder", lambda name, part="drive": folder)
    monkeypatch.setattr(setup, "flash_path", lambda name, part="drive": folder / "flash.img")
    return folder


def made(drive: Path, key: Path | None, data: bytes = CODE) -> FlashImage:
    """The flash of the drive after `essd up`, whose firmware is this data."""
    binary = drive.parent / "firmware.bin"
    binary.write_bytes(data)
    wish = setup.Wish(name="x", boot_key=key)
    firmware = SimpleNamespace(image=binary, version="0.1.0")
    path, _ = setup.drive_flash(wish, Config(), firmware, None,    # type: ignore[arg-type]
                                setup.drive_boot_key(wish))
    return FlashImage.load(path)


def signed_slots(file: FlashImage, key: Path) -> list[str]:
    return [slot for slot in "AB" if (image := file.image(slot)) is not None and
            image.signature and image.is_signed_with(public_key(key))]


def test_the_firmware_of_a_drive_with_a_key_is_signed(drive: Path, key: Path) -> None:
    file = made(drive, key)
    assert signed_slots(file, key) == ["A", "B"] and file.starting_slot == "A"
    file = made(drive, None, CODE + b"more")        # as the next essd up
    assert signed_slots(file, key) == ["A", "B"]
    assert file.image("A").data == CODE + b"more"   # type: ignore[union-attr]
    reflash.write_new(file, "B", CODE, "0.2.0", boot_key.recorded(drive))
    assert signed_slots(file, key) == ["A", "B"] and file.starting_slot == "B"
    assert key.read_bytes().strip() not in b"".join(p.read_bytes() for p in drive.iterdir())


def test_the_firmware_of_a_drive_without_a_key_is_not_signed(drive: Path) -> None:
    file = made(drive, None)
    assert file.image("A").signature == b""         # type: ignore[union-attr]
    assert boot_key.recorded(drive) is None


def test_the_machine_of_a_drive_with_a_key_has_its_public_key(
        drive: Path, key: Path, tmp_path: Path) -> None:
    made(drive, key)
    config = drives.Config("x", "", "tcg", [], drives={"drive": drives.Drive(
        "qemu", "flash", "media", "raw", "nqn", boot_key=boot_key.recorded(drive))})
    config = drives.Config.from_json(config.to_json())
    words = drive_command(config, tmp_path)
    assert f"boot-key={public_key(key).hex()}" in words[words.index("-M") + 1].split(",")


def test_a_file_that_is_no_private_key_is_refused_in_one_line(
        drive: Path, key: Path, tmp_path: Path) -> None:
    file = tmp_path / "bad.pem"
    for text, words in (("", "is not a PEM file with an Ed25519 key"),
                        ("-----BEGIN PRIVATE KEY-----\n", "is not a PEM file with"),
                        (openssl("genpkey", "-algorithm", "x25519").decode(), "is not a PEM"),
                        (openssl("genpkey", "-algorithm", "ed25519", "-aes-128-cbc", "-pass",
                                 "pass:x").decode(), "is not a PEM file with"),
                        (openssl("pkey", "-in", str(key), "-pubout").decode(),
                         "public key only: give the file with the private key")):
        file.write_text(text)
        with pytest.raises(EssdError, match=words) as refused:
            made(drive, file)
        assert "\n" not in str(refused.value)
        run = CliRunner().invoke(cli.app, ["up", "--name", "x", "--boot-key", str(file)])
        assert words in str(run.exception) and not drive.exists()
    with pytest.raises(EssdError, match="No such file"):
        made(drive, tmp_path / "missing.pem")


def test_a_key_for_a_damaged_record_has_to_fit_an_image(drive: Path, key: Path,
                                                        tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    make_key(other)
    made(drive, key)
    record = drive / boot_key.FILE
    for damage in ("", "{"):
        record.write_text(damage)
        with pytest.raises(EssdError, match=r"other.pem: no image of the drive is signed with"):
            made(drive, other)
        assert record.read_text() == damage
    assert signed_slots(made(drive, key), key) == ["A", "B"]
    file = FlashImage.load(drive / "flash.img")
    for slot in ("A", "B"):
        file.erase_slot(slot)
    file.save(drive / "flash.img")
    record.write_text("")       # Nothing tells any more which key the drive had.
    assert signed_slots(made(drive, key), key) == ["A", "B"]


def test_the_key_of_a_drive_stays_as_it_is(drive: Path, key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    make_key(other)
    made(drive, key)
    with pytest.raises(EssdError, match="has been created with another boot key"):
        made(drive, other)
    moved = key.rename(tmp_path / "moved.pem")
    made(drive, None)                               # there is nothing to sign
    with pytest.raises(EssdError, match="key.pem, with which .* does not exist"):
        made(drive, None, CODE + b"more")
    other.rename(key)
    with pytest.raises(EssdError, match="does not have the drive's boot key any more"):
        made(drive, None, CODE + b"more")
    assert signed_slots(made(drive, moved, CODE + b"more"), moved) == ["A", "B"]


def test_an_old_drive_gets_no_key(drive: Path, key: Path) -> None:
    made(drive, None)
    with pytest.raises(EssdError, match="has been created without a boot key"):
        made(drive, key)
    assert boot_key.recorded(drive) is None


def test_a_damaged_record_of_a_key_is_named(drive: Path, key: Path) -> None:
    made(drive, key)
    for text in ("", "{}", '{"public": "00", "file": "x"}', "[]"):
        (drive / boot_key.FILE).write_text(text)
        with pytest.raises(EssdError, match="of the drive's boot key cannot be read"):
            made(drive, None)


def test_an_update_of_a_drive_that_is_off_needs_its_signature(
        drive: Path, key: Path, tmp_path: Path) -> None:
    before = bytes(made(drive, key).data)
    make_key(tmp_path / "other.pem")
    image = Image(CODE, "0.2.0")
    for wrong, words in ((image, "is not signed, and the drive has a boot key"),
                         (image.sign(tmp_path / "other.pem"), "does not fit the drive's")):
        with pytest.raises(EssdError, match=words):
            firmware_update.update(off(), wrong, "", True, print)
    assert bytes(FlashImage.load(drive / "flash.img").data) == before
    facts = firmware_update.update(off(), image.sign(key), "", True, print)
    assert facts["starts-next"] == "B" and facts["slots"]["B"]["signed"]
    file = FlashImage.load(drive / "flash.img")
    file.set_image("A", Image(CODE, "0.1.0"))
    file.save(drive / "flash.img")
    with pytest.raises(EssdError, match="is not signed"):
        firmware_update.activate(off(), "A", print)


def test_each_drive_of_a_topology_has_its_boot_key(key: Path) -> None:
    folder = key.parent
    text = ("drives:\n  a: {boot-key: key.pem}\n  b: {}\n"
            "hosts:\n  h: {}\ncables:\n  - h - a:0\n  - h - b:0\n")
    found = topology_setup.wishes(topology_yaml.load(text, "t.yaml", folder), "x")
    assert {name: wish.boot_key for name, wish in found.items()} == {"a": key, "b": None}
    (folder / "no.pem").write_text("no key")
    for name, words in (("no.pem", "is not a PEM file"), ("missing.pem", "there is no file")):
        with pytest.raises(Mistakes, match=f"1:24: a drive: .*{words}"):
            topology_yaml.load(f"drives: {{a: {{boot-key: {name}}}}}\n", "t.yaml", folder)


def test_all_drives_of_an_option_have_the_same_boot_key(
        key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(topology_setup, "configure",
                        lambda found, *rest: seen.append(found) or 1 / 0)
    monkeypatch.setattr(setup, "configure", lambda wish: seen.append(wish) or 1 / 0)
    monkeypatch.chdir(key.parent)
    with pytest.raises(ZeroDivisionError):
        essd.up(drives=2, boot_key="key.pem")
    with pytest.raises(ZeroDivisionError):
        essd.up(boot_key=key)
    CliRunner().invoke(cli.app, ["up", "--drives", "2", "--boot-key", "key.pem"])
    assert [drive.boot_key for drive in seen[0].drives.values()] == [key, key]
    assert seen[1].boot_key == key
    assert [drive.boot_key for drive in seen[2].drives.values()] == [key, key]


def test_a_boot_key_is_not_for_a_topology_file(key: Path) -> None:
    with pytest.raises(EssdError, match="boot_key, .* write them into x.yaml"):
        essd.up(topology="x.yaml", boot_key=key)
    done = CliRunner().invoke(cli.app, ["up", "--topology", "x.yaml", "--boot-key", str(key)])
    assert "--boot-key" in str(done.exception) and "x.yaml" in str(done.exception)
    with pytest.raises(EssdError, match="No such file"):
        essd.up(boot_key="missing.pem")
