#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check the licences: of every file, and what the README says of the code of others.

Every file names the licence of its folder in an SPDX line; LICENSES/ has the texts of
these licences and no others.  What the build fetches or links, and what others have
written, has a row with its licence in the README's section "Licences", and nothing else
has.
"""
import pathlib
import re
import sys

from essd.base.paths import TOP
from essd.testrun.lints import tracked

# File formats without comments, and folders that are licensed as a whole.  A patch has
# the licence of the file that it changes.
NO_LINE = (".json", ".bin", ".pcap", ".pcapng", ".png", ".webp", ".svg", ".md", ".patch",
           ".gitignore", "series", "etc/passwd", "etc/group")


# The code of others, by the name that the build has for it, with the name and the licence
# that the README gives it.  The licences are those that the sources themselves name.
OTHERS = {
    "mbedtls": ("Mbed TLS", "Apache-2.0 or GPL-2.0-or-later"),
    "libsodium": ("libsodium", "ISC"),
    "lwip": ("lwIP", "BSD-3-Clause"),
    "smoltcp": ("smoltcp", "0BSD"),
    "picolibc": ("picolibc", "BSD-3-Clause and similar"),
    "libgcc": ("libgcc", "GPL-3.0-or-later with GCC's runtime exception"),
    "libdeflate": ("libdeflate", "MIT"),
    "cmocka": ("cmocka", "Apache-2.0"),
    "qemu": ("QEMU", "GPL-2.0"),
    "glibc": ("glibc", "LGPL-2.1-or-later"),
    "ibverbs": ("libibverbs", "GPL-2.0 or Linux-OpenIB"),
    "rdmacm": ("librdmacm", "GPL-2.0 or Linux-OpenIB"),
    "nvme": ("libnvme", "LGPL-2.1-or-later"),
    "uring": ("liburing", "LGPL-2.1-or-later or MIT"),
    "uplot": ("uPlot", "MIT"),
}
# Folders with the code of others as they publish it, each with its licence.
VENDORED = {"tools/essd/cockpit/uplot/": "uplot"}
# How the build names code of others: (files, what finds the names).
NAMES = (
    (("tools/essd/**/*.py",), re.compile(r'\bSource\("([\w-]+)"')),
    (("CMakeLists.txt", "**/CMakeLists.txt"), re.compile(
        r"pkg_check_modules\(\w+ REQUIRED IMPORTED_TARGET ([\w-]+)\)")),
    (("firmware/**/CMakeLists.txt",), re.compile(r"--specs=([\w-]+)\.specs")),
    (("hw-model/**/meson.build",), re.compile(r"= dependency\('([\w-]+)'")),
    (("tests/**/Cargo.toml",), re.compile(r"^([\w-]+) = \{ version = ", re.M)),
    (("tools/**/*.py", "tests/**/*.py"), re.compile(r'[\[,(]\s*"-l([a-z][\w-]*)"')),
)
# GCC links these unasked.
ALWAYS = {"glibc", "libgcc"}
# Libraries of the same source.
SAME = {"dl": "glibc", "nvme-mi": "nvme"}
SECTION = re.compile(r"^## Licences\n(.*?)(?=^## |\Z)", re.M | re.S)
ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \| [^|]+ \|$", re.M)


def licence_of(name: str) -> str:
    gpl = name.startswith(("hw-model/qemu/", "qemu-patches/"))
    return "GPL-2.0-or-later" if gpl else "BSD-2-Clause"


def complaint(name: str, path: pathlib.Path) -> str:
    """What is wrong with a file's licence line; "" if it is correct."""
    if name.startswith(("LICENSES/", *VENDORED)) or name.endswith(NO_LINE):
        return ""
    line = f"SPDX-License-Identifier: {licence_of(name)}"
    head = path.read_bytes()[:1500].decode(errors="replace")
    return "" if line in head else f"{name}: has no line \"{line}\""


def others(top: pathlib.Path) -> set[str]:
    """What the build fetches or links, by the build's names."""
    found = {name for folder, name in VENDORED.items() if (top / folder).is_dir()}
    return found | ALWAYS | {SAME.get(name, name) for patterns, names in NAMES
                     for pattern in patterns for path in top.glob(pattern)
                     if not path.is_relative_to(top / "build")
                     for name in names.findall(path.read_text(encoding="utf-8"))}


def readme_complaints(readme: str, used: set[str]) -> list[str]:
    """What the README's section on licences lacks, or has too much."""
    found = [f"tools/check_licences.py: add {name}, which the build uses, to OTHERS"
             for name in sorted(used - set(OTHERS))]
    section = SECTION.search(readme)
    rows = dict(ROW.findall(section[1])) if section else {}
    rows = {name: licence for name, licence in rows.items()
            if name != "code of others" and set(name) != {"-"}}
    wanted = dict(OTHERS[name] for name in used & set(OTHERS))
    found += [f'README.md: "Licences" has no row | {name} | {wanted[name]} |'
              for name in sorted(wanted) if rows.get(name) != wanted[name]]
    found += [f'README.md: "Licences" names {name}, which the build does not use'
              for name in sorted(set(rows) - set(wanted))]
    return found


def texts_complaints(texts: set[str]) -> list[str]:
    """LICENSES/ has the text of each licence of a file, and no others."""
    wanted = {licence_of(name) + ".txt" for name in ("lib/", "hw-model/qemu/")}
    return [f"LICENSES/{name}: " + ("is missing" if name in wanted else "no file has it")
            for name in sorted(wanted ^ texts)]


def vendored_complaints(top: pathlib.Path) -> list[str]:
    """The code of others comes with its licence."""
    return [f"{folder}LICENSE: is missing" for folder in VENDORED
            if (top / folder).is_dir() and not (top / folder / "LICENSE").is_file()]


def main() -> int:
    found = [text for name in tracked() if (text := complaint(name, TOP / name))]
    found += vendored_complaints(TOP)
    found += texts_complaints({path.name for path in (TOP / "LICENSES").iterdir()})
    found += readme_complaints((TOP / "README.md").read_text(encoding="utf-8"), others(TOP))
    for text in found:
        print(text)
    print(f"check_licences: {len(found)} complaint(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
