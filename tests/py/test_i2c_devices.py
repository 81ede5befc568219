# SPDX-License-Identifier: BSD-2-Clause
"""QEMU's devices on the drive's I2C buses: what a user writes, and how they behave there."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from test_i2c import NO_TARGET, OK, SENSOR_BUS, Bus, load, save
from test_port_media import MIB, medium, qemu, start  # noqa: F401
from typer.testing import CliRunner

import essd
from essd import cli
from essd.base.errors import EssdError, Mistakes
from essd.instance.config import Config, Drive
from essd.machine import i2c_devices
from essd.machine.drive import drive_command
from essd.setup import setup
from essd.setup.setup import Wish
from essd.storage import snapshots
from essd.topology import reader as topology_yaml, setup as topology_setup

HERE = Path("/here")
EEPROM = "at24c-eeprom,bus=i2c.2,address=0x50,rom-size=256"
MUX = "pca9548,bus=i2c.2,address=0x70"
BEHIND = "at24c-eeprom,bus=i2c.2/pca9548/i2c.3,address=0x51,rom-size=256"


# On the bus

def options(*texts: str) -> list[str]:
    return i2c_devices.qemu_options(texts)


def write(bus: Bus, address: int, data: bytes) -> int:
    bus.put(data)
    return bus.run(address, len(data))


def read(bus: Bus, address: int, offset: bytes, count: int) -> bytes:
    bus.put(offset)
    assert bus.run(address, len(offset), count) == OK
    return bus.took(count)


def test_an_eeprom_is_written_and_read(start) -> None:  # noqa: F811
    machine = start(*options(EEPROM))
    bus = Bus.enabled(machine, SENSOR_BUS)
    assert write(bus, 0x50, b"\x10hello") == OK
    assert read(bus, 0x50, b"\x11", 4) == b"ello"
    assert read(bus, 0x50, b"", 1) == b"\0"
    assert bus.run(0x51, 0) == NO_TARGET


@pytest.mark.parametrize("size", [512, 300])
def test_a_part_of_an_address_stays_inside_an_eeprom(
        start, size: int) -> None:  # noqa: F811
    """Its addresses have two bytes.  One that is cut off is no address outside."""
    machine = start(*options(f"at24c-eeprom,bus=i2c.2,address=0x50,rom-size={size}"))
    bus = Bus.enabled(machine, SENSOR_BUS)
    for at in range(0, size, 100):
        assert write(bus, 0x50, at.to_bytes(2, "big") + b"\x77" * 100) == OK
    for byte in (0x01, 0xff, 0xfe, 0x80, 0x2b):
        assert write(bus, 0x50, bytes([byte])) == OK
        assert read(bus, 0x50, b"", 16) == b"\x77" * 16


def test_an_eeprom_needs_a_size(qemu: Path, tmp_path: Path) -> None:    # noqa: F811
    flash = tmp_path / "flash"
    with open(flash, "wb") as file:
        file.truncate(32 * MIB)
    done = subprocess.run(
        [qemu, "-M", "essd,media=m", "-nodefaults", "-display", "none", "-S",
         "-drive", f"if=mtd,format=raw,file={flash}",
         "-blockdev", f"driver=null-co,node-name=m,size={64 * MIB}",
         "-device", "at24c-eeprom,bus=i2c.2,address=0x50"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "rom-size is not set" in done.stderr


def test_a_multiplexer_hides_what_is_on_other_channels(start) -> None:  # noqa: F811
    """The drive's buses have the names of a multiplexer's channels."""
    machine = start(*options(MUX, BEHIND, BEHIND.replace("i2c.3", "i2c.0"),
                             "tmp421,bus=i2c.0,address=0x4c", "tmp421,bus=i2c.1,address=0x4d"))
    bus = Bus.enabled(machine, SENSOR_BUS)
    assert bus.run(0x51, 0) == NO_TARGET
    for channel, data in ((0, b"\0zero"), (3, b"\0three")):
        assert write(bus, 0x70, bytes([1 << channel])) == OK
        assert write(bus, 0x51, data) == OK
    assert read(bus, 0x51, b"\0", 5) == b"three"
    assert write(bus, 0x70, b"\x01") == OK
    assert read(bus, 0x51, b"\0", 5) == b"zero\0"
    for number in (0, 1):
        assert Bus.enabled(machine, number).run(0x4c + number, 0) == OK


def test_eeproms_and_multiplexers_are_saved(start, tmp_path: Path) -> None:  # noqa: F811
    """Contents, the next address, the channels, and a transfer that has begun."""
    devices = options(MUX, BEHIND, EEPROM, "at24c-eeprom,bus=i2c.2,address=0x52,rom-size=4096",
                      "pca9546,bus=i2c.1,address=0x71")
    machine = start(*devices)
    bus, other = Bus.enabled(machine, SENSOR_BUS), Bus.enabled(machine, 1)
    assert write(bus, 0x50, b"\x20abcdef") == OK
    assert write(bus, 0x52, b"\x0f\xfexyz") == OK      # "z" is at address 0
    assert write(bus, 0x70, b"\x08") == OK
    assert write(bus, 0x51, b"\0behind") == OK
    assert write(other, 0x71, b"\x05") == OK
    assert read(bus, 0x50, b"\x20", 2) == b"ab"
    bus.put(b"\x0f\xfe")
    bus.begin(0x52, 2, 3)
    save(machine, tmp_path / "state")

    machine = load(start(*devices, "-incoming", "defer"), tmp_path / "state")
    bus, other = Bus(machine, SENSOR_BUS), Bus(machine, 1)
    machine.do("clock_step 1000000000")     # the machine's time begins at 0
    assert bus.end() == OK and bus.took(3) == b"xyz"
    assert read(bus, 0x50, b"", 4) == b"cdef"
    assert read(bus, 0x51, b"\0", 6) == b"behind"
    assert read(bus, 0x70, b"", 1) == b"\x08"
    assert read(other, 0x71, b"", 1) == b"\x05"


def test_a_file_keeps_the_content_of_an_eeprom(start, tmp_path: Path) -> None:  # noqa: F811
    device = i2c_devices.parse(EEPROM + ",file=content", tmp_path)
    i2c_devices.make_files([device])
    assert (tmp_path / "content").read_bytes() == b"\xff" * 256
    machine = start(*options(str(device)))
    bus = Bus.enabled(machine, SENSOR_BUS)
    assert write(bus, 0x50, b"\xf0kept") == OK
    assert (tmp_path / "content").read_bytes() == b"\xff" * 240 + b"kept" + b"\xff" * 12
    save(machine, tmp_path / "state")
    (tmp_path / "content").write_bytes(bytes(256))
    machine = start(*options(str(device)))
    assert read(Bus.enabled(machine, SENSOR_BUS), 0x50, b"\xf0", 4) == bytes(4)
    machine.end()
    # A state that is loaded has its own content, and the file gets it back.
    machine = load(start(*options(str(device)), "-incoming", "defer"), tmp_path / "state")
    assert read(Bus(machine, SENSOR_BUS), 0x50, b"\xf0", 4) == b"kept"
    assert (tmp_path / "content").read_bytes()[0xf0:0xf4] == b"kept"


def test_the_types_are_those_of_the_build_and_are_saved(
        start, tmp_path: Path) -> None:     # noqa: F811
    machine = start()
    found = {entry["name"] for entry in
             machine.ask("qom-list-types", implements="i2c-slave", abstract=False)}
    machine.end()
    ours = {"essd-bmc", "essd-i2c-target", "essd-module0", "essd-module1"}
    assert found - ours == set(i2c_devices.KINDS)
    devices = options(*(f"{kind},bus=i2c.2" + (
        "" if kind == "essd-sfp" else f",address={0x10 + n:#x}") + (
            ",rom-size=256" if kind == "at24c-eeprom" else "")
        for n, kind in enumerate(i2c_devices.KINDS)))
    save(start(*devices), tmp_path / "state")
    machine = load(start(*devices, "-incoming", "defer"), tmp_path / "state")
    bus = Bus.enabled(machine, SENSOR_BUS)
    for n, kind in enumerate(i2c_devices.KINDS):
        assert bus.run(0x50 if kind == "essd-sfp" else 0x10 + n, 0) == OK


# What a user writes

@pytest.mark.parametrize(("text", "again"), [
    (EEPROM, EEPROM),
    ("tmp421,address=76,bus=i2c.0", "tmp421,bus=i2c.0,address=0x4c"),
    ("essd-sfp,bus=i2c.2,present=off", "essd-sfp,bus=i2c.2,present=off"),
    ("at24c-eeprom,rom-size=0x100,writable=off,bus=i2c.2/pca954x[70]/i2c.7,address=0x50",
     "at24c-eeprom,bus=i2c.2/pca954x[70]/i2c.7,address=0x50,rom-size=256,writable=off"),
    (EEPROM + ",file=x/y", EEPROM + ",file=/here/x/y"),
    (EEPROM + ",file=/x/y", EEPROM + ",file=/x/y")])
def test_a_device_is_written_as_for_qemu(text: str, again: str) -> None:
    device = i2c_devices.parse(text, HERE)
    assert str(device) == again
    assert i2c_devices.parse(again, Path("/elsewhere")) == device


@pytest.mark.parametrize(("text", "why"), [
    ("at24c", "'at24c' is no I2C device of the drive's QEMU; did you mean at24c-eeprom?"),
    ("", "'' is no I2C device"),
    ("tmp105,address=0x50", "the buses are i2c.0, i2c.1 and i2c.2, or"),
    ("tmp105,bus=i2c.3,address=0x50", "bus=i2c.3: the buses are"),
    ("tmp105,bus=i2c.2", "address is missing"),
    ("tmp105,bus=i2c.2,address=0x78", "address=0x78: write 0x08 to 0x77"),
    ("tmp105,bus=i2c.2,address=x", "address=x: write"),
    ("tmp105,bus=i2c.2,address=0x50,address=0x50", "address occurs twice"),
    ("tmp105,bus=i2c.2,,address=0x50", "'' in "),
    ("tmp105,bus=i2c.2,address=0x50,x=", "'x=' in .*: write KEY=VALUE"),
    ("tmp105,bus=i2c.2,address=0x50,file=x", "only at24c-eeprom has a file"),
    ("essd-sfp,bus=i2c.2,address=0x50", "omit address"),
    ("at24c-eeprom,bus=i2c.2,address=0x50", "rom-size is missing"),
    ("at24c-eeprom,bus=i2c.2,address=0x50,rom-size=65537", "write 0x01 to 0x10000"),
    (EEPROM + ",drive=x", "write file=PATH instead of drive=x")])
def test_what_is_no_device_is_refused_in_one_line(text: str, why: str) -> None:
    with pytest.raises(EssdError, match=why) as caught:
        i2c_devices.parse(text, HERE)
    assert "\n" not in str(caught.value)


def test_a_file_has_the_size_of_its_eeprom(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(512))
    text = "at24c-eeprom,bus=i2c.2,address=0x50,file=x"
    device = i2c_devices.parse(text, tmp_path)
    assert dict(device.properties) == {"rom-size": "512"}
    with pytest.raises(EssdError, match="x has 512 bytes, not 256"):
        i2c_devices.parse(text + ",rom-size=256", tmp_path)
    with pytest.raises(EssdError, match="rom-size is missing"):
        i2c_devices.parse(text.replace("file=x", "file=none"), tmp_path)
    away = i2c_devices.parse(EEPROM + ",file=no/folder", tmp_path)
    with pytest.raises(EssdError, match="cannot create .*: No such file"):
        i2c_devices.make_files([away])


@pytest.mark.parametrize(("texts", "pins", "why"), [
    (["tmp105,bus=i2c.2,address=0x48"], 0, "i2c.2 has a temperature sensor of the drive at"),
    (["tmp105,bus=i2c.0,address=0x50"], 0, "i2c.0 has the module of port 0 at address 0x50"),
    (["essd-sfp,bus=i2c.1"], 0, "i2c.1 has the module of port 1 at address 0x50"),
    (["tmp105,bus=i2c.1,address=0x53"], 0, r"i2c.1 has the drive \(for a BMC\) at"),
    (["tmp105,bus=i2c.0,address=0x53"], 0x10, r"i2c.0 has the drive \(for a BMC\) at"),
    ([EEPROM, "essd-sfp,bus=i2c.2"], 0, "i2c.2 has at24c-eeprom,.* at address 0x50"),
    ([EEPROM + ",file=x", BEHIND + ",file=x"], 0, "another device has this file")])
def test_devices_that_are_in_each_others_way_are_refused(
        texts: list[str], pins: int, why: str) -> None:
    devices = i2c_devices.parse_all(texts, HERE)
    with pytest.raises(EssdError, match=why):
        i2c_devices.check(devices, pins)


def test_devices_with_different_places_are_accepted() -> None:
    texts = [EEPROM, MUX, BEHIND, BEHIND.replace("i2c.3", "i2c.4"),
             "tmp105,bus=i2c.0,address=0x53", "tmp105,bus=i2c.1,address=0x1e"]
    i2c_devices.check(i2c_devices.parse_all(texts, HERE), 0)
    free = i2c_devices.parse_all(["tmp105,bus=i2c.1,address=0x53"], HERE)
    i2c_devices.check(free, 0x10)       # the BMC is on the other bus
    i2c_devices.check(free, 0x08)       # there is no BMC


# From the options to QEMU

def config_with(*texts: str) -> Config:
    drive = Drive("q", "/flash", "/media", "raw", "nqn.x", devices=list(texts))
    return Config("x", "", "tcg", [], {"drive": drive})


def test_a_drive_gets_its_devices_as_options(tmp_path: Path) -> None:
    words = drive_command(config_with(EEPROM + ",file=/a/b", BEHIND), tmp_path)
    given = [words[n + 1] for n, word in enumerate(words) if word == "-device"]
    assert given == [
        "at24c-eeprom,bus=/i2c2/i2c.2,address=0x50,rom-size=256,drive=i2c-0",
        "at24c-eeprom,bus=/i2c2/i2c.2/pca9548/i2c.3,address=0x51,rom-size=256"]
    node = json.loads(words[words.index(given[0]) - 2])
    assert (node["node-name"], node["file"]["filename"]) == ("i2c-0", "/a/b")
    assert "-device" not in drive_command(config_with(), tmp_path)


def test_a_snapshot_belongs_to_a_drive_with_the_same_devices() -> None:
    assert snapshots.shape(config_with(EEPROM)) != snapshots.shape(config_with(MUX))
    assert "devices" not in snapshots.shape(config_with())["drives"]["drive"]
    text = config_with(EEPROM).to_json()
    assert Config.from_json(text) == config_with(EEPROM)


def test_each_drive_of_a_topology_has_its_devices(tmp_path: Path) -> None:
    text = (f"drives:\n  a: {{devices: \"{MUX} {BEHIND}\"}}\n  b: {{}}\n"
            "hosts:\n  h: {}\ncables:\n  - h - a:0\n  - h - b:0\n")
    found = topology_setup.wishes(topology_yaml.load(text, "t.yaml", tmp_path), "x")
    assert {name: list(map(str, wish.devices)) for name, wish in found.items()} == {
        "a": [MUX, BEHIND], "b": []}
    with pytest.raises(Mistakes, match="1:23: a drive: 'x' is no I2C device"):
        topology_yaml.load("drives: {a: {devices: x}}\n", "t.yaml", tmp_path)


def test_two_drives_of_a_topology_cannot_share_a_file() -> None:
    device = i2c_devices.parse(EEPROM + ",file=x", HERE)
    asked = {part: Wish(part=part, devices=[device]) for part in "ab"}
    with pytest.raises(EssdError, match="^b: .*: a has a device with this file already"):
        topology_setup.check_devices(asked)
    topology_setup.check_devices({"a": asked["a"], "b": replace(asked["b"], devices=[])})
    with pytest.raises(EssdError, match="temperature sensor"):
        topology_setup.check_devices({"a": Wish(devices=i2c_devices.parse_all(
            ["tmp105,bus=i2c.2,address=0x48"], HERE))})


def test_devices_are_refused_where_they_have_no_effect() -> None:
    with pytest.raises(EssdError, match="--device is for a drive, not for --target nvmet"):
        setup.configure(Wish(name="x", target="nvmet",
                             devices=i2c_devices.parse_all([EEPROM], HERE)))
    with pytest.raises(EssdError, match="write them into x.yaml"):
        essd.up(topology="x.yaml", devices=[EEPROM])
    done = CliRunner().invoke(cli.app, ["up", "--topology", "x.yaml", "--device", EEPROM])
    assert "--device" in str(done.exception) and "x.yaml" in str(done.exception)
    done = CliRunner().invoke(cli.app, ["up", "--device", "x"])
    assert "'x' is no I2C device" in str(done.exception)


def test_a_drive_is_kept_if_a_new_one_cannot_have_the_devices(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_DATA", str(tmp_path))
    kept = setup.data_folder("x") / "flash.img"
    kept.parent.mkdir(parents=True)
    kept.touch()
    at_sensor = i2c_devices.parse_all(["tmp105,bus=i2c.2,address=0x48"], HERE)
    with pytest.raises(EssdError, match="temperature sensor"):
        setup.forget_for(Wish(name="x", devices=at_sensor))
    assert kept.exists()
    setup.forget_for(Wish(name="x"))
    assert not kept.exists()


def test_up_asks_for_a_drive_with_these_devices(tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Wish] = []

    def configure(wish: Wish) -> Config:
        asked.append(wish)
        raise EssdError("this is far enough")

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(setup, "configure", configure)
    CliRunner().invoke(cli.app, ["up", "--device", MUX, "--device", BEHIND])
    CliRunner().invoke(cli.app, ["up"])
    with pytest.raises(EssdError, match="this is far enough"):
        essd.up(devices=[EEPROM])
    assert [list(map(str, wish.devices)) for wish in asked] == [[MUX, BEHIND], [], [EEPROM]]


def test_all_drives_of_an_option_have_the_same_devices(
        monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(topology_setup, "configure",
                        lambda found, *rest: seen.append(found) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        essd.up(drives=2, devices=[MUX, BEHIND])
    assert [list(map(str, drive.devices)) for drive in seen[0].drives.values()] == [
        [MUX, BEHIND]] * 2
