"""Fetches one page of the web, as ``clew add https://...`` does: no crawling, within limits, and only where its site
allows it.

The name of the host is resolved once, and the connection goes to the address that was checked: an address of this
machine or of a private network is refused, for the page itself, its robots.txt (RFC 9309) and each redirection.
"""

from __future__ import annotations

import codecs
import http.client
import ipaddress
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from urllib.parse import quote, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from clew.core.errors import UnreadableFile
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.formats import document_formats, format_of_suffix
from clew.parse.documents.limits import MIB, format_size

AGENT = "clew"
#: The largest page, the longest time for it with its redirections and its robots.txt, and the most redirections.
MAX_BYTES, MAX_SECONDS, MAX_REDIRECTIONS = 50 * MIB, 30.0, 5
#: RFC 9309 asks for at least 500 KiB of robots.txt; the rest is not read.
_ROBOTS_BYTES = 500 * 1024
_CHUNK = 1 << 16
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})


def is_page_address(text: str) -> bool:
    """Return whether a text is the address of a page rather than a path."""
    return text.lower().startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page that was fetched: the address that was asked for, a file name that fits its type, and its bytes."""

    address: str
    name: str
    data: bytes


@dataclass(slots=True)
class PageFetcher:
    """Fetches pages one by one. ``allow_private`` allows addresses of this machine and of private networks."""

    allow_private: bool = False
    max_bytes: int = MAX_BYTES
    max_seconds: float = MAX_SECONDS
    _robots: dict[str, RobotFileParser] = field(default_factory=dict)

    def fetch(self, address: str) -> WebPage:
        """Return a page. Raises UnreadableFile with the reason where it cannot or must not be fetched."""
        deadline = time.monotonic() + self.max_seconds
        location = address
        for _ in range(MAX_REDIRECTIONS + 1):
            _check_scheme(location)
            self._check_robots(location, deadline)
            status, headers, data = self._get(location, self.max_bytes, deadline)
            if status in _REDIRECTIONS and headers.get("location"):
                location = urljoin(location, headers["location"])
                continue
            if status != 200:
                raise UnreadableFile(
                    f"the server answered {status} {http.client.responses.get(status, '')}".rstrip()
                )
            data = _unpack(data, headers.get("content-encoding", ""), self.max_bytes)
            return WebPage(address, _file_name(location, headers), _as_stated(data, headers))
        raise UnreadableFile(f"it is redirected more than {MAX_REDIRECTIONS} times")

    def _check_robots(self, address: str, deadline: float) -> None:
        parts = urlsplit(address)
        site = f"{parts.scheme}://{parts.netloc}"
        if site not in self._robots:
            self._robots[site] = self._read_robots(site, deadline)
        if not self._robots[site].can_fetch(AGENT, address):
            raise UnreadableFile(
                "its site does not allow programs to read it (robots.txt)", "Save it, and add the file"
            )

    def _read_robots(self, site: str, deadline: float) -> RobotFileParser:
        location = f"{site}/robots.txt"
        rules = RobotFileParser(location)
        for _ in range(MAX_REDIRECTIONS + 1):
            status, headers, data = self._get(location, _ROBOTS_BYTES, deadline, cut=True)
            if status in _REDIRECTIONS and headers.get("location"):
                location = urljoin(location, headers["location"])
                continue
            if 400 <= status < 500:
                rules.allow_all = True  # type: ignore[attr-defined]
                return rules
            if status != 200:
                raise UnreadableFile(
                    f"whether it may be read is not known: robots.txt of its site answered {status}"
                )
            rules.parse(data.decode("utf-8", "replace").splitlines())
            return rules
        raise UnreadableFile(
            "whether it may be read is not known: robots.txt of its site is redirected for ever"
        )

    def _get(
        self, address: str, limit: int, deadline: float, *, cut: bool = False
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers in lower case, and body. A body beyond ``limit`` is refused, or ``cut``."""
        try:
            parts = urlsplit(address)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise UnreadableFile(f"its address makes no sense: {error}") from error
        if not parts.hostname:
            raise UnreadableFile(f"its address makes no sense: {address}")
        if parts.username or parts.password:
            raise UnreadableFile(
                "its address has a user name or password", "The address is stored: give one without"
            )
        try:
            connection = _open(parts.hostname, port, parts.scheme == "https", deadline, self._check_address)
            try:
                target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
                query = f"?{quote(parts.query, safe=_QUERY)}" if parts.query else ""
                connection.request(
                    "GET", target + query, headers={"User-Agent": AGENT, "Accept-Encoding": "identity"}
                )
                reply = connection.getresponse()
                headers = {name.lower(): value for name, value in reply.getheaders()}
                return reply.status, headers, _read_body(connection, reply, limit, deadline, cut)
            finally:
                connection.close()
        except TimeoutError as error:
            raise UnreadableFile(f"it took longer than {self.max_seconds:g} seconds") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise UnreadableFile(f"{parts.hostname} cannot be read: {error}") from error

    def _check_address(self, host: str, address: str) -> None:
        ip = ipaddress.ip_address(address.partition("%")[0])
        ip = getattr(ip, "ipv4_mapped", None) or ip
        if not self.allow_private and (not ip.is_global or ip.is_multicast):
            raise UnreadableFile(
                f"{host} is on this machine or a private network ({address})",
                "If it is meant so: --allow-private",
            )


_QUERY = "/?%:@!$&'()*+,;=~-._[]"


def _check_scheme(address: str) -> None:
    if not is_page_address(address):
        raise UnreadableFile(f"it leads to an address that is not http or https: {address}")


def _unpack(data: bytes, encoding: str, limit: int) -> bytes:
    """Return a body that was packed although that was not asked for. Raises UnreadableFile."""
    kind = encoding.strip().lower()
    if kind not in {"gzip", "x-gzip", "deflate"} or not data:
        return data
    # Of "deflate" some servers send the raw stream, without the header of zlib.
    for window in (31,) if "gzip" in kind else (15, -15):
        unpacker = zlib.decompressobj(window)
        try:
            unpacked = unpacker.decompress(data, limit + 1)
        except zlib.error:
            continue
        if len(unpacked) > limit:
            raise UnreadableFile(f"it is larger than {format_size(limit)}")
        if unpacker.eof:
            return unpacked
    raise UnreadableFile(f"its {kind} packing is damaged")


def _as_stated(data: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a text in UTF-8 where the server states another encoding and it is not UTF-8 already: many servers
    state the same encoding for all files."""
    kind, _, options = headers.get("content-type", "").lower().partition(";")
    stated = next(
        (
            value.strip("\"' ")
            for name, _, value in (o.partition("=") for o in options.split(";"))
            if name.strip() == "charset"
        ),
        "",
    )
    if not stated or not kind.startswith("text/") or data.startswith(_BOMS):
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return codecs.BOM_UTF8 + decode_text(data, stated)[0].encode(errors="replace")
    return data


_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _open(
    host: str, port: int, is_secure: bool, deadline: float, check: Callable[[str, str], None]
) -> http.client.HTTPConnection:
    """Return a connection to the first address of a host that ``check(host, address)`` accepts."""
    resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for *_, place in resolved:
        check(host, str(place[0]))
    remaining = max(deadline - time.monotonic(), 0.01)
    opened = socket.create_connection((str(resolved[0][4][0]), port), timeout=remaining)
    connection = http.client.HTTPConnection(host, port, timeout=remaining)
    if is_secure:
        opened = ssl.create_default_context().wrap_socket(opened, server_hostname=host)
    connection.sock = opened
    return connection


def _read_body(
    connection: http.client.HTTPConnection,
    reply: http.client.HTTPResponse,
    limit: int,
    deadline: float,
    cut: bool,
) -> bytes:
    data = bytearray()
    while len(data) <= limit:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        if connection.sock is not None:
            connection.sock.settimeout(remaining)
        chunk = reply.read1(_CHUNK)
        if not chunk:
            return bytes(data)
        data += chunk
    if cut:
        return bytes(data[:limit])
    raise UnreadableFile(f"it is larger than {format_size(limit)}")


def _file_name(address: str, headers: Mapping[str, str]) -> str:
    """Return the last part of an address, with a suffix that fits the type that the server states."""
    name = PurePath(urlsplit(address).path).name or "page"
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    promised = format_of_suffix(PurePath(name).suffix)
    if promised is not None and (promised.media_type == kind or (promised.is_text and kind == "text/plain")):
        return name
    if kind.endswith(("/xml", "+xml")) and "xhtml" not in kind:  # a feed, a map of a site
        return f"{name}.xml"
    suffix = next((form.suffixes[0] for form in document_formats() if form.media_type == kind), "")
    return name + suffix
