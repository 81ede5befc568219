# SPDX-License-Identifier: BSD-2-Clause
"""`essd paper`: the four rows of the Ethernet SSD white paper, in virtual time.

Firmware, device models, network and host are one program (tests/bench/native_paper.c), in
which frames, the flash and the firmware's instructions take time.  Nothing in it depends on
the computer, so the same arguments print the same bytes.
"""

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from ..base import show
from ..base.errors import EssdError
from ..build import native_build
from . import paper_profile

PROGRAM = "tests/bench/native_paper"
RUN_S = 2 * 3600            # one run of the program, on a busy computer
BASE = "base"


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


@dataclass(frozen=True)
class Scale:
    """How much flash is modelled, and for how long: it changes no constant."""

    blocks: int
    wordlines: int
    overwrites_percent: int
    warm_us: int
    measure_us: int


# With 704 wordlines, the array would not fit into the firmware's map.
FULL = Scale(200, 2, 200, 100_000, 200_000)
SMALL = Scale(64, 4, 50, 10_000, 20_000)
SMALL_ARRAY = {"channels": 2, "dies": 2}


def settings_of(constants: dict[str, int], scale: Scale, seed: int, mtu: int) -> dict[str, int]:
    """All settings of the program."""
    return {**constants, "seed": seed, "mtu_bytes": mtu, **vars(scale)}


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


def difference(row: Row, ours: dict[str, Any]) -> float:
    """By how many per cent our figure differs from the paper's."""
    return float(100 * (ours[row.figure] / row.theirs - 1))


def facts_of(constants: dict[str, int], settings: dict[str, int],
             rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What --json prints."""
    return {"settings": settings, "constants": constants,
            "rows": [{"row": row.name, "unit": row.unit, "paper": row.theirs,
                      "difference_percent": round(difference(row, rows[row.name]), 2),
                      **{key: value for key, value in rows[row.name].items() if key != "row"}}
                     for row in ROWS]}


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


def check(seed: int, mtu: int) -> None:
    if seed < 1:
        raise EssdError(f"--seed {seed}: use 1 or more")
    if not 1280 <= mtu <= 9000:
        raise EssdError(f"--mtu {mtu}: use 1280 to 9000")


def command(profile: str, seed: int, mtu: int, small: bool, as_json: bool) -> None:
    """Run `essd paper`."""
    check(seed, mtu)
    constants = paper_profile.load(profile)
    if small:
        constants |= SMALL_ARRAY
    settings = settings_of(constants, SMALL if small else FULL, seed, mtu)
    facts = facts_of(constants, settings, run(settings)[BASE])
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    show_rows(facts)
    show_busy(facts)
    show.line("in virtual time: frames, the flash and the firmware's instructions take the times "
              f"of {paper_profile.file_of(profile).name}; the host takes none")
