"""Nodes whose names mean nearly the same as a name, by the vectors of names, where spelling does not help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import union

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import Encoder, PropertyGraph

#: The kind of vectors under which those of names are stored.
NAME_VECTORS = "names/1"
#: Names that are embedded for one look-up at most.
MAX_EMBEDDED = 2000
#: Candidates by vector, and how like the name they must be.
POOL, LEAST = 20, 0.5
#: The share of its cosine that a candidate by vector keeps, so that an equal name comes first.
MEANING_WEIGHT = 0.9


@dataclass(frozen=True, slots=True)
class NearestNames:
    """Finds nodes whose names mean nearly the same as a name: ``light green`` for ``green``.

    4StepFocus (Boer et al., 2024, Section 4) leaves this to future work. Only the names of nodes that may be meant
    are embedded, and stored beside the graph. If more than ``cap`` of them have no vector yet, only those spelled
    most like the name are searched; ``clew graph encode --names`` embeds all.
    """

    encoder: Encoder
    cap: int = MAX_EMBEDDED
    least: float = LEAST

    def search(
        self, graph: PropertyGraph, names: Sequence[str], types: Sequence[str] = (), k: int = POOL
    ) -> list[dict[int, float]]:
        """Return for each name at most ``k`` rows of ``types`` (empty: of all) with their cosines, nearest first."""
        if graph.is_mounted or not names:
            return [{} for _ in names]
        vectors = graph.node_vectors(self.encoder, NAME_VECTORS)
        of_types = rows_of_types(graph, types)
        embed_all = len(vectors.rows_without_vectors(of_types)) <= self.cap
        queries = self.encoder.encode(list(names))
        nearest: list[dict[int, float]] = []
        for name, query in zip(names, queries, strict=True):
            rows = of_types if embed_all else rows_spelled_like(graph, name, of_types, self.cap)
            if rows is not None and not len(rows):
                nearest.append({})
                continue
            embedded = np.arange(graph.size) if rows is None else rows
            vectors.encode_missing(embedded, lambda missing: node_names(graph, missing))
            mask = None
            if rows is not None:
                mask = np.zeros(graph.size, dtype=np.bool_)
                mask[rows] = True
            similar, cosines = vectors.search(query, k, mask)
            pairs = zip(similar.tolist(), cosines.tolist(), strict=True)
            nearest.append({row: cosine for row, cosine in pairs if cosine >= self.least})
        return nearest


def node_names(graph: PropertyGraph, rows: Rows) -> list[list[str]]:
    """Return the name of each node, in the form in which :class:`clew.core.protocols.NodeVectors` takes texts."""
    return [[entity.name] for entity in graph.entities(rows)]


def rows_of_types(graph: PropertyGraph, types: Sequence[str]) -> Rows | None:
    """Return the rows of ``types``, ascending; None (all rows) if there are none of these types."""
    of_types = [rows for type in types if len(rows := graph.rows_of_type(type))]
    return union(of_types) if of_types else None


def rows_spelled_like(graph: PropertyGraph, name: str, among: Rows | None, most: int) -> Rows:
    """Return the rows among ``among`` (None: all) that are of the ``most`` rows spelled most like ``name``,
    ascending.

    At most ten times :data:`POOL` rows are looked at, so there may be none of ``among``.
    """
    rows, _ = graph.find_similar_names(name, min(most, 10 * POOL))
    return np.sort(rows if among is None else rows[np.isin(rows, among)])
