# SPDX-License-Identifier: BSD-2-Clause
"""A drive with a NAND array: its options, its file, and `essd media`."""

import contextlib
import ctypes
import json
import os
import re
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_cli_instances import make_drive, run
from test_json import check as check_fields
from typer.testing import CliRunner

from essd import cli
from essd.base import paths, persisted
from essd.base.errors import EssdError, Mistakes
from essd.build import native_build
from essd.instance.config import Config, Drive, Nand
from essd.instance.instance import Instance
from essd.machine.drive import drive_command
from essd.setup import instances, setup
from essd.setup.setup import Wish
from essd.storage import flash, media, nand, snapshots
from essd.topology import setup as topology_setup, topology
from essd.topology.reader import load

SMALL = "300M,channels=1"        # the smallest array of one channel with two dies


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    paths.runtime()


@pytest.fixture(scope="session")
def sanitized() -> Path:
    return native_build.native_program("native", nand.PROGRAM, "essd-nand")


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, sanitized: Path) -> None:
    """essd-nand with sanitizers."""
    monkeypatch.setattr(nand, "program", lambda: sanitized)


def make(text: str = SMALL, name: str = "x") -> Nand:
    """The array of a drive that was created with --nand TEXT."""
    array = setup.drive_nand(Wish(name=name, nand=text))
    assert array is not None
    folder = make_drive(name, exist_ok=True)
    image = flash.FlashImage.load(folder / "flash.img")
    image.identity = flash.Identity.random()
    image.save(folder / "flash.img")
    return array


# What the user asks for

@pytest.mark.parametrize(("text", "found"), [
    ("8G", nand.Wanted("8G")),
    ("512MiB,profile=qlc", nand.Wanted("512MiB", "qlc")),
    ("96g, channels=2,dies=4,seed=7", nand.Wanted("96g", None, 2, 4, 7)),
    ("timing=realtime", nand.Wanted(timing="realtime")),
    ("8G,plp=on", nand.Wanted("8G", plp="on"))])
def test_the_option_has_a_size_and_keys(text: str, found: nand.Wanted) -> None:
    assert nand.parse(text) == found


@pytest.mark.parametrize(("text", "said"), [
    ("8", "nand '8' has no unit: write a number and a unit, such as 8G"),
    ("1073741824", "has no unit: write a number and a unit, such as 8G"),
    ("", "is not a size"), ("8X", "is not a size"), ("-1G", "is not a size"),
    ("1.5G", "is not a size"),
    ("8G,qlc", "'qlc' must be KEY=VALUE"),
    ("8G,profil=qlc", "must be KEY=VALUE, where KEY is profile, .*; did you mean profile?"),
    ("8G,dies=x", "dies 'x' is not a number"), ("8G,dies=-1", "dies '-1' is not a number"),
    ("8G,channels=17", "nand '8G,channels=17': channels 17 is outside 1 to 16"),
    ("dies=0", "dies 0 is outside 1 to 16"), ("dies=1001", "dies 1001 is outside 1 to 16"),
    ("8G,seed=1,seed=2", "seed occurs twice"),
    ("8G,plp=yes", "plp yes: must be on or off"),
    ("8G,timing=real", "timing real: must be fast or realtime; did you mean realtime?")])
def test_an_option_that_makes_no_sense_is_refused(text: str, said: str) -> None:
    with pytest.raises(EssdError, match=said.replace("?", r"\?")) as refused:
        nand.parse(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("text", "said"), [
    ("100M", "nand: an array of 100M is too small for 4 channels with 2 dies of the "
             "profile tlc2021; the nearest is 300M"),
    ("97G", "nand: an array of 97G is too large for 4 channels with 2 dies of the profile "
            "tlc2021; the nearest is 96G"),
    ("9" * 5000 + "G", "is too large"),
    ("16G,profile=slc,channels=1,dies=1", "nand: an array of 16G is too large for 1 channels "
     "with 1 dies of the profile slc; the nearest is 12408M"),
    ("25M,profile=slc,channels=1,dies=1,plp=on", "nand: an array of 25M is too small for "
     "power-loss protection with 1 channels with 1 dies of the profile slc; the nearest is 28800K"),
    ("8G,profile=tlc2012", "profile tlc2012: must be tlc2021, slc, mlc2d, qlc or "
                           "samsung-2021; did you mean tlc2021?"),
    ("8G,seed=1", "nand 8G: such an array has space for 6327M, not for 7G: choose an array of "
                  "9600M, or a capacity of 6327M")])
def test_an_array_that_is_impossible_is_refused_and_leaves_nothing(
        program: None, text: str, said: str) -> None:
    with pytest.raises(EssdError) as refused, setup.half_made("x"):
        setup.drive_nand(Wish(name="x", nand=text, size="7G" if "seed" in text else None))
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert not setup.data_folder("x").exists()


def test_an_array_whose_map_would_not_fit_can_be_larger_if_hosts_see_less(program: None) -> None:
    shape = "16G,profile=slc,channels=1,dies=1"
    for size, text in (("4G", shape), (None, f"{shape},spare=100")):
        array = setup.drive_nand(Wish(name="x", size=size, nand=text))
        assert array is not None and 0 < array.capacity < 8 << 30
        setup.drive_nand(Wish(name="x"))
        Path(array.path).unlink()
        media.record_path(Path(array.path)).unlink()


@pytest.mark.parametrize(("shape", "size"), [("profile=slc,channels=1,dies=1", "28800K"),
                                             ("channels=4,dies=1", "450M")])
def test_an_array_for_power_loss_protection_is_larger_than_the_smallest(
        program: None, shape: str, size: str) -> None:
    wanted = nand.parse(f"plp=on,{shape}")
    assert nand.size_bytes(nand.choose_size(wanted, 1 << 20)) == nand.size_bytes(size)
    assert nand.size_bytes(nand.choose_size(nand.parse(shape), 1 << 20)) < nand.size_bytes(size)


def refusal(size: str | None, array: str | None, words: str) -> str:
    """Why a new drive cannot have this capacity, and an array of this size."""
    text = ",".join(word for word in (array, words) if word)
    try:
        setup.check_new(Wish(name="x", size=size, nand=text))
    except EssdError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("shape", ["channels=1,dies=1", "channels=4,dies=2",
                                   "channels=3,dies=1", "channels=16,dies=16"])
def test_each_size_that_a_refusal_names_is_accepted(shape: str) -> None:
    names = [line.split()[0] for line in nand.call("profiles").stdout.splitlines()]
    assert len(names) > 3
    for words in [f"profile={name},{shape}" for name in names]:
        for array in ("1M", "97G", "3000T"):
            said = refusal(None, array, words)
            found = re.fullmatch(r"nand: an array of .* is too (small|large) for .* channels "
                                 r"with .* dies of the profile \S+; the nearest is (\w+)", said)
            assert found and refusal(None, found[2], words) == "", (words, said)
        said = refusal("16T", None, words)
        found = re.fullmatch("nand: a capacity of 16T is too large for .*; the nearest is "
                             r"(\w+); omit --nand to get a block medium", said)
        assert found and refusal(found[1], None, words) == "", (words, said)
        for capacity, array in (("64M", "25M"), ("30G", "30G")):
            said = refusal(capacity, array, words)
            found = re.fullmatch(
                r"nand (\w+): such an array has space for \w+, not for \w+: choose an array of "
                r"(\w+)(?:, or a capacity of (\w+))?", said)
            if found is None:       # The shape itself is too small, or its map is too large.
                assert re.match(r"nand: an? \w+ of \w+ is too (small|large) for ", said)
                continue
            assert refusal(capacity, found[2], words) == "", (words, said)
            assert found[3] is None or refusal(found[3], array, words) == "", (words, said)


@pytest.mark.parametrize("words", [["--size", "80G", "--nand", "profile=qlc"],
                                   ["--nand", "100M"], ["--size", "1G", "--nand", "1G"],
                                   ["--size", "5M"], ["--nand", "8"],
                                   ["--drives", "2", "--nand", "100M"]])
def test_up_refuses_a_wrong_size_before_it_deletes_the_old_drive(
        program: None, words: list[str]) -> None:
    folder = make_drive("x")
    with pytest.raises(EssdError, match="nearest|has no unit|outside 64M|choose an array"):
        run("up", "--name", "x", "--new", *words)
    assert (folder / "flash.img").exists()


def test_a_target_that_is_no_drive_has_no_array() -> None:
    with pytest.raises(EssdError, match="--nand is for a drive, not for --target nvmet"):
        setup.configure(Wish(name="x", target="nvmet", nand="8G"))


# The drive's files

def test_a_new_array_is_sparse_and_recorded_and_the_medium_beside_it_is_small(
        program: None) -> None:
    array = make("1G,profile=qlc,dies=1,seed=9,timing=realtime")
    assert array == Nand(str(setup.data_folder("x") / "nand.img"), "1G", "qlc", 4, 1, 9,
                         "realtime", blocks=205, wordlines=5)
    file = Path(array.path)
    assert file.stat().st_size > 1 << 30 and file.stat().st_blocks * 512 < 1 << 20
    assert nand.recorded(file) == array
    (file.parent / "media.raw").unlink()
    found = setup.drive_media(Wish(name="x"), has_nand=True)
    assert found.size == media.SMALLEST and found.path.stat().st_blocks == 0


def test_a_larger_spare_leaves_less_of_the_array_to_hosts(program: None) -> None:
    # The parity of eight dies, and half a percent of bad blocks, are no spare.
    for size in (8, 64):
        for spare in (28, 100):
            capacity = nand.choose_capacity(nand.parse(f"{size}G,spare={spare}"), f"{size}G")
            assert capacity == pytest.approx(
                (size << 30) * 7 / 8 / (1 + spare / 100), rel=0.01)
    array = make("8G,spare=28")
    assert array.spare == 28 and array.capacity > 5 << 30
    assert setup.drive_nand(Wish(name="x")) == array
    with pytest.raises(EssdError, match="has spare 28, not 7"):
        setup.drive_nand(Wish(name="x", nand="spare=7"))


def test_a_larger_spare_makes_the_array_larger_if_hosts_see_the_same(program: None) -> None:
    sizes = [nand.size_bytes(nand.choose_size(nand.parse(f"spare={spare}"), 4 << 30))
             for spare in (7, 28)]
    assert sizes[1] / sizes[0] == pytest.approx(1.28 / 1.07, rel=0.05)


def test_the_spare_that_a_small_array_really_has_is_named(program: None) -> None:
    lines = {}
    for spare in (7, 14, 28, 300):
        array = setup.drive_nand(Wish(name=f"x{spare}", size="256M", nand=f"spare={spare}"))
        assert array is not None
        lines[spare] = nand.size_line(array)
    assert lines[7] == ("600M, hosts see 256M, spare 104% (at least 7% is wanted; arrays grow in "
                        "steps, and the next one has 900M)")
    assert lines[14] == lines[7].replace("7%", "14%")
    assert lines[28] == lines[7].replace("7%", "28%")
    assert lines[300].startswith("1200M, hosts see 256M, spare 308% (at least 300% is wanted")
    # An array whose size is chosen has the spare that is asked for, or one or two more.
    array = make("8G,spare=28")
    assert re.match(r"8418816K, hosts see 5591M, spare (28|29|30)%", nand.size_line(array))
    assert nand.size_line(make("8G", "y")) == "8418816K, spare 7%"


def test_an_unknown_profile_is_refused_before_anything_is_built(
        monkeypatch: pytest.MonkeyPatch) -> None:
    def build() -> Path:
        raise AssertionError("something is built")

    monkeypatch.setattr(nand, "program", build)
    monkeypatch.setattr(native_build, "native_program", build)
    for words in (("--nand", "profile=tlc"), ("--drives", "2", "--nand", "profile=tlc")):
        done = CliRunner().invoke(cli.app, ["up", "--name", "x", *words])
        assert re.search("nand: profile tlc: must be .*; did you mean tlc2021", str(done.exception))


def test_the_profiles_are_those_of_the_program(program: None) -> None:
    listed = [line.split()[0] for line in nand.call("profiles").stdout.splitlines()]
    assert nand.profiles() == [*listed, *nand.DRIVES]


def test_the_profile_of_a_drive_stands_for_a_part_and_its_number(program: None) -> None:
    found = nand.parse("profile=samsung-2021")
    assert (found.profile, found.channels, found.dies, found.spare) == ("tlc2021", 8, 4, 11)
    assert nand.parse("dies=2,profile=samsung-2021").dies == 2
    array = make("2G,profile=samsung-2021")
    assert (array.profile, array.channels, array.dies, array.spare) == ("tlc2021", 8, 4, 11)
    assert setup.drive_nand(Wish(name="x", nand="profile=samsung-2021")) == array


def test_the_array_is_that_of_the_record_at_the_next_start(program: None) -> None:
    array = make()
    for text in (None, SMALL, "307200K", "seed=1", "profile=tlc2021,dies=2"):
        assert setup.drive_nand(Wish(name="x", nand=text)) == array


@pytest.mark.parametrize(("text", "said"), [
    ("310M", "the drive's array has size 300M, not 310M: omit size, or replace the drive by a "
            "new one with --new"),
    ("profile=qlc", "has profile tlc2021, not qlc"), ("dies=3", "has dies 2, not 3")])
def test_an_existing_array_is_not_changed(program: None, text: str, said: str) -> None:
    array = make()
    with pytest.raises(EssdError, match=said):
        setup.drive_nand(Wish(name="x", nand=text))
    assert nand.recorded(Path(array.path)) == array


def test_the_timing_of_an_existing_array_can_change_and_is_kept(program: None) -> None:
    array = make()
    slow = replace(array, timing="realtime")
    assert setup.drive_nand(Wish(name="x", nand="timing=realtime")) == slow
    assert setup.drive_nand(Wish(name="x")) == slow


@pytest.mark.parametrize(("size", "text", "raw", "capacity"), [
    (None, None, "10800M", 8 << 30), ("8G", None, "10800M", 8 << 30),
    ("64M", None, "300M", 64 << 20), ("512M", "", "900M", 512 << 20),
    ("1G", "profile=qlc,plp=on", "1600M", 1 << 30), (None, "2G", "2G", 0),
    ("100M", "2G", "2G", 100 << 20), ("20971524K", "dies=4", "24000M", 20971524 << 10)])
def test_a_new_drive_has_an_array_for_the_capacity_that_hosts_are_to_see(
        program: None, size: str | None, text: str | None, raw: str, capacity: int) -> None:
    array = setup.drive_nand(Wish(name="x", size=size, nand=text or None))
    assert array is not None and array.capacity == capacity
    assert nand.size_bytes(array.size) == nand.size_bytes(raw)
    assert nand.look(Path(array.path))["space_bytes"] >= capacity
    make_drive("x", exist_ok=True)
    for again in {None, size}:
        assert setup.drive_nand(Wish(name="x", size=again)) == array
    with pytest.raises(EssdError, match="--size 9G: the drive has .*: omit --size, or replace "
                                        "the drive by a new one with --new"):
        setup.drive_nand(Wish(name="x", size="9G"))


def test_the_flash_of_a_new_drive_says_its_capacity(
        program: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[int] = []

    def ensure(path: Path, firmware: object, config: object, nqn: object,
               capacity: int, sign: object, lower_floor: bool) -> SimpleNamespace:
        assert not lower_floor
        made.append(capacity)
        return SimpleNamespace(nqn="nqn.x")
    monkeypatch.setattr(flash, "ensure_flash", ensure)
    for wish in (Wish(name="x", size="1G"), Wish(name="y", nand="1G"),
                 Wish(name="z", block=True)):
        setup.drive_flash(wish, None, None, setup.drive_nand(wish))  # type: ignore[arg-type]
    assert made == [1 << 30, 0, 0]


def test_a_capacity_that_no_array_has_gets_a_block_medium_and_a_line_says_so(
        program: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert setup.drive_nand(Wish(name="x", size="1T")) is None
    said = capsys.readouterr()
    assert "no NAND array has a capacity of 1T, so the drive gets a block medium" in " ".join(
        (said.out + said.err).split())
    with pytest.raises(EssdError, match="nand: a capacity of 1T is too large for 4 channels "
                                        "with 2 dies of the profile slc; the nearest is 64494M; "
                                        "omit --nand to get a block medium"):
        setup.drive_nand(Wish(name="x", size="1T", nand="profile=slc"))
    assert not (setup.data_folder("x") / "nand.img").exists()


@pytest.mark.parametrize("words", [{"block": True}, {"media": Path("/x")}])
def test_a_drive_with_a_block_medium_has_no_array(
        program: None, words: dict[str, Any]) -> None:
    assert setup.drive_nand(Wish(name="x", **words)) is None
    with pytest.raises(EssdError, match=f"--nand does not go with --{next(iter(words))}: a "
                                        "drive has either"):
        setup.drive_nand(Wish(name="x", nand="8G", **words))
    with pytest.raises(EssdError, match="--block is for a drive, not for --target nvmet"):
        setup.configure(Wish(name="x", target="nvmet", block=True))


def test_a_drive_whose_flash_is_gone_keeps_its_block_medium(program: None) -> None:
    (make_drive("x") / "flash.img").unlink()
    assert setup.drive_nand(Wish(name="x")) is None


def test_a_drive_without_an_array_does_not_get_one() -> None:
    make_drive("x")
    assert setup.drive_nand(Wish(name="x")) is None
    with pytest.raises(EssdError, match="created without NAND: choose another --name, or "
                                        "replace the drive by a new one with --new"):
        setup.drive_nand(Wish(name="x", nand="8G"))
    assert {path.name for path in setup.data_folder("x").iterdir()} == {
        "flash.img", "media.raw"}


@pytest.mark.parametrize("words", [
    {"block": True}, {"media": Path("/x")}, {"media_format": "raw"}])
def test_options_of_the_medium_do_not_go_with_an_array(
        program: None, words: dict[str, Any]) -> None:
    make()
    with pytest.raises(EssdError, match="is for drives without NAND"):
        setup.drive_nand(Wish(name="x", **words))


def flip(path: Path, offset: int) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


SPOILS: dict[str, Callable[[Path], object]] = {
    "shorter than its array": cut,
    "header of the file is damaged": lambda path: flip(path, 100),
    "another version": lambda path: flip(path, 8),
    "not the file of a NAND array": lambda path: path.write_bytes(b"x" * 1000),
    "1 block records are damaged": lambda path: flip(path, 16384 + 64 * 3 + 9),
    "does not exist": Path.unlink,
    "is not a regular file": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("said", SPOILS)
def test_a_file_that_qemu_could_not_use_is_refused_in_one_line(program: None,
                                                               said: str) -> None:
    path = Path(make().path)
    SPOILS[said](path)
    with pytest.raises(EssdError) as refused:
        setup.drive_nand(Wish(name="x"))
    text = str(refused.value)
    assert text.startswith(f"NAND file {path}") and said in text and "\n" not in text


@contextlib.contextmanager
def modes_hold() -> Iterator[None]:
    """Inside, the modes of files hold for root, too (capabilities(7))."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = struct.pack("=Ii", 0x20080522, 0)
    before = ctypes.create_string_buffer(24)
    if libc.capget(header, before):
        raise OSError(ctypes.get_errno(), "capget")
    effective, *others = struct.unpack("=6I", before.raw)
    dac_override = 1 << 1
    if libc.capset(header, struct.pack("=6I", effective & ~dac_override, *others)):
        raise OSError(ctypes.get_errno(), "capset")
    try:
        yield
    finally:
        libc.capset(header, before)


def test_a_read_only_file_is_refused(program: None) -> None:
    path = Path(make().path)
    path.chmod(0o400)
    with modes_hold(), pytest.raises(EssdError) as refused:
        setup.drive_nand(Wish(name="x"))
    assert str(refused.value) == (f"NAND file {path} cannot be opened for reading and writing: "
                                  "permission denied")
    path.chmod(0o600)
    with modes_hold():
        assert setup.drive_nand(Wish(name="x")) is not None


@pytest.mark.parametrize(("other", "said"), [
    ("300M,channels=1,seed=5", "it has seed 5, not 1"),
    ("300M", "it has channels 4, not 1"),
    ("600M,channels=1", "it has 600M, with 200 blocks of 8 wordlines in a plane; the drive's "
                        "array has 300M, with 200 blocks of 4"),
    ("301M,channels=1", "it has 308736K, with 201 blocks of 4 wordlines")])
def test_another_array_in_place_of_the_recorded_one_is_refused(
        program: None, other: str, said: str) -> None:
    path = Path(make().path)
    Path(make(other, "y").path).replace(path)
    with pytest.raises(EssdError, match=f"NAND file {path} holds another array: {said}") as one:
        setup.drive_nand(Wish(name="x"))
    assert "\n" not in str(one.value)


def test_the_record_of_an_older_array_has_no_geometry(program: None) -> None:
    array = make()
    place = media.record_path(Path(array.path))
    facts = json.loads(place.read_text())
    del facts["blocks"], facts["wordlines"]
    place.write_text(json.dumps(facts))
    older = replace(array, blocks=0, wordlines=0)
    assert setup.drive_nand(Wish(name="x")) == older
    config = Config("x", "", "tcg", [], {"drive": replace(DRIVE, nand=older)})
    assert "blocks" not in snapshots.shape(config)["drives"]["drive"]["nand"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "raw"}',
                                  '{"format": "nand", "size": "8G"}'])
def test_a_damaged_record_of_the_array_is_an_error(program: None, text: str) -> None:
    path = Path(make().path)
    media.record_path(path).write_text(text)
    with pytest.raises(EssdError, match="the record .* of the NAND array cannot be read"):
        setup.drive_nand(Wish(name="x"))


def test_an_array_without_a_record_is_neither_used_nor_overwritten(program: None) -> None:
    path = Path(make().path)
    media.record_path(path).unlink()
    for text in (None, SMALL):
        with pytest.raises(EssdError, match=f"has no record {path.name}.essd.json"):
            setup.drive_nand(Wish(name="x", nand=text))
    assert path.exists()


# QEMU

ARRAY = Nand("/n,and", "8G", "tlc2021", 4, 2, 1)
DRIVE = Drive("q", "/flash", "/media", "raw", "nqn.x", nand=ARRAY)


def test_qemu_gets_an_explicit_node_for_the_array(tmp_path: Path) -> None:
    words = drive_command(Config("x", "", "tcg", [], {"drive": DRIVE}), tmp_path)
    assert any(word.startswith("essd,media=media,nand=nand,") for word in words)
    assert "essd-nand.timing=fast" in words
    (node,) = (found for word in words if word.startswith("{")
               for found in [json.loads(word)] if found["node-name"] == "nand")
    assert (node["driver"], node["discard"]) == ("raw", "unmap")
    assert node["file"] == {
        "driver": "file", "filename": "/n,and", "discard": "unmap", "locking": "on",
        "cache": {"direct": False, "no-flush": False}}


@pytest.mark.parametrize(("plp", "there"), [("on", True), ("off", False)])
def test_the_machine_has_capacitors_if_asked_for(tmp_path: Path, plp: str,
                                                 there: bool) -> None:
    assert DRIVE.nand is not None
    drive = replace(DRIVE, nand=replace(DRIVE.nand, plp=plp))
    words = drive_command(Config("x", "", "tcg", [], {"drive": drive}), tmp_path)
    assert ("plp=on" in words[words.index("-M") + 1].split(",")) is there


def test_an_array_keeps_its_board(program: None) -> None:
    array = make(SMALL + ",plp=on")
    assert array.plp == "on" and make("timing=realtime").plp == "on"
    with pytest.raises(EssdError, match="the drive's array has plp on, not off"):
        make("plp=off")


def test_a_drive_without_an_array_has_the_command_line_that_it_had(tmp_path: Path) -> None:
    config = Config("x", "", "tcg", [], {"drive": replace(DRIVE, nand=None)})
    assert not [word for word in drive_command(config, tmp_path) if "nand" in word]


def test_the_configuration_survives_json_and_an_older_one_has_no_array() -> None:
    config = Config("x", "", "tcg", [], {"drive": DRIVE})
    assert Config.from_json(config.to_json()) == config
    old = asdict(config)
    del old["drives"]["drive"]["nand"]
    assert persisted.fill(Config, old).drives["drive"].nand is None


def test_snapshots_from_before_there_were_arrays_still_belong_to_their_drive() -> None:
    config = Config("x", "", "tcg", [], {"drive": replace(DRIVE, nand=None)})
    assert "nand" not in snapshots.shape(config)["drives"]["drive"]
    with_array = snapshots.shape(replace(config, drives={"drive": DRIVE}))
    assert with_array["drives"]["drive"]["nand"]["profile"] == "tlc2021"
    assert "path" not in with_array["drives"]["drive"]["nand"]


# Topologies

HOST = "hosts: {h: {}}\ncables: [h - d:0]\n"


def test_a_drive_of_a_topology_can_have_an_array() -> None:
    found = load("drives: {d: {nand: '1G,profile=qlc'}}\n" + HOST, "t.yaml", Path("/"))
    assert found.drives["d"].nand == "1G,profile=qlc"
    found = load(topology.of_drives(2, None, None, 1, 1, "1G,dies=1"), "x", Path("/"))
    assert {drive.nand for drive in found.drives.values()} == {"1G,dies=1"}


@pytest.mark.parametrize(("text", "said"), [
    ("{nand: 8}", "1:20: a drive: nand '8' has no unit"),
    ("{nand: 1G, block: yes}", "1:10: a drive has either a NAND array (nand) or a block"),
    ("{block: 3}", "1:21: a drive: 3 is neither yes nor no"),
    ("{nand: 1G,dies=1}", "1:23: a drive cannot have 'dies=1'")])
def test_a_mistake_in_the_array_of_a_topology_has_a_place(text: str, said: str) -> None:
    with pytest.raises(Mistakes) as refused:
        load(f"drives: {{d: {text}}}\n{HOST}", "t.yaml", Path("/"))
    assert any(line.startswith(f"t.yaml:{said}") for line in refused.value.lines), \
        refused.value.lines


def test_each_array_of_a_topology_that_is_impossible_has_a_line(program: None) -> None:
    text = topology.of_drives(2, None, None, 1, 1, "1M")
    found = load(text, "t.yaml", Path("/"))
    with pytest.raises(Mistakes) as refused:
        topology_setup.arrays_of(found, topology_setup.wishes(found, "x"))
    assert [line.partition(": nand")[0] for line in refused.value.lines] == [
        f"t.yaml:2:3: drive{n}" for n in (0, 1)]


def test_options_for_a_topology_file_do_not_include_the_array(tmp_path: Path) -> None:
    with pytest.raises(EssdError, match="--nand.* not for --topology"):
        run("up", "--topology", str(tmp_path / "x.yaml"), "--nand", "8G")


# essd media, essd list, essd rm

def looks(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli.app, ["media", *words])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def test_info_shows_geometry_fill_wear_and_bad_blocks(program: None) -> None:
    array = make()
    assert looks("age", "--name", "x", "--erasures", "300", "--days", "2")[0] == 0
    status, text, complaint = looks("info", "--name", "x")
    assert (status, complaint) == (0, "")
    assert text.startswith("the drive: NAND array of 300M, spare 7%\n")
    assert "profile     tlc2021: TLC" in text
    assert "geometry    1 channels, 2 dies each, 4 planes each, 200 blocks each" in text
    assert re.search(r"bad blocks  \d+ from the factory, 0 failed later", text)
    assert ("wear        300.00 erasures of a block on average (10.00% of the rated 3000), "
            "300.00 to 300.00") in text
    assert "time        2.00 days" in text and text.count("\nch ") == 2
    with pytest.raises(EssdError, match="give --erasures N, --reads N, --bad, --days N, --fill"):
        looks("age", "--name", "x")
    status, text, _ = looks("info", "--name", "x", "--json")
    facts = json.loads(text)
    check_fields("media info", facts)
    assert (facts["min_erasures"], facts["mean_erasures"], facts["max_erasures"]) == (
        300, 300, 300)
    assert facts["file"] == array.path and facts["capacity_bytes"] == 300 << 20
    assert facts["spare_percent"] == 7
    assert facts["erased_blocks"] + facts["factory_bad_blocks"] == 2 * 4 * 200
    assert [(die["channel"], die["die"]) for die in facts["die_map"]] == [(0, 0), (0, 1)]


def test_check_names_what_is_damaged_and_fails(program: None) -> None:
    path = Path(make().path)
    assert looks("check", "--name", "x") == (
        0, "0 wordlines with 0 units in order; 0 half programmed, 0 blocks half erased\n", "")
    facts = json.loads(looks("check", "--name", "x", "--json")[1])
    assert (facts["faults"], facts["fault_count"]) == ([], 0)
    for block in range(25):
        flip(path, 16384 + 64 * block + 9)
    status, text, complaint = looks("check", "--name", "x")
    assert status == 1 and "channel 0, die 0, plane 0, block 3: its record is damaged" in text
    assert f"NAND file {path}: 25 faults" in complaint
    status, text, _ = looks("check", "--name", "x", "--json")
    facts = json.loads(text)
    check_fields("media check", facts)
    assert status == 1 and facts["fault_count"] == 25 and len(facts["faults"]) == 20
    assert looks("info", "--name", "x")[0] == 1


@pytest.fixture
def as_qemu() -> Iterator[Callable[[str], None]]:
    """Lock a file as a QEMU does that writes to it (block/file-posix.c)."""
    holders: list[subprocess.Popen[bytes]] = []

    def hold(path: str) -> None:
        holder = subprocess.Popen(
            [sys.executable, "-c",
             "import fcntl, struct, sys\n"
             "f = open(sys.argv[1], 'r+b')\n"
             "fcntl.fcntl(f, 37, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 101, 1, 0))\n"
             "print('held', flush=True)\n"
             "sys.stdin.read()\n", path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holders.append(holder)
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"

    yield hold
    for holder in holders:
        holder.communicate(timeout=60)


@pytest.mark.parametrize("what", ["info", "check", "age --days 1"])
def test_the_array_of_a_running_drive_is_not_touched(
        program: None, what: str, as_qemu: Callable[[str], None]) -> None:
    array = make()
    as_qemu(array.path)
    with pytest.raises(EssdError, match="in use: if the drive is running, stop it with "
                       "./essd down --name x, or cut its power with ./essd power-cut"):
        looks(*what.split(), "--name", "x")
    with pytest.raises(EssdError, match="in use by another process"):
        setup.drive_nand(Wish(name="x"))


def test_a_running_drive_is_refused_before_the_tool_is_built(
        program: None, monkeypatch: pytest.MonkeyPatch, as_qemu: Callable[[str], None]) -> None:
    as_qemu(make().path)
    monkeypatch.setattr(nand, "program", lambda: pytest.fail("the NAND tool was built"))
    for words in ("info", "check", "age --days 1", "age --fill 10"):
        with pytest.raises(EssdError, match="in use: if the drive is running, stop it with "):
            looks(*words.split(), "--name", "x")


@pytest.mark.parametrize("spoil", [cut, Path.unlink])
def test_a_file_that_cannot_be_read_is_reported_in_one_line(
        program: None, spoil: Callable[[Path], object]) -> None:
    path = Path(make().path)
    spoil(path)
    with pytest.raises(EssdError, match=f"NAND file {path}: "):
        looks("info", "--name", "x", "--json")


def test_a_drive_without_an_array_and_no_drive_are_told_apart() -> None:
    make_drive("plain")
    with pytest.raises(EssdError, match="the drive of plain has no NAND array"):
        looks("info", "--name", "plain")
    with pytest.raises(EssdError, match="there is no drive plein; did you mean plain"):
        looks("info", "--name", "plein")


def test_a_drive_of_a_topology_is_named_by_its_part(program: None) -> None:
    for part in ("drive0", "drive1"):
        assert setup.drive_nand(Wish(name="x", part=part, nand=SMALL)) is not None
        (paths.drive("x", part) / "flash.img").touch()
    assert looks("info", "--name", "x", "--part", "drive1")[0] == 0
    with pytest.raises(EssdError, match="several drives: name one of drive0 or drive1"):
        looks("info", "--name", "x")


def test_list_counts_the_array_and_rm_deletes_it(program: None) -> None:
    array = make()
    before = instances.facts("x")["disk_bytes"]
    with open(array.path, "r+b") as file:
        file.seek(40 << 20)
        file.write(b"x" * (4 << 20))
    assert instances.facts("x")["disk_bytes"] - before >= 4 << 20
    run("rm", "--yes", "x")
    assert not Path(array.path).exists()


# The drive

def wait_for(instance: Instance, text: str, boots: int = 1) -> None:
    console = instance.folder / "drive/console.log"
    deadline = time.monotonic() + 120
    while console.read_text(errors="replace").count(text) < boots:
        assert time.monotonic() < deadline, console.read_text(errors="replace")
        time.sleep(0.05)


def test_the_firmware_finds_the_array_and_it_survives_power_cuts_and_snapshots() -> None:
    def configure(**words: str) -> Config:
        return setup.configure(Wish(name="x", host=False, **words))     # type: ignore[arg-type]

    instance = Instance("x")
    config = configure(nand="300M,seed=3")
    array = config.drives["drive"].nand
    assert array is not None
    instance.start(config)
    try:
        instance.wait_started()
        wait_for(instance, "nand: 4 channels, 2 dies each, 4 planes of 200 blocks")
        with pytest.raises(EssdError, match="is in use: if the drive is running"):
            looks("check", "--name", "x")
        assert "this is what its firmware says" in looks("info", "--name", "x")[1]
        instance.ask("save-all", name="one")
        instance.ask("power-cut")
        assert "seed        3\n" in looks("info", "--name", "x")[1]
        instance.ask("power-on")
        wait_for(instance, "nand: 4 channels", boots=2)
        instance.ask("load-all", name="one")
        instance.ask("save")
        instance.ask("load")
    finally:
        instance.stop()
    assert looks("check", "--name", "x")[0] == 0
    copy = snapshots.fork("x", "one", "copy")
    try:
        path = paths.drive("copy") / nand.FILE
        assert nand.recorded(path) == copy.config.drives["drive"].nand
        assert copy.config.drives["drive"].nand == replace(array, path=str(path))
    finally:
        copy.stop()
    instance.start(configure())
    try:
        instance.wait_started()
        wait_for(instance, "nand: 4 channels")
    finally:
        instance.stop()


def test_a_saved_drive_does_not_load_over_another_array() -> None:
    instance = Instance("x")
    config = setup.configure(Wish(name="x", host=False, nand="300M"))
    array = config.drives["drive"].nand
    assert array is not None
    path = Path(array.path)
    new = path.read_bytes()
    instance.start(config)
    try:
        instance.wait_started()
        wait_for(instance, "nand: 4 channels")
        instance.ask("save-all", name="one")
        instance.ask("save")
        saved = path.read_bytes()
        path.write_bytes(new)
        refusal = ("could not load its state: essd-nand: the NAND file is another one, or has "
                   "changed since the machine was saved: its generation is 1 with nonce 0{16},")
        with pytest.raises(EssdError, match=refusal):
            instance.ask("load")
        path.write_bytes(saved)
        instance.ask("load")
        (snapshots.folder("x", "one") / "drive.nand").write_bytes(new)
        with pytest.raises(EssdError, match=refusal + ".*; all machines are off, and the drives "
                                                      "have the data from before the load"):
            instance.ask("load-all", name="one")
        assert path.read_bytes() != new
    finally:
        instance.stop()
