# SPDX-License-Identifier: BSD-2-Clause
"""What essd top shows in terminals of several widths, and in which colours."""

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from essd.base.show import PlainConsole
from essd.observe import top

HOSTNQN = "nqn.2014-08.org.nvmexpress:uuid:0f8fad5b-d9cb-469f-a165-70867728950e"
RULE = "media write lba 0-99999 do error after 3 times every 7 probability 0.25 from start"


def port(number: int) -> dict[str, Any]:
    return {"port": number, "up": number == 0, "reason": "no carrier", "speed": 100,
            "fec": "rs", "in-bytes-per-s": 1.23e9, "out-bytes-per-s": 9.99e8,
            "counters": {"aFrameCheckSequenceErrors": 12, "aFECCorrectedBlocks": 123456,
                         "aFECUncorrectableBlocks": 3, "linkChanges": 17}}


def drive(warnings: list[str] | None, dead: int, spare: int) -> dict[str, Any]:
    return {
        "why": "", "warnings": warnings,
        "rates": {"read-iops": 123456.0, "write-iops": 98765.0, "read-bytes-per-s": 5.1e8,
                  "write-bytes-per-s": 4.2e8},
        "status": {"controllers": 12, "queue-pairs": 48},
        "queue-pairs": {"rows": [{"in-flight": 384}]},
        "controllers": {"rows": [{"cntlid": 1, "state": "ready", "queue-pairs": 4,
                                  "hostnqn": HOSTNQN}]},
        "counters": {"media-errors": 7, "written-bytes": 4096 << 20,
                     "ftl": {"free-superblocks": 123, "erasures": 45678, "dead-dies": dead},
                     "flash": {"written-bytes": 9 << 32, "erased-blocks": 1234567,
                               "failed-blocks": 211, "spare-percent": spare}},
        "latency": {"read": {"samples": 123456, "p50": 1234, "p90": 12345, "p99": 123456,
                             "p99.9": 1234567}},
        "faults": [{"name": "worn", "on": True, "matched": 123, "fired": 45, "rule": RULE}],
        "ports": [port(0), port(1)]}


def frame(warnings: list[str] | None = None, dead: int = 0, spare: int = 97
          ) -> dict[str, Any]:
    part = {"kind": "drive", "state": "running", "ready": True, "halted": False, "why": "",
            "cpu-percent": 101.5, "memory-bytes": 512 << 20, "restarts": [], "pid": 1234567}
    return {"name": "rack", "accel": "kvm", "time": 0.0,
            "parts": {"drive": part, "host": part},
            "cables": {str(n): {"ends": [f"host:{n}", f"drive:{n}"], "plugged": n != 1}
                       for n in range(6)},
            "drives": {"drive": drive(warnings, dead, spare)}}


def shown(width: int, found: dict[str, Any]) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, markup=False)
    console.print(top.screen(found))
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_no_word_is_cut_and_no_line_is_too_long(width: int) -> None:
    text = shown(width, frame(["spare", "reliability"], 1, 3))
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert all(cell_len(line.rstrip()) <= width for line in text.splitlines())
    for word in ("123k", "98.8k", "spare,", "reliability", "dead dies", "3%", "rack"):
        assert word in text


def test_a_hundred_columns_have_everything() -> None:
    text = shown(100, frame([], 0, 97))
    for word in ("read IOPS", "write IOPS", "read B/s", "write B/s", "hosts", "queues",
                 "in flight", "media errors", "SMART", "amplification", "free superblocks",
                 "erasures", "erased ever", "blocks failed", "spare", "dead dies",
                 "samples", "p99.9", "speed", "FEC", "bad FCS",
                 "uncorrectable", "flaps", "down: no carrier",
                 "memory", "restarts", "pid",
                 "host:5 - drive:5 plugged", "host:1 - drive:1 unplugged", HOSTNQN):
        assert word in text


def test_sixty_columns_leave_out_whole_columns() -> None:
    text = shown(60, frame([], 0, 97))
    for word in ("read IOPS", "write IOPS", "SMART", "dead dies", "in B/s", "state"):
        assert word in text
    for word in ("in flight", "write B/s", "erasures", "erased ever", "FEC"):
        assert word not in text
    # A long text takes several lines instead.
    after = text.partition("nqn.2014")[2].splitlines()
    assert HOSTNQN.startswith("nqn.2014" + after[0].strip() + after[1].strip())


def style_of(table: Table | None, heading: str) -> str:
    assert table is not None
    column = next(column for column in table.columns if str(column.header) == heading)
    cell = next(iter(column.cells))
    return str(getattr(cell, "style", ""))


@pytest.mark.parametrize(("warnings", "dead", "spare", "colours"), [
    ([], 0, 97, ("green", "green")), ([], 0, 40, ("yellow", "green")),
    (["spare"], 1, 3, ("bold red", "bold red")), (None, 2, 97, ("green", "bold red"))])
def test_spare_and_dead_dies_have_colours(warnings: list[str] | None, dead: int, spare: int,
                                          colours: tuple[str, str]) -> None:
    table = top.flash_table(frame(warnings, dead, spare))
    assert (style_of(table, "spare"), style_of(table, "dead dies")) == colours


def test_older_firmware_does_not_know_dead_dies() -> None:
    found = frame([])
    del found["drives"]["drive"]["counters"]["ftl"]["dead-dies"]
    assert "-" in shown(100, found)


def test_hostile_text_is_shown_as_it_is() -> None:
    found = frame([])
    found["drives"]["drive"]["controllers"]["rows"][0]["hostnqn"] = "\x1b[2J[red]nqn"
    out = io.StringIO()
    PlainConsole(file=out, width=100).print(top.screen(found))
    assert "\x1b" not in out.getvalue() and "?[2J[red]nqn" in out.getvalue()
