# SPDX-License-Identifier: BSD-2-Clause
"""A stock host generates keys of TLS with the drive: `nvme connect --concat`.

Debian 13's kernel does not know that, so the host has one of the backports (tests/concat/guest).
"""

import re
from collections.abc import Iterator

import pytest
from tls_host import host_nqn

import essd
from essd.base import paths
from essd.bench.contenders import START_TLSHD
from essd.build import guest_kernel, guest_variant

pytestmark = [pytest.mark.drive]

GUEST = paths.TOP / "tests/concat/guest"
TOPOLOGY = f"""
drives:
  d: {{size: 256M, config: tls.yaml, port0: 10.0.0.10/24}}
hosts:
  host: {{guest: {GUEST}, card0: 10.0.0.1/24}}
cables:
  - {{cable: "d:0 - host:0", capture: yes}}
"""
CONFIG = "nvme:\n  tcp: on\n  tls: allowed\n"
ADDRESS = "10.0.0.10"
FIO = ("fio --name=own --filename={device} --direct=1 --ioengine=libaio --bsrange=512-128k "
       "--iodepth=8 --rw=randwrite --size=4m --verify=crc32c --verify_fatal=1")
QUEUES = 2      # of an association: the admin queue and one for I/O


@pytest.fixture(scope="module")
def system(request: pytest.FixtureRequest,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[essd.System]:
    """A drive that allows TLS, and a host with `tlshd`."""
    if not guest_variant.is_built(GUEST) and "not long" in str(request.config.getoption("-m")):
        pytest.skip("the guest with a newer kernel is not built: `essd test --all` does")
    try:
        guest_variant.ensure(GUEST, print)
    except guest_kernel.Unavailable as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("concat")
    (folder / "tls.yaml").write_text(CONFIG)
    (folder / "topology.yaml").write_text(TOPOLOGY)
    with essd.up(topology=folder / "topology.yaml") as system:
        system.hosts[0].run(START_TLSHD)
        yield system


def new_secret(system: essd.System) -> str:
    """A secret that the drive has for the host."""
    secret = system.hosts[0].read(
        f"nvme gen-dhchap-key --hmac=1 --nqn={host_nqn(system)}").split()[-1]
    system.drives[0].ask("host-set", nqn=host_nqn(system), secret=secret)
    return secret


def connect(system: essd.System, secret: str, check: bool = True) -> bool:
    done = system.hosts[0].run(
        f"nvme connect -t tcp -a {ADDRESS} -s 4420 --nr-io-queues=1 -n {system.drives[0].nqn} "
        f"--reconnect-delay=1 --concat --dhchap-secret={secret}", check=check)
    return done.status == 0


def handshakes(system: essd.System) -> int:
    return int(system.drives[0].ask("counters")["nvme-tls"]["handshakes"])


def generated(system: essd.System) -> list[bytes]:
    """The digests of generated keys that ClientHellos on the cable have named so far."""
    names = f"{host_nqn(system)} {system.drives[0].nqn}".encode()
    return re.findall(b"NVMe1G01 " + re.escape(names) + rb" ([A-Za-z0-9+/]{43}=)",
                      b"".join(one.read_bytes() for one in system.captures))


def test_what_a_host_writes_behind_a_generated_key_it_reads(system: essd.System) -> None:
    host, drive = system.hosts[0], system.drives[0]
    shaken, proven = handshakes(system), drive.ask("authentication")["proven"]
    connect(system, new_secret(system))
    host.run(FIO.format(device=host.device(drive)))
    # The admin queue proved the secret once, without TLS.  The key proves the rest.
    assert drive.ask("authentication")["proven"] == proven + 1
    assert handshakes(system) == shaken + QUEUES
    host.run("yes essd-readable | head -c 65536 > /tmp/data && "
             f"dd if=/tmp/data of={host.device(drive)} bs=64k oflag=direct status=none")
    host.disconnect(drive)
    digests = generated(system)
    assert len(digests) == QUEUES and len(set(digests)) == 1
    assert b"essd-readable" not in b"".join(one.read_bytes() for one in system.captures)


def test_each_association_has_a_key_of_its_own(system: essd.System) -> None:
    before = set(generated(system))
    for _ in range(2):
        connect(system, new_secret(system))
        system.hosts[0].disconnect(system.drives[0])
    assert len(set(generated(system)) - before) == 2


def test_a_host_replaces_its_key(system: essd.System) -> None:
    """Linux 7.3 replaces the key behind TLS, and then connects anew with yet another one."""
    host, drive = system.hosts[0], system.drives[0]
    connect(system, new_secret(system))
    before, proven = set(generated(system)), drive.ask("authentication")["proven"]
    device = host.device(drive)
    host.run("head -c 262144 /dev/urandom > /tmp/data && "
             f"dd if=/tmp/data of={device} bs=64k oflag=direct status=none && "
             "echo 0 > /sys/class/nvme/nvme0/tls_configured_key && "
             f"dd if={device} of=/tmp/back bs=64k count=4 iflag=direct status=none && "
             "cmp /tmp/data /tmp/back")
    assert drive.ask("authentication")["proven"] == proven + 2
    assert len(set(generated(system)) - before) == 1
    host.disconnect(drive)


def test_a_host_comes_back_with_a_new_key_after_a_power_cut(system: essd.System) -> None:
    host, drive = system.hosts[0], system.drives[0]
    connect(system, new_secret(system))
    before = set(generated(system))
    device = host.device(drive)
    drive.power_cycle()
    host.run(f"dd if={device} of=/dev/null bs=64k count=4 iflag=direct status=none")
    assert handshakes(system) == QUEUES     # since the power is back
    assert len(set(generated(system)) - before) == 1
    host.disconnect(drive)


def test_a_wrong_secret_makes_no_key(system: essd.System) -> None:
    secret = new_secret(system)
    before = len(generated(system))
    new_secret(system)      # the drive has another one now
    assert not connect(system, secret, check=False)
    assert len(generated(system)) == before
