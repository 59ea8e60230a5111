"""The middleware before every route: which hosts, sites and users are served, and how large a request may be.

- **Host.** A site whose name is made to point at this machine (DNS rebinding) still sends its own name in the Host
  header. The header is therefore checked on every request, static files included.
- **Origin.** A browser says with Sec-Fetch-Site and Origin which site's page sends a request. Pages of other sites
  can neither change nor read anything; programs send neither header.
- **Token.** If one is set, every request needs it: as ``Authorization: Bearer``, or as the cookie that the login page
  sets, which holds a hash of it.
- **Address.** One that is very long is refused, also because an address that is sent on to another ("/b/kb" to
  "/b/kb/") would become a header that no client reads.
- **Size.** A body is counted as it arrives, whatever Content-Length says. It is dropped if nothing more arrives, or
  too slowly.

Why this is not done by Starlette's own middleware: decision record 18.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import socket
import time
from collections.abc import MutableMapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.app.web.errors import LOG, SERVER_FAULT, BodyTimeout, BodyTooLarge, error_response
from clew.app.web.settings import SLOWEST, Settings
from clew.core.addresses import is_loopback_host

#: A browser may load from this server and from nowhere else. The pages have no inline scripts or styles.
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
_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_MAX_PORT = 65_535
#: The longest path and query in bytes. A question of 4,000 characters has at most 48,000 in a query, quoted.
_MAX_PATH, _MAX_QUERY = 4_000, 50_000
#: Paths that need no token: the login page, and all below /static/.
_OPEN_PATH, _OPEN_FOLDER = "/login", "/static/"


class RequestGuard:
    """ASGI middleware that refuses requests, counts bodies, and adds the security headers to every reply."""

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
        refusal = (
            self._refuse_host(headers)
            or self._refuse_cross_site(scope, headers)
            or self._refuse_without_token(scope, headers)
            or _refuse_address(scope)
            or self._refuse_size(scope, headers)
        )
        secure_send = _SecureSend(send)
        if refusal is not None:
            await refusal(scope, receive, secure_send)
            return
        try:
            counted = _CountedReceive(receive, self._max_bytes(scope), self._settings.limits.body_seconds)
            await self._app(scope, counted, secure_send)
        # An error of ours ends this request alone, and is logged.
        except Exception:
            LOG.exception("%s %s", scope["method"], scope["path"])
            if secure_send.started:
                raise
            await error_response(500, SERVER_FAULT["error"], SERVER_FAULT["hint"])(
                scope, receive, secure_send
            )

    def _refuse_host(self, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) == 1 and self._is_allowed(hosts[0]):
            return None
        return error_response(
            421,
            "this server is not known by the name in the Host header",
            "Use the address that clew serve prints, or allow the name: --allow-host NAME",
        )

    def _is_allowed(self, header: str) -> bool:
        host = parse_host(header)
        if host is None:
            return False
        # DNS rebinding needs a name, so with a wildcard any IP address is allowed.
        return host in self._hosts or ("*" in self._hosts and _is_address(host))

    def _refuse_cross_site(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse requests that a page of another site sends, except links to our pages."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        reads = scope["method"] in _READING_METHODS
        link = reads and headers.get("sec-fetch-mode") == "navigate" and not scope["path"].startswith("/api/")
        if site not in {None, "same-origin", "none"} and not link:
            return error_response(403, "another site's page may not ask this server")
        if origin is not None and not reads:
            sender = urlsplit(origin) if "//" in origin else None
            if sender is None or sender.netloc.lower() != headers["host"].lower():
                return error_response(403, "another site's page may not ask this server")
        return None

    def _refuse_without_token(self, scope: Scope, headers: Headers) -> Response | None:
        token, path = self._settings.token, scope["path"]
        if token is None or has_token(token, headers) or path == _OPEN_PATH or path.startswith(_OPEN_FOLDER):
            return None
        if scope["method"] == "GET" and not path.startswith(("/api/", "/v1/")):
            return RedirectResponse("/login", status_code=303)
        return error_response(
            401,
            "the token is missing or wrong",
            "Send it as 'Authorization: Bearer TOKEN'; clew serve prints it",
            {"WWW-Authenticate": "Bearer"},
        )

    def _refuse_size(self, scope: Scope, headers: Headers) -> Response | None:
        length, limit = headers.get("content-length"), self._max_bytes(scope)
        if length is None:
            return None
        if not (length.isascii() and length.isdecimal()):
            return error_response(400, "the Content-Length of the request is no number of bytes")
        # Python reads no number of thousands of digits.
        if len(length.lstrip("0")) <= len(str(limit)) and int(length) <= limit:
            return None
        return error_response(413, f"more than {limit:,} bytes were sent", "Send less at a time")

    def _max_bytes(self, scope: Scope) -> int:
        limits = self._settings.limits
        # The boundaries and headers of an upload come on top of its files.
        return limits.upload_bytes + limits.body_bytes if _is_upload(scope) else limits.body_bytes


def _refuse_address(scope: Scope) -> Response | None:
    if len(scope["path"].encode(errors="replace")) <= _MAX_PATH and len(scope["query_string"]) <= _MAX_QUERY:
        return None
    return error_response(
        414,
        f"the address has more than {_MAX_PATH:,} bytes before its question mark or {_MAX_QUERY:,} after it",
        "A long question can be sent with POST",
    )


def _is_upload(scope: Scope) -> bool:
    path: str = scope["path"]
    return scope["method"] == "POST" and path.endswith(("/uploads", "/graphs"))


class _CountedReceive:
    """Receives a request's body, at most ``limit`` bytes. It waits at most ``timeout`` seconds for each part, and in
    all for that time and what the bytes that have arrived may take."""

    def __init__(self, receive: Receive, limit: int, timeout: float) -> None:
        self._receive = receive
        self._limit = limit
        self._timeout = timeout
        self._received = 0
        self._is_whole = False
        self._start = time.monotonic()

    async def __call__(self) -> Message:
        if self._is_whole:
            return await self._receive()  # the disconnect
        left = self._start + self._timeout + self._received / SLOWEST - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, min(left, self._timeout))):
                message = await self._receive()
        except TimeoutError as error:
            raise BodyTimeout from error
        if message["type"] == "http.request":
            self._is_whole = not message.get("more_body")
            self._received += len(message.get("body", b""))
            if self._received > self._limit:
                raise BodyTooLarge
        return message


class _SecureSend:
    """Sends a reply with the security headers; ``started`` says whether it has begun."""

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
    """Return the host names that the server answers to, in lower case; ``*`` stands for any IP address."""
    hosts = {host.lower() for host in settings.hosts}
    if is_loopback_host(settings.host):
        return frozenset(hosts | {"localhost", "127.0.0.1", "::1", settings.host.strip("[]").lower()})
    if settings.host in {"0.0.0.0", "::", ""}:
        return frozenset(hosts | {"*", "localhost", socket.gethostname().lower()})
    return frozenset(hosts | {settings.host.strip("[]").lower()})


def parse_host(header: str) -> str | None:
    """Return the host of a Host header, in lower case and without port and brackets; None if it is not valid.

    >>> parse_host("LocalHost:8321"), parse_host("[::1]:80"), parse_host("evil@localhost"), parse_host("localhost:0")
    ('localhost', '::1', None, None)
    """
    host, colon, port = header.lower().rpartition(":")
    if not colon or header.endswith("]"):
        host, port = header.lower(), ""
    if port and not (port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) <= _MAX_PORT):
        return None
    if host.startswith("["):
        return host[1:-1] if host.endswith("]") and _is_address(host[1:-1]) else None
    valid = host.isascii() and all(character.isalnum() or character in "-._" for character in host)
    return host if host and valid else None


#: Headers by which a proxy says that it asks for somebody else.
_FORWARDING = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


def is_local_user(settings: Settings, request: HTTPConnection) -> bool:
    """Return whether a request comes from the person who runs the server, on this machine.

    Only such a person may choose folders and models: the server has to listen to this machine alone and be called by
    a name of it, no proxy may stand in between, and, where the system says whose a connection is (Linux), it is that
    of the user who runs the server.
    """
    if not is_for_this_machine(settings) or request.client is None:
        return False
    host = parse_host(request.headers.get("host", ""))
    named_locally = host is not None and is_loopback_host(host)
    if not named_locally or any(name in request.headers for name in _FORWARDING):
        return False
    if not is_loopback_host(request.client.host):
        return False
    owner = connection_owner(request.client.port, request.scope["server"][1])
    return owner is None or owner == os.getuid()


def is_for_this_machine(settings: Settings) -> bool:
    """Return whether a server is one person's own: it listens to this machine alone, and may be written to."""
    return is_loopback_host(settings.host) and not settings.hosts and not settings.read_only


def connection_owner(port: int, server_port: int) -> int | None:
    """Return the user id of the process on this machine that connects from a loopback ``port`` to ``server_port``,
    None where the system does not say."""
    local, remote = f":{port:04X}", f":{server_port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as lines:  # noqa: PTH123 - quicker, and no file of a person
                for line in lines:
                    fields = line.split()
                    is_it = fields[1].endswith(local) and fields[2].endswith(remote)
                    # A connection that has ended belongs to nobody any more.
                    if is_it and fields[3] != _TIME_WAIT and _is_loopback_field(fields[1]):
                        return int(fields[7])
        except (OSError, ValueError, IndexError):
            continue
    return None


#: The state of a connection that has ended, in /proc/net/tcp.
_TIME_WAIT = "06"


def _is_loopback_field(field: str) -> bool:
    """Return whether an address as /proc/net/tcp writes it, little-endian, is of this machine."""
    address = field.partition(":")[0]
    return address.endswith("7F") or address in {
        "00000000000000000000000001000000",
        "0000000000000000FFFF00000100007F",
    }


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def cookie_name(token: str) -> str:
    """Return the name of the session cookie. It depends on the token, as several servers on one host share
    cookies."""
    return f"clew_{hashlib.sha256(b'clew cookie' + bytes(1) + token.encode()).hexdigest()[:12]}"


def session_value(token: str) -> str:
    """Return the value of the session cookie: a hash, so that no browser stores the token itself."""
    return hashlib.sha256(b"clew session\0" + token.encode()).hexdigest()


def secrets_equal(candidate: str, secret: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(candidate.encode("utf-8", "replace"), secret.encode())


def has_token(token: str, headers: Headers) -> bool:
    """Return whether a request has the token, as a header or as the cookie."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if credentials:
        return scheme.lower() == "bearer" and secrets_equal(credentials.strip(), token)
    cookies = cookie_parser(headers.get("cookie", ""))
    return secrets_equal(cookies.get(cookie_name(token), ""), session_value(token))
