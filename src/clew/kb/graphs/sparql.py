"""Questions to a SPARQL 1.1 endpoint: sent by POST, answered as JSON (SPARQL 1.1 Protocol and Query Results JSON)."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from clew.errors import RemoteError
from clew.kb.graphs.mounting import Term

_IRI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_HEADERS = {"Accept": "application/sparql-results+json", "User-Agent": "clew (graph mount)"}
#: Answers of a busy endpoint, which may answer the same question later.
_BUSY = frozenset({429, 502, 503, 504})


def is_iri(text: str) -> bool:
    """Return whether a text can stand between angle brackets."""
    return _IRI.fullmatch(text) is not None


def format_literal(text: str, language: str = "") -> str:
    """Return a text as SPARQL writes it."""
    quoted = "".join(_ESCAPES.get(one, one) for one in text)
    return f'"{quoted}"@{language}' if language else f'"{quoted}"'


def format_values(name: str, terms: Iterable[str]) -> str:
    """Return ``VALUES ?name { ... }``."""
    return f"VALUES ?{name} {{ {' '.join(terms)} }}"


@dataclass(slots=True)
class Endpoint:
    """One endpoint. ``timeout`` and ``interval`` are seconds: of waiting for an answer, and between two questions.

    A busy endpoint is asked again, up to ``tries`` times in all: when it says (``Retry-After``), unless that is later
    than ``longest`` seconds, else after one, two, four seconds. Threads may share it: questions take turns.
    """

    url: str
    timeout: float = 60.0
    interval: float = 0.0
    tries: int = 4
    max_wait: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    _last: float = field(default=-1e9, init=False)
    _turn: threading.Lock = field(default_factory=threading.Lock, init=False)

    def select(self, query: str) -> list[dict[str, Term]]:
        """Return the solutions of a SELECT query. Raises RemoteError."""
        content = self._asked(query)
        try:
            return [dict(one) for one in content["results"]["bindings"]]
        except (KeyError, TypeError, ValueError) as error:
            raise RemoteError(
                f"{self.url} answered with something other than SPARQL results",
                "Is this the URL of a SPARQL endpoint?",
            ) from error

    def _asked(self, query: str) -> Any:
        with self._turn:
            problem, hint = "", ""
            for attempt in range(self.tries):
                if attempt:
                    self.sleep(2.0 ** (attempt - 1))
                done, problem, hint = self._once(query)
                if not problem:
                    return done
        raise RemoteError(problem, hint)

    def _once(self, query: str) -> tuple[Any, str, str]:
        """Return the answer, or a problem that may pass, with a hint. Raises RemoteError for one that will not."""
        self.sleep(max(0.0, self._last + self.interval - time.monotonic()))
        self._last = time.monotonic()
        try:
            request = Request(self.url, urlencode({"query": query}).encode(), _HEADERS)
            with urlopen(request, timeout=self.timeout) as response:
                content, cut = response.read(), response.headers.get("X-SPARQL-MaxRows")
        except HTTPError as error:
            with error:
                return None, *self._refused(error)
        except (TimeoutError, URLError) as error:
            if isinstance(error, TimeoutError) or isinstance(error.reason, TimeoutError):
                late = f"{self.url} did not answer within {self.timeout:g} seconds"
                return None, late, "Mount it with a longer --timeout"
            away = f"{self.url} cannot be reached ({error.reason})", "Does it run? Is the URL right?"
            if isinstance(error.reason, ConnectionRefusedError):
                # Nobody is there: that does not pass in a few seconds, and a person waits.
                raise RemoteError(*away) from error
            return None, *away
        except (OSError, HTTPException, ValueError) as error:
            return None, f"{self.url} cannot be reached ({error})", "Does it run? Is the URL right?"
        if cut:
            raise RemoteError(
                f"{self.url} cut its answer at {cut} rows", "The rest would be missing silently"
            )
        try:
            return json.loads(content), "", ""
        except ValueError:
            raise RemoteError(
                f"{self.url} answered with something other than JSON", "Is this the URL of a SPARQL endpoint?"
            ) from None

    def _refused(self, error: HTTPError) -> tuple[str, str]:
        """Return what is wrong if it may pass, having waited as long as the endpoint asks. Raises RemoteError."""
        if error.code not in _BUSY:
            said = " ".join(error.read(1000).decode("utf-8", "replace").split())[:200]
            raise RemoteError(
                f"{self.url} refused the question (HTTP {error.code}: {said})",
                "Is this the URL of a SPARQL endpoint?",
            ) from error
        asked = error.headers.get("Retry-After", "")
        if asked.isdigit():
            if int(asked) > self.max_wait:
                busy = f"{self.url} is busy and asks to wait {asked} seconds"
                raise RemoteError(busy, "Ask again then") from error
            self.sleep(float(asked))
        busy = f"{self.url} is busy (HTTP {error.code})"
        return busy, "Ask again later, or mount it with an --interval between questions"
