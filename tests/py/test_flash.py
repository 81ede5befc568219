# SPDX-License-Identifier: BSD-2-Clause
"""The writer of flash images, compared with the firmware's readers."""

import ipaddress
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))

from essd.settings import block as config_block  # noqa: E402
from essd.storage import flash as fl  # noqa: E402
from essd.build.fw_build import Firmware  # noqa: E402

READERS = ["tests/py/flash_dump.c", "firmware/store/identity.c",
           "firmware/store/config.c", "firmware/store/image.c", "lib/crc32_small.c"]


@pytest.fixture(scope="session")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program that runs the firmware's readers."""
    program = tmp_path_factory.mktemp("flash") / "flash_dump"
    subprocess.run(["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", TOP,
                    *(TOP / name for name in READERS), "-o", program], check=True,
                   timeout=120)
    return program


@pytest.fixture
def firmware(tmp_path: Path) -> Firmware:
    image = tmp_path / "firmware.bin"
    image.write_bytes(bytes(range(256)) * 40)
    return Firmware(image, image, image, image, "9.8.7")


PORTS = (config_block.Port.of("10.1.2.3/24", "fd00::5/64", mtu=4200, fec="rs"),
         config_block.Port.of("192.168.0.9/30", mtu=9000, fec="none", speed=10))


SERVICES = config_block.Services((False, True), ("send", "off"), 1, 2, "10.0.0.1", 16, "a-drive")
NETWORK = config_block.Network(
    (config_block.Address(1, ipaddress.ip_interface("10.9.0.1/16"), 5),
     config_block.Address(0, ipaddress.ip_interface("fd00:9::1/48"))),
    "lacp", True, 1, False, True, False, True, 0x0f, False, True)

CONFIG = fl.Config(PORTS, services=SERVICES, network=NETWORK)


def read(dump: Path, path: Path) -> list[str]:
    return subprocess.run([dump, path], check=True, capture_output=True,
                          text=True, timeout=60).stdout.splitlines()


def test_the_firmware_reads_what_the_tools_write(dump, firmware, tmp_path):
    path = tmp_path / "drive" / "flash.bin"
    identity = fl.ensure_flash(path, firmware, CONFIG)
    lines = read(dump, path)
    one = [f"serial={identity.serial}", f"model={identity.model}",
           f"nqn={identity.nqn}", f"mac0={identity.macs[0].hex()}",
           f"mac7={identity.macs[7].hex()}", f"guid={identity.ca_guid.hex()}",
           f"uuid={identity.uuid.hex}", f"uuid3={identity.namespace_uuid(3).hex}",
           f"nguid={identity.nguid.hex()}"]
    ports = ["port0=1 1 4200 25 2 24 64", "ipv4=0a010203",
             "ipv6=" + ipaddress.ip_address("fd00::5").packed.hex(),
             "port1=1 0 9000 10 0 30 0", "ipv4=c0a80009", "ipv6=" + "0" * 32,
             "services=01 21 1 2 16 a-drive",
             "sntp=" + "0" * 20 + "ffff0a000001",
             "extra0=1 16 5", "ip=" + "0" * 20 + "ffff0a090001", "extra1=0 48 0",
             "ip=" + ipaddress.ip_address("fd00:9::1").packed.hex(),
             "network=2 110 101 01 0f"]
    assert lines == one + one + ["config=2", *ports, "config=1", *ports,
                                 "slot=0 2 10240 9.8.7 fits good",
                                 "slot=0 1 10240 9.8.7 fits good"]


def test_the_tools_read_what_they_write(firmware):
    identity = fl.Identity.random("testsubsystem")
    flash = fl.new_flash(firmware, identity, CONFIG)
    assert flash.identity == identity
    assert flash.config.ports == PORTS
    assert flash.config.services == SERVICES
    assert flash.config.network == NETWORK
    assert flash.image("A").sequence > flash.image("B").sequence


@pytest.mark.parametrize("what, seen", [("image", "damaged"), ("header", "slot=2"),
                                        ("magic", "slot=1")])
def test_a_damaged_slot_is_detected(dump, firmware, tmp_path, what, seen):
    flash = fl.new_flash(firmware, fl.Identity.random(), fl.Config(PORTS))
    flash.corrupt_slot("B", what)
    flash.save(tmp_path / "flash.bin")
    lines = read(dump, tmp_path / "flash.bin")
    assert seen in lines[-1]
    assert lines[-2].endswith("fits good")
    assert flash.image("B") is None


def test_two_new_drives_have_different_identities(firmware):
    drives = [fl.Identity.random() for _ in range(50)]
    for name in ("serial", "uuid", "nqn", "nguid"):
        assert len({getattr(d, name) for d in drives}) == 50
    for drive in drives:
        assert len(set(drive.macs)) == 8
        assert all(mac[0] & 3 == 2 for mac in drive.macs)   # local, unicast
        assert drive.nguid[8:11] == drive.macs[0][:3]       # the OUI


def test_an_existing_drive_keeps_its_identity(firmware, tmp_path):
    path = tmp_path / "flash.bin"
    first = fl.ensure_flash(path, firmware, CONFIG)
    stamp = path.stat().st_mtime_ns
    assert fl.ensure_flash(path, firmware, CONFIG) == first
    assert path.stat().st_mtime_ns == stamp     # nothing to do, nothing written
    firmware.image.write_bytes(b"\0" * 100)
    second = fl.ensure_flash(path, firmware, fl.Config((PORTS[1], PORTS[0])),
                             "testsubsystem")
    assert (second.serial, second.macs) == (first.serial, first.macs)
    assert second.nqn == "testsubsystem"
    flash = fl.FlashImage.load(path)
    assert flash.config.says_the_same(fl.Config((PORTS[1], PORTS[0])))
    assert flash.image("A").data == flash.image("B").data == b"\0" * 100


def test_up_keeps_the_floor_of_security_versions(firmware, tmp_path):
    path = tmp_path / "flash.bin"
    fl.ensure_flash(path, firmware, CONFIG)
    flash = fl.FlashImage.load(path)
    flash.slot_record = fl.SlotRecord(security=3)
    flash.save(path)
    before = path.read_bytes()
    firmware.image.write_bytes(b"\0" * 100)
    with pytest.raises(fl.FlashError, match="the drive has had 3.*--lower-floor"):
        fl.ensure_flash(path, firmware, fl.Config((PORTS[1], PORTS[0])))
    assert path.read_bytes() == before      # not even the settings
    fl.ensure_flash(path, firmware, CONFIG, lower_floor=True)
    flash = fl.FlashImage.load(path)
    assert flash.image("A").data == b"\0" * 100
    assert flash.slot_record.security == 0


@pytest.mark.parametrize("records", [2, 32, 33, 40])
@pytest.mark.parametrize("at", [0, 5, 24, fl.AREA_HEADER_LEN + 1])
def test_a_damaged_record_of_a_passed_trial_does_not_lower_the_floor(records, at):
    flash = fl.FlashImage()
    image = fl.Image(b"\0" * 100, "v1", 1, security=3)
    flash.set_image("A", image)
    for _ in range(records - 1):
        flash.slot_record = fl.SlotRecord(chosen=1, previous=2, trial=True, unproven=1)
    assert flash.security_floor == 0        # The image has not passed its trial yet.
    flash.slot_record = fl.SlotRecord(chosen=1, previous=2, security=3)
    assert flash.security_floor == 3
    for ring in fl.SLOT_RECORD_RINGS:
        assert not flash.slot_record.trial      # One damaged copy changes nothing.
        flash.data[fl.LAYOUT[ring] + (records - 1) % 32 * fl.SECTOR + at] ^= 4
    assert flash.slot_record.trial
    with pytest.raises(fl.FlashError, match="the drive has had 3"):
        flash.start_image("B", fl.Image(b"\1" * 100, "v2", 2, security=2))
    flash.start_image("B", fl.Image(b"\1" * 100, "v2", 2, security=3))
    assert flash.slot_record.security == flash.security_floor == 3


@pytest.mark.parametrize("records", [1, 2, 32, 33, 40])
@pytest.mark.parametrize("head", [0, 1, fl.AREA_HEADER_LEN - 1])
def test_an_unfinished_record_does_not_raise_the_floor(records, head):
    flash = fl.FlashImage()
    flash.set_image("A", fl.Image(b"\0" * 100, "v1", 1, security=3))
    for _ in range(records):
        flash.slot_record = fl.SlotRecord(chosen=1, previous=2, trial=True, unproven=1)
    addr = fl.LAYOUT["FLASH_SLOT_RECORD_ADDR"] + (records - 1) % 32 * fl.SECTOR
    whole = bytes(flash.data[addr:addr + fl.SECTOR])
    for ring in fl.SLOT_RECORD_RINGS:       # The firmware has erased both places before.
        flash.write(fl.LAYOUT[ring] + records % 32 * fl.SECTOR, b"\xff")
    place = fl.LAYOUT["FLASH_SLOT_RECORD_ADDR"] + records % 32 * fl.SECTOR
    # The power has failed: the body is there, and so much of the header.
    written = whole[:head] + b"\xff" * (fl.AREA_HEADER_LEN - head)
    flash.write(place, written + whole[fl.AREA_HEADER_LEN:])
    assert flash.slot_record.trial
    assert flash.security_floor == 0
    flash.data[place:place + fl.AREA_HEADER_LEN] = whole[:fl.AREA_HEADER_LEN]
    flash.data[place] ^= 4
    assert flash.security_floor == 3        # The header is complete, and damaged.


@pytest.mark.parametrize("port, why", [
    (config_block.Port(mtu=1279), "MTU"), (config_block.Port(mtu=9001), "MTU"),
    (config_block.Port(vlan=4095), "VLAN"), (config_block.Port(priority=8), "priority"),
    (config_block.Port(fec="lfec"), "FEC"), (config_block.Port(speed=40), "speed")])
def test_invalid_port_settings_are_refused(port, why):
    with pytest.raises(fl.FlashError, match=why):
        port.pack()


def test_a_ninth_address_is_refused():
    extra = tuple(config_block.Address(0, ipaddress.ip_interface(f"10.9.0.{n}/24"))
                  for n in range(5))
    config_block.Network(extra[:4]).pack()
    with pytest.raises(fl.FlashError, match="eight in all"):
        config_block.Network(extra).pack()


def test_invalid_texts_are_refused():
    for text in ("", "x" * 224, "nqn\n", "nqn\u00e9"):
        with pytest.raises(fl.FlashError):
            fl.Identity.random().__class__(**{
                **fl.Identity.random().__dict__, "nqn": text}).pack()
    with pytest.raises(fl.FlashError):
        config_block.Port.of("10.0.0.256/24")


def test_a_file_of_the_wrong_size_is_refused(tmp_path):
    path = tmp_path / "flash.bin"
    path.write_bytes(b"\xff" * 4096)
    with pytest.raises(fl.FlashError, match="4096"):
        fl.FlashImage.load(path)
