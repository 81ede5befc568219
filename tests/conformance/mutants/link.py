#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Link the mutated drive into one object whose only global name is its maker.

    link.py LD OBJCOPY OUTPUT OBJECT...
"""

import subprocess
import sys

LINK_S = 600


def main() -> None:
    ld, objcopy, output, *objects = sys.argv[1:]
    subprocess.run([ld, "-r", "-o", f"{output}.all", *objects], check=True,
                   timeout=LINK_S)
    subprocess.run([objcopy, "--redefine-sym", "dut_native_create=dut_mutant_create",
                    "--keep-global-symbol=dut_mutant_create", f"{output}.all", output],
                   check=True, timeout=LINK_S)


if __name__ == "__main__":
    main()
