# SPDX-License-Identifier: BSD-2-Clause
"""What NVMe Copy saves: time and bytes on the cable, beside a copy through the host.

The same ranges are copied by one `nvme copy`, and by one `dd` for each range.  The port's
own counters say how many bytes that took.

    ./essd python examples/python/copy_offload.py
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import essd

BLOCK = 512
MIB = 1 << 20
TO = 64 * MIB           # where the copies go; the sources begin at 0


@dataclass(frozen=True)
class Shape:
    """Ranges that are copied at a time."""

    ranges: int
    bytes: int          # of each range

    def __str__(self) -> str:
        unit, size = ("MiB", MIB) if self.bytes >= MIB else ("KiB", 1024)
        return f"{self.bytes // size} {unit} x {self.ranges}"


@dataclass(frozen=True)
class Cost:
    """What one copy takes; of the times, the median."""

    ms: float
    start_ms: float     # of these: the start of the programs
    received: int       # bytes that the drive's port received
    sent: int


# Name; command that copies; command that only starts the programs
Way = tuple[str, Callable[[str, Shape], str], Callable[[Shape], str]]
SHAPES = (Shape(1, 8 * 1024), Shape(16, 2 * MIB))


def by_drive(device: str, shape: Shape) -> str:
    """The command that lets the drive copy."""
    blocks = shape.bytes // BLOCK
    # The sources are apart from each other, as the parts of a file can be.
    sources = ",".join(str(2 * i * blocks) for i in range(shape.ranges))
    counts = ",".join([str(blocks - 1)] * shape.ranges)
    return f"nvme copy {device} --sdlba={TO // BLOCK} --slbs={sources} --blocks={counts}"


def by_host(device: str, shape: Shape) -> str:
    """The command that copies the same by reading and writing."""
    size = shape.bytes
    return " && ".join(
        f"dd if={device} of={device} bs={size} count=1 skip={2 * i} seek={TO // size + i} "
        "iflag=direct oflag=direct conv=notrunc status=none" for i in range(shape.ranges))


def start_by_drive(shape: Shape) -> str:
    """As many starts of the same program, without a copy."""
    return "nvme version"


def start_by_host(shape: Shape) -> str:
    return " && ".join(["dd if=/dev/null of=/dev/null status=none"] * shape.ranges)


def octets(drive: essd.Drive) -> tuple[int, int]:
    counters = drive.port(0).counters()
    return counters["aOctetsReceivedOK"], counters["aOctetsTransmittedOK"]


def times_ms(host: essd.Host, commands: tuple[str, str], times: int) -> list[float]:
    """The median time of each command by the host's clock; they run in turn."""
    # EPOCHREALTIME, unlike date, needs no program that has to be started.
    one, other = (f"{{ {command}; }} > /dev/null || exit 1" for command in commands)
    script = (f"i=0; while [ $i -lt {times} ]; do a=${{EPOCHREALTIME/./}}; {one}; "
              f"b=${{EPOCHREALTIME/./}}; {other}; c=${{EPOCHREALTIME/./}}; "
              "echo $((b - a)) $((c - b)); i=$((i + 1)); done")
    lines = host.read(["bash", "-c", script], timeout_s=900).splitlines()
    rows = [[int(word) / 1000 for word in line.split()] for line in lines]
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def measure(host: essd.Host, drive: essd.Drive, command: str, start: str,
            times: int) -> Cost:
    host.run(command)       # loads the program
    before = octets(drive)
    ms, start_ms = times_ms(host, (command, start), times)
    after = octets(drive)
    return Cost(ms, start_ms, (after[0] - before[0]) // times,
                (after[1] - before[1]) // times)


def checksum(host: essd.Host, device: str, shape: Shape, first: int, step: int) -> str:
    """Of so many ranges: the first one, and each `step` ranges after it."""
    places = " ".join(str(first + step * i) for i in range(shape.ranges))
    return host.read(f"for i in {places}; do dd if={device} bs={shape.bytes} skip=$i count=1 "
                     "iflag=direct status=none; done | sha256sum")


def check_copy(host: essd.Host, device: str, shape: Shape) -> None:
    """EssdError if the copies differ from their sources."""
    if checksum(host, device, shape, 0, 2) != checksum(host, device, shape,
                                                       TO // shape.bytes, 1):
        raise essd.EssdError(f"{shape}: the copy differs from its source")


def run(system: essd.System, times: tuple[int, int] = (30, 3)) -> dict[str, tuple[Cost, Cost]]:
    """Return the costs of each shape: copied by the drive, and through the host."""
    host, drive = system.host, system.drives[0]
    device = host.connect(drive, 0)
    found = {}
    ways: tuple[Way, ...] = (("NVMe Copy", by_drive, start_by_drive),
                             ("dd", by_host, start_by_host))
    for shape, repeats in zip(SHAPES, times, strict=True):
        costs = []
        for name, copy, start in ways:
            # The sources are new each time, so that an old copy is not taken for one.
            host.run(f"dd if=/dev/urandom of={device} bs=1M count=64 oflag=direct "
                     "conv=notrunc status=none")
            cost = measure(host, drive, copy(device, shape), start(shape), repeats)
            check_copy(host, device, shape)
            print(f"{shape!s:>10}  {name:>9}: {cost.ms:8.1f} ms ({cost.start_ms:.1f} to start "
                  f"programs), {cost.received:>10} bytes received, {cost.sent:>10} sent")
            costs.append(cost)
        found[str(shape)] = (costs[0], costs[1])
    host.disconnect(drive)
    return found


if __name__ == "__main__":
    with essd.up(size="256M") as new:
        run(new)
