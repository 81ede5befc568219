# SPDX-License-Identifier: BSD-2-Clause
"""What drives, hosts and switches have in common, and switches."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..instance.instance import Instance

if TYPE_CHECKING:
    from .system import System

LAST_LINES = 20
TAIL_BYTES = 1 << 16        # that the last lines of a log are looked for in


def last_lines(path: Path, count: int = LAST_LINES) -> list[str]:
    """The last lines of a log; none if there is no such file."""
    try:
        with open(path, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            data = file.read()
    except OSError:
        return []
    text = data.decode(errors="replace").replace("\r", "")
    clean = "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)
    return clean.splitlines()[-count:]


class Part:
    """One process of a system: a drive, a host or a switch."""

    system: "System"        # which the part belongs to

    def __init__(self, instance: Instance, name: str) -> None:
        self.instance = instance.of(name)
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} of {self.instance.name}>"

    def status(self) -> dict[str, Any]:
        """The part's state now, with the members that docs/json.md lists."""
        return dict(self.instance.status()["parts"][self.name])

    @property
    def is_on(self) -> bool:
        """Whether the part's process runs.  A crashed part does not."""
        return bool(self.status()["state"] == "running")

    def power_cut(self) -> None:
        """End the part at once; EssdError if it is off already."""
        self.instance.ask("power-cut", part=self.name)

    def power_on(self) -> None:
        """Start the part again; returns before it is ready.  EssdError if it is on."""
        self.instance.ask("power-on", part=self.name)

    @property
    def console_path(self) -> Path:
        """The file with everything that the part's serial port has printed.

        It is appended to when the part starts again.  A switch has its log instead.
        """
        return Path(self.status()["console"])

    def console_log(self) -> str:
        """The text of that file; "" if the part has printed nothing."""
        path = self.console_path
        return path.read_text(errors="replace") if path.exists() else ""

    def last_lines(self, count: int = LAST_LINES) -> list[str]:
        """The last lines of the console, without control characters."""
        return last_lines(self.console_path, count)

    def qmp(self, execute: str, arguments: Mapping[str, object] | None = None) -> Any:
        """Execute a QMP command of the part's QEMU and return its result.

        EssdError has QEMU's own text if the command fails.  A switch has no QMP.
        """
        return self.instance.ask("qmp", part=self.name, execute=execute,
                                 arguments=dict(arguments or {}))


class Switch(Part):
    """An Ethernet switch (docs/switch.md)."""

    def ask(self, request: str) -> Any:
        """Send one line to the switch's control socket; EssdError if it refuses."""
        return self.instance.ask("switch", part=self.name, request=request)
