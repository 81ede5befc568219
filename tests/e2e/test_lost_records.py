# SPDX-License-Identifier: BSD-2-Clause
"""Both copies of a record in flash are damaged while the drive is off: the drive is closed
until its owner, or a host, opens it (docs/decisions/0079-lost-records.md)."""

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kept_flash import kept_flash
from watching import until

from essd.drive import console, mgmt
from essd.instance import steps
from essd.instance.steps import Job
from essd.storage.flash import LAYOUT, FlashImage

pytestmark = [pytest.mark.drive, pytest.mark.uml]

AREA_HEADER = 32


@pytest.fixture
def losing(connected: Job) -> Iterator[Job]:
    with kept_flash(connected) as job:
        yield job


def damage(job: Job, places: Callable[[FlashImage], list[int]]) -> None:
    """Flip a bit at each of these addresses while the drive is off."""
    flash = Path(job.instance.config.drive.flash)
    job.instance.ask("power-cut")
    image = FlashImage.load(flash)
    for at in places(image):
        image.data[at] ^= 0x10
    image.save(flash)
    job.instance.ask("power-on")


def newest(image: FlashImage, area: str) -> list[int]:
    """Where the newest record of an area is, in both rings, behind the header."""
    size = LAYOUT[f"FLASH_{area}_SIZE"]
    found = []
    for ring in (LAYOUT[f"FLASH_{area}_ADDR"], LAYOUT[f"FLASH_{area}_MIRROR"]):
        copies = [ring + size * i for i in range(LAYOUT[f"FLASH_{area}_COPIES"])]
        written = [at for at in copies if image.data[at:at + 4] != b"\xff" * 4]
        assert written, f"{area} has no record"
        found.append(max(written, key=lambda at: struct.unpack_from("<I", image.data, at)[0])
                     + AREA_HEADER + 4)
    return found


def log(job: Job) -> str:
    return console.log(job.instance).decode(errors="replace")


def test_no_host_connects_until_a_lost_configuration_is_saved_again(losing: Job) -> None:
    job = losing
    steps.disconnect(job)
    damage(job, lambda image: [LAYOUT["FLASH_CONFIG_A_ADDR"] + 60,
                               LAYOUT["FLASH_CONFIG_B_ADDR"] + 90])
    until(lambda: "no host may connect until one is saved" in log(job))
    # With the defaults, the drive has no address that this host knows.
    for port, address in enumerate(job.addresses[:2]):
        mgmt.ask(job.instance, "config-set", key=f"port.{port}.ipv4", value=f"{address}/24")
    mgmt.ask(job.instance, "config-save")
    steps.wait_target(job)      # Discovery shows nothing that is secret.
    said = job.result(f"nvme connect -t rdma -a {job.addresses[0]} -s {steps.SERVICE} "
                      f"-n {job.nqn}", check=False)
    assert said.status != 0
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.wait_target(job)
    steps.connect(job)
    # The loss is in the persistent event log.
    errors = mgmt.ask(job.instance, "hardware-errors")["errors"]
    assert [one["address"] for one in errors if one["kind"] == "record-lost"] == [
        LAYOUT["FLASH_CONFIG_A_ADDR"]]


def test_hosts_attach_the_namespaces_of_an_older_table(losing: Job) -> None:
    job = losing
    name = job.controller()
    # Two records: the lost one protects the namespace, the older one does not.
    for value in (1, 0, 1):
        job.run(f"nvme set-feature {name} -f 0x84 -n 1 --value={value}")
        assert f"{value:08x}" in job.run(f"nvme get-feature {name} -f 0x84 -n 1").lower()
    steps.disconnect(job)
    damage(job, lambda image: newest(image, "NAMESPACES"))
    steps.wait_target(job)
    assert "those of an older one are detached and write-protected" in log(job)
    job.run(f"nvme connect -t rdma -a {job.addresses[0]} -s {steps.SERVICE} -n {job.nqn}")
    assert job.namespaces() == []
    name = job.controller()
    listed = json.loads(job.quiet(f"nvme list-ns {name} --all -o json"))
    assert [one["nsid"] for one in listed["nsid_list"]] == [1]
    cntlid = int(json.loads(job.quiet(f"nvme id-ctrl {name} -o json"))["cntlid"])
    job.run(f"nvme attach-ns {name} --namespace-id=1 --controllers={cntlid}")
    until(lambda: len(job.namespaces()) == 1)
    write = (f"dd if=/dev/zero of={job.namespaces()[0]} bs=4k count=1 oflag=direct "
             "status=none")
    assert job.result(write, check=False).status != 0
    job.run(f"nvme set-feature {name} -f 0x84 -n 1 --value=0")
    job.run(f"nvme ns-rescan {name}")
    until(lambda: job.result(write, check=False).status == 0)


def test_a_namespace_whose_table_and_reservations_are_lost_is_opened(losing: Job) -> None:
    """Each of the two commands was refused because of the other record (decision 83)."""
    job = losing
    name, (device,) = job.controller(), job.namespaces()
    for value in (1, 0):
        job.run(f"nvme set-feature {name} -f 0x84 -n 1 --value={value}")
    job.run(f"nvme resv-register {device} --nrkey=5 --cptpl=3")
    job.run(f"nvme resv-release {device} --crkey=5 --rrela=1")
    steps.disconnect(job)
    damage(job, lambda image: newest(image, "NAMESPACES") + newest(image, "RESERVATIONS"))
    steps.wait_target(job)
    job.run(f"nvme connect -t rdma -a {job.addresses[0]} -s {steps.SERVICE} -n {job.nqn}")
    assert job.namespaces() == []
    name = job.controller()
    cntlid = int(json.loads(job.quiet(f"nvme id-ctrl {name} -o json"))["cntlid"])
    job.run(f"nvme attach-ns {name} --namespace-id=1 --controllers={cntlid}")
    until(lambda: len(job.namespaces()) == 1)
    (device,) = job.namespaces()
    read = f"dd if={device} of=/dev/null bs=4k count=1 iflag=direct status=none"
    assert job.result(read, check=False).status != 0
    job.run(f"nvme set-feature {name} -f 0x84 -n 1 --value=0")
    assert job.result(read, check=False).status != 0
    job.run(f"nvme resv-register {device} --nrkey=1")
    until(lambda: job.result(read, check=False).status == 0)
