# SPDX-License-Identifier: BSD-2-Clause
"""Keep what is known of a system at the moment when a test of it fails.

The system ends with the test, and the next test writes the same files, so consoles,
logs, captures, counters and the state of all parts are copied.
"""

import contextlib
import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..base.errors import EssdError
from ..drive import mgmt
from ..instance.instance import Instance

# Of the instance, and in the folder of each part.
FILES = ("*.log", "*.pcap", "*.pcapng", "*/*.log", "*/*.pcap", "*/*.pcapng")
ASKED = ("counters", "pools", "status")     # requests of the management channel
ANSWER_S = 3.0      # a drive that hangs must not hold up the other tests


def folder_name(test: str) -> str:
    """A file name for a test: pytest's node ids have slashes, colons and brackets."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", test).strip("-")[:120]


def copy_files(source: Path, target: Path) -> None:
    for pattern in FILES:
        for path in source.glob(pattern):
            copy = target / path.relative_to(source)
            with contextlib.suppress(OSError):      # It has just been deleted.
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)


def write(target: Path, name: str, data: Any) -> None:
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{name}.json").write_text(json.dumps(data, indent=2) + "\n",
                                         encoding="utf-8")


def keep(instance: Instance, target: Path) -> None:
    """Copy an instance's logs, and ask it and its drives for their state."""
    copy_files(instance.folder, target)
    parts: dict[str, Any] = {}
    with contextlib.suppress(EssdError, OSError):       # It may have ended.
        status = instance.status()
        parts = status["parts"]
        write(target, "system", status)
    for part in parts:
        if parts[part]["kind"] != "drive" or parts[part]["state"] != "running":
            continue
        for request in ASKED:
            with contextlib.suppress(EssdError, OSError):
                write(target, f"{part}-{request}",
                      mgmt.ask(instance.of(part), request, ANSWER_S))


def restarts(instance: Instance) -> dict[str, list[str]]:
    """The causes of restarts that nobody asked for, of each part that has restarted."""
    with contextlib.suppress(EssdError, OSError):
        return {name: list(map(str, part["restarts"]))
                for name, part in instance.status()["parts"].items() if part["restarts"]}
    return {}


def restart_lines(instance: Instance) -> Iterable[str]:
    """A line for each part that has restarted by itself."""
    for part, causes in restarts(instance).items():
        yield f"{part} has restarted by itself: {', '.join(causes)}"
