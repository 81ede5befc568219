# SPDX-License-Identifier: BSD-2-Clause
"""Output for the user: lines, tables, progress and error messages.

On a terminal, output has colours, and a status line is rewritten while
something takes long.  Otherwise progress is printed as separate lines, each of
which is flushed at once.

Some of the text is untrusted: a neighbour's name from the network, a guest's
last line, a file.  Therefore no string is interpreted as Rich's markup (coloured
text is passed as a Text), and control characters are replaced.
"""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

# Without a terminal the width is unknown; 140 columns keep tables from being cut.
WIDTH = None if sys.stdout.isatty() else 140



def printable(text: str) -> str:
    """Replace each character that could control the terminal by "?"."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


class PlainConsole(Console):
    """A console that never interprets a string as markup, not even in a table."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, soft_wrap=True,
                         **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


console = PlainConsole(width=WIDTH)
errors = PlainConsole(stderr=True)


is_quiet = False        # with --quiet: only errors, and what was asked for


def note(text: str = "", style: str | None = None) -> None:
    """A line that says what essd does or has done; not printed with --quiet."""
    if not is_quiet:
        line(text, style)


def line(text: str = "", style: str | None = None) -> None:
    console.print(text, style=style)


def heading(text: str) -> None:
    note()
    note(f"== {text}", "bold")


def error(text: str) -> None:
    errors.print(f"essd: {text}", style="bold red")


def trim(output: str, most: int = 14) -> list[str]:
    """The lines of `output`; if there are more than `most`, the middle is cut out."""
    lines = output.rstrip().splitlines()
    if len(lines) <= most:
        return lines
    head = most - 4
    return [*lines[:head], f"... {len(lines) - head - 3} more lines", *lines[-3:]]


def only_data() -> None:
    """Reserve standard output for data: other lines go to standard error from now."""
    console.stderr = True


@contextlib.contextmanager
def busy(text: str) -> Iterator[None]:
    """Show a status line during an operation.

    Without a terminal, one line is printed if the operation takes over 3 s.
    """
    if is_quiet:
        yield
        return
    if console.is_terminal:
        # console.status() would interpret a plain string as markup.
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
    """Shows what each of several parallel tasks is doing."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.begin = time.monotonic()
        self.tasks: dict[str, str] = {}
        self.status = console.status("") if console.is_terminal and not is_quiet else None

    def task(self, name: str) -> Callable[[str], None]:
        """Return the function that the named task calls with its current activity."""
        def report(text: str) -> None:
            with self.lock:
                self.tasks[name] = text
                self.show_progress(f"{name}: {text}")
        return report

    def done(self, name: str) -> None:
        """The task has ended.  Nothing is printed if it never reported progress."""
        with self.lock:
            if self.tasks.pop(name, None) is not None:
                self.show_progress(f"{name}: done", always=True)

    def failed(self, name: str) -> None:
        """The task has failed.  The reason is printed after all tasks have ended."""
        with self.lock:
            self.tasks.pop(name, None)
            rest = ", ".join(self.tasks)
            self.show_progress(
                f"{name}: failed" + (f"; waiting for {rest}" if rest else ""),
                always=True)

    def show_progress(self, text: str, always: bool = False) -> None:
        """Print a line (on a terminal only if `always`); update the status line."""
        if self.status is None or always:
            note(f"[{time.monotonic() - self.begin:4.0f} s] {text}")
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


def listing(found: list[dict[str, Any]], as_json: bool, table: Callable[..., Any],
            otherwise: str) -> None:
    """Print what was found as JSON or as a table, or say why nothing was."""
    if as_json:
        print(json.dumps(found, indent=2))
    elif found:
        console.print(table(found))
    else:
        note(otherwise)
