"""Questions to a SPARQL 1.1 endpoint: sent by POST, answered as JSON (SPARQL 1.1 Protocol and Query Results JSON)."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from clew.core.errors import MissingExtra, RemoteError, UsageError
from clew.store.sparql.mount_options import Term

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


#: The file by which a folder of RocksDB is known: it names the newest list of its files.
_MARK = "CURRENT"


class OxigraphStore:
    """:class:`clew.store.sparql.mount_options.SparqlSource` of a store's folder; opened when it is first asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store: Any = None

    def select(self, query: str) -> list[dict[str, Term]]:
        """Return the solutions of a SELECT query, in the form that endpoints send. Raises RemoteError, UsageError
        for a folder that is no store, MissingExtra."""
        store, form = self._opened()
        try:
            said = store.query(query).serialize(format=form)
        except (SyntaxError, ValueError) as error:
            raise RemoteError(f"{self.folder} refused the question ({error})") from error
        except (OSError, RuntimeError) as error:
            raise RemoteError(
                f"{self.folder} cannot be read ({error})", "Was it changed meanwhile?"
            ) from error
        return list(json.loads(said)["results"]["bindings"])

    def _opened(self) -> tuple[Any, Any]:
        try:
            import pyoxigraph
        except ImportError as error:
            raise MissingExtra("pyoxigraph, which reads RDF stores,", "rdf") from error
        if self._store is None:
            if not (self.folder / _MARK).is_file():
                raise not_a_store_error(self.folder)
            try:
                self._store = pyoxigraph.Store.read_only(str(self.folder))
            except (OSError, ValueError, RuntimeError) as error:
                raise UsageError(
                    f"the RDF store at {self.folder} cannot be opened ({error})",
                    "It must have been made by Oxigraph: oxigraph load --location FOLDER --file FILE",
                ) from error
        return self._store, pyoxigraph.QueryResultsFormat.JSON


def not_a_store_error(place: Path) -> UsageError:
    """Return the error for what is neither an endpoint nor a store."""
    if place.is_file():
        return UsageError(f"'{place}' is a file", f"To read it into the base: clew graph add {place}")
    what = "no folder" if not place.exists() else "not the folder of an Oxigraph store"
    return UsageError(
        f"'{place}' is {what}",
        "A graph is mounted from a SPARQL endpoint, such as http://localhost:7878/query, or from a store's folder",
    )


# MERGED: A file-backed RDF store on this machine, asked in this process: an Oxigraph folder, opened read-only.
