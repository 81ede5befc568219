# SPDX-License-Identifier: BSD-2-Clause
"""libnvme-mi, which was not written for this project, asks the drive.

libnvme-mi of Debian 13 needs AF_MCTP sockets, which Debian's kernels do not have.  The
preloaded tests/libnvme_mi/mctp_socket.c gives it a Unix socket instead, and this test
passes the messages to the drive's I2C bus.  The library itself is not changed.  It
is taken from the guest's libraries, and runs with their dynamic linker.
"""

import os
import platform
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from essd.build import guest_build
from essd.drive import bmc
from essd.instance.steps import Job
from essd.machine import drive

pytestmark = pytest.mark.drive

SOURCES = Path(__file__).resolve().parents[1] / "libnvme_mi"
LINKER = "usr/lib64/ld-linux-x86-64.so.2"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
MESSAGE_MAX = 8192
TIMEOUT_S = 60
INVALID_OPCODE, INVALID_PARAMETER = 3, 4        # statuses of NVMe-MI
MI_STATUS = 1 << 27         # libnvme-mi marks them in the results of admin commands


@pytest.fixture(scope="module")
def sysroot() -> Path:
    if platform.machine() != "x86_64":
        pytest.skip(f"the guest's libnvme-mi does not run on {platform.machine()}")
    found = guest_build.ensure_sysroot(print)
    if not (found / LIBRARIES / "libnvme-mi.so").exists():
        pytest.skip("Debian's package libnvme-dev has no libnvme-mi")
    return found


@pytest.fixture(scope="module")
def programs(sysroot: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the program and the library that is preloaded."""
    folder = tmp_path_factory.mktemp("libnvme_mi")
    for name, flags in (("ask", ["-lnvme-mi"]),
                        ("mctp_socket.so", ["-shared", "-fPIC", "-ldl"])):
        source = SOURCES / f"{name.partition('.')[0]}.c"
        subprocess.run(
            ["clang", "-o", folder / name, source, "-std=gnu11", "-O1", "-Wall", "-Werror",
             "--target=x86_64-linux-gnu", f"--sysroot={sysroot}", *flags],
            check=True, timeout=TIMEOUT_S)
    return folder


def serve(listener: socket.socket, bus: bmc.Bus, seen: list[bytes], damage: int) -> None:
    """Exchange the messages of one connection with the drive, until it ends.

    `damage` is combined with the last byte of each answer, which is of the CRC.
    """
    with listener.accept()[0] as connection:
        connection.settimeout(TIMEOUT_S)
        while request := connection.recv(MESSAGE_MAX):
            seen.append(request)
            answer = bmc.exchange(bus, request)
            connection.sendall(answer[:-1] + bytes([answer[-1] ^ damage]))


@contextmanager
def mctp_network(job: Job, path: Path, damage: int) -> Iterator[list[bytes]]:
    """A socket whose messages go to the drive; yields the requests."""
    seen: list[bytes] = []
    with (socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
          bmc.dial(drive.bmc_socket(job.instance.folder, job.target)) as bus):
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(TIMEOUT_S)
        bus.listen(bmc.OWN_ADDRESS)
        thread = threading.Thread(target=serve, args=(listener, bus, seen, damage))
        thread.start()
        try:
            yield seen
        finally:
            thread.join(TIMEOUT_S)


def ask(job: Job, sysroot: Path, programs: Path, folder: Path,
        damage: int = 0) -> dict[str, str]:
    """What libnvme-mi says of the drive, by name."""
    path = folder / "mctp"
    path.unlink(missing_ok=True)
    with mctp_network(job, path, damage) as seen:
        done = subprocess.run(
            [sysroot / LINKER, "--library-path", sysroot / LIBRARIES,
             "--preload", programs / "mctp_socket.so", programs / "ask"],
            env={**os.environ, "ESSD_MCTP_SOCKET": str(path)}, check=False, text=True,
            capture_output=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    assert all(request[0] == bmc.NVME_MI for request in seen)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_libnvme_mi_understands_the_drive(connected: Job, sysroot: Path, programs: Path,
                                          tmp_path: Path) -> None:
    found = ask(connected, sysroot, programs, tmp_path)
    assert (found["ports"], found["version"]) == ("1", "1.1")
    # The SMBus port: type 2, addresses with the bit for reading, Basic Management.
    assert found["port-0-type"] == "2"
    assert found["port-0-unit"] == found["unit"] == str(bmc.UNIT_BYTES)
    assert int(found["port-0-vpd"], 16) == bmc.VPD_ADDRESS << 1
    assert int(found["port-0-mctp"], 16) == bmc.MCTP_ADDRESS << 1
    assert found["port-0-basic"] == "1"
    assert found["frequency"] == "1"        # 100 kHz, and no other
    assert found["set-1MHz"] == f"refused {INVALID_PARAMETER}"
    assert found["state"] == "0000"
    vpd = bmc.parse_vpd(bytes.fromhex(found["vpd"]))
    assert vpd["product"] == "Ethernet SSD" and vpd["capacity-bytes"] > 0
    # One controller serves the host; the drive takes no admin commands from a BMC.
    assert found["controllers"] == "1" and int(found["controller"]) > 0
    assert found["identify"] == f"refused {MI_STATUS | INVALID_OPCODE}"


def test_libnvme_mi_sees_a_warning(job: Job, sysroot: Path, programs: Path,
                                   tmp_path: Path) -> None:
    """Health is that of SMART: a hot sensor changes temperature and warnings."""
    def set_temperature(celsius: int) -> None:
        job.instance.ask("qmp", part=job.target, execute="qom-set", arguments={
            "path": "/machine/sensor-media", "property": "temperature",
            "value": celsius * 1000})

    def wait_health(celsius: str) -> dict[str, str]:
        deadline = time.monotonic() + TIMEOUT_S
        while (found := ask(job, sysroot, programs, tmp_path))["celsius"] != celsius:
            assert time.monotonic() < deadline, found
        return found

    assert wait_health("40")["warnings"] == "ff"        # each bit is inverted
    set_temperature(75)
    try:
        found = wait_health("75")
        assert found["warnings"] == "fd" and int(found["status"], 16) & 0x20
    finally:
        set_temperature(40)
    wait_health("40")


def test_libnvme_mi_checks_what_the_drive_sends(job: Job, sysroot: Path, programs: Path,
                                                tmp_path: Path) -> None:
    """With one wrong bit in the CRC, no answer counts: the tests above mean something."""
    found = ask(job, sysroot, programs, tmp_path, damage=1)
    assert {"subsystem", "controllers", "health", "vpd"} <= found.keys()
    assert all(value == "refused -1" for value in found.values()), found
