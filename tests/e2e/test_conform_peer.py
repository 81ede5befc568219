# SPDX-License-Identifier: BSD-2-Clause
"""The nvmet guest of `essd conform --peer nvmet`, used by essd's own initiator."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from essd.build import native_build
from essd.conform import peer as conform_peer
from essd.conform.peer import NvmetPeer

pytestmark = [pytest.mark.drive, pytest.mark.long]


@pytest.fixture(scope="module")
def peer() -> Iterator[NvmetPeer]:
    with conform_peer.nvmet() as found:
        folder = found.instance.folder
        assert found.socket.is_socket()
        yield found
    assert not folder.exists()
    assert not found.instance.is_running


@pytest.fixture(scope="module")
def initiator() -> Path:
    return native_build.native_program("fast", "tests/bench/native_initiator",
                                  "the initiator")


def run(program: Path, peer: NvmetPeer, workload: str) -> dict[str, object]:
    done = subprocess.run(
        [program, "--socket", peer.socket, "--peer", peer.ip, "--local", "10.0.0.7",
         "--nqn", peer.nqn, "--nsid", str(peer.nsid), "--mtu", str(peer.mtu),
         "--seconds", "1", "--span-mib", "16", "--verify", "--only", workload],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        check=False)
    assert done.returncode == 0, done.stderr or done.stdout
    reply = json.loads(done.stdout)
    return dict(reply["workloads"][0])


# It runs twice, because QEMU must still listen after the first run.
@pytest.mark.parametrize("workload", ["4k-randwrite-qd64", "128k-read-qd64"])
def test_essds_initiator_uses_nvmet(peer: NvmetPeer, initiator: Path,
                                  workload: str) -> None:
    result = run(initiator, peer, workload)
    assert result["ios"]
    assert not peer.complaints()


def test_nvmet_serves_the_namespace_that_it_reports(peer: NvmetPeer) -> None:
    size = int(peer.run("blockdev --getsize64 /dev/nullb0"))
    assert size == peer.size_mib << 20
    assert peer.run("blockdev --getss /dev/nullb0").strip() == "512"
    assert peer.kernel.startswith("6.")


def test_the_echo_service_of_nvmets_guest_serves_rping(peer: NvmetPeer) -> None:
    """rping runs on Linux too, and is the only client of this program not made here."""
    output = peer.run(f"timeout 60 rping -c -a {peer.ip} -p 7174 -C 5 -v -V -S 4096")
    assert output.count("ping data: rdma-ping-") == 5, output


def test_a_warning_of_its_kernel_is_a_complaint(peer: NvmetPeer) -> None:
    peer.run("echo '<3>WARNING: CPU: 0 PID: 1 at a test' > /dev/kmsg")
    for _ in range(50):
        if peer.complaints():
            break
        time.sleep(0.1)
    assert peer.complaints() == [
        "nvmet's kernel: WARNING: CPU: 0 PID: 1 at a test"]


def test_a_kernel_panic_is_reported_as_the_targets_death(peer: NvmetPeer) -> None:
    """This test is the last one in this file, because the peer is dead afterwards."""
    assert not peer.death()
    peer.run("(sleep 1; echo c > /proc/sysrq-trigger) > /dev/null 2>&1 &")
    for _ in range(100):
        if peer.death():
            break
        time.sleep(0.1)
    assert "sysrq triggered crash" in peer.death()
