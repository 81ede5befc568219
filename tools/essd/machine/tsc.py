# SPDX-License-Identifier: BSD-2-Clause
"""How fast the time stamp counter (TSC) of an emulated host counts.

Under TCG the guest's TSC is this machine's own one, and no CPUID leaf says how fast that
is.  Linux would measure it with the HPET while it boots.  On a busy machine the HPET goes
on while the virtual CPU does not run; then Linux takes the TSC for slower than it is, and
its clock is fast for ever.  So the frequency is measured here and handed to the kernel.

What counts is how many ticks a second of this machine's clock has, because QEMU's timers
follow that clock.  The nominal frequency of CPUID leaf 15h or of /proc/cpuinfo, which many
virtual machines do not have, may differ from it, and the current one of a core has nothing
to do with the TSC.
"""

import ctypes
import functools
import mmap
import itertools
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ..base.errors import EssdError

CPUINFO = Path("/proc/cpuinfo")
# rdtsc; shl $32, %rdx; or %rdx, %rax; ret
READ_TSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")
COUNT = 8                       # readings
APART_NS = 15_000_000           # between two of them
READINGS = 1000                 # most attempts at one reading
AGREEING = 1 / 1000             # how far measurements of one frequency may differ
NEAR_NS = 1000                  # width of a reading that is good enough
# The kernel's flags of a TSC that counts at one speed and never stops.
STEADY = {"constant_tsc", "nonstop_tsc"}


def is_steady() -> bool:
    """Whether this machine's TSC counts at one speed, whatever its cores do."""
    if platform.machine() != "x86_64":
        return False
    for line in CPUINFO.read_text(encoding="utf-8").splitlines():
        if line.startswith("flags"):
            return set(line.split()) >= STEADY
    return False


def reading(read_tsc: Callable[[], int]) -> tuple[int, int]:
    """The clock in nanoseconds and the TSC, both of the same moment.

    The TSC is read between two looks at the clock.  An attempt in which this process had
    to wait is a wide one, and the narrowest one counts.
    """
    best = (1 << 62, 0, 0)
    for _ in range(READINGS):
        before = time.monotonic_ns()
        ticks = read_tsc()
        width = time.monotonic_ns() - before
        best = min(best, (width, before + width // 2, ticks))
        if width < NEAR_NS:
            break
    return best[1], best[2]


class UnsteadyError(EssdError):
    """The readings do not belong to one frequency."""


def middle_khz(readings: Sequence[tuple[int, int]]) -> int:
    """The median of what each pair of readings says (the Theil-Sen estimator).

    A reading in which the machine stood still spoils its own pairs only, and those are
    less than half of all with two such readings of eight.
    """
    found = [(ticks - first) * 1e6 / (now - begin)
             for (begin, first), (now, ticks) in itertools.combinations(readings, 2)
             if now > begin]
    if not found:
        raise UnsteadyError("the clock does not go on")
    khz = statistics.median(found)
    near = sum(abs(one - khz) <= khz * AGREEING for one in found)
    if khz <= 0 or 2 * near <= len(found):
        raise UnsteadyError(f"only {near} of {len(found)} measurements agree")
    return round(khz)


def measure_khz() -> int:
    """Measure this machine's TSC against its monotonic clock, which QEMU uses."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE
                   | mmap.PROT_EXEC) as page:
        page.write(READ_TSC)
        start = ctypes.c_char.from_buffer(page)
        read_tsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(start))
        readings = [reading(read_tsc)]
        for _ in range(COUNT - 1):
            time.sleep(APART_NS / 1e9)
            readings.append(reading(read_tsc))
        del start, read_tsc     # The page is closed only without references to it.
    return middle_khz(readings)


@functools.cache
def kernel_words() -> tuple[str, ...]:
    """What an emulated guest's kernel is told about its clock.

    Without a steady TSC, where memory must not be executed, or when the measurements do not
    agree, the clock is the HPET, which is always right and slow to read.
    """
    if is_steady():
        try:
            return (f"tsc_early_khz={measure_khz()}",)
        except (OSError, UnsteadyError):
            pass
    return ("clocksource=hpet",)
