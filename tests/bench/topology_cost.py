#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the parts of a topology cost when nobody uses them (docs/topologies.md).

    PYTHONPATH=tools ~/.cache/essd/python-*/bin/python tests/bench/topology_cost.py FILE

Starts the topology, waits until everything can be used, and looks for a minute.  Memory
is each process's own and its share of what it shares; CPU is in percent of a core.
"""

import re
import statistics
import sys
import time
from pathlib import Path

import essd
from essd.base import cpu

QUIET_S = 60.0


def memory_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    match = re.search(r"^Pss: +(\d+) kB", text, re.M)
    assert match
    return int(match[1]) / 1024


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: topology_cost.py FILE")
    with essd.up(topology=sys.argv[1]) as system:
        system.wait_ready(1800)
        config = system.instance.config
        pids = {name: int(part["pid"]) for name, part in system.status()["parts"].items()}
        before, begin = {name: cpu.seconds(pid) for name, pid in pids.items()}, time.monotonic()
        time.sleep(QUIET_S)
        passed = time.monotonic() - begin
        load = {name: 100 * (cpu.seconds(pid) - before[name]) / passed
                for name, pid in pids.items()}
        memory = {name: memory_mib(pid) for name, pid in pids.items()}
    for kind, names in (("drive", config.drives), ("host", config.hosts),
                        ("switch", config.switches), ("everything", {})):
        if kind == "everything":
            print(f"{kind}: {sum(memory.values()):.0f} MiB, {sum(load.values()):.2f}% of a core")
        elif names:
            sizes, loads = [memory[name] for name in names], [load[name] for name in names]
            print(f"one {kind} of {len(names)}: {statistics.median(sizes):.0f} MiB "
                  f"({min(sizes):.0f} to {max(sizes):.0f}), {statistics.median(loads):.2f}% "
                  f"({min(loads):.2f} to {max(loads):.2f})")


if __name__ == "__main__":
    main()
