# SPDX-License-Identifier: BSD-2-Clause
"""A command of essd as a real process, and all processes that it has started.

Every process inherits a variable of the command's environment, by which those that
are left over are found, whoever their parent is now.
"""

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from essd.base import paths

MARK = "ESSD_TEST_MARK"
STATUS = {"Ctrl-C": 130, "SIGINT": 130, "SIGTERM": 143, "SIGKILL": -9}


def heed_ctrl_c() -> None:
    """A shell lets the programs that it starts in the background ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Command:
    def __init__(self, words: list[str | Path], folder: Path, log: Path,
                 path: str = os.environ["PATH"]) -> None:
        self.mark = str(uuid.uuid4())
        self.log = log
        with open(self.log, "w", encoding="utf-8") as output:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder,
                start_new_session=True, preexec_fn=heed_ctrl_c,
                env={**os.environ, MARK: self.mark, "PYTHONUNBUFFERED": "1",
                     "PYTHONPATH": str(paths.TOP / "tools"), "PATH": path})

    def left(self) -> list[str]:
        """Process ids and command lines of its processes, itself included."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if f"{MARK}={self.mark}".encode() in (path / "environ").read_bytes():
                    line = (path / "cmdline").read_bytes().replace(b"\0", b" ")
                    found.append(f"{path.name}: {line.decode()}")
            except OSError:
                continue        # It has just ended.
        return [text for text in found if not text.endswith(": ")]

    def output(self) -> str:
        return self.log.read_text()

    def wait_for(self, condition: Callable[[], bool], timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert self.process.poll() is None, self.output()
            assert time.monotonic() < deadline, (self.output(), self.left())
            time.sleep(0.05)

    def interrupt(self, how: str) -> int:
        """Send a signal as a terminal or another program does; return the status."""
        if how == "Ctrl-C":
            os.killpg(self.process.pid, signal.SIGINT)
        else:
            self.process.send_signal(signal.Signals[how])
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            raise AssertionError((how, self.left(), self.output())) from None

    def check_nothing_left(self) -> None:
        deadline = time.monotonic() + 15
        while self.left():
            assert time.monotonic() < deadline, (self.left(), self.output())
            time.sleep(0.05)

    def end(self) -> None:
        """Kill what is left after a failed test."""
        for text in self.left():
            os.kill(int(text.partition(":")[0]), signal.SIGKILL)
