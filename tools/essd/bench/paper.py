# SPDX-License-Identifier: BSD-2-Clause
"""`essd paper`: the four rows of the Ethernet SSD white paper, in virtual time.

Firmware, device models, network and host are one program (tests/bench/native_paper.c), in
which frames, the flash and the firmware's instructions take time.  Nothing in it depends on
the computer, so the same arguments print the same bytes.
"""

import itertools
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ..base import show
from ..base.errors import EssdError
from ..build import native_build
from . import paper_profile, paper_report

PROGRAM = "tests/bench/native_paper"
RUN_S = 2 * 3600            # one run of the program, on a busy computer
BASE = "base"
MATTERS_PERCENT = 3         # a resource limits a row if the row grows by more without it


@dataclass(frozen=True)
class Row:
    """A row of the white paper (ODCC-2021-05008): 1 job, 64 commands outstanding."""

    name: str
    title: str
    figure: str             # which figure of ours is compared
    unit: str
    theirs: float


ROWS = (Row("4k-randread", "4K random read", "iops", "IOPS", 669_000),
        Row("128k-read", "128K sequential read", "mb_s", "MB/s", 2717),
        Row("128k-write", "128K sequential write", "mb_s", "MB/s", 2333),
        Row("4k-randwrite", "4K random write", "iops", "IOPS", 139_000))


# Which rows the program measures: the sum of these bits in its setting `rows`; 0 means all four.
ROW_BITS = {"128k-read": 1, "128k-write": 2, "4k-randread": 4, "4k-randwrite": 8}


@dataclass(frozen=True)
class Scenario:
    """What the drives of one of examples/scenarios have to do, without hosts' file systems."""

    name: str
    title: str


SCENARIOS = (Scenario("cdn", "CDN's cache: 64K, 56 reads and 8 writes"),
             Scenario("objects", "object store: 64K, 32 reads and 32 writes"))
SCENARIO_BITS = 16 + 32


@dataclass(frozen=True)
class Scale:
    """How much flash is modelled, and for how long: it changes no constant."""

    blocks: int
    wordlines: int
    overwrites_percent: int
    warm_us: int
    measure_us: int
    is_direct: int = 1      # the translation layer alone prepares the flash


# A plane of a die of 512 Gbit has 496 blocks, if these have the part's 704 wordlines.  An array
# with so many wordlines would not fit into the firmware's map, so the blocks are shorter.
FULL = Scale(496, 2, 200, 50_000, 100_000)
SMALL = Scale(64, 4, 50, 10_000, 20_000)
SMALL_ARRAY = {"channels": 2, "dies": 2}
# The curve through preconditioning: the small array is overwritten twice, and all takes time.
CURVE = {"overwrites_percent": 200, "overwrites_take_time": 1, "rows": ROW_BITS["4k-randwrite"]}


# What each resource would be if it cost nothing, or if there were four times as much of it.
FREE = {
    "hart": {"hart_mips": 0},
    "dies": {"read_lower_ns": 0, "read_middle_ns": 0, "read_upper_ns": 0, "program_ns": 0,
             "erase_ns": 0},
    "channels": {"channel_mbps": 0, "command_ns": 0},
    "port": {"port_mbps": 0},
    "memory": {"dma_mbps": 0, "dma_ns": 0, "memory_mbps": 0, "memory_ns": 0},
    "delays": {"cable_ns": 0, "switch_ns": 0, "rnic_ns": 0, "decode_ns": 0},
    "commands": {"hosts": 4},
}
PAIRED = ("hart", "dies", "port", "memory", "commands")


def settings_of(constants: dict[str, int], scale: Scale, seed: int, mtu: int,
                ports: int = 1) -> dict[str, int]:
    """All settings of the program."""
    return {**constants, "seed": seed, "mtu_bytes": mtu, "ports": ports, "hosts": 1,
            **vars(scale)}


def words_of(settings: dict[str, int]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]


def run(settings: dict[str, int], variants: dict[str, dict[str, int]] | None = None
        ) -> dict[str, dict[str, Any]]:
    """What the program has measured: by the variant, and then by the row."""
    words = words_of(settings)
    for name, changes in (variants or {}).items():
        words += ["/", name, *words_of(changes)]
    program = native_build.native_program("counted", PROGRAM, "the drive in virtual time")
    try:
        done = subprocess.run([program, *words], check=False, text=True, capture_output=True,
                              timeout=RUN_S)
    except subprocess.TimeoutExpired:
        raise EssdError(f"virtual time passes too slowly: not done after {RUN_S // 3600} "
                        "hours; use --small") from None
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise EssdError(f"the drive in virtual time has failed: {''.join(last)}")
    found: dict[str, dict[str, Any]] = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        found.setdefault(row.pop("variant"), {})[row["row"]] = row
    return found


def scenarios_of(found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    rows = found["scenarios"]
    return [{"scenario": one.name, **{key: rows[one.name][key] for key in (
        "iops", "mb_s", "mean_ns", "p99_ns", "write_amplification")}} for one in SCENARIOS]


def curve(constants: dict[str, int], seed: int, mtu: int, ports: int) -> list[dict[str, float]]:
    """How random overwriting goes, from a flash that was written sequentially twice."""
    settings = settings_of(constants | SMALL_ARRAY, SMALL, seed, mtu, ports) | CURVE
    points = run(settings)[BASE]["precondition"]["points"]
    return [{"overwritten_percent": percent, "iops": iops, "write_amplification": cost}
            for percent, iops, cost in points]


def difference(row: Row, ours: dict[str, Any]) -> float:
    """By how many per cent our figure differs from the paper's."""
    return float(100 * (ours[row.figure] / row.theirs - 1))


def free_variants() -> dict[str, dict[str, int]]:
    """Each resource freed alone, and some two of them together."""
    pairs = {f"{a}+{b}": FREE[a] | FREE[b] for a, b in itertools.combinations(PAIRED, 2)}
    return FREE | pairs


def sensitivity_variants(constants: dict[str, int]) -> dict[str, dict[str, int]]:
    """Each constant 10% smaller and 10% larger, by names such as "hart_mips-10"."""
    return {f"{name}{percent:+d}": {name: round(constants[name] * (100 + percent) / 100)}
            for name in paper_profile.TIMES for percent in (-10, 10)}


def growth(found: dict[str, dict[str, Any]], variant: str, row: Row) -> float:
    """By how many per cent the row's figure is larger in this variant."""
    base = found[BASE][row.name][row.figure]
    return float(round(100 * (found[variant][row.name][row.figure] / base - 1), 2))


def limit_of(freed: dict[str, float]) -> list[str]:
    """What limits a row: the resources without which it grows most, or nothing."""
    alone = {name: freed[name] for name in FREE if name in freed}
    best = max(alone, key=lambda name: alone[name])
    if alone[best] > MATTERS_PERCENT:
        return [best]
    pairs = {name: value for name, value in freed.items() if name not in FREE}
    best = max(pairs, key=lambda name: pairs[name])
    return best.split("+") if pairs[best] > MATTERS_PERCENT else []


def next_limit_of(freed: dict[str, float], limits: list[str]) -> str:
    """What limits the row once its limit is gone; "" if that was not measured, or nothing."""
    if len(limits) != 1:
        return ""
    pairs = {name: value for name, value in freed.items()
             if name not in FREE and limits[0] in name.split("+")}
    if not pairs:
        return ""
    best = max(pairs, key=lambda name: pairs[name])
    if 100 * ((100 + pairs[best]) / (100 + freed[limits[0]]) - 1) <= MATTERS_PERCENT:
        return ""
    return next(name for name in best.split("+") if name != limits[0])


def facts_of(constants: dict[str, int], settings: dict[str, int],
             found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What --json prints."""
    rows = []
    for row in ROWS:
        ours = found[BASE][row.name]
        facts = {"row": row.name, "unit": row.unit, "paper": row.theirs,
                 "difference_percent": round(difference(row, ours), 2),
                 **{key: value for key, value in ours.items() if key != "row"}}
        freed = {name: growth(found, name, row) for name in free_variants() if name in found}
        if freed:
            facts |= {"freed_percent": freed, "limits": (limits := limit_of(freed)),
                      "next_limit": next_limit_of(freed, limits)}
        changed = {name: growth(found, name, row)
                   for name in sensitivity_variants(constants) if name in found}
        rows.append(facts | ({"sensitivity_percent": changed} if changed else {}))
    return {"settings": settings, "constants": constants, "rows": rows}


def amount(value: float) -> str:
    return f"{value:,.0f}"


def show_rows(facts: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("row", "paper", "ours", "difference", "MiB/s", "mean us", "p99 us",
                    "p99.9 us", "WA"):
        table.add_column(heading, no_wrap=True, justify="left" if heading == "row" else "right")
    for row, ours in zip(ROWS, facts["rows"], strict=True):
        table.add_row(
            row.title, f"{amount(row.theirs)} {row.unit}", amount(ours[row.figure]),
            f"{ours['difference_percent']:+.1f}%", f"{ours['mb_s'] * 1e6 / 2**20:.0f}",
            *(f"{ours[key] / 1000:.0f}" for key in ("mean_ns", "p99_ns", "p99_9_ns")),
            f"{ours['write_amplification']:.2f}" if ours["write_amplification"] else "")
    show.console.print(table)


def show_busy(facts: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False)
    names = list(facts["rows"][0]["busy"])
    table.add_column("busy", no_wrap=True)
    for name in names:
        table.add_column(name.replace("_", " "), no_wrap=True, justify="right")
    for row, ours in zip(ROWS, facts["rows"], strict=True):
        table.add_row(row.title, *(f"{ours['busy'][name]:.0%}" for name in names))
    show.console.print(table)


def show_limits(facts: dict[str, Any]) -> None:
    """What each row becomes without each resource, and what limits it."""
    table = Table(box=None, pad_edge=False)
    table.add_column("without", no_wrap=True)
    for row in ROWS:
        table.add_column(row.title, no_wrap=True, justify="right")
    for name in facts["rows"][0]["freed_percent"]:
        table.add_row(name, *(f"{ours['freed_percent'][name]:+.1f}%" for ours in facts["rows"]))
    show.console.print(table)
    for row, ours in zip(ROWS, facts["rows"], strict=True):
        show.line(f"{row.title}: {limit_text(ours)}")


def limit_text(ours: dict[str, Any]) -> str:
    limits, after = ours["limits"], ours["next_limit"]
    if not limits:
        return (f"no resource, and no two of {', '.join(PAIRED)}, limits it by more than "
                f"{MATTERS_PERCENT}%")
    gain = ours["freed_percent"]["+".join(limits)]
    return f"limited by {' and '.join(limits)}: {gain:+.1f}% without" + (
        f"; then by {after}" if after else "")


def show_sensitivity(facts: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("constant, -10% / +10%", no_wrap=True)
    for row in ROWS:
        table.add_column(row.title, no_wrap=True, justify="right")
    for name in paper_profile.TIMES:
        table.add_row(name, *(
            f"{ours['sensitivity_percent'][f'{name}-10']:+.1f}% / "
            f"{ours['sensitivity_percent'][f'{name}+10']:+.1f}%" for ours in facts["rows"]))
    show.console.print(table)


def show_scenarios(facts: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("scenario", "MB/s", "IOPS", "mean us", "p99 us", "WA"):
        table.add_column(heading, no_wrap=True,
                         justify="left" if heading == "scenario" else "right")
    for one, ours in zip(SCENARIOS, facts["scenarios"], strict=True):
        table.add_row(one.title, amount(ours["mb_s"]), amount(ours["iops"]),
                      *(f"{ours[key] / 1000:.0f}" for key in ("mean_ns", "p99_ns")),
                      f"{ours['write_amplification']:.2f}")
    show.console.print(table)


def show_curve(points: list[dict[str, float]]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("overwritten, 4 dies", "IOPS", "WA"):
        table.add_column(heading, no_wrap=True, justify="right")
    for point in points:
        table.add_row(f"{point['overwritten_percent']:.0f}%", amount(point["iops"]),
                      f"{point['write_amplification']:.2f}")
    show.console.print(table)


def check(wish: "Wish") -> None:
    if wish.seed < 1:
        raise EssdError(f"--seed {wish.seed}: use 1 or more")
    if not 1280 <= wish.mtu <= 9000:
        raise EssdError(f"--mtu {wish.mtu}: use 1280 to 9000")
    if wish.ports not in (1, 2):
        raise EssdError(f"--ports {wish.ports}: the drive has two; use 1 or 2")


@dataclass(frozen=True)
class Wish:
    """What the user has asked for."""

    profile: str = paper_profile.DEFAULT
    seed: int = 1
    mtu: int = 1500
    ports: int = 1
    small: bool = False
    sensitivity: bool = False
    curve: bool = False
    scenarios: bool = False
    as_json: bool = False
    html: Path | None = None


def measure(wish: Wish) -> dict[str, Any]:
    """The facts that --json prints."""
    check(wish)
    constants = paper_profile.load(wish.profile)
    if wish.small:
        constants |= SMALL_ARRAY
    settings = settings_of(constants, SMALL if wish.small else FULL, wish.seed, wish.mtu,
                           wish.ports)
    variants = free_variants()
    if wish.sensitivity:
        variants |= sensitivity_variants(constants)
    if wish.scenarios:
        variants |= {"scenarios": {"rows": SCENARIO_BITS}}
    found = run(settings, variants)
    facts = facts_of(constants, settings, found)
    if wish.scenarios:
        facts["scenarios"] = scenarios_of(found)
    if wish.curve:
        facts["curve"] = curve(constants, wish.seed, wish.mtu, wish.ports)
    return facts


def command(wish: Wish) -> None:
    """Run `essd paper`."""
    facts = measure(wish)
    if wish.html is not None:
        paper_report.write_page(wish.html, facts, {row.name: row.title for row in ROWS},
                                [limit_text(row) for row in facts["rows"]])
    if wish.as_json:
        print(json.dumps(facts, indent=2))
        return
    show_rows(facts)
    show_busy(facts)
    show_limits(facts)
    if wish.sensitivity:
        show_sensitivity(facts)
    if wish.scenarios:
        show_scenarios(facts)
    if wish.curve:
        show_curve(facts["curve"])
    show.line("in virtual time: frames, the flash and the firmware's instructions take the times "
              f"of {paper_profile.file_of(wish.profile).name}; the host takes none")
