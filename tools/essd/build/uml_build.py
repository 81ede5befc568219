# SPDX-License-Identifier: BSD-2-Clause
"""Builds user-mode Linux: a kernel that runs as an ordinary program.

The kernel is Debian's package linux-source, configured by guest/uml/config and changed by the
patches beside it.  A host that runs it boots the root file system of the Linux guest, and
is there in a second, because nothing emulates a processor.

The 1.5 GB of unpacked sources are deleted when the kernel is built.
"""

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..base import interrupts, paths
from ..base.errors import BUILD_S
from . import guest_build
from .fw_build import BuildError, Progress, first_error, run_logged

PACKAGE = "linux-source-6.12"
# The versions that are known to work, newest first.  Debian's archive has one of them at a
# time.  To add one, build it and run the end-to-end tests with `--hosts uml`.
VERSIONS = ("6.12.117-1",)
FILES = guest_build.UML_SOURCE
CONFIG = FILES / "config"

# Sources that no configuration of this kernel compiles; their Kconfig files are read.
LEFT_OUT = ("*/Documentation/*.rst", "*/Documentation/*.txt", "*/Documentation/*.yaml",
            "*/drivers/gpu/*.[ch]", "*/sound/*.[ch]", "*/arch/arm*/*.dts*",
            "*/drivers/net/wireless/*.[ch]", "*/drivers/media/*.[ch]",
            "*/tools/testing", "*/tools/perf")
MAKE = ("make", "ARCH=um")
# The kernel names these instead of who built it, where and when.
STAMP = {"KBUILD_BUILD_USER": "essd", "KBUILD_BUILD_HOST": "essd",
         "KBUILD_BUILD_TIMESTAMP": "2026-01-01"}


@dataclass(frozen=True)
class UmlKernel:
    """A built kernel with the files that its root file system gets."""

    path: Path

    @property
    def program(self) -> Path:
        return self.path / "linux"

    @property
    def modules(self) -> Path:
        """The folder that tells modprobe what the kernel contains; its name is the release."""
        folder, = (self.path / "lib/modules").iterdir()
        return folder


def cache_folder() -> Path:
    return paths.cache() / "uml"


def patches() -> list[Path]:
    return sorted(FILES.glob("*.patch"))


def key() -> str:
    """A hash of everything that the kernel is made of."""
    total = hashlib.sha256(VERSIONS[0].encode())
    for path in (CONFIG, *patches()):
        total.update(path.read_bytes() + b"\0")
    total.update(repr((LEFT_OUT, MAKE, STAMP)).encode())
    return total.hexdigest()[:16]


def is_built() -> bool:
    return (cache_folder() / key()).exists()


def ensure(progress: Progress) -> UmlKernel:
    """Return the kernel; build it first if its inputs have changed."""
    target = cache_folder() / key()
    return UmlKernel(guest_build.ensure_built(cache_folder(), target,
                                              lambda: build(target, progress)))


def fetch(progress: Progress, log: Path) -> Path:
    """Return the package with the source; download it from Debian's archive if necessary."""
    progress("looking for the source of Linux in Debian's archive")
    with paths.packages_locked(progress):
        return fetched(progress, log)


def fetched(progress: Progress, log: Path) -> Path:
    apt = guest_build.Apt(cache_folder() / "apt", paths.cache() / "debs", log)
    apt.get("update")
    offered = apt.resolve([PACKAGE], []).get(PACKAGE, "")
    if offered not in VERSIONS:
        raise BuildError(f"Debian's archive offers {PACKAGE} in version {offered or 'none'}, "
                         f"but user-mode Linux is known to work with {', '.join(VERSIONS)}: "
                         "add the new version to tools/essd/build/uml_build.py")
    progress(f"downloading {PACKAGE} {offered}")
    return apt.fetch({PACKAGE: offered})[0]


def build(target: Path, progress: Progress) -> None:
    """Build the kernel in a folder beside the target, and rename it when all is there."""
    log = paths.cache() / "log" / f"uml-build-{target.name}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("")
    package = fetch(progress, log)
    work = target.with_name(f"{target.name}.{os.getpid()}")
    source = work / "source"
    try:
        source.mkdir(parents=True)
        progress(f"unpacking {package.name}")
        run_logged(["dpkg-deb", "-x", str(package), str(work / "package")], log,
                   f"unpacking {package.name}")
        tarball, = (work / "package/usr/src").glob("*.tar.xz")
        run_logged(["tar", "-xf", str(tarball), "-C", str(source), "--strip-components=1",
                    *(f"--exclude={name}" for name in LEFT_OUT)], log, "unpacking Linux")
        for patch in patches():
            run_logged(["patch", "-d", str(source), "-p1", "--forward", "-i", str(patch)],
                       log, f"applying {patch.name} to Linux")
        configure(source, log)
        compile_kernel(source, log, progress)
        shutil.copy2(source / "linux", work / "linux")
        run_logged(["strip", str(work / "linux")], log, "stripping Linux")
        list_modules(source, work, log)
        shutil.rmtree(source)
        shutil.rmtree(work / "package")
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def asked() -> list[str]:
    """The options of the configuration, as the kernel's .config has them."""
    lines = CONFIG.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("CONFIG_")]


def configure(source: Path, log: Path) -> None:
    """Write .config; BuildError if an option is not what guest/uml/config asks for."""
    run_logged([*MAKE, "-C", str(source), "-s", f"KCONFIG_ALLCONFIG={CONFIG}",
                "allnoconfig"], log, "configuring Linux")
    there = set((source / ".config").read_text(encoding="utf-8").splitlines())
    missing = [line for line in asked() if line not in there]
    if missing:
        raise BuildError(f"{CONFIG}: Linux does not take {', '.join(missing)}: other options "
                         "that these need are missing, or their names have changed")


def compile_kernel(source: Path, log: Path, progress: Progress) -> None:
    """Run make, and report how many files it has compiled.

    ccache is not used: it makes a first build a quarter longer, and a changed
    configuration makes it find almost nothing.
    """
    command = [*MAKE, "-C", str(source), f"-j{os.cpu_count() or 1}", "CC=gcc", "linux"]
    count = 0
    with open(log, "ab") as file:
        start = file.tell()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              env={**os.environ, **STAMP}) as process:
            assert process.stdout is not None
            watchdog = interrupts.kill_after(process, BUILD_S)
            for line in process.stdout:
                file.write(line)
                count += line.startswith(b"  CC ")
                if line.startswith(b"  CC ") and count % 100 == 0:
                    progress(f"compiling Linux: {count} files")
            watchdog.cancel()
    if process.returncode != 0:
        raise BuildError(f"building Linux failed: {first_error(log, start)} (log: {log})")


def list_modules(source: Path, work: Path, log: Path) -> None:
    """Write what modprobe reads about a kernel without loadable modules."""
    release = (source / "include/config/kernel.release").read_text().strip()
    folder = work / "lib/modules" / release
    folder.mkdir(parents=True)
    for name in ("modules.builtin", "modules.builtin.modinfo"):
        shutil.copy(source / name, folder / name)
    (folder / "modules.order").touch()
    run_logged(["/sbin/depmod", "-b", str(work), release], log, "listing Linux's modules")
    if not re.search(r"/rdma_rxe\.ko$", (folder / "modules.builtin").read_text(), re.M):
        raise BuildError(f"{folder}/modules.builtin does not list rdma_rxe")
