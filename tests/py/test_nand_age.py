# SPDX-License-Identifier: BSD-2-Clause
"""`essd media age --fill`: essd-nand preconditions the array of a drive that is off."""

import hashlib
import json
import os
import re
import resource
import signal
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from essd import cli
from essd.base import paths
from essd.base.errors import EssdError
from essd.build import native_build
from essd.settings import block as config_block
from essd.setup import setup
from essd.setup.setup import Wish
from essd.storage import flash, nand, nand_look
from test_cli_instances import make_drive
from typer.testing import CliRunner

SMALL = "300M,channels=1"        # the smallest array of one channel with two dies
PARITY = "400M,channels=3,dies=1"


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    paths.runtime()


@pytest.fixture(scope="module")
def sanitized() -> Path:
    return native_build.native_program("native", nand.PROGRAM, "essd-nand")


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch, sanitized: Path) -> Path:
    """essd-nand with sanitizers."""
    monkeypatch.setattr(nand, "program", lambda: sanitized)
    return sanitized


def make(text: str = SMALL, name: str = "x", namespaces: int = 0,
         capacity: int = 64 << 20) -> Path:
    """The array of a drive that was created with --nand TEXT, and never started."""
    array = setup.drive_nand(Wish(name=name, nand=text))
    assert array is not None
    folder = make_drive(name, exist_ok=True)
    image = flash.FlashImage.load(folder / "flash.img")
    image.identity = flash.Identity.random(capacity=capacity)
    image.config = config_block.Config(image.config.ports,
                                network=config_block.Network(ns_count=namespaces))
    image.save(folder / "flash.img")
    return Path(array.path)


def age(*words: str, name: str = "x") -> str:
    done = CliRunner().invoke(cli.app, ["media", "age", "--name", name, *words])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*words: str) -> str:
    """The single line that refuses the options."""
    done = CliRunner().invoke(cli.app, ["media", "age", "--name", "x", *words])
    assert done.exit_code == 2, done.output
    return done.output


def in_order(path: Path) -> dict[str, int]:
    """What a check of the array has counted; it finds no fault."""
    done = nand.call("check", path, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(done.stdout))


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@pytest.mark.parametrize("array", [SMALL, PARITY, SMALL + ",plp=on", "400M,channels=1,profile=qlc"])
def test_a_drive_is_filled_and_overwritten(array: str) -> None:
    path = make(array)
    said = age("--fill", "80", "--drive-writes", "2", "--yes")
    assert re.search(r"filled 51 MiB of 64 MiB, then wrote 128 MiB at random; units programmed "
                     r"for each unit written, without parity: 1\.\d\d; erasures of the drive's "
                     r"blocks: \d to \d", said), said
    counted = in_order(path)
    assert counted["units"] > (51 << 20) // 4096
    assert counted["half_programmed_wordlines"] == counted["half_erased_blocks"] == 0
    facts = nand.look(path)
    assert facts["full_blocks"] > 100


def test_the_same_seed_gives_the_same_array_and_another_one_does_not() -> None:
    first, same, other = (make(name=name) for name in ("x", "y", "z"))
    for name, seed in (("x", "7"), ("y", "7"), ("z", "8")):
        age("--fill", "100", "--drive-writes", "1", "--seed", seed, "--yes", name=name)
    assert digest(first) == digest(same) != digest(other)


def test_wear_comes_before_the_writes_and_the_days_after_them() -> None:
    path = make()
    before = nand.look(path)["generation"]
    assert "aged by 300 erasures and 0 reads of each block, and by 2 days" in age(
        "--fill", "50", "--erasures", "300", "--days", "2", "--yes")
    facts = nand.look(path)
    assert facts["min_erasures"] == 300 and facts["time_s"] == 2 * 86400
    assert facts["generation"] > before
    in_order(path)


@pytest.mark.parametrize("array", [SMALL, PARITY])
def test_the_map_of_a_drive_that_is_off_changes_nothing(array: str) -> None:
    path = make(array)
    age("--fill", "100", "--drive-writes", "1", "--yes")
    before = digest(path)
    done = CliRunner().invoke(cli.app, ["media", "map", "--name", "x", "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert not facts["running"] and digest(path) == before
    states = [row["state"] for row in facts["superblocks"]]
    assert len(states) == nand.look(path)["blocks"]
    assert {"free", "closed", "checkpoint"} == set(states)
    # The whole capacity, and the pages with erase counts.
    valid = sum(row["valid"] for row in facts["superblocks"])
    assert 0 <= valid - (64 << 20) // 4096 < 20
    assert all(die["busy"] is None and not die["dead"] for die in facts["dies"])


FILLS = " .:-=+*#%@"      # from no programmed wordline to all of them
DIE = re.compile(r"^ch +(\d+) die +(\d+) \|(.{48})\|(.{48})\|$", re.MULTILINE)


def info(*words: str) -> str:
    done = CliRunner().invoke(cli.app, ["media", "info", "--name", "x", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def pictures() -> dict[tuple[int, int], tuple[str, str]]:
    """Fill and wear of each die, as `essd media info` draws them."""
    return {(int(channel), int(die)): (fill, wear)
            for channel, die, fill, wear in DIE.findall(info())}


def test_the_picture_shows_fill_and_wear_of_each_die() -> None:
    make()
    assert pictures() == {(0, die): (" " * 48, "0" * 48) for die in (0, 1)}
    age("--fill", "50", "--erasures", "1000", "--yes")
    shown = pictures()
    facts = json.loads(info("--json"))
    assert sorted(shown) == [(die["channel"], die["die"]) for die in facts["die_map"]]
    for die in facts["die_map"]:
        fill, wear = shown[die["channel"], die["die"]]
        for sign, share in zip(fill, die["fill"], strict=True):
            assert abs(FILLS.index(sign) - 9 * share) <= 1, (sign, share)
            assert (sign == " ") == (share == 0), (sign, share)
        # A third of the rated 3000 erasures.
        assert set(wear) == {"3"} and 1000 <= min(die["erasures"]) < 1010
        # 64 MiB of the array's 300 MiB were written by half; the rest is empty.
        assert "@" in fill and " " * 24 in fill, fill


def test_a_drive_that_was_filled_is_filled_again_and_its_rest_stays() -> None:
    path = make()
    assert "filled 64 MiB of 64 MiB; erasures" in age("--fill", "100", "--yes")
    units = in_order(path)["units"]
    assert "then wrote 64 MiB sequentially" in age(
        "--fill", "10", "--drive-writes", "1", "--sequential", "--yes")
    assert in_order(path)["units"] >= units - 1000


@pytest.fixture
def running(program: Path) -> Iterator["subprocess.Popen[str]"]:
    """An essd-nand that has much to write and has begun."""
    path = make()
    with subprocess.Popen(
            [program, "age", path, "--fill", "90", "--drive-writes", "100", "--flash",
             path.with_name("flash.img"), "--progress"], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("progress ")
        yield process
        process.kill()
        process.wait(60)


def test_an_interrupt_leaves_a_drive_that_was_stopped(
        running: "subprocess.Popen[str]") -> None:
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=120)[1]
    assert running.returncode == 1
    assert re.search(r"interrupted; the drive has \d+% of the writes\n$", said), said
    path = paths.drives() / "x" / nand.FILE
    assert in_order(path)["half_programmed_wordlines"] == 0
    age("--fill", "10", "--yes")


@pytest.mark.parametrize("words", [("info",), ("check",), ("age", "--days", "1")])
def test_an_array_that_is_aged_is_in_use(running: "subprocess.Popen[str]",
                                         words: tuple[str, ...]) -> None:
    done = nand.call(words[0], paths.drives() / "x" / nand.FILE, *words[1:])
    assert running.poll() is None
    assert (done.returncode, done.stdout) == (nand.BUSY, "")
    assert "a running machine or another essd-nand uses it" in done.stderr


def test_a_kill_is_a_power_cut_and_the_array_mounts_again(
        running: "subprocess.Popen[str]") -> None:
    running.kill()
    running.wait(60)
    age("--fill", "10", "--yes")
    in_order(paths.drives() / "x" / nand.FILE)


def test_a_disk_that_is_full_is_reported_and_the_array_mounts_again(program: Path) -> None:
    path = make()

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size // 2,) * 2)

    done = subprocess.run(
        [program, "age", path, "--fill", "100", "--flash", path.with_name("flash.img")],
        preexec_fn=limit, text=True, capture_output=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr == (f"essd-nand: {path}: not all could be written: "
                           f"{os.strerror(27)}; the drive keeps what was written until then, "
                           "as after a power cut\n")
    age("--fill", "10", "--yes")


@pytest.mark.parametrize(("option", "value", "said"), [
    ("--fill", "0", "should be greater than or equal to 1"),
    ("--fill", "101", "should be less than or equal to 100"),
    ("--fill", "-3", "should be greater than or equal to 1"),
    ("--fill", "80%", "should be a valid integer"),
    ("--drive-writes", "1000", "should be less than or equal to 100"),
    ("--drive-writes", "-1", "should be greater than or equal to 0"),
    ("--seed", "-1", "should be greater than or equal to 0")])
def test_a_number_outside_its_range_is_refused(option: str, value: str, said: str) -> None:
    shown = " ".join(re.sub("[│╭╮╰╯─]", " ", refused("--fill", "80", option, value)).split())
    assert f"Invalid value for '{option}': Input {said}" in shown


@pytest.mark.parametrize("words", [("--drive-writes", "1"), ("--sequential",)])
def test_what_follows_the_fill_is_refused_without_it(words: tuple[str, ...]) -> None:
    make()
    with pytest.raises(EssdError, match="--drive-writes and --sequential need --fill"):
        age(*words)


def test_data_are_overwritten_only_with_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    path = make()
    before = digest(path)
    with pytest.raises(EssdError, match="not a terminal: give --yes"):
        age("--fill", "80")
    monkeypatch.setattr("essd.cli.commands.media.can_ask", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda _: False)
    with pytest.raises(EssdError, match="nothing was written"):
        age("--fill", "80")
    assert digest(path) == before


def test_a_drive_whose_namespaces_are_not_there_yet_has_to_be_started() -> None:
    make(namespaces=2)
    with pytest.raises(EssdError, match="the drive has no namespaces yet; start and stop it "
                                        "once"):
        age("--fill", "80", "--yes")


@pytest.mark.parametrize("data", [b"", b"\0" * flash.SIZE])
def test_a_drive_without_an_identity_is_refused(data: bytes) -> None:
    path = make()
    path.with_name("flash.img").write_bytes(data)
    with pytest.raises(EssdError, match="it is no SPI flash of a drive with an identity"):
        age("--fill", "80", "--yes")


def test_a_table_of_namespaces_that_is_damaged_is_refused() -> None:
    path = make()
    image = flash.FlashImage.load(path.with_name("flash.img"))
    image.write(flash.LAYOUT["FLASH_NAMESPACES_ADDR"], b"\0" * 24 + b"ESSD-NS1")
    image.save(path.with_name("flash.img"))
    with pytest.raises(EssdError, match="the table of namespaces is damaged"):
        age("--fill", "80", "--yes")


@pytest.mark.parametrize(("outcome", "flags", "is_refused"), [
    (1, 2, False), (2, 0, True), (3, 1, True), (3, 0, False)])
def test_a_drive_that_is_being_sanitized_is_not_filled(outcome: int, flags: int,
                                                       is_refused: bool) -> None:
    path = make()
    image = flash.FlashImage.load(path.with_name("flash.img"))
    record = struct.pack("<BBBBIIB3xQ40x", outcome, flags, 2, 1, 0, 2, 0, 0)
    head = struct.pack("<III8x", 1, len(record), zlib.crc32(record))
    image.write(flash.LAYOUT["FLASH_SANITIZE_ADDR"],
                head + struct.pack("<I", zlib.crc32(head)) + b"ESSD-SA1" + record)
    image.save(path.with_name("flash.img"))
    before = digest(path)
    if is_refused:
        with pytest.raises(EssdError, match="a Sanitize of the drive has not ended, or has "
                                            "failed; start the drive"):
            age("--fill", "10", "--yes")
        assert in_order(path)["units"] == 0
    else:
        age("--fill", "10", "--yes")
        assert digest(path) != before


def test_an_array_of_a_drive_with_another_capacity_is_refused() -> None:
    path = make()
    age("--fill", "10", "--yes")
    make_drive("x", exist_ok=True)
    image = flash.FlashImage.load(path.with_name("flash.img"))
    image.identity = flash.Identity.random(capacity=32 << 20)
    image.save(path.with_name("flash.img"))
    with pytest.raises(EssdError, match="cannot mount it: it was written with another capacity "
                                        "than this drive's; use the drive's own array$"):
        age("--fill", "10", "--yes")


def test_a_damaged_record_is_found_before_anything_changes() -> None:
    path = make()
    with path.open("r+b") as file:
        file.seek(16384 + 64 * 100 + 9)
        file.write(b"\x55")
    before = digest(path)
    for words in (("--erasures", "10"), ("--days", "1"), ("--fill", "10", "--yes")):
        with pytest.raises(EssdError, match="the record of block 100 is damaged, so nothing was "
                                            "changed; use a copy"):
            age(*words)
    assert digest(path) == before


def test_no_more_days_pass_than_the_clock_of_the_array_can_count() -> None:
    path = make()
    for _ in range(5):
        age("--days", "36500")
    before = digest(path)
    with pytest.raises(EssdError, match="at most 200000 days can pass for an array, and 182500 "
                                        "have passed; nothing was changed"):
        age("--days", "36500")
    assert digest(path) == before
    age("--days", "17500")
    assert nand.look(path)["time_s"] == 200000 * 86400


def test_the_days_begin_at_the_latest_time_that_a_power_cut_has_left() -> None:
    path = make()
    record = bytearray(path.read_bytes()[16384 + 64 * 7:][:60])
    struct.pack_into("<Q", record, 24, 10**9 * 3600)
    with path.open("r+b") as file:
        file.seek(16384 + 64 * 7)
        file.write(bytes(record) + struct.pack("<I", zlib.crc32(record)))
    age("--days", "1")
    assert nand.look(path)["time_s"] == 86400 + 3600


def records(path: Path) -> dict[tuple[int, int, int], tuple[int, int, bool]]:
    """Die, plane and block: erasures, reads since the last one, and the factory's mark."""
    facts = nand.look(path)
    data = path.read_bytes()[16384:]
    found = {}
    for i in range(facts["channels"] * facts["dies"] * facts["planes"] * facts["blocks"]):
        wear, reads, flags = struct.unpack_from("<IIB", data, 64 * i + 12)
        plane, block = divmod(i, facts["blocks"])
        found[divmod(plane, facts["planes"]) + (block,)] = (wear // 256, reads, bool(flags & 2))
    return found


def test_one_place_gets_erasures_and_reads() -> None:
    path = make()
    before = records(path)
    assert "aged by 900 erasures and 5000 reads of each block of die=1,plane=2-3,block=7" in age(
        "--at", "die=1,plane=2-3,block=7", "--erasures", "900", "--reads", "5000")
    chosen = {(1, 2, 7), (1, 3, 7)}
    for place, (wear, reads, bad) in records(path).items():
        assert (wear, reads) == ((900, 5000) if place in chosen else (0, 0)), place
        assert bad == before[place][2]
    assert added_erasures(path) == 900 * 2 // len(before)


def test_blocks_of_a_new_drive_are_marked_as_bad() -> None:
    path = make()
    before = records(path)
    age("--at", "channel=0,die=0,block=10-12", "--bad")
    for place, (wear, reads, bad) in records(path).items():
        assert (wear, reads) == (0, 0)
        assert bad == (before[place][2] or (place[0] == 0 and 10 <= place[2] <= 12)), place
    assert nand.look(path)["factory_bad_blocks"] == sum(r[2] for r in records(path).values())
    age("--fill", "50", "--yes")        # The translation layer leaves them out.
    in_order(path)
    assert all(not bad or wear == 0 for wear, _, bad in records(path).values())


@pytest.mark.parametrize("percent", ["1", "100"])      # With 1, nothing is erased.
def test_a_block_that_has_been_in_use_is_not_marked_as_bad(percent: str) -> None:
    path = make()
    age("--fill", percent, "--yes")
    before = digest(path)
    with pytest.raises(EssdError, match="has been in use, so it cannot be marked as bad any more, "
                                        "and nothing was changed"):
        age("--at", "block=0-199", "--bad")
    assert digest(path) == before


@pytest.mark.parametrize(("place", "said"), [
    ("die=2", "there is no die=2; use numbers from 0 to 1"),
    ("plane=0-4", "there is no plane=4; use numbers from 0 to 3"),
    ("die=1-0", "die=1-0 is no place; write it like channel=0,die=1,plane=0-3,block=17"),
    ("die=", "die= is no place; write it like"),
    ("die=-1", "die=-1 is no place; write it like"),
    ("die=0-", "die=0- is no place; write it like"),
    ("die=0,", "die=0, is no place; write it like"),
    ("die=0 plane=1", "die=0 plane=1 is no place; write it like"),
    ("die=99999999999999999999", "is no place; write it like"),
    ("page=1", "page=1 is no place; write it like")])
def test_a_place_that_does_not_exist_is_refused(place: str, said: str) -> None:
    path = make()
    before = digest(path)
    with pytest.raises(EssdError) as refusal:
        age("--at", place, "--erasures", "1")
    assert said in str(refusal.value) and "\n" not in str(refusal.value)
    assert digest(path) == before


@pytest.mark.parametrize(("words", "said"), [
    (("--at", "die=0", "--days", "1"), "--at needs --erasures, --reads or --bad"),
    (("--bad",), "--bad needs --at PLACE"), ((), "give --erasures N")])
def test_options_without_what_they_need_are_refused(words: tuple[str, ...], said: str) -> None:
    make()
    with pytest.raises(EssdError, match=said):
        age(*words)


def added_erasures(path: Path) -> int:
    """The erasures that the newest usage record of the flash says were added to each block."""
    image = flash.FlashImage.load(path.with_name("flash.img"))
    sector = image.data[flash.LAYOUT["FLASH_USAGE_A_ADDR"]:][:4096]
    records = [sector[at:at + 64] for at in range(64, 4096, 64)]
    newest = [record for record in records if record[9] == 1][-1]
    return newest[8] << 16 | int.from_bytes(newest[10:12], "little")


def test_erasures_are_added_to_what_the_drive_counts() -> None:
    path = make()
    age("--erasures", "300")
    assert added_erasures(path) == 300
    age("--erasures", "100000", "--days", "1")
    assert added_erasures(path) == 100300
    age("--days", "1")
    assert added_erasures(path) == 100300
    age("--erasures", "7", "--fill", "50", "--yes")
    assert added_erasures(path) == 100307


@pytest.mark.parametrize("data", [b"", b"\0" * flash.SIZE])
def test_no_erasures_are_added_if_the_drive_could_not_count_them(data: bytes) -> None:
    path = make()
    path.with_name("flash.img").write_bytes(data)
    before = digest(path)
    with pytest.raises(EssdError, match="it is no SPI flash of a drive with an identity"):
        age("--erasures", "300")
    assert digest(path) == before
    age("--days", "1")


def test_an_array_that_is_damaged_or_read_only_is_refused() -> None:
    path = make()
    data = path.read_bytes()
    path.write_bytes(data[:9])
    with pytest.raises(EssdError, match=f"NAND file {path}: "):
        age("--fill", "80", "--yes")
    damaged = bytearray(data)
    damaged[16384 + 9] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(EssdError, match=f"NAND file {path}: "):
        age("--fill", "80", "--yes")


def test_a_drive_with_a_block_medium_is_refused() -> None:
    make_drive("x")
    with pytest.raises(EssdError, match="has no NAND array"):
        age("--fill", "80", "--yes")


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    make()
    shown: list[str] = []
    monkeypatch.setattr(nand_look, "shown_percent", lambda progress: shown.append)
    age("--fill", "100", "--yes")
    assert shown[:2] == ["progress 50", "progress 100"]
