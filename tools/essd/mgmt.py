# SPDX-License-Identifier: BSD-2-Clause
"""Asks a running drive by its management channel: docs/management.md."""

import contextlib
from typing import Any

from .errors import EssdError
from .instance import Instance

ANSWER_S = 5.0
GOODBYE_S = 3.0
STATUS_S = 3.0      # who asks for a status does not wait for long


def ask(instance: Instance, request: str, timeout_s: float = ANSWER_S,
        **arguments: Any) -> dict[str, Any]:
    """The result of one request; EssdError when there is none."""
    return dict(instance.ask("mgmt", request=request, arguments=arguments,
                             timeout_s=timeout_s))


def status(instance: Instance) -> dict[str, Any]:
    """What the drive says of itself; `why`, if it does not answer."""
    try:
        return ask(instance, "status", STATUS_S)
    except EssdError as error:
        return {"why": str(error)}


def shut_down(instance: Instance) -> None:
    """Have the drive say goodbye; one that does not answer goes without."""
    if instance.is_running and \
            instance.status()["parts"].get("drive", {}).get("state") == "running":
        with contextlib.suppress(EssdError):
            ask(instance, "shutdown", timeout_s=GOODBYE_S)
