#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The TCP engine (net/tcp) beside the kernel of this computer: the same peers, the same bytes.

Makes a network namespace of its own, in which the program stacks_tun has a TUN device.  Exits with
77 (skipped) where a namespace or a TUN device cannot be made.
"""
import subprocess
import sys

from kernel_peer import LIMIT_S, main, run

SEEDS = 400


def inside(tool: str) -> None:
    with subprocess.Popen([tool, "tun0", str(SEEDS)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            if process.stdout.readline() != "ready\n":
                raise SystemExit("stacks_tun did not start")
            run("ip", "link", "set", "tun0", "up")
            run("ip", "addr", "add", "10.88.0.2/24", "dev", "tun0")
            process.communicate("\n", timeout=LIMIT_S)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise SystemExit(f"stacks_tun failed with {process.returncode}")


if __name__ == "__main__":
    sys.exit(main(__file__, inside))
