# SPDX-License-Identifier: BSD-2-Clause
"""A drive with NAND flash (docs/nand.md), as a stock Linux host experiences it."""

import json
import time
from collections.abc import Iterator

import pytest

import essd

pytestmark = [pytest.mark.drive, pytest.mark.long]
NAME = "e2enand"
MIB = 1 << 20
SOON_S = 60


@pytest.fixture(scope="module")
def drive() -> Iterator[essd.Drive]:
    with essd.up(name=NAME, nand="1G", new=True) as system:
        system.host.connect(system.drive)
        yield system.drive
    essd.rm(NAME)


def write_file(drive: essd.Drive, mib: int, check: bool = True) -> int:
    host = drive.system.host
    return host.run(f"dd if=/dev/urandom of={host.device(drive)} bs=1M count={mib} "
                    "oflag=direct conv=fsync status=none", check=check).status


def shown(drive: essd.Drive, command: str) -> dict[str, object]:
    host = drive.system.host
    found: dict[str, object] = json.loads(
        host.run(f"nvme {command} {host.device(drive)} -o json").output)
    return found


def number(value: object) -> int:
    """Some versions of nvme-cli print 128-bit numbers as halves."""
    if isinstance(value, dict):
        return int(value["hi"]) << 64 | int(value["lo"])
    return int(str(value).replace(",", ""))


def test_ocps_log_page_counts_bytes_of_the_flash(drive: essd.Drive) -> None:
    write_file(drive, 16)
    page = shown(drive, "ocp smart-add-log")
    assert number(page["Physical media units written"]) >= 16 * MIB
    assert number(page["Bad user nand blocks - Raw"]) == 0
    assert number(page["Bad user nand blocks - Normalized"]) == 100
    smart = shown(drive, "smart-log")
    assert (smart["avail_spare"], smart["percent_used"]) == (100, 0)


def test_a_block_fails_by_a_rule_and_the_host_sees_the_spare(drive: essd.Drive) -> None:
    drive.faults.add("nand operation=program channel=1 when nth=1 do error", "bad-block")
    write_file(drive, 16)
    assert drive.faults["bad-block"].fired == 1
    time.sleep(2)       # SMART is at most a second old
    page = shown(drive, "ocp smart-add-log")
    assert number(page["Bad user nand blocks - Raw"]) == 1
    drive.faults.remove("bad-block")


def test_a_rule_cuts_the_power_at_an_operation_of_the_flash(drive: essd.Drive) -> None:
    drive.faults.add("nand operation=program when nth=5 do power-cut", "cut")
    host = drive.system.host
    host.run(f"dd if=/dev/zero of={host.device(drive)} bs=1M count=8 oflag=direct "
             "conv=fsync status=none & sleep 1; kill $! 2>/dev/null", check=False)
    deadline = time.monotonic() + SOON_S
    while drive.is_on:
        assert time.monotonic() < deadline, "the rule did not cut the power"
        time.sleep(0.1)
    assert drive.status()["why"] == "the fault rule cut has cut the power"
    drive.power_on()
    write_file(drive, 1)
