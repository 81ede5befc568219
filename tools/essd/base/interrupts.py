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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
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
def handled_by(handler: "Callable[[int, object], None] | signal.Handlers") -> Iterator[None]:
    """Give both signals another handler for a while."""
    if threading.current_thread() is not threading.main_thread():
        yield           # Only the main thread handles signals.
        return
    before = {number: signal.signal(number, handler)
              for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """Ignore both signals during a clean-up, which takes a few seconds at most."""
    with handled_by(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Keep a signal that comes during this block until the block has ended.

    A program or a thread that the block starts is then known to the code that has
    to end it: an exception inside subprocess.Popen() or Thread.start() would come
    after the start and before the caller has the object.
    """
    came: list[int] = []
    with handled_by(lambda number, _: came.append(number)):
        yield
    for number in came[:1]:
        signal.raise_signal(number)


def kill_after(process: "subprocess.Popen[Any]", seconds: float) -> threading.Timer:
    """Start a timer that kills a process; it does not keep this program from exiting."""
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    return timer
