"""Match the relation of a triple to relations of a graph, in a direction in which it has edges for the triple's
ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clew.core.types import LinkedRelation
from clew.triples.engine.patterns import ANY_DIRECTION, DirectedRelation
from clew.triples.linking.relations import RelationLabels

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph, RelationLinker

#: Graphs with more relations than this have been extracted from text. Of them only the relations at known nodes, of
#: so many nodes, are compared.
MANY_RELATIONS, KNOWN_NODES = 500, 50
#: Relations that are linked for a triple.
MAX_CANDIDATES = 6
#: A relation with more than this part of the best one's score may be meant as well.
CLOSE = 0.95
#: The score of a triple that is followed along any relation, because the graph has none like its own.
ANY_RELATION_SCORE = 0.5


@dataclass(frozen=True, slots=True)
class TripleEnd:
    """An end of a triple: the nodes that a constant may be (None: an unknown), or the types of an unknown."""

    rows: Rows | None = None
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RelationMatch:
    """The relations that a triple follows, how sure that is, and how they were matched."""

    relations: tuple[DirectedRelation, ...]
    score: float
    how: str


@dataclass(frozen=True, slots=True)
class RelationMatcher:
    """Matches the relations of triples.

    ``relations`` is ``typed``: the relation that a triple's words stand for, in the direction in which the graph has
    edges for its ends; or ``any``: any relation in either direction, the paper's recipe, since restricting the edge
    type "turned out to be error-prone" (Section 4). ``least`` is the lowest score of a match. If no relation reaches
    it, any relation is followed from a constant or between nodes of two types, and the trail says so; otherwise the
    triple would say nothing.
    """

    linker: RelationLinker
    relations: Literal["typed", "any"] = "typed"
    least: float = 0.3

    def match(
        self, graph: PropertyGraph, relation: str, head: TripleEnd, tail: TripleEnd, counted: bool = False
    ) -> RelationMatch | None:
        """Return how a triple is followed in a graph; None if it cannot be.

        A ``counted`` triple may have no edges, so edges say nothing about what its words mean.
        """
        if self.relations == "any":
            return RelationMatch(ANY_DIRECTION, 1.0, "any relation")
        linked = self.link(graph, relation, head, tail)
        candidates = [candidate for candidate in linked if candidate.score >= self.least]
        if not candidates:
            if all(end.rows is None for end in (head, tail)) and not (head.types and tail.types):
                return None
            how = f"any relation: the graph has none like '{relation}'"
            return RelationMatch(ANY_DIRECTION, ANY_RELATION_SCORE, how)
        best = candidates[0] if counted else _choose(graph, candidates, head, tail)
        return RelationMatch((DirectedRelation(best.name, best.inverse),), best.score, best.reason)

    def link(
        self, graph: PropertyGraph, relation: str, head: TripleEnd, tail: TripleEnd
    ) -> tuple[LinkedRelation, ...]:
        """Return the relations that words may stand for, best first."""
        if len(graph.relations()) <= MANY_RELATIONS:
            return self.linker.link(graph, [relation], MAX_CANDIDATES)[0]
        known = [end.rows[:KNOWN_NODES] for end in (head, tail) if end.rows is not None]
        names = graph.relations_at(np.concatenate(known)) if known else list(graph.relations())
        return self.linker.link(RelationLabels(graph.name, tuple(names)), [relation], MAX_CANDIDATES)[0]


def _choose(
    graph: PropertyGraph, candidates: Sequence[LinkedRelation], head: TripleEnd, tail: TripleEnd
) -> LinkedRelation:
    """Return the best relation, in the other direction if it has edges only there. Another relation takes its place
    only if it is about as likely: "place of birth" is never "place of death", whatever edges the graph has."""
    best = candidates[0]
    same = [candidate for candidate in candidates if candidate.name == best.name]
    close = [candidate for candidate in candidates if candidate.score > best.score * CLOSE]
    close = [] if best.reason == "name" else close
    ordered = (*same[:1], *close, *same[1:])
    return next((candidate for candidate in ordered if _has_edges(graph, candidate, head, tail)), best)


def _has_edges(graph: PropertyGraph, candidate: LinkedRelation, head: TripleEnd, tail: TripleEnd) -> bool:
    """Return whether a relation has edges between such ends, in the candidate's direction."""
    for end, inverse in ((head, candidate.inverse), (tail, not candidate.inverse)):
        if end.rows is not None and not len(graph.neighbours(end.rows, candidate.name, inverse)[1]):
            return False
    relation = graph.relations()[candidate.name]
    counts = (relation.head_types, relation.tail_types)
    if candidate.inverse:
        counts = counts[::-1]
    return all(
        not end.types or not of_side or any(type in of_side for type in end.types)
        for end, of_side in zip((head, tail), counts, strict=True)
    )
