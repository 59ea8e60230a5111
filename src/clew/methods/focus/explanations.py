"""What each answer meets and misses, with the triples of the graph that say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import scalar_text
from clew.core.types import ConstraintCheck, Hit
from clew.methods.focus.pattern_builder import PreparedQuestion
from clew.methods.triple_hits import source_passages, triple_hit
from clew.triples.engine.constraint_scores import constraint_scores
from clew.triples.engine.patterns import DirectedRelation, Pattern, TypedTriple, restrict_variable
from clew.triples.engine.predicates import PropertyTest
from clew.triples.engine.substitution import substitute
from clew.triples.language.typed_chain import NOT
from clew.triples.linking.entities import MAX_RELATIONS

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows
    from clew.core.protocols import PropertyGraph, Snapshot

#: Triples that are shown for one constraint of an answer, and heads that are looked at for them.
SHOWN, HEADS = 3, 50
#: What is missed by what meets every constraint alone, by one node here and by another there.
TOGETHER = "all of these by the same nodes"


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """How far some rows meet the constraints of a pattern: ``shares``, (rows, constraints), from 0 to 1; ``read`` are
    constraints that documents say what the graph does not, as they are written."""

    prepared: PreparedQuestion
    pattern: Pattern
    rows: Rows
    scores: Floats
    read: Mapping[str, ConstraintCheck] = field(default_factory=dict)

    @property
    def mean_scores(self) -> Floats:
        """The mean over all constraints, (rows,); 1 where there are none."""
        made: Floats = self.scores.mean(axis=1) if self.scores.shape[1] else np.ones(len(self.rows))
        return made

    def checks(
        self, snapshot: Snapshot, place: int, evidence: bool = True, firm: bool = True
    ) -> tuple[ConstraintCheck, ...]:
        """Return every constraint with how far the ``place``-th row meets it, last what the graph cannot say; with
        ``evidence``, the triples by which it does. One that is not ``firm`` and meets each by itself does not meet
        them together, which is said."""
        constraints, shares = self.pattern.constraints, self.scores[place].tolist()
        found: dict[int, tuple[Hit, ...]] = {}
        if evidence:
            held = self.pattern.keep_only(
                one for one, share in zip(constraints, shares, strict=True) if share > 0
            )
            found = find_witnesses(snapshot, self.prepared.graph, held, int(self.rows[place]))
            found |= property_evidence(self.prepared.graph, held, int(self.rows[place]))
        return (
            *(
                ConstraintCheck(text, round(share, 3), found.get(id(one), ()))
                for one, text, share in zip(constraints, self.prepared.texts, shares, strict=True)
            ),
            *(
                ConstraintCheck(TOGETHER, 0.0)
                for _ in range(not firm and len(shares) > 1 and min(shares) > 0)
            ),
            *(self.read.get(one.text) or ConstraintCheck(one.text, None) for one in self.prepared.dropped),
            *(ConstraintCheck(f"~ {one}", None) for one in self.prepared.typed.preferences),
        )


def explain_rows(
    prepared: PreparedQuestion,
    pattern: Pattern,
    rows: Rows,
    read: Mapping[str, ConstraintCheck] | None = None,
) -> Explanation:
    """Return how far some rows meet the constraints of a pattern, which has those of ``prepared``."""
    shares = constraint_scores(prepared.graph, pattern, rows) * np.array(prepared.confidences)
    return Explanation(prepared, pattern, rows, shares, read or {})


def find_witnesses(
    snapshot: Snapshot, graph: PropertyGraph, pattern: Pattern, row: int
) -> dict[int, tuple[Hit, ...]]:
    """Return for the triples of a pattern, by identity, edges of the graph that meet them where the target is
    ``row``: the first :data:`MAX_CHARACTERS` of each, with the passages that they were extracted from."""
    sets = substitute(graph, restrict_variable(pattern, [row])).candidates
    found = {}
    for triple in pattern.triples:
        heads = sets.get(triple.head)
        if triple.quantifier == NOT or heads is None or not len(heads):
            continue
        edges = list(islice(_edges(graph, triple, heads[:HEADS], sets.get(triple.tail)), SHOWN))
        ends = sorted({end for head, _, tail in edges for end in (head, tail)})
        known = dict(zip(ends, graph.entities(np.array(ends, dtype=np.int64)), strict=True))
        hits: list[Hit] = []
        for head, relation, tail in edges:
            hits.append(triple_hit(graph.name, known[head], relation, known[tail].name, known[tail].id))
            hits += source_passages(snapshot, graph, (head, relation, tail), 1.0)
        found[id(triple)] = tuple(dict.fromkeys(hits))
    return found


def property_evidence(graph: PropertyGraph, pattern: Pattern, row: int) -> dict[int, tuple[Hit, ...]]:
    """Return for the predicates on the target, by identity, the values of the property of a node."""
    asked = [one for one in pattern.predicates if one.variable == pattern.target]
    if not asked:
        return {}
    (entity,) = graph.entities(np.array([row], dtype=np.int64))
    found = {}
    for one in asked:
        given = entity.properties.get(one.property, ())
        several = given if isinstance(given, tuple) else (given,)
        passing = PropertyTest(graph, one).match_values(several)
        # What is denied is met by all that it has; what is asked for by the values that pass.
        some = [value for value, passes in zip(several, passing, strict=True) if passes or one.negated]
        found[id(one)] = tuple(
            triple_hit(graph.name, entity, one.property, scalar_text(value)) for value in some[:SHOWN]
        )
    return found


def _edges(
    graph: PropertyGraph, triple: TypedTriple, heads: Rows, tails: Rows | None
) -> Iterator[tuple[int, str, int]]:
    """Yield edges of the graph, as it has them, that lead from the heads of a triple to its tails."""
    for way in triple.relations:
        for relation in _names(graph, way, heads):
            offsets, ends = graph.neighbours(heads, relation, way.inverse)
            inside = np.ones(len(ends), dtype=np.bool_) if tails is None else np.isin(ends, tails)
            for place, (start, end) in enumerate(pairwise(offsets.tolist())):
                for other in ends[start:end][inside[start:end]].tolist():
                    one, two = int(heads[place]), int(other)
                    yield (two, relation, one) if way.inverse else (one, relation, two)


def _names(graph: PropertyGraph, way: DirectedRelation, heads: Rows) -> list[str]:
    if way.relation is not None:
        return [way.relation]
    return list(graph.relations()) if len(graph.relations()) <= MAX_RELATIONS else graph.relations_at(heads)
