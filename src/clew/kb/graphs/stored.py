"""A file-backed RDF store on this machine, asked in this process: an Oxigraph folder, opened read-only.

Needs the extra ``rdf`` (pyoxigraph). Nothing is copied and nothing written; several processes may have the folder
open like this at once. Whoever loads more into the store must not do so while it is open here: RocksDB, which it is
made of, then promises nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clew.errors import MissingExtra, RemoteError, UsageError
from clew.kb.graphs.mounting import Term

#: The file by which a folder of RocksDB is known: it names the newest list of its files.
_MARK = "CURRENT"


class OxigraphStore:
    """:class:`clew.kb.graphs.mounting.SparqlSource` of a store's folder; opened when it is first asked."""

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
