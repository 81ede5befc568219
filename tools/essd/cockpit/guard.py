# SPDX-License-Identifier: BSD-2-Clause
"""Who may ask the cockpit: each request passes here before anything else sees it.

A browser also sends requests for pages of strangers.  Therefore:
- the link's token is exchanged once for a cookie that a page of another site cannot
  make the browser send, and that no script can read;
- Host has to be an address of the cockpit, so that a stranger's name which points to
  this machine (DNS rebinding) is refused;
- Origin, if there is one, has to be the cockpit's, and a POST must have one;
- Sec-Fetch-Site, if there is one, must not be that of another site or port.
"""

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .unproven import prove

TOKEN_BYTES = 32
SESSIONS_MAX = 32
LOGIN = "/login"
METRICS = "/metrics"
FOUND = 303             # the answer to the right token
REFUSED = "No access: open the link that essd cockpit has printed.\n"
HEADERS = {
    "Content-Security-Policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin"}


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


class Keys:
    """The link's token, the sessions of browsers, and the token for /metrics."""

    def __init__(self, on_new_link: Callable[[], None] = lambda: None) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.bearer = secrets.token_urlsafe(TOKEN_BYTES)
        self.sessions: list[bytes] = []
        self.on_new_link = on_new_link

    def exchange(self, token: str) -> str:
        """A new session for the link's token, which becomes invalid; "" if it is wrong."""
        if not hmac.compare_digest(digest(token), digest(self.token)):
            return ""
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        session = secrets.token_urlsafe(TOKEN_BYTES)
        self.sessions = [*self.sessions, digest(session)][-SESSIONS_MAX:]
        self.on_new_link()
        return session

    def knows(self, session: str) -> bool:
        found = [hmac.compare_digest(digest(session), known) for known in self.sessions]
        return any(found)

    def is_bearer(self, header: str) -> bool:
        kind, _, token = header.partition(" ")
        return kind.lower() == "bearer" and \
            hmac.compare_digest(digest(token.strip()), digest(self.bearer))


class Hosts:
    """Which values of the Host header name this cockpit."""

    def __init__(self, listen: str, port: int) -> None:
        self.port = port
        self.address = ipaddress.ip_address(listen)

    def has(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        if not colon or port != str(self.port):
            return False
        if name == "localhost":
            return self.address.is_loopback or self.address.is_unspecified
        try:
            address = ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        # A page can only get at an address by its number if that is its own origin.
        return address == self.address or self.address.is_unspecified


def values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


class Guard:
    """ASGI middleware: lets a request through, exchanges the token, or answers 403."""

    def __init__(self, app: ASGIApp, keys: Keys, hosts: Hosts) -> None:
        self.app = app
        self.keys = keys
        self.hosts = hosts

    @property
    def cookie(self) -> str:
        """Cookies do not know ports, and several cockpits may run on one address."""
        return f"essd-cockpit-{self.hosts.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":             # There are no websockets.
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        answer = self.answer(scope)
        if answer is None or answer.status_code == FOUND:
            prove(scope)
        await (answer or self.app)(scope, receive, send_safe)

    def answer(self, scope: Scope) -> Response | None:
        """An answer of the guard's own; None: the request may pass."""
        refused = PlainTextResponse(REFUSED, 403)
        if not self.is_from_here(scope):
            return refused
        if scope["path"] == LOGIN:
            return self.login(scope) if scope["method"] == "GET" else refused
        if self.keys.knows(self.session(scope)):
            return None
        if scope["path"] == METRICS and scope["method"] == "GET" and \
                any(map(self.keys.is_bearer, values(scope, b"authorization")[:1])):
            return None
        return refused

    def is_from_here(self, scope: Scope) -> bool:
        """Whether no other site has made the browser send this request."""
        hosts, origins = values(scope, b"host"), values(scope, b"origin")
        if len(hosts) != 1 or not self.hosts.has(hosts[0]):
            return False
        if any(origin != f"http://{hosts[0]}" for origin in origins) or len(origins) > 1:
            return False
        if scope["method"] not in ("GET", "HEAD") and not origins:
            return False
        # The link may be opened from anywhere: it has the token.
        return scope["path"] == LOGIN or all(
            site in ("none", "same-origin") for site in values(scope, b"sec-fetch-site"))

    def session(self, scope: Scope) -> str:
        for header in values(scope, b"cookie"):
            try:
                found = SimpleCookie(header).get(self.cookie)
            except CookieError:
                continue
            if found is not None:
                return found.value
        return ""

    def login(self, scope: Scope) -> Response:
        """Exchange the token; afterwards the browser's address line does not have it."""
        query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=4)
        session = self.keys.exchange(query.get("token", [""])[0])
        if not session:
            if self.keys.knows(self.session(scope)):    # the link once more
                return RedirectResponse("/", FOUND)
            return PlainTextResponse(REFUSED, 403)
        response = RedirectResponse("/", FOUND)
        response.set_cookie(self.cookie, session, httponly=True, samesite="strict", path="/")
        return response
