# SPDX-License-Identifier: BSD-2-Clause
"""`essd dump`: crash dumps in flash images and telemetry logs, symbols, core files."""

import dataclasses
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from essd.base.errors import EssdError
from essd.build import elf
from essd.debug import crash, telemetry
from essd.storage import flash

BUILD_ID = bytes(range(20))
# inner(), called by outer(), has stored its return address in its frame of 48 bytes.
FRAMES = """
    .text
    .globl outer, inner
    .type outer, @function
    .type inner, @function
inner:
    .cfi_startproc
    .cfi_def_cfa_offset 48
    .cfi_offset ra, -8
    ebreak
    .cfi_endproc
    .size inner, . - inner
outer:
    .cfi_startproc
    .cfi_undefined ra
    jal inner
    nop
    .cfi_endproc
    .size outer, . - outer
    .section .stack, "aw", @nobits
    .space 4096
"""


def section(name: str, data: bytes) -> bytes:
    return telemetry.SECTION.pack(b"ESSD", len(data), name.encode()) + data \
        + bytes(-len(data) % 4)


def dump(text: str = "x.c: is_sound", cause: int = 1, version: int = 1) -> bytes:
    head = crash.HEAD.pack(version, cause, 1, 77, BUILD_ID, 5, 1_500_000_000, 7, 0x10, 0,
                           b"0.1.0", text.encode())
    stack = struct.pack("<Q", 0x80001000) + bytes(64)
    return (section("crash", head) + section("hart0", struct.pack("<32Q", *range(100, 132)))
            + section("memory", stack) + section("log", b"one\r\ntwo\r\n"))


def copy(number: int, body: bytes) -> bytes:
    head = struct.pack("<III8x", number, len(body), zlib.crc32(body))
    return head + struct.pack("<I", zlib.crc32(head)) + crash.AREA_MAGIC + body


def image(*copies: bytes) -> bytes:
    data = bytearray(b"\xff" * flash.SIZE)
    for place, content in enumerate(copies):
        at = flash.LAYOUT["FLASH_CRASH_ADDR"] + place * flash.LAYOUT["FLASH_CRASH_SIZE"]
        data[at:at + len(content)] = content
    return bytes(data)


def test_the_copies_are_as_many_as_the_firmware_keeps() -> None:
    layout = (Path(__file__).parents[2] / "firmware/store/flash_layout.h").read_text()
    assert f"FLASH_CRASH_COPIES       {crash.COPIES}\n" in layout


def test_the_dumps_of_a_flash_image_are_found_the_newest_first() -> None:
    damaged = bytearray(copy(8, dump()))
    damaged[100] ^= 1
    found = crash.in_flash(image(copy(9, dump("b.c: y")), copy(2, dump("a.c: x")),
                                 bytes(damaged)))
    assert [each.number for each in found] == [9, 2]
    assert found[0].why() == "assertion failed: y (b.c:77)"
    assert (found[0].boot, found[0].firmware, found[0].build_id) == (5, "0.1.0", BUILD_ID.hex())
    assert found[0].registers[0] == 100
    assert crash.choose(found, 2).text == "a.c: x"


@pytest.mark.parametrize(("data", "match"), [
    (b"", "no crash dump"), (section("log", b"x"), "no crash dump"),
    (dump(version=2), "format 2"), (dump()[:-6], "cut")])
def test_a_dump_that_is_none_is_refused(data: bytes, match: str) -> None:
    with pytest.raises(EssdError, match=match):
        crash.parse(data)


def test_without_a_dump_one_line_says_so() -> None:
    with pytest.raises(EssdError, match="no crash is recorded"):
        crash.choose(crash.in_flash(image()), 0)
    with pytest.raises(EssdError, match="there is no crash dump 3: there are 1"):
        crash.choose(crash.in_flash(image(copy(1, dump()))), 3)


def test_the_dump_of_a_telemetry_log_is_found(tmp_path: Path) -> None:
    head = bytearray(512)
    first = section("panic", b"{}").ljust(512, b"\0")
    second = dump()
    second += bytes(-len(second) % 512)
    last = 1 + len(second) // 512
    telemetry.HEADER.pack_into(head, 0, 8, 0, 0, 0, b"", 1, last, last, 0)
    path = tmp_path / "dump.bin"
    path.write_bytes(bytes(head) + first + second)
    assert [each.why() for each in crash.in_file(path)] == ["assertion failed: is_sound (x.c:77)"]


@pytest.mark.parametrize("at", range(0, 64, 16))
def test_a_stack_is_unwound_wherever_it_begins(tmp_path: Path, at: int) -> None:
    program = tmp_path / "program.elf"
    subprocess.run(["riscv64-unknown-elf-gcc", "-march=rv64gc", "-mabi=lp64d", "-nostdlib",
                    "-Wl,-Ttext=0x80000000,--section-start=.stack=0x801ff000,-e,outer",
                    "-x", "assembler", "-", "-o", program],
                   input=FRAMES, text=True, check=True, timeout=60)
    inner, sp = 0x80000000, 0x801ff900 + at
    return_address = inner + 2 + 4          # after ebreak and jal, of two and four bytes
    stack = bytes(40) + struct.pack("<Q", return_address) + bytes(16)
    found = dataclasses.replace(crash.parse(dump()), memory=((sp, stack),),
                                registers=(inner, return_address, sp) + (0,) * 29)
    frames = crash.backtrace(found, program)
    assert [frame["function"] for frame in frames] == ["inner", "outer"]


def test_the_elf_of_another_build_is_refused(tmp_path: Path) -> None:
    firmware = tmp_path / "firmware.elf"
    firmware.write_bytes(elf.NOTE + bytes(20))
    with pytest.raises(EssdError, match=f"build ID {'00' * 20}, .* has {BUILD_ID.hex()}"):
        crash.symbols(crash.parse(dump()), firmware)
    firmware.write_bytes(elf.NOTE + BUILD_ID)
    assert crash.symbols(crash.parse(dump()), firmware) == firmware
    with pytest.raises(EssdError, match="cannot be read"):
        crash.symbols(crash.parse(dump()), tmp_path / "none")


@pytest.mark.parametrize(("cause", "why"), [
    (2, "trap: store access fault, value 0x10"), (3, "watchdog"), (9, "cause 9")])
def test_each_cause_is_named(cause: int, why: str) -> None:
    assert why in crash.parse(dump(cause=cause)).why()
