# SPDX-License-Identifier: BSD-2-Clause
"""Three kinds of hosts use one drive at the same time.

A stock host and user-mode Linux are at a switch, and the memory of a second stock host is
the cable to the drive's other port.  Each host writes a part of the namespace of its own
and verifies it, again and again.
"""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import essd
from essd.base.paths import TOP
from essd.instance.config import UML

pytestmark = [pytest.mark.drive, pytest.mark.uml, pytest.mark.long]

TOPOLOGY = """
drives:
  d: {size: 256M, port0: 10.0.0.10/24, port1: 10.0.1.10/24}
hosts:
  plain: {}
  shared: {}
switches:
  s: {}
cables:
  - d:0 - s
  - plain - s
  - {cable: shared - d:1, link: vhost-user}
"""
WITH_UML = TOPOLOGY.replace("hosts:\n", "hosts:\n  fast: {kind: uml}\n") + "  - fast - s\n"
OPTIONS = "--ctrl-loss-tmo=600 --reconnect-delay=1"
PART_MIB = 4
# It goes on when the connection ends through which it was started.
WORK = ("rm -f /tmp/stop /tmp/rounds /tmp/end; (while [ ! -e /tmp/stop ]; do "
        "fio --name=own --filename={device} --direct=1 --ioengine=libaio --bsrange=4k-64k "
        "--iodepth=8 --rw=randwrite --rate_iops=100 --offset={offset}m --size={size}m "
        "--verify=crc32c --verify_fatal=1 || break; echo >> /tmp/rounds; done; "
        "[ -e /tmp/stop ]; echo $? > /tmp/end) > /tmp/log 2>&1 < /dev/null &")
WAIT_S = 300
STOP_S = 1.0


@pytest.fixture
def start(host_kind: str, tmp_path: Path) -> Callable[[str], essd.System]:
    if host_kind != UML:
        pytest.skip("user-mode Linux is not used")

    def up(topology: str) -> essd.System:
        (tmp_path / "hosts.yaml").write_text(topology)
        return essd.up(topology=tmp_path / "hosts.yaml")
    return up


class Work:
    """Verified I/O of all hosts, until end()."""

    def __init__(self, system: essd.System) -> None:
        self.drive = system.drives[0]
        self.hosts = {host.name: host for host in system.hosts}
        self.devices = {name: host.connect(self.drive, int(name == "shared"), OPTIONS)
                        for name, host in self.hosts.items()}
        for at, (name, host) in enumerate(self.hosts.items()):
            host.run(WORK.format(device=self.devices[name], offset=PART_MIB * at, size=PART_MIB))
        self.go_on()

    def rounds(self, host: essd.Host) -> int:
        assert host.read("cat /tmp/end 2> /dev/null || true") == "", host.read("cat /tmp/log")
        return int(host.read("cat /tmp/rounds 2> /dev/null | wc -l"))

    def go_on(self, count: int = 1) -> None:
        """Wait until each host has written and verified its part `count` times more."""
        wanted = {name: self.rounds(host) + count for name, host in self.hosts.items()}
        deadline = time.monotonic() + WAIT_S
        for name, host in self.hosts.items():
            while self.rounds(host) < wanted[name]:
                assert time.monotonic() < deadline, name
                time.sleep(0.5)

    def digest(self, name: str) -> str:
        return self.hosts[name].read(
            f"dd if={self.devices[name]} bs=1M count={PART_MIB * len(self.hosts)} "
            "iflag=direct status=none | sha256sum")

    def end(self) -> None:
        """Stop the I/O: nothing had failed, and all hosts read the same."""
        for host in self.hosts.values():
            host.run("touch /tmp/stop; for n in $(seq 1200); do [ -e /tmp/end ] && break; "
                     "sleep 0.1; done; [ $(cat /tmp/end) = 0 ]")
        assert len({self.digest(name) for name in self.hosts}) == 1


def command(system: essd.System, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([TOP / "essd", *words, "--name", system.name], check=False, text=True,
                          capture_output=True, timeout=WAIT_S)


def qmp(system: essd.System, part: str, execute: str) -> None:
    system.instance.ask("qmp", part=part, execute=execute, arguments={})


def first_block(host: essd.Host, device: str, text: str = "") -> str:
    """The text behind all hosts' parts, after writing it."""
    at = f"bs=4k count=1 oflag=direct seek={PART_MIB * 3 * 256}"
    if text:
        host.run(f"printf {text} | dd of={device} conv=sync {at}")
    at = at.replace("oflag", "iflag").replace("seek", "skip")
    return host.read(f"dd if={device} {at} status=none | head -c 4")


def test_io_of_all_kinds_survives_stop_and_continue(start: Callable[[str], essd.System]) -> None:
    with start(WITH_UML) as system:
        work = Work(system)
        parts = [work.drive.name, *work.hosts]
        for stopped in (*([part] for part in parts), parts):
            for part in stopped:
                qmp(system, part, "stop")
            time.sleep(STOP_S)
            for part in stopped:
                qmp(system, part, "cont")
            work.go_on()
        refused = command(system, "save", "now")
        assert refused.returncode == 1 and refused.stdout == ""
        assert refused.stderr.count("\n") == 1
        assert "fast is user-mode Linux, whose state cannot be saved" in refused.stderr
        work.go_on()
        work.end()


def test_drive_and_stock_hosts_are_saved_and_loaded_together(
        start: Callable[[str], essd.System]) -> None:
    with start(TOPOLOGY) as system:
        save_and_load(system)


def save_and_load(system: essd.System) -> None:
    work = Work(system)
    plain, device = work.hosts["plain"], work.devices["plain"]
    assert first_block(plain, device, "old1") == "old1"
    saved = command(system, "save", "now")
    assert saved.returncode == 0, saved.stderr
    work.go_on()
    assert first_block(plain, device, "new2") == "new2"
    for host in work.hosts.values():
        host.run("touch /tmp/after")
    loaded = command(system, "load", "now")
    assert loaded.returncode == 0, loaded.stderr
    for host in work.hosts.values():
        host.wait_ready()
        host.run("[ ! -e /tmp/after ]")
    assert first_block(work.hosts["shared"], work.devices["shared"]) == "old1"
    work.go_on(2)
    work.end()
