# SPDX-License-Identifier: BSD-2-Clause
"""Addresses added and removed, VLANs and routers, with stock programs in the host.

Port 0 has no configured address and gets its addresses by DHCP and SLAAC.  Port 1 is in
VLAN 100.  The tests depend on each other and run in this order.
"""

import ipaddress
import re
import subprocess
from collections.abc import Iterator

import pytest
from watching import console, until

from essd.drive import mgmt
from essd.instance import steps
from essd.instance.steps import Job
from essd.settings import block as config_block
from essd.testrun import pcap_check

pytestmark = [pytest.mark.drive, pytest.mark.long]
VERIFIED = "--rw=randwrite --bsrange=4k-64k --iodepth=8 --size=1m"
VLAN = 100
PRIORITY = 5
LEASED = "10.0.0.77"
# dnsmasq's shortest lease is 2 minutes; a smaller T1 makes the drive renew it sooner.
DNSMASQ = (
    "dnsmasq --conf-file=/dev/null --port=0 --user=root --interface=eth0 "
    "--bind-interfaces --no-ping --dhcp-authoritative --dhcp-range={leased},{leased},"
    "255.255.255.0,2m --dhcp-option=option:router,10.0.0.1 "
    "--dhcp-option=option:ntp-server,10.0.0.1 --dhcp-option=option:T1,5 "
    "--dhcp-option=option:mtu,1400 --enable-ra "
    "--dhcp-range=fd00:77:0:1::,ra-only,64,10m --dhcp-leasefile=/tmp/leases "
    "--log-dhcp --log-facility=/tmp/dnsmasq.log --pid-file=/run/dnsmasq.pid")


def port(text: str | None = None, **more: object) -> config_block.Port:
    interface = ipaddress.IPv4Interface(text) if text else None
    return config_block.Port(ipv4=interface, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def net(target: str) -> Iterator[Job]:
    if target != "drive":
        pytest.skip("needs the drive itself")
    from conftest import SESSION
    from essd.instance.instance import Instance
    from essd.setup import setup
    wish = setup.Wish(
        name=f"{SESSION}-network", size="512M", capture=True,
        config=config_block.Config(
            ports=(port(slaac=True),
                   port("10.1.0.10/24", vlan=VLAN, priority=PRIORITY)),
            services=config_block.Services(dhcp=(True, False), name="rack7-slot3",
                                    sntp_poll=2, lldp_interval=1),
            network=config_block.Network(dhcp_fast=True)))
    instance = Instance(wish.name)
    instance.stop()
    setup.forget(wish.name)
    instance.start(setup.configure(wish))
    instance.wait_ready("host")
    yield Job.of(instance)
    instance.stop()
    setup.forget(wish.name)


def discovered(job: Job, via: str, options: str = "") -> set[str]:
    log = job.run(f"nvme discover -t rdma -a {via} -s 4420{options}")
    return set(re.findall(r"traddr:\s+(\S+)", log))


def verify_through(job: Job, via: str, options: str = "") -> None:
    job.run(f"nvme connect -t rdma -a {via} -s 4420 -n {job.nqn}{options}")
    command = steps.FIO.format(device=job.device(), name="net", options=VERIFIED)
    result = job.instance.run(command, timeout_s=300)
    assert "err= 0" in result.output, result.output
    steps.disconnect(job)


def test_without_a_server_there_is_a_link_local_address(net: Job) -> None:
    found = until(lambda: re.search(r"port 0: (169\.254\.\d+\.\d+)/16", console(net)))
    net.run("ip addr add 169.254.0.1/16 dev eth0")
    assert "3 received" in net.run(f"ping -c 3 -i 0.2 {found[1]}")
    assert found[1] in discovered(net, found[1])
    verify_through(net, found[1])


def test_dnsmasq_gives_an_address(net: Job) -> None:
    """The leased address replaces the link-local one everywhere."""
    fallback = re.findall(r"port 0: (169\.254\.\d+\.\d+)/16", console(net))[-1]
    net.quiet("ip addr add fd00:77:0:1::1/64 dev eth0; " +
              DNSMASQ.format(leased=LEASED))
    until(lambda: f"dhcp: port 0: {LEASED}/24 for 120 s" in console(net))
    lease = net.run("cat /tmp/leases").split()
    assert lease[2:4] == [LEASED, "rack7-slot3"]
    assert lease[4].startswith("01:" + lease[1])       # the client identifier
    assert "3 received" in net.run(f"ping -c 3 -i 0.2 {LEASED}")
    assert f"port 0: {fallback} is gone" in console(net)
    addresses = discovered(net, LEASED)
    assert LEASED in addresses and fallback not in addresses
    assert "1 received" not in net.run(f"ping -c 1 -W 1 {fallback}", check=False)
    verify_through(net, LEASED)


def test_the_lease_is_renewed_under_a_connection(net: Job) -> None:
    def acks() -> int:
        return net.quiet("cat /tmp/dnsmasq.log").count(f"DHCPACK(eth0) {LEASED}")
    steps.clean_host(net)
    net.run(f"nvme connect -t rdma -a {LEASED} -s 4420 -n {net.nqn}")
    before = acks()
    until(lambda: acks() >= before + 2, 90)
    assert "lease has ended" not in console(net)
    assert net.quiet("cat /sys/class/nvme/nvme*/state").split() == ["live"]
    steps.disconnect(net)


def test_the_leases_ntp_server_sets_the_clock(net: Job) -> None:
    net.quiet("printf 'local stratum 3\\nallow\\ncmdport 0\\nuser root\\n"
              "pidfile /run/chronyd.pid\\n' > /tmp/chrony.conf; "
              "chronyd -x -f /tmp/chrony.conf")
    until(lambda: re.search(r"sntp: \d+ s since 1970, stratum 3", console(net)))


def test_a_routers_prefix_gives_an_ipv6_address(net: Job) -> None:
    found = until(lambda: re.search(r"port 0: (fd00:77:0:1:\S+)/64", console(net)))
    assert found[1] in discovered(net, LEASED)
    assert LEASED in discovered(net, found[1])
    verify_through(net, found[1])


def test_lldp_announces_the_current_addresses(net: Job) -> None:
    """The management addresses in LLDP are those that the drive has now."""
    def told() -> set[str]:
        text = net.quiet("tcpdump -i eth0 -c 1 -v ether proto 0x88cc 2>/dev/null")
        return set(re.findall(r"Management Address length \d+, AFI IPv[46] \(\d\): "
                              r"(\S+)", text))
    assert LEASED in until(told)


def tshark(job: Job, link: int, *arguments: str) -> list[str]:
    path = job.instance.folder / f"link{link}.pcap"
    done = subprocess.run(["tshark", "-n", "-r", str(path), *arguments],
                          capture_output=True, text=True, check=False, timeout=600)
    return done.stdout.splitlines()


def test_a_host_in_the_vlan_connects(net: Job) -> None:
    net.run(f"ip addr flush dev eth1 && ip link add link eth1 name eth1.{VLAN} type "
            f"vlan id {VLAN} && ip link set eth1.{VLAN} up && "
            f"ip addr add 10.1.0.1/24 dev eth1.{VLAN}")
    until(lambda: "1 received" in net.quiet("ping -c 1 -W 1 10.1.0.10", check=False))
    assert "10.1.0.10" in discovered(net, "10.1.0.10")
    verify_through(net, "10.1.0.10")
    # Without the VLAN tag the drive does not answer.
    net.run("ip addr add 10.1.0.2/24 dev eth1")
    assert "1 received" not in net.run("ping -c 1 -W 1 -I eth1 10.1.0.10",
                                       check=False)
    net.run("ip addr del 10.1.0.2/24 dev eth1")


def test_the_vlans_frames_have_tag_and_priority(net: Job) -> None:
    """tcpdump captures the frames at the host's end of the cable."""
    ours = "eth.src[0:3] == 02:e5:5d"
    for what, least in (("infiniband", 100), ("infiniband.bth.opcode == 100", 5)):
        # Both data and connection management have the tag.
        tagged = tshark(net, 1, "-Y", f"{ours} && {what}", "-T", "fields",
                        "-e", "vlan.id", "-e", "vlan.priority")
        assert len(tagged) > least and set(tagged) == {f"{VLAN}\t{PRIORITY}"}, what
    said = tshark(net, 1, "-Y", f"{ours} && arp", "-T", "fields", "-e", "vlan.id",
                  "-e", "vlan.priority")
    assert f"{VLAN}\t{PRIORITY}" in said, said[:10]


def test_a_shutdown_is_announced_to_servers_and_neighbours(net: Job) -> None:
    """`essd down` begins with such a shutdown."""
    mgmt.shut_down(net.instance)
    until(lambda: f"DHCPRELEASE(eth0) {LEASED}" in net.quiet("cat /tmp/dnsmasq.log"))
    assert LEASED not in net.quiet("cat /tmp/leases")
    for link in (0, 1):
        assert tshark(net, link, "-Y", "lldp.time_to_live == 0 && "
                      "eth.src[0:3] == 02:e5:5d"), link
    assert "1 received" not in net.run(f"ping -c 1 -W 1 {LEASED}", check=False)
    net.instance.ask("power-cut")
    net.instance.ask("power-on")
    until(lambda: "1 received" in net.quiet(f"ping -c 1 -W 1 {LEASED}", check=False))


def verify_behind(net: Job, drive: str, to_host: str) -> None:
    """Use the drive from a host behind the router, which all of its packets pass."""
    until(lambda: "1 received" in net.quiet(f"ping -c 1 -W 1 {drive}", check=False))
    output = net.run(f"ping -c 1 {drive}")
    assert "ttl=63" in output, output
    assert drive in discovered(net, drive)
    verify_through(net, drive)
    mac = net.quiet("ip netns exec router cat /sys/class/net/eth0/address").strip()
    gone = tshark(net, 0, "-Y", f"{to_host} && infiniband", "-T", "fields",
                  "-e", "eth.dst")
    assert len(gone) > 100 and set(gone) == {mac}


def test_a_host_behind_a_router_connects(net: Job) -> None:
    """The router is a network name space between the host's card and the drive's cable."""
    net.run("rdma link delete rxe0; ip netns add router && "
            "ip link add behind type veth peer name front && "
            "ip link set front netns router && ip link set eth0 netns router")
    net.run("ip netns exec router sh -c 'ip link set lo up; ip link set eth0 up; "
            "ip addr add 10.0.0.1/24 dev eth0; ip link set front up; "
            "ip addr add 192.168.99.1/24 dev front; "
            "echo 1 > /proc/sys/net/ipv4/ip_forward'")
    net.run("ip link set behind up && ip addr add 192.168.99.2/24 dev behind && "
            "ip route add 10.0.0.0/24 via 192.168.99.1 mtu 1400 && "
            "rdma link add rxe0 type rxe netdev behind")
    # The lease of 2 minutes cannot be renewed while the server cannot reach the drive.
    verify_behind(net, LEASED, "ip.dst == 192.168.99.2")


def test_a_host_behind_an_ipv6_router_connects(net: Job) -> None:
    """The drive learns the same router from its advertisements, without configuration."""
    drive = re.findall(r"port 0: (fd00:77:0:1:\S+)/64", console(net))[-1]
    net.run("ip netns exec router sh -c 'echo 1 > /proc/sys/net/ipv6/conf/all/forwarding; "
            "ip addr add fd00:77:0:1::1/64 dev eth0; "
            "ip addr add fd00:99::1/64 dev front'")
    net.run("ip addr add fd00:99::2/64 dev behind && "
            "ip route add fd00:77:0:1::/64 via fd00:99::1 mtu 1400")
    verify_behind(net, drive, "ipv6.dst == fd00:99::2")


def test_wireshark_has_no_complaint(net: Job) -> None:
    """Check the ICRCs of tagged frames; test_wire.py checks those of untagged ones."""
    complaints = pcap_check.malformed(net.instance.folder / "link0.pcap")
    complaints += pcap_check.check(net.instance.folder / "link1.pcap").complaints
    assert not complaints, "\n".join(complaints[:10])
