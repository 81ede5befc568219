# SPDX-License-Identifier: BSD-2-Clause
"""Power cuts while a host writes: what the host has flushed must be there afterwards.

    ./essd python examples/python/power_cut_loop.py [CUTS]
"""

import random
import sys
import time

import essd

# The host writes its number into each block of 4 KiB.  After a flush it notes in a file
# of its own, which outlives the drive's power, how many blocks it has flushed.
WRITER = """i=0
while [ $i -lt 4096 ]; do
  printf '%04d' $i | dd of={device} bs=4k seek=$i conv=sync,notrunc,fsync status=none || break
  i=$((i + 1)); echo $i > /tmp/flushed
done"""
# Prints the number of the first block whose content is another one.
CHECK = """i=0
while [ $i -lt {flushed} ]; do
  found=$(dd if={device} bs=4k skip=$i count=1 iflag=direct status=none | head -c 4)
  [ "$found" = $(printf '%04d' $i) ] || { echo $i; break; }
  i=$((i + 1))
done"""


def run(system: essd.System, cuts: int = 3, seed: int = 1) -> int:
    """Cut the power several times; return how many flushed blocks were verified."""
    host, drive = system.host, system.drives[0]
    moments = random.Random(seed)
    verified = 0
    device = host.connect(drive)
    for number in range(1, cuts + 1):
        host.run("echo 0 > /tmp/flushed")
        host.run(f"({WRITER.format(device=device)}) > /dev/null 2>&1 & echo $! > /tmp/writer")
        time.sleep(moments.uniform(1, 4))
        drive.power_cut()
        flushed = int(host.read("cat /tmp/flushed"))
        drive.power_on()
        drive.wait_ready()
        host.wait_paths(drive, 1)
        host.run("kill $(cat /tmp/writer)", check=False)
        wrong = host.run(CHECK.replace("{flushed}", str(flushed)).replace("{device}", device))
        if wrong.output.strip():
            raise essd.EssdError(f"cut {number}: {flushed} blocks were flushed, and block "
                                 f"{wrong.output.strip()} is not what was written")
        verified += flushed
        print(f"cut {number}: all of {flushed} flushed blocks are there")
    host.disconnect(drive)
    return verified


if __name__ == "__main__":
    with essd.up(size="256M") as new:
        run(new, int(sys.argv[1]) if len(sys.argv) > 1 else 3)
