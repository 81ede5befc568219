# SPDX-License-Identifier: BSD-2-Clause
"""Link aggregation against Linux's bonding driver.

The host's two cards are slaves of bond0, on which rxe runs.  Each port fails in each
way while fio writes and verifies, and fio must see no error.
"""

import ipaddress
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from essd.drive import port_lag
from essd.instance import steps
from essd.instance.config import STOCK, STREAM
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.settings import block as config_block
from essd.setup import setup
from essd.setup.setup import Wish
from essd.testrun import pcap_check

import names

pytestmark = [pytest.mark.drive, pytest.mark.long]

NAME = names.base(os.environ) + "-lag"
# fio writes and verifies until it is ended.
FIO = ("--rw=randwrite --bsrange=4k-16k --iodepth=8 --size=16m --rate_iops=150 "
       "--verify_backlog=64 --time_based --runtime=900")
STANDBY = "mode active-backup miimon 100"
LACP = "mode 802.3ad miimon 100 lacp_rate fast xmit_hash_policy layer3+4"


def wait(true: Callable[[], object], what: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def bond(instance: Instance, mode: str, addresses: list[str]) -> None:
    """Make the cards slaves of a bond, and add an rxe device on top.

    Of an active-backup bond the kernel deletes the GIDs when it changes its
    active slave (NETDEV_BONDING_FAILOVER in roce_gid_mgmt.c), and rxe's queue
    pairs, the connection manager's too, end in error.  A bridge on the bond,
    as hypervisors have it, keeps its GIDs, and passes the announcements on.
    """
    top = "bond0" if mode == LACP else "br0"
    lines = ["rdma link delete rxe0", "rdma link delete rxe1",
             "modprobe bonding max_bonds=0",
             f"ip link add bond0 type bond {mode}"]
    for number in (0, 1):
        lines += [f"ip addr flush dev eth{number}", f"ip link set eth{number} down",
                  f"ip link set eth{number} master bond0"]
    lines += ["ip link set bond0 up"]
    if top != "bond0":
        lines += [f"ip link add {top} type bridge forward_delay 0",
                  f"ip link set bond0 master {top}", f"ip link set {top} up"]
    lines += [f"ip addr add {address} dev {top}" for address in addresses]
    lines += [f"rdma link add rxe0 type rxe netdev {top}"]
    instance.run("set -e; " + "; ".join(lines))


def boot(lag: str, mode: str, name: str = NAME, host_kind: str = STOCK,
         link: str = STREAM) -> Job:
    instance = Instance(name)
    instance.stop()
    setup.forget(name)
    config = setup.configure(Wish(
        name=name, size="512M", capture=True, host_kind=host_kind, link=link,
        network=config_block.Network(lag=lag, lacp_fast=True)))
    instance.start(config)
    instance.wait_ready("host")
    addresses = [host for link in config.links for host in link.hosts]
    assert all(ipaddress.ip_interface(x).version == 4 for x in addresses)
    bond(instance, mode, addresses)
    job = Job.of(instance)
    steps.wait_target(job)      # both addresses, whatever the active port is
    return job


@pytest.fixture
def booted_lag() -> Iterator[Callable[[str, str], Job]]:
    yield boot
    Instance(NAME).stop()
    setup.forget(NAME)


def unplug(job: Job, port: int) -> None:
    job.instance.ask("port", port=port, plugged=False)


def plug(job: Job, port: int) -> None:
    job.instance.ask("port", port=port, plugged=True)


def host_down(job: Job, port: int) -> None:
    """Take the host's card down; the drive's link stays up, as QEMU does not report it."""
    job.run(f"ip link set eth{port} down")


def host_up(job: Job, port: int) -> None:
    job.run(f"ip link set eth{port} up")


def set_carrier(job: Job, port: int, up: bool) -> None:
    job.instance.ask("qmp", part="host", execute="set_link",
                     arguments={"name": f"port{port}", "up": up})


def card_off(job: Job, port: int) -> None:
    """Take the carrier from the host's card; the drive's port keeps its link."""
    set_carrier(job, port, False)


def card_on(job: Job, port: int) -> None:
    set_carrier(job, port, True)


Way = tuple[Callable[[Job, int], None], Callable[[Job, int], None]]
CABLE: Way = (unplug, plug)
SLAVE: Way = (host_down, host_up)
CARD: Way = (card_off, card_on)


def status(job: Job) -> str:
    return job.quiet("cat /proc/net/bonding/bond0")


def is_live(job: Job) -> bool:
    return job.quiet("cat /sys/class/nvme/nvme*/state").strip() == "live"


def written(job: Job, device: str) -> int:
    """The number of writes that the device has completed."""
    return int(job.quiet(f"cat /sys/block/{device[5:]}/stat").split()[4])


def wait_io(job: Job, device: str, what: str) -> None:
    before = written(job, device)
    wait(lambda: written(job, device) > before + 50, f"{what}: I/O stands still", 60)


def survive(job: Job, is_whole: Callable[[], bool], *ways: Way) -> None:
    """Let each port fail and recover in each way during verified I/O."""
    device = job.device()
    command = steps.FIO.format(device=device, name="lag", options=FIO)
    job.quiet("dmesg -C")
    with ThreadPoolExecutor(1) as pool:
        fio = pool.submit(job.instance.run, command, timeout_s=500, check=False)
        time.sleep(3)
        for lose, restore in ways:
            for port in (0, 1):
                assert not fio.done(), fio.result().output
                lose(job, port)
                time.sleep(6)
                restore(job, port)
                wait(is_whole, f"{lose.__name__} {port}")
                wait(lambda: is_live(job), f"{lose.__name__} {port}: not live", 120)
                wait_io(job, device, f"{lose.__name__} {port}")
        assert not fio.done(), fio.result().output
        job.quiet("pkill -INT -o -x fio")
        result = fio.result()
    assert "terminating on signal 2" in result.output, result.output
    assert "err= 0" in result.output, result.output
    assert not re.search(r"I/O error|verify", job.quiet("dmesg")), job.quiet("dmesg")


def bonded(job: Job) -> bool:
    """Whether both ports are in one aggregator whose partner is the drive."""
    text = status(job)
    macs = set(re.findall(r"Partner Mac Address: (\S+)", text))
    mine = re.findall(r"^Aggregator ID: (\d+)", text, re.M)
    active = re.search(r"Active Aggregator Info:\s+Aggregator ID: (\d+)\s+"
                       r"Number of ports: (\d+)", text)
    states = re.findall(r"details partner lacp pdu:.*?port state: (\d+)", text, re.S)
    return (active is not None and active[2] == "2"
            and mine == [active[1]] * 2 and len(macs) == 1
            and "00:00:00:00:00:00" not in macs
            # Both partners are in fast mode, in sync, collecting and distributing.
            and states == ["63", "63"])


def tx_frames(job: Job, port: int) -> int:
    return int(job.quiet(f"cat /sys/class/net/eth{port}/statistics/rx_packets"))


def test_standby_and_active_backup_lose_ports_under_io(
        booted_lag: Callable[[str, str], Job]) -> None:
    job = booted_lag("active-standby", STANDBY)
    steps.discover(job)
    steps.connect(job, options="--reconnect-delay=1")

    def is_whole() -> bool:
        return status(job).count("MII Status: up") == 3

    assert is_whole()
    survive(job, is_whole, CABLE, CARD)
    steps.ping(job)
    steps.disconnect(job)
    assert status(job).count("Link Failure Count: 2") == 2, status(job)


def test_lacp_and_802_3ad_lose_ports_under_io(
        booted_lag: Callable[[str, str], Job]) -> None:
    job = booted_lag("lacp", LACP)
    steps.discover(job)
    steps.connect(job, options="--nr-io-queues=4 --reconnect-delay=1")

    wait(lambda: bonded(job), status(job))
    neighbour = job.quiet(f"ip neigh show {job.addresses[0]}")
    assert re.search(r"Partner Mac Address: (\S+)", status(job))[1] in neighbour  # type: ignore[index]
    before = [tx_frames(job, port) for port in (0, 1)]
    survive(job, lambda: bonded(job), CABLE, SLAVE)
    for port in (0, 1):
        assert tx_frames(job, port) - before[port] > 500, "a port had no part in it"
    steps.ping(job)
    steps.disconnect(job)
    for number in (0, 1):
        capture = job.instance.folder / f"link{number}.pcap"
        assert not pcap_check.malformed(capture)
        said = slow_protocols(capture)
        assert len(said) > 50
        assert all(int(version, 0) == 1 for version in said)


def save_and_load(job: Job, meanwhile: Callable[[], None] = lambda: None) -> None:
    job.instance.ask("save")
    meanwhile()
    job.instance.ask("load")


def test_lacp_is_saved_and_loaded_under_io(
        booted_lag: Callable[[str, str], Job]) -> None:
    """The loaded drive continues with both ports, or with the one that has a cable."""
    job = booted_lag("lacp", LACP)
    steps.discover(job)
    steps.connect(job, options="--nr-io-queues=4 --reconnect-delay=1")
    wait(lambda: bonded(job), status(job))
    lag = port_lag.read(job.instance)
    assert lag["aggregated"] and lag["active"] == [0, 1], lag
    assert lag["partner-system"] == job.quiet("cat /sys/class/net/bond0/address").strip()
    console = job.instance.folder / "drive/console.log"
    before = len(console.read_text(errors="replace"))
    survive(job, lambda: bonded(job),
            (lambda job, _port: save_and_load(job), lambda _job, _port: None),
            # The cable is unplugged while the drive is saved.
            (lambda job, port: save_and_load(job, lambda: unplug(job, port)), plug))
    assert "boot:" not in console.read_text(errors="replace")[before:]
    wait(lambda: port_lag.read(job.instance)["aggregated"], "not aggregated", 10)
    steps.disconnect(job)


def test_standby_is_saved_and_loaded_under_io(
        booted_lag: Callable[[str, str], Job]) -> None:
    job = booted_lag("active-standby", STANDBY)
    steps.discover(job)
    steps.connect(job, options="--reconnect-delay=1")

    def is_whole() -> bool:
        return status(job).count("MII Status: up") == 3

    def is_agreed() -> bool:
        """Whether the host has chosen an aggregator again after it lost both links."""
        slave = job.quiet("cat /sys/class/net/bond0/bonding/active_slave").strip()
        return [f"eth{n}" for n in port_lag.read(job.instance)["active"]] == [slave]

    assert is_whole()
    unplug(job, 0)
    wait(lambda: port_lag.read(job.instance)["active"] == [1], "port 1 is not active")
    plug(job, 0)
    wait(is_whole, "port 0 is not back")
    save_and_load(job)
    wait(is_whole, "a port is not back")
    wait(is_agreed, "the active ports differ")
    survive(job, is_whole,
            (lambda job, _port: save_and_load(job), lambda _job, _port: None),
            (lambda job, port: save_and_load(job, lambda: unplug(job, port)), plug))
    assert port_lag.read(job.instance)["aggregated"]
    steps.disconnect(job)


def slow_protocols(capture: object) -> list[str]:
    """The version in each LACPDU, decoded by Wireshark."""
    return pcap_check._tshark(capture, "-Y", "lacp", "-T", "fields",  # type: ignore[arg-type]
                              "-e", "lacp.version")
