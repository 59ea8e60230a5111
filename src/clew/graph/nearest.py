"""The graph of the K nearest neighbours by vector (the KNN-ST and KNN-MDR graphs of the KGP paper)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clew.core.arrays import Floats, Rows
from clew.core.component import component
from clew.core.errors import UsageError
from clew.core.protocols import Encoder, Snapshot
from clew.core.types import RETRIEVED_KINDS, Scope


@component(
    "knn", summary="the k passages nearest by vector (needs an encoder)", paper="Wang et al., AAAI 2024"
)
class NearestGraph:
    """Neighbours are the ``k`` passages (and table rows) whose vectors are nearest to the passage's own.

    No edges are stored: a neighbourhood is a vector search, remembered for the generation. The edges are directed,
    since being among the nearest of another passage is not mutual. A passage that has no vector yet has no neighbours
    and is nobody's neighbour.

    ``vectors`` is the name of another encoder whose vectors the base has: the paper compares the graph of a sentence
    encoder (KNN-ST) with that of an encoder trained for several hops (KNN-MDR).
    """

    @classmethod
    def build(cls, snapshot: Snapshot, encoder: Encoder, k: int = 10, vectors: str = "") -> NearestGraph:
        """Return the graph over the vectors of the base's encoder, or of the one that ``vectors`` names. Raises
        UsageError where the base has none of that."""
        graph = cls(snapshot, vectors or encoder.name, k)
        if vectors and not graph.has_vectors():
            raise UsageError(
                f"this base has no vectors of '{vectors}'",
                "In evaluations: --beside NAME encodes with a second one",
            )
        return graph

    def __init__(self, snapshot: Snapshot, encoder: str, k: int = 10) -> None:
        if k < 1:
            raise UsageError(f"number of neighbours: {k}", "It must be 1 or more")
        self._snapshot = snapshot
        self._k = k
        self.mutual = False
        self.name = f"knn(k={k})"
        self._index = snapshot.vectors(encoder)
        self._known: dict[int, Rows] = snapshot.memoize(f"graph/knn/{encoder}/{k}", dict)

    def has_vectors(self) -> bool:
        """Return whether any passage has a vector."""
        rows = np.flatnonzero(self._snapshot.mask(Scope(), RETRIEVED_KINDS))
        return not len(rows) or bool(self._index.vectors(rows[:1]).any())

    def neighbours(self, row: int) -> Rows:
        """Return the ``k`` nearest rows, ascending, without itself."""
        return self.neighbours_of([row])[0]

    def neighbours_of(self, rows: Sequence[int]) -> list[Rows]:
        """Return the neighbours of several rows, with one search for all rows that were not searched before."""
        new = list(dict.fromkeys(row for row in rows if row not in self._known))
        if new:
            self._known.update(zip(new, self._search(np.array(new, dtype=np.int64)), strict=True))
        return [self._known[row] for row in rows]

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return 1 for each."""
        return np.ones(len(neighbours))

    def explain_edge(self, source: int, target: int) -> str:
        """Return how similar two rows are (``knn: similarity 0.83``)."""
        pair = self._index.vectors(np.array([source, target], dtype=np.int64)).astype(np.float64)
        return f"knn: similarity {pair[0] @ pair[1]:.2f}"

    def _search(self, rows: Rows) -> list[Rows]:
        vectors = self._index.vectors(rows)
        allowed = self._snapshot.mask(Scope(), RETRIEVED_KINDS)
        nearest, _ = self._index.search(vectors, self._k + 1, allowed)
        nearest[~vectors.any(axis=1)] = -1
        return [
            np.sort(near[(near >= 0) & (near != row)][: self._k])
            for row, near in zip(rows, nearest, strict=True)
        ]
