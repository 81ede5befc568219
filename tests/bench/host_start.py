#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How long a Linux host takes to start and to connect, and its CPU time (docs/hosts.md).

    PYTHONPATH=tools ~/.cache/essd/python-*/bin/python tests/bench/host_start.py [KIND...]

A KIND is `uml` or `stock`; both are the default.  What is missing is built first, and the
drive is ready before the host's power comes on, so neither counts.  Each step's figure
counts from that moment on and is the median of five starts: until the first line of the
first program, until commands can be run, and until a drive's block device is there.  The
CPU time is that of all processes of the host: kernel and relay, or QEMU.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import essd
from essd.base import cpu
from essd.instance.config import STOCK, UML

STARTS = 5
STEPS = ("user space", "ready", "connected")
FIRST_LINE = "essd-guest: initramfs"
POLL_S = 0.005
PATIENCE_S = 300
TOPOLOGY = """
drives:
  d: {{size: 256M, port0: 10.0.0.10/24}}
hosts:
  h: {{kind: {kind}, card0: 10.0.0.1/24}}
cables:
  - d:0 - h:0
"""


def start(host: essd.Host, drive: essd.Drive) -> list[tuple[float, float]]:
    """Start the host, which empties its console's log; both times until the end of each step."""
    host.power_cut()
    begin, found = time.monotonic(), []

    def step_ends() -> None:
        found.append((time.monotonic() - begin, cpu.tree_seconds(host.status()["pids"])))

    host.power_on()
    while FIRST_LINE not in host.console_log():
        if time.monotonic() > begin + PATIENCE_S:
            sys.exit(f"no line {FIRST_LINE!r} within {PATIENCE_S} s: {host.console_path}")
        time.sleep(POLL_S)
    step_ends()
    host.wait_ready(PATIENCE_S)
    step_ends()
    host.connect(drive, options="--nr-io-queues=1")
    step_ends()
    return found


def measure(kind: str) -> None:
    with tempfile.TemporaryDirectory(prefix="essd-bench-") as folder:
        file = Path(folder) / "start.yaml"
        file.write_text(TOPOLOGY.format(kind=kind))
        with essd.up(topology=file) as system:
            host, drive = system.host, system.drives[0]
            drive.wait_ready()
            host.wait_ready(PATIENCE_S)
            starts = [start(host, drive) for _ in range(STARTS)]
    for step, *figures in zip(STEPS, *starts, strict=True):
        seconds, used = (statistics.median(column) for column in zip(*figures, strict=True))
        print(f"{kind}: {step} after {seconds:.2f} s, CPU {used:.2f} s", flush=True)


def main() -> None:
    kinds = sys.argv[1:] or [UML, STOCK]
    if unknown := set(kinds) - {UML, STOCK}:
        sys.exit(f"a host is {UML} or {STOCK}, not {', '.join(sorted(unknown))}")
    for kind in kinds:
        measure(kind)


if __name__ == "__main__":
    main()
