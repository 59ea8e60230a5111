"""Fetches one page of the web, as ``clew add https://...`` does: no crawling, within limits, and only where its site
allows it.

An address of this machine or of a private network is refused (:mod:`clew.core.http_client`), for the page itself, its
robots.txt (RFC 9309) and each redirection.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import PurePath
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

from clew.core.errors import RemoteError, UnreadableFile
from clew.core.http_client import HttpClient
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.formats import document_formats, format_of_suffix
from clew.parse.documents.limits import MIB

AGENT = "clew"
#: The largest page, and the longest time for it with its redirections and its robots.txt.
MAX_BYTES, MAX_SECONDS = 50 * MIB, 30.0
#: RFC 9309 asks for at least 500 KiB of robots.txt; the rest is not read.
_ROBOTS_BYTES = 500 * 1024
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


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
        client = HttpClient(allow_private=self.allow_private, max_bytes=self.max_bytes)
        deadline = time.monotonic() + self.max_seconds
        try:
            reply = client.request(
                address, deadline=deadline, check=lambda place: self._check_robots(client, place, deadline)
            )
        except TimeoutError as error:
            raise UnreadableFile(f"it took longer than {self.max_seconds:g} seconds") from error
        except RemoteError as error:
            raise UnreadableFile(error.problem, error.hint) from error
        except OSError as error:
            raise UnreadableFile(f"{urlsplit(address).hostname} cannot be read: {error}") from error
        finally:
            client.close()
        if reply.status != 200:
            raise UnreadableFile(
                f"the server answered {reply.status} {_PHRASES.get(reply.status, '')}".rstrip()
            )
        return WebPage(
            address, _file_name(reply.address, reply.headers), _as_stated(reply.data, reply.headers)
        )

    def _check_robots(self, client: HttpClient, address: str, deadline: float) -> None:
        parts = urlsplit(address)
        site = f"{parts.scheme}://{parts.netloc}"
        if site not in self._robots:
            self._robots[site] = self._read_robots(client, site, deadline)
        if not self._robots[site].can_fetch(AGENT, address):
            raise UnreadableFile(
                "its site does not allow programs to read it (robots.txt)", "Save it, and add the file"
            )

    def _read_robots(self, client: HttpClient, site: str, deadline: float) -> RobotFileParser:
        place = f"{site}/robots.txt"
        rules = RobotFileParser(place)
        reply = replace(client, max_bytes=_ROBOTS_BYTES).request(place, deadline=deadline, cut=True)
        if 400 <= reply.status < 500:
            rules.allow_all = True  # type: ignore[attr-defined]
        elif reply.status != 200:
            raise UnreadableFile(
                f"whether it may be read is not known: robots.txt of its site answered {reply.status}"
            )
        else:
            rules.parse(reply.data.decode("utf-8", "replace").splitlines())
        return rules


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
