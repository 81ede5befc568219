# SPDX-License-Identifier: BSD-2-Clause
"""A stock host whose kernel has siw as a module connects by NVMe over iWARP.

The host boots the guest of the peers (docs/peers.md), which has siw twice: unchanged, and
with its constants for CRC and peer-to-peer mode set.
"""

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import uart_dialogue

import essd
from essd.build import guest_variant
from essd.drive import mgmt
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.long]

TOPOLOGY = """\
drives:
  drive: {{size: 256M}}
hosts:
  host: {{guest: {guest}}}
cables:
  - {{cable: "drive:0 - host", capture: yes}}
"""
FIO = ("fio --name=own --filename={device} --direct=1 --ioengine=libaio --bsrange=512-256k "
       "--iodepth=16 --rw=randwrite --size={size} --verify=crc32c --verify_fatal=1")
# About 3 s of durable writes, then everything is read and compared.
LOAD = ("fio --name=own --filename={device} --direct=1 --sync=1 --ioengine=libaio --bs=4k "
        "--iodepth=8 --rw=randwrite --size=4m --rate_iops=400 --verify=crc32c --verify_fatal=1")
START = f"({LOAD} > /tmp/fio.log 2>&1; echo $? > /tmp/fio.end) < /dev/null > /dev/null 2>&1 & "
WAIT = ("for n in $(seq 1800); do [ -e /tmp/fio.end ] && break; sleep 0.1; done; "
        "cat /tmp/fio.log; end=$(cat /tmp/fio.end); rm /tmp/fio.end; exit $end")
OPTIONS = "--ctrl-loss-tmo=60 --reconnect-delay=1 --keep-alive-tmo=2"


@dataclass
class Stock:
    job: Job
    capture: Path

    def use(self, module: str, crc: str) -> None:
        """Let siw, or the strict one, have the card, and set the drive's wish for CRCs."""
        steps.clean_host(self.job)
        self.job.quiet("rdma link delete rxe0; rdma link delete siw0; modprobe -r siw siw_strict; "
                       f"modprobe {module} && rdma link add siw0 type siw netdev eth0")
        for line in ("config set nvme.iwarp on", f"config set iwarp.crc {crc}", "config save"):
            assert uart_dialogue.ask(self.job.instance, line)[-1].startswith("ok")
        self.job.instance.ask("power-cut")
        self.job.instance.ask("power-on")
        steps.wait_target(self.job)

    def replies(self) -> list[str]:
        """The flag C of each reply of MPA so far: whether FPDUs have CRCs."""
        done = subprocess.run(
            ["tshark", "-r", self.capture, "-o", "tcp.try_heuristic_first:TRUE",
             "-Y", "iwarp_mpa.rep", "-T", "fields", "-e", "iwarp_mpa.crc_flag"],
            check=True, capture_output=True, text=True, timeout=120)
        return done.stdout.split()


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stock]:
    lacks = guest_variant.missing(guest_variant.ensure(guest_variant.PEERS, print))
    if lacks:
        pytest.skip("; ".join(f"no {name}: {why}" for name, why in lacks.items()))
    file = tmp_path_factory.mktemp("iwarp") / "stock.yaml"
    file.write_text(TOPOLOGY.format(guest=guest_variant.PEERS))
    with essd.up(topology=file) as system:
        yield Stock(Job.of(system.instance), system.captures[0])


@pytest.mark.parametrize("module, crc, has_crc", [
    ("siw", "on", True), ("siw", "off", False), ("siw_strict", "off", True)])
def test_what_a_stock_host_writes_it_reads(stock: Stock, module: str, crc: str,
                                           has_crc: bool) -> None:
    stock.use(module, crc)
    known = len(stock.replies())
    before = dict(mgmt.ask(stock.job.instance, "counters")["iwarp"])
    device = steps.connect(stock.job)
    stock.job.quiet(FIO.format(device=device, size="4m"))
    steps.disconnect(stock.job)
    grown = {name: value - before[name] for name, value in
             mgmt.ask(stock.job.instance, "counters")["iwarp"].items() if value != before[name]}
    assert set(grown) == {"fpdus-in", "fpdus-out", "requests", "accepted"}, grown
    assert grown["fpdus-in"] > 1000 and grown["fpdus-out"] > 1000, grown
    flags = stock.replies()[known:]
    assert len(flags) == grown["accepted"] and set(flags) == {str(int(has_crc))}, flags


def test_writes_go_on_after_the_cable_was_pulled(stock: Stock) -> None:
    job = stock.job
    stock.use("siw", "on")
    device = steps.connect(job, options=OPTIONS)
    job.quiet(START.format(device=device))
    time.sleep(1)
    assert job.result("[ -e /tmp/fio.end ]", check=False).status != 0
    job.instance.ask("port", port=0, plugged=False)
    time.sleep(4)       # longer than the keep-alive time-outs of both sides
    job.instance.ask("port", port=0, plugged=True)
    job.quiet(WAIT)
    assert job.device() == device
    steps.clean_host(job)
