# SPDX-License-Identifier: BSD-2-Clause
"""What results were obtained with: the versions of the suite, QEMU and the system."""

import platform
import subprocess
from pathlib import Path

from ..base import paths
from ..base.errors import LOOK_UP_S


def first_line(*command: str | Path) -> str:
    try:
        done = subprocess.run([str(x) for x in command], check=False, text=True,
                              cwd=paths.TOP, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=LOOK_UP_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else ""


def versions(qemu: Path | str | None = None) -> dict[str, str]:
    """Versions of the suite, QEMU and the operating system."""
    found = {"suite": first_line("git", "describe", "--tags", "--always", "--dirty")}
    if qemu is not None:
        found["QEMU"] = first_line(qemu, "--version").removeprefix(
            "QEMU emulator version ")
    found["system"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    return {name: text or "unknown" for name, text in found.items()}
