"""The sources that answer SPARQL: an endpoint on the web, or the folder of an Oxigraph store on this machine.

An endpoint is asked by POST and answers as JSON (SPARQL 1.1 Protocol and Query Results JSON), within the limits of
:mod:`clew.core.http_client`. A folder is opened
read-only in this process, which needs the extra ``rdf`` (pyoxigraph). Nothing is copied and nothing written; several
processes may have the folder open like this at once. Nobody may load more into the store while it is open here:
RocksDB, on which it is built, then promises nothing.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from clew.core.errors import MissingExtra, RemoteError, UsageError
from clew.core.http_client import HttpClient, Reply, Service
from clew.store.sparql.mount_options import Term

_IRI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_HEADERS = {
    "Accept": "application/sparql-results+json",
    "Content-Type": "application/x-www-form-urlencoded",
    "User-Agent": "clew (graph mount)",
}
#: HTTP status codes of a busy endpoint, which may answer the same query later.
_BUSY = frozenset({429, 502, 503, 504})


def is_iri(text: str) -> bool:
    """Return whether a text is an IRI, so that it can stand between angle brackets."""
    return _IRI.fullmatch(text) is not None


def format_literal(text: str, language: str = "") -> str:
    """Return a text as a SPARQL literal."""
    quoted = "".join(_ESCAPES.get(character, character) for character in text)
    return f'"{quoted}"@{language}' if language else f'"{quoted}"'


def format_values(name: str, terms: Iterable[str]) -> str:
    """Return ``VALUES ?name { ... }``."""
    return f"VALUES ?{name} {{ {' '.join(terms)} }}"


@dataclass(slots=True)
class Endpoint:
    """A SPARQL endpoint. ``timeout`` is in seconds, ``interval`` the seconds between two queries.

    A busy endpoint is asked up to ``tries`` times: again when it says (``Retry-After``), unless that is more than
    ``max_wait`` seconds away, else after one, two, four seconds. Threads may share it: their queries take turns.
    """

    url: str
    timeout: float = 60.0
    interval: float = 0.0
    tries: int = 4
    max_wait: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    _last: float = field(default=-1e9, init=False)
    _client: HttpClient = field(default_factory=lambda: HttpClient(is_named=True), init=False)
    _turns: threading.Lock = field(default_factory=threading.Lock, init=False)

    def select(self, query: str) -> list[dict[str, Term]]:
        """Return the solutions of a SELECT query. Raises RemoteError."""
        content = self.query(query)
        try:
            return [dict(solution) for solution in content["results"]["bindings"]]
        except (KeyError, TypeError, ValueError) as error:
            raise RemoteError(
                f"{self.url} answered with something other than SPARQL results",
                "Is this the URL of a SPARQL endpoint?",
            ) from error

    def query(self, query: str) -> Any:
        """Return the JSON document with which a SELECT or ASK query is answered. Raises RemoteError."""
        service = Service(
            self.url,
            self.timeout,
            self.tries,
            self.max_wait,
            away="Does it run? Is the URL right?",
            slow="Mount it with a longer --timeout",
            busy="Try again later, or mount it with an --interval between queries",
            sleep=self.sleep,
            client=self._client,
        )
        with self._turns:
            data = urlencode({"query": query}).encode()
            reply = service.ask(data, self._explain_refusal, headers=_HEADERS, before=self._wait)
        if row_limit := reply.headers.get("x-sparql-maxrows"):
            raise RemoteError(
                f"{self.url} cut its answer at {row_limit} rows", "The rest would be missing silently"
            )
        try:
            return json.loads(reply.data)
        except (ValueError, RecursionError):
            raise RemoteError(
                f"{self.url} answered with something other than JSON", "Is this the URL of a SPARQL endpoint?"
            ) from None

    def _wait(self) -> None:
        self.sleep(max(0.0, self._last + self.interval - time.monotonic()))
        self._last = time.monotonic()

    def _explain_refusal(self, reply: Reply) -> RemoteError | None:
        if reply.status in _BUSY:
            return None
        message = " ".join(reply.data.decode("utf-8", "replace").split())[:200]
        return RemoteError(
            f"{self.url} refused the query (HTTP {reply.status}: {message})",
            "Is this the URL of a SPARQL endpoint?",
        )


#: The file by which a folder of RocksDB is recognised: it names the newest list of its files.
_ROCKSDB_FILE = "CURRENT"


class OxigraphStore:
    """The folder of an Oxigraph store, opened at the first query."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store: Any = None

    def select(self, query: str) -> list[dict[str, Term]]:
        """Return the solutions of a SELECT query, in the form that endpoints send.

        Raises RemoteError, UsageError for a folder that is not a store, and MissingExtra.
        """
        store = self.open_store()
        try:
            import pyoxigraph

            results = store.query(query).serialize(format=pyoxigraph.QueryResultsFormat.JSON)
        except (SyntaxError, ValueError) as error:
            raise RemoteError(f"{self.folder} refused the query ({error})") from error
        except (OSError, RuntimeError) as error:
            raise RemoteError(
                f"{self.folder} cannot be read ({error})", "Was it changed meanwhile?"
            ) from error
        return list(json.loads(results)["results"]["bindings"])

    def open_store(self) -> Any:
        """Return the store of pyoxigraph. Raises UsageError for a folder that is not a store, and MissingExtra."""
        try:
            import pyoxigraph
        except ImportError as error:
            raise MissingExtra("pyoxigraph, which reads RDF stores,", "rdf") from error
        if self._store is None:
            if not (self.folder / _ROCKSDB_FILE).is_file():
                raise not_a_store_error(self.folder)
            try:
                self._store = pyoxigraph.Store.read_only(str(self.folder))
            except (OSError, ValueError, RuntimeError) as error:
                raise UsageError(
                    f"the RDF store at {self.folder} cannot be opened ({error})",
                    "It must have been made by Oxigraph: oxigraph load --location FOLDER --file FILE",
                ) from error
        return self._store


def not_a_store_error(place: Path) -> UsageError:
    """Return the error for a place that is neither an endpoint nor a store."""
    if place.is_file():
        return UsageError(f"'{place}' is a file", f"To read it into the base: clew graph add {place}")
    problem = "no folder" if not place.exists() else "not the folder of an Oxigraph store"
    return UsageError(
        f"'{place}' is {problem}",
        "A graph is mounted from a SPARQL endpoint, such as http://localhost:7878/query, or from a store's folder",
    )
