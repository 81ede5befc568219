# SPDX-License-Identifier: BSD-2-Clause
"""Builds the boot ROM and the firmware for RV64."""

import contextlib
import fcntl
import itertools
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import BUILD_S, EssdError
from ..base.paths import TOP, all_builds_lock, build as build_folder, cache, flocked, locked
from . import elf

SOURCE = TOP / "firmware" / "rv64"
BUILD = build_folder() / "rv64"
NATIVE_SOURCE = TOP / "firmware" / "native_hart"
NATIVE_BUILD = build_folder() / "native-hart"
LINE_MAX = 400          # of a build log, in a message
ROM_ELF = BUILD / "rom.elf"
VERSION_HEADER = TOP / "firmware" / "app" / "version.h"

Progress = Callable[[str], None]


class BuildError(EssdError):
    """A build failed; the text names the cause and the log."""


@dataclass(frozen=True)
class Firmware:
    """The files that the firmware's build creates."""

    rom: Path           # flat binary of the mask ROM
    image: Path         # flat binary of the firmware, for a flash slot
    rom_elf: Path       # the mask ROM with symbols, for gdb
    elf: Path
    version: str


def version() -> str:
    match = re.search(r'ESSD_FW_VERSION "([^"]+)"', VERSION_HEADER.read_text())
    if not match or len(match[1]) > 8:
        raise BuildError(f"{VERSION_HEADER}: no ESSD_FW_VERSION of 1 to 8 characters")
    return match[1]


def forget_moved(build: Path, source: Path) -> None:
    """Make CMake configure a build folder again after the checkout was moved or copied.

    The folder remembers where its sources and it itself were, and CMake refuses it.
    """
    known = build / "CMakeCache.txt"
    if not known.exists():
        return
    places = dict(re.findall(r"^CMAKE_(HOME_DIRECTORY|CACHEFILE_DIR):INTERNAL=(.*)$",
                             known.read_text(errors="replace"), re.M))
    if all(name in places and Path(places[name]).resolve() == now.resolve() for name, now in
           (("HOME_DIRECTORY", source), ("CACHEFILE_DIR", build))):
        return
    for name in (known.name, "build.ninja", "compile_commands.json"):
        (build / name).unlink(missing_ok=True)


@contextlib.contextmanager
def locked_build(build: Path) -> Iterator[None]:
    """Lock a CMake folder, and keep the libraries in the cache that are compiled there.

    EssdError before anything is compiled if they could not be kept in the cache.
    """
    cache()
    with flocked(all_builds_lock(), fcntl.LOCK_SH), locked(build / "lock"):
        yield


@contextlib.contextmanager
def alone(build: Path, source: Path) -> Iterator[None]:
    """Configure and build in a CMake folder while no other essd command does.

    Of a checkout that is moved during a build, the folder and its lock move along, so what
    that build still writes is complete, or has failed, before CMake's files are deleted.
    """
    with locked_build(build):
        forget_moved(build, source)
        yield


def run_logged(command: list[str], log: Path, what: str) -> None:
    """Run a command with its output in a log; BuildError has the first error."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as file:
        file.write(f"\n$ {' '.join(command)}\n".encode())
        file.flush()
        start = file.tell()
        try:
            status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file,
                                    stderr=subprocess.STDOUT, check=False,
                                    timeout=BUILD_S).returncode
        except FileNotFoundError as error:
            raise BuildError(f"{what}: {error.filename} is not installed") from error
        except subprocess.TimeoutExpired:
            raise BuildError(f"{what} did not end within {BUILD_S} s and was killed "
                             f"(log: {log})") from None
    if status != 0:
        raise BuildError(f"{what} failed: {first_error(log, start)} (log: {log})")


def first_error(log: Path, start: int = 0) -> str:
    """The first line of a build log that looks like the cause, else the last."""
    text = log.read_bytes()[start:].decode(errors="replace").splitlines()
    lines = [line.strip() for line in text if line.strip()]
    # A script of ours says what is wrong; ninja's line has a name for each file that it writes.
    for pattern in (r"^generate\.py: ", r"\berror:|\bERROR\b|\bCMake Error\b|undefined reference",
                    r"\bFAILED\b"):
        for number, line in enumerate(text):
            if re.search(pattern, line.strip()):
                # CMake's own text stands in indented lines after the place.
                more = itertools.takewhile(lambda one: one.startswith("  "), text[number + 1:])
                return cut(" ".join([line.strip(), *(map(str.strip, more) if re.search(
                    r"CMake Error at .*:$", line) else ())]))
    return cut(lines[-1]) if lines else "no output"


def cut(line: str) -> str:
    return line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}…"


def ensure_firmware(progress: Progress = lambda text: None) -> Firmware:
    """Build the ROM and the firmware if they are not up to date."""
    build_targets(progress, BUILD, "gcc", "the firmware", "all")
    elf.keep(BUILD / "firmware.elf")
    return Firmware(BUILD / "rom.bin", BUILD / "firmware.bin", ROM_ELF,
                    BUILD / "firmware.elf", version())


def ensure_rom(progress: Progress = lambda text: None) -> Path:
    """Build only the mask ROM, which QEMU's build includes."""
    build_targets(progress, BUILD, "gcc", "the boot ROM", "rom.elf")
    return BUILD / "rom.bin"


def ensure_native_hart(progress: Progress = lambda text: None) -> Path:
    """Build the firmware for a native hart."""
    build_targets(progress, NATIVE_BUILD, "", "the firmware for a native hart", "all",
                  NATIVE_SOURCE)
    return NATIVE_BUILD / "native_hart.bin"


def ensure_native_trial(progress: Progress = lambda text: None) -> Path:
    """Build the test image that does what firmware for a native hart must not do."""
    build_targets(progress, NATIVE_BUILD, "", "the trial of native harts", "native_trial.elf",
                  NATIVE_SOURCE)
    return NATIVE_BUILD / "native_trial.bin"


def ensure_soc_trial(progress: Progress = lambda text: None) -> Firmware:
    """Build the test image that exercises the SoC in place of the firmware."""
    build_targets(progress, BUILD, "gcc", "the SoC trial", "soc_trial.elf")
    return Firmware(BUILD / "rom.bin", BUILD / "soc_trial.bin", ROM_ELF,
                    BUILD / "soc_trial.elf", version())


def compile_everything(compiler: str, progress: Progress = lambda text: None) -> None:
    """Compile every firmware source of every variant with "gcc" or "clang"."""
    build_targets(progress, BUILD.with_name(f"rv64-{compiler}-check"), compiler,
                  f"all firmware sources with {compiler}", "everything")


def is_configured(build: Path, source: Path) -> bool:
    """Whether CMake has configured a build folder for these sources, here.

    The caller has locked the folder.
    Ninja configures again by itself after a change of a CMakeLists.txt, which takes CMake
    seconds.
    """
    forget_moved(build, source)
    known, made = build / "CMakeCache.txt", build / "build.ninja"
    presets = source / "CMakePresets.json"
    return known.exists() and made.exists() and not (
        presets.exists() and presets.stat().st_mtime > made.stat().st_mtime)


def build_targets(progress: Progress, build: Path, compiler: str, what: str,
                  target: str, source: Path = SOURCE) -> None:
    """Build one target; without a `compiler`, with this machine's own."""
    log = build / "build.log"
    toolchain = ["--toolchain", str(source / f"toolchain-{compiler}.cmake")]
    with locked_build(build):
        if not is_configured(build, source):
            progress(f"configuring {what}")
            log.unlink(missing_ok=True)
            run_logged(["cmake", "-S", str(source), "-B", str(build), "-G", "Ninja",
                        *(toolchain if compiler else ())], log, f"configuring {what}")
        progress(f"building {what}")
        run_logged(["cmake", "--build", str(build), "--target", target], log,
                   f"building {what}")
