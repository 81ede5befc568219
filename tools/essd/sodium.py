# SPDX-License-Identifier: BSD-2-Clause
"""Unpacks libsodium, whose Ed25519 and SHA-512 check signatures of firmware images.

The release comes from Debian's source package (debian_source.py).  CMake runs this file
when it configures a build (cmake/sodium.cmake): it prints the folder of the sources.
libsodium has the ISC licence.
"""

import shutil
import sys
from pathlib import Path

from .debian_source import Release, Source, fetch
from .errors import EssdError
from .fw_build import Progress, run_logged
from .paths import cache, locked

RELEASES = (
    Release("1.0.18", "libsodium_1.0.18.orig.tar.gz",
            "d59323c6b712a1519a5daf710b68f5e7fde57040845ffec53850911f10a5d4f4"),
)
SOURCE = Source("libsodium", "libsodium", RELEASES, "tools/essd/sodium.py")


def ensure_sodium(progress: Progress = lambda text: None) -> Path:
    """Return the folder of the unpacked sources; fetch them if necessary."""
    folder = cache() / "libsodium" / RELEASES[0].sha256[:16]
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
    run_logged(["tar", "-xf", str(tarball), "-C", str(fresh), "--strip-components=1"],
               log, "unpacking libsodium")
    fresh.rename(folder)


def main() -> int:
    try:
        print(ensure_sodium(lambda text: print(text, file=sys.stderr)))
    except EssdError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
