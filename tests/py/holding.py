# SPDX-License-Identifier: BSD-2-Clause
"""Another process that uses a folder of the cache."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from essd.base import paths

HOLDER = """
import sys
from pathlib import Path
from essd.base import in_use
assert in_use.hold(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(folder: Path) -> Iterator[None]:
    """Another process that uses a folder."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, folder], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE,
                          env={**os.environ, "PYTHONPATH": str(paths.PACKAGE.parent)}
                          ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.stdin.close()
        process.wait(30)
