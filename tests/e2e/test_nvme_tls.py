# SPDX-License-Identifier: BSD-2-Clause
"""A Linux host by NVMe/TCP behind TLS: its kernel, `nvme-cli` and `tlshd`, in the peers' guest."""

import re
from collections.abc import Iterator

import pytest

import essd
from essd.bench.contenders import START_TLSHD
from essd.build import guest_variant
from essd.instance.config import UML

pytestmark = [pytest.mark.drive, pytest.mark.uml]

TOPOLOGY = f"""
drives:
  d: {{size: 256M, config: tls.yaml, port0: 10.0.0.10/24}}
hosts:
  host: {{kind: uml, guest: {guest_variant.PEERS}, card0: 10.0.0.1/24}}
cables:
  - {{cable: "d:0 - host:0", capture: yes}}
"""
CONFIG = "nvme:\n  tcp: on\n  tls: required\n"
ADDRESS = "10.0.0.10"
FIO = ("fio --name=own --filename={device} --direct=1 --ioengine=libaio --bsrange=512-128k "
       "--iodepth=8 --rw=randwrite --size=8m --verify=crc32c --verify_fatal=1")


@pytest.fixture(scope="module")
def system(request: pytest.FixtureRequest, host_kind: str,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[essd.System]:
    if host_kind != UML:
        pytest.skip("user-mode Linux is not used")
    if not guest_variant.is_built(guest_variant.PEERS) and \
            "not long" in str(request.config.getoption("-m")):
        pytest.skip("the guest of the peers is not built: `essd test --all` does")
    folder = tmp_path_factory.mktemp("tls")
    (folder / "tls.yaml").write_text(CONFIG)
    (folder / "topology.yaml").write_text(TOPOLOGY)
    with essd.up(topology=folder / "topology.yaml") as system:
        system.hosts[0].run(START_TLSHD)
        yield system


def names_of(system: essd.System, subsystem: str) -> str:
    host_nqn = system.hosts[0].read("cat /etc/nvme/hostnqn").strip()
    return f"--subsysnqn={subsystem} --hostnqn={host_nqn}"


def keys_of(host: essd.Host) -> set[str]:
    return set(host.read("awk '/ psk .*NVMe/ { print $1 }' /proc/keys").split())


def insert_key(system: essd.System, key: str, identity: int) -> str:
    """Put a key into the host's keyring.  @return the options that choose it"""
    host = system.hosts[0]
    before = keys_of(host)
    host.run(f"nvme check-tls-key --keydata={key} {names_of(system, system.drives[0].nqn)} "
             f"--identity={identity} --insert")
    (new,) = keys_of(host) - before
    return f"--tls --tls_key=0x{new}"


def new_key(system: essd.System, hmac: int) -> str:
    """A key that the drive has for the host."""
    output = system.hosts[0].read(
        f"nvme gen-tls-key --hmac={hmac} {names_of(system, system.drives[0].nqn)}")
    key = re.search(r"NVMeTLSkey-1:\S+", output)
    assert key, output
    host_nqn = system.hosts[0].read("cat /etc/nvme/hostnqn").strip()
    system.drives[0].ask("host-set", nqn=host_nqn, tls_key=key[0])
    return key[0]


def connect(system: essd.System, options: str, check: bool = True) -> bool:
    done = system.hosts[0].run(
        f"nvme connect -t tcp -a {ADDRESS} -s 4420 --nr-io-queues=2 -n {system.drives[0].nqn} "
        f"{options}", check=check)
    return done.status == 0


# A key of 48 bytes is not among them: tlshd 1.0.0 makes its binder with SHA-256, which no
# cipher suite with SHA-384 has.
@pytest.mark.parametrize("identity", [1, 0])
def test_what_a_host_writes_it_reads(system: essd.System, identity: int) -> None:
    host, drive = system.hosts[0], system.drives[0]
    connect(system, insert_key(system, new_key(system, 1), identity))
    host.run(FIO.format(device=host.device(drive)))
    host.disconnect(drive)


def test_a_host_without_tls_or_with_another_key_is_refused(system: essd.System) -> None:
    options = insert_key(system, new_key(system, 1), 1)
    before = system.drives[0].ask("counters")["nvme-tls"]
    assert not connect(system, "", check=False)
    new_key(system, 1)      # the drive has another one now
    assert not connect(system, options, check=False)
    after = system.drives[0].ask("counters")["nvme-tls"]
    assert {name for name in after if after[name] != before[name]} == {
        "refused-plain", "failed-handshakes"}


def test_nothing_is_readable_on_the_cable(system: essd.System) -> None:
    host, drive = system.hosts[0], system.drives[0]
    connect(system, insert_key(system, new_key(system, 1), 1))
    host.run("yes essd-readable | head -c 65536 > /tmp/data && "
             f"dd if=/tmp/data of={host.device(drive)} bs=64k oflag=direct status=none")
    host.disconnect(drive)
    assert b"essd-readable" not in b"".join(one.read_bytes() for one in system.captures)
