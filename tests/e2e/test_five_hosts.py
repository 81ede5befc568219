# SPDX-License-Identifier: BSD-2-Clause
"""Five Linux hosts use one drive by five protocols at the same time for ten minutes.

Each host writes and verifies a part of the namespace of its own, again and again, while
cables are pulled and the power is cut.  At the end each of them reads all parts.
"""

import time
from collections.abc import Iterator

import pytest

import essd
from essd.bench.contenders import NEW_KEY, START_TLSHD
from essd.build import guest_variant
from essd.drive import access
from essd.instance.config import UML

pytestmark = [pytest.mark.drive, pytest.mark.uml, pytest.mark.long]

NAMES = ("roce", "iwarp", "tcp", "tls", "aoe")
TOPOLOGY = f"""
drives:
  d: {{size: 256M, config: all.yaml, port0: 10.0.0.10/24}}
hosts:
  roce: {{kind: uml, card0: 10.0.0.1/24}}
  iwarp: {{kind: uml, card0: 10.0.0.2/24}}
  tcp: {{kind: uml, card0: 10.0.0.3/24}}
  tls: {{kind: uml, guest: {guest_variant.PEERS}, card0: 10.0.0.4/24}}
  aoe: {{kind: uml, card0: 10.0.0.5/24}}
switches:
  s: {{}}
cables:
  - d:0 - s
  - roce:0 - s
  - iwarp:0 - s
  - tcp:0 - s
  - tls:0 - s
  - aoe:0 - s
"""
CONFIG = "nvme:\n  tcp: on\n  iwarp: on\n  tls: allowed\naoe:\n  export: 1\n  shelf: 7\n"
ADDRESS = "10.0.0.10"
OPTIONS = "--ctrl-loss-tmo=600 --reconnect-delay=1 --keep-alive-tmo=5 --nr-io-queues=2"
DISK = "/dev/etherd/e7.0"
DISCOVER = (f"modprobe aoe && echo eth0 > /dev/etherd/interfaces; for n in $(seq 300); do "
            f"echo > /dev/etherd/discover; [ -b {DISK} ] && exit 0; sleep 0.1; done; exit 1")
PART_MIB = 4
# Writes are durable, so a power cut may lose none that was completed.
WORK = ("rm -f /tmp/rounds; while [ ! -e /tmp/stop ]; do "
        "fio --name=own --filename={device} --direct=1 --sync=1 --ioengine=libaio "
        "--bsrange=512-64k --iodepth=8 --rw=randwrite --offset={offset}m "
        f"--size={PART_MIB}m "
        "--rate_iops=100 --verify=crc32c --verify_fatal=1 || exit 1; "
        "echo >> /tmp/rounds; done")
MINUTES = 10
PULL_S = 4


@pytest.fixture(scope="module")
def system(request: pytest.FixtureRequest, host_kind: str,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[essd.System]:
    if host_kind != UML:
        pytest.skip("user-mode Linux is not used")
    if not guest_variant.is_built(guest_variant.PEERS):
        pytest.skip("the guest of the peers is not built")
    folder = tmp_path_factory.mktemp("five")
    (folder / "all.yaml").write_text(CONFIG)
    (folder / "topology.yaml").write_text(TOPOLOGY)
    with essd.up(topology=folder / "topology.yaml") as system:
        yield system


def connect(host: essd.Host, drive: essd.Drive) -> str:
    """Connect a host by the protocol that it is named after.  @return its block device"""
    options = OPTIONS
    if host.name == "aoe":
        host.run(DISCOVER)
        return DISK
    if host.name == "iwarp":
        host.run("rdma link delete rxe0 2>/dev/null; modprobe siw; "
                 "rdma link add siw0 type siw netdev eth0")
    if host.name == "tls":
        host.run(START_TLSHD)
        host_nqn, key, number = host.read(NEW_KEY.format(nqn=drive.nqn)).split()
        access.change(drive.instance, {"nqn": host_nqn, "tls-key": key})
        options += f" --tls --tls_key=0x{number}"
    kind = "rdma" if host.name in ("roce", "iwarp") else "tcp"
    host.run(f"modprobe nvme_{kind}; nvme connect -t {kind} -a {ADDRESS} -s 4420 "
             f"-n {drive.nqn} {options}")
    return host.device(drive)


def digest(host: essd.Host, device: str) -> str:
    return host.read(f"dd if={device} bs=1M count={PART_MIB * len(NAMES)} iflag=direct "
                     "status=none | sha256sum")


def rounds(host: essd.Host) -> int:
    return int(host.read("cat /tmp/rounds 2>/dev/null | wc -l"))


def plug(system: essd.System, part: str, is_plugged: bool) -> None:
    system.instance.ask("port", part=part, port=0, plugged=is_plugged)


def test_ten_minutes_of_all_protocols(system: essd.System) -> None:
    drive = system.drives[0]
    hosts = {host.name: host for host in system.hosts}
    devices = {name: connect(hosts[name], drive) for name in NAMES}
    work = {name: hosts[name].start(WORK.format(device=devices[name], offset=PART_MIB * at))
            for at, name in enumerate(NAMES)}
    end = time.monotonic() + 60 * MINUTES
    troubles = 0
    while time.monotonic() < end:
        time.sleep(20)
        cable = (drive.name, *NAMES)[troubles // 2 % 6]
        if troubles % 2 == 0:
            plug(system, cable, False)
            time.sleep(PULL_S)
            plug(system, cable, True)
        else:
            drive.power_cut()
            time.sleep(1)
            drive.power_on()
            drive.wait_ready()
        troubles += 1
        stopped = {name: one.output for name, one in work.items() if one.poll() is not None}
        assert not stopped, stopped
    assert troubles >= 10
    for host in hosts.values():
        host.run("touch /tmp/stop")
    for one in work.values():
        one.wait()
    done = {name: rounds(host) for name, host in hosts.items()}
    assert min(done.values()) >= 2, done
    assert len({digest(hosts[name], devices[name]) for name in NAMES}) == 1
