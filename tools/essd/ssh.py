# SPDX-License-Identifier: BSD-2-Clause
"""How to reach a guest: one connection that the supervisor keeps open."""

from pathlib import Path

from .guest_build import Guest


def ssh_options(guest: Guest, control: Path) -> list[str]:
    """Options that use only our key, our known host and the shared connection."""
    return ["-F", "none", "-i", str(guest.ssh_key), "-o", "IdentitiesOnly=yes",
            "-o", f"UserKnownHostsFile={guest.known_hosts}",
            "-o", "GlobalKnownHostsFile=/dev/null",
            "-o", "HostKeyAlias=essd", "-o", "StrictHostKeyChecking=yes",
            "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
            "-o", f"ControlPath={control}"]
