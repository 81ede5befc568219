# SPDX-License-Identifier: BSD-2-Clause
"""`essd demo`, the README's first command, on a drive with NAND flash and stock hosts."""

import os
import re
import subprocess
import sys
import tempfile

import pytest

from essd import demo

DEMO_S = 1800       # includes builds


@pytest.mark.drive
@pytest.mark.long
def test_the_demo_succeeds_and_shows_what_it_has_checked() -> None:
    with tempfile.TemporaryDirectory(prefix="demo") as folder:     # not the user's own demo
        done = subprocess.run(
            [sys.executable, "-m", "essd", "demo"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEMO_S,
            check=False,
            env=os.environ | {"XDG_RUNTIME_DIR": folder, "XDG_DATA_HOME": f"{folder}/data"})
    assert done.returncode == 0, done.stdout[-8000:]
    steps = [*demo.FIRST_BOOT, *demo.DRIVE_ONLY, *demo.LAST, *demo.POWER_OFF, *demo.SECOND_BOOT,
             *demo.TWO_HOSTS]
    missing = [name for name, _ in steps if name not in done.stdout]
    assert not missing
    assert re.search(r"^checked in \d+ s$", done.stdout, re.M)
