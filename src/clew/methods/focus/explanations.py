"""The constraints that each answer meets and misses, with the triples of the graph that say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import scalar_text
from clew.core.types import ConstraintCheck, Entity, Hit
from clew.methods.evidence import source_passages, triple_hit
from clew.methods.focus.pattern_builder import PreparedQuestion
from clew.triples.engine.constraint_scores import constraint_scores
from clew.triples.engine.patterns import DirectedRelation, Pattern, TypedTriple, restrict_variable
from clew.triples.engine.predicates import PropertyTest
from clew.triples.engine.substitution import substitute
from clew.triples.language.typed_chain import NOT
from clew.triples.linking.entities import MAX_RELATIONS

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows
    from clew.core.protocols import PropertyGraph, Snapshot

#: Triples shown for a constraint of an answer, and heads that are searched for them.
SHOWN_TRIPLES, SEARCHED_HEADS = 3, 50
#: The constraint that is missed by a row that meets each of several constraints, but by different nodes.
TOGETHER = "all of these by the same nodes"


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """How far rows meet the constraints of a pattern: ``scores``, (rows, constraints), from 0 to 1.

    ``read`` has the constraints that were read from documents, by how they are written.
    """

    prepared: PreparedQuestion
    pattern: Pattern
    rows: Rows
    scores: Floats
    read: Mapping[str, ConstraintCheck] = field(default_factory=dict)

    @property
    def mean_scores(self) -> Floats:
        """The mean over all constraints, (rows,); 1 if there are none."""
        means: Floats = self.scores.mean(axis=1) if self.scores.shape[1] else np.ones(len(self.rows))
        return means

    def checks(
        self, snapshot: Snapshot, place: int, evidence: bool = True, meets_all: bool = True
    ) -> tuple[ConstraintCheck, ...]:
        """Return every constraint with how far the ``place``-th row meets it, last those that the graph cannot hold.

        With ``evidence``, the triples by which it does are added. A row that meets each constraint and not
        ``meets_all`` misses :data:`TOGETHER`.
        """
        constraints, scores = self.pattern.constraints, self.scores[place].tolist()
        hits: dict[int, tuple[Hit, ...]] = {}
        if evidence:
            met = self.pattern.keep_only(
                constraint for constraint, score in zip(constraints, scores, strict=True) if score > 0
            )
            hits = find_witnesses(snapshot, self.prepared.graph, met, int(self.rows[place]))
            if met.predicates:
                (entity,) = self.prepared.graph.entities(self.rows[place : place + 1])
                hits |= property_evidence(self.prepared.graph, met, entity)
        checks = [
            ConstraintCheck(text, round(score, 3), hits.get(id(constraint), ()))
            for constraint, text, score in zip(constraints, self.prepared.texts, scores, strict=True)
        ]
        if not meets_all and len(scores) > 1 and min(scores) > 0:
            checks.append(ConstraintCheck(TOGETHER, 0.0))
        for dropped in self.prepared.dropped:
            checks.append(self.read.get(dropped.text) or ConstraintCheck(dropped.text, None))
        checks += [ConstraintCheck(f"~ {wish}", None) for wish in self.prepared.typed.preferences]
        return tuple(checks)


def explain_rows(
    prepared: PreparedQuestion,
    pattern: Pattern,
    rows: Rows,
    read: Mapping[str, ConstraintCheck] | None = None,
) -> Explanation:
    """Return how far rows meet the constraints of a pattern, which has the same constraints as ``prepared``."""
    scores = constraint_scores(prepared.graph, pattern, rows) * np.array(prepared.confidences)
    return Explanation(prepared, pattern, rows, scores, read or {})


def find_witnesses(
    snapshot: Snapshot, graph: PropertyGraph, pattern: Pattern, row: int
) -> dict[int, tuple[Hit, ...]]:
    """Return for each triple of a pattern, by identity, the first :data:`SHOWN_TRIPLES` edges that meet it where the
    target is ``row``, with the passages that they were extracted from."""
    candidates = substitute(graph, restrict_variable(pattern, [row])).candidates
    witnesses = {}
    for triple in pattern.triples:
        heads = candidates.get(triple.head)
        if triple.quantifier == NOT or heads is None or not len(heads):
            continue
        tails = candidates.get(triple.tail)
        edges = list(islice(_edges(graph, triple, heads[:SEARCHED_HEADS], tails), SHOWN_TRIPLES))
        ends = sorted({end for head, _, tail in edges for end in (head, tail)})
        entities = dict(zip(ends, graph.entities(np.array(ends, dtype=np.int64)), strict=True))
        witnesses[id(triple)] = edge_hits(snapshot, graph, edges, entities)
    return witnesses


def edge_hits(
    snapshot: Snapshot,
    graph: PropertyGraph,
    edges: Sequence[tuple[int, str, int]],
    entities: Mapping[int, Entity],
) -> tuple[Hit, ...]:
    """Return edges (head, relation, tail) as hits, each followed by the passages that it was extracted from."""
    hits: list[Hit] = []
    for head, relation, tail in edges:
        end = entities[tail]
        hits.append(triple_hit(graph.name, entities[head], relation, end.name, end.id))
        hits += source_passages(snapshot, graph, (head, relation, tail), 1.0)
    return tuple(dict.fromkeys(hits))


def property_evidence(graph: PropertyGraph, pattern: Pattern, entity: Entity) -> dict[int, tuple[Hit, ...]]:
    """Return for each predicate on the target, by identity, the values of a node's property that meet it."""
    predicates = [predicate for predicate in pattern.predicates if predicate.variable == pattern.target]
    evidence = {}
    for predicate in predicates:
        value = entity.properties.get(predicate.property, ())
        values = value if isinstance(value, tuple) else (value,)
        matches = PropertyTest(graph, predicate).match_values(values)
        # A negated predicate is met by all values together.
        shown = [value for value, passes in zip(values, matches, strict=True) if passes or predicate.negated][
            :SHOWN_TRIPLES
        ]
        evidence[id(predicate)] = tuple(
            triple_hit(graph.name, entity, predicate.property, scalar_text(value)) for value in shown
        )
    return evidence


def _edges(
    graph: PropertyGraph, triple: TypedTriple, heads: Rows, tails: Rows | None
) -> Iterator[tuple[int, str, int]]:
    """Yield the edges from the heads of a triple to its tails, in the direction in which the graph has them."""
    for directed in triple.relations:
        for relation in _relation_names(graph, directed, heads):
            offsets, ends = graph.neighbours(heads, relation, directed.inverse)
            is_tail = np.ones(len(ends), dtype=np.bool_) if tails is None else np.isin(ends, tails)
            for place, (start, stop) in enumerate(pairwise(offsets.tolist())):
                head = int(heads[place])
                for tail in ends[start:stop][is_tail[start:stop]].tolist():
                    yield (tail, relation, head) if directed.inverse else (head, relation, tail)


def _relation_names(graph: PropertyGraph, directed: DirectedRelation, heads: Rows) -> list[str]:
    if directed.relation is not None:
        return [directed.relation]
    return list(graph.relations()) if len(graph.relations()) <= MAX_RELATIONS else graph.relations_at(heads)
