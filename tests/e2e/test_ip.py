# SPDX-License-Identifier: BSD-2-Clause
"""Control traffic between the drive and Linux's own programs."""

import re
from collections.abc import Callable

import pytest

from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]


def link_local(job: Job, port: int = 0) -> str:
    """The drive's link-local address, by EUI-64 of the MAC that ARP knows."""
    job.run(f"ping -c 1 -W 2 {job.addresses[port]}")
    output = job.run(f"/usr/sbin/ip neigh show {job.addresses[port]}")
    match = re.search(r"lladdr (\S+)", output)
    assert match, output
    mac = [int(part, 16) for part in match[1].split(":")]
    host = [mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, *mac[3:]]
    words = [f"{host[i] << 8 | host[i + 1]:x}" for i in range(0, 8, 2)]
    return f"fe80::{':'.join(words)}"


# Sizes: one packet, the MTU, two fragments, a last fragment of one byte, IP's largest.
@pytest.mark.parametrize("size", [56, 1472, 1473, 2953, 20000, 65507])
def test_ping_of_every_size_is_answered(job: Job, size: int) -> None:
    output = job.run(f"/usr/bin/ping -c 3 -i 0.2 -W 5 -s {size} {job.addresses[0]}")
    assert "3 received" in output, output


@pytest.mark.parametrize("size", [56, 1452, 1453, 65527])
def test_ping6_of_every_size_is_answered(job: Job, size: int) -> None:
    address = link_local(job)
    output = job.run(f"/usr/bin/ping -6 -c 3 -i 0.2 -W 5 -s {size} {address}%eth0")
    assert "3 received" in output, output


@pytest.mark.parametrize("mtu", [1280, pytest.param(9000, marks=pytest.mark.long)])
def test_other_mtus_carry_whole_packets_and_fragments(
        booted: Callable[..., Job], mtu: int) -> None:
    """Pings of exactly the MTU, of a byte more, and of IP's largest size, in both families."""
    job = booted(mtu=mtu)
    address = link_local(job)
    for size, how in ((mtu - 28, "-M do"), (mtu - 27, "-M dont"), (65507, "-M dont")):
        output = job.run(f"/usr/bin/ping -c 3 -i 0.2 -W 5 {how} -s {size} "
                         f"{job.addresses[0]}")
        assert "3 received" in output, output
    for size in (mtu - 48, mtu - 47, 65527):
        output = job.run(f"/usr/bin/ping -6 -c 3 -i 0.2 -W 5 -s {size} {address}%eth0")
        assert "3 received" in output, output


def test_arping_is_answered_and_finds_a_duplicate(job: Job) -> None:
    output = job.run(f"/usr/sbin/arping -c 2 -W 1 -I eth0 {job.addresses[0]}")
    assert "2 packets received" in output, output
    # With -d, arping fails if two stations answer.
    job.run(f"/usr/sbin/arping -d -c 2 -W 1 -I eth0 {job.addresses[0]}")
    # The drive answers a probe (from 0.0.0.0), so the address is in use.
    output = job.run(f"/usr/sbin/arping -0 -c 2 -W 1 -I eth0 {job.addresses[0]}")
    assert "2 packets received" in output, output


def test_ndisc6_finds_the_link_local_address(job: Job) -> None:
    output = job.run(f"ndisc6 -r 2 -w 1000 {link_local(job)} eth0")
    assert "Target link-layer address" in output, output


def test_closed_ports_send_an_icmp_error(job: Job) -> None:
    """Linux reports the ICMP error as "connection refused"."""
    output = job.run(
        f"bash -c 'exec 3<>/dev/udp/{job.addresses[0]}/9; echo x >&3; sleep 0.5; "
        "echo y >&3' 2>&1", check=False)
    assert "refused" in output, output
