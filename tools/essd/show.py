# SPDX-License-Identifier: BSD-2-Clause
"""What the user sees: commands, their output, progress, one line when it fails.

With a terminal there are colours and a line that is rewritten while something
takes long; without one every line stands by itself and is flushed at once.

Much of what is printed comes from others: a neighbour's name from the network, a
guest's last line, a file.  No text is therefore read as Rich's markup (what has a
colour is a Text), and no character of it reaches the terminal as a control.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

# Without a terminal nobody says how wide it is: a table is not to be cut.
WIDTH = None if sys.stdout.isatty() else 140



def printable(text: str) -> str:
    """The text with "?" for each character that would control the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


class PlainConsole(Console):
    """A console that prints every string as it stands, in tables too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, soft_wrap=True,
                         **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


console = PlainConsole(width=WIDTH)
errors = PlainConsole(stderr=True)


def line(text: str = "", style: str | None = None) -> None:
    console.print(text, style=style)


def heading(text: str) -> None:
    line()
    line(f"== {text}", "bold")


def error(text: str) -> None:
    errors.print(f"essd: {text}", style="bold red")


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
        # A string would be read as markup here.
        with console.status(Text(printable(text))):
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
            self.status.update(Text(printable("; ".join(
                f"{name}: {now}" for name, now in self.tasks.items()))))

    @contextlib.contextmanager
    def shown(self) -> Iterator["Progress"]:
        if self.status is None:
            yield self
        else:
            with self.status:
                yield self
