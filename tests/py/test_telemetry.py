# SPDX-License-Identifier: BSD-2-Clause
"""`essd telemetry` shows dumps, and says what is wrong with a file that is none."""

import struct
from pathlib import Path

import pytest

from essd.base.errors import EssdError
from essd.debug import telemetry


def section(name: str, data: bytes) -> bytes:
    return struct.pack("<4sI24s", b"ESSD", len(data), name.encode()) + data.ljust(
        len(data) + -len(data) % 4, b"\0")


def dump(areas: list[bytes]) -> bytes:
    lasts, blocks = [], b""
    for area in areas:
        blocks += area.ljust(len(area) + -len(area) % 512, b"\0")
        lasts.append(len(blocks) // 512)
    header = bytearray(512)
    header[0] = 7
    struct.pack_into("<3H", header, 8, *lasts)
    header[381] = 5
    header[384:400] = b"a host asked for"
    return bytes(header) + blocks


AREAS = [section("status", b'{"uptime-ms":7}') + section("pools", b'{"qps":{"used":1}}'),
         section("controllers", b'{"controllers":[]}'),
         section("log", b"[1.000000] hello") + section("trace", bytes(128))]


def test_a_dump_is_shown_section_by_section(tmp_path: Path) -> None:
    file = tmp_path / "dump.bin"
    file.write_bytes(dump(AREAS))
    shown = telemetry.text(telemetry.read(file))
    assert shown.startswith("host-initiated dump 5: a host asked for")
    for text in ("data area 1: pools", '"uptime-ms": 7', "data area 2: controllers",
                 "[1.000000] hello", '"records": 2'):
        assert text in shown, text


def test_a_file_with_fewer_areas_is_shown_as_far_as_it_goes() -> None:
    whole = dump(AREAS)
    shown = telemetry.text(telemetry.parse(whole[:1024]))
    assert "status" in shown
    assert "controllers" not in shown


@pytest.mark.parametrize("data", [b"", bytes(4096), b"ESSD" * 200])
def test_a_file_that_is_no_dump_is_refused(data: bytes) -> None:
    with pytest.raises(EssdError, match="no telemetry log"):
        telemetry.parse(data)


def test_a_section_that_ends_beyond_its_area_is_refused() -> None:
    broken = bytearray(dump(AREAS))
    struct.pack_into("<I", broken, 512 + 4, 4000)
    with pytest.raises(EssdError, match="fetch it again"):
        telemetry.parse(bytes(broken))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EssdError, match="none.bin cannot be read"):
        telemetry.read(tmp_path / "none.bin")


@pytest.mark.parametrize("data", [b'{"uptime', b"\xff\xfe", b"[" * 100000])
def test_a_section_that_is_damaged_is_named(data: bytes) -> None:
    with pytest.raises(EssdError, match="the section status is damaged: fetch the dump again"):
        telemetry.text(telemetry.parse(dump([section("status", data), b"", b""])))


def test_the_name_of_a_section_may_be_damaged_too() -> None:
    data = dump([section("status", b"{}"), b"", b""]).replace(b"status", b"st\xfftus")
    assert "== data area 1: st" in telemetry.text(telemetry.parse(data))
