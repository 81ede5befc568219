# SPDX-License-Identifier: BSD-2-Clause
"""A Linux guest that uses drives."""

import re
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import EssdError
from ..instance.config import SERVICE
from ..instance.instance import Instance, Result
from .background import Background
from .part import Part

if TYPE_CHECKING:
    from .drive import Drive

DEVICE_S = 30.0         # for the kernel to create the block device after a Connect
DISCONNECT_S = 120.0    # nvme disconnect may wait a minute for a drive that is off


class Host(Part):
    """A Linux guest that uses drives.

    `connected` has the drives that connect() connected and disconnect() has not
    disconnected.
    """

    def __init__(self, instance: Instance, name: str) -> None:
        super().__init__(instance, name)
        self.connected: list[Drive] = []

    def run(self, command: str | Sequence[str], timeout_s: float = 300,
            check: bool = True) -> Result:
        """Run a command (a shell line, or words) as root; wait until it ends.

        The result has `status` and `output`, which is what the command has written to
        stdout and stderr.  EssdError if it does not end within `timeout_s` seconds and,
        if `check` is true, if its exit status is not 0.
        """
        return self.instance.run(command, part=self.name, timeout_s=timeout_s, check=check)

    def read(self, command: str | Sequence[str], timeout_s: float = 300,
             check: bool = True) -> str:
        """Run a command like run(), and return what it has written to stdout alone."""
        return self.instance.run(command, part=self.name, timeout_s=timeout_s, check=check,
                                 apart=True).output

    def start(self, command: str) -> Background:
        """Start a shell line in the background; the result tells when it has ended."""
        return Background(self, command)

    def put(self, file: Path | str, target: str) -> None:
        """Copy a file into the host; an executable file stays executable."""
        self.instance.put(Path(file), target, part=self.name)

    def wait_ready(self, timeout_s: float = 180) -> None:
        """Wait until the host can run commands; EssdError if it takes longer."""
        self.instance.wait_ready(self.name, timeout_s)

    # Drives

    def connect(self, drive: "Drive", port: int = 0, options: str = "") -> str:
        """Connect to a drive through one of its ports; return its block device.

        `options` are further options of `nvme connect`, such as "--ctrl-loss-tmo=2".
        A second call for the drive's other port adds a path to the same device.
        """
        address = drive.port(port).address
        self.run(f"nvme connect -t rdma -a {address} -s {SERVICE} "
                 f"-n {shlex.quote(drive.nqn)} {options}".rstrip())
        if drive not in self.connected:
            self.connected.append(drive)
        return self.device(drive)

    def disconnect(self, drive: "Drive | None" = None) -> None:
        """Remove all paths to one drive, or to all drives."""
        self.run("nvme disconnect-all" if drive is None else
                 f"nvme disconnect -n {shlex.quote(drive.nqn)}", DISCONNECT_S)
        self.connected = [one for one in self.connected
                          if drive is not None and one is not drive]

    def subsystem(self, drive: "Drive") -> list[str]:
        """Names in the directory of the drive's subsystem in sysfs."""
        script = ("for s in /sys/class/nvme-subsystem/*; do "
                  f"[ \"$(cat $s/subsysnqn 2>/dev/null)\" = {shlex.quote(drive.nqn)} ] "
                  "&& ls $s; done; true")
        return self.read(script).split()

    def device(self, drive: "Drive", timeout_s: float = DEVICE_S) -> str:
        """The block device of a connected drive, such as /dev/nvme0n1.

        Waits until the kernel has created it; EssdError if it takes longer.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            found = sorted(x for x in self.subsystem(drive)
                           if re.fullmatch(r"nvme\d+n\d+", x))
            if found:
                return f"/dev/{found[0]}"
            if time.monotonic() > deadline:
                raise EssdError(f"{self.name} has no block device of {drive.name} "
                                f"({drive.nqn}): connect to it first")
            time.sleep(0.2)

    def paths(self, drive: "Drive") -> dict[str, str]:
        """The connected controllers of a drive with their states: {"nvme0": "live"}.

        The kernel's states are live, connecting, resetting, deleting and others.
        """
        names = [x for x in self.subsystem(drive) if re.fullmatch(r"nvme\d+", x)]
        if not names:
            return {}
        lines = self.read("for c in " + " ".join(names) + "; do "
                          "echo $c $(cat /sys/class/nvme/$c/state 2>/dev/null); done")
        return {words[0]: words[1] for line in lines.splitlines()
                if len(words := line.split()) == 2}

    def wait_paths(self, drive: "Drive", live: int, timeout_s: float = 60) -> None:
        """Wait until this many paths to a drive are live; EssdError if it takes longer.

        The host notices a drive that is gone, or has come back, after some seconds.
        """
        deadline = time.monotonic() + timeout_s
        while (states := list(self.paths(drive).values())).count("live") != live:
            if time.monotonic() > deadline:
                raise EssdError(f"{self.name} has {states.count('live')} live paths to "
                                f"{drive.name} after {timeout_s:.0f} s (states: "
                                f"{', '.join(states) or 'none'}); expected {live}")
            time.sleep(0.2)
