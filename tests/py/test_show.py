# SPDX-License-Identifier: BSD-2-Clause
"""How output is shortened, and how untrusted text is shown."""

import io

import pytest
from rich.table import Table

from essd.base import show
from essd.drive import neighbours
from essd.instance import steps

FIO = """x: (g=0): rw=randwrite, bs=(R) 4096B-4096B
fio-3.39
x: (groupid=0, jobs=1): err= 0: pid=236: Sat Nov 21 02:52:22 2026
  read: IOPS=1222, BW=4889KiB/s (5007kB/s)(16.0MiB/3351msec)
    slat (usec): min=11, max=7160, avg=151.04, stdev=423.12
  write: IOPS=1263, BW=5055KiB/s (5177kB/s)(16.0MiB/3241msec); 0 zone resets
Run status group 0 (all jobs):
   READ: bw=4889KiB/s (5007kB/s), io=16.0MiB (16.8MB), run=3351-3351msec
"""


def test_short_output_is_kept() -> None:
    assert show.trim("a\nb\n", 4) == ["a", "b"]


def test_the_middle_of_long_output_is_cut_out() -> None:
    lines = [str(n) for n in range(100)]
    shown = show.trim("\n".join(lines), 10)
    assert shown == [*lines[:6], "... 91 more lines", *lines[-3:]]


def test_output_of_fio_is_reduced_to_result_and_rates() -> None:
    assert [x.split()[0] for x in steps.fio_summary(FIO).splitlines()] == [
        "x:", "read:", "write:"]


def test_ipv6_addresses_are_not_shown_as_emoji() -> None:
    with show.console.capture() as captured:
        show.line("02:e5:5d:ab:31:90 [x]")
    assert captured.get() == "02:e5:5d:ab:31:90 [x]\n"


HOSTILE = "[red]leaf[/red] [/nothing] \x1b[2J\r\u202eessd"
SHOWN = "[red]leaf[/red] [/nothing] ?[2J??essd"


def test_markup_and_control_characters_in_untrusted_text_have_no_effect(
        capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(HOSTILE, box=None)
    table.add_row(HOSTILE)
    with show.console.capture() as captured:
        show.line(HOSTILE)
        show.console.print(table)
    lines = [line.strip() for line in captured.get().splitlines()]
    assert lines == [SHOWN] * 3
    show.error(HOSTILE)
    assert SHOWN in capsys.readouterr().err


@pytest.mark.parametrize("text", [HOSTILE, "[/]"])
def test_markup_and_control_characters_in_progress_have_no_effect(
        monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    terminal = show.PlainConsole(force_terminal=True, file=io.StringIO(), width=100)
    monkeypatch.setattr(show, "console", terminal)
    with show.busy(text):
        pass
    progress = show.Progress()
    progress.task("QEMU")(text)
    assert progress.status is not None
    assert str(progress.status.renderable.text) == f"QEMU: {show.printable(text)}"


def test_a_neighbours_name_with_markup_is_shown_unchanged() -> None:
    ports = [{"port": 0, "neighbours": [
        {"chassis": "[bold]x", "port": "[/red]", "system": "essd> ", "addresses": [],
         "capabilities": [], "forgotten-in": 9}]}]
    with show.console.capture() as captured:
        show.console.print(neighbours.table(ports))
    assert "essd> " in captured.get() and "[bold]x" in captured.get()
    assert "[/red]" in captured.get()
