# SPDX-License-Identifier: BSD-2-Clause
"""`essd python`: Python programs that use `import essd` (docs/python.md)."""

import os
import sys
from typing import Annotated

import typer

from ..base import DEVELOP, command


@command(DEVELOP, "python", context_settings={"ignore_unknown_options": True})
def run_python(arguments: Annotated[list[str] | None, typer.Argument(
        metavar="[FILE [ARG]...]", help="What `python` takes: a file and its arguments, -c, "
        "-m.  Without any, an interactive Python.")] = None) -> None:
    """Run a Python program that uses `import essd`, or pytest with its plug-in."""
    os.environ.setdefault("PYTEST_PLUGINS", "essd.pytest_plugin")
    os.execv(sys.executable, [sys.executable, *(arguments or [])])
