# SPDX-License-Identifier: BSD-2-Clause
"""What the user sees: commands, their output, progress, one line when it fails.

With a terminal there are colours and a line that is rewritten while something
takes long; without one every line stands by itself and is flushed at once.
"""

import contextlib
import threading
import time
from collections.abc import Iterator

from rich.console import Console

console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def line(text: str = "", style: str | None = None) -> None:
    console.print(text, style=style, markup=False)


def heading(text: str) -> None:
    line()
    line(f"== {text}", "bold")


def error(text: str) -> None:
    errors.print(f"essd: {text}", style="bold red", markup=False)


def trim(output: str, most: int = 14) -> list[str]:
    """The lines of some output, the middle left out where there are many."""
    lines = output.rstrip().splitlines()
    if len(lines) <= most:
        return lines
    head = most - 4
    return [*lines[:head], f"... {len(lines) - head - 3} more lines", *lines[-3:]]


class Progress:
    """What several long tasks are doing at the moment."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.begin = time.monotonic()
        self.tasks: dict[str, str] = {}
        self.status = console.status("") if console.is_terminal else None

    def __call__(self, text: str) -> None:
        """A task says what it does now; its name is what precedes the colon."""
        name = text.split(":")[0]
        with self.lock:
            if self.tasks.get(name) == text:
                return
            self.tasks[name] = text
            if self.status is None:
                line(f"[{time.monotonic() - self.begin:4.0f} s] {text}")
            else:
                self.status.update("; ".join(self.tasks.values()))

    def done(self, name: str) -> None:
        with self.lock:
            self.tasks.pop(name, None)
            line(f"[{time.monotonic() - self.begin:4.0f} s] {name}: done")
            if self.status is not None:
                self.status.update("; ".join(self.tasks.values()))

    @contextlib.contextmanager
    def shown(self) -> Iterator["Progress"]:
        if self.status is None:
            yield self
        else:
            with self.status:
                yield self
