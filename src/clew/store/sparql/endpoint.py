"""The sources that answer SPARQL: an endpoint on the web, or the folder of an Oxigraph store on this machine.

An endpoint is asked by POST and answers as JSON (SPARQL 1.1 Protocol and Query Results JSON). A folder is opened
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
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from clew.core.errors import MissingExtra, RemoteError, UsageError
from clew.core.text import read_count
from clew.store.sparql.mount_options import Term

_UNREACHABLE_HINT = "Does it run? Is the URL right?"
_IRI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_HEADERS = {"Accept": "application/sparql-results+json", "User-Agent": "clew (graph mount)"}
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
        with self._turns:
            problem, hint = "", ""
            for attempt in range(self.tries):
                if attempt:
                    self.sleep(2.0 ** (attempt - 1))
                answer, problem, hint = self._send_once(query)
                if not problem:
                    return answer
        raise RemoteError(problem, hint)

    def _send_once(self, query: str) -> tuple[Any, str, str]:
        """Return the answer, or a temporary problem and a hint. Raises RemoteError for a lasting problem."""
        self.sleep(max(0.0, self._last + self.interval - time.monotonic()))
        self._last = time.monotonic()
        try:
            request = Request(self.url, urlencode({"query": query}).encode(), _HEADERS)
            with urlopen(request, timeout=self.timeout) as response:
                content, row_limit = response.read(), response.headers.get("X-SPARQL-MaxRows")
        except HTTPError as error:
            with error:
                return None, *self._read_refusal(error)
        except (TimeoutError, URLError) as error:
            if isinstance(error, TimeoutError) or isinstance(error.reason, TimeoutError):
                problem = f"{self.url} did not answer within {self.timeout:g} seconds"
                return None, problem, "Mount it with a longer --timeout"
            problem = f"{self.url} cannot be reached ({error.reason})"
            if isinstance(error.reason, ConnectionRefusedError):
                # Nothing listens there: that does not change in a few seconds, and a person is waiting.
                raise RemoteError(problem, _UNREACHABLE_HINT) from error
            return None, problem, _UNREACHABLE_HINT
        except (OSError, HTTPException, ValueError) as error:
            return None, f"{self.url} cannot be reached ({error})", _UNREACHABLE_HINT
        if row_limit:
            raise RemoteError(
                f"{self.url} cut its answer at {row_limit} rows", "The rest would be missing silently"
            )
        try:
            return json.loads(content), "", ""
        except ValueError:
            raise RemoteError(
                f"{self.url} answered with something other than JSON", "Is this the URL of a SPARQL endpoint?"
            ) from None

    def _read_refusal(self, error: HTTPError) -> tuple[str, str]:
        """Wait as long as the endpoint asks; return the temporary problem and a hint, or raise RemoteError."""
        if error.code not in _BUSY:
            message = " ".join(error.read(1000).decode("utf-8", "replace").split())[:200]
            raise RemoteError(
                f"{self.url} refused the query (HTTP {error.code}: {message})",
                "Is this the URL of a SPARQL endpoint?",
            ) from error
        seconds = read_count(error.headers.get("Retry-After", ""))
        if seconds is not None:
            if seconds > self.max_wait:
                raise RemoteError(
                    f"{self.url} is busy and asks to wait {seconds} seconds", "Try again then"
                ) from error
            self.sleep(seconds)
        problem = f"{self.url} is busy (HTTP {error.code})"
        return problem, "Try again later, or mount it with an --interval between queries"


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
