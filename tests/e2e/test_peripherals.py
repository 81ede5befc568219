# SPDX-License-Identifier: BSD-2-Clause
"""What is on the drive's I2C buses, as a host and the tools see it."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uart_dialogue
from conftest import SESSION

from essd.base.errors import EssdError
from essd.drive import bmc, console, mgmt, modules, port
from essd.instance import steps
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.machine import drive, i2c_devices
from essd.setup import setup
from essd.setup.setup import Wish

pytestmark = [pytest.mark.drive, pytest.mark.uml]

REST_C = 40
KELVIN = 273


def set_temperature(job: Job, sensor: str, celsius: float) -> None:
    job.instance.ask("qmp", part=job.target, execute="qom-set", arguments={
        "path": f"/machine/{sensor}", "property": "temperature",
        "value": int(celsius * 1000)})


def smart(job: Job) -> dict[str, Any]:
    return dict(json.loads(job.quiet(f"nvme smart-log -o json {job.device()}")))


def wait(true: Callable[[], object], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def test_smart_shows_the_temperature_of_the_sensors(connected: Job) -> None:
    """A host sees in `nvme smart-log` what a sensor on the I2C bus measures."""
    try:
        set_temperature(connected, "sensor-media", 57)
        wait(lambda: smart(connected)["temperature"] == KELVIN + 57, "57 degrees")
        found = smart(connected)
        assert found["temperature_sensor_1"] == KELVIN + REST_C
        assert found["temperature_sensor_2"] == KELVIN + 57
        set_temperature(connected, "sensor-controller", 75)
        wait(lambda: smart(connected)["temperature"] == KELVIN + 75, "75 degrees")
        warning = smart(connected)["critical_warning"]
        assert (warning if isinstance(warning, int) else warning["value"]) & 2
    finally:
        set_temperature(connected, "sensor-media", REST_C)
        set_temperature(connected, "sensor-controller", REST_C)
    wait(lambda: smart(connected)["temperature"] == KELVIN + REST_C, "40 degrees")


@pytest.fixture
def strapped() -> Iterator[Callable[..., Instance]]:
    """Start a drive without a host; when the pins change, it is the same drive."""
    name = f"{SESSION}-pins"
    Instance(name).stop()
    setup.forget(name)

    def start(*pins: int, until: str = "listening") -> Instance:
        instance = Instance(name)
        instance.stop()
        instance.start(setup.configure(
            Wish(name=name, host=False, size="512M", straps=pins)))
        wait(lambda: (instance.folder / "drive/console").exists() and until in log(instance),
             f"the drive says {until!r}", 60)
        return instance

    yield start
    Instance(name).stop()
    setup.forget(name)


@pytest.fixture
def added() -> Iterator[Callable[..., Instance]]:
    """Start a drive without a host, with devices on its I2C buses."""
    name = f"{SESSION}-i2c"

    def start(*devices: str) -> Instance:
        instance = Instance(name)
        instance.start(setup.configure(Wish(
            name=name, host=False, size="512M",
            devices=i2c_devices.parse_all(devices, Path.cwd()))))
        wait(lambda: (instance.folder / "drive/console").exists()
             and "listening" in log(instance), "the drive listens", 60)
        return instance

    yield start
    Instance(name).stop()
    setup.forget(name)


def log(instance: Instance) -> str:
    return console.log(instance).decode(errors="replace")


def in_force(instance: Instance) -> dict[str, str]:
    return {key["key"]: key["in-force"] for key in mgmt.ask(instance, "config")["keys"]}


def test_straps_choose_features_and_where_the_bmc_is(
        strapped: Callable[..., Instance]) -> None:
    """Pins 4, 5 and 6: the BMC's port, NVMe 1.2.1, and settings that cannot be saved."""
    instance = strapped(4, 5, 6)
    assert bmc.ask(instance, "vpd")["product"] == "Ethernet SSD"
    assert "bmc: NVMe-MI on I2C port 0" in log(instance)
    assert in_force(instance)["nvme.profile"] == "datasheet"
    mgmt.ask(instance, "config-set", key="lldp.interval", value="7")
    with pytest.raises(EssdError):
        mgmt.ask(instance, "config-save")
    # The answer may come before the console has written its line.
    wait(lambda: "set strap pin 6 low" in log(instance), "the line on the console")


def test_straps_make_the_ports_slow_and_switch_the_bmc_off(
        strapped: Callable[..., Instance]) -> None:
    """Pins 2 and 3; with pins 0 and 1, the ports cannot be slow and stay off."""
    instance = strapped(2, 3)
    assert "bmc: off, because strap pin 3 is high" in log(instance)
    with pytest.raises(EssdError, match="strap pin 3 switches"):
        bmc.ask(instance, "health")
    for number in (0, 1):
        assert not port.get(instance, number, "link-up")    # The partner is at 25 Gb/s.
        port.change(instance, number, port.Wish(partner_speed=10))
        line = f"port {number}: link up, 10000 Mb/s"
        wait(lambda words=line: words in log(instance), line)       # type: ignore[misc]
        assert port.get(instance, number, "link-up")
    instance = strapped(0, 1, 2, until="port 1: 10 Gb/s with this FEC is refused")
    assert "port 0: 10 Gb/s with this FEC is refused" in log(instance)
    assert not any(port.get(instance, number, "link-up") for number in (0, 1))


# Devices that a user adds

EEPROM = "at24c-eeprom,bus=i2c.2,address=0x50,rom-size=256"
MUX = "pca9548,bus=i2c.2,address=0x70"
BEHIND = "at24c-eeprom,bus=i2c.2/pca9548/i2c.3,address=0x51,rom-size=1024"
MODULE_BUS = "tmp105,bus=i2c.0,address=0x4a"


def say(instance: Instance, command: str) -> list[str]:
    return uart_dialogue.ask(instance, command)


def test_devices_on_the_i2c_buses_are_seen_from_the_drive(
        added: Callable[..., Instance], tmp_path: Path) -> None:
    """A user puts them there, and the console reads and writes them.

    The file of an EEPROM outlasts a power cut.
    """
    file = tmp_path / "vpd.bin"
    instance = added(f"{EEPROM},file={file}", MUX, BEHIND, MODULE_BUS)
    assert say(instance, "i2c scan 2") == ["bus 2: 48 49 50 70"]
    assert say(instance, "i2c scan 0") == ["bus 0: 4a 50 51"]
    assert say(instance, "i2c read 2 50 fc 4") == ["00fc: ff ff ff ff"]
    assert say(instance, "i2c write 2 50 10c0ffee") == ["ok"]
    assert say(instance, "i2c read 2 50 10 3") == ["0010: c0 ff ee"]
    assert say(instance, "i2c write 2 70 08") == ["ok"]
    assert say(instance, "i2c scan 2") == ["bus 2: 48 49 50 51 70"]
    assert say(instance, "i2c write 2 51 0104c0de") == ["ok"]
    assert say(instance, "i2c read 2 51 0103 4") == ["0103: 00 c0 de 00"]
    with pytest.raises(EssdError, match="no device answers at address 52 of bus 2"):
        say(instance, "i2c read 2 52 00 1")
    assert say(instance, "i2c read 0 4a 00 2") == ["0000: 00 00"]   # degrees
    assert file.read_bytes()[0x10:0x13] == b"\xc0\xff\xee"
    starts = log(instance).count("listening")
    instance.ask("power-cut", part="drive")
    instance.ask("power-on", part="drive")
    wait(lambda: log(instance).count("listening") > starts, "the drive listens again", 60)
    assert say(instance, "i2c read 2 50 10 3") == ["0010: c0 ff ee"]
    assert say(instance, "i2c scan 2") == ["bus 2: 48 49 50 70"]


def test_the_phys_say_on_mdio_what_the_ports_say(added: Callable[..., Instance]) -> None:
    instance = added()
    wait(lambda: all(port.get(instance, number, "link-up") for number in (0, 1)), "the links")
    say(instance, "phy")
    for number in (0, 1):
        assert say(instance, f"phy {number}") == [
            f"port {number}: PHY 28a8 0010, 25 Gb/s, signal yes, lock yes, link up"]
    assert say(instance, "phy 1 1.0") == ["2050"]
    port.change(instance, 1, port.Wish(partner_speed=10))
    wait(lambda: not port.get(instance, 1, "link-up"), "the link is down")
    assert say(instance, "phy") == [
        "port 0: PHY 28a8 0010, 25 Gb/s, signal yes, lock yes, link up",
        "port 1: PHY 28a8 0010, 25 Gb/s, signal yes, lock no, link down"]
    # MDIO has left the pins again: the module is read over I2C.
    assert say(instance, "i2c scan 1") == ["bus 1: 50 51"]
    say(instance, "speed 10")
    wait(lambda: port.get(instance, 1, "link-up"), "the link is up at 10 Gb/s")
    assert say(instance, "phy 1") == [
        "port 1: PHY 28a8 0010, 10 Gb/s, signal yes, lock yes, link up (has been down)"]
    assert say(instance, "phy 1 1.7") == ["0007"]


def test_a_strap_hides_the_settings_so_that_they_can_be_repaired(
        strapped: Callable[..., Instance]) -> None:
    """Pin 7: the drive has no addresses, until it starts without it."""
    instance = strapped()
    before = in_force(instance)
    assert before["port.0.ipv4"] == "10.0.0.10/24"
    mgmt.ask(instance, "config-set", key="lldp.interval", value="7")
    mgmt.ask(instance, "config-save")
    instance = strapped(7)
    found = in_force(instance)
    assert found["port.0.ipv4"] == found["port.1.ipv4"] == "none"
    assert found["lldp.interval"] == before["lldp.interval"] != "7"
    instance = strapped()
    assert in_force(instance) == before | {"lldp.interval": "7"}


def test_a_module_is_taken_out_and_put_back(job: Job) -> None:
    found = modules.read(job.instance)
    assert [module["state"] for module in found] == ["identified", "identified"]
    assert found[0]["type"] == "25GBASE-SR"
    assert found[0]["values"]["temperature"]["value"] == 38
    modules.insert(job.instance, 1, False)
    try:
        wait(lambda: modules.read(job.instance)[1]["state"] == "absent", "removal")
    finally:
        modules.insert(job.instance, 1, True)
    wait(lambda: modules.read(job.instance)[1]["state"] == "identified", "insertion")


def test_a_module_stays_out_over_a_power_cut(job: Job) -> None:
    """The drive starts without it, and the other module measures what was set."""
    instance = job.instance
    modules.insert(instance, 1, False)
    modules.measure(instance, 0, [modules.measurement("rx-power=0.08")])
    wait(lambda: modules.read(instance)[1]["state"] == "absent", "removal")
    try:
        before = len(log(instance))
        instance.ask("power-cut", part=job.target)
        instance.ask("power-on", part=job.target)
        steps.wait_target(job)
        wait(lambda: modules.read(instance)[0]["state"] == "identified", "the other module")
        found = modules.read(instance)
        assert found[1]["state"] == "absent"
        assert found[0]["values"]["rx-power"]["value"] == 0.08
        said = log(instance)[before:]
        assert "port 0: module inserted" in said, said
        assert "port 1: module" not in said, said
    finally:
        modules.insert(instance, 1, True)
        modules.measure(instance, 0, [modules.measurement("rx-power=0.631")])
    wait(lambda: modules.read(instance)[1]["state"] == "identified", "insertion")


def test_peripherals_are_as_before_after_the_drive_is_saved_and_loaded(
        connected: Job) -> None:
    """A hot sensor, a module that is out, one beyond a limit, and half a BMC's message."""
    job = connected
    instance = job.instance
    set_temperature(job, "sensor-media", 75)
    modules.insert(instance, 1, False)
    modules.measure(instance, 0, [modules.measurement("rx-power=0.08")])
    request = bmc.request(bmc.SUBSYSTEM_HEALTH)
    first, second = bmc.packets(request, unit=len(request) // 2)
    try:
        wait(lambda: smart(job)["temperature"] == KELVIN + 75, "75 degrees")
        wait(lambda: modules.read(instance)[1]["state"] == "absent", "removal")
        wait(lambda: modules.read(instance)[0]["values"]["rx-power"]["exceeded"], "a limit")
        before = len(log(instance))
        with bmc.dial(drive.bmc_socket(instance.folder, job.target)) as bus:
            bus.transfer(bmc.MCTP_ADDRESS, first)
        instance.ask("save")
        instance.ask("load")
        with bmc.dial(drive.bmc_socket(instance.folder, job.target)) as bus:
            bus.listen(bmc.OWN_ADDRESS)
            bus.transfer(bmc.MCTP_ADDRESS, second)
            health = bmc.parse_health(bmc.response(bmc.assemble(bus))[1])
        assert (health["celsius"], health["warnings"]) == (75, ["temperature"])
        time.sleep(3)           # The drive looks at everything once a second.
        assert smart(job)["temperature"] == KELVIN + 75
        found = modules.read(instance)
        assert found[1]["state"] == "absent"
        assert found[0]["values"]["rx-power"]["exceeded"] == ["low-warning"]
        assert "module" not in log(instance)[before:], log(instance)[before:]
    finally:
        set_temperature(job, "sensor-media", REST_C)
        modules.insert(instance, 1, True)
        modules.measure(instance, 0, [modules.measurement("rx-power=0.631")])
    wait(lambda: modules.read(instance)[1]["state"] == "identified", "insertion")


def test_a_module_below_its_receive_power_is_reported(job: Job) -> None:
    def exceeded() -> list[str]:
        return list(modules.read(job.instance)[0]["values"]["rx-power"]["exceeded"])

    modules.measure(job.instance, 0, [modules.measurement("rx-power=0.08")])
    try:
        wait(lambda: exceeded() == ["low-warning"], "the limit is exceeded")
    finally:
        modules.measure(job.instance, 0, [modules.measurement("rx-power=0.631")])
    wait(lambda: exceeded() == [], "the value is within its limits")


def vendor_events(job: Job) -> list[bytes]:
    """The data of vendor-specific events in the persistent event log, newest first."""
    log = f"nvme persistent-event-log {job.controller()}"
    job.quiet(f"{log} --action=2")
    job.quiet(f"{log} --action=1")
    raw = bytes.fromhex(job.quiet(
        f"{log} --action=0 --raw-binary | od -An -v -tx1 | tr -d ' \\n'"))
    job.quiet(f"{log} --action=2")
    found, at = [], 512
    while at < len(raw):
        data = at + 3 + raw[at + 2]
        end = data + int.from_bytes(raw[at + 22:at + 24], "little")
        if raw[at] == 0xde:
            found.append(raw[data:end])
        at = end
    return found


def test_a_host_finds_changes_of_a_module_in_the_persistent_event_log(
        connected: Job) -> None:
    """A limit that is exceeded, its end, and a module that is pulled: one event each."""
    job = connected
    before = len(vendor_events(job))
    instance = job.instance
    modules.measure(instance, 1, [modules.measurement("temperature=71")])
    try:
        wait(lambda: len(vendor_events(job)) == before + 1, "the limit is exceeded")
        assert (b"port 1: module: temperature high-warning: 71.00 C is beyond the limit, "
                b"70.00 C\0") in vendor_events(job)[0]
        # nvme-cli finds its way through the page.
        log = f"nvme persistent-event-log {job.controller()}"
        job.quiet(f"{log} --action=1")
        shown = job.quiet(f"{log} --action=0")
        job.quiet(f"{log} --action=2")
        assert "Support Vendor Specific Event(0xde)" in shown, shown
        assert "Event Type: Vendor Specific Event(0xde)" in shown, shown
        # The temperature of a module is not that of the drive.
        assert smart(job)["temperature"] == KELVIN + REST_C
        modules.insert(instance, 1, False)
        wait(lambda: len(vendor_events(job)) == before + 2, "the module is removed")
        assert b"module removed\0" in vendor_events(job)[0]
    finally:
        modules.measure(instance, 1, [modules.measurement("temperature=38")])
        modules.insert(instance, 1, True)
    wait(lambda: len(vendor_events(job)) == before + 3, "the module is inserted")
    assert b"port 1: module inserted: ESSD EMULATION" in vendor_events(job)[0]
