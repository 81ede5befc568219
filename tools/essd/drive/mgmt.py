# SPDX-License-Identifier: BSD-2-Clause
"""Send requests to a running drive over its management channel (docs/management.md)."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..base.errors import EssdError
from ..instance.instance import Instance

ANSWER_S = 5.0
GOODBYE_S = 3.0
STATUS_S = 3.0      # time limit, short because `essd status` should answer soon


def ask(instance: Instance, request: str, timeout_s: float = ANSWER_S,
        **arguments: Any) -> dict[str, Any]:
    """Return the result of one request; EssdError if the drive does not answer."""
    return dict(instance.ask("mgmt", part=instance.drive, request=request, arguments=arguments,
                             timeout_s=timeout_s))


def status(instance: Instance) -> dict[str, Any]:
    """The drive's status; if the drive does not answer, `why` has the reason."""
    try:
        return ask(instance, "status", STATUS_S)
    except EssdError as error:
        return {"why": str(error)}


def shut_down_one(instance: Instance) -> None:
    """Ask one drive to shut down cleanly; ignore it if it does not answer."""
    with contextlib.suppress(EssdError):
        ask(instance, "shutdown", timeout_s=GOODBYE_S)


def shut_down(instance: Instance) -> None:
    """Ask all running drives to shut down cleanly; ignore those that do not answer."""
    if not instance.is_running:
        return
    # Not from its configuration, which another version of essd may have written.
    drives = [name for name, part in instance.status()["parts"].items()
              if part.get("kind") == "drive" and part["state"] == "running"]

    with ThreadPoolExecutor(len(drives) or 1) as pool:
        list(pool.map(lambda name: shut_down_one(instance.of(name)), drives))
