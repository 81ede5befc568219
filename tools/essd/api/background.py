# SPDX-License-Identifier: BSD-2-Clause
"""Commands that run in a host while the program does something else."""

import itertools
import shlex
import time
from typing import TYPE_CHECKING

from ..base.errors import EssdError
from ..instance.instance import Result

if TYPE_CHECKING:
    from .host import Host

POLL_S = 0.3
_numbers = itertools.count(1)


class Background:
    """A command that Host.start() has started."""

    def __init__(self, host: "Host", command: str) -> None:
        self.host = host
        self.command = command
        # Inside the host: the output, and the exit status once the command has ended.
        self.file = f"/run/essd-background-{next(_numbers)}"
        inner = shlex.quote(f"({command}) > {self.file}.out 2>&1; "
                            f"echo $? > {self.file}.new; mv {self.file}.new {self.file}.status")
        host.run(f"rm -f {self.file}.*; setsid sh -c {inner} < /dev/null > /dev/null 2>&1 & "
                 f"echo $! > {self.file}.pid")

    @property
    def output(self) -> str:
        """What the command has written to stdout and stderr up to now."""
        return self.host.read(f"cat {self.file}.out", check=False)

    def poll(self) -> int | None:
        """The exit status; None while the command runs."""
        text = self.host.read(f"cat {self.file}.status", check=False)
        return int(text) if text.strip() else None

    def wait(self, timeout_s: float = 300, check: bool = True) -> Result:
        """Wait until the command ends; errors are those of Host.run()."""
        deadline = time.monotonic() + timeout_s
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise EssdError(f"in {self.host.name}: {self.command}: did not end within "
                                f"{timeout_s:.0f} s")
            time.sleep(POLL_S)
        output = self.output
        if check and status != 0:
            last = output.strip().splitlines()[-1:] or ["no output"]
            raise EssdError(f"in {self.host.name}: {self.command}: status {status}: {last[0]}")
        return Result(self.command, status, output, self.host.name)

    def kill(self, signal: str = "KILL") -> None:
        """Send a signal to the command and to everything that it has started.

        The shell around the command ignores INT, so that the exit status of a command
        that ends upon INT is known.
        """
        self.host.run(f"kill -{signal} -- -$(cat {self.file}.pid)", check=False)
