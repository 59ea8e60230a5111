"""What is kept beside a graph about the texts of its nodes: vectors and words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from clew.protocols.arrays import Floats, Mask, Rows, Vectors

#: Gives the texts that stand for each of some rows: at least one each, several where a node is embedded in parts.
NodeTexts = Callable[["Rows"], Sequence[Sequence[str]]]
#: Told how many of how many nodes are done.
ProgressCallback = Callable[[int, int], None]


class NodeVectors(Protocol):
    """The vectors that one encoder made of one kind of text of the nodes of a graph: made when they are asked for,
    kept, and gone with the graph."""

    def rows_without_vectors(self, rows: Rows | None = None) -> Rows:
        """Return those of ``rows`` (None: of all nodes) without a vector, ascending, each once."""
        ...

    def encode_missing(self, rows: Rows, texts: NodeTexts, progress: ProgressCallback | None = None) -> int:
        """Make and keep the vectors of ``rows`` that are missing; return of how many nodes. Stopped, what was made is
        kept. Raises ModelError, NotFound where the graph was removed meanwhile."""
        ...

    def vectors(self, rows: Rows) -> tuple[NDArray[np.int64], Vectors]:
        """Return the vectors of ``rows``: offsets (n + 1), and (offsets[-1], dimension) of them; none for a row that
        has none."""
        ...

    def search(self, query: Vectors, k: int, allowed: Mask | None = None) -> tuple[Rows, Floats]:
        """Return at most ``k`` rows whose vectors have the greatest inner product with ``query``, (d,), best first,
        ties by row. For texts of which a node has one."""
        ...
