# SPDX-License-Identifier: BSD-2-Clause
"""Two Linux hosts on one namespace, one by RoCE (rxe) and one by iWARP (siw).

`./essd test --all` runs this with stock kernels, too: then the host with siw boots the guest
of the peers, which has siw as a module.
"""

import json
import time
from collections.abc import Iterator

import pytest

import essd
from essd.build import guest_variant
from essd.instance.config import STOCK, UML

pytestmark = [pytest.mark.drive, pytest.mark.uml]

TOPOLOGY = """
drives:
  d: {size: 256M, config: iwarp.yaml, port0: "10.0.0.10/24,fd00::10/64", port1: 10.0.1.10/24}
hosts:
  rxe: {kind: KIND}
  siw: {kind: KINDGUEST}
switches:
  s: {}
cables:
  - d:0 - s
  - rxe:0 - s
  - siw:0 - s
  - d:1 - siw:1
"""
CONFIG = "nvme:\n  iwarp: on\n"
OPTIONS = "--ctrl-loss-tmo=60 --reconnect-delay=1 --keep-alive-tmo=2"
FIO = ("fio --name=own --filename={device} --direct=1 --ioengine=libaio --bsrange=512-128k "
       "--iodepth=8 --rw=randwrite --offset={offset} --size=3m --verify=crc32c --verify_fatal=1 "
       "--end_fsync=1")
WRITE_EXCLUSIVE = 1
Hosts = dict[str, essd.Host]


def guest_of(kind: str) -> str:
    """What the topology says of the guest of the host with siw; skip if siw is missing."""
    if kind == UML:
        return ""
    lacks = guest_variant.missing(guest_variant.ensure(guest_variant.PEERS, print))
    if lacks:
        pytest.skip("; ".join(f"no {name}: {why}" for name, why in lacks.items()))
    return f', guest: "{guest_variant.PEERS}"'


@pytest.fixture(scope="module", params=[UML, pytest.param(STOCK, marks=pytest.mark.long)])
def system(request: pytest.FixtureRequest, host_kind: str,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[essd.System]:
    kind = request.param
    if kind == UML and host_kind != UML:
        pytest.skip("user-mode Linux is not used")
    folder = tmp_path_factory.mktemp("two")
    (folder / "two.yaml").write_text(
        TOPOLOGY.replace("KINDGUEST", kind + guest_of(kind)).replace("KIND", kind))
    (folder / "iwarp.yaml").write_text(CONFIG)
    with essd.up(topology=folder / "two.yaml") as system:
        hosts = {host.name: host for host in system.hosts}
        for card in range(2):
            hosts["siw"].run(f"rdma link delete rxe{card} 2>/dev/null; modprobe siw; "
                             f"rdma link add siw{card} type siw netdev eth{card}")
        yield system


@pytest.fixture
def hosts(system: essd.System) -> Iterator[Hosts]:
    found = {host.name: host for host in system.hosts}
    yield found
    for host in found.values():
        host.disconnect()


def digest(host: essd.Host, device: str) -> str:
    return host.read(f"dd if={device} bs=1M count=8 iflag=direct status=none | sha256sum")


def test_each_reads_what_the_other_has_written(system: essd.System, hosts: Hosts) -> None:
    drive = system.drives[0]
    devices = {name: host.connect(drive) for name, host in hosts.items()}
    for at, (name, host) in enumerate(hosts.items()):
        host.run(FIO.format(device=devices[name], offset=f"{4 * at}m"))
    assert len({digest(host, devices[name]) for name, host in hosts.items()}) == 1


def can_write(host: essd.Host, device: str) -> bool:
    done = host.run(f"dd if=/dev/zero of={device} bs=4k count=4 seek=4096 oflag=direct "
                    "status=none 2>&1", check=False)
    assert done.status == 0 or "Invalid exchange" in done.output, done.output
    return done.status == 0


def test_a_reservation_of_one_fences_the_other(system: essd.System, hosts: Hosts) -> None:
    drive = system.drives[0]
    devices = {name: host.connect(drive) for name, host in hosts.items()}
    for holder, other in (("siw", "rxe"), ("rxe", "siw")):
        device = devices[holder]
        hosts[holder].run(f"nvme resv-register {device} --nrkey=2748 --rrega=0")
        hosts[holder].run(f"nvme resv-acquire {device} --crkey=2748 --racqa=0 "
                          f"--rtype={WRITE_EXCLUSIVE}")
        assert can_write(hosts[holder], device)
        assert not can_write(hosts[other], devices[other])
        text = hosts[other].read(f"nvme resv-report {devices[other]} --eds -o json")
        assert json.loads(text[text.index("{"):])["regctl"] == 1
        hosts[holder].run(f"nvme resv-release {device} --crkey=2748 --rrela=0 "
                          f"--rtype={WRITE_EXCLUSIVE}")
        hosts[holder].run(f"nvme resv-register {device} --crkey=2748 --rrega=1")
        assert can_write(hosts[other], devices[other])


def test_both_stay_through_pulled_cables_and_a_power_cut(system: essd.System,
                                                         hosts: Hosts) -> None:
    drive = system.drives[0]
    devices = {name: host.connect(drive, 0, OPTIONS) for name, host in hosts.items()}
    assert hosts["siw"].connect(drive, 1, OPTIONS) == devices["siw"]
    hosts["siw"].wait_paths(drive, 2)
    written = digest(hosts["rxe"], devices["rxe"])
    drive.port(0).unplug()
    hosts["siw"].wait_paths(drive, 1)           # by IPv4, at the other port
    assert digest(hosts["siw"], devices["siw"]) == written
    drive.port(0).plug()
    hosts["siw"].wait_paths(drive, 2)           # by IPv6 and IPv4
    drive.power_cut()
    drive.power_on()
    for name, host in hosts.items():
        assert digest(host, devices[name]) == written


ALL_REGISTRANTS = 5         # Write Exclusive - All Registrants
KEY = 2748
LOAD = ("fio --name=own --filename={device} --direct=1 --sync=1 --ioengine=libaio --bs=4k "
        "--iodepth=8 --rw=randwrite --offset={offset} --size=4m --rate_iops=100 "
        "--verify=crc32c --verify_fatal=1")


def pull_for_4_s(drive: essd.Drive) -> None:
    """Longer than the keep-alive time-outs of both sides."""
    drive.port(0).unplug()
    time.sleep(4)
    drive.port(0).plug()


def cut_the_power(drive: essd.Drive) -> None:
    drive.power_cut()
    drive.power_on()


def test_verified_io_of_both_goes_on_under_a_reservation(system: essd.System,
                                                         hosts: Hosts) -> None:
    """Both write about 10 s, under one reservation that a power cut does not end."""
    drive = system.drives[0]
    devices = {name: host.connect(drive, 0, OPTIONS) for name, host in hosts.items()}
    for name, host in hosts.items():
        host.run(f"nvme resv-register {devices[name]} --nrkey={KEY} --rrega=0 --cptpl=3")
    hosts["siw"].run(f"nvme resv-acquire {devices['siw']} --crkey={KEY} --racqa=0 "
                     f"--rtype={ALL_REGISTRANTS}")
    running = [host.start(LOAD.format(device=devices[name], offset=f"{32 + 8 * at}m"))
               for at, (name, host) in enumerate(hosts.items())]
    for disturb in (pull_for_4_s, cut_the_power):
        time.sleep(1)
        assert all(one.poll() is None for one in running)
        disturb(drive)
    for one in running:
        one.wait()
    text = hosts["rxe"].read(f"nvme resv-report {devices['rxe']} --eds -o json")
    report = json.loads(text[text.index("{"):])
    assert (report["rtype"], report["regctl"]) == (ALL_REGISTRANTS, len(hosts)), report
    hosts["rxe"].run(f"nvme resv-register {devices['rxe']} --crkey={KEY} --rrega=1")
    assert not can_write(hosts["rxe"], devices["rxe"])
    hosts["siw"].run(f"nvme resv-register {devices['siw']} --crkey={KEY} --rrega=1")
    assert can_write(hosts["rxe"], devices["rxe"])
