# SPDX-License-Identifier: BSD-2-Clause
"""What the user sees: commands, their output, progress, one line when it fails.

With a terminal there are colours and a line that is rewritten while something
takes long; without one every line stands by itself and is flushed at once.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from rich.console import Console

# Without a terminal nobody says how wide it is: a table is not to be cut.
WIDTH = None if sys.stdout.isatty() else 140

console = Console(highlight=False, emoji=False, soft_wrap=True, width=WIDTH)
errors = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)


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


def only_data() -> None:
    """Standard output is for a program from now on: what people read goes elsewhere."""
    console.stderr = True


@contextlib.contextmanager
def busy(text: str) -> Iterator[None]:
    """While something takes long; without a terminal a line, after 3 s of it."""
    if console.is_terminal:
        with console.status(text):
            yield
        return
    timer = threading.Timer(3, line, [f"{text} ..."])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Progress:
    """What several long tasks are doing at the moment."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.begin = time.monotonic()
        self.tasks: dict[str, str] = {}
        self.status = console.status("") if console.is_terminal else None

    def task(self, name: str) -> Callable[[str], None]:
        """What the task of this name calls with what it does now."""
        def report(text: str) -> None:
            with self.lock:
                self.tasks[name] = text
                self.say(f"{name}: {text}")
        return report

    def done(self, name: str) -> None:
        """The task has ended; silent if it never had anything to say."""
        with self.lock:
            if self.tasks.pop(name, None) is not None:
                self.say(f"{name}: done", always=True)

    def failed(self, name: str) -> None:
        """The task has ended without success; why is told when all have ended."""
        with self.lock:
            self.tasks.pop(name, None)
            rest = ", ".join(self.tasks)
            self.say(f"{name}: failed" + (f"; waiting for {rest}" if rest else ""),
                     always=True)

    def say(self, text: str, always: bool = False) -> None:
        if self.status is None or always:
            line(f"[{time.monotonic() - self.begin:4.0f} s] {text}")
        if self.status is not None:
            self.status.update("; ".join(
                f"{name}: {now}" for name, now in self.tasks.items()))

    @contextlib.contextmanager
    def shown(self) -> Iterator["Progress"]:
        if self.status is None:
            yield self
        else:
            with self.status:
                yield self
