"""The one client for what clew asks of other servers: models, pages, SPARQL endpoints, web searches, annotations.

Every request has limits on bytes, on seconds from its start to the end of its body, on redirects, and on where it may
lead:

- An address that a person *named* (of a model, an endpoint, a search) may be anywhere, on this machine too. A
  redirect may lead to the same host only, since that is where questions are said to go.
- Any other address (a page, what that redirects to) must be public. Its name is resolved once, all addresses that it
  has are checked, and the connection goes to one of these.

Nothing is sent to an address with a password in it. The proxies of the environment are used for named addresses of
other machines alone: where a page lies could not be checked behind one.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self
from urllib.parse import quote, unquote, urljoin, urlsplit

from clew.core.addresses import is_loopback, is_public
from clew.core.config import find_proxy
from clew.core.errors import RemoteError
from clew.core.text import read_count

_MIB = 1 << 20
#: Bytes of a body, packed or unpacked, where the caller names no other limit; and of one that comes with a refusal.
MAX_BYTES, _REFUSAL_BYTES = 64 * _MIB, 1 << 16
#: Seconds to wait for a connection; a running server accepts one at once. Seconds that an idle one is kept.
_CONNECT_SECONDS, _IDLE_SECONDS = 10.0, 5.0
_PORTS = {"http": 80, "https": 443}
_HEADERS = {"user-agent": "clew", "accept-encoding": "identity"}
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
_PATH = "/%:@!$&'()*+,;=~-._"
_CHUNK = 1 << 16


class ConnectFailed(OSError):
    """There is no connection, and nothing was sent."""


def resolve_host(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host, the best first. Raises OSError."""
    places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in places))


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply: the address it came from, after redirects; its status; its headers by name in lower case; its body."""

    address: str
    status: int
    headers: Mapping[str, str]
    data: bytes


@dataclass(frozen=True, slots=True)
class _Target:
    """The parts of an address."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, address: str) -> _Target:
        """Return the parts of an address. Raises RemoteError for one that nothing can be sent to."""
        try:
            parts = urlsplit(address)
            port = parts.port
        except ValueError as error:
            raise RemoteError(f"its address makes no sense: {error}") from error
        if "@" in parts.netloc:
            raise RemoteError(
                "its address has a user name or password", "The address is stored: give one without"
            )
        if parts.scheme not in _PORTS:
            raise RemoteError(f"it leads to an address that is not http or https: {address}")
        if not parts.hostname:
            raise RemoteError(f"its address makes no sense: {address}")
        query = f"?{quote(parts.query, safe=f'{_PATH}?[]')}" if parts.query else ""
        path = quote(parts.path or "/", safe=_PATH) + query
        return cls(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path)


class _Wire(io.RawIOBase):
    """A connected socket under a clock: no call waits for more than ``pause`` seconds, or beyond the ``deadline``.

    http.client takes it for a socket. It closes that before the body is read, so only :attr:`connected` is closed.
    """

    def __init__(self, connected: socket.socket, deadline: float, pause: float) -> None:
        super().__init__()
        self.connected, self.deadline, self.pause = connected, deadline, pause

    def start_clock(self) -> None:
        """Set the time that the next call may take. Raises TimeoutError where there is none left."""
        remaining = min(self.pause, self.deadline - time.monotonic())
        if remaining <= 0:
            raise TimeoutError("timed out")
        self.connected.settimeout(remaining)

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive bytes into a buffer."""
        self.start_clock()
        return self.connected.recv_into(buffer)

    def sendall(self, data: bytes) -> None:
        """Send all of some bytes."""
        self.start_clock()
        self.connected.sendall(data)

    def makefile(self, _: str) -> io.BufferedReader:
        """Return what reads the socket."""
        return io.BufferedReader(self, _CHUNK)

    def close(self) -> None:
        """Do nothing."""


class Exchange:
    """A reply whose body is not read yet: the address it came from, status, and headers. A context manager."""

    def __init__(
        self, address: str, reply: http.client.HTTPResponse, release: Callable[[bool], None]
    ) -> None:
        self.address, self.status = address, reply.status
        self.headers = [(name.lower(), value) for name, value in reply.getheaders()]
        self._reply = reply
        self._release: Callable[[bool], None] | None = release

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pieces(self, limit: int, *, cut: bool = False) -> Iterator[bytes]:
        """Yield the body as it comes. A body of more than ``limit`` bytes is ``cut`` there, or else refused.

        Raises RemoteError for that, TimeoutError, and OSError where the connection breaks off.
        """
        total = 0
        try:
            while piece := self._reply.read1(_CHUNK):
                total += len(piece)
                if total > limit and not cut:
                    raise _too_large(limit)
                yield piece[: len(piece) - max(total - limit, 0)]
                if total > limit:
                    return
        except http.client.HTTPException as error:
            raise ConnectionError("it broke off in the middle of its reply") from error
        if self._reply.length:
            raise ConnectionError("it broke off in the middle of its reply")
        self._end(not self._reply.will_close)

    def close(self) -> None:
        """Drop the connection, unless all was read and it waits for the next request."""
        self._end(False)

    def _end(self, can_wait: bool) -> None:
        if self._release is not None:
            self._release(can_wait)
        self._release = None


@dataclass(slots=True)
class HttpClient:
    """Sends requests within limits. Threads may share it.

    ``is_named``: a person named the addresses that it is given. ``allow_private``: others, too, may lie on this
    machine and in private networks. ``max_seconds`` are for a request with all its redirects. ``resolve`` returns the
    IP addresses of a host and port.
    """

    is_named: bool = False
    allow_private: bool = False
    max_bytes: int = MAX_BYTES
    max_seconds: float = 60.0
    max_redirects: int = 5
    resolve: Callable[[str, int], list[str]] = resolve_host
    _idle: dict[tuple[str, str, int], list[tuple[socket.socket, float]]] = field(default_factory=dict)

    def request(
        self,
        address: str,
        data: bytes | None = None,
        headers: Mapping[str, str] = {},
        *,
        deadline: float | None = None,
        check: Callable[[str], None] = lambda address: None,
        cut: bool = False,
    ) -> Reply:
        """GET an address, or POST ``data`` to it; return the reply with its body unpacked.

        ``check`` is called with each address, redirects included, before a request is sent to it. With ``cut`` a body
        that is too large is cut, else it is an error. Raises RemoteError for a refused address or reply,
        TimeoutError, and OSError: ConnectFailed if nothing was sent.
        """
        method = "GET" if data is None else "POST"
        with self.open(address, method, data or b"", headers, deadline=deadline, check=check) as exchange:
            is_refusal = exchange.status >= 400
            limit = _REFUSAL_BYTES if is_refusal else self.max_bytes
            body = b"".join(exchange.pieces(limit, cut=cut or is_refusal))
            fields = dict(exchange.headers)
            if not is_refusal:
                body = _unpack(body, fields.get("content-encoding", ""), self.max_bytes)
            return Reply(exchange.address, exchange.status, fields, body)

    def open(
        self,
        address: str,
        method: str,
        data: bytes,
        headers: Mapping[str, str],
        *,
        deadline: float | None = None,
        pause: float = float("inf"),
        check: Callable[[str], None] = lambda address: None,
    ) -> Exchange:
        """Send a request, follow redirects, and return the reply before its body is read; the caller closes it.

        ``pause``: seconds that may pass without a byte. Raises as :meth:`request` does.
        """
        deadline = time.monotonic() + self.max_seconds if deadline is None else deadline
        for _ in range(self.max_redirects + 1):
            target = _Target.parse(address)
            check(address)
            exchange = self._send(address, target, method, data, headers, deadline, pause)
            place = dict(exchange.headers).get("location")
            if exchange.status not in _REDIRECTIONS or not place:
                return exchange
            exchange.close()
            try:
                address = urljoin(address, place)
            except ValueError as error:
                raise RemoteError(f"it leads to an address that makes no sense: {error}") from error
            if self.is_named:
                _check_same_host(target, _Target.parse(address), address)
            if exchange.status == 303:
                method, data = "GET", b""
        raise RemoteError(f"it is redirected more than {self.max_redirects} times")

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            for connected, _ in self._idle.popitem()[1]:
                connected.close()

    def _send(
        self,
        address: str,
        target: _Target,
        method: str,
        data: bytes,
        headers: Mapping[str, str],
        deadline: float,
        pause: float,
    ) -> Exchange:
        proxy = None
        if self.is_named and not is_loopback(address):
            proxy = find_proxy(target.scheme, target.host)
        path = target.path
        headers = _HEADERS | {name.lower(): value for name, value in headers.items()}
        if proxy is not None and target.scheme == "http":
            place = urlsplit(address).netloc
            path, headers = f"http://{place}{path}", headers | _proxy_headers(proxy)
        key = (target.scheme, target.host, target.port)
        connected = self._take_idle(key)
        is_reused = connected is not None
        try:
            if connected is None:
                connected = self._connect(target, proxy, deadline)
        except TimeoutError as error:
            if time.monotonic() >= deadline:
                raise
            raise ConnectFailed("no connection came about in time") from error
        except (OSError, ValueError) as error:
            raise ConnectFailed(str(error)) from error

        def release(can_wait: bool, connected: socket.socket = connected) -> None:
            if can_wait:
                self._idle.setdefault(key, []).append((connected, time.monotonic()))
            else:
                connected.close()

        connection = http.client.HTTPConnection(target.host, target.port)
        connection.default_port = _PORTS[target.scheme]
        connection.sock = _Wire(connected, deadline, pause)
        try:
            connection.request(method, path, data or None, dict(headers))
            return Exchange(address, connection.getresponse(), release)
        except BaseException as error:
            connected.close()
            if is_reused and method == "GET" and isinstance(error, ConnectionResetError | BrokenPipeError):
                # The server closed it as the request was on its way, as it does with idle ones: ask anew.
                return self._send(address, target, method, data, headers, deadline, pause)
            if isinstance(error, http.client.HTTPException | ValueError):
                raise ConnectionError(f"it sent no reply of HTTP ({error})") from error
            raise

    def _take_idle(self, key: tuple[str, str, int]) -> socket.socket | None:
        """Return a connection that was kept and is still open."""
        waiting = self._idle.get(key, [])
        while waiting:
            connected, since = waiting.pop()
            connected.settimeout(0)
            try:
                if time.monotonic() - since < _IDLE_SECONDS:
                    connected.recv(1)  # it says nothing unless it ends
            except (BlockingIOError, ssl.SSLWantReadError):
                return connected
            except OSError:
                pass
            connected.close()
        return None

    def _connect(self, target: _Target, proxy: str | None, deadline: float) -> socket.socket:
        """Return a connection to the first address that takes one, when all addresses are allowed."""
        host, port = target.host, target.port
        if proxy is not None:
            parts = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
            if parts.scheme != "http" or not parts.hostname:
                raise RemoteError(f"no proxy of HTTP: {parts.scheme}://{parts.hostname}", "Set HTTPS_PROXY")
            host, port = parts.hostname, parts.port or 80
        addresses = self.resolve(host, port)
        if not self.is_named and not self.allow_private:
            for address in addresses:
                if not is_public(address):
                    raise RemoteError(
                        f"{host} is on this machine or a private network ({address})",
                        "If it is meant so: --allow-private",
                    )
        connected = _connect_to_first(addresses, port, deadline)
        try:
            wire = _Wire(connected, deadline, _CONNECT_SECONDS)
            if target.scheme == "https":
                if proxy is not None:
                    _open_tunnel(wire, target, proxy)
                wire.start_clock()
                return _secure_context().wrap_socket(connected, server_hostname=target.host)
        except BaseException:
            connected.close()
            raise
        return connected


def _connect_to_first(addresses: list[str], port: int, deadline: float) -> socket.socket:
    problem: OSError = ConnectFailed("it has no address")
    for address in addresses:
        remaining = min(_CONNECT_SECONDS, deadline - time.monotonic())
        if remaining <= 0:
            raise TimeoutError("timed out")
        try:
            connected = socket.create_connection((address, port), remaining)
        except OSError as error:
            problem = error
        else:
            # Head and body are sent one after the other: the second would wait for word of the first.
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connected
    raise problem


def _check_same_host(before: _Target, after: _Target, address: str) -> None:
    is_same_port = before.port == after.port or (before.port, after.port) == (80, 443)
    is_less_secure = before.scheme == "https" and after.scheme == "http"
    if before.host != after.host or not is_same_port or is_less_secure:
        raise RemoteError(f"it redirects to another place: {address}", "If that is meant, name it instead")


def _proxy_headers(proxy: str) -> dict[str, str]:
    parts = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
    if parts.username is None:
        return {}
    account = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(account.encode()).decode()}"}


def _open_tunnel(wire: _Wire, target: _Target, proxy: str) -> None:
    place = f"[{target.host}]:{target.port}" if ":" in target.host else f"{target.host}:{target.port}"
    fields = {"Host": place, **_proxy_headers(proxy)}
    lines = [f"CONNECT {place} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    wire.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
    reply = http.client.HTTPResponse(wire, method="CONNECT")  # type: ignore[arg-type]
    try:
        reply.begin()
    except http.client.HTTPException as error:
        raise ConnectFailed(f"the proxy sent no reply of HTTP ({error})") from error
    if reply.status != 200:
        raise ConnectFailed(f"the proxy refused it ({reply.status} {reply.reason})")


@lru_cache(maxsize=1)
def _secure_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not (paths.cafile or paths.capath):
        try:
            import certifi
        except ImportError:  # the system alone knows certificates
            return context
        context.load_verify_locations(certifi.where())
    return context


def _too_large(limit: int) -> RemoteError:
    size = f"{limit / _MIB:.1f} MiB" if limit >= _MIB else f"{limit:,} bytes"
    return RemoteError(f"it is larger than {size}")


def _unpack(data: bytes, encoding: str, limit: int) -> bytes:
    """Return a body that was packed although that was not asked for. Raises RemoteError."""
    kind = encoding.strip().lower()
    if kind in {"", "identity"} or not data:
        return data
    # Of "deflate" some servers send the raw stream, without the header of zlib.
    windows = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}.get(kind, ())
    for window in windows:
        unpacker = zlib.decompressobj(window)
        try:
            unpacked = unpacker.decompress(data, limit + 1)
        except zlib.error:
            continue
        if len(unpacked) > limit:
            raise _too_large(limit)
        if unpacker.eof:
            return unpacked
    raise RemoteError(f"its {kind} packing is {'damaged' if windows else 'unknown, and was not asked for'}")


@dataclass(slots=True)
class Service:
    """A service at the address that a person named, which may be busy. Threads may share it.

    ``timeout`` is in seconds for one request. One that fails for a reason that may pass is sent up to ``tries``
    times: again after as many seconds as the service asks for (``Retry-After``), unless these are more than
    ``longest_wait``, and after ``pause``, twice as many, and so on. ``away``, ``slow`` and ``busy`` are hints at what
    a person may do about a service that is so. The service is called by its ``name``, or its address.
    """

    url: str
    timeout: float
    tries: int = 4
    longest_wait: float = 60.0
    pause: float = 1.0
    away: str = ""
    slow: str = "Ask again later"
    busy: str = "Ask again later"
    name: str = ""
    sleep: Callable[[float], None] = time.sleep
    client: HttpClient = field(default_factory=lambda: HttpClient(is_named=True))

    def ask(
        self,
        data: bytes | None,
        explain: Callable[[Reply], RemoteError | None],
        *,
        query: str = "",
        headers: Mapping[str, str] = {},
        before: Callable[[], None] = lambda: None,
    ) -> Reply:
        """Return the reply to ``data``, or to a ``query`` that goes into the address.

        ``explain`` returns the error that any other reply than 200 means, None for one that may pass. ``before`` is
        called before each request. Raises RemoteError.
        """
        address = f"{self.url}{query}"
        problem, hint = "", ""
        for attempt in range(self.tries):
            if attempt:
                self.sleep(self.pause * 2 ** (attempt - 1))
            before()
            name = self.name or self.url
            try:
                deadline = time.monotonic() + self.timeout
                reply = self.client.request(address, data, headers, deadline=deadline)
            except TimeoutError:
                problem, hint = f"{name} did not answer within {self.timeout:g} seconds", self.slow
                continue
            except RemoteError as error:
                raise RemoteError(f"{name} cannot be used: {error.problem}", error.hint) from error
            except OSError as error:
                problem, hint = f"{name} cannot be reached ({error})", self.away
                if isinstance(error.__cause__, ConnectionRefusedError | socket.gaierror):
                    # No server or no network: that does not pass in a few seconds, and a person is waiting.
                    raise RemoteError(problem, hint) from error
                continue
            if reply.status == 200:
                return reply
            if (refusal := explain(reply)) is not None:
                raise refusal
            problem, hint = f"{name} is busy (HTTP {reply.status})", self.busy
            wait = read_count(reply.headers.get("retry-after", ""))
            if wait is not None and wait > self.longest_wait:
                raise RemoteError(f"{name} is busy and asks to wait {wait} seconds", "Ask again then")
            if wait is not None and attempt + 1 < self.tries:
                self.sleep(wait)
        raise RemoteError(problem, hint)
