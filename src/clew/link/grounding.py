"""Linking a head and its relation together: of their candidates, the pairs that the graph has edges for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clew.protocols import PropertyGraph, Rows
    from clew.types import LinkedEntity, LinkedRelation


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no equality of their own
class Grounding:
    """An entity and a relation that a graph joins: ``rows`` are the other ends, ascending, never none.

    ``score`` is the product of the two scores: from 0 to 1, comparable within one call.
    """

    entity: LinkedEntity
    relation: LinkedRelation
    score: float
    rows: Rows


def ground(
    graph: PropertyGraph, entities: Sequence[LinkedEntity], relations: Sequence[LinkedRelation], k: int = 5
) -> tuple[Grounding, ...]:
    """Return at most ``k`` pairs of a candidate entity and a candidate relation with edges, best first.

    A linker that looks at the name alone cannot tell "Kismet", the film, from the song; that only the film has a
    director can. So a pair without an edge is no pair, however well its words fit. Ties keep the order of the
    entities, then that of the relations.
    """
    if not entities or not relations:
        return ()
    heads = np.array([one.row for one in entities], dtype=np.int64)
    found: list[tuple[int, Grounding]] = []
    for relation in relations:
        offsets, ends = graph.neighbours(heads, relation.name, relation.inverse)
        for place in np.flatnonzero(np.diff(offsets)).tolist():
            entity = entities[place]
            rows = ends[offsets[place] : offsets[place + 1]]
            found.append((place, Grounding(entity, relation, entity.score * relation.score, rows)))
    found.sort(key=lambda one: (-one[1].score, one[0]))  # stable: relations keep their order
    return tuple(one for _, one in found[:k])
