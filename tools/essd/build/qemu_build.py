# SPDX-License-Identifier: BSD-2-Clause
"""Builds QEMU with the drive's machine in it.

The build has two levels.  The stock part (QEMU's release, our patches, the
configure line) is built once for each combination and takes minutes.  The
drive's own sources are copied into that tree when they have changed, and compile
in seconds.  Each binary is kept under a hash of these sources, so that older
versions need no rebuild and several checkouts can share the cache.

The release comes from Debian's source package (debian_source.py).
"""

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from ..base import in_use, interrupts
from ..base.errors import BUILD_S
from ..base.paths import TOP, cache, flocked, is_locked, locked
from . import elf, libraries
from .debian_source import Release, Source, fetch
from .fw_build import BuildError, Progress, ROM_ELF, ensure_rom, first_error, run_logged

RELEASES = (
    Release("10.0.13", "qemu_10.0.13+ds.orig.tar.xz",
            "6a0888e806c2ffc0c5f0733e974f9aea55491950d3c47c98669c8b236dde59ae"),
    Release("10.0.2", "qemu_10.0.2+ds.orig.tar.xz",
            "0901da33844a331bf8b3602b9c1fbd178e60b737c8e3ade678255bd090c9b9f1"),
)
SOURCE = Source("qemu", "QEMU", RELEASES, "tools/essd/build/qemu_build.py")

# QEMU's build takes these from its own tree if the system's are too old.
WHEELS = (
    "meson==1.5.0 --hash=sha256:"
    "52b34f4903b882df52ad0d533146d4b992c018ea77399f825579737672ae7b20",
    "pycotap==1.3.1 --hash=sha256:"
    "1c3a25b3ff89e48f4e00f1f71dbbc1642b4f65c65d416524d07e73492fff25ea",
)

CONFIGURE = (
    "--target-list=riscv64-softmmu",
    "--without-default-features",
    "--without-default-devices",
    "--with-devices-riscv64=essd",
    "--enable-system",
    "--enable-tcg",
    "--enable-fdt=system",
    "--enable-slirp",                   # ssh into hosts of user-mode Linux
    "--enable-tools",                   # qemu-img
    "--enable-seccomp",                 # -sandbox: see tools/essd/machine/drive.py
    "--enable-trace-backends=log",
    "--enable-plugins",
    "--disable-install-blobs",
    "--disable-docs",
    "--disable-debug-info",
    "--extra-cflags=-Werror=implicit-function-declaration -Werror=int-conversion",
)
# More options of that script, such as --enable-debug-tcg, for whoever looks for a fault of
# QEMU or measures what an option is worth.  Such a build is kept beside the usual one.
CONFIGURE_VARIABLE = "ESSD_QEMU_CONFIGURE"
TARGETS = ("qemu-system-riscv64", "qemu-img")

# The source directories of each device in hw-model/qemu/, besides COMMON_CORE.  A
# directory whose device does not exist is not compiled, so that an unfinished
# block does not break the build.
COMMON_CORE = ("lib", "hw-model/core")
DEVICE_CORES = {
    "essd_faults.c": ("hw-model/fault", "net/wire"),
    "essd_port.c": ("hw-model/port", "net/wire"),
    "essd_ecc.c": ("hw-model/ecc",),
    "essd_lag.c": ("hw-model/lag", "net/wire"),
    "essd_rnic.c": ("hw-model/rnic", "net/wire", "net/verbs", "net/roce", "net/mpa",
                    "net/iwarp"),
    "essd_toe.c": ("hw-model/toe", "net/wire", "net/tcp"),
    "essd_media.c": ("hw-model/media",),
    "essd_nand.c": ("hw-model/nand",),
    "essd_mgmt.c": ("hw-model/mgmt",),
    "essd_i2c.c": ("hw-model/i2c",),
    "essd_watchdog.c": ("hw-model/watchdog",),
    "essd_sfp.c": ("hw-model/sfp",),
    "essd_vhost.c": ("hw-model/vhost",),
}

COPIED = ("lib", "net/wire", "net/verbs", "net/roce", "net/mpa", "net/iwarp", "net/tcp",
          "hw-model", "cmake")
MBEDTLS = ("aes", "aesni", "block_cipher", "constant_time", "gcm", "platform_util")
COPIED_KINDS = (".c", ".h", ".build", ".inc")
COPIED_NAMES = ("Kconfig", "trace-events", "warnings.txt")
KEPT_BINARIES = 16
KEPT_TREES = 2                          # of about 550 MB each


def ensure_qemu(progress: Progress = lambda text: None) -> Path:
    """Return the path of an up-to-date qemu-system-riscv64; qemu-img is beside it."""
    rom = ensure_rom(progress).read_bytes()
    sources = our_sources(rom)
    key = stock_key()
    tree = cache() / "qemu" / key
    found = binary(tree, sources)
    if not is_held(found):
        with locked(tree / "lock"):
            if not is_held(found):
                build(tree, sources, progress)
                in_use.hold(found.parent)
                drop_old_trees(tree)
    os.utime(found.parent)
    # The binary contains the ROM, so the ROM's symbols are kept beside the binary.
    elf.copy(ROM_ELF, found.with_name(ROM_ELF.name))
    return found


def is_held(binary: Path) -> bool:
    """Keep a build until this process ends; False if there is none."""
    return in_use.hold(binary.parent) and binary.exists()


def drop_old_trees(current: Path) -> None:
    """Delete the stock builds for earlier patches or options, except the newest ones.

    A locked tree is being built by another checkout, and one with a binary that is in
    use belongs to a running instance: these are not deleted.
    """
    others = [t for t in current.parent.iterdir()
              if t != current and not in_use.is_removed(t)
              and (t / "lock").exists() and not is_locked(t / "lock")]
    others.sort(key=lambda t: (t / "bin").stat().st_mtime
                if (t / "bin").exists() else 0)
    for old in others[:-(KEPT_TREES - 1)]:
        in_use.delete(old)


def stock_key() -> str:
    """Return a hash of everything that the stock part depends on."""
    digest = hashlib.sha256()
    for release in RELEASES[:1]:
        digest.update(release.sha256.encode())
    for patch in patches():
        digest.update(patch.read_bytes())
    digest.update("\0".join((*options(), *WHEELS)).encode())
    return digest.hexdigest()[:16]


def options() -> tuple[str, ...]:
    """The options of QEMU's configure script."""
    return (*CONFIGURE, *shlex.split(os.environ.get(CONFIGURE_VARIABLE, "")))


def patches() -> list[Path]:
    series = TOP / "qemu-patches" / "series"
    lines = series.read_text(encoding="utf-8").splitlines()
    return [series.parent / line for line in lines if line and line[0] != "#"]


# The drive's own sources

def our_sources(rom: bytes) -> dict[str, bytes]:
    """Return all files of the drive that QEMU's build reads, by path in essd/."""
    files: dict[str, bytes] = {}
    for part in COPIED:
        for path in sorted((TOP / part).rglob("*")):
            if path.suffix in COPIED_KINDS or path.name in COPIED_NAMES:
                files[path.relative_to(TOP).as_posix()] = path.read_bytes()
    files.update(mbedtls_sources())
    files["hw-model/qemu/sources.list"] = source_list(list(files)).encode()
    files["hw-model/qemu/essd_rom.h"] = rom_header(rom).encode()
    return files


def mbedtls_sources() -> dict[str, bytes]:
    """Return what the TCP offload engine's model needs of the pinned Mbed TLS."""
    folder = libraries.ensure("mbedtls")
    wanted = [*sorted((folder / "include").rglob("*.h")),
              *sorted((folder / "library").glob("*.h")),
              *(folder / "library" / f"{name}.c" for name in MBEDTLS)]
    return {f"mbedtls/{path.relative_to(folder).as_posix()}": path.read_bytes()
            for path in wanted}


def source_list(names: list[str]) -> str:
    """Return the sources that meson.build compiles, one path per line."""
    wrappers = [n for n in names if re.fullmatch(r"hw-model/qemu/[^/]+\.c", n)]
    folders = set(COMMON_CORE)
    for wrapper in wrappers:
        folders.update(DEVICE_CORES.get(wrapper.rsplit("/", 1)[1], ()))
    cores = [f"{folder}/{name}" for folder in folders
             for name in listed_sources(TOP / folder / "sources.cmake")]
    return "\n".join(sorted(wrappers) + sorted(cores)) + "\n"


def listed_sources(path: Path) -> list[str]:
    """Return the sources that a directory's sources.cmake lists for this machine.

    A directory without sources.cmake contains headers only.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [name for block in re.findall(
                r"^set\((?:NATIVE_)?SOURCES\s([^)]*)\)", text, re.M)
            for name in block.split()]


def rom_header(rom: bytes) -> str:
    lines = [", ".join(f"0x{byte:02x}" for byte in rom[at:at + 12])
             for at in range(0, len(rom), 12)]
    return ("/* SPDX-License-Identifier: BSD-2-Clause */\n"
            "/* Made from firmware/boot: the mask ROM's content. */\n"
            "static const unsigned char essd_rom[] = {\n    "
            + ",\n    ".join(lines) + ",\n};\n")


def binary(tree: Path, sources: dict[str, bytes]) -> Path:
    digest = hashlib.sha256()
    for name, content in sorted(sources.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return tree / "bin" / digest.hexdigest()[:16] / "qemu-system-riscv64"


def copy_sources(sources: dict[str, bytes], to: Path) -> None:
    """Make `to` hold exactly these files; unchanged files keep their time stamps."""
    for path in list(to.rglob("*")) if to.exists() else []:
        if path.is_file() and path.relative_to(to).as_posix() not in sources:
            path.unlink()
    for name, content in sources.items():
        path = to / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


# Building

def build(tree: Path, sources: dict[str, bytes], progress: Progress) -> None:
    source, output, log = tree / "src", tree / "build", tree / "build.log"
    if not (output / "build.ninja").exists():
        log.unlink(missing_ok=True)
        shutil.rmtree(output, ignore_errors=True)
        prepare_source(source, log, progress)
        copy_sources(sources, source / "essd")
        progress("configuring QEMU")
        configure(source, output, log)
    else:
        copy_sources(sources, source / "essd")
    ninja(output, log, progress)
    publish(output, binary(tree, sources))


def prepare_source(source: Path, log: Path, progress: Progress) -> None:
    """Unpack the release into `source` and patch it; after an error, nothing is there."""
    if source.exists():
        return
    tarball = fetch(SOURCE, progress, log)
    progress(f"unpacking {tarball.name}")
    fresh = source.with_name("src.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    run_logged(["tar", "-xf", str(tarball), "-C", str(fresh), "--strip-components=1"],
               log, "unpacking QEMU")
    for patch in patches():
        run_logged(["patch", "-d", str(fresh), "-p1", "--forward", "-i", str(patch)],
                   log, f"applying {patch.name} to QEMU")
    progress("fetching meson for QEMU")
    for wheel in fetch_wheels(log).iterdir():
        (fresh / "python" / "wheels").mkdir(parents=True, exist_ok=True)
        shutil.copy(wheel, fresh / "python" / "wheels")
    fresh.rename(source)


def configure(source: Path, output: Path, log: Path) -> None:
    output.mkdir(parents=True)
    compiler = "ccache cc" if shutil.which("ccache") else "cc"
    script = ('cd "$0" && export CCACHE_BASEDIR="$1" && shift && '
              'exec ../src/configure "$@"')
    run_logged(["sh", "-c", script, str(output), str(source), f"--cc={compiler}",
                f"--python={system_python()}", *options()], log, "configuring QEMU")


def system_python() -> str:
    """Return the system's Python, because a virtual environment may be deleted."""
    return shutil.which("python3", path="/usr/local/bin:/usr/bin") or sys.executable


def ninja(output: Path, log: Path, progress: Progress) -> None:
    """Build QEMU and report progress in steps of ten per cent."""
    command = ["ninja", "-C", str(output), "-j", str(os.cpu_count() or 1), *TARGETS]
    tenth = 0
    environment = os.environ | {"NINJA_STATUS": "[%f/%t] ",
                                "CCACHE_BASEDIR": str(output.parent)}
    with open(log, "ab") as file:
        start = file.tell()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as process:
            assert process.stdout is not None
            watchdog = interrupts.kill_after(process, BUILD_S)
            for line in process.stdout:
                file.write(line)
                match = re.match(rb"\[(\d+)/(\d+)\]", line)
                if match and int(match[1]) * 10 // int(match[2]) > tenth:
                    tenth = int(match[1]) * 10 // int(match[2])
                    progress(f"compiling QEMU: {match[1].decode()} of "
                             f"{match[2].decode()} files")
            watchdog.cancel()
    if process.returncode != 0:
        text = first_error(log, start).replace("../src/essd/", "")
        raise BuildError(f"building QEMU failed: {text} (log: {log})")


def publish(output: Path, to: Path) -> None:
    """Copy the binaries to where no later build changes them; delete the oldest."""
    to.parent.mkdir(parents=True, exist_ok=True)
    # qemu-system-riscv64 is copied last, because its existence says that all are there.
    for name in reversed(TARGETS):
        fresh = to.parent / f"{name}.new"
        shutil.copy2(output / name, fresh)
        fresh.rename(to.parent / name)
    kept = sorted((p for p in to.parent.parent.iterdir() if not in_use.is_removed(p)),
                  key=lambda p: p.stat().st_mtime)
    for old in kept[:-KEPT_BINARIES]:
        in_use.delete(old)


# Fetching

def fetch_wheels(log: Path) -> Path:
    """Return a folder with the Python packages that QEMU's build needs."""
    digest = hashlib.sha256("\n".join(WHEELS).encode()).hexdigest()[:16]
    folder = cache() / "download" / f"wheels-{digest}"
    # Checkouts with different QEMUs build beside each other.
    with flocked(cache() / "download" / "wheels.lock", fcntl.LOCK_EX):
        if not folder.exists():
            download_wheels(folder, log)
    return folder


def download_wheels(folder: Path, log: Path) -> None:
    """Make the folder with the packages; the caller has locked the folders for that."""
    fresh = folder.with_name("wheels.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    pip = cache() / "pip-venv"
    if not (pip / "bin" / "pip").exists():
        venv.create(pip, with_pip=True, clear=True)
    wanted = cache() / "download" / "wheels.txt"
    wanted.write_text("\n".join(WHEELS) + "\n", encoding="utf-8")
    run_logged([str(pip / "bin" / "pip"), "download", "--quiet", "--no-deps",
                "--require-hashes", "--dest", str(fresh), "-r", str(wanted)],
               log, "fetching meson for QEMU")
    fresh.rename(folder)
