"""Names that mean nearly the same: nodes of a type by the vectors of their names, where spelling does not help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import union

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import Encoder, PropertyGraph

#: What the vectors of names are kept under.
NAME_VECTORS = "names/1"
#: Names that are embedded for one look-up at the most.
CAP = 2000
#: Candidates by vector, and how like the name they must be.
POOL, LEAST = 20, 0.5
#: What a candidate by vector keeps of its cosine: an equal name comes first.
MEANING_WEIGHT = 0.9


@dataclass(frozen=True, slots=True)
class NearestNames:
    """Finds the nodes whose names mean nearly what a name says (``light green`` for ``green``; 4StepFocus: Boer et
    al., 2024, Section 4, which leaves this to the future).

    Only the names of the nodes that may be meant are embedded, and kept beside the graph. Where more than ``cap`` of
    them have no vector yet, those are looked at whose spelling is nearest; ``clew graph encode --names`` embeds all.
    """

    encoder: Encoder
    cap: int = CAP
    least: float = LEAST

    def search(
        self, graph: PropertyGraph, names: Sequence[str], types: Sequence[str] = (), k: int = POOL
    ) -> list[dict[int, float]]:
        """Return for each name at most ``k`` rows of ``types`` (none: of all) with their cosines, nearest first."""
        if graph.is_mounted or not names:
            return [{} for _ in names]
        kept = graph.node_vectors(self.encoder, NAME_VECTORS)
        of_types = rows_of_types(graph, types)
        few = len(kept.rows_without_vectors(of_types)) <= self.cap
        queries = self.encoder.encode(list(names))
        found: list[dict[int, float]] = []
        for name, query in zip(names, queries, strict=True):
            rows = of_types if few else rows_spelled_like(graph, name, of_types, self.cap)
            if rows is not None and not len(rows):
                found.append({})
                continue
            kept.encode_missing(
                np.arange(graph.size) if rows is None else rows, lambda some: node_names(graph, some)
            )
            mask = None
            if rows is not None:
                mask = np.zeros(graph.size, dtype=np.bool_)
                mask[rows] = True
            near, cosines = kept.search(query, k, mask)
            pairs = zip(near.tolist(), cosines.tolist(), strict=True)
            found.append({row: cosine for row, cosine in pairs if cosine >= self.least})
        return found


def node_names(graph: PropertyGraph, rows: Rows) -> list[list[str]]:
    """Return the name of each node, as :class:`clew.core.protocols.NodeVectors` takes texts."""
    return [[entity.name] for entity in graph.entities(rows)]


def rows_of_types(graph: PropertyGraph, types: Sequence[str]) -> Rows | None:
    """Return the rows of ``types``, ascending; None for all, where there are none of them."""
    found = [rows for one in types if len(rows := graph.rows_of_type(one))]
    return union(found) if found else None


def rows_spelled_like(graph: PropertyGraph, name: str, among: Rows | None, most: int) -> Rows:
    """Return the rows that are spelled most like ``name`` of all, without those that are not in ``among`` (None:
    with them), ascending: no more than ``most`` or ten times :data:`POOL`; none of ``among`` where others are
    spelled more like it."""
    rows, _ = graph.find_similar_names(name, min(most, 10 * POOL))
    return np.sort(rows if among is None else rows[np.isin(rows, among)])
