# SPDX-License-Identifier: BSD-2-Clause
"""A host of user-mode Linux beside a stock host: both ports, both IP versions, one drive.

What other files with the mark `uml` use such a host for is not repeated here
(docs/hosts.md, "What is the same").
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

import essd
from essd.instance.config import UML
from essd.testrun import pcap_check

pytestmark = [pytest.mark.drive, pytest.mark.uml]

# Port 0 is at a switch with both hosts, port 1 at the host of user-mode Linux alone.
TOPOLOGY = """
drives:
  d: {size: 512M, port0: "fd00::10/64,10.0.0.10/24", port1: 10.0.1.10/24}
hosts:
  fast: {kind: uml}
  plain: {}
switches:
  s: {}
cables:
  - d:0 - s
  - {cable: d:1 - fast:1, capture: yes}
  - fast:0 - s
  - plain:0 - s
"""
FIO = ("fio --name=own --filename={device} --direct=1 --ioengine=libaio --bs=16k --iodepth=8 "
       "--rw=randwrite --size=8m --verify=crc32c --verify_fatal=1")


@pytest.fixture
def system(host_kind: str, tmp_path: Path) -> Iterator[essd.System]:
    if host_kind != UML:
        pytest.skip("user-mode Linux is not used")
    (tmp_path / "mixed.yaml").write_text(TOPOLOGY)
    with essd.up(topology=tmp_path / "mixed.yaml") as system:
        yield system


def digest(host: essd.Host, device: str) -> str:
    return host.read(f"dd if={device} bs=1M count=8 iflag=direct status=none | sha256sum")


def wait_carrier(host: essd.Host, card: str, value: int) -> None:
    host.run(f"for n in $(seq 100); do [ $(cat /sys/class/net/{card}/carrier) = {value} ] && "
             "exit 0; sleep 0.1; done; exit 1")


def test_hosts_of_both_kinds_share_a_drive(system: essd.System) -> None:
    drive, hosts = system.drives[0], {host.name: host for host in system.hosts}
    fast, plain = hosts["fast"], hosts["plain"]
    looks = {name: "User Mode Linux" in host.read("cat /proc/cpuinfo")
             for name, host in hosts.items()}
    assert looks == {"fast": True, "plain": False}

    # Two paths: IPv6 through the switch, and IPv4 through the other port.
    assert drive.port(0).address == "fd00::10"
    device = fast.connect(drive, 0, "--ctrl-loss-tmo=60 --reconnect-delay=1")
    assert fast.connect(drive, 1, "--ctrl-loss-tmo=60 --reconnect-delay=1") == device
    fast.wait_paths(drive, 2)
    fast.run(FIO.format(device=device))
    written = digest(fast, device)
    assert digest(plain, plain.connect(drive)) == written

    # A pulled cable takes its carrier and its path, and nothing else.
    drive.port(1).unplug()
    wait_carrier(fast, "eth1", 0)
    wait_carrier(fast, "eth0", 1)
    fast.wait_paths(drive, 1)
    assert digest(fast, device) == written
    drive.port(1).plug()
    wait_carrier(fast, "eth1", 1)
    fast.wait_paths(drive, 2)

    capture = drive.port(1).capture
    assert capture is not None
    for host in hosts.values():
        host.disconnect()
    found = pcap_check.check(capture)
    assert found.complaints == [] and found.icrc_checked > 100
    assert any("Connect" in words for words in found.nvme_commands), found.nvme_commands


def test_one_command_starts_such_a_host_which_is_traced_and_moves_much_at_once(
        host_kind: str) -> None:
    if host_kind != UML:
        pytest.skip("user-mode Linux is not used")
    with essd.up(host_kind=UML, size="64M", block=True, capture=True) as system:
        drive, host = system.drives[0], system.host
        assert "User Mode Linux" in host.read("cat /proc/cpuinfo")
        assert system.status()["parts"]["host"]["state"] == "running"
        device = host.connect(drive)
        with drive.trace("commands") as trace:
            host.run(FIO.format(device=device))
        # 8 MiB were written, and read again to be verified, by 16 KiB.
        commands = [event for event in trace.events if event.kind.name == "COMMAND"]
        assert trace.lost == 0 and len(commands) >= 1024, len(commands)

        # nvme-cli asks for huge pages from 512 KiB on.
        much = f"{device} -s 0 -c $((1048576 / $(blockdev --getss {device}) - 1)) -z 1048576"
        host.run(f"head -c 1M /dev/urandom > /tmp/data && nvme write {much} -d /tmp/data")
        host.run(f"nvme read {much} -d /tmp/again && cmp /tmp/data /tmp/again")
        host.disconnect()
