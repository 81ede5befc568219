# SPDX-License-Identifier: BSD-2-Clause
"""Which systems essd runs on.  The launcher asks the same; this is for the package."""

import os
import platform
import shlex
from pathlib import Path

from .errors import EssdError

OS_RELEASE = Path("/etc/os-release")
NEEDED = "needs Debian 12 or 13 on x86-64"


def read_release(path: Path) -> dict[str, str]:
    """The variables of an os-release file; empty if there is none."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        name, is_set, value = line.strip().partition("=")
        if is_set and not name.startswith("#"):
            try:
                found[name] = "".join(shlex.split(value))
            except ValueError:          # a quotation mark that is not closed
                found[name] = value
    return found


def refuse_others() -> None:
    """Raise an error of one line unless this system is supported."""
    release = read_release(OS_RELEASE)
    machine = platform.machine()
    is_debian = (release.get("ID"), release.get("VERSION_ID")) in (
        ("debian", "12"), ("debian", "13"))
    if os.uname().sysname != "Linux" or not is_debian or machine != "x86_64":
        name = release.get("PRETTY_NAME") or platform.system()
        raise EssdError(f"{NEEDED}; this system is {name} on {machine}")
