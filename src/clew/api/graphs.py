"""What a person looks up in a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.shapes import Triples

if TYPE_CHECKING:
    from clew.protocols import PropertyGraph
    from clew.types import Entity


def triples_of(graph: PropertyGraph, entity: Entity, limit: int = 10) -> list[Triples]:
    """Return the triples of an entity, relation by relation, those that it is the head of first; at most ``limit``
    of each."""
    row = graph.rows([entity.id])
    found = []
    for inverse in (False, True):
        for relation in sorted(graph.relations()):
            _, others = graph.adjacent(row, relation, inverse)
            if not len(others):
                continue
            some = others[:limit]
            pairs = [(int(other), int(row[0])) if inverse else (int(row[0]), int(other)) for other in some]
            said = tuple(graph.statements(head, relation, tail) for head, tail in pairs)
            found.append(Triples(relation, inverse, tuple(graph.entities(some)), said, len(others)))
    return found
