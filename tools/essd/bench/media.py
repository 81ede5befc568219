# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --nand SIZE`: a Linux host, a drive with NAND flash and one without.

Both drives run at the same time, each on a cable of its own, and each workload runs
first on one drive and then on the other.  So other load on the machine affects both
drives alike, and the ratio of their CPU times can be trusted.

All blocks are first written sequentially, and the sequential workloads run before the
random ones, because random writes spread the blocks over the flash.
"""

import dataclasses
from typing import TYPE_CHECKING

from ..base import interrupts, paths, show
from ..base.errors import EssdError
from ..instance.instance import Instance
from ..instance.steps import Job
from ..observe.losses import Losses
from ..setup import setup
from ..topology import reader as topology_yaml, setup as topology_setup
from ..topology.topology import Topology
from . import bench as bench_module
from .bench import Row
from .report import Result

if TYPE_CHECKING:
    from .bench import Output

NAME = "bench"                  # of the instance
DRIVES = ("nand", "block")
# In the order in which they run.
WORKLOADS = sorted((*bench_module.WORKLOADS,
                    ("4k-read-qd64", "--rw=read --bs=4k --iodepth=64"),
                    ("4k-write-qd64", "--rw=write --bs=4k --iodepth=64")),
                   key=lambda workload: "rand" in workload[0])


def topology_text(nand: str, mtu: int) -> str:
    """The topology file: two drives, and a host with a cable to each.

    The drives are in different networks, because the host has two cards.
    """
    return (f"drives:\n  nand: {{nand: \"{nand}\", mtu: {mtu}, port0: 10.0.0.10/24}}\n"
            f"  block: {{block: yes, mtu: {mtu}, port0: 10.0.2.10/24}}\n"
            "hosts:\n  host: {}\n"
            "cables:\n  - host - nand:0\n  - host - block:0\n")


def cost_ratios(rows: list[Row]) -> dict[str, float]:
    """CPU time of the drive with NAND divided by the other's, for each workload."""
    cost = {(row.workload, row.target): row.target_cpu for row in rows}
    return {row.workload: cost[row.workload, "nand"] / cost[row.workload, "block"]
            for row in rows if row.target == "nand"}


def command(seconds: int, rounds: int, only: str, mtu: int, nand: str,
            output: "Output", earlier: list[Result] | None) -> None:
    """Run `essd bench --nand` with a Linux host."""
    if rounds < 1:
        raise EssdError(f"--rounds {rounds}: use 1 or more")
    wanted = bench_module.wanted_workloads(only, WORKLOADS)
    topology = topology_yaml.load(topology_text(nand, mtu), f"--nand {nand}", paths.TOP)
    with Instance(NAME).claimed("essd bench"):
        rows, lost = run_new(topology, seconds, rounds, wanted)
    if not output.as_json:
        bench_module.show_rows(rows)
        for workload, ratio in cost_ratios(rows).items():
            show.line(f"{workload}: the drive with NAND flash takes {100 * ratio:.0f}% of the "
                      "other's CPU")
    output.write([dataclasses.asdict(row) for row in rows], earlier,
                 "essd bench --nand: NAND flash beside a block medium, with a Linux host")
    bench_module.check_known(lost)


def run_new(topology: Topology, seconds: int, rounds: int,
            wanted: list[tuple[str, str]]) -> tuple[list[Row], Losses]:
    """Measure both drives, of an instance whose name is claimed, and delete them."""
    instance = Instance(NAME)
    try:
        topology_setup.start(topology, NAME, new=True, capture=False, capture_bytes=0,
                             instance=instance)
        jobs = [Job.on(instance, drive) for drive in DRIVES]
        return bench_module.run(jobs, seconds, rounds, wanted, lambda row: show.line(
            f"{row.workload}, {row.target}: {row.iops:.0f} IOPS"))
    finally:
        with interrupts.ignored():
            instance.stop_started()
            setup.forget(NAME)
