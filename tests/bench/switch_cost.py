#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The CPU time of the switch for a frame between two stream sockets (docs/switch.md).

    PYTHONPATH=tools ~/.cache/essd/python-*/bin/python tests/bench/switch_cost.py

What this program sends in one system call, the switch reads in one.  The figures are
those of the program without sanitizers, and the least of ROUNDS rounds.
"""

import json
import socket
import struct
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from essd.build import native_build

ROUNDS = 5
# Bytes of a frame, frames in one system call, and frames in a round.
LOADS = ((60, 16, 800_000), (4200, 16, 200_000), (60, 1, 100_000))
START_S = 60
HEAD = bytes.fromhex("020000000002 020000000001 88b5")


def used_s(pid: int) -> float:
    """Time on a processor; the clock ticks of /proc/PID/stat are too coarse."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


def connected(path: Path) -> socket.socket:
    found, end = socket.socket(socket.AF_UNIX), time.monotonic() + START_S
    while found.connect_ex(str(path)) != 0:
        assert time.monotonic() < end, f"{path} does not come"
        time.sleep(0.01)
    return found


def accepted(control: socket.socket, count: int) -> bool:
    control.sendall(b"show\n")
    answer = b""
    while not answer.endswith(b"\n"):
        part = control.recv(1 << 16)
        assert part, "the switch has ended"
        answer += part
    return sum(bool(port["connected"]) for port in json.loads(answer)["return"]["ports"]) == count


def one_round(pid: int, near: socket.socket, far: socket.socket, size: int, burst: int,
              frames: int) -> float:
    """Microseconds for each frame."""
    one = struct.pack(">I", size) + HEAD.ljust(size, b"\0")

    def read_all() -> None:
        left = len(one) * frames
        while left:
            got = len(far.recv(1 << 18))
            assert got, "the switch has ended"
            left -= got
    with ThreadPoolExecutor(1) as pool:
        before = used_s(pid)
        read = pool.submit(read_all)
        for _ in range(frames // burst):
            near.sendall(one * burst)
        read.result()
    return (used_s(pid) - before) / frames * 1e6


def measure(pid: int, folder: Path) -> None:
    near, far = connected(folder / "a"), connected(folder / "b")
    control = connected(folder / "control")
    end = time.monotonic() + START_S
    while not accepted(control, 2):
        assert time.monotonic() < end, "the switch does not take both connections"
        time.sleep(0.01)
    for one in (near, far, control):
        one.settimeout(START_S)
    for size, burst, frames in LOADS:
        least = min(one_round(pid, near, far, size, burst, frames) for _ in range(ROUNDS))
        print(f"frames of {size} bytes, {burst} in one system call: {least:.2f} us")


def main() -> None:
    program = native_build.native_program("fast", "tools/switch/essd-switch", "the switch")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = [word for port in "ab" for word in ("--port", f"listen={folder}/{port}")]
        with subprocess.Popen([program, "--control", folder / "control", *words],
                              stderr=subprocess.DEVNULL) as process:
            try:
                measure(process.pid, folder)
            finally:
                process.terminate()


if __name__ == "__main__":
    main()
