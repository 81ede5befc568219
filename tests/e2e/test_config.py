# SPDX-License-Identifier: BSD-2-Clause
"""The drive's configuration is written in three ways, and each way reads the others.

The UART console, `nvme set-feature` of a host through the other port, and
`essd config`.  What is written survives a power cycle.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import uart_dialogue

from essd.base import paths
from essd.drive import console
from essd.instance import steps
from essd.instance.steps import Job
from essd.settings import block as config_block, settings, yaml_values as settings_yaml
from essd.settings.settings import Values
from essd.setup import settings_cmd, setup
from essd.setup.setup import Wish

pytestmark = [pytest.mark.drive, pytest.mark.uml]

FEATURE = "0xd1"        # docs/nvme.md, "Vendor features"
FEATURE_LEN = 512
CURRENT, SAVED = 0, 2
INVALID_FIELD = "Invalid Field"


@pytest.fixture(scope="module")
def drive(target: str, host_kind: str) -> Iterator[Job]:
    """A drive of its own, because the configuration stays changed."""
    if target != "drive":
        pytest.skip("needs the drive itself")
    from conftest import SESSION, boot
    job = boot(Wish(name=f"{SESSION}-config", size="512M", host_kind=host_kind))
    yield job
    job.instance.stop()
    setup.forget(job.instance.name)


def power_cycle(job: Job) -> None:
    steps.clean_host(job)
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.wait_target(job)


def essd_config(job: Job, *words: str, send: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "essd", "config", "--name", job.instance.name, *words],
        input=send, capture_output=True, text=True, check=False, timeout=120,
        cwd=paths.TOP / "tools")


def read_feature(job: Job, select: int) -> config_block.Config:
    text = job.quiet(f"nvme get-feature {job.controller()} -f {FEATURE} -s {select} "
                     f"--data-len={FEATURE_LEN} --raw-binary | od -An -v -tx1 | "
                     "tr -d ' \\n'")
    data = bytes.fromhex(text)
    assert len(data) == FEATURE_LEN
    assert not any(data[len(config_block.Config().body()):])
    return config_block.Config.of_body(data)


def write_feature(job: Job, tmp: Path, config: config_block.Config | bytes) -> str:
    """Write the feature with nvme-cli; return its output."""
    body = config if isinstance(config, bytes) else config.body()
    (tmp / "config.bin").write_bytes(body.ljust(FEATURE_LEN, b"\0"))
    job.instance.put(tmp / "config.bin", "/tmp/config.bin")
    return job.quiet(f"nvme set-feature {job.controller()} -f {FEATURE} "
                     f"--data-len={FEATURE_LEN} --data=/tmp/config.bin --save 2>&1",
                     check=False)


def everywhere(job: Job) -> Values:
    """Read the saved configuration in all three ways, which must agree."""
    on_console = settings_cmd.ask_running(job.instance)
    printed = essd_config(job)
    assert printed.returncode == 0, printed.stderr
    in_yaml, mistakes = settings_yaml.load(printed.stdout, "stdout")
    assert not mistakes
    steps.connect(job, port=1)
    by_feature = settings.from_config(read_feature(job, SAVED))
    now = settings.from_config(read_feature(job, CURRENT))
    steps.disconnect(job)
    assert on_console.saved == in_yaml == by_feature
    assert on_console.in_force == now
    return by_feature


def test_the_configuration_is_changed_on_the_console(drive: Job) -> None:
    for line, when in (("name rack7-slot3", "at once"),
                       ("port.0.mtu 1400", "from the drive's next start"),
                       ("address.0.ip 10.0.0.77/24", "at once"),
                       ("lldp.interval 5", "at once")):
        assert uart_dialogue.ask(drive.instance, f"config set {line}") == [
            f"ok: config save puts it in force {when}"]
    before = everywhere(drive)
    assert before["name"] == "none"             # a draft is nobody else's
    assert uart_dialogue.ask(drive.instance, "config save") == [
        "port.0.mtu: saved; in force from the drive's next start", "ok"]
    assert "# port.0.mtu is 1500 until the drive's next start" in essd_config(
        drive).stdout.splitlines()
    # The address is in use at once.
    assert "1 received" in drive.quiet("ping -c 1 -W 5 10.0.0.77")
    assert "traddr:  10.0.0.77" in drive.quiet(
        "nvme discover -t rdma -a 10.0.0.77 -s 4420")
    power_cycle(drive)
    assert settings.changed(before, everywhere(drive)) == {
        "name": "rack7-slot3", "port.0.mtu": "1400",
        "address.0.ip": "10.0.0.77/24", "lldp.interval": "5"}
    assert "1 received" in drive.quiet("ping -c 1 -W 5 -M do -s 1372 10.0.0.77")
    said = settings_cmd.ask_running(drive.instance)
    assert said.in_force == said.saved


def test_the_console_reports_an_address_once_after_the_start(drive: Job) -> None:
    boots = console.log(drive.instance).decode(errors="replace").split("reset by")
    told = [line for line in boots[-1].splitlines()
            if console.LOG_LINE.match(line) and "10.0.0.10" in line]
    assert len(told) == 1 and told[0].endswith("port 0: 10.0.0.10/24"), told


def test_the_configuration_is_changed_by_a_host_through_the_other_port(
        drive: Job, tmp_path: Path) -> None:
    before = everywhere(drive)
    steps.connect(drive, port=1)
    config = read_feature(drive, SAVED)
    first = replace(config.ports[0], mtu=4200)
    changed = replace(config, ports=(first, config.ports[1]),
                      services=replace(config.services, sntp_server="10.0.0.1",
                                       name="by-feature"))
    assert "set-feature" in write_feature(drive, tmp_path, changed)
    assert read_feature(drive, SAVED) == changed
    now = read_feature(drive, CURRENT)
    assert now.ports[0].mtu == 1400 and now.services.sntp_server == "10.0.0.1"
    power_cycle(drive)
    expected = {"port.0.mtu": "4200", "sntp.server": "10.0.0.1", "name": "by-feature"}
    assert settings.changed(before, everywhere(drive)) == expected


def test_an_invalid_configuration_of_a_host_is_refused(drive: Job, tmp_path: Path) -> None:
    before = everywhere(drive)
    steps.connect(drive, port=1)
    config = read_feature(drive, SAVED)
    body = bytearray(config.body())
    body[1] = 40                                # Gb/s
    assert INVALID_FIELD in write_feature(drive, tmp_path, bytes(body))
    slow = replace(config.ports[0], speed=10)
    assert INVALID_FIELD in write_feature(
        drive, tmp_path, replace(config, ports=(slow, config.ports[1])))
    assert INVALID_FIELD in write_feature(drive, tmp_path,
                                          config.body().ljust(511, b"\0") + b"\1")
    log = console.log(drive.instance).decode(errors="replace")
    assert "port.1.speed: 25 differs from port.0.speed, 10" in log
    steps.disconnect(drive)
    assert everywhere(drive) == before


def test_the_configuration_is_changed_by_essd_config(drive: Job, tmp_path: Path) -> None:
    before = everywhere(drive)
    path = tmp_path / "drive.yaml"
    path.write_text("name: by-essd\nport:\n  0: {mtu: 1500, lldp: send}\n"
                    "address:\n  - ip: none\n  - {ip: 10.0.1.77/24, port: 1}\n"
                    "lldp.interval: 30\n")
    said = essd_config(drive, str(path))
    assert said.returncode == 0, said.stderr
    assert "from the drive's next start: port.0.mtu\n" in said.stdout
    assert drive.instance.run("ping -c 1 -W 1 10.0.0.77", check=False).status != 0
    assert "1 received" in drive.quiet("ping -c 1 -W 5 10.0.1.77")
    power_cycle(drive)
    expected = {"name": "by-essd", "port.0.mtu": "1500", "port.0.lldp": "send",
                "address.0.ip": "none", "address.1.ip": "10.0.1.77/24",
                "address.1.port": "1", "lldp.interval": "30"}
    assert settings.changed(before, everywhere(drive)) == expected


def test_essd_config_reports_every_mistake_and_changes_nothing(drive: Job,
                                                             tmp_path: Path) -> None:
    before = everywhere(drive)
    path = tmp_path / "drive.yaml"
    path.write_text("port:\n  0: {mtu: 100, fecc: rs}\naddress:\n" +
                    "".join(f"  - ip: 10.0.0.{n}/24\n" for n in range(90, 95)))
    said = essd_config(drive, str(path))
    assert said.returncode == 1
    assert said.stderr.splitlines() == [
        f"essd: {path}:2: port.0.mtu: 100 is not a number from 1280 to 9000",
        f"essd: {path}:2: there is no key port.0.fecc; the nearest is port.0.fec",
        f"essd: {path}:8: address.4.ip: a drive has eight addresses: two of each port, "
        "and address.0 to address.3"]
    said = essd_config(drive, "--set", "address.0.ip=10.0.0.10/24")
    assert said.stderr.splitlines() == [
        "essd: address.0.ip: 10.0.0.10 is the address port.0.ipv4 already"]
    assert everywhere(drive) == before


def test_a_drive_without_power_is_configured_in_its_flash(drive: Job) -> None:
    before = everywhere(drive)
    steps.clean_host(drive)
    drive.instance.ask("power-cut")
    said = essd_config(drive, "--set", "name=in-flash", "--set", "echo=on")
    assert said.returncode == 0, said.stderr
    drive.instance.ask("power-on")
    steps.wait_target(drive)
    expected = {"name": "in-flash", "echo": "on"}
    assert settings.changed(before, everywhere(drive)) == expected


@pytest.mark.long        # the whole pair starts again
def test_up_keeps_what_was_configured(drive: Job, host_kind: str) -> None:
    """`essd down` and `up` without options keep the configuration."""
    name = drive.instance.name
    said = essd_config(drive, "--set", "address.1.ip=10.0.1.77/24", "--set", "address.1.port=1")
    assert said.returncode == 0, said.stderr
    before = everywhere(drive)
    drive.instance.stop()
    assert settings_cmd.read(drive.instance) == before
    drive.instance.start(setup.configure(Wish(name=name, host_kind=host_kind)))
    drive.instance.wait_ready("host")
    deadline = time.monotonic() + 60
    while "10.0.1.77" not in console.log(drive.instance).decode(errors="replace"):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    steps.wait_target(drive)
    assert everywhere(drive) == before
