# SPDX-License-Identifier: BSD-2-Clause
"""The frequency of the TSC, which an emulated guest is told."""

import ctypes
import mmap
import platform
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from essd.instance.config import Config, Host, Link
from essd.machine import tsc
from essd.machine.vm import guest_command

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
def test_a_second_of_the_tsc_is_one_of_the_clock() -> None:
    """For longer than it was measured, and while all cores are busy."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE
                   | mmap.PROT_EXEC) as page:
        page.write(tsc.READ_TSC)
        start = ctypes.c_char.from_buffer(page)
        read_tsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(start))
        loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
        try:
            khz = tsc.measure_khz()
            first_ns, first = tsc.reading(read_tsc)
            time.sleep(1)
            last_ns, last = tsc.reading(read_tsc)
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        del start, read_tsc
    by_tsc_ns = (last - first) * 1e6 / khz
    assert abs(by_tsc_ns - (last_ns - first_ns)) < (last_ns - first_ns) / 1000


def readings(stalls: dict[int, int]) -> list[tuple[int, int]]:
    """Those of 2 GHz, with the clock read too late by so many nanoseconds in some."""
    return [(15_000_000 * n + stalls.get(n, 0), 30_000_000 * n) for n in range(tsc.COUNT)]


def test_a_stall_within_a_reading_changes_nothing() -> None:
    assert tsc.middle_khz(readings({})) == 2_000_000
    for at in range(tsc.COUNT):
        assert tsc.middle_khz(readings({at: 5_000_000})) == 2_000_000
        assert tsc.middle_khz(readings({at: 9_000_000, (at + 3) % tsc.COUNT: 1_000_000})) == (
            2_000_000)


def test_readings_that_do_not_agree_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    stalls = {1: 9_000_000, 2: 1_000_000, 4: 4_000_000, 5: 13_000_000, 6: 7_000_000}
    with pytest.raises(tsc.UnsteadyError):
        tsc.middle_khz(readings(stalls))
    with pytest.raises(tsc.UnsteadyError):
        tsc.middle_khz([(5, n) for n in range(tsc.COUNT)])

    def disagree() -> int:
        raise tsc.UnsteadyError

    monkeypatch.setattr(tsc, "is_steady", lambda: True)
    monkeypatch.setattr(tsc, "measure_khz", disagree)
    assert tsc.kernel_words() == ("clocksource=hpet",)


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
