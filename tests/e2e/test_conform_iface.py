# SPDX-License-Identifier: BSD-2-Clause
"""`essd conform --via IFACE`: a drive at an interface of a Linux machine."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import wire_interface

from essd.build import native_build
from essd.conform import conform

pytestmark = pytest.mark.drive

TARGET, TARGET6, OWN = "10.0.0.1", "fd00:0:0:1::1", "10.0.0.64"
# Tests with large messages, fragments and VLAN tags, in both directions and families.
TESTS = ("smoke,roce.send,roce.write,roce.read,roce.header,net.icmp,cm.req,"
         "nvmf.connect")


@pytest.fixture(scope="module")
def program() -> Path:
    return native_build.native_program(conform.LINK_PRESET, conform.PROGRAM,
                                  "the conformance suite")


@pytest.fixture(scope="module")
def wire() -> Iterator[str]:
    """The socket of a booted drive's first port."""
    why = wire_interface.obstacle()
    if why:
        pytest.skip(f"no network namespace with packet sockets here: {why}")
    with conform.emulated() as stand:
        words = stand.words
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(words[words.index("--control") + 1])
            control.sendall(b"console help\n")      # answered when it has booted
            assert control.recv(65536).startswith(b"ok")
        yield words[words.index("--socket") + 1]


def run(wire: str, program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        wire_interface.command([wire, program, "--iface", wire_interface.WIRE, *words]),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        check=False)


def verdicts(results: Path) -> dict[str, tuple[str, str]]:
    events = map(json.loads, results.read_text().splitlines())
    return {event["id"]: (event["verdict"], event["reason"]) for event in events
            if event["event"] == "test"}


def test_the_suite_passes_over_a_network_interface(
        wire: str, program: Path, tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    done = run(wire, program, "--target", TARGET, "--target6", TARGET6, "--ip", OWN,
               "--only", TESTS, "--results", str(results), "--pcap", str(tmp_path))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    found = verdicts(results)
    assert found["roce.header.v6"] == ("pass", "")
    # The program has found the echo service, which most of this chapter needs.
    assert found["roce.send.only"] == ("pass", "")
    # The program uses its own address, not the machine's.
    capture = (tmp_path / "smoke.ping.pcap").read_bytes()
    assert socket.inet_aton(OWN) in capture
    assert socket.inet_aton("10.0.0.100") not in capture


def test_tests_of_ipv6_do_not_apply_without_an_ipv6_address(wire: str, program: Path,
                                                tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    done = run(wire, program, "--target", TARGET, "--results", str(results), "--only",
               "roce.header.v6,roce.icrc.v6,cm.req.accepted-v6,cm.req.accepted")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    found = verdicts(results)
    assert found.pop("cm.req.accepted") == ("pass", "")
    assert len(found) == 4
    assert set(found.values()) == {("na", "the target has no IPv6 address on port 0")}


def test_an_address_of_the_kernel_is_refused(wire: str, program: Path) -> None:
    kernel = wire_interface.KERNEL_IP.partition("/")[0]
    done = run(wire, program, "--target", TARGET, "--ip", kernel, "--only", "smoke")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"essd_conform: this machine has {kernel}, which the tests need for "
        "themselves: give --ip one of 9 addresses in a row that nobody has"]


def test_missing_privileges_are_reported(program: Path) -> None:
    less = ["setpriv", "--bounding-set=-net_raw"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*less, program, "--iface", "lo", "--target", TARGET],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
        check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "essd_conform: raw frames on lo need CAP_NET_RAW: run as root, or grant it "
        "with setcap cap_net_raw+ep (Operation not permitted)"]
