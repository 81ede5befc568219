# SPDX-License-Identifier: BSD-2-Clause
"""Builds kernel modules that Debian's source has and Debian's kernel has not.

A guest's `sources.txt` lists them, one on a line: the module's name, its folder in the
source, and the constants `const bool` that are true in it.  Nothing else of the source is
changed.  The modules are for the guest's own kernel, so source, headers and kernel have
one version.  The compiler is the one that the headers ask for: Debian 13's, which is started
with its own loader and libraries and so runs on Debian 12, too.

Debian's archive keeps one version of the kernel.  If a guest's kernel, source and headers
cannot be had in one version, the guest is built without these modules, and its file
`without` says why.
"""

import fnmatch
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import guest_build
from .fw_build import BuildError, Progress
from .guest_build import Apt

SOURCES = "sources.txt"
# What the compiler consists of.  The headers also depend on programs that no module needs.
PARTS = ("binutils*", "cpp-[0-9]*", "gcc-[0-9]*", "lib*", "linux-headers-*", "linux-kbuild-*",
         "zlib1g")
# Folders whose programs are started with their own loader.
PROGRAMS = ("usr/bin", "usr/libexec/gcc", "usr/lib/linux-kbuild-*")
WRAPPER = """#!/bin/sh
exec "{root}/usr/lib64/ld-linux-x86-64.so.2" --argv0 "$0" --library-path \
"{root}/usr/lib/x86_64-linux-gnu" "{program}.elf" "$@"
"""
STAMP = {"KBUILD_BUILD_USER": "essd", "KBUILD_BUILD_HOST": "essd",
         "KBUILD_BUILD_TIMESTAMP": "2026-01-01", "LC_ALL": "C"}


@dataclass(frozen=True)
class Source:
    """One module: a folder of Linux's source, perhaps with other constants."""

    name: str
    folder: str
    constants: tuple[str, ...] = ()


def read_sources(lines: list[str]) -> list[Source]:
    found = []
    for line in lines:
        name, *rest = line.split()
        if not rest:
            raise BuildError(f"{SOURCES}: {name} needs a folder of Linux's source")
        found.append(Source(name, rest[0], tuple(rest[1:])))
    return found


class Unavailable(BuildError):
    """Debian's archive has not what a module is built from."""


def kernel_of(versions: dict[str, str]) -> tuple[str, str]:
    """The release of a guest's kernel and the version of its package."""
    found = [name for name in versions if re.match(r"linux-image-\d", name)]
    if len(found) != 1:
        raise BuildError(f"the guest's packages must contain one kernel, not {len(found)}")
    return found[0].removeprefix("linux-image-"), versions[found[0]]


def resolve(apt: Apt, release: str, version: str) -> tuple[dict[str, str], str]:
    """The packages of headers and compiler, and the name of the source's package.

    Unavailable if the archive does not have headers and source in the kernel's version.
    """
    headers = f"linux-headers-{release}"
    source = f"linux-source-{'.'.join(release.split('.')[:2])}"
    try:
        offered = apt.resolve([headers, source], [])
    except BuildError:
        offered = {}
    for name in (headers, source):
        if offered.get(name) != version:
            raise Unavailable(f"Debian's archive has {name} in version "
                              f"{offered.get(name, 'none')}, and the guest's kernel is "
                              f"{version}")
    packages = {name: at for name, at in offered.items()
                if any(fnmatch.fnmatch(name, part) for part in PARTS)}
    return packages, source


def wrap_programs(root: Path) -> None:
    """Make each program start with the loader and the libraries that are in `root`."""
    for pattern in PROGRAMS:
        for folder in root.glob(pattern):
            for path in sorted(folder.rglob("*")):
                if path.is_file() and not path.is_symlink() and ".so" not in path.name:
                    with open(path, "rb") as file:
                        head = file.read(18)
                    # A program or a position-independent one; no object file.
                    if head[:4] == b"\x7fELF" and head[16] in (2, 3):
                        path.rename(f"{path}.elf")
                        path.write_text(WRAPPER.format(root=root, program=path))
                        path.chmod(0o755)


def prepare_headers(root: Path, release: str) -> Path:
    """Let the headers find their other half in `root`; return their folder."""
    headers = root / "usr/src" / f"linux-headers-{release}"
    makefile = headers / "Makefile"
    text = makefile.read_text(encoding="utf-8")
    if "include /usr/src/" not in text:
        raise BuildError(f"{makefile} does not include /usr/src, as it did in Linux 6.12")
    makefile.write_text(text.replace("include /usr/src/", f"include {root}/usr/src/"),
                        encoding="utf-8")
    # With it, modules get type information for BPF, which needs one more program.
    (headers / "vmlinux").unlink(missing_ok=True)
    return headers


def set_constants(folder: Path, names: tuple[str, ...]) -> None:
    """Make constants true that the source defines as `const bool NAME;`, which is false."""
    for name in names:
        definition = re.compile(rf"^const bool {re.escape(name)};$", re.M)
        found = [path for path in sorted(folder.glob("*.c"))
                 if definition.search(path.read_text(encoding="utf-8"))]
        if len(found) != 1:
            raise BuildError(f"{folder.name}: {len(found)} files define const bool {name}: "
                             f"correct {SOURCES}")
        text = found[0].read_text(encoding="utf-8")
        found[0].write_text(definition.sub(f"const bool {name} = true;", text),
                            encoding="utf-8")


def write_kbuild(folder: Path, name: str) -> None:
    """Link all files of the folder into one module."""
    parts = sorted(path.stem for path in folder.glob("*.c"))
    if name in parts:
        raise BuildError(f"{folder}: a file has the module's own name {name}")
    (folder / "Makefile").unlink(missing_ok=True)
    (folder / "Kbuild").write_text(f"obj-m := {name}.o\n{name}-y := "
                                   + " ".join(f"{part}.o" for part in parts) + "\n",
                                   encoding="utf-8")


def compile_module(source: Source, unpacked: Path, work: Path, headers: Path,
                   log: Path) -> Path:
    folder = work / source.name
    shutil.copytree(unpacked / source.folder, folder)
    set_constants(folder, source.constants)
    write_kbuild(folder, source.name)
    programs = headers.parents[1] / "bin"
    guest_build.run(log, "make", "-C", headers, f"M={folder}", f"-j{os.cpu_count() or 1}",
                    "modules",
                    env={**os.environ, **STAMP, "PATH": f"{programs}:{os.environ['PATH']}"})
    module = folder / f"{source.name}.ko"
    guest_build.run(log, programs / "x86_64-linux-gnu-strip", "--strip-debug", module)
    return module


def build(sources: list[Source], versions: dict[str, str], apt: Apt, work: Path,
          log: Path, progress: Progress) -> tuple[str, list[Path]]:
    """The kernel's release and the modules, which are built below `work`.

    `versions` are the guest's packages.
    """
    release, version = kernel_of(versions)
    progress("looking for the kernel's headers and source")
    packages, source = resolve(apt, release, version)
    progress(f"fetching {len(packages)} packages and {source}")
    archives = apt.fetch(packages)
    package, = apt.fetch({source: version})
    root = work / "compiler"
    root.mkdir(parents=True)
    progress("unpacking the compiler")
    guest_build.unpack(archives, root, log)
    wrap_programs(root)
    headers = prepare_headers(root, release)
    progress(f"unpacking {package.name}")
    guest_build.run(log, "dpkg-deb", "-x", package, work / "package")
    tarball, = (work / "package/usr/src").glob("*.tar.xz")
    unpacked = work / "source"
    unpacked.mkdir()
    guest_build.run(log, "tar", "-xf", tarball, "-C", unpacked, "--strip-components=1",
                    "--wildcards", *sorted({f"*/{one.folder}/*" for one in sources}))
    modules = []
    for one in sources:
        progress(f"compiling the module {one.name}")
        modules.append(compile_module(one, unpacked, work, headers, log))
    return release, modules


def install(modules: list[Path], root: Path, release: str) -> None:
    """Put the modules where modprobe finds them; depmod runs later."""
    folder = root / "usr/lib/modules" / release / "updates"
    folder.mkdir(parents=True, exist_ok=True)
    for module in modules:
        shutil.copy2(module, folder)
