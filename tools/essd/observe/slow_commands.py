# SPDX-License-Identifier: BSD-2-Clause
"""Which commands of hosts waited longest for the flash, and for what."""

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

KEPT = 64       # commands of each reason, of which those shown do not overlap
SHOWN = 10
SHORTEST_US = 10.0      # of those shown


@dataclass(frozen=True, order=True)
class Slow:
    """A command that has ended."""

    waited_us: float            # for the reason that it is listed under
    begun_ns: int
    end_ns: int
    name: str = field(compare=False)
    args: dict[str, Any] = field(compare=False)     # as its own slice has them

    def overlaps(self, other: "Slow") -> bool:
        return self.begun_ns < other.end_ns and other.begun_ns < self.end_ns


@dataclass
class Reason:
    """What commands have waited for, such as "die: ERASE for collection"."""

    count: int = 0
    total_us: float = 0.0
    slowest: list[Slow] = field(default_factory=list)

    def take(self, slow: Slow) -> None:
        self.count += 1
        self.total_us += slow.waited_us
        if len(self.slowest) < KEPT:
            heapq.heappush(self.slowest, slow)
        else:
            heapq.heappushpop(self.slowest, slow)

    def shown(self) -> list[Slow]:
        """The slowest, one of those that waited at the same time."""
        found: list[Slow] = []
        for slow in sorted(self.slowest, reverse=True):
            if len(found) < SHOWN and slow.waited_us >= SHORTEST_US and \
                    not any(map(slow.overlaps, found)):
                found.append(slow)
        return found


@dataclass
class SlowCommands:
    """The commands that waited, by reason."""

    reasons: dict[str, Reason] = field(default_factory=lambda: defaultdict(Reason))
    longest: Slow | None = None         # of all the reasons of a command together

    def take(self, name: str, begun_ns: int, end_ns: int, waits: dict[str, float],
             args: dict[str, Any]) -> None:
        for label, us in waits.items():
            self.reasons[label].take(Slow(us, begun_ns, end_ns, name, args))
        total_us = sum(waits.values())
        if total_us > (self.longest.waited_us if self.longest is not None else 0):
            self.longest = Slow(total_us, begun_ns, end_ns, name, args)

    def ordered(self) -> list[tuple[str, Reason]]:
        """The reasons, that of the longest wait first."""
        return sorted(self.reasons.items(), key=lambda item: -max(item[1].slowest).waited_us)

    def table(self) -> Any:
        from rich.table import Table
        table = Table(box=None, pad_edge=False)
        table.add_column("commands waited for")
        for heading in ("count", "mean us", "longest us"):
            table.add_column(heading, justify="right")
        for label, reason in self.ordered():
            table.add_row(label, str(reason.count),
                          f"{reason.total_us / reason.count:.1f}",
                          f"{max(reason.slowest).waited_us:.1f}")
        return table

    def words(self, first_ns: int) -> str:
        """The command that waited longest, and where it is on the page's time axis."""
        slow = self.longest
        if slow is None:
            return ""
        reasons = ", ".join(f"{us:g} us for {label}"
                            for label, us in slow.args["waited us"].items())
        return (f"{slow.name} request {slow.args['request']} waited longest for the flash: "
                f"{reasons}. It begins at {(slow.begun_ns - first_ns) / 1e9:.6f} s of the "
                "page's time axis")
