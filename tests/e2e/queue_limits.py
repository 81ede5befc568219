# SPDX-License-Identifier: BSD-2-Clause
"""What Linux makes of a namespace's preferred and atomic sizes (docs/nvme.md)."""

import re

from essd.instance.steps import Job

NAMES = ("physical_block_size", "minimum_io_size", "optimal_io_size", "discard_granularity",
         "atomic_write_unit_max_bytes")


def limits(job: Job, device: str) -> dict[str, list[int]]:
    """The five sizes of a multipath device and of each of its paths, by name."""
    head = device.removeprefix("/dev/")
    subsystem, nsid = head.rsplit("n", 1)
    shown = job.quiet(f"cd /sys/block && grep . $(printf '%s/queue/%s ' $(for d in {head} "
                      f"{subsystem}c*n{nsid}; do for n in {' '.join(NAMES)}; do "
                      "echo $d $n; done; done))")
    found: dict[str, list[int]] = {}
    for line in shown.splitlines():
        name, value = line.split(":")
        found.setdefault(name.split("/")[0], []).append(int(value))
    assert all(len(sizes) == len(NAMES) for sizes in found.values()), shown
    return found


def check(job: Job, device: str, *sizes: int) -> None:
    """The paths have these sizes, and the multipath device all but the atomic one."""
    found = limits(job, device)
    head = found.pop(device.removeprefix("/dev/"))
    assert head == [*sizes[:-1], 0], (head, sizes)
    assert found and all(re.fullmatch(r"nvme\d+c\d+n\d+", name) for name in found), found
    assert all(path == list(sizes) for path in found.values()), (found, sizes)
