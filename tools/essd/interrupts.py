# SPDX-License-Identifier: BSD-2-Clause
"""Ctrl-C and SIGTERM: what a command ends and deletes before it exits itself.

Python turns Ctrl-C into KeyboardInterrupt; the command line turns SIGTERM into
SystemExit.  A terminal sends Ctrl-C to all processes of a command, but SIGTERM
reaches only one, so it is passed on.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

INTERRUPTS = (KeyboardInterrupt, SystemExit)


def children(pid: int) -> list[int]:
    """Child processes of all threads of a process."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):      # The thread has just ended.
            found += map(int, path.read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    """All processes below this one, except those that run in a session of their own.

    A supervisor is such an exception: it is ended through its instance.
    """
    found = []
    for child in children(pid):
        with contextlib.suppress(OSError):
            if os.getsid(child) == os.getsid(0):
                found += [child, *descendants(child)]
    return found


def end_children() -> None:
    """Send SIGTERM to every process that this one has started, and those to theirs."""
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)


def exit_on_sigterm(*_: object) -> None:
    """Handle SIGTERM: pass it on, and raise SystemExit, so that clean-up code runs."""
    end_children()
    sys.exit(128 + signal.SIGTERM)


@contextlib.contextmanager
def pool(workers: int) -> Iterator["ThreadPoolExecutor"]:
    """Threads that run one program at a time each, which an interrupt ends."""
    from concurrent.futures import ThreadPoolExecutor     # slow to load
    with ThreadPoolExecutor(workers) as executor:
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            end_children()
            raise


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """Ignore both signals during a clean-up, which takes a few seconds at most."""
    if threading.current_thread() is not threading.main_thread():
        yield           # Only the main thread handles signals.
        return
    before = {number: signal.signal(number, signal.SIG_IGN)
              for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
