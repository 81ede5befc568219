# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --growth`: how the cost of an I/O grows, one thing at a time.

Each axis is one thing of which there can be few or many: queue pairs, namespaces, data on
the drive, drives, bytes in a frame, ports.  The axis "hart" has the two kinds of harts
instead (docs/hardware/native-hart.md).  Both ends of an axis run side by side and are
measured in turns, so the ratio of their CPU times can be trusted on a busy machine.
Everything else is the same at both ends, above all the number of commands outstanding.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ..base import show
from ..base.errors import EssdError
from ..instance.config import NATIVE, RISCV
from ..setup.setup import Wish
from . import turns
from .native import Load, SPAN_MIB, build_initiator
from .turns import Row, Side

if TYPE_CHECKING:
    from .bench import Output

ALONE = "4k-randread-qd1"
READ, WRITE = "4k-randread-qd64", "4k-randwrite-qd64"
LARGE = "128k-read-qd64"
QUEUE_DEPTH = 63            # of one queue pair: its 64 entries hold one command less
MANY = 960                  # queue pairs: 60 hosts with 16 each
FILL_ARRAY = "2G"           # small, so that 95% are written soon
FILL_SPAN_MIB = 128         # is written even if only 10% are


@dataclass(frozen=True)
class Axis:
    name: str
    what: str                           # a line above the table
    sides: Callable[[Wish], tuple[Side, Side]]
    workloads: tuple[str, ...] = (READ, WRITE)
    needs_nand: bool = False


def load_axis(few: str, first: Load, many: str, second: Load) -> Callable[[Wish],
                                                                         tuple[Side, Side]]:
    return lambda wish: (Side(few, wish, first), Side(many, wish, second))


def namespaces(wish: Wish) -> tuple[Side, Side]:
    return (Side("1", with_options(wish, namespaces="1")),
            Side("128", with_options(wish, namespaces="128"), Load(namespaces=128)))


def fill(wish: Wish) -> tuple[Side, Side]:
    array = with_options(wish, nand=FILL_ARRAY)
    load = Load(span_mib=FILL_SPAN_MIB)
    return (Side("10%", array, load, fill=10), Side("95%", array, load, fill=95))


def mtu(wish: Wish) -> tuple[Side, Side]:
    return (Side("1500", with_options(wish, mtu=1500)),
            Side("9000", with_options(wish, mtu=9000)))


def drives(wish: Wish) -> tuple[Side, Side]:
    return (Side("1", wish, Load(depth=48)), Side("24", wish, Load(depth=2), drives=24))


def hart(wish: Wish) -> tuple[Side, Side]:
    return Side(RISCV, wish), Side(NATIVE, with_options(wish, hart=NATIVE))


def with_options(wish: Wish, **options: object) -> Wish:
    return Wish(**{**vars(wish), **options})


AXES = (
    Axis("queues", f"queue pairs, {QUEUE_DEPTH} commands outstanding", load_axis(
        "1", Load(depth=QUEUE_DEPTH), str(MANY), Load(60, 16, QUEUE_DEPTH))),
    Axis("busy-queues", f"queue pairs, {MANY} commands outstanding", load_axis(
        "16", Load(1, 16, MANY), str(MANY), Load(60, 16, MANY))),
    Axis("namespaces", "namespaces", namespaces),
    Axis("fill", "part of the NAND array that is written", fill, needs_nand=True),
    Axis("drives", "drives, 48 commands outstanding", drives),
    Axis("mtu", "MTU", mtu, (READ, LARGE)),
    Axis("hart", "what executes the firmware", hart, (ALONE, READ, WRITE, LARGE)),
    Axis("ports", "ports, 2 hosts", load_axis(
        "1", Load(2, depth=QUEUE_DEPTH), "2", Load(2, depth=QUEUE_DEPTH, ports=2))),
)


def wanted_axes(only: str, is_block: bool) -> list[Axis]:
    found = [axis for axis in AXES if only.lower() in axis.name]
    if not found:
        raise EssdError(f"--only {only}: no axis contains this text; use "
                        f"{', '.join(axis.name for axis in AXES)}")
    if is_block and only and all(axis.needs_nand for axis in found):
        raise EssdError(f"--only {only}: this axis is about NAND flash: not with --block")
    return [axis for axis in found if not (axis.needs_nand and is_block)]


def command(seconds: float, rounds: int | None, only: str, mtu_bytes: int, is_block: bool,
            output: "Output") -> None:
    """Run `essd bench --growth`."""
    rounds = turns.ROUNDS if rounds is None else rounds
    if rounds < 1:
        raise EssdError(f"--rounds {rounds}: use 1 or more")
    axes = wanted_axes(only, is_block)
    program = build_initiator()
    wish = Wish(block=is_block, mtu=mtu_bytes)
    load = turns.now()
    found: dict[str, list[Row]] = {}
    for axis in axes:
        show.line(f"{axis.name}: {axis.what}")
        found[axis.name] = turns.measured(
            axis.sides(wish), axis.workloads, seconds, rounds, program,
            lambda row: show.line(f"  {turns.progress_line(row)}"))
    if not output.as_json:
        show_axes(axes, found, rounds, load)
    output.write({"workloads": [asdict(row) | {
        "workload": f"{name}, {row.workload}"} for name, rows in found.items()
        for row in rows]}, None, "essd bench --growth: how the cost of an I/O grows")


def show_axes(axes: list[Axis], found: dict[str, list[Row]], rounds: int,
              load: tuple[float, float, float]) -> None:
    for axis in axes:
        show.line()
        show.line(f"{axis.what}:")
        show.console.print(turns.table_of(found[axis.name], axis.name,
                                          found[axis.name][0].target))
    show.line()
    show.line(f"One thing differs in each table. The initiator uses up to {SPAN_MIB} MiB of each "
              "drive.")
    turns.show_legend([row for rows in found.values() for row in rows], "the first line",
                      rounds, load)
