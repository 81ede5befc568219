# SPDX-License-Identifier: BSD-2-Clause
"""ssh options for a guest; all commands share the supervisor's open connection."""

from pathlib import Path

from .guest_build import Guest


def ssh_options(guest: Guest, control: Path) -> list[str]:
    """Options that use only the guest's own keys and the shared connection."""
    return ["-F", "none", "-i", str(guest.ssh_key), "-o", "IdentitiesOnly=yes",
            "-o", f"UserKnownHostsFile={guest.known_hosts}",
            "-o", "GlobalKnownHostsFile=/dev/null",
            "-o", "HostKeyAlias=essd", "-o", "StrictHostKeyChecking=yes",
            "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
            "-o", f"ControlPath={control}"]
