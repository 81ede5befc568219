# SPDX-License-Identifier: BSD-2-Clause
"""Which instance a command means that was given no --name."""

import socket

from . import paths
from .errors import EssdError

DEFAULT = "default"


def answers(name: str) -> bool:
    """Whether the supervisor of this instance accepts connections."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(paths.instance(name) / "control.sock"))
        except OSError:
            return False
    return True


def running() -> list[str]:
    """Names of the running instances, sorted."""
    return sorted(path.parent.name for path in paths.runtime().glob("*/control.sock")
                  if answers(path.parent.name))


def instance(name: str = "") -> str:
    """`name`, or the only running instance, or the default one if none runs."""
    if name:
        return name
    names = running()
    if len(names) > 1:
        raise EssdError(f"several instances are running: choose one with --name "
                        f"{' or --name '.join(names)}")
    return names[0] if names else DEFAULT
