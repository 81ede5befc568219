# SPDX-License-Identifier: BSD-2-Clause
"""Fetches a newer kernel for a guest than Debian 13's, such as one from its backports.

A guest's `kernel.txt` describes the kernel, with lines of three kinds:

    suite NAME                      the suite of Debian's archive that has it
    package NAME VERSION SHA256     each of its packages
    without MODULE                  a module of guest/modules.txt that it has not

The packages replace the kernel of guest/packages.txt.  apt checks them with the archive's
signatures, and this module with the checksums, so that a test has the kernel that it was
written for.  Suites such as the backports keep a version for some months.
"""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import debian_source, guest_build
from .fw_build import BuildError
from .guest_build import Apt

LIST = "kernel.txt"
DEFAULT = "linux-image-amd64"       # in guest/packages.txt
# Files that newer packages have beside the modules, and older ones in /boot.
BOOT_FILES = ("vmlinuz", "config", "System.map")


# What apt says of a package, a version or a suite that the archive does not have.
NOT_OFFERED = re.compile(r"\bVersion '.*' for '.*' was not found|has no installation candidate"
                         r"|Unable to locate package|does not have a Release file")


class Unavailable(BuildError):
    """Debian's archive does not have a kernel in the version that is asked for."""


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    sha256: str

    def file(self, archives: Path) -> Path:
        return archives / f"{self.name}_{self.version.replace(':', '%3a')}_amd64.deb"

    def is_in(self, archives: Path) -> bool:
        file = self.file(archives)
        return file.exists() and debian_source.sha256(file) == self.sha256


@dataclass(frozen=True)
class Kernel:
    suite: str
    packages: tuple[Package, ...]
    without: frozenset[str]         # modules of guest/modules.txt

    @property
    def versions(self) -> dict[str, str]:
        return {one.name: one.version for one in self.packages}


def read(lines: list[str]) -> Kernel | None:
    """The kernel that the lines of `kernel.txt` describe; None without lines."""
    suites, packages, without = [], [], []
    for line in lines:
        match line.split():
            case ["suite", suite]:
                suites.append(suite)
            case ["package", name, version, sha256]:
                packages.append(Package(name, version, sha256))
            case ["without", module]:
                without.append(module)
            case _:
                raise BuildError(f"{LIST}: {line!r} is neither `suite NAME` nor `package NAME "
                                 "VERSION SHA256` nor `without MODULE`")
    if not lines:
        return None
    if len(suites) != 1 or not packages:
        raise BuildError(f"{LIST} needs one line `suite NAME` and a line `package NAME VERSION "
                         "SHA256` for each package of the kernel")
    return Kernel(suites[0], tuple(packages), frozenset(without))


class SuiteApt(Apt):
    """apt for one suite of the archive."""

    def __init__(self, suite: str, folder: Path, archives: Path, log: Path) -> None:
        super().__init__(folder, archives, log)
        sources = folder / "sources.list"
        sources.write_text(sources.read_text(encoding="utf-8").replace(
            f" {guest_build.SUITE} ", f" {suite} "), encoding="utf-8")


def fetch(kernel: Kernel, folder: Path, archives: Path, log: Path,
          make_apt: Callable[[str, Path, Path, Path], Apt] = SuiteApt) -> list[Path]:
    """The archives of the kernel; those that the cache does not have are downloaded.

    `folder` is apt's.  Unavailable if Debian's archive does not offer a package.
    """
    missing = {one.name: one.version for one in kernel.packages if not one.is_in(archives)}
    if missing:
        apt = make_apt(kernel.suite, folder, archives, log)
        try:
            # An archive that does not answer is an error, too, and not only a suite without lists.
            apt.get("update", "-o", "APT::Update::Error-Mode=any")
            apt.fetch(missing)
        except BuildError as error:
            if not NOT_OFFERED.search(str(error)):
                raise
            raise Unavailable(
                f"{kernel.suite} of Debian's archive does not have "
                f"{', '.join(f'{n} {v}' for n, v in missing.items())}: {error}") from None
    for one in kernel.packages:
        if not one.is_in(archives):
            raise BuildError(f"{one.file(archives)} does not have the checksum of {LIST}")
    return [one.file(archives) for one in kernel.packages]


def move_to_boot(root: Path) -> None:
    """Put the kernel and its configuration where older packages have them."""
    (root / "boot").mkdir(exist_ok=True)
    for folder in (root / "usr/lib/modules").iterdir():
        for name in BOOT_FILES:
            if (folder / name).exists():
                shutil.move(folder / name, root / "boot" / f"{name}-{folder.name}")
