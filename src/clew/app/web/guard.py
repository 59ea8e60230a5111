"""Stands before every route: who may ask, from where, and how much may be sent.

- **Host.** A page of another site whose name is made to point at this machine (DNS rebinding) still names itself in
  the Host header, which is therefore checked on every request, static files too.
- **Origin.** A browser says with Sec-Fetch-Site and Origin whose page sends a request. What changes something, or
  reads data, is refused to other sites' pages; programs send neither header.
- **Token.** Where one is set, every request needs it: as ``Authorization: Bearer``, or as the cookie that the login
  page sets, which holds a hash of it.
- **Size.** A body is counted as it arrives, whatever Content-Length says, and given up where nothing more comes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
from collections.abc import MutableMapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response

from clew.app.web.errors import LOG, SERVER_FAULT, BodyTimeout, BodyTooLarge, error_response
from clew.app.web.settings import Settings, is_loopback_host

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: What a browser may do with our pages: load what we serve, and nothing else. There is no inline script or style.
_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": a browser would then send "Origin: null" with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
#: What a person without the token may see.
_OPEN = ("/login", "/static/")


class RequestGuard:
    """ASGI middleware around the app."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._hosts = allowed_hosts(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = (
            self._wrong_host(headers)
            or self._cross_site(scope, headers)
            or self._no_token(scope, headers)
            or self._too_large(scope, headers)
        )
        if refused is not None:
            await refused(scope, receive, _Sending(send))
            return
        sending = _Sending(send)
        try:
            counted = _Counted(receive, self._most(scope), self._settings.limits.idle_seconds)
            await self._app(scope, counted, sending)
        # A fault of ours ends this request and nothing else; what it was is in the log.
        except Exception:
            LOG.exception("%s %s", scope["method"], scope["path"])
            if sending.started:
                raise
            await error_response(500, SERVER_FAULT["error"], SERVER_FAULT["hint"])(scope, receive, sending)

    def _wrong_host(self, headers: Headers) -> Response | None:
        given = headers.getlist("host")
        if len(given) == 1 and self._known(given[0]):
            return None
        return error_response(
            421,
            "this server is not known by the name in the Host header",
            "Use the address that clew serve prints, or allow the name: --allow-host NAME",
        )

    def _known(self, given: str) -> bool:
        host = parse_host(given)
        if host is None:
            return False
        if host in self._hosts:
            return True
        # No name is made to point here by one who gives no name: behind a wildcard any address of ours will do.
        return "*" in self._hosts and _is_address(host)

    def _cross_site(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse what a page of another site sends, except a link to a page of ours."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        reads = scope["method"] in _READS
        link = reads and headers.get("sec-fetch-mode") == "navigate" and not scope["path"].startswith("/api/")
        if site not in {None, "same-origin", "none"} and not link:
            return error_response(403, "another site's page may not ask this server")
        if origin is not None and not reads:
            asked = urlsplit(origin) if "//" in origin else None
            if asked is None or asked.netloc.lower() != headers["host"].lower():
                return error_response(403, "another site's page may not ask this server")
        return None

    def _no_token(self, scope: Scope, headers: Headers) -> Response | None:
        token, path = self._settings.token, scope["path"]
        if token is None or has_token(token, headers) or path == _OPEN[0] or path.startswith(_OPEN[1]):
            return None
        if scope["method"] == "GET" and not path.startswith(("/api/", "/v1/")):
            return RedirectResponse("/login", status_code=303)
        return error_response(
            401,
            "the token is missing or wrong",
            "Send it as 'Authorization: Bearer TOKEN'; clew serve prints it",
            {"WWW-Authenticate": "Bearer"},
        )

    def _too_large(self, scope: Scope, headers: Headers) -> Response | None:
        length, most = headers.get("content-length"), self._most(scope)
        if length is None or (length.isascii() and length.isdecimal() and int(length) <= most):
            return None
        return error_response(413, f"more than {most:,} bytes were sent", "Send less at a time")

    def _most(self, scope: Scope) -> int:
        limits = self._settings.limits
        uploads = scope["method"] == "POST" and scope["path"].endswith(("/uploads", "/graphs"))
        # What divides the parts of an upload comes on top of the files.
        return limits.upload_bytes + limits.body_bytes if uploads else limits.body_bytes


class _Counted:
    """Receives a request's body and counts it; waits ``patience`` seconds for each part of it."""

    def __init__(self, receive: Receive, most: int, patience: float) -> None:
        self._receive = receive
        self._left = most
        self._patience: float | None = patience

    async def __call__(self) -> Message:
        try:
            async with asyncio.timeout(self._patience):
                message = await self._receive()
        except TimeoutError as error:
            raise BodyTimeout from error
        if message["type"] == "http.request":
            if not message.get("more_body"):
                self._patience = None  # what comes next is that the other one has gone
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise BodyTooLarge
        return message


class _Sending:
    """Sends a reply with our headers, and knows whether it has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await self._send(message)


def allowed_hosts(settings: Settings) -> frozenset[str]:
    """Return the names by which the server may be asked, in lower case; ``*``: any address, but no further name."""
    hosts = {host.lower() for host in settings.hosts}
    if is_loopback_host(settings.host):
        return frozenset(hosts | {"localhost", "127.0.0.1", "::1", settings.host.strip("[]").lower()})
    if settings.host in {"0.0.0.0", "::", ""}:
        return frozenset(hosts | {"*", "localhost", socket.gethostname().lower()})
    return frozenset(hosts | {settings.host.strip("[]").lower()})


def parse_host(given: str) -> str | None:
    """Return the host in a Host header, in lower case and without port and brackets; None where it makes no sense.

    >>> host_of("LocalHost:8321"), host_of("[::1]:80"), host_of("evil@localhost")
    ('localhost', '::1', None)
    """
    host, colon, port = given.lower().rpartition(":")
    if not colon or given.endswith("]"):
        host, port = given.lower(), ""
    if port and not (port.isascii() and port.isdecimal()):
        return None
    if host.startswith("["):
        return host[1:-1] if host.endswith("]") and _is_address(host[1:-1]) else None
    sensible = host and all(one.isalnum() or one in "-._" for one in host)
    return host if sensible and host.isascii() else None


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def cookie_name(token: str) -> str:
    """Return what the cookie is called: cookies are of a host, whatever the port, and it may have other servers."""
    return f"clew_{hashlib.sha256(b'clew cookie' + bytes(1) + token.encode()).hexdigest()[:12]}"


def session_value(token: str) -> str:
    """Return what the cookie holds: a hash, so that the token itself is in no browser's store."""
    return hashlib.sha256(b"clew session\0" + token.encode()).hexdigest()


def secrets_equal(given: str, expected: str) -> bool:
    """Compare secrets in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def has_token(token: str, headers: Headers) -> bool:
    """Return whether a request has the token, as a header or as the cookie."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if given:
        return scheme.lower() == "bearer" and secrets_equal(given.strip(), token)
    # Pair by pair: other applications of this host set cookies, too, and not all of them are well formed.
    pairs = (one.strip().partition("=") for one in headers.get("cookie", "").split(";"))
    return any(
        name == cookie_name(token) and secrets_equal(value, session_value(token)) for name, _, value in pairs
    )
