# SPDX-License-Identifier: BSD-2-Clause
"""blktests' nvme group, run on a stock host against the drive.

`--target nvmet` runs the same tests against Linux's own target in the same guest.  The
list tests/blktests/expected.txt says what each test does with either target, and why.
"""

import os
from collections.abc import Iterator

import blktests_run as run
import pytest
from blktests_list import (EXPECTED, Expected, Outcome, hanging, read_expected, run_name,
                           surprises)
from conftest import SESSION

from essd.instance.instance import Instance
from essd.setup import setup
from essd.topology import reader as topology_yaml, setup as topology_setup

pytestmark = pytest.mark.long

NAME = f"{SESSION}-blktests"
GROUP_S = 5400          # an emulated host needs about half of it
TRANSPORTS = ["rdma", "tcp"]
# These need a host without multipath.  In the first ones, nvmet exports a controller of the
# drive once more; the last one is about atomic writes.
NO_MULTIPATH = [*(f"nvme/{number:03}" for number in range(33, 38)), "nvme/059"]


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    suite = run.suite_folder()
    if suite is None:
        pytest.skip("blktests was not run: ESSD_BLKTESTS names no checkout of it")
    print(f"blktests {run.suite_version(suite)}")
    found = Instance(NAME)
    try:
        topology = topology_yaml.read(run.SOURCE / "topology.yaml")
        instance = topology_setup.start(topology, NAME, True, False, 0)
        run.install(instance, suite, tmp_path_factory.mktemp("blktests"))
        yield instance
    finally:
        found.stop()
        setup.forget(NAME)


def compare(outcomes: list[Outcome], text: str, kind: str, target: str,
            only: list[str]) -> None:
    print(text)
    expected = read_expected(EXPECTED.read_text(encoding="utf-8"), kind, target)
    for outcome in outcomes:
        if outcome.status == "skip":
            line = expected.get(outcome.name, Expected("", "not on the list"))
            print(f"not run: {outcome.name}: {'; '.join(outcome.details)} ({line.reason})")
    if only:
        expected = {name: line for name, line in expected.items() if name in only}
    assert outcomes, "blktests ran no test"
    differing = surprises(outcomes, expected)
    assert not differing, "\n".join(differing)


@pytest.mark.timeout(GROUP_S)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_blktests_finds_in_the_drive_what_it_finds_in_nvmet(
        instance: Instance, target: str, transport: str) -> None:
    only = os.environ.get("ESSD_BLKTESTS_ONLY", "").split()
    against = run.against_drive if target == "drive" else run.against_nvmet
    # What is named runs in any case, also a test that the list says hangs.
    kind = run_name("target", transport)
    words = only or [*(f"-x {name}" for name in hanging(kind, target)), "nvme"]
    outcomes, text = against(instance, transport, " ".join(words), GROUP_S)
    compare(outcomes, text, kind, target, only)


@pytest.mark.drive
@pytest.mark.timeout(GROUP_S)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_blktests_for_a_device_pass_with_a_namespace_of_the_drive(
        instance: Instance, transport: str) -> None:
    others = " ".join(f"-x {name}" for name in NO_MULTIPATH)
    outcomes, text = run.on_device(instance, transport, f"{others} nvme", True, GROUP_S)
    compare(outcomes, text, run_name("device", transport), "drive", [])


@pytest.mark.drive
@pytest.mark.timeout(GROUP_S)
def test_blktests_for_a_device_without_multipath_pass_with_the_drive(
        instance: Instance) -> None:
    words = " ".join(NO_MULTIPATH)
    outcomes, text = run.on_device(instance, "rdma", words, False, GROUP_S)
    compare(outcomes, text, "no-multipath", "drive", [])
