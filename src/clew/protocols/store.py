"""The knowledge base, as those see it who ask it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from clew.protocols.graphs import PropertyGraph
from clew.types import Document, Node, Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from clew.protocols.arrays import Floats, Hashes, Mask, Rows, Vectors


class Postings(Protocol):
    """Which nodes contain which terms, counted. Terms are 64-bit hashes (:func:`clew.text.hash_term`).

    Only live nodes count, so statistics are exactly those of a base to which nothing else was ever added.
    """

    @property
    def node_count(self) -> int:
        """Number of live nodes that this field was made for (N of the formulas)."""
        ...

    @property
    def average_length(self) -> float:
        """Mean number of terms of a live node."""
        ...

    def lengths(self, rows: Rows) -> NDArray[np.int64]:
        """Return the number of terms of each row, 0 for one without postings."""
        ...

    def document_frequency(self, terms: Hashes) -> NDArray[np.int64]:
        """Return the number of live nodes that contain each term."""
        ...

    def rows_with(self, term: int) -> tuple[Rows, NDArray[np.int64]]:
        """Return the live rows that contain ``term``, ascending, and how often each does."""
        ...

    def term_matrix(self, rows: Rows) -> tuple[NDArray[np.int64], Hashes, NDArray[np.int64]]:
        """Return the terms of ``rows`` as a sparse matrix: offsets (n + 1), terms, counts."""
        ...

    def vocabulary(self) -> tuple[Hashes, NDArray[np.int64]]:
        """Return every live term, ascending, and the number of live nodes that contain it."""
        ...


class VectorIndex(Protocol):
    """The vectors of one encoder. Rows without a vector yet are never returned."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def missing_count(self) -> int:
        """Return how many retrieved nodes have no vector yet."""
        ...

    def search(self, queries: Vectors, k: int, allowed: Mask | None = None) -> tuple[Rows, Floats]:
        """Return the ``k`` nearest rows by inner product for each query, (q, k), best first.

        Where fewer than ``k`` exist, rows are -1 and scores -inf. ``allowed`` masks rows of the snapshot.
        """
        ...

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of ``rows``, (n, dimension); zeros for a row without one."""
        ...


class Snapshot(Protocol):
    """One immutable view of a knowledge base: nodes, text postings, vectors."""

    @property
    def generation(self) -> int:
        """Which state of the base this is; grows with every change."""
        ...

    @property
    def pending(self) -> int:
        """Number of documents added but not yet searchable in this view."""
        ...

    @property
    def size(self) -> int:
        """One more than the largest row: the length of masks and columns."""
        ...

    def documents(self) -> Sequence[Document]:
        """Return every document, sorted by key."""
        ...

    def document_rows(self, key: str) -> tuple[int, int]:
        """Return the half-open range of rows of a document, itself first. Raises NotFound."""
        ...

    def rows(self, ids: Sequence[str]) -> Rows:
        """Return the row of each node id. Raises NotFound."""
        ...

    def ids(self, rows: Rows) -> list[str]:
        """Return the node id of each row."""
        ...

    def nodes(self, rows: Rows) -> list[Node]:
        """Return the nodes of ``rows``, in that order."""
        ...

    def document_text(self, document: str) -> str:
        """Return a document's canonical text, which spans refer to."""
        ...

    def mask(self, scope: Scope, kinds: Sequence[str] | None = None) -> Mask:
        """Return which rows are live, in ``scope`` and of one of ``kinds`` (default: the scope's kinds)."""
        ...

    def column(self, name: str) -> NDArray[np.int64]:
        """Return one number per row: ``document`` (first row of its document), ``parent`` (row), ``page``
        (1-based) or ``kind`` (index into KINDS); -1 where there is none and for rows that are not live."""
        ...

    def relations(self) -> Mapping[str, int]:
        """Return the relations of asserted edges, with how many edges each has."""
        ...

    def neighbours(self, rows: Rows, relation: str, inverse: bool = False) -> tuple[NDArray[np.int64], Rows]:
        """Return the live neighbours of ``rows`` by asserted edges: offsets (n + 1), rows ascending."""
        ...

    def postings(self, field: str) -> Postings:
        """Return the postings of ``text`` (passages and table rows), ``title`` (names of documents, sections
        and tables) or ``mention`` (the names that passages and table rows contain)."""
        ...

    def vectors(self, encoder: str, dimension: int = 0) -> VectorIndex:
        """Return the vectors that the encoder named ``encoder`` made; where there are none yet, a view of none with
        that ``dimension``. Raises NotFound without it: for a search that can do nothing without vectors."""
        ...

    def read_derived(self, maker: str, document: str) -> Mapping[str, bytes]:
        """Return what ``maker`` made of parts of a document and was told to keep, by part. Raises NotFound."""
        ...

    def write_derived(self, maker: str, document: str, made: Mapping[str, bytes]) -> bool:
        """Keep what ``maker`` made of parts of a document: a pure function of the document and the maker's name.

        It goes with the document; False, and nothing is kept, where that is gone. Raises StoreError.
        """
        ...

    def graphs(self) -> Sequence[str]:
        """Return the names of the imported and mounted graphs, sorted."""
        ...

    def graph(self, name: str) -> PropertyGraph:
        """Return a graph by its name. Raises UsageError where there is none, Damaged where it cannot be used."""
        ...

    def memoize(self, key: str, make: Callable[[], Any], *, documents_only: bool = False) -> Any:
        """Return ``make()``, computed once for this generation: for global views such as a graph.

        ``of_documents`` says that the value is a function of the documents alone, not of edges, graphs, vectors or
        what is kept: it then also holds for other generations with the same documents.
        """
        ...


class SnapshotSource(Protocol):
    """A knowledge base, as far as one who asks it is concerned."""

    def snapshot(self) -> Snapshot:
        """Return the base as it is now."""
        ...
