"""The relation of a triple as ways along the relations of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clew.core.types import LinkedRelation
from clew.triples.engine.patterns import ANY_DIRECTION, DirectedRelation
from clew.triples.linking.relations import RelationLabels

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph, RelationLinker

#: Graphs with more relations than this have been extracted from text: there only those around known nodes, of so
#: many, are compared.
MANY, AROUND = 500, 50
CANDIDATES = 6
#: A relation with more than this part of the best one's score may be meant as well.
CLOSE = 0.95
#: What a triple is worth that is followed along any relation, because its own is not in the graph.
ANY_WORTH = 0.5


@dataclass(frozen=True, slots=True)
class TripleEnd:
    """One end of a triple: the nodes that a constant may be (None: an unknown), the types of an unknown."""

    rows: Rows | None = None
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RelationMatch:
    """How a triple is followed: the ways, how sure that is, and what speaks for it."""

    relations: tuple[DirectedRelation, ...]
    score: float
    how: str


@dataclass(frozen=True, slots=True)
class RelationMatcher:
    """Finds the ways of triples.

    ``relations`` is ``typed``: along the relation that the words of a triple stand for, in the direction in which
    the graph has edges for its ends; or ``any``: along any relation either way, the paper's recipe, which found edge
    types "error-prone" (Section 4). ``least``: the score from which on a relation is one. Where none is, any relation
    is followed from a constant, or between nodes of two types, and it is said; else that would say nothing.
    """

    linker: RelationLinker
    relations: Literal["typed", "any"] = "typed"
    least: float = 0.3

    def match(
        self, graph: PropertyGraph, relation: str, head: TripleEnd, tail: TripleEnd, counted: bool = False
    ) -> RelationMatch | None:
        """Return how a triple of these words and ends is followed in a graph; None where it cannot be.

        One that is ``counted`` may well have no edges, so they say nothing of what its words mean.
        """
        if self.relations == "any":
            return RelationMatch(ANY_DIRECTION, 1.0, "any relation")
        good = [one for one in self.link(graph, relation, head, tail) if one.score >= self.least]
        if not good:
            if all(end.rows is None for end in (head, tail)) and not (head.types and tail.types):
                return None
            return RelationMatch(
                ANY_DIRECTION, ANY_WORTH, f"any relation: the graph has none like '{relation}'"
            )
        best = good[0] if counted else _chosen(graph, good, head, tail)
        return RelationMatch((DirectedRelation(best.name, best.inverse),), best.score, best.reason)

    def link(
        self, graph: PropertyGraph, relation: str, head: TripleEnd, tail: TripleEnd
    ) -> tuple[LinkedRelation, ...]:
        """Return the relations that words may stand for, best first."""
        if len(graph.relations()) <= MANY:
            return self.linker.link(graph, [relation], CANDIDATES)[0]
        near = [end.rows[:AROUND] for end in (head, tail) if end.rows is not None]
        around = graph.relations_at(np.concatenate(near)) if near else list(graph.relations())
        return self.linker.link(RelationLabels(graph.name, tuple(around)), [relation], CANDIDATES)[0]


def _chosen(
    graph: PropertyGraph, good: Sequence[LinkedRelation], head: TripleEnd, tail: TripleEnd
) -> LinkedRelation:
    """Return the best relation, turned round where it has edges only so; another one in its place only where that is
    about as alike: "place of birth" is never "place of death", whatever the graph has edges for."""
    same = [one for one in good if one.name == good[0].name]
    near = [] if good[0].reason == "name" else [one for one in good if one.score > good[0].score * CLOSE]
    return next((one for one in (*same[:1], *near, *same[1:]) if _supported(graph, one, head, tail)), good[0])


def _supported(graph: PropertyGraph, one: LinkedRelation, head: TripleEnd, tail: TripleEnd) -> bool:
    """Return whether a relation has edges between such ends, this way round."""
    for end, inverse in ((head, one.inverse), (tail, not one.inverse)):
        if end.rows is not None and not len(graph.neighbours(end.rows, one.name, inverse)[1]):
            return False
    known = graph.relations()[one.name]
    sides = (known.tail_types, known.head_types) if one.inverse else (known.head_types, known.tail_types)
    return all(_may_be(end.types, counts) for end, counts in zip((head, tail), sides, strict=True))


def _may_be(types: Sequence[str], counts: Mapping[str, int]) -> bool:
    """Return whether nodes of one of some types are at an end of a relation; no types, or none counted: they may."""
    return not types or not counts or any(one in counts for one in types)
