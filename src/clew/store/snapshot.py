"""Snapshots: immutable views of a store, the truth by id and row, the segments as arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Mask, Rows
from clew.core.errors import NotFound, UsageError
from clew.core.protocols import Postings, PropertyGraph, VectorIndex
from clew.core.text import read_count
from clew.core.types import KINDS, RETRIEVED_KINDS, Document, Node, Scope
from clew.store.database import Database
from clew.store.documents import (
    DocumentEntry,
    NodeReader,
    open_records,
    read_derived,
    write_derived,
)
from clew.store.graphs.tables import unknown_graph_error
from clew.store.segments import FIELDS, Segment, SegmentedPostings
from clew.store.vectors import StoredVectors, VectorFiles, vectors_folder

if TYPE_CHECKING:
    from clew.store.graphs.graph_store import GraphStore


COLUMNS = ("document", "parent", "page", "kind")


class ViewCache:
    """Values by key, each computed once. Threads that ask for a value while another computes it wait for it."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._locks: dict[str, threading.RLock] = {}

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the value of ``key``, computed by ``make()``, which may ask for other values."""
        if key not in self._values:
            # One lock for each key: computing a value may need others, which must not wait for it.
            with self._locks.setdefault(key, threading.RLock()):
                if key not in self._values:
                    self._values[key] = make()
        return self._values[key]


class StoreSnapshot:
    """A :class:`clew.core.protocols.Snapshot` of a base on disk.

    It shows the documents that were both stored and indexed when it was made. Its arrays never change; the text of a
    node is read when it is needed, which raises NotFound if it was removed meanwhile.
    """

    def __init__(
        self,
        database: Database,
        derived: Path,
        generation: int,
        entries: Sequence[DocumentEntry],
        segments: Sequence[Segment],
        graphs: GraphStore,
    ) -> None:
        indexed = {pair for segment in segments for pair in segment.stamped_rows}
        self._database = database
        self._derived = derived
        self._segments = segments
        self._entries = [entry for entry in entries if (entry.first, entry.stamp) in indexed]
        self._first_rows = np.array([entry.first for entry in self._entries], dtype=np.int64)
        self._by_key = {entry.document.key: entry for entry in self._entries}
        self._documents = [self._by_key[key].document for key in sorted(self._by_key)]
        self.generation = generation
        self.pending = len(entries) - len(self._entries)
        self.size = max((entry.end for entry in self._entries), default=0)
        self._graph_store = graphs
        self._graphs_by_name = graphs.graphs_by_name()
        self._views, self._document_views = ViewCache(), ViewCache()
        self._live = np.zeros(self.size, dtype=np.bool_)
        for entry in self._entries:
            self._live[entry.first : entry.end] = True

    def documents(self) -> list[Document]:
        """Return every document, sorted by key."""
        return list(self._documents)

    def document_rows(self, key: str) -> tuple[int, int]:
        """Return the half-open range of rows of a document, its own row first. Raises NotFound."""
        entry = self._entry(key)
        return entry.first, entry.end

    def rows(self, ids: Sequence[str]) -> Rows:
        """Return the row of each node id. Raises NotFound."""
        return np.array([self._row(id) for id in ids], dtype=np.int64)

    def ids(self, rows: Rows) -> list[str]:
        """Return the node id of each row."""
        return [
            f"{owner.document.key}:{row - owner.first}"
            for row, owner in zip(np.asarray(rows).tolist(), self._owners(rows), strict=True)
        ]

    def nodes(self, rows: Rows) -> list[Node]:
        """Return the nodes of ``rows``, in that order. Raises NotFound for one that was removed meanwhile."""
        rows = np.asarray(rows, dtype=np.int64)
        if not len(rows):
            return []
        with self._database.read_transaction() as connection:
            return NodeReader(open_records(self._database, connection)).nodes(
                rows.tolist(), self._owners(rows)
            )

    def prefetch_nodes(self, rows: Rows) -> None:
        """Do nothing: the nodes are on this machine."""

    def document_text(self, document: str) -> str:
        """Return a document's canonical text. Raises NotFound."""
        entry = self._entry(document)
        with self._database.read_transaction() as connection:
            return open_records(self._database, connection).text(entry.first)

    def document_openings(self, documents: Sequence[str], length: int) -> list[str]:
        """Return the first ``length`` characters of each document's canonical text; "" for one that is gone."""
        first_rows = [self._entry(document).first for document in documents]
        with self._database.read_transaction() as connection:
            openings = open_records(self._database, connection).openings(first_rows, length)
        return [openings.get(first, "") for first in first_rows]

    def mask(self, scope: Scope, kinds: Sequence[str] | None = None) -> Mask:
        """Return which rows are live, in ``scope`` and of one of ``kinds``."""
        allowed = scope.kinds if kinds is None else frozenset(kinds)
        if kinds is not None and scope.kinds is not None:
            allowed = scope.kinds & frozenset(kinds)
        mask = self._live if allowed is None else self._kind_mask(allowed)
        if scope.documents is None:
            return mask.copy()
        in_documents = np.zeros(self.size, dtype=np.bool_)
        for key in scope.documents:
            if entry := self._by_key.get(key):
                in_documents[entry.first : entry.end] = True
        return in_documents & mask

    def _kind_mask(self, kinds: frozenset[str]) -> Mask:
        def make() -> Mask:
            codes = [KINDS.index(kind) for kind in kinds if kind in KINDS]
            return self._live & np.isin(self.column("kind"), codes)

        mask: Mask = self.memoize(f"mask/{','.join(sorted(kinds))}", make, documents_only=True)
        return mask

    def column(self, name: str) -> NDArray[np.int64]:
        """Return one number per row: ``document``, ``parent``, ``page`` or ``kind``; -1 where there is none."""
        if name not in COLUMNS:
            raise UsageError(f"no column named '{name}'", f"Known: {', '.join(COLUMNS)}")
        column: NDArray[np.int64] = self.memoize(
            f"column/{name}", lambda: self._column(name), documents_only=True
        )
        return column

    def _column(self, name: str) -> NDArray[np.int64]:
        column = np.full(self.size, -1, dtype=np.int64)
        for segment in self._segments:
            rows = segment.rows
            first = np.repeat(segment.documents[:, 0], segment.documents[:, 1])
            in_range = rows < self.size
            if name == "document":
                values = first
            elif name == "parent":
                values = np.where(segment.parent >= 0, segment.parent + first, -1)
            else:
                values = (segment.page if name == "page" else segment.kind).astype(np.int64)
            column[rows[in_range]] = values[in_range]
        column[~self._live] = -1
        return column

    def postings(self, field: str) -> Postings:
        """Return the postings of ``text``, ``title`` or ``mention``."""
        if field not in FIELDS:
            raise UsageError(f"no field named '{field}'", f"Known: {', '.join(FIELDS)}")

        def make() -> SegmentedPostings:
            live = self._live
            end = max(
                (int(segment.documents[:, :2].sum(axis=1).max()) for segment in self._segments), default=0
            )
            if end > len(live):
                live = np.concatenate([live, np.zeros(end - len(live), dtype=np.bool_)])
            return self._open_postings(field, live)

        postings: Postings = self.memoize(f"postings/{field}", make, documents_only=True)
        return postings

    def _open_postings(self, field: str, live: Mask) -> SegmentedPostings:
        # A snapshot of a base in object storage opens postings that are fetched in ranges.
        return SegmentedPostings([segment.fields[field] for segment in self._segments], live)

    def vectors(self, encoder: str, dimension: int = 0) -> VectorIndex:
        """Return the vectors of the encoder named ``encoder``.

        Where there are none yet, return an empty index with that ``dimension``, or raise NotFound without one.
        """
        expected = self._kind_mask(frozenset(RETRIEVED_KINDS))

        def make() -> StoredVectors:
            files = VectorFiles(vectors_folder(self._derived, encoder))
            slots, rows, binary_index = files.open_for_search()
            if not slots.shape[1]:
                raise NotFound(f"no vectors of '{encoder}' in this base", "Make them: clew encoder encode")
            return StoredVectors(slots, rows, self._live, expected, binary_index)

        try:
            index: VectorIndex = self.memoize(f"vectors/{encoder}", make)
        except NotFound:
            if not dimension:
                raise
            no_slots = np.empty((0, dimension), dtype=np.float32)
            return StoredVectors(no_slots, np.empty(0, dtype=np.int64), self._live, expected)
        return index

    def read_derived(self, maker: str, document: str) -> Mapping[str, bytes]:
        """Return the values that ``maker`` stored for parts of a document, by part; also those stored meanwhile."""
        entry = self._entry(document)
        with self._database.read_transaction() as connection:
            return read_derived(connection, entry.first, maker)

    def write_derived(self, maker: str, document: str, values: Mapping[str, bytes]) -> bool:
        """Store derived values in one transaction; return False where the document is gone. Raises StoreError."""
        entry = self._entry(document)
        with self._database.write_transaction(truth=False) as connection:
            return write_derived(connection, entry.first, entry.stamp, maker, values)

    def graphs(self) -> list[str]:
        """Return the names of the imported and mounted graphs, sorted."""
        return sorted(self._graphs_by_name)

    def graph(self, name: str) -> PropertyGraph:
        """Return a graph by its name. Raises UsageError where there is none."""
        if name not in self._graphs_by_name:
            raise unknown_graph_error(name, self._graphs_by_name)
        graph: PropertyGraph = self.memoize(
            f"property graph/{name}", lambda: self._graph_store.open(self._graphs_by_name[name])
        )
        return graph

    def memoize(self, key: str, make: Callable[[], Any], *, documents_only: bool = False) -> Any:
        """Return ``make()``, computed once for this view, or for all views of its documents."""
        return (self._document_views if documents_only else self._views).get(key, make)

    def reuse_views(self, previous: StoreSnapshot) -> None:
        """Take over the values that an earlier view computed of its documents, if this view has the same documents.

        It has where vectors were made, a graph was added, or a document that is not indexed yet.
        """
        if self._entries == previous._entries:
            self._document_views = previous._document_views

    def _entry(self, key: str) -> DocumentEntry:
        if key not in self._by_key:
            raise NotFound(f"no document with the key '{key}'", "See: clew list")
        return self._by_key[key]

    def _row(self, id: str) -> int:
        key, _, position = id.rpartition(":")
        entry = self._by_key.get(key)
        place = read_count(position)
        if entry is None or place is None or entry.first + place >= entry.end:
            raise NotFound(f"no node '{id}'", "Ids are those that search --json prints; see also: clew list")
        return entry.first + place

    def _owners(self, rows: Rows) -> list[DocumentEntry]:
        places = np.searchsorted(self._first_rows, np.asarray(rows, dtype=np.int64), side="right") - 1
        return [self._entries[place] for place in places.tolist()]
