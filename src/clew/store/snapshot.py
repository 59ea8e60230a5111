"""Values that are made when they are first asked for, and then kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import run_offsets
from clew.core.errors import NotFound, UsageError
from clew.core.types import KINDS, RETRIEVED_KINDS, Document, Node, Scope
from clew.store.database import Database
from clew.store.documents import DocumentEntry, NodeReader, read_derived, read_text, write_derived
from clew.store.graphs.tables import unknown_graph_error
from clew.store.postings import SegmentedPostings
from clew.store.segments import FIELDS, Segment
from clew.store.vectors import StoredVectors, VectorFiles, vectors_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Mask, Rows
    from clew.core.protocols import Postings, PropertyGraph, VectorIndex
    from clew.store.graphs.graph_store import GraphStore


class ViewCache:
    """Values by key, each made once, though several threads ask for it at once: the others wait for the one."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._turns: dict[str, threading.RLock] = {}

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the value of ``key``, made by ``make()``, which may ask for other values."""
        if key not in self._made:
            # A lock for each: who makes one may need others, which must not wait for it.
            with self._turns.setdefault(key, threading.RLock()):
                if key not in self._made:
                    self._made[key] = make()
        return self._made[key]


COLUMNS = ("document", "parent", "page", "kind")


class StoreSnapshot:
    """:class:`clew.core.protocols.Snapshot` of a base on disk.

    It holds the documents that were both in the truth and indexed when it was made. Arrays stay as they were;
    the text of a node is read when it is asked for, and NotFound says so where it is gone by then.
    """

    def __init__(
        self,
        database: Database,
        derived: Path,
        generation: int,
        truth: Sequence[DocumentEntry],
        segments: Sequence[Segment],
        graphs: GraphStore,
    ) -> None:
        indexed = {(int(d[0]), int(d[2])) for one in segments for d in one.documents}
        self._database = database
        self._derived = derived
        self._segments = segments
        self._entries = [one for one in truth if (one.first, one.stamp) in indexed]
        self._first = np.array([one.first for one in self._entries], dtype=np.int64)
        self._by_key = {one.document.key: one for one in self._entries}
        self.generation = generation
        self.pending = len(truth) - len(self._entries)
        self.size = max((one.end for one in self._entries), default=0)
        self._graphs = graphs
        self._known_graphs = graphs.graphs_by_name()
        self._views, self._document_views = ViewCache(), ViewCache()
        self._live = np.zeros(self.size, dtype=np.bool_)
        for one in self._entries:
            self._live[one.first : one.end] = True

    def documents(self) -> list[Document]:
        """Return every document, sorted by key."""
        return [self._by_key[key].document for key in sorted(self._by_key)]

    def document_rows(self, key: str) -> tuple[int, int]:
        """Return the half-open range of rows of a document, itself first. Raises NotFound."""
        one = self._entry(key)
        return one.first, one.end

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
        """Return the nodes of ``rows``, in that order. Raises NotFound for one that was removed since."""
        rows = np.asarray(rows, dtype=np.int64)
        if not len(rows):
            return []
        with self._database.read_transaction() as connection:
            return NodeReader(connection).nodes(rows.tolist(), self._owners(rows))

    def document_text(self, document: str) -> str:
        """Return a document's canonical text. Raises NotFound."""
        one = self._entry(document)
        with self._database.read_transaction() as connection:
            return read_text(connection, one.first)

    def mask(self, scope: Scope, kinds: Sequence[str] | None = None) -> Mask:
        """Return which rows are live, in ``scope`` and of one of ``kinds``."""
        wanted = scope.kinds if kinds is None else frozenset(kinds)
        if kinds is not None and scope.kinds is not None:
            wanted = scope.kinds & frozenset(kinds)
        found = self._live if wanted is None else self._kinds(wanted)
        if scope.documents is None:
            return found.copy()
        inside = np.zeros(self.size, dtype=np.bool_)
        for key in scope.documents:
            if one := self._by_key.get(key):
                inside[one.first : one.end] = True
        return inside & found

    def _kinds(self, kinds: frozenset[str]) -> Mask:
        def make() -> Mask:
            codes = [KINDS.index(kind) for kind in kinds if kind in KINDS]
            return self._live & np.isin(self.column("kind"), codes)

        found: Mask = self.memoize(f"mask/{','.join(sorted(kinds))}", make, documents_only=True)
        return found

    def column(self, name: str) -> NDArray[np.int64]:
        """Return one number per row: ``document``, ``parent``, ``page`` or ``kind``; -1 where there is none."""
        if name not in COLUMNS:
            raise UsageError(f"no column named '{name}'", f"Known: {', '.join(COLUMNS)}")
        found: NDArray[np.int64] = self.memoize(
            f"column/{name}", lambda: self._column(name), documents_only=True
        )
        return found

    def _column(self, name: str) -> NDArray[np.int64]:
        found = np.full(self.size, -1, dtype=np.int64)
        for one in self._segments:
            rows = one.rows
            first = np.repeat(one.documents[:, 0], one.documents[:, 1])
            known = rows < self.size
            if name == "document":
                values = first
            elif name == "parent":
                values = np.where(one.parent >= 0, one.parent + first, -1)
            else:
                values = (one.page if name == "page" else one.kind).astype(np.int64)
            found[rows[known]] = values[known]
        found[~self._live] = -1
        return found

    def relations(self) -> Mapping[str, int]:
        """Return the relations of asserted edges, with how many edges each has."""
        with self._database.read_transaction() as connection:
            counted = connection.execute(
                "SELECT relation, count(*) FROM (SELECT DISTINCT relation, source, target FROM edge) "
                "GROUP BY relation"
            )
            return dict(counted.fetchall())

    def neighbours(self, rows: Rows, relation: str, inverse: bool = False) -> tuple[NDArray[np.int64], Rows]:
        """Return the live neighbours of ``rows`` by asserted edges: offsets (n + 1), rows ascending.

        The adjacency of a relation is built when it is first asked for in a generation.
        """
        starts, targets = self.memoize(
            f"adjacency/{relation}/{inverse}", lambda: self._adjacency(relation, inverse)
        )
        rows = np.asarray(rows, dtype=np.int64)
        sizes = starts[rows + 1] - starts[rows]
        offsets = run_offsets(sizes)
        places = np.repeat(starts[rows] - offsets[:-1], sizes) + np.arange(int(sizes.sum()))
        return offsets, targets[places]

    def _adjacency(self, relation: str, inverse: bool) -> tuple[NDArray[np.int64], Rows]:
        with self._database.read_transaction() as connection:
            read = connection.execute(
                "SELECT DISTINCT source, target FROM edge WHERE relation = ?", (relation,)
            )
            pairs = np.array(read.fetchall(), dtype=np.int64).reshape(-1, 2)
        pairs = pairs[(pairs < self.size).all(axis=1)]
        pairs = pairs[self._live[pairs].all(axis=1)]
        if inverse:
            pairs = pairs[:, ::-1]
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
        return run_offsets(np.bincount(pairs[:, 0], minlength=self.size)), np.ascontiguousarray(pairs[:, 1])

    def postings(self, field: str) -> Postings:
        """Return the postings of ``text``, ``title`` or ``mention``."""
        if field not in FIELDS:
            raise UsageError(f"no field named '{field}'", f"Known: {', '.join(FIELDS)}")

        def make() -> SegmentedPostings:
            live = self._live
            ends = max((int(one.documents[:, :2].sum(axis=1).max()) for one in self._segments), default=0)
            if ends > len(live):
                live = np.concatenate([live, np.zeros(ends - len(live), dtype=np.bool_)])
            return SegmentedPostings([one.fields[field] for one in self._segments], live)

        found: Postings = self.memoize(f"postings/{field}", make, documents_only=True)
        return found

    def vectors(self, encoder: str, dimension: int = 0) -> VectorIndex:
        """Return the vectors that the encoder named ``encoder`` made; where there are none yet, a view of none with
        that ``dimension``. Raises NotFound without it."""
        wanted = self._kinds(frozenset(RETRIEVED_KINDS))

        def make() -> StoredVectors:
            store = VectorFiles(vectors_folder(self._derived, encoder))
            if not store.read_manifest():
                raise NotFound(f"no vectors of '{encoder}' in this base", "Make them: clew encoder encode")
            slots, rows, signs = store.open_for_search()
            return StoredVectors(slots, rows, self._live, wanted, signs)

        try:
            found: VectorIndex = self.memoize(f"vectors/{encoder}", make)
        except NotFound:
            if not dimension:
                raise
            none = np.empty((0, dimension), dtype=np.float32)
            return StoredVectors(none, np.empty(0, dtype=np.int64), self._live, wanted)
        return found

    def read_derived(self, maker: str, document: str) -> Mapping[str, bytes]:
        """Return what ``maker`` made of parts of a document, by part; what was made since is there, too."""
        one = self._entry(document)
        with self._database.read_transaction() as connection:
            return read_derived(connection, one.first, maker)

    def write_derived(self, maker: str, document: str, made: Mapping[str, bytes]) -> bool:
        """Keep what ``maker`` made, in one transaction; False where the document is gone. Raises StoreError."""
        one = self._entry(document)
        with self._database.write_transaction(truth=False) as connection:
            return write_derived(connection, one.first, one.stamp, maker, made)

    def graphs(self) -> list[str]:
        """Return the names of the imported and mounted graphs, sorted."""
        return sorted(self._known_graphs)

    def graph(self, name: str) -> PropertyGraph:
        """Return a graph by its name. Raises UsageError where there is none."""
        if name not in self._known_graphs:
            raise unknown_graph_error(name, self._known_graphs)
        found: PropertyGraph = self.memoize(
            f"property graph/{name}", lambda: self._graphs.open(self._known_graphs[name])
        )
        return found

    def memoize(self, key: str, make: Callable[[], Any], *, documents_only: bool = False) -> Any:
        """Return ``make()``, computed once for this view; ``of_documents``, once for all views of these documents."""
        return (self._document_views if documents_only else self._views).get(key, make)

    def reuse_views(self, before: StoreSnapshot) -> None:
        """Take over what an earlier view remembers of its documents, where this one has the same: vectors were made,
        an edge or a graph was added, or a document that is not indexed yet."""
        if self._entries == before._entries:
            self._document_views = before._document_views

    def _entry(self, key: str) -> DocumentEntry:
        if key not in self._by_key:
            raise NotFound(f"no document with the key '{key}'", "See: clew list")
        return self._by_key[key]

    def _row(self, id: str) -> int:
        key, _, position = id.rpartition(":")
        one = self._by_key.get(key)
        if one is None or not position.isdecimal() or one.first + int(position) >= one.end:
            raise NotFound(f"no node '{id}'", "Ids are those that search --json prints; see also: clew list")
        return one.first + int(position)

    def _owners(self, rows: Rows) -> list[DocumentEntry]:
        places = np.searchsorted(self._first, np.asarray(rows, dtype=np.int64), side="right") - 1
        return [self._entries[place] for place in places.tolist()]


# MERGED: One immutable view of a base: the truth by id and row, the segments by array.
