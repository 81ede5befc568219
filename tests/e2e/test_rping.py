# SPDX-License-Identifier: BSD-2-Clause
"""rdma-core's stock rping against the drive's diagnostic echo service."""

import re
from collections.abc import Iterator

import pytest
import uart_dialogue

from essd.instance import steps
from essd.instance.steps import Job
from essd.settings.block import Network
from essd.setup import setup
from essd.setup.setup import Wish
from essd.testrun import pcap_check

pytestmark = [pytest.mark.drive, pytest.mark.uml]
PORT = 7174
ADDRESSES = ("10.0.0.10", "fd00:0:0:1::10", "10.0.1.10")


@pytest.fixture(scope="module")
def echoing(target: str, host_kind: str) -> Iterator[Job]:
    """A drive whose configuration enables the service."""
    if target != "drive":
        pytest.skip("needs the drive itself")
    from conftest import SESSION, boot
    wish = Wish(name=f"{SESSION}-echo", size="512M", capture=True, host_kind=host_kind,
                ports=["10.0.0.10/24,fd00:0:0:1::10/64", "10.0.1.10/24"],
                network=Network(echo=True))
    job = boot(wish)
    yield job
    job.instance.stop()
    setup.forget(wish.name)


def rping(job: Job, options: str, address: str = ADDRESSES[0],
          check: bool = True) -> str:
    return job.run(f"timeout 60 rping -c -a {address} -p {PORT} {options} 2>&1",
                   check=check)


def counters(job: Job) -> dict[str, int]:
    text = "\n".join(uart_dialogue.ask(job.instance, "echo"))
    found = {name: int(value)
             for name, value in re.findall(r"echo: ([a-z-]+) +(\d+)$", text, re.M)}
    used = re.search(r"(\d+) of 4 connections", text)
    assert used, text
    return {**found, "used": int(used[1])}


# This test runs first, because checking a capture of all tests takes minutes.
@pytest.mark.long
def test_the_capture_decodes(echoing: Job) -> None:
    for address in ADDRESSES[:2]:
        rping(echoing, "-C 10 -V -S 4096", address)
    verdict = pcap_check.check(echoing.instance.folder / "link0.pcap")
    assert not verdict.complaints, "\n".join(verdict.complaints[:10])
    assert verdict.icrc_checked > 200


# Sizes: rping's smallest, one packet, many packets, rping's largest.
@pytest.mark.parametrize("size", [64, 1023, 4096, 65535])
def test_rping_gets_its_data_back(echoing: Job, size: int) -> None:
    before = counters(echoing)
    output = rping(echoing, f"-C 50 -v -V -S {size}")
    assert output.count("ping data: rdma-ping-") == 50, output
    assert "mismatch" not in output
    after = counters(echoing)
    assert after["pings"] - before["pings"] == 50
    assert after["ping-bytes"] - before["ping-bytes"] == 50 * size
    assert after["used"] == after["bad"] == 0


@pytest.mark.parametrize("address", ADDRESSES[1:])
def test_rping_by_every_address(echoing: Job, address: str) -> None:
    output = rping(echoing, "-C 10 -v -V -S 4096", address)
    assert output.count("ping data: rdma-ping-") == 10, output


def test_four_clients_and_nvme_run_at_once(echoing: Job) -> None:
    device = steps.connect(echoing)
    command = f"timeout 60 rping -c -a {ADDRESSES[0]} -p {PORT} -C 40 -V -S 16384"
    echoing.run(" ".join(f"{command} & p{n}=$!;" for n in range(4)) +
                f"dd if=/dev/urandom of={device} bs=64k count=64 oflag=direct; "
                "for p in $p0 $p1 $p2 $p3; do wait $p || exit 1; done")
    steps.disconnect(echoing)


def test_a_client_that_is_killed_leaves_nothing(echoing: Job) -> None:
    """More clients are killed, one after another, than the drive serves at once."""
    for _ in range(5):
        echoing.run(f"rping -c -a {ADDRESSES[0]} -p {PORT} -V -S 4096 >/dev/null 2>&1 "
                    "& sleep 1; kill -9 $!; wait $!; true")
    output = rping(echoing, "-C 5 -v -V -S 4096")
    assert output.count("ping data: rdma-ping-") == 5, output
    assert counters(echoing)["used"] == 0


def test_the_service_is_switched_on_the_console(echoing: Job) -> None:
    uart_dialogue.ask(echoing.instance, "echo off")
    output = rping(echoing, "-C 1 -V", check=False)
    assert "RDMA_CM_EVENT_REJECTED, error 8" in output, output
    uart_dialogue.ask(echoing.instance, "echo on")
    rping(echoing, "-C 5 -V")


def test_the_service_is_off_by_default(job: Job) -> None:
    output = rping(job, "-C 1 -V", check=False)
    assert "RDMA_CM_EVENT_REJECTED, error 8" in output, output
