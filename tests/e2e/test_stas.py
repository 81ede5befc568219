# SPDX-License-Identifier: BSD-2-Clause
"""Avahi and nvme-stas find the drive, keep its discovery controller, and connect to it.

Their packages are those of Debian, in a guest of its own (tests/stas/guest).
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from conftest import SESSION

from essd.base import paths
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.setup import setup
from essd.topology import reader as topology_yaml, setup as topology_setup

pytestmark = [pytest.mark.drive, pytest.mark.long, pytest.mark.timeout(1800)]

NAME = f"{SESSION}-stas"
TOPOLOGY = paths.TOP / "tests" / "stas" / "topology.yaml"
DISCOVERY_CHANGED = "Received AEN: 0x70f002"
FURTHER = "10.0.0.11"           # an address that the drive gets during a test
CONNECTS_S = 180                # emulated hosts are slow


@pytest.fixture(scope="module")
def job() -> Iterator[Job]:
    instance = Instance(NAME)
    try:
        started = topology_setup.start(topology_yaml.read(TOPOLOGY), NAME, True, False, 0)
        job = Job.of(started)
        configure(job, "mdns=on")
        job.quiet("/usr/lib/essd/stas services")
        yield job
        instance.check()
    finally:
        instance.stop()
        setup.forget(NAME)


@pytest.fixture
def begin(job: Job) -> Iterator[Callable[[str], None]]:
    """A function that starts stafd with a configuration, and stacd; both end afterwards."""
    def start(config: str) -> None:
        job.quiet(f"printf '{config}' | /usr/lib/essd/stas begin")

    yield start
    print(log(job, "stafd"), log(job, "stacd"))
    job.quiet("/usr/lib/essd/stas end")


def configure(job: Job, change: str) -> None:
    subprocess.run([sys.executable, "-m", "essd", "config", "--name", job.instance.name,
                    "--set", change], check=True, timeout=60,
                   stdin=subprocess.DEVNULL)


def log(job: Job, name: str) -> str:
    return job.quiet(f"cat /run/{name}.log", check=False)


def controllers(job: Job) -> list[tuple[str, str]]:
    """(type, address) of each controller of the host that is live."""
    found = job.quiet(
        "cd /sys/class/nvme && for c in *; do [ ! -e $c/state ] || "
        "echo $(cat $c/state) $(cat $c/cntrltype) $(cat $c/address); done", check=False)
    return sorted((kind, address.split(",")[0].removeprefix("traddr="))
                  for state, kind, address in map(str.split, found.splitlines())
                  if state == "live")


def wait_for(job: Job, wanted: list[tuple[str, str]]) -> None:
    deadline = time.monotonic() + CONNECTS_S
    while controllers(job) != wanted:
        assert time.monotonic() < deadline, (
            controllers(job), wanted, log(job, "stafd"), log(job, "stacd"))
        time.sleep(1)


def test_avahi_finds_the_discovery_service_of_each_port(job: Job) -> None:
    deadline = time.monotonic() + 60
    lines: list[list[str]] = []
    while len({line[7] for line in lines}) < len(job.addresses):
        assert time.monotonic() < deadline, lines
        text = job.quiet("timeout 20 avahi-browse -rpt _nvme-disc._udp", check=False)
        lines = [line.split(";") for line in text.splitlines() if line.startswith("=;")]
    assert {line[7] for line in lines} == set(job.addresses)
    for line in lines:
        assert line[8] == "4420"
        assert f'"nqn={job.nqn}:discovery"' in line[9] and '"p=roce"' in line[9]


def test_nvme_stas_connects_and_follows_a_change_of_the_log(
        job: Job, begin: Callable[[str], None]) -> None:
    both = [("io", address) for address in sorted(job.addresses)]
    begin(r"[Service Discovery]\nzeroconf=disabled\n[Controllers]\n"
          rf"controller=transport=rdma;traddr={job.addresses[0]};trsvcid=4420\n")
    wait_for(job, [("discovery", job.addresses[0]), *both])
    assert DISCOVERY_CHANGED not in log(job, "stafd")
    configure(job, f"address.0.ip={FURTHER}/24")
    try:
        wait_for(job, sorted([("discovery", job.addresses[0]), *both, ("io", FURTHER)]))
        assert DISCOVERY_CHANGED in log(job, "stafd")
    finally:
        configure(job, "address.0.ip=none")


def test_nvme_stas_finds_the_drive_without_an_address(
        job: Job, begin: Callable[[str], None]) -> None:
    begin(r"[Service Discovery]\nzeroconf=enabled\n")
    addresses = sorted(job.addresses)
    wait_for(job, [*(("discovery", address) for address in addresses),
                   *(("io", address) for address in addresses)])
    assert f"{job.nqn}:discovery" in job.quiet("cat /sys/class/nvme/*/subsysnqn")
