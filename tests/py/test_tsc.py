# SPDX-License-Identifier: BSD-2-Clause
"""The frequency of the TSC, which an emulated guest is told."""

import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from essd import tsc
from essd.config import Config, Host, Link
from essd.vm import guest_command

needs_tsc = pytest.mark.skipif(not tsc.is_steady(), reason="this machine's TSC is not steady")


@pytest.fixture(autouse=True)
def not_yet_measured() -> Iterator[None]:
    tsc.kernel_words.cache_clear()
    yield
    tsc.kernel_words.cache_clear()


def kernel_line(accel: str) -> list[str]:
    config = Config("n", "/guest", accel, [Link(0, ["10.0.0.10/24"])], hosts={"host": Host()})
    command = guest_command(config, "host", Path("/run"))
    return command[command.index("-append") + 1].split()


@needs_tsc
def test_other_programs_do_not_change_what_is_measured() -> None:
    """A guest's clock is wrong by as much as the frequency."""
    alone = tsc.measure_khz()
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
    try:
        busy = [tsc.measure_khz() for _ in range(4)]
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    assert all(abs(khz - alone) < alone / 1000 for khz in busy), (alone, busy)


@needs_tsc
def test_an_emulated_guest_is_told_the_frequency() -> None:
    (word,) = [word for word in kernel_line("tcg") if "tsc_early_khz" in word]
    khz = int(word.removeprefix("tsc_early_khz="))
    assert abs(khz - tsc.measure_khz()) < khz / 1000
    assert not [word for word in kernel_line("kvm") if "khz" in word or "clock" in word]


def test_without_a_steady_tsc_an_emulated_guest_uses_the_hpet(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tsc, "CPUINFO", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text("processor: 0\nflags\t\t: fpu tsc constant_tsc\n")
    assert "clocksource=hpet" in kernel_line("tcg")
    tsc.kernel_words.cache_clear()
    (tmp_path / "cpuinfo").write_text("flags\t\t: fpu nonstop_tsc tsc constant_tsc\n")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "clocksource=hpet" in kernel_line("tcg")


def test_memory_that_must_not_be_executed_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise PermissionError("no executable memory")

    monkeypatch.setattr(tsc, "is_steady", lambda: True)
    monkeypatch.setattr(tsc, "measure_khz", refuse)
    assert tsc.kernel_words() == ("clocksource=hpet",)
