# SPDX-License-Identifier: BSD-2-Clause
"""essd-nand on files: the format is written here once more, from its document."""

import fcntl
import os
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from essd.base import paths
from essd.build import native_build

M64 = (1 << 64) - 1
PLANES, PAGES, UNITS = 4, 3, 4          # of tlc2021
SLOT = 50688                            # 64 + 12 * 4200 + 64, up to 512
UNIT = 4200
DAY_NS = 86400 * 10**9

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run() -> Run:
    program = native_build.native_program("native", "tools/nand/essd-nand", "essd-nand")

    def call(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *map(str, words)], text=True, timeout=60,
                              capture_output=True, check=False)
    return call


@pytest.fixture
def image(run: Run, tmp_path: Path) -> Path:
    """300 MiB in 2 dies: 200 blocks of 8 wordlines in each plane."""
    path = tmp_path / "nand.img"
    done = run("create", path, "--capacity", "600M", "--channels", 1)
    assert done.returncode == 0, done.stderr
    return path


def mix(value: int) -> int:
    """random_mix() of lib/random.h: SplitMix64."""
    value = (value + 0x9e3779b97f4a7c15) & M64
    value = ((value ^ value >> 30) * 0xbf58476d1ce4e5b9) & M64
    value = ((value ^ value >> 27) * 0x94d049bb133111eb) & M64
    return value ^ value >> 31


def sealed(record: bytes, length: int) -> bytes:
    record = record.ljust(length - 4, b"\0")
    return record + struct.pack("<I", zlib.crc32(record))


class Image:
    """Writes into the file what the document says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            header = file.read(512)
        (self.blocks, self.wordlines) = struct.unpack_from("<HH", header, 22)
        (self.size,) = struct.unpack_from("<Q", header, 56)
        self.dies = header[16] * header[17]
        self.block_bytes = -(-SLOT * self.wordlines // 4096) * 4096
        count = self.dies * PLANES * self.blocks
        self.slots = -(-(16384 + 64 * count) // 65536) * 65536
        assert self.slots + count * self.block_bytes == self.size == path.stat().st_size

    def write(self, offset: int, data: bytes) -> None:
        with self.path.open("r+b") as file:
            file.seek(offset)
            file.write(data)

    def flip(self, offset: int) -> None:
        with self.path.open("r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 1]))

    def slot(self, block: int, wordline: int) -> int:
        return self.slots + block * self.block_bytes + wordline * SLOT

    def state(self, number: int, generation: int, nonce: int) -> None:
        self.write(4096 + number % 2 * 4096, sealed(
            b"STAT" + struct.pack("<IQQQ32xQ", 1, number, generation, 0, nonce), 512))

    def record(self, block: int, number: int) -> None:
        self.write(16384 + 64 * block, sealed(b"BLCK" + struct.pack("<II", block, number), 64))

    def program(self, block: int, wordline: int, end: bool = True, number: int = 0) -> None:
        def mark(word: bytes) -> bytes:
            return sealed(word + struct.pack("<IIHBxQ", block, number, wordline, PAGES, 5), 64)

        data = mark(b"BEGN")
        for unit in range(PAGES * UNITS):
            place = block << 32 | wordline << 8 | unit
            content = bytes([unit + 1]) * 4096
            rest = bytes([unit]) * 80
            trailer = struct.pack("<QII", 5, number,
                                  zlib.crc32(content, mix(place) & 0xffffffff))
            crc = zlib.crc32(rest + trailer, mix(~place & M64) & 0xffffffff)
            data += content + rest + trailer + struct.pack("<II", crc, 0)
        self.write(self.slot(block, wordline), data + (mark(b"ENDN") if end else b""))


def test_a_new_array_is_small_and_in_order(run: Run, image: Path) -> None:
    assert image.stat().st_blocks * 512 < 1 << 20
    done = run("check", image)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("0 wordlines with 0 units in order; 0 half programmed, "
                           "0 blocks half erased\n")
    done = run("info", image)
    assert done.returncode == 0
    assert "profile     tlc2021" in done.stdout
    assert "1 channels, 2 dies each, 4 planes each, 200 blocks each" in done.stdout
    assert "block       8 wordlines, 3 pages each, 4 units each" in done.stdout


def test_check_reads_what_the_document_says(run: Run, image: Path) -> None:
    writer = Image(image)
    for wordline in range(3):
        writer.program(205, wordline)
    writer.program(205, 3, end=False)
    done = run("check", image)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("3 wordlines with 36 units in order; 1 half programmed, "
                           "0 blocks half erased\n")
    shown = run("info", image).stdout
    assert f"programmed  {36 * 4096} bytes" in shown
    assert "1 half programmed" in shown


@pytest.mark.parametrize(("at", "what"), [
    (0, "wordline 1, page 1, unit 2: data damaged"),
    (4095, "wordline 1, page 1, unit 2: data damaged"),
    (4096, "wordline 1, page 1, unit 2: metadata damaged"),
    (4175, "wordline 1, page 1, unit 2: metadata damaged"),
    (4176, "wordline 1, page 1, unit 2: metadata damaged"),
])
def test_check_names_the_place_of_a_damaged_unit(run: Run, image: Path, at: int,
                                                 what: str) -> None:
    writer = Image(image)
    for wordline in range(2):
        writer.program(205, wordline)
    writer.flip(writer.slot(205, 1) + 64 + (UNITS + 2) * UNIT + at)
    done = run("check", image)
    assert done.returncode == 1
    assert f"channel 0, die 0, plane 1, block 5, {what}\n" in done.stdout
    assert "1 faults" in done.stderr
    assert "2 wordlines with 23 units in order" in done.stdout


def test_check_finds_a_gap_between_wordlines(run: Run, image: Path) -> None:
    writer = Image(image)
    writer.program(3, 0)
    writer.program(3, 2)
    done = run("check", image)
    assert done.returncode == 1
    assert ("channel 0, die 0, plane 0, block 3, wordline 2: programmed, but wordline 1 "
            "is not\n") in done.stdout


BEGIN, END = 0, 64 + PAGES * UNITS * UNIT       # in a slot
OLD = sealed(b"BEGN" + struct.pack("<IIHBxQ", 205, 0, 1, PAGES, 5), 64)


@pytest.mark.parametrize("mark", [b"\0" * 64, b"?" * 64, OLD, OLD[:40] + b"?" * 24],
                         ids=["zeros", "other bytes", "older", "half"])
@pytest.mark.parametrize("count", [2, 4])       # The damage is in the last wordline, or not.
@pytest.mark.parametrize("end", [True, False])
def test_check_finds_a_damaged_beginning(run: Run, image: Path, mark: bytes, count: int,
                                         end: bool) -> None:
    writer = Image(image)
    writer.record(205, 1)
    for wordline in range(count):
        writer.program(205, wordline, end=end or wordline != 1, number=1)
    writer.write(writer.slot(205, 1) + BEGIN, mark)
    done = run("check", image)
    assert done.returncode == 1
    assert done.stdout.startswith(
        "channel 0, die 0, plane 1, block 5, wordline 1: its beginning is damaged\n")
    programmed = count if end else 1        # Without an end, it is not known what is in order.
    assert f"\n{programmed} wordlines with {programmed * 12} units in order" in done.stdout
    if end or count == 2:
        assert "1 faults" in done.stderr
        shown = run("info", image).stdout
        assert f"programmed  {programmed * 12 * 4096} bytes" in shown


def test_check_finds_a_slot_of_which_nothing_but_one_unit_is_left(run: Run, image: Path) -> None:
    writer = Image(image)
    for wordline in range(2):
        writer.program(205, wordline)
    slot = writer.slot(205, 1)
    writer.write(slot, b"\0" * (64 + 5 * UNIT))
    writer.write(slot + 64 + 6 * UNIT, b"\0" * (END + 64 - 64 - 6 * UNIT))
    done = run("check", image)
    assert done.returncode == 1
    assert "block 5, wordline 1: its beginning is damaged\n" in done.stdout


def test_check_finds_a_beginning_that_belongs_elsewhere(run: Run, image: Path) -> None:
    writer = Image(image)
    for block, wordline in ((205, 0), (205, 1), (206, 1)):
        writer.program(block, wordline)
    with image.open("rb") as file:
        file.seek(writer.slot(206, 1))
        other = file.read(64)
    writer.write(writer.slot(205, 1), other)
    done = run("check", image)
    assert done.returncode == 1
    assert "block 5, wordline 1: its beginning is damaged\n" in done.stdout


def test_check_finds_a_damaged_end(run: Run, image: Path) -> None:
    writer = Image(image)
    for wordline in range(2):
        writer.program(205, wordline)
    writer.flip(writer.slot(205, 1) + END + 20)
    done = run("check", image)
    assert done.returncode == 1
    assert "block 5, wordline 1: its end is damaged\n" in done.stdout
    assert "1 wordlines with 12 units in order; 1 half programmed" in done.stdout


@pytest.mark.parametrize("begin", [True, False])
def test_check_finds_a_slot_that_is_newer_than_the_record(run: Run, image: Path,
                                                          begin: bool) -> None:
    writer = Image(image)
    writer.program(205, 0, number=1)    # The record says that the block was never erased.
    if not begin:
        writer.write(writer.slot(205, 0), b"\0" * 64)
    done = run("check", image)
    assert done.returncode == 1
    assert ("channel 0, die 0, plane 1, block 5, wordline 0: newer than the record of its "
            "block\n") in done.stdout


def test_what_is_left_of_older_erasures_is_in_order(run: Run, image: Path) -> None:
    writer = Image(image)
    writer.record(205, 2)
    for wordline in range(4):
        writer.program(205, wordline, number=1)
    writer.program(205, 0, number=2)
    writer.program(205, 1, end=False, number=2)
    done = run("check", image)
    assert (done.returncode, done.stdout) == (
        0, "1 wordlines with 12 units in order; 1 half programmed, 0 blocks half erased\n")


def test_check_finds_a_copy_of_the_state_that_is_lost(run: Run, image: Path) -> None:
    writer = Image(image)
    for even, odd, said in (
            ((2, 3), (1, 1), ""), ((4, 3), (1, 1), "copy 1 of the state is older than the state "
                                                   "before the last one"),
            ((2, 3), (5, 1), "copy 0 of the state is older than the state before the last one"),
            ((4, 3), None, "copy 1 of the state is missing"),
            ((4, 3), b"?", "copy 1 of the state is damaged")):
        writer.state(*even, 7)
        if isinstance(odd, tuple):
            writer.state(*odd, 0)
        else:
            writer.write(8192, (odd or b"\0") * 512)
        done = run("check", image)
        assert (done.returncode, done.stdout.count("\n")) == ((1, 2) if said else (0, 1))
        assert done.stdout.startswith(said)
        assert ("(not synchronised)" in run("info", image).stdout) == bool(said)


def test_check_finds_damaged_records(run: Run, image: Path) -> None:
    writer = Image(image)
    for block in range(25):
        writer.flip(16384 + 64 * (1000 + block) + 9)
    writer.flip(8192 + 40)
    done = run("check", image)
    assert done.returncode == 1
    assert "both copies of the array's state are damaged" in done.stderr
    writer.flip(8192 + 40)
    done = run("check", image)
    assert "channel 0, die 1, plane 1, block 0: its record is damaged\n" in done.stdout
    assert "... and 5 more" in done.stdout
    assert "25 faults" in done.stderr
    assert "25 block records are damaged" in run("info", image).stderr


def test_files_are_refused_with_one_line(run: Run, image: Path, tmp_path: Path) -> None:
    def reason() -> str:
        done = run("check", image)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.startswith(f"essd-nand: {image}: ")
        assert done.stderr.count("\n") == 1
        return done.stderr

    size = image.stat().st_size
    os.truncate(image, size - 1)
    assert "shorter than its array" in reason()
    os.truncate(image, size)
    Image(image).flip(100)
    assert "header of the file is damaged" in reason()
    Image(image).flip(8)
    assert "another version" in reason()
    image.write_bytes(b"#!/bin/sh\n")
    assert "not the file of a NAND array" in reason()
    image.unlink()
    assert "No such file" in reason()
    image.mkdir()
    assert "it is not a regular file" in reason()
    image.rmdir()
    os.mkfifo(image)
    assert "it is not a regular file" in reason()


@pytest.mark.parametrize(("words", "text"), [
    (("--capacity", "100M"), "an array of 100M is too small for 4 channels with 2 dies "
     "of the profile tlc2021; the nearest is 300M"),
    (("--capacity", "900T"), "an array of 900T is too large for 4 channels with 2 dies"),
    (("--capacity", "1G", "--channels", "17"), "17 channels do not fit; choose 1 to 16"),
    (("--capacity", "1G", "--channels", "5000"), "5000 channels do not fit"),
    (("--capacity", "1G", "--dies", "0"), "0 dies of a channel do not fit; choose 1 to 16"),
    (("--capacity", "1G", "--profile", "plc"), "there is no profile plc"),
])
def test_create_refuses_what_does_not_fit(run: Run, tmp_path: Path, words: tuple[str, ...],
                                          text: str) -> None:
    path = tmp_path / "nand.img"
    done = run("create", path, *words)
    assert done.returncode == 1
    assert text in done.stderr
    assert done.stderr.count("\n") == 1
    assert not path.exists()


def test_create_refuses_an_array_whose_map_fits_into_no_superblock(run: Run, tmp_path: Path
                                                                   ) -> None:
    path = tmp_path / "nand.img"
    words = ("--capacity", "16G", "--profile", "slc", "--channels", "1", "--dies", "1")
    done = run("create", path, *words)
    assert done.returncode == 4 and not path.exists()
    assert done.stderr == (f"essd-nand: {path}: an array of 16G is too large for 1 channels with "
                           "1 dies of the profile slc; the nearest is 12408M\n")
    assert run("create", path, *words, "--visible", "4G").returncode == 0


def test_the_smallest_arrays_are_those_of_the_document(run: Run) -> None:
    text = (paths.TOP / "docs/nand.md").read_text(encoding="utf-8")
    lines = text[text.index("| dies | `tlc2021`"):].partition("\n\n")[0].splitlines()
    heading, *rows = ([cell.strip(" `") for cell in line.strip("|").split("|")]
                      for line in lines if not line.startswith("|---"))
    said = {dies: row for row in rows[:-1] for dies in map(int, row[0].split(", "))}
    assert sorted(said) == list(range(1, 9)) and rows[-1][0].startswith("more")
    for dies in range(1, 17):
        for i, profile in enumerate(heading[1:], 1):
            mebibytes = (float(said[dies][i].rstrip("M")) if dies in said
                         else dies * float(rows[-1][i].rstrip("M")))
            done = run("size", "--capacity", 1, "--profile", profile, "--channels", 1,
                       "--dies", dies)
            assert done.returncode == 0, done.stderr
            assert int(done.stdout) == mebibytes * 1024 * 1024, (dies, profile)


def test_space_is_that_of_the_array_that_size_has_found(run: Run) -> None:
    for words in ((), ("--profile", "slc", "--dies", 1), ("--plp", "--channels", 16)):
        size = run("size", "--capacity", "20G", *words).stdout
        space = run("space", "--capacity", size.strip(), *words)
        assert (space.returncode, space.stderr) == (0, "")
        assert 20 << 30 <= int(space.stdout) < int(size)


@pytest.mark.parametrize(("words", "status", "text"), [
    (("space", "--capacity", "100M"), 1, "an array of 100M is too small for"),
    (("space", "--capacity", "97G"), 4, "an array of 97G is too large for 4 channels with 2 "
     "dies of the profile tlc2021; the nearest is 96G"),
    (("space", "--capacity", "96G", "--channels", "16", "--dies", "16"), 4, "is too large"),
    (("size", "--capacity", "80G"), 4, "a capacity of 80G is too large for 4 channels with 2 "
     "dies of the profile tlc2021; the nearest is 76825M"),
    (("size", "--capacity", "1G", "--dies", "17"), 1, "17 dies of a channel do not fit; "
     "choose 1 to 16"),
    (("size", "--capacity", "1G", "--profile", "plc"), 1, "there is no profile plc"),
])
def test_what_no_drive_can_have_is_refused(run: Run, words: tuple[str, ...], status: int,
                                           text: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(f"essd-nand: {text}") or text in done.stderr
    assert done.stderr.count("\n") == 1


def test_hosts_that_see_less_of_an_array_leave_room_for_the_map_of_a_larger_one(
        run: Run) -> None:
    large = ("space", "--capacity", "96G", "--channels", "16", "--dies", "16")
    assert run(*large, "--visible", "8G").returncode == 0
    assert run(*large, "--visible", "90G").returncode == 4


def test_create_keeps_a_file_that_exists(run: Run, image: Path) -> None:
    before = image.stat().st_mtime_ns
    done = run("create", image, "--capacity", "1G")
    assert done.returncode == 1 and "File exists" in done.stderr
    assert image.stat().st_mtime_ns == before


@pytest.mark.parametrize("words", [
    (), ("info",), ("size",), ("space", "--visible", "1G"), ("create", "FILE"), ("draw", "FILE"),
    ("create", "FILE", "--capacity"),
    ("create", "FILE", "--capacity", "8X"), ("create", "FILE", "--capacity", "-1"),
    ("create", "FILE", "--capacity", "99999999999T"), ("age", "FILE", "--days", "x"),
    ("age", "FILE", "--erasures", "1000001"), ("check", "FILE", "more"),
])
def test_a_wrong_command_line_is_refused(run: Run, words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert "essd-nand" in done.stderr


def test_age_adds_wear_and_time_and_keeps_the_contents(run: Run, image: Path) -> None:
    writer = Image(image)
    writer.program(205, 0)
    for _ in range(2):
        done = run("age", image, "--erasures", 750, "--days", 15)
        assert (done.returncode, done.stderr) == (0, "")
    shown = run("info", image).stdout
    assert "wear        1500.00 erasures of a block on average (50.00% of the rated 3000)" in shown
    assert "time        30.00 days" in shown
    assert "generation  3, nonce 0000000000000000\n" in shown
    assert "1 wordlines with 12 units in order" in run("check", image).stdout


def test_a_saved_machine_does_not_fit_to_an_array_that_was_aged(run: Run, image: Path) -> None:
    Image(image).state(2, 5, 0x123456789abcdef0)
    assert "generation  5, nonce 123456789abcdef0\n" in run("info", image).stdout
    assert '"generation_nonce": "123456789abcdef0"' in run("info", image, "--json").stdout
    assert run("age", image, "--days", 1).returncode == 0
    assert "generation  6, nonce 0000000000000000\n" in run("info", image).stdout


def head(image: Path) -> bytes:
    with open(image, "rb") as file:
        return file.read(16384)


@pytest.mark.parametrize("words", [("info",), ("check", "--json"), ("age", "--days", "1")])
def test_a_file_that_a_machine_uses_is_refused(run: Run, image: Path,
                                               words: tuple[str, ...]) -> None:
    before = head(image)
    with open(image, "r+b") as file:
        # The lock of a QEMU that writes to the file (block/file-posix.c).
        fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 101, 1, 0))
        done = run(words[0], image, *words[1:])
    assert (done.returncode, done.stdout) == (3, "")
    assert "a running machine or another essd-nand uses it" in done.stderr
    assert head(image) == before
    assert run(words[0], image, *words[1:]).returncode == 0


def test_several_programs_read_a_file_at_the_same_time(run: Run, image: Path) -> None:
    before = head(image)
    with open(image, "rb") as file:
        # What another essd-nand info holds: nobody else may write.
        fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 201, 1, 0))
        assert run("info", image).returncode == 0
        assert run("check", image).returncode == 0
        done = run("age", image, "--days", 1)
    assert (done.returncode, done.stdout) == (3, "")
    assert "a running machine or another essd-nand uses it" in done.stderr
    assert head(image) == before
    assert run("age", image, "--days", 1).returncode == 0


def test_the_profiles_are_listed(run: Run) -> None:
    names = [line.split()[0] for line in run("profiles").stdout.splitlines()]
    assert names == ["tlc2021", "slc", "mlc2d", "qlc"]
