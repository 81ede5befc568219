# SPDX-License-Identifier: BSD-2-Clause
"""ssh options for a guest; all commands share the supervisor's open connection."""

from pathlib import Path

from ..build.guest_build import Guest


def path_text(path: Path) -> str:
    """A path as ssh reads it, which replaces what begins with a percent sign."""
    return str(path).replace("%", "%%")


def ssh_options(guest: Guest, control: Path) -> list[str]:
    """Options that use only the guest's own keys and the shared connection."""
    return ["-F", "none", "-i", path_text(guest.ssh_key), "-o", "IdentitiesOnly=yes",
            "-o", f'UserKnownHostsFile="{path_text(guest.known_hosts)}"',
            "-o", "GlobalKnownHostsFile=/dev/null",
            "-o", "HostKeyAlias=essd", "-o", "StrictHostKeyChecking=yes",
            "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
            "-o", f'ControlPath="{path_text(control)}"']
