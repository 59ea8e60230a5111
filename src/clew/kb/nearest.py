"""Nearest vectors: exact where there are few, the best of a shortlist by signs where there are many.

BLAS proposes, and the scores of what it proposes are summed again in float64, row by row, since BLAS gives
other last bits for another number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clew.kb.vectors import live_slots
from clew.vectors import cosines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.kb.signs import BinaryIndex
    from clew.protocols import Floats, Mask, Rows, Vectors

    Slots = NDArray[np.int64]

#: Among so many vectors the products with all of them are computed; a scope is often smaller than a base.
EXACT_LIMIT = 1 << 15
#: A shortlist has so many vectors, and so many for each one asked for (docs/decisions/0005).
SHORTLIST_SIZE, SHORTLIST_PER_HIT = 3000, 25
#: Vectors whose products are computed at a time.
BLOCK = 1 << 16
#: How many more than asked for are scored again exactly, so that rounding in BLAS cannot push one out.
SPARE = 16


@dataclass(frozen=True)
class StoredVectors:
    """:class:`clew.protocols.VectorView` over one encoder's slots, as they were when it was made.

    ``live`` marks the rows of the snapshot that live, ``wanted`` those that should have a vector. Without
    ``signs`` every search is exact.
    """

    slots: Vectors
    slot_rows: Rows
    live: Mask
    expected: Mask
    binary_index: BinaryIndex | None = None

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.slots.shape[1])

    @cached_property
    def _living(self) -> Mask:
        """Which slots are the ones of a living row: the last, where it has several."""
        found = np.zeros(len(self.slots), dtype=np.bool_)
        found[self._slot_of[self._slot_of >= 0]] = True
        return found

    @cached_property
    def _living_rows(self) -> Rows:
        """The row of each slot; 0 for slots of removed rows."""
        return np.where(self._living, self.slot_rows, 0)

    @cached_property
    def _slot_of(self) -> Slots:
        found = np.full(len(self.live) + 1, -1, dtype=np.int64)
        slots = np.flatnonzero(live_slots(self.slot_rows, self.live))
        found[self.slot_rows[slots]] = slots
        return found

    def missing_count(self) -> int:
        """Return how many retrieved nodes have no vector yet."""
        return int((self.expected & (self._slot_of[:-1] < 0)).sum())

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of ``rows``, (n, dimension); zeros for a row without one."""
        slots = self._slot_of[rows]
        found = np.zeros((len(slots), self.dimension), dtype=np.float32)
        has = slots >= 0
        found[has] = self.slots[slots[has]]
        return found

    def search(self, queries: Vectors, k: int, allowed: Mask | None = None) -> tuple[Rows, Floats]:
        """Return the ``k`` nearest rows by inner product for each query, best first; -1 where fewer exist."""
        among = self._among(allowed)
        slots = np.flatnonzero(among)
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        found = np.full((len(queries), k), -1, dtype=np.int64)
        scores = np.full((len(queries), k), -np.inf)
        if not len(slots) or not k:
            return found, scores
        if self.binary_index is None or len(slots) <= EXACT_LIMIT:
            proposed = list(self._proposed(queries, slots, k + SPARE))
        else:
            size = max(SHORTLIST_SIZE, SHORTLIST_PER_HIT * k)
            lists = [self.binary_index.shortlist(query, among, size) for query in queries]
            proposed = [
                self._proposed(query[None], near, k + SPARE)[0]
                for query, near in zip(queries, lists, strict=True)
            ]
        for number, near in enumerate(proposed):
            exact = cosines(self.slots[near], queries[number]).round(9)
            rows = self.slot_rows[near]
            # Ties keep the order of rows here; whoever makes hits of them breaks ties by node id.
            order = np.lexsort((rows, -exact))[:k]
            found[number, : len(order)] = rows[order]
            scores[number, : len(order)] = exact[order]
        return found, scores

    def _among(self, allowed: Mask | None) -> Mask:
        """Return which slots to search: those of living, allowed rows."""
        return self._living if allowed is None else self._living & allowed[self._living_rows]

    def _proposed(self, queries: Vectors, slots: Slots, k: int) -> Slots:
        """Return for each query the ``k`` of ``slots`` with the greatest products, in no order."""
        k = min(k, len(slots))
        whole = len(slots) == len(self.slots)
        best = np.empty((len(queries), 0), dtype=np.int64)
        best_scores = np.empty((len(queries), 0), dtype=np.float32)
        for start in range(0, len(slots), BLOCK):
            some = slots[start : start + BLOCK]
            block = self.slots[start : start + BLOCK] if whole else self.slots[some]
            products = queries @ block.T
            places = np.broadcast_to(some, products.shape)
            best, best_scores = _greatest(
                np.concatenate([best, places], axis=1), np.concatenate([best_scores, products], axis=1), k
            )
        return best


def _greatest(places: Slots, scores: Vectors, k: int) -> tuple[Slots, Vectors]:
    """Return the ``k`` greatest of each row of ``scores``, and their places."""
    if scores.shape[1] <= k:
        return places, scores
    top = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    return np.take_along_axis(places, top, 1), np.take_along_axis(scores, top, 1)
