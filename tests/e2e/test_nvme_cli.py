# SPDX-License-Identifier: BSD-2-Clause
"""nvme-cli's own tests, run on a stock host against the drive.

The list tests/nvme_cli/expected.txt says what each of them does, and why: docs/blktests.md.
"""

import io
import json
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from blktests_list import Outcome, surprises
from blktests_run import first_namespace, suite_version
from conftest import SESSION
from nvme_cli_list import EXPECTED, SOURCE, outcome, read_expected

from essd.base.errors import EssdError
from essd.instance.config import SERVICE
from essd.instance.instance import Instance
from essd.setup import setup
from essd.topology import reader as topology_yaml, setup as topology_setup

pytestmark = [pytest.mark.drive, pytest.mark.long, pytest.mark.timeout(7200)]

NAME = f"{SESSION}-nvme-cli"
SUITE = "/nvme-cli"             # in the guest
TEST_S = 3600                   # the longest test creates 128 namespaces


def suite_folder() -> Path | None:
    """The checkout that ESSD_NVME_CLI names; None if the variable is not set."""
    text = os.environ.get("ESSD_NVME_CLI", "")
    if not text:
        return None
    folder = Path(text)
    if not (folder / "tests/nvme_test.py").is_file():
        raise EssdError(f"ESSD_NVME_CLI={text} is no checkout of nvme-cli: it has no "
                        "file tests/nvme_test.py")
    return folder


def tests_of(folder: Path) -> list[str]:
    """The files that nvme-cli's own build runs, without their suffix."""
    text = (folder / "tests/meson.build").read_text(encoding="utf-8")
    listed = re.search(r"^tests = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    assert listed is not None, "tests/meson.build of nvme-cli lists no tests"
    return re.findall(r"'(\w+)\.py'", listed[1])


def archive(folder: Path) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.add(SOURCE / "nvme", "nvme")
        for file in sorted((folder / "tests").glob("*.py")):
            tar.add(file, f"tests/{file.name}")
    return data.getvalue()


@pytest.fixture(scope="module")
def suite() -> Path:
    folder = suite_folder()
    if folder is None:
        pytest.skip("nvme-cli's tests were not run: ESSD_NVME_CLI names no checkout of it")
    return folder


@pytest.fixture(scope="module")
def instance(suite: Path) -> Iterator[Instance]:
    found = Instance(NAME)
    try:
        topology = topology_yaml.read(SOURCE / "topology.yaml")
        found = topology_setup.start(topology, NAME, True, False, 0)
        found.run(f"mkdir {SUITE} && tar -x -C {SUITE}", send=archive(suite))
        print(f"nvme-cli {suite_version(suite)};", found.run("nvme version").output)
        yield found
    finally:
        found.stop()
        setup.forget(NAME)


@pytest.mark.parametrize("transport", ["tcp", "rdma"])
def test_nvme_clis_own_tests_do_with_the_drive_what_the_list_says(
        instance: Instance, suite: Path, transport: str) -> None:
    only = os.environ.get("ESSD_NVME_CLI_ONLY", "").split()
    assert instance.config.drive is not None
    link = instance.config.ports_of(instance.drive)[0]
    instance.run(f"nvme connect -t {transport} -a {link.target_address} -s {SERVICE} "
                 f"-n {instance.config.drive.nqn}")
    namespace = first_namespace(instance)
    config = {"controller": f"/dev/{namespace.removesuffix('n1')}",
              "ns1": f"/dev/{namespace}", "log_dir": "/tmp/nvmetests",
              "do_validate_pci_device": False,
              "nvme_bin": f"{SUITE}/nvme"}
    instance.run(f"cat > {SUITE}/tests/config.json", send=json.dumps(config).encode())
    try:
        outcomes = [run(instance, name) for name in only or tests_of(suite)]
    finally:
        instance.run("nvme disconnect-all")
    expected = read_expected(EXPECTED.read_text(encoding="utf-8"))
    if only:
        expected = {name: line for name, line in expected.items() if name in only}
    differing = surprises(outcomes, expected)
    assert not differing, "\n".join(differing)


def run(instance: Instance, name: str) -> Outcome:
    """One file: nvme-cli's build runs each of them by itself, too."""
    printed = instance.run(
        f"cd {SUITE} && PYTHONPATH=tests python3 -W ignore -u -m unittest -v {name}",
        check=False, timeout_s=TEST_S).output
    found = outcome(name, printed)
    print(f"{name}: {found.status} {'; '.join(found.details)}", flush=True)
    return found
