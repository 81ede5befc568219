# SPDX-License-Identifier: BSD-2-Clause
"""A file of trace events (JSON) for Perfetto's page: tracks, slices, arrows, counters.

Three habits of that page have shaped this file.  It names an asynchronous track after
its slices and never as the file says, so slices that overlap are put on numbered tracks
of one name instead, which it calls threads.  It draws arrows only between slices on such
tracks.  And it sorts processes by their number of slices, so what is to be seen first
has no process: the page shows it above all of them.
"""

import json
from dataclasses import dataclass, field
from typing import IO, Any


@dataclass(frozen=True)
class Place:
    """A moment on a track: the slice that is there has an arrow."""

    time_ns: int
    pid: int
    tid: int


@dataclass
class TraceFile:
    """Writes trace events one by one, so that a long trace needs no memory."""

    out: IO[str]
    count: int = 0
    arrows: int = 0
    first_ns: int | None = None         # where the page's time axis has its zero
    processes: set[int] = field(default_factory=set)
    tracks: set[tuple[int, int]] = field(default_factory=set)
    lanes: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.out.write('{"displayTimeUnit": "ns", "traceEvents": [')

    def put(self, **entry: Any) -> None:
        self.out.write(("," if self.count else "") + "\n" + json.dumps(entry))
        self.count += 1

    def put_at(self, time_ns: int, **entry: Any) -> None:
        if self.first_ns is None or time_ns < self.first_ns:
            self.first_ns = time_ns
        self.put(ts=time_ns / 1000, **entry)

    def process(self, pid: int, name: str) -> None:
        if pid not in self.processes:
            self.processes.add(pid)
            self.put(ph="M", name="process_name", pid=pid, tid=0, args={"name": name})

    def track(self, pid: int, tid: int, name: str) -> None:
        if (pid, tid) not in self.tracks:
            self.tracks.add((pid, tid))
            self.put(ph="M", name="thread_name", pid=pid, tid=tid, args={"name": name})
            self.put(ph="M", name="thread_sort_index", pid=pid, tid=tid,
                     args={"sort_index": tid})

    def lane(self, pid: int, tid: int, name: str, begun_ns: int, end_ns: int) -> int:
        """The first track of this name, from number `tid` on, that is free at that time.

        Slices come in the order of their ends.
        """
        ends = self.lanes.setdefault((pid, tid), [])
        for number, busy_until_ns in enumerate(ends):
            if busy_until_ns <= begun_ns:
                ends[number] = end_ns
                break
        else:
            number = len(ends)
            ends.append(end_ns)
            self.track(pid, tid + number, name)
        return tid + number

    def slice(self, pid: int, tid: int, name: str, begun_ns: int, end_ns: int,
              args: dict[str, Any]) -> None:
        self.put_at(begun_ns, ph="X", pid=pid, tid=tid, name=name,
                    dur=(end_ns - begun_ns) / 1000, args=args)

    def instant(self, pid: int, tid: int, scope: str, name: str, time_ns: int) -> None:
        self.put_at(time_ns, ph="i", s=scope, pid=pid, tid=tid, name=name)

    def counter(self, pid: int, name: str, unit: str, value: float, time_ns: int) -> None:
        """The page shows the unit behind the name."""
        self.put_at(time_ns, ph="C", pid=pid, tid=0, name=name, args={unit: value})

    def arrow(self, name: str, places: list[Place]) -> None:
        """Join slices, each of which is in the file already, at moments that increase.

        Each end joins the innermost slice that is on its track at that moment.  The page
        lets an arrow lead from the slice that began first, whichever end is named first.
        """
        if len(places) < 2:
            return
        self.arrows += 1
        last = len(places) - 1
        for number, place in enumerate(places):
            phase = "s" if number == 0 else "f" if number == last else "t"
            self.put_at(place.time_ns, ph=phase, id=self.arrows, cat="wait", name=name,
                        pid=place.pid, tid=place.tid,
                        **({"bp": "e"} if phase == "f" else {}))

    def headline(self, track: str, name: str, begun_ns: int, end_ns: int,
                 args: dict[str, Any]) -> None:
        """A slice on a track above all processes; slices of one track must not overlap."""
        key = {"cat": "headline", "id": f"{track} {begun_ns}", "pid": 0, "tid": 0}
        self.put_at(begun_ns, ph="b", name=track, args={}, **key)
        self.put_at(begun_ns, ph="b", name=name, args=args, **key)
        self.put_at(end_ns, ph="e", name=name, args={}, **key)
        self.put_at(end_ns, ph="e", name=track, args={}, **key)

    def end(self) -> None:
        self.out.write("\n]}\n")
