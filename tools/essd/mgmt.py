# SPDX-License-Identifier: BSD-2-Clause
"""Asks a running drive by its management channel: docs/management.md."""

from typing import Any

from .instance import Instance

ANSWER_S = 5.0


def ask(instance: Instance, request: str, timeout_s: float = ANSWER_S,
        **arguments: Any) -> dict[str, Any]:
    """The result of one request; EssdError when there is none."""
    return dict(instance.ask("mgmt", request=request, arguments=arguments,
                             timeout_s=timeout_s))


def status(instance: Instance) -> dict[str, Any]:
    return ask(instance, "status")
