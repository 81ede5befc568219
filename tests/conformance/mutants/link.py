#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Link the mutated drive into one object whose only global name is its maker.

    link.py LD OBJCOPY OUTPUT REPLACED OBJECT...

REPLACED names a file with one source a line.  The drive's own objects of these
sources are left out: the mutated object, or the tester's object, is used in
their place.
"""

import subprocess
import sys
from pathlib import Path

LINK_S = 600
MUTATED = ("conform_mutated", "mutated_ftl", "mutated_rest")


def source_of(name: str) -> str:
    """lib/CMakeFiles/lib.dir/./a.c.o is lib/a.c."""
    parts = [p for p in Path(name).parts
             if p not in ("CMakeFiles", ".") and not p.endswith(".dir")]
    return "/".join(parts).removesuffix(".o")


def main() -> None:
    ld, objcopy, output, replaced = sys.argv[1:5]
    left_out = tuple(f"/{line}" for line in Path(replaced).read_text().split())
    objects = [name for name in sys.argv[5:]
               if any(f"{lib}.dir" in name for lib in MUTATED)
               or not f"/{source_of(name)}".endswith(left_out)]
    subprocess.run([ld, "-r", "-o", f"{output}.all", *objects], check=True,
                   timeout=LINK_S)
    subprocess.run([objcopy, "--redefine-sym", "dut_native_create=dut_mutant_create",
                    "--keep-global-symbol=dut_mutant_create", f"{output}.all", output],
                   check=True, timeout=LINK_S)


if __name__ == "__main__":
    main()
