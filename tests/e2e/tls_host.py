# SPDX-License-Identifier: BSD-2-Clause
"""A host of user-mode Linux that uses drives by NVMe/TCP behind TLS, and its keys."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import essd
from essd.bench.contenders import START_TLSHD
from essd.build import guest_variant
from essd.instance.config import UML

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
SECRETS = "/tmp/tls-secrets"    # where GnuTLS writes those of its connections


def skip_without_guest(request: pytest.FixtureRequest, host_kind: str) -> None:
    if host_kind != UML:
        pytest.skip("user-mode Linux is not used")
    if not guest_variant.is_built(guest_variant.PEERS) and \
            "not long" in str(request.config.getoption("-m")):
        pytest.skip("the guest of the peers is not built: `essd test --all` does")


@contextmanager
def running(folder: Path, capture_keys: Path | None = None) -> Iterator[essd.System]:
    """A drive that requires TLS, and a host with `tlshd`."""
    (folder / "tls.yaml").write_text(CONFIG)
    (folder / "topology.yaml").write_text(TOPOLOGY)
    with essd.up(topology=folder / "topology.yaml", capture_keys=capture_keys) as system:
        system.hosts[0].run(f"export SSLKEYLOGFILE={SECRETS}; {START_TLSHD}")
        yield system


def host_nqn(system: essd.System) -> str:
    return system.hosts[0].read("cat /etc/nvme/hostnqn").strip()


def names_of(system: essd.System) -> str:
    return f"--subsysnqn={system.drives[0].nqn} --hostnqn={host_nqn(system)}"


def keys_of(host: essd.Host) -> set[str]:
    return set(host.read("awk '/ psk .*NVMe/ { print $1 }' /proc/keys").split())


def insert_key(system: essd.System, key: str, identity: int) -> str:
    """Put a key into the host's keyring.  @return the options that choose it"""
    host = system.hosts[0]
    before = keys_of(host)
    host.run(f"nvme check-tls-key --keydata={key} {names_of(system)} "
             f"--identity={identity} --insert")
    (new,) = keys_of(host) - before
    return f"--tls --tls_key=0x{new}"


def new_key(system: essd.System, hmac: int = 1) -> str:
    """A key that the drive has for the host."""
    output = system.hosts[0].read(f"nvme gen-tls-key --hmac={hmac} {names_of(system)}")
    key = re.search(r"NVMeTLSkey-1:\S+", output)
    assert key, output
    system.drives[0].ask("host-set", nqn=host_nqn(system), tls_key=key[0])
    return key[0]


def connect(system: essd.System, options: str, check: bool = True) -> bool:
    done = system.hosts[0].run(
        f"nvme connect -t tcp -a {ADDRESS} -s 4420 --nr-io-queues=2 -n {system.drives[0].nqn} "
        f"{options}", check=check)
    return done.status == 0


def secrets_of_host(system: essd.System) -> list[list[str]]:
    """The lines that GnuTLS has written: a label, a ClientHello's random, a secret."""
    lines = system.hosts[0].read(f"cat {SECRETS}").splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def decrypted(capture: Path, *options: str, streams: int = 8) -> bytes:
    """What tshark reads in the first TCP connections of a capture, both ways mixed."""
    follow = [word for n in range(streams) for word in ("-z", f"follow,tls,raw,{n}")]
    done = subprocess.run(
        ["tshark", "-r", capture, "-q", "-d", "tcp.port==4420,tls", *follow, *options],
        capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    return b"".join(bytes.fromhex(line) for line in lines
                    if len(line) % 2 == 0 and re.fullmatch("[0-9a-f]+", line))
