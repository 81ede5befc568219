# SPDX-License-Identifier: BSD-2-Clause
"""A Linux host by NVMe/TCP behind TLS: its kernel, `nvme-cli` and `tlshd`, in the peers' guest."""

import base64
from collections.abc import Iterator

import pytest
from tls_host import (connect, host_nqn, insert_key, new_key, running, skip_without_guest)

import essd
from essd.base import paths

pytestmark = [pytest.mark.drive, pytest.mark.uml]

FIO = ("fio --name=own --filename={device} --direct=1 --ioengine=libaio --bsrange=512-128k "
       "--iodepth=8 --rw=randwrite --size=8m --verify=crc32c --verify_fatal=1")


@pytest.fixture(scope="module")
def system(request: pytest.FixtureRequest, host_kind: str,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[essd.System]:
    skip_without_guest(request, host_kind)
    with running(tmp_path_factory.mktemp("tls")) as system:
        yield system


# A key of 48 bytes is not among them: tlshd 1.0.0 makes its binder with SHA-256, which no
# cipher suite with SHA-384 has.
@pytest.mark.parametrize("identity", [1, 0])
def test_what_a_host_writes_it_reads(system: essd.System, identity: int) -> None:
    host, drive = system.hosts[0], system.drives[0]
    connect(system, insert_key(system, new_key(system), identity))
    host.run(FIO.format(device=host.device(drive)))
    host.disconnect(drive)


def test_a_host_without_tls_or_with_another_key_is_refused(system: essd.System) -> None:
    options = insert_key(system, new_key(system), 1)
    before = system.drives[0].ask("counters")["nvme-tls"]
    assert not connect(system, "", check=False)
    new_key(system)      # the drive has another one now
    assert not connect(system, options, check=False)
    after = system.drives[0].ask("counters")["nvme-tls"]
    assert {name for name in after if after[name] != before[name]} == {
        "refused-plain", "failed-handshakes"}


def test_a_key_is_replaced_while_its_host_is_connected(system: essd.System) -> None:
    """What is connected goes on; the next connection needs the new key."""
    host, drive = system.hosts[0], system.drives[0]
    options = insert_key(system, new_key(system), 1)
    connect(system, options)
    device = host.device(drive)
    fresh = new_key(system)
    host.run(f"dd if=/dev/urandom of={device} bs=64k count=4 oflag=direct status=none")
    host.disconnect(drive)
    assert not connect(system, options, check=False)
    connect(system, insert_key(system, fresh, 1))
    host.run(f"dd if={host.device(drive)} of=/dev/null bs=64k count=4 status=none")
    host.disconnect(drive)


def test_nothing_is_readable_on_the_cable(system: essd.System) -> None:
    host, drive = system.hosts[0], system.drives[0]
    connect(system, insert_key(system, new_key(system), 1))
    host.run("yes essd-readable | head -c 65536 > /tmp/data && "
             f"dd if=/tmp/data of={host.device(drive)} bs=64k oflag=direct status=none")
    host.disconnect(drive)
    assert b"essd-readable" not in b"".join(one.read_bytes() for one in system.captures)


def test_a_host_comes_back_after_a_load_and_after_a_power_cut(system: essd.System) -> None:
    host, drive = system.hosts[0], system.drives[0]
    connect(system, insert_key(system, new_key(system), 1)
            + " --reconnect-delay=1 --ctrl-loss-tmo=120 --keep-alive-tmo=2")
    device = host.device(drive)
    host.run("head -c 262144 /dev/urandom > /tmp/data && "
             f"dd if=/tmp/data of={device} bs=64k oflag=direct conv=fsync status=none")
    read = (f"dd if={device} of=/tmp/back bs=64k count=4 iflag=direct status=none && "
            "cmp /tmp/data /tmp/back")
    before = drive.ask("counters")["nvme-tls"]["handshakes"]
    system.instance.ask("save", part=drive.name)
    system.instance.ask("load", part=drive.name)
    host.run(read)
    assert drive.ask("counters")["nvme-tls"]["handshakes"] > before
    drive.power_cycle()
    host.run(read)
    assert drive.ask("counters")["nvme-tls"]["handshakes"] > 0      # since then
    host.disconnect(drive)


def test_flash_has_a_key_until_it_is_replaced_or_removed(system: essd.System) -> None:
    """Also after a power cut at once: nothing waits to be erased."""
    drive = system.drives[0]
    flash = paths.drive(system.name, drive.name) / "flash.img"

    def copies(key: str) -> int:
        return flash.read_bytes().count(base64.b64decode(key.split(":")[2])[:-4])

    first = new_key(system)
    assert copies(first) == 2
    assert flash.stat().st_mode & 0o077 == 0
    second = new_key(system)
    assert (copies(first), copies(second)) == (0, 2)
    drive.ask("host-set", nqn=host_nqn(system), tls_key="")
    drive.power_cycle()
    assert copies(second) == 0
