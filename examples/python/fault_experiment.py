# SPDX-License-Identifier: BSD-2-Clause
"""An experiment with fault rules: what does the loss of frames cost a reader?

    ./essd python examples/python/fault_experiment.py
"""

import time

import essd

LOSSES = (0.0, 0.01, 0.03)      # probability that a frame of the drive is lost


def read_mib(host: essd.Host, device: str, mib: int) -> float:
    """Seconds that it takes to read so much, 64 KiB at a time."""
    begin = time.monotonic()
    host.run(f"dd if={device} of=/dev/null bs=64k count={mib * 16} iflag=direct")
    return time.monotonic() - begin


def run(system: essd.System, mib: int = 4) -> dict[float, int]:
    """Read with each loss; return how many frames were dropped, by probability."""
    host, drive = system.host, system.drives[0]
    device = host.connect(drive)
    dropped = {}
    print("  loss  seconds  frames dropped  packets sent again")
    for loss in LOSSES:
        if loss:
            drive.faults.add(f"wire direction=out when probability={loss} seed=1 do drop",
                             "loss")
        with drive.trace("roce") as trace:
            seconds = read_mib(host, device, mib)
        again = sum(event.args["packets"] for event in trace.events
                    if event.kind.name == "RETRANSMIT")
        dropped[loss] = drive.faults["loss"].fired if loss else 0
        print(f"{loss:6.2f}  {seconds:7.1f}  {dropped[loss]:14}  {again:18}")
        drive.faults.remove()
    host.disconnect(drive)
    return dropped


if __name__ == "__main__":
    with essd.up(size="256M") as new:
        run(new)
