# SPDX-License-Identifier: BSD-2-Clause
"""Unpacks the libraries of others that the firmware and tests are linked with.

* Mbed TLS (Apache-2.0 or GPL-2.0-or-later), whose arithmetic the drive uses for
  authentication and TLS, and QEMU for records of TLS.
* libsodium (ISC), whose Ed25519 and SHA-512 check signatures of firmware images, and
  whose X25519 TLS uses.
* lwIP (BSD-3-Clause), with whose TCP tests compare the TCP engine.

The releases come from Debian's source packages (debian_source.py).  CMake runs this file
when it configures a build (cmake/libraries.cmake): it prints the folder of the sources.
"""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import EssdError
from ..base.paths import cache, locked
from .debian_source import Release, Source, fetch
from .fw_build import Progress, run_logged

MODULE = "tools/essd/build/libraries.py"


@dataclass(frozen=True)
class Library:
    """One library: where it comes from, and what the builds need of it."""

    source: Source
    parts: tuple[str, ...] = ()     # what is unpacked of the tarball; (): everything

    def members(self) -> list[str]:
        """The arguments of tar that name these parts."""
        top = f"{self.source.package}-{self.source.releases[0].version}"
        return [f"{top}/{name}" for name in self.parts]


LIBRARIES = {
    "mbedtls": Library(
        Source("mbedtls", "Mbed TLS", (
            Release("3.6.6", "mbedtls_3.6.6.orig.tar.bz2",
                    "8fb65fae8dcae5840f793c0a334860a411f884cc537ea290ce1c52bb64ca007a"),
        ), MODULE),
        # The tarball has 100 MB.
        ("LICENSE", "include", "library")),
    "libsodium": Library(
        Source("libsodium", "libsodium", (
            Release("1.0.18", "libsodium_1.0.18.orig.tar.gz",
                    "d59323c6b712a1519a5daf710b68f5e7fde57040845ffec53850911f10a5d4f4"),
        ), MODULE)),
    "lwip": Library(
        Source("lwip", "lwIP", (
            Release("2.2.1+dfsg1", "lwip_2.2.1+dfsg1.orig.tar.xz",
                    "83729c274c499d3348e9fbbe043a3113f3fa8953e7efddc7c21c7fcbb1f2b7b1"),
        ), MODULE)),
}


def ensure(name: str, progress: Progress = lambda text: None) -> Path:
    """Return the folder of a library's unpacked sources; fetch them if necessary."""
    library = LIBRARIES[name]
    folder = cache() / name / library.source.releases[0].sha256[:16]
    if folder.exists():
        return folder
    with locked(folder.parent / "lock"):
        if not folder.exists():
            unpack(library, folder, progress)
    return folder


def unpack(library: Library, folder: Path, progress: Progress) -> None:
    log = folder.parent / "fetch.log"
    log.unlink(missing_ok=True)
    tarball = fetch(library.source, progress, log)
    progress(f"unpacking {tarball.name}")
    fresh = folder.with_name("new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    run_logged(["tar", "-xf", str(tarball), "-C", str(fresh), "--strip-components=1",
                *library.members()], log, f"unpacking {library.source.name}")
    fresh.rename(folder)


def main(words: list[str]) -> int:
    if len(words) != 1 or words[0] not in LIBRARIES:
        print(f"usage: python -m essd.build.libraries {'|'.join(LIBRARIES)}", file=sys.stderr)
        return 2
    try:
        print(ensure(words[0], lambda text: print(text, file=sys.stderr)))
    except EssdError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
