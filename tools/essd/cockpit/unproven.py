# SPDX-License-Identifier: BSD-2-Clause
"""Connections that have not shown a token: few of them, and each for a short time.

Whoever may open a connection could otherwise hold all that the cockpit accepts, by
requests that never end (Slowloris).  A connection is proven once the guard has let one
of its requests pass.  Until then it has UNPROVEN_S in all, however many bytes or
refused requests it sends, and of more than UNPROVEN_MAX the oldest one is closed: an
honest browser sends its first request at once.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

UNPROVEN_MAX = 32
UNPROVEN_S = 10.0
PROVE = "prove"         # of the state of a request's scope: a function for the guard


class Unproven:
    """All connections that are not proven, the oldest first."""

    def __init__(self) -> None:
        self.waiting: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}

    def add(self, transport: asyncio.Transport) -> None:
        while len(self.waiting) >= UNPROVEN_MAX:
            self.close(next(iter(self.waiting)))
        self.waiting[transport] = asyncio.get_running_loop().call_later(
            UNPROVEN_S, self.close, transport)

    def remove(self, transport: asyncio.BaseTransport) -> None:
        timer = self.waiting.pop(transport, None)
        if timer is not None:
            timer.cancel()

    def close(self, transport: asyncio.BaseTransport) -> None:
        self.remove(transport)
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


class Connection(H11Protocol):
    """uvicorn's connection, which begins unproven."""

    unproven: Unproven

    def connection_made(self, transport: asyncio.Transport) -> None:    # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state,
                          PROVE: lambda: self.unproven.remove(transport)}
        self.unproven.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.unproven.remove(self.transport)
        super().connection_lost(exc)


def connections() -> type[Connection]:
    """A class of connections for one server, which share what is unproven."""
    return type("CockpitConnection", (Connection,), {"unproven": Unproven()})


def prove(scope: Any) -> None:
    """The guard has let this request pass."""
    known = scope.get("state", {}).get(PROVE)
    if known is not None:
        known()
