#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that every file names the licence of its folder in an SPDX line."""
import pathlib
import sys

from essd.lints import tracked
from essd.paths import TOP

# File formats without comments, and folders that are licensed as a whole.  A patch has
# the licence of the file that it changes.
NO_LINE = (".json", ".bin", ".pcap", ".png", ".svg", ".md", ".patch", ".gitignore", "series",
           "etc/passwd", "etc/group")


def licence_of(name: str) -> str:
    gpl = name.startswith(("hw-model/qemu/", "qemu-patches/"))
    return "GPL-2.0-or-later" if gpl else "BSD-2-Clause"


def complaint(name: str, path: pathlib.Path) -> str:
    """What is wrong with a file's licence line; "" if it is correct."""
    if name.startswith("LICENSES/") or name.endswith(NO_LINE):
        return ""
    line = f"SPDX-License-Identifier: {licence_of(name)}"
    head = path.read_bytes()[:1500].decode(errors="replace")
    return "" if line in head else f"{name}: has no line \"{line}\""


def main() -> int:
    found = [text for name in tracked() if (text := complaint(name, TOP / name))]
    for text in found:
        print(text)
    print(f"check_licences: {len(found)} complaint(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
