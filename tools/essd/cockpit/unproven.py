# SPDX-License-Identifier: BSD-2-Clause
"""Connections that have not shown a token: few of them, and each for a short time.

Whoever may open a connection could otherwise hold all that the cockpit accepts, by
requests that never end (Slowloris).  A connection is proven once the guard has let one
of its requests pass.  Until then it has UNPROVEN_S in all, however many bytes or
refused requests it sends.

Of more than UNPROVEN_MAX, one is closed.  It must not be the slow one of an honest user
because somebody else opens many.  So each peer has a share: a user of this machine, whom
the kernel names for each of its sockets, or else the network address.  The oldest
connection of the peer that has most of them goes.  The user who runs the cockpit, and
could read its token, loses one only to himself.
"""

import asyncio
import ipaddress
import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

UNPROVEN_MAX = 32
UNPROVEN_S = 10.0
PROVE = "prove"         # of the state of a request's scope: a function for the guard


# The kernel's list of its TCP sockets: address and port of both ends, and the user.
SOCKETS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LOCAL, REMOTE, USER = 1, 2, 7           # columns
PREFIX_V6 = 64          # bits of an IPv6 address that a peer cannot choose


def plain(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address; one of IPv4 is that also on a socket for both families."""
    address = ipaddress.ip_address(name.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def hexadecimal(address: tuple[Any, ...]) -> str:
    """An address with its port, as the kernel lists it."""
    packed = plain(address[0]).packed
    words = (packed[at:at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + (
        f":{address[1]:04X}")


def users() -> dict[tuple[str, str], int]:
    """The users of all TCP sockets of this machine, by the addresses of both ends."""
    found = {}
    for file in SOCKETS:
        try:
            lines = file.read_text(encoding="ascii").splitlines()[1:]
        except OSError:         # without IPv6
            continue
        for words in (line.split() for line in lines):
            found[words[LOCAL], words[REMOTE]] = int(words[USER])
    return found


def peer_of(transport: asyncio.BaseTransport, known: dict[tuple[str, str], int]) -> str | int:
    """Whose a connection is: the user's number, or the network address."""
    peer, mine = (transport.get_extra_info(name) for name in ("peername", "sockname"))
    if not peer:
        return "gone"
    user = known.get((hexadecimal(peer), hexadecimal(mine)))
    if user is not None:
        return user
    address = plain(peer[0])
    return str(ipaddress.ip_network((address, PREFIX_V6), strict=False)
               if address.version == 6 else address)


def to_close(peers: Iterable[str | int], mine: int) -> int:
    """Which of these connections is closed, of which the oldest is the first."""
    of_others = [peer for peer in peers if peer != mine]
    if not of_others:
        return 0
    count = Counter(of_others)
    greedy = max(count, key=lambda peer: count[peer])       # the first one of several
    return list(peers).index(greedy)


class Unproven:
    """All connections that are not proven, the oldest first."""

    def __init__(self) -> None:
        self.waiting: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}

    def add(self, transport: asyncio.Transport) -> None:
        self.waiting[transport] = asyncio.get_running_loop().call_later(
            UNPROVEN_S, self.close, transport)
        if len(self.waiting) > UNPROVEN_MAX:
            known = users()
            all_of_them = list(self.waiting)
            self.close(all_of_them[to_close([peer_of(one, known) for one in all_of_them],
                                            os.getuid())])

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
