# SPDX-License-Identifier: BSD-2-Clause
"""DPDK's virtio_user is the front-end of a cable of kind vhost-user (docs/decisions/0069).

Debian's dpdk-testpmd sends each frame of the drive back to it.  Its packages, and the C
library that it was built for, are downloaded and unpacked, but not installed.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from essd.base import paths
from essd.base.interrupts import kill_after
from essd.build import guest_build
from essd.build.fw_build import BuildError
from test_cable_bursts import LEN, RX_DATA, SLOT, Sender, frame, start_port
from test_cable_stream import sent
from test_cable_vhost_user import CABLE
from test_port_media import Machine, medium, qemu, received, start  # noqa: F401

pytestmark = pytest.mark.long

FOLDER = "usr/lib/x86_64-linux-gnu"
LOADER = f"{FOLDER}/ld-linux-x86-64.so.2"   # the C library is Debian's, too
FRAMES = 16
MBUF = 128 + 10240             # one buffer holds a frame
END_S = 60


def unpack(folder: Path) -> None:
    """Download DPDK's packages and all libraries that they need, and unpack them."""
    new = folder.with_name(f"{folder.name}.{os.getpid()}")
    new.mkdir(parents=True)
    log = new / "apt.log"
    log.touch()
    try:
        apt = guest_build.Apt(folder.parent / "apt", paths.cache() / "debs", log)
        apt.get("update")
        versions = {name: version for name, version in apt.resolve(["dpdk-dev"], []).items()
                    if re.match("dpdk-dev$|ibverbs-providers$|lib(?!python|perl|.*-dev$)", name)}
        for archive in apt.fetch(versions):
            subprocess.run(["dpkg-deb", "-x", archive, new], check=True, timeout=END_S)
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


@pytest.fixture(scope="module")
def dpdk() -> Path:
    """The folder with DPDK's packages, or a skip with the reason why there is none.

    DPDK takes no drivers from a folder below one that everybody can write, such as /tmp.
    """
    folder = paths.cache() / "dpdk" / guest_build.SUITE
    try:
        if not folder.exists():
            with paths.locked(folder.with_name("lock")):
                if not folder.exists():
                    unpack(folder)
    except BuildError as error:
        pytest.skip(f"DPDK is not to be had here: {error}")
    return folder


@pytest.fixture
def machine(start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    found = start(*CABLE)
    start_port(found)
    return found


@pytest.fixture
def testpmd(dpdk: Path, machine: Machine, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    drivers = [name for kind in ("net_virtio", "mempool_ring")
               for name in sorted((dpdk / FOLDER).rglob(f"librte_{kind}.so.*"))[:1]]
    # What testpmd says has to come at once, and not when a buffer is full.
    command = ["stdbuf", "-oL", str(dpdk / LOADER), "--library-path", str(dpdk / FOLDER),
               str(dpdk / "usr/bin/dpdk-testpmd"), "--lcores", "0@0,1@0",
               "--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "--file-prefix", "essd",
               *(word for driver in drivers for word in ("-d", str(driver))),
               "--vdev", f"net_virtio_user0,path={machine.folder}/cable,queues=1",
               "--", "--auto-start", "--forward-mode=io", "--total-num-mbufs=4096",
               f"--mbuf-size={MBUF}", f"--max-pkt-len={LEN}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, cwd=tmp_path,
                          env={**os.environ, "RUNTIME_DIRECTORY": str(tmp_path)}) as process:
        try:
            yield process
        finally:
            process.kill()


def test_each_frame_comes_back(
        machine: Machine, testpmd: subprocess.Popen[str]) -> None:
    assert testpmd.stdout is not None
    said = []
    watchdog = kill_after(testpmd, END_S)
    for line in testpmd.stdout:
        said.append(line)
        if "Press enter to exit" in line:
            break
    watchdog.cancel()
    assert said and "Press enter to exit" in said[-1], "".join(said)
    Sender(machine).post(FRAMES)
    machine.wait(lambda: sent(machine) == FRAMES and received(machine) == FRAMES,
                 "not all frames came back")
    for number in range(FRAMES):
        assert machine.read(RX_DATA + SLOT * number, LEN) == frame(number)
    counted = testpmd.communicate("\n", timeout=END_S)[0]
    assert re.search(rf"RX-packets: {FRAMES} .*\n.*TX-packets: {FRAMES} ", counted), counted
    assert machine.ask("query-status")["status"] == "running"
