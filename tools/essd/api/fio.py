# SPDX-License-Identifier: BSD-2-Clause
"""fio in a host, with the time and the latency of each of its I/Os.

The averages that fio prints hide what happens at one moment.  Here each I/O is known,
so that a program can ask how long I/O stood still after an event, or how fast it was
before and after.
"""

import json
import shlex
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.errors import EssdError
from .background import Background, POLL_S

if TYPE_CHECKING:
    from .host import Host

CLOCK_TRIES = 5
START_S = 120.0         # for fio to start its first I/O
FOREVER_S = 24 * 3600
STOPPED = 128           # fio's exit status after SIGINT
END_S = 180.0           # for fio to end after its run time, and to verify


@dataclass(frozen=True)
class Io:
    """One I/O that has completed."""

    at: float           # when, on the clock of time.monotonic()
    latency_s: float
    size: int           # bytes


def percentile(values: Iterable[float], percent: float) -> float:
    """The value that `percent` of the values do not exceed; 0 if there is none."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[int(rank) - 1]


@dataclass(frozen=True)
class Clocks:
    """One moment on time.monotonic() and on a host's own clock."""

    here: float
    there: float

    @classmethod
    def now(cls, host: "Host") -> "Clocks":
        """Both clocks, as exactly as the fastest of several short commands allows."""
        best: tuple[float, Clocks] | None = None
        for _ in range(CLOCK_TRIES):
            before = time.monotonic()
            there = float(host.read("/usr/bin/date +%s.%N"))
            after = time.monotonic()
            if best is None or after - before < best[0]:
                best = (after - before, cls((before + after) / 2, there))
        assert best is not None
        return best[1]


class Load:
    """What fio has done."""

    def __init__(self, report: dict[str, Any], ios: list[Io], status: int,
                 output: str) -> None:
        self.report = report        # fio's own report, as its JSON has it
        self.ios = ios              # in the order of their completion
        self.status = status        # fio's exit status; not 0 after an error
        self.output = output        # what fio has printed beside its report

    @property
    def errors(self) -> int:
        """The errors that fio has counted, failed verifications included."""
        return sum(int(job.get("total_err", 0)) or int(job.get("error", 0) != 0)
                   for job in self.report.get("jobs", []))

    def between(self, begin: float, end: float) -> "Load":
        """The I/Os that completed in this time, on the clock of time.monotonic()."""
        return Load(self.report, [io for io in self.ios if begin <= io.at < end],
                    self.status, self.output)

    @property
    def iops(self) -> float:
        """I/Os per second, from the first to the last I/O."""
        if len(self.ios) < 2:
            return 0.0
        return (len(self.ios) - 1) / max(self.ios[-1].at - self.ios[0].at, 1e-9)

    @property
    def mb_s(self) -> float:
        """Megabytes (10^6 bytes) per second, from the first to the last I/O."""
        if len(self.ios) < 2:
            return 0.0
        return (sum(io.size for io in self.ios[1:]) / 1e6
                / max(self.ios[-1].at - self.ios[0].at, 1e-9))

    def latency_ms(self, percent: float) -> float:
        """The latency that so many per cent of the I/Os did not exceed."""
        return 1e3 * percentile((io.latency_s for io in self.ios), percent)

    def pause(self, begin: float, end: float) -> tuple[float, float]:
        """The longest time without a completed I/O: when it began, and how long it was."""
        moments = [begin, *(io.at for io in self.ios if begin <= io.at < end), end]
        length, at = max((after - before, before)
                         for before, after in zip(moments, moments[1:], strict=False))
        return at, length

    def per_second(self, begin: float, step_s: float = 1.0) -> list[tuple[float, float]]:
        """(Seconds since `begin`, I/Os per second) for each step of the whole run."""
        if not self.ios:
            return []
        counts = [0] * (int((self.ios[-1].at - begin) / step_s) + 1)
        for io in self.ios:
            if io.at >= begin:
                counts[int((io.at - begin) / step_s)] += 1
        # The last step is not complete.
        return [(number * step_s, count / step_s)
                for number, count in enumerate(counts[:-1] or counts)]


class Fio:
    """fio running in a host, with a log of each I/O.

        fio = essd.Fio(host, device, rw="randread", runtime=20)
        ...
        load = fio.wait()
        print(load.iops, load.latency_ms(99))

    Without a `runtime` it runs until stop().

    The options are fio's own; True stands for an option without a value.  `direct` and
    `ioengine` are set already, and so is `time_based`.
    """

    def __init__(self, host: "Host", filename: str, **options: Any) -> None:
        self.host = host
        chosen = {"name": "fio", "filename": filename, "ioengine": "libaio", "direct": 1,
                  "time_based": True, "runtime": FOREVER_S, **options}
        self.runtime_s = float(str(chosen["runtime"]).rstrip("s"))
        words = [f"--{key}" + ("" if value is True else f"={value}")
                 for key, value in chosen.items() if value is not False]
        self.folder = host.read("mktemp -d /tmp/fio.XXXXXX").strip()
        words += ["--output-format=json", f"--output={self.folder}/report",
                  f"--write_lat_log={self.folder}/log", "--log_unix_epoch=1",
                  f"--exec_prerun=touch {self.folder}/running"]
        self.begin = Clocks.now(host)
        self.background = Background(host, f"cd {self.folder} && fio {shlex.join(words)}")
        self.wait_running()

    def wait_running(self) -> None:
        """Wait until fio is about to start its first I/O, or has ended with an error."""
        deadline = time.monotonic() + START_S
        while self.host.run(f"[ -e {self.folder}/running ]", check=False).status != 0 \
                and self.background.poll() is None:
            if time.monotonic() > deadline:
                raise EssdError(f"in {self.host.name}: fio has not started within "
                                f"{START_S:.0f} s: {self.background.output.strip()}")
            time.sleep(POLL_S)

    def stop(self) -> Load:
        """End fio now, which is no error, and return what it has done."""
        self.background.kill("INT")
        load = self.wait(END_S)
        if load.status == STOPPED:
            load.status = 0
        return load

    def wait(self, timeout_s: float | None = None) -> Load:
        """Wait until fio ends; an error of an I/O is in the result."""
        done = self.background.wait(self.runtime_s + END_S if timeout_s is None else timeout_s,
                                    check=False)
        end = Clocks.now(self.host)
        text = self.host.read(f"cat {self.folder}/report", check=False)
        try:
            report = json.loads(text[text.index("{"):text.rindex("}") + 1])
        except ValueError:
            raise EssdError(f"in {self.host.name}: fio has not run: "
                            f"{(done.output or text).strip().splitlines()[-1:]}") from None
        log = self.host.read(f"cat {self.folder}/log_clat.*.log", check=False)
        self.host.run(f"rm -rf {self.folder}")
        return Load(report, self.parse(log, end), done.status, done.output)

    def parse(self, log: str, end: Clocks) -> list[Io]:
        """Read lines of "milliseconds, nanoseconds, direction, bytes, ...".

        The clock of an emulated host can be several per cent too fast or too slow.
        """
        found = []
        passed = end.there - self.begin.there
        scale = (end.here - self.begin.here) / passed if passed > 0 else 1.0
        for line in log.splitlines():
            words = line.split(",")
            if len(words) >= 4 and words[0].strip().isdigit():
                since_begin = int(words[0]) / 1e3 - self.begin.there
                found.append(Io(self.begin.here + scale * since_begin,
                                scale * int(words[1]) / 1e9, int(words[3])))
        return sorted(found, key=lambda io: io.at)
