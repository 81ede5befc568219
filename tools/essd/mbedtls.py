# SPDX-License-Identifier: BSD-2-Clause
"""Unpacks Mbed TLS, whose arithmetic the drive uses for authentication.

The release comes from Debian's source package (debian_source.py).  CMake runs this file
when it configures a build (cmake/mbedtls.cmake): it prints the folder of the sources.
The firmware uses Mbed TLS under the licence Apache-2.0.
"""

import shutil
import sys
from pathlib import Path

from .debian_source import Release, Source, fetch
from .errors import EssdError
from .fw_build import Progress, run_logged
from .paths import cache, locked

RELEASES = (
    Release("3.6.6", "mbedtls_3.6.6.orig.tar.bz2",
            "8fb65fae8dcae5840f793c0a334860a411f884cc537ea290ce1c52bb64ca007a"),
)
SOURCE = Source("mbedtls", "Mbed TLS", RELEASES, "tools/essd/mbedtls.py")
# Of the tarball's 100 MB, the builds need these folders.
FOLDERS = ("include", "library")


def ensure_mbedtls(progress: Progress = lambda text: None) -> Path:
    """Return the folder of the unpacked sources; fetch them if necessary."""
    folder = cache() / "mbedtls" / RELEASES[0].sha256[:16]
    if folder.exists():
        return folder
    with locked(folder.parent / "lock"):
        if not folder.exists():
            unpack(folder, progress)
    return folder


def unpack(folder: Path, progress: Progress) -> None:
    log = folder.parent / "fetch.log"
    log.unlink(missing_ok=True)
    tarball = fetch(SOURCE, progress, log)
    progress(f"unpacking {tarball.name}")
    fresh = folder.with_name("new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    top = f"mbedtls-{RELEASES[0].version}"
    run_logged(["tar", "-xf", str(tarball), "-C", str(fresh), "--strip-components=1",
                f"{top}/LICENSE", *(f"{top}/{name}" for name in FOLDERS)],
               log, "unpacking Mbed TLS")
    fresh.rename(folder)


def main() -> int:
    try:
        print(ensure_mbedtls(lambda text: print(text, file=sys.stderr)))
    except EssdError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
