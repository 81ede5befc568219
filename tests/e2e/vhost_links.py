# SPDX-License-Identifier: BSD-2-Clause
"""What tests do with cables of kind vhost-user, whoever is the front-end.

test_vhost_user.py has a stock host in QEMU, test_vhost_uml.py user-mode Linux.
"""

import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import test_lag as lag
from test_lag import wait

import essd
from essd.instance import steps
from essd.instance.config import VHOST_USER
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.setup import setup
from essd.setup.setup import Wish
from essd.testrun import pcap_check

# What cables do to about one frame of 300.
FAULTS = {"lost": "wire direction=in when every=300 do drop",
          "bad": "wire direction=out when every=300 do corrupt",
          "twice": "wire direction=out when every=250 do duplicate"}
WRITE = "--rw=randwrite --bsrange=4k-128k --iodepth=16 --size=16m"
# About 10 s of I/O at a low rate, during which something happens.
LONG = "--rw=randwrite --bs=4k --iodepth=8 --size=12m --rate_iops=300"
# vhost-user: the header of a message, one request, the flags of a reply, a feature.
HEADER, GET_FEATURES, REPLY, VERSION_1 = 12, 1, 5, 1 << 32
QUIET_S = 0.05          # a front-end that is silent for so long has said all


@contextmanager
def connected(name: str, host_kind: str) -> Iterator[Job]:
    """A host whose cables are in its memory, and which is connected to the drive."""
    instance = Instance(name)
    instance.stop()
    setup.forget(name)
    try:
        instance.start(setup.configure(Wish(name=name, size="256M", block=True, capture=True,
                                            mtu=9000, host_kind=host_kind, link=VHOST_USER)))
        instance.wait_ready("host")
        job = Job.of(instance)
        steps.wait_target(job)
        steps.connect(job, options="--reconnect-delay=1")
        yield job
    finally:
        instance.stop()
        setup.forget(name)


def verify(job: Job, options: str) -> None:
    steps.run_fio(job, steps.FIO.format(device=job.device(), name="own", options=options))


def meanwhile(job: Job, act: Callable[[], object]) -> None:
    """Verified I/O, and something that happens during it."""
    with ThreadPoolExecutor(1) as pool:
        fio = pool.submit(verify, job, LONG)
        time.sleep(2)
        assert not fio.done()
        act()
        fio.result()


def check_record(job: Job) -> None:
    """The drive records what passes: path MTU 4096, in frames of up to 9000 bytes."""
    verify(job, WRITE)
    pcap = job.instance.folder / "link0.pcap"
    sizes = pcap_check._tshark(pcap, "-Y", "infiniband", "-T", "fields", "-e", "frame.len")
    assert len(sizes) > 1000
    assert max(map(int, sizes)) > 4096


def stop_and_continue(job: Job) -> None:
    def stop() -> None:
        for part in ("drive", "host"):
            job.instance.ask("qmp", part=part, execute="stop", arguments={})
            time.sleep(0.5)
            job.instance.ask("qmp", part=part, execute="cont", arguments={})
    meanwhile(job, stop)


def save_and_load(job: Job) -> None:
    """The state of the drive is saved and loaded."""
    def act() -> None:
        job.instance.ask("save")
        job.instance.ask("load")
    meanwhile(job, act)
    verify(job, WRITE)


def cut_power(job: Job, while_off: Callable[[], object] = lambda: None) -> None:
    """The drive is switched off, and on: its front-ends connect again."""
    job.instance.ask("power-cut", part="drive")
    wait(lambda: not steps.carrier(job, 0), "the host's card keeps its carrier")
    while_off()
    job.instance.ask("power-on", part="drive")


def wait_carriers(job: Job) -> None:
    wait(lambda: steps.carrier(job, 0) and steps.carrier(job, 1), "a card has no carrier")


def refuse_connections(path: Path, seconds: float) -> int:
    """Be a back-end that ends each connection when the front-end has said all, as one does that
    cannot map the front-end's memory.  Return how many connections there were."""
    count = 0
    end = time.monotonic() + seconds
    path.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")    # a path may be too long
        os.close(folder)
        listener.listen()
        while (left := end - time.monotonic()) > 0:
            listener.settimeout(left)
            with suppress(OSError), listener.accept()[0] as connection:
                count += 1
                connection.settimeout(QUIET_S)
                while len(head := connection.recv(HEADER)) == HEADER:
                    request, _, size = struct.unpack("<III", head)
                    connection.recv(size)
                    if request == GET_FEATURES:
                        connection.sendall(struct.pack("<IIIQ", request, REPLY, 8, VERSION_1))
    path.unlink()
    return count


def survive_faults(job: Job) -> None:
    """Verified I/O over cables that lose, change and repeat frames."""
    faults = essd.attach(job.instance.name).drives[0].faults
    for name, rule in FAULTS.items():
        faults.add(rule, name)
    try:
        verify(job, LONG)
        assert all(faults[name].fired > 3 for name in FAULTS)
    finally:
        faults.remove()


def aggregate(name: str, host_kind: str) -> None:
    """LACP over two cables: each of them fails in each way during verified I/O."""
    try:
        bond = lag.boot("lacp", lag.LACP, name, host_kind, VHOST_USER)
        steps.discover(bond)
        steps.connect(bond, options="--nr-io-queues=4 --reconnect-delay=1")
        wait(lambda: lag.bonded(bond), lag.status(bond))
        before = [lag.tx_frames(bond, port) for port in (0, 1)]
        lag.survive(bond, lambda: lag.bonded(bond), lag.CABLE, lag.SLAVE)
        for port in (0, 1):
            assert lag.tx_frames(bond, port) - before[port] > 500, "a port had no part in it"
    finally:
        Instance(name).stop()
        setup.forget(name)
