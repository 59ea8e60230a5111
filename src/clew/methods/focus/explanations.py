"""The constraints that each answer meets and misses, with the edges of the graph that say so.

For exact answers the edges are looked up for many at once (:func:`find_answer_edges`). The triples that bind the
unknowns mostly form a tree, with the unknown that is asked for at its root. After substitution every candidate of a
term is part of a whole match then, so edges are followed from each answer outwards, without joining anything. Along
``>>+`` the shortest path is found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import Floats, Rows, is_member
from clew.core.text import scalar_text
from clew.core.types import ConstraintCheck, Entity, Hit
from clew.methods.answering import source_passages, triple_hit
from clew.methods.focus.pattern_builder import PreparedQuestion
from clew.triples.engine.constraint_scores import constraint_scores
from clew.triples.engine.edges import Edges
from clew.triples.engine.patterns import DirectedRelation, Pattern, TypedTriple, restrict_variable
from clew.triples.engine.predicates import PropertyTest
from clew.triples.engine.substitution import substitute
from clew.triples.language.chain import NOT
from clew.triples.linking.entities import MAX_RELATIONS
from clew.triples.linking.linked_graphs import LinkedGraph

if TYPE_CHECKING:
    from clew.core.protocols import PropertyGraph, Snapshot
    from clew.triples.query.question import EdgePattern

#: Triples shown for a constraint of an answer, and heads that are searched for them.
SHOWN_TRIPLES, SEARCHED_HEADS = 3, 50
#: Edges shown for a triple of an exact answer, and nodes of a term from which an answer's edges are followed.
SHOWN_EDGES, FOLLOWED_NODES = 3, 50
#: The constraint that is missed by a row that meets each of several constraints, but by different nodes.
TOGETHER = "all of these by the same nodes"

#: An edge as the graph has it: head, relation, tail.
Edge = tuple[int, str, int]


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
    edges: Sequence[Edge],
    entities: Mapping[int, Entity],
) -> tuple[Hit, ...]:
    """Return edges (head, relation, tail) as hits, each followed by the passages that it was extracted from."""
    hits: list[Hit] = []
    for edge in edges:
        owner, ends = graph, [entities[edge[0]], entities[edge[2]]]
        if isinstance(graph, LinkedGraph):
            owner, edge = graph.find_edge(*edge)
            ends = owner.entities(np.array([edge[0], edge[2]]))
        hits.append(triple_hit(owner.name, ends[0], edge[1], ends[1].name, ends[1].id))
        hits += source_passages(snapshot, owner, edge, 1.0)
    return tuple(dict.fromkeys(hits))


def property_evidence(graph: PropertyGraph, pattern: Pattern, entity: Entity) -> dict[int, tuple[Hit, ...]]:
    """Return for each predicate on the target, by identity, the values of a node's property that meet it."""
    predicates = [predicate for predicate in pattern.predicates if predicate.variable == pattern.target]
    evidence = {}
    for predicate in predicates:
        owner, node = graph, entity
        if isinstance(graph, LinkedGraph):
            owner, node = graph.find_owner(entity, predicate.property)
        value = node.properties.get(predicate.property, ())
        values = value if isinstance(value, tuple) else (value,)
        matches = PropertyTest(graph, predicate).match_values(values)
        # A negated predicate is met by all values together.
        shown = [value for value, passes in zip(values, matches, strict=True) if passes or predicate.negated][
            :SHOWN_TRIPLES
        ]
        evidence[id(predicate)] = tuple(
            triple_hit(owner.name, node, predicate.property, scalar_text(value)) for value in shown
        )
    return evidence


def _edges(graph: PropertyGraph, triple: TypedTriple, heads: Rows, tails: Rows | None) -> Iterator[Edge]:
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


def find_answer_edges(
    graph: PropertyGraph,
    edges: Sequence[EdgePattern],
    candidates: Mapping[str, Rows | None],
    target: str,
    rows: Sequence[int],
) -> list[dict[EdgePattern, list[Edge]]] | None:
    """Return for each answer the first edges of each triple, of a repeated one the edges of a shortest path.

    ``candidates`` are those of the terms where the target is one of ``rows`` (None: every node). Returns None where
    the edges are no tree.
    """
    answers: list[dict[EdgePattern, list[Edge]]] = [{} for _ in rows]
    bound: dict[str, list[list[int]]] = {target: [[row] for row in rows]}
    waiting = list(edges)
    while waiting:
        edge = next((edge for edge in waiting if set(edge.ends) & bound.keys()), None)
        if edge is None:  # nothing joins this part to the answer
            term = waiting[0].head
            every = candidates.get(term)
            first = (
                range(min(graph.size, FOLLOWED_NODES)) if every is None else every[:FOLLOWED_NODES].tolist()
            )
            bound[term] = [list(first)] * len(rows)
            continue
        if set(edge.ends) <= bound.keys():
            return None
        waiting.remove(edge)
        from_head = edge.head in bound
        near, far = edge.ends if from_head else edge.ends[::-1]
        walk = edge.relations if from_head else tuple(directed.opposite for directed in edge.relations)
        starts = {node for nodes in bound[near] for node in nodes}
        steps = (_Paths if edge.repeated else _Steps)(graph, walk, starts, candidates.get(far))
        bound[far] = []
        for edges_of_answer, nodes in zip(answers, bound[near], strict=True):
            edges_of_answer[edge], reached = steps.follow(nodes)
            bound[far].append(reached)
    return answers


class _Steps:
    """Follows an edge by single steps, in the directions ``walk``, from nodes to candidates."""

    def __init__(
        self,
        graph: PropertyGraph,
        walk: Sequence[DirectedRelation],
        starts: Collection[int],
        candidates: Rows | None,
    ) -> None:
        self._nodes = np.array(sorted(starts), dtype=np.int64)
        ends = None if candidates is None else candidates.astype(np.int64)
        self._runs = [
            (relation, directed.inverse, *self._expand(graph, relation, directed.inverse, ends))
            for directed in walk
            for relation in _relation_names(graph, directed, self._nodes)
        ]

    def _expand(
        self, graph: PropertyGraph, relation: str, inverse: bool, candidates: Rows | None
    ) -> tuple[Any, Any]:
        """Return the candidates at the other ends: offsets for each node, and the ends, ascending for each."""
        nodes = self._nodes
        if candidates is not None and _degree(graph, candidates, relation, not inverse) < _degree(
            graph, nodes, relation, inverse
        ):
            offsets, starts = graph.neighbours(candidates, relation, not inverse)
            ends = np.repeat(candidates, np.diff(offsets))
            is_start = is_member(starts, nodes)
            starts, ends = starts[is_start], ends[is_start]
            order = np.lexsort((ends, starts))
            return np.append(np.searchsorted(starts[order], nodes), len(order)), ends[order]
        offsets, ends = graph.neighbours(nodes, relation, inverse)
        if candidates is None:
            return offsets, ends
        is_candidate = is_member(ends, candidates)
        return np.append(0, np.cumsum(is_candidate))[offsets], ends[is_candidate]

    def follow(self, nodes: Sequence[int]) -> tuple[list[Edge], list[int]]:
        """Return the first edges from some of the nodes, and the nodes at their ends."""
        walked = list(islice(self._walk(nodes), FOLLOWED_NODES))
        edges = [edge for edge, _ in walked[:SHOWN_EDGES]]
        return edges, list(dict.fromkeys(end for _, end in walked))

    def _walk(self, nodes: Sequence[int]) -> Iterator[tuple[Edge, int]]:
        places = np.searchsorted(self._nodes, np.array(nodes, dtype=np.int64)).tolist()
        for relation, inverse, offsets, ends in self._runs:
            for node, place in zip(nodes, places, strict=True):
                for end in ends[offsets[place] : offsets[place + 1]][:FOLLOWED_NODES].tolist():
                    yield (end, relation, node) if inverse else (node, relation, end), end


class _Paths:
    """Follows an edge by one or more steps from nodes to the nearest candidates, by a search from these."""

    def __init__(
        self,
        graph: PropertyGraph,
        walk: Sequence[DirectedRelation],
        starts: Collection[int],
        candidates: Rows | None,
    ) -> None:
        self._is_end = np.zeros(graph.size, dtype=np.bool_)
        self._is_end[slice(None) if candidates is None else candidates] = True
        # The step from each node towards the nearest candidate: the node after it, and the edge.
        self._steps: dict[int, tuple[int, Edge]] = {}
        seen = np.zeros(graph.size, dtype=np.bool_)
        frontier = np.flatnonzero(self._is_end).astype(np.uint32)
        missing = set(starts)
        while len(frontier) and missing:
            reached: list[Any] = []
            for directed in walk:
                owners, nodes = Edges(graph, (directed.opposite,)).expand(frontier)
                is_new = ~seen[nodes]
                nodes, firsts = np.unique(nodes[is_new], return_index=True)
                seen[nodes] = True
                reached.append(nodes)
                relation = directed.relation or ""
                for node, after in zip(
                    nodes.tolist(), frontier[owners[is_new][firsts]].tolist(), strict=True
                ):
                    edge = (after, relation, node) if directed.inverse else (node, relation, after)
                    self._steps[node] = (after, edge)
            frontier = np.concatenate(reached)
            missing.difference_update(frontier.tolist())
            frontier = frontier[~self._is_end[frontier]]

    def follow(self, nodes: Sequence[int]) -> tuple[list[Edge], list[int]]:
        """Return the edges of a shortest path from one of the nodes, and its end."""
        paths = [path for node in nodes if (path := self._path(node))[0]]
        edges, end = min(paths, key=lambda path: len(path[0]), default=([], -1))
        return edges, [end] if edges else []

    def _path(self, node: int) -> tuple[list[Edge], int]:
        edges: list[Edge] = []
        while node in self._steps:
            node, edge = self._steps[node]
            edges.append(edge)
            if self._is_end[node]:
                break
        return edges, node


def _degree(graph: PropertyGraph, rows: Rows, relation: str, inverse: bool) -> float:
    adjacency = graph.adjacency(relation, inverse)
    if adjacency is None:
        return len(rows)
    starts, ends = adjacency.bounds(rows)
    return float((ends - starts).sum())
