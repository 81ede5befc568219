# SPDX-License-Identifier: BSD-2-Clause
"""A stock host by NVMe/RoCE and another host by AoE use one file system in turn.

The host with AoE is user-mode Linux once, and once a stock host with the guest of the peers,
because the default guest has no aoe module (docs/peers.md).

While a host writes, its cable is pulled or the drive's power is cut.  Then it goes on, and
the other host checks the file system and the sums of all files.
"""

import time
from collections.abc import Iterator

import pytest

import essd
from essd.api.background import Background
from essd.build import guest_variant
from essd.instance.config import STOCK, UML

pytestmark = [pytest.mark.drive, pytest.mark.uml, pytest.mark.long]

TOPOLOGY = """
drives:
  d: {size: 256M, config: aoe.yaml, port0: 10.0.0.10/24, port1: 10.0.1.10/24}
hosts:
  nvme: {card0: 10.0.0.1/24}
  aoe: {HOST, card0: 10.0.1.1/24}
cables:
  - d:0 - nvme:0
  - d:1 - aoe:0
"""
CONFIG = "aoe:\n  export: 1\n  shelf: 7\n"
OPTIONS = "--ctrl-loss-tmo=600 --reconnect-delay=1 --keep-alive-tmo=5"
DISK = "/dev/etherd/e7.0"
DISCOVER = ("modprobe aoe; for n in $(seq 300); do echo > /dev/etherd/discover; "
            f"[ -b {DISK} ] && exit 0; sleep 0.1; done; exit 1")
# Forty files, again and again, each of which is on the disk before the next one.
WRITE = ("rm -f /tmp/stop; echo 0 > /tmp/files; modprobe -q ext4; "
         "mount -t ext4 {device} /mnt || exit 1; n=0; "
         "while [ ! -e /tmp/stop ]; do n=$((n + 1)); "
         "head -c 256k /dev/urandom > /mnt/{turn}-$((n % 40)) && sync /mnt/{turn}-$((n % 40)) "
         "|| exit 1; echo $n > /tmp/files; done; "
         "cd /mnt && rm -f sums && sha256sum [0-9]* > sums && cd / && umount /mnt")
CHECK = ("modprobe -q ext4; blockdev --flushbufs {device} && e2fsck -fn {device} && "
         "mount -t ext4 -o ro {device} /mnt && "
         "(cd /mnt && sha256sum -c --quiet sums && wc -l < sums) && umount /mnt")
BEFORE, AFTER = 5, 5        # files that are written before and after each trouble
PULL_S = 4
PATIENCE_S = 120


@pytest.fixture(params=[UML, STOCK])
def system(request: pytest.FixtureRequest, host_kind: str,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[essd.System]:
    if request.param == UML and host_kind != UML:
        pytest.skip("user-mode Linux is not used")
    host = "kind: uml" if request.param == UML else f"guest: {guest_variant.PEERS}"
    folder = tmp_path_factory.mktemp("turns")
    (folder / "aoe.yaml").write_text(CONFIG)
    (folder / "topology.yaml").write_text(TOPOLOGY.replace("HOST", host))
    with essd.up(topology=folder / "topology.yaml") as system:
        yield system


def wait_files(host: essd.Host, work: Background, count: int) -> int:
    """Wait until so many files are written.  @return how many there are"""
    deadline = time.monotonic() + PATIENCE_S
    while (found := int(host.read("cat /tmp/files 2>/dev/null || echo 0") or 0)) < count:
        assert work.poll() is None, work.output
        assert time.monotonic() < deadline, f"{host.name}: {found} files, not {count}"
        time.sleep(0.2)
    return found


def pull_cable(drive: essd.Drive, port: int) -> None:
    drive.port(port).unplug()
    time.sleep(PULL_S)
    drive.port(port).plug()


def cut_power(drive: essd.Drive, port: int) -> None:
    drive.power_cut()
    time.sleep(1)
    drive.power_on()
    drive.wait_ready()


def test_two_hosts_take_turns(system: essd.System) -> None:
    drive, hosts = system.drives[0], {host.name: host for host in system.hosts}
    devices = {"nvme": hosts["nvme"].connect(drive, 0, OPTIONS), "aoe": DISK}
    hosts["aoe"].run(DISCOVER)
    hosts["nvme"].run(f"mkfs.ext4 -q -F {devices['nvme']}")
    names = ("nvme", "aoe")
    for turn, trouble in enumerate((pull_cable, pull_cable, cut_power, cut_power)):
        port = turn % 2
        writer, reader = names[port], names[1 - port]
        work = hosts[writer].start(WRITE.format(device=devices[writer], turn=turn))
        before = wait_files(hosts[writer], work, BEFORE)
        trouble(drive, port)
        wait_files(hosts[writer], work, before + AFTER)
        hosts[writer].run("touch /tmp/stop")
        work.wait()
        count = int(hosts[reader].read(CHECK.format(device=devices[reader])).split()[-1])
        assert count >= BEFORE * (turn + 1)
