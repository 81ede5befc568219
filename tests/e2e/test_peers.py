# SPDX-License-Identifier: BSD-2-Clause
"""Stock peers of every transport through our switch, without a drive (docs/peers.md).

One host serves a disk, the other one writes and reads it, and both look at the same bytes.
The switch loses no frame (conftest.py).  What each transport's frames are is looked up in
the capture of the client's cable; `--keep-captures FOLDER` writes those that are the
fixtures of tests/fixtures/peers.
"""

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import essd
from essd.base import paths
from essd.build import guest_variant
from essd.instance.config import STOCK, UML
from essd.build.guest_build import Guest

pytestmark = pytest.mark.uml

TOPOLOGY = paths.TOP / "examples/topologies/peers.yaml"
SERVER, CLIENT = "10.0.0.1", "10.0.0.2"
NQN = "nqn.2014-08.org.nvmexpress:uuid:6e766d65-7400-4000-8000-0000000000f1"
IQN = "iqn.2026-01.invalid.essd:disk"
PCAP_HEADER_BYTES = 24
RPING_PORT = 7174
SMALL, LARGE = 64 << 10, 4 << 20    # bytes that are written: for a fixture, and for the switch
# tlshd has joined a multicast group of generic netlink, by which the kernel calls it.
TLSHD_LISTENS = ("for n in $(seq 300); do awk '$2 == 16 && $4 !~ /^0+$/ { found = 1 } "
                 "END { exit !found }' /proc/net/netlink && exit 0; sleep 0.1; done; exit 1")


@dataclass
class Pair:
    """The server, the client, and the capture of the client's cable."""

    system: essd.System
    server: essd.Host
    client: essd.Host
    kept: Path | None
    begin: int = 0

    @property
    def is_stock(self) -> bool:
        return not self.system.instance.config.hosts["client"].uml

    def record(self) -> None:
        """What the cable carries from now on belongs to the test."""
        self.begin = self.system.captures[0].stat().st_size

    def recorded(self, folder: Path, name: str, is_fixture: bool = True) -> Path:
        """A capture of what the cable has carried since record()."""
        whole = self.system.captures[0].read_bytes()
        file = folder / f"{name}.pcap"
        file.write_bytes(whole[:PCAP_HEADER_BYTES] + whole[max(self.begin,
                                                               PCAP_HEADER_BYTES):])
        if is_fixture and self.kept is not None and not self.is_stock:
            self.kept.mkdir(parents=True, exist_ok=True)
            subprocess.run(["editcap", "-F", "pcapng", file, self.kept / f"{name}.pcapng"],
                           check=True, timeout=60)
        return file


def dissect(file: Path, keep: str, *fields: str) -> list[tuple[str, ...]]:
    """The fields of the frames that tshark's filter keeps."""
    protocol = "tls" if keep.startswith("tls") else "nvme-tcp"
    # Nothing but its first bytes tells that a connection is iWARP's.
    decode = (["-o", "tcp.try_heuristic_first:TRUE"] if keep.startswith("iwarp") else
              ["-d", f"tcp.port==4420,{protocol}"])
    done = subprocess.run(
        ["tshark", "-r", file, "-Y", keep, "-T", "fields", *decode,
         *(word for field in fields for word in ("-e", field))],
        check=True, capture_output=True, text=True, timeout=120)
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module", params=[UML, pytest.param(STOCK, marks=pytest.mark.long)])
def pair(request: pytest.FixtureRequest, host_kind: str,
         tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    kind = request.param
    if kind == UML and host_kind != UML:
        pytest.skip("user-mode Linux is not used")
    if not guest_variant.is_built(guest_variant.PEERS) and \
            "not long" in str(request.config.getoption("-m")):
        pytest.skip("the guest of the peers is not built: `essd test --all` does")
    text = TOPOLOGY.read_text().replace("kind: uml", f"kind: {kind}").replace(
        "../peers/guest", str(guest_variant.PEERS))
    file = tmp_path_factory.mktemp("peers") / "peers.yaml"
    file.write_text(text)
    kept = request.config.getoption("--keep-captures")
    with essd.up(topology=file) as system:
        hosts = {host.name: host for host in system.hosts}
        yield Pair(system, hosts["server"], hosts["client"], kept and Path(kept))


@pytest.fixture
def nvme(pair: Pair) -> Iterator[Callable[..., str]]:
    """A function that serves a disk by NVMe, connects the client, and returns its device."""
    served: list[str] = []

    def connect(kind: str, options: str = "", tls: str = "") -> str:
        if not served:
            pair.server.run(f"serve-nvme {kind} {SERVER} {NQN} {tls}")
            served.append(kind)
        pair.record()
        pair.client.run(f"nvme connect -t {kind} -a {SERVER} -s 4420 -n {NQN} "
                        f"--nr-io-queues=1 {options}")
        return pair.client.read(
            "for n in $(seq 100); do for s in /sys/class/nvme-subsystem/*; do "
            f"if grep -qx {NQN} $s/subsysnqn 2>/dev/null; then "
            "d=$(ls $s | grep -x 'nvme[0-9]*n[0-9]*' | head -n 1); "
            "[ -b /dev/$d ] && echo /dev/$d && exit 0; fi; done; sleep 0.1; done; exit 1"
        ).strip()
    yield connect
    pair.client.run(f"nvme disconnect -n {NQN}", check=False)
    pair.server.run("unserve-nvme", check=False)


def exchange(pair: Pair, device: str, disk: str, size: int, block: str = "16k") -> None:
    """The client writes random bytes and reads them; the server has the same on its disk."""
    count = size // (int(block[:-1]) << 10)
    pair.client.run(f"head -c {size} /dev/urandom > /tmp/data && "
                    f"dd if=/tmp/data of={device} bs={block} oflag=direct status=none")
    written = pair.client.read("sha256sum < /tmp/data")
    assert pair.client.read(f"dd if={device} bs={block} count={count} iflag=direct status=none"
                            " | sha256sum") == written
    assert pair.server.read(f"dd if={disk} bs=64k count={size >> 16} iflag=direct status=none"
                            " | sha256sum") == written


# NVMe/TCP

@pytest.mark.parametrize("name, options, digests", [
    ("nvmetcp-plain", "", 0), ("nvmetcp-digests", "--hdr-digest --data-digest", 3)])
def test_nvme_over_tcp(pair: Pair, nvme: Callable[..., str], tmp_path: Path, name: str,
                       options: str, digests: int) -> None:
    device = nvme("tcp", options)
    exchange(pair, device, "/dev/disk-nvme", SMALL)
    pair.client.run(f"nvme disconnect -n {NQN}")
    file = pair.recorded(tmp_path, name)
    shaken = dissect(file, "nvme-tcp.icresp", "nvme-tcp.icresp.digest")
    assert shaken and {int(words[0], 0) for words in shaken} == {digests}
    kinds = {int(kind, 0) for words in dissect(file, "nvme-tcp", "nvme-tcp.type")
             for kind in words[0].split(",") if kind}
    # Connection, commands, responses, data in both directions; writes of 16 KiB need an R2T
    # or go with the command, as the target's ICDOFF and MAXH2CDATA have it.
    assert {0, 1, 4, 5, 7} <= kinds, kinds
    device = nvme("tcp", options)
    exchange(pair, device, "/dev/disk-nvme", LARGE, "256k")


def test_nvme_over_tcp_with_tls(pair: Pair, nvme: Callable[..., str],
                                tmp_path: Path) -> None:
    client_nqn = pair.client.read("cat /etc/nvme/hostnqn").strip()
    names = f"--subsysnqn={NQN} --hostnqn={client_nqn} --identity=1"
    output = pair.client.read(f"nvme gen-tls-key --hmac=1 {names}")
    key = re.search(r"NVMeTLSkey-1:\S+", output)
    assert key, output
    for host in (pair.server, pair.client):
        host.run("modprobe nvme_tcp && modprobe tls && "
                 f"nvme check-tls-key --keydata={key[0]} {names} --insert && "
                 "{ pidof tlshd || tlshd > /tmp/tlshd.log 2>&1 & }; " + TLSHD_LISTENS)
    device = nvme("tcp", "--tls", "tls")
    exchange(pair, device, "/dev/disk-nvme", SMALL)
    pair.client.run(f"nvme disconnect -n {NQN}")
    file = pair.recorded(tmp_path, "nvmetcp-tls")
    assert len(dissect(file, "tls.handshake.type == 1", "tls.handshake.type")) == 2
    # Each ClientHello names the key by both NQNs; no Connect shows them.
    assert file.read_bytes().count(NQN.encode()) == 2
    assert not dissect(file, "nvme-tcp.icreq", "nvme-tcp.type")
    device = nvme("tcp", "--tls", "tls")
    exchange(pair, device, "/dev/disk-nvme", LARGE, "256k")


# iWARP

def use_siw(pair: Pair, is_strict: bool) -> None:
    """Replace rxe by siw on both hosts; a strict one wants CRC and peer-to-peer mode."""
    if pair.is_stock:
        guest = Guest(Path(pair.system.instance.config.guest_of("client")))
        lacks = guest_variant.missing(guest)
        if lacks:
            pytest.skip("; ".join(f"no {name}: {why}" for name, why in lacks.items()))
    for host in (pair.server, pair.client):
        host.run("rdma link delete rxe0; rdma link delete siw0", check=False)
        if pair.is_stock:
            host.run("modprobe -r siw siw_strict; "
                     f"modprobe {'siw_strict' if is_strict else 'siw'}")
        else:
            for name in ("mpa_crc_required", "peer_to_peer"):
                host.run(f"echo {int(is_strict)} > /sys/module/siw/parameters/{name}")
        host.run("rdma link add siw0 type siw netdev eth0")


@pytest.mark.parametrize("name, is_strict", [("iwarp", False), ("iwarp-crc-p2p", True)])
def test_nvme_over_iwarp(pair: Pair, nvme: Callable[..., str], tmp_path: Path, name: str,
                         is_strict: bool) -> None:
    use_siw(pair, is_strict)
    device = nvme("rdma")
    exchange(pair, device, "/dev/disk-nvme", SMALL)
    pair.client.run(f"nvme disconnect -n {NQN}")
    file = pair.recorded(tmp_path, name)
    replies = dissect(file, "iwarp_mpa.rep", "iwarp_mpa.crc_flag", "iwarp_mpa.rev")
    assert replies and {bool(int(words[0], 0)) for words in replies} == {is_strict}, replies
    device = nvme("rdma")
    exchange(pair, device, "/dev/disk-nvme", LARGE, "256k")


def test_rping_over_iwarp(pair: Pair, tmp_path: Path) -> None:
    use_siw(pair, False)
    pair.record()
    server = pair.server.start(f"rping -s -a {SERVER} -C 5 -v")
    # A client that comes too early is refused, and then rping sometimes waits for ever.
    pair.server.run(f"for n in $(seq 300); do ss -Hltn 'sport = :{RPING_PORT}' | grep -q . "
                    "&& exit 0; sleep 0.1; done; exit 1")
    pair.client.run(f"rping -c -a {SERVER} -C 5 -v")
    server.wait()
    assert dissect(pair.recorded(tmp_path, "rping", False), "iwarp_mpa.req", "iwarp_mpa.rev")


# ATA over Ethernet

def test_ata_over_ethernet(pair: Pair, tmp_path: Path) -> None:
    pair.record()
    pair.server.run("serve-aoe eth0 7 1")
    device = "/dev/etherd/e7.1"
    pair.client.run("modprobe aoe; for n in $(seq 50); do aoe-discover; "
                    f"[ -b {device} ] && exit 0; sleep 0.2; done; exit 1")
    exchange(pair, device, "/tmp/aoe-disk", SMALL)
    file = pair.recorded(tmp_path, "aoe")
    commands = {int(words[0], 0) for words in
                dissect(file, "aoe.ata.cmd", "aoe.ata.cmd") if words[0]}
    assert {0xec, 0x24, 0x34} <= commands, commands
    assert not dissect(file, "aoe.error != 0", "aoe.error")
    exchange(pair, device, "/tmp/aoe-disk", LARGE, "256k")
    assert re.search(r"e7\.1\s+0\.067GB\s+eth0\s+1024\s+up", pair.client.read("aoe-stat"))
    pair.client.run("aoe-flush -a")
    pair.server.run("kill $(pidof vblade)")


# iSCSI

def test_iscsi(pair: Pair, tmp_path: Path) -> None:
    pair.server.run(f"serve-iscsi {SERVER} {IQN}")
    pair.client.run("modprobe -a iscsi_tcp sd_mod; pidof iscsid || iscsid")
    pair.record()
    pair.client.run(f"iscsiadm -m discovery -t st -p {SERVER} && "
                    f"iscsiadm -m node -T {IQN} -p {SERVER} --login")
    device = pair.client.read(
        "for n in $(seq 100); do for d in /sys/class/iscsi_session/session*/device/"
        "target*/*/block/*; do [ -b /dev/${d##*/} ] && echo /dev/${d##*/} && exit 0; done; "
        "sleep 0.1; done; exit 1").strip()
    exchange(pair, device, "/dev/disk-iscsi", SMALL)
    file = pair.recorded(tmp_path, "iscsi")
    opcodes = {int(word, 0) for words in dissect(file, "iscsi", "iscsi.opcode")
               for word in words[0].split(",") if word}
    # Login, SCSI commands and their responses, data in both directions, R2T or not.
    assert {0x03, 0x23, 0x01, 0x21, 0x25} <= opcodes, opcodes
    exchange(pair, device, "/dev/disk-iscsi", LARGE, "256k")
    pair.client.run(f"iscsiadm -m node -T {IQN} -p {SERVER} --logout")
