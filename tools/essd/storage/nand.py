# SPDX-License-Identifier: BSD-2-Clause
"""The NAND array of a drive: what the user asks for, and the file that holds it.

The program essd-nand (tools/nand) creates and reads the file, whose format is in
docs/hardware/nand-file.md.  What the array is, is decided when the drive is created,
and recorded beside the file.
"""

import contextlib
import dataclasses
import functools
import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import chosen, files, interrupts, paths, persisted, show
from ..base.errors import BUILD_S, EssdError
from ..instance.config import Nand
from . import media

PROGRAM = "tools/nand/essd-nand"
FILE = "nand.img"
SIZE = re.compile(r"(\d+)([KMGT])(?:i?B)?", re.I)
SIZE_MOST = 1 << 60     # no program takes larger numbers; which sizes fit, essd-nand knows
TIMINGS = ("fast", "realtime")
VIRTUAL = "virtual"         # only in one process: bench/virtual.py
NUMBERS = ("channels", "dies", "seed")
RANGES = {"channels": (1, 16), "dies": (1, 16), "spare": (7, 400)}
SWITCH = ("on", "off")
KEYS = ("profile", *NUMBERS, "spare", "timing", "plp")
# Profiles of whole drives: a part, and how many of it (docs/hardware/nand-profiles.md).
DRIVES = {"samsung-2021": {"profile": "tlc2021", "channels": 8, "dies": 4, "spare": 11}}
SILENT_S = 1800     # a program that prints nothing for so many seconds hangs
BUSY = 3        # exit status of essd-nand: a machine uses the file
TOO_LARGE = 4   # exit status of essd-nand: no drive can have such an array


class NandError(EssdError):
    """The array cannot be made or used; the text is one line that says why."""


class TooLargeError(NandError):
    """No drive can have such an array; the text names the nearest size that one can have."""


@dataclass
class Wanted:
    """What the user asks for; None keeps what the drive has, or the default."""

    size: str | None = None
    profile: str | None = None
    channels: int | None = None     # 1 to 16
    dies: int | None = None         # of a channel, 1 to 16
    seed: int | None = None         # of errors and of the factory's bad blocks
    spare: int | None = None        # percent of flash beyond what hosts see
    timing: str | None = None
    plp: str | None = None          # power-loss protection: on or off


def size_bytes(text: str) -> int:
    match = SIZE.fullmatch(text)
    if match is None:
        why = "has no unit" if text.isdigit() else "is not a size"
        raise NandError(f"nand {text!r} {why}: write a number and a unit, such as "
                        f"{text if text.isdigit() and len(text) < 4 else 8}G")
    return min(int(match[1][:20]) << (10 * " KMGT".index(match[2].upper())), SIZE_MOST)


def parse(text: str) -> Wanted:
    """Read SIZE[,KEY=VALUE]...; a drive that has an array needs no SIZE again."""
    found = Wanted()
    for n, word in enumerate(text.split(",")):
        key, equals, value = word.strip().partition("=")
        if not equals and n == 0:
            size_bytes(key)
            found.size = key
        elif key not in KEYS or not equals:
            raise NandError(f"nand {text!r}: {word!r} must be KEY=VALUE, where KEY is "
                            f"{chosen.listed(KEYS)}{chosen.mean(key, KEYS)}")
        elif getattr(found, key) is not None:
            raise NandError(f"nand {text!r}: {key} occurs twice")
        elif key in NUMBERS or key in RANGES:
            if not (value.isascii() and value.isdigit() and len(value) < 19):
                raise NandError(f"nand {text!r}: {key} {value!r} is not a number")
            least, most = RANGES.get(key, (0, int(value)))
            if not least <= int(value) <= most:
                raise NandError(f"nand {text!r}: {key} {value} is outside {least} to {most}")
            setattr(found, key, int(value))
        else:
            if key == "timing":
                if value == VIRTUAL:
                    raise NandError("nand: timing=virtual: a drive in QEMU shares its time "
                                    "with hosts and networks outside of it; virtual time is "
                                    "for ./essd bench --native --timing virtual")
                chosen.check_word("nand: timing", value, TIMINGS)
            elif key == "plp":
                chosen.check_word("nand: plp", value, SWITCH)
            elif key == "profile":
                check_profile(value)
            setattr(found, key, value)
    expand_drive(found)
    return found


def expand_drive(wanted: Wanted) -> None:
    """Replace the profile of a whole drive by what it stands for; other keys go before it."""
    shape_of_drive = DRIVES.get(wanted.profile or "", {})
    for key, value in shape_of_drive.items():
        if key == "profile" or getattr(wanted, key) is None:
            setattr(wanted, key, value)


# The program

@functools.cache
def program() -> Path:
    from ..build import native_build  # The supervisor imports this module, and builds nothing.
    return native_build.native_program("fast", PROGRAM, "the NAND tool")


def call(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program(), *map(str, words)], check=False, text=True,
                          capture_output=True, timeout=BUILD_S)


def follow(show_line: Callable[[str], None], *words: object
           ) -> subprocess.CompletedProcess[str]:
    """Call the program, and pass each line that it prints to `show_line`.

    After a Ctrl-C, the program still ends in an orderly way, and its message is printed.
    """
    lines: list[str] = []
    command = [str(program()), *map(str, words)]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process, \
            watched(process) as is_alive:
        assert process.stdout is not None and process.stderr is not None
        try:
            for text in process.stdout:
                is_alive()
                lines.append(text)
                show_line(text.strip())
            said = process.stderr.read()
        except interrupts.INTERRUPTS:
            with interrupts.ignored():
                process.send_signal(signal.SIGTERM)
                said = process.communicate(timeout=SILENT_S)[1]
                show.error(said.strip().removeprefix("essd-nand: "))
            raise
        return subprocess.CompletedProcess(command, process.wait(SILENT_S), "".join(lines),
                                           said)


@contextlib.contextmanager
def watched(process: "subprocess.Popen[str]") -> Iterator[Callable[[], None]]:
    """Kill a process that hangs: call the yielded function whenever it has printed a line."""
    timer = interrupts.kill_after(process, SILENT_S)

    def is_alive() -> None:
        nonlocal timer
        timer.cancel()
        timer = interrupts.kill_after(process, SILENT_S)

    try:
        yield is_alive
    finally:
        timer.cancel()


def complaint(path: Path, done: subprocess.CompletedProcess[str]) -> str:
    """What essd-nand says is wrong, without the names that it begins with."""
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return lines[0].removeprefix("essd-nand: ").removeprefix(f"{path}: ")


def profiles() -> list[str]:
    """The kinds of NAND parts, as essd-nand is built from: it need not be built to know."""
    text = (paths.TOP / "hw-model/nand/nand_profile.c").read_text(encoding="utf-8")
    return [*re.findall(r'\.name = "(\w+)"', text), *DRIVES]


def check_profile(name: str) -> None:
    chosen.check_word("nand: profile", name, profiles())


# The record

def record(array: Nand) -> None:
    """Write beside the file what the array is."""
    media.write_record(Path(array.path), {"format": "nand", **{
        key: value for key, value in dataclasses.asdict(array).items() if key != "path"}})


def recorded(path: Path) -> Nand | None:
    """The array of the drive whose NAND file would be here, or None if it has none."""
    place = media.record_path(path)
    try:
        found = persisted.read(place, "the record of a NAND array", dict[str, Any])
        if found.pop("format", None) != "nand":
            raise ValueError("another format")
        array: Nand = persisted.fill(Nand, {"path": str(path), **found})
        return array
    except FileNotFoundError:
        if path.exists():
            raise NandError(f"NAND file {path} has no record {place.name} of what it is: "
                            "replace the drive by a new one with --new") from None
        return None
    except (ValueError, persisted.ShapeError, persisted.DamagedError) as error:
        raise NandError(f"the record {place} of the NAND array cannot be read ({error}): "
                        "replace the drive by a new one with --new") from None


# Use

def shape(wanted: Wanted) -> list[object]:
    """The options of essd-nand for everything but the size."""
    if wanted.profile is not None:
        check_profile(wanted.profile)
    options: list[object] = []
    for key in ("profile", *NUMBERS):
        if getattr(wanted, key) is not None:
            options += [f"--{key}", getattr(wanted, key)]
    return options


def ask_bytes(what: str, size: int, *options: object) -> int:
    """A number of bytes that essd-nand computes; NandError says what does not fit."""
    done = call(what, "--capacity", size, *options)
    if done.returncode:
        kind = TooLargeError if done.returncode == TOO_LARGE else NandError
        raise kind(f"nand: {complaint(Path(), done)}")
    return int(done.stdout)


def sizing(wanted: Wanted) -> list[object]:
    """The options of essd-nand that decide how much of an array hosts can see."""
    spare = [] if wanted.spare is None else ["--spare", wanted.spare]
    return [*shape(wanted), *spare, *["--plp"] * (wanted.plp == "on")]


def choose_capacity(wanted: Wanted, size: str) -> int:
    """What hosts see of an array of this size; 0: as much as the firmware chooses."""
    return 0 if wanted.spare is None else ask_bytes("space", size_bytes(size), *sizing(wanted))


def wanted_of(array: Nand, spare: int) -> Wanted:
    """What asks for such an array, with this spare."""
    return Wanted(profile=array.profile, channels=array.channels, dies=array.dies,
                  seed=array.seed, spare=spare, plp=array.plp)


def spare_of(array: Nand, size: int) -> int:
    """The spare that an array with `size` bytes really has, as a percentage, up to 400.

    It may be more than was asked for, because a small array grows in large steps.
    """
    if not array.capacity:
        return array.spare
    least, more = array.spare, RANGES["spare"][1] + 1
    while more - least > 1:
        middle = (least + more) // 2
        if ask_bytes("space", size, "--visible", array.capacity,
                     *sizing(wanted_of(array, middle))) >= array.capacity:
            least = middle
        else:
            more = middle
    return least


def size_line(array: Nand) -> str:
    """The array's size and spare, for people.  The array must not be in use."""
    size = int(look(Path(array.path))["capacity_bytes"])
    spare = spare_of(array, size)
    sees = f"hosts see {media.exact_size(array.capacity)}, " if array.capacity else ""
    line = f"{media.exact_size(size)}, {sees}spare {spare}%"
    if spare == array.spare or spare == RANGES["spare"][1]:
        return line
    next_one = ask_bytes("size", array.capacity, *sizing(wanted_of(array, spare + 1)))
    return (f"{line} (at least {array.spare}% is wanted; arrays grow in steps, and the next one "
            f"has {media.exact_size(next_one)})")


def choose_size(wanted: Wanted, capacity: int) -> str:
    """The size of a new array for a drive with this capacity (0: all of the array).

    It is `wanted.size`, or else the smallest possible one.  TooLargeError if no drive can
    have such an array or this capacity; NandError if something else does not fit.
    """
    options = sizing(wanted)
    if wanted.size is None:
        return media.exact_size(ask_bytes("size", capacity, *options))
    space = ask_bytes("space", size_bytes(wanted.size), "--visible", capacity, *options)
    if capacity > space:
        larger = media.exact_size(ask_bytes("size", capacity, *options))
        smaller = (f", or a capacity of {media.exact_size(space)}"
                   if space >= media.SMALLEST else "")
        raise NandError(f"nand {wanted.size}: such an array has space for "
                        f"{media.exact_size(space)}, not for {media.exact_size(capacity)}: "
                        f"choose an array of {larger}{smaller}")
    return wanted.size


def create(path: Path, wanted: Wanted, size: str, capacity: int = 0) -> Nand:
    """Create the file of a new array, which takes disk space only as it is written.

    `size` is what choose_size() has chosen.  `capacity` is what hosts are to see; 0: as
    much as the array has space for.
    """
    options = shape(wanted)
    files.make_folder(path.parent)
    visible = ["--visible", capacity] if capacity else []
    done = call("create", path, "--capacity", size_bytes(size), *visible, *options)
    if done.returncode:
        raise NandError(f"NAND file {path}: {complaint(path, done)}")
    try:
        facts = look(path)
        array = Nand(str(path), size, facts["profile"], facts["channels"],
                     facts["dies"], facts["seed"], wanted.timing or TIMINGS[0],
                     wanted.plp or "off", capacity, facts["blocks"], facts["wordlines"],
                     wanted.spare or RANGES["spare"][0])
        record(array)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return array


def update(array: Nand, wanted: Wanted) -> Nand:
    """The drive's array, with the settings that can change; EssdError for the others."""
    for key in ("size", "profile", *NUMBERS, "spare", "plp"):
        asked, has = getattr(wanted, key), getattr(array, key)
        is_same = asked in (None, has) or (
            key == "size" and size_bytes(asked) == size_bytes(has))
        if not is_same:
            raise NandError(f"nand: the drive's array has {key} {has}, not {asked}: omit "
                            f"{key}, or replace the drive by a new one with --new")
    if wanted.timing not in (None, array.timing):
        array = dataclasses.replace(array, timing=wanted.timing)
        record(array)
    return array


def check(array: Nand) -> None:
    """EssdError if QEMU could not use the file."""
    path = Path(array.path)
    with media.opened(path, "NAND file"):
        pass
    facts = look(path)
    for key in ("profile", *NUMBERS):
        if facts[key] != getattr(array, key):
            raise NandError(f"NAND file {path} holds another array: it has {key} "
                            f"{facts[key]}, not {getattr(array, key)}")
    blocks, wordlines = facts["blocks"], facts["wordlines"]
    if array.blocks and (blocks, wordlines) != (array.blocks, array.wordlines):
        raise NandError(f"NAND file {path} holds another array: it has "
                        f"{media.exact_size(facts['capacity_bytes'])}, with {blocks} blocks "
                        f"of {wordlines} wordlines in a plane; the drive's array has "
                        f"{array.size}, with {array.blocks} blocks of {array.wordlines}")


def look(path: Path) -> dict[str, Any]:
    """What essd-nand says of the array in a file that no machine uses."""
    done = call("info", path, "--json")
    if done.returncode:
        raise NandError(f"NAND file {path}: {complaint(path, done)}")
    return dict(json.loads(done.stdout))
