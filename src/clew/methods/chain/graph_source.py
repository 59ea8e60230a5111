"""Values for unknowns from knowledge graphs (Su et al., NAACL 2024, Algorithm 1)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from clew.core.arrays import Rows
from clew.core.component import Resources
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import EntityLinker, PropertyGraph, RelationLinker, RelationSource, Snapshot, Trail
from clew.core.trail import FillStep, GraphMatch, LinkedName
from clew.core.types import Entity, Hit, LinkedEntity, LinkedRelation, Question
from clew.methods.answering import quote_triples, source_passages, triple_hit
from clew.methods.chain.unknowns import (
    MAX_KNOWN_VALUES,
    SHOWN_VALUES,
    Candidate,
    Filling,
    Hop,
    ValueSet,
)
from clew.triples.linking.entities import GraphEntityLinker
from clew.triples.linking.entity_alignment import align_entity_with
from clew.triples.linking.relations import (
    EXACT_SCORE,
    GraphRelationLinker,
    Grounding,
    RelationLabels,
    ground,
    has_asked_name,
    load_aliases,
)

#: The reasons of links to a node that has the name itself (:mod:`clew.triples.linking.entities`).
EXACT_LINKS = ("name", "alias")
#: A graph with more relations than this was extracted from text. Only the relations of this many nodes are then
#: compared.
MANY_RELATIONS, SAMPLED_NODES = 500, 50

#: How the entity that a name stands for is chosen: by the ranking alone, or by the model among the first.
EntityChoice = Literal["ranked", "model"]


def create_entity_linker(resources: Resources, entities: EntityChoice, component: str) -> EntityLinker:
    """Return the linker of names. Raises UsageError, which names ``component``, if it needs a model and there is
    none."""
    if entities == "ranked":
        return GraphEntityLinker(resources.encoder)
    model = resources.require_model(f"{component}(entities=model)")
    return GraphEntityLinker(resources.encoder, model=model, template=load_prompt("link-entity"))


def create_relation_linker(resources: Resources, aliases: str) -> GraphRelationLinker:
    """Return the linker of relations; ``aliases`` is a file of further wordings, or "". Raises UsageError."""
    return GraphRelationLinker(resources.encoder, load_aliases(aliases) if aliases else {})


def min_relation_score(resources: Resources) -> float:
    """Return the lowest score at which the edges of a graph answer a hop.

    Nine in ten relations in other words score more, and one in fifty of the hops that a graph lacks
    (docs/benchmarks). Without an encoder more relations are mistaken for each other.
    """
    return 0.4 if resources.encoder is None else 0.3


@dataclass(frozen=True, slots=True)
class GraphSource:
    """Links the known term and the relation of each hop to the graphs of a base, and follows the edges.

    Edges count if their grounding scores at least ``min_score`` and its entity at least ``min_entity_score``, so that
    a name that a graph does not have is not taken for one that is spelled a little like it. Of several graphs the one
    whose grounding scores best answers.

    Deviations from the paper, which takes the best entity and the best property: the ``k`` best of both are tried
    together, and only pairs with edges count. A relation may be followed from its tail. Properties of a node (dates,
    numbers) are values as well. An unknown is never what a constant of the chain stands for, if there is any other
    value ("films by the director of this film" are other films).
    """

    snapshot: Snapshot
    entities: EntityLinker
    relations: RelationLinker
    k: int = 5
    min_score: float = 0.3
    min_entity_score: float = 0.75
    name: str = "kg"

    @classmethod
    def build(cls, resources: Resources, aliases: str, entities: EntityChoice, component: str) -> GraphSource:
        """Return the source over the graphs of a base; ``aliases`` is a file of wordings of relations, or "".

        Raises UsageError if ``entities`` is ``model`` and there is no model.
        """
        return cls(
            resources.snapshot,
            create_entity_linker(resources, entities, component),
            create_relation_linker(resources, aliases),
            min_score=min_relation_score(resources),
        )

    def fill(self, question: Question, hops: Sequence[Hop], trail: Trail) -> list[Filling | None]:
        """Return the values that the graphs have for each hop, None if none. Raises RemoteError, ModelError."""
        started = time.perf_counter()
        wanted = question.scope.graphs
        names = [name for name in self.snapshot.graphs() if wanted is None or name in wanted]
        by_graph = [self._ask_graph(self.snapshot.graph(name), question, hops, trail) for name in names]
        seconds = (time.perf_counter() - started) / max(len(hops), 1)
        fillings: list[Filling | None] = []
        for number, hop in enumerate(hops):
            best = _best([results[number] for results in by_graph] or [_Result()])
            filling = best.filling if best.score >= self.min_score else None
            candidates = filling.candidates if filling else ()
            trail.add(
                FillStep(
                    self.name,
                    f"#{hop.unknown}",
                    str(hop.triple),
                    match=best.match,
                    values=tuple(candidate.value for candidate in candidates) if filling else None,
                    of=filling.count if filling else None,
                    outcome=None if filling else "not in the graphs",
                    hits=tuple(candidate.hits[-1] for candidate in candidates),
                    seconds=seconds,
                )
            )
            fillings.append(filling)
        return fillings

    def _ask_graph(
        self, graph: PropertyGraph, question: Question, hops: Sequence[Hop], trail: Trail
    ) -> list[_Result]:
        """Return the best result of one graph for each hop."""
        results = [self._follow_from_nodes(graph, hop) for hop in hops]
        # Names are linked for hops without a known node, or whose nodes lead nowhere; all in one call.
        open_hops = [hop for hop, result in zip(hops, results, strict=True) if result.score < self.min_score]
        names = list(dict.fromkeys(candidate.value for hop in open_hops for candidate in hop.known))
        links = self.entities.link(graph, names, question.text, self.k, trail) if names else []
        linked = {
            name: _prefer_exact_names(
                [entity for entity in entities if entity.score >= self.min_entity_score]
            )
            for name, entities in zip(names, links, strict=True)
        }
        return [
            result
            if result.score >= self.min_score
            else _best([result, self._follow_from_names(graph, hop, linked)])
            for hop, result in zip(hops, results, strict=True)
        ]

    def _follow_from_nodes(self, graph: PropertyGraph, hop: Hop) -> _Result:
        """Return the best result of a hop from nodes that an earlier hop found, in this graph or in another one."""
        heads, alignments = _known_rows(self.snapshot, graph, hop)
        if heads is None:
            return _Result()
        relations = self._link_relation(graph, hop, heads)
        scored = [(1.0, row) for row in heads.tolist()[:MAX_KNOWN_VALUES]]
        best = _best(
            [
                self._edges_of_nodes(graph, hop, heads, relations),
                self._properties(graph, hop, scored, relations),
            ]
        )
        if alignments:
            return replace(best, match=replace(best.match or GraphMatch(), same=tuple(alignments)))
        return best

    def _follow_from_names(
        self, graph: PropertyGraph, hop: Hop, linked: Mapping[str, Sequence[LinkedEntity]]
    ) -> _Result:
        """Return the best result of a hop from the nodes that the names of its known values may stand for."""
        by_name = [linked[candidate.value] for candidate in hop.known]
        entities = [entity for group in by_name for entity in group]
        rows = np.array([entity.row for entity in entities], dtype=np.int64)
        relations = self._link_relation(graph, hop, rows)
        scored = [(entity.score, entity.row) for entity in entities]
        return _best(
            [
                self._edges_of_names(graph, hop, by_name, relations),
                self._properties(graph, hop, scored, relations),
            ]
        )

    def _link_relation(self, graph: PropertyGraph, hop: Hop, rows: Rows) -> list[LinkedRelation]:
        """Return the relations that the words of a hop may stand for, in the direction in which it is asked.

        Graphs that were extracted from text have thousands of relations; of these only the relations at ``rows`` are
        compared.
        """
        labels: RelationSource = graph
        if len(graph.relations()) > MANY_RELATIONS:
            labels = RelationLabels(graph.name, tuple(graph.relations_at(rows[:SAMPLED_NODES])))
        linked: Sequence[LinkedRelation] = self.relations.link(labels, [hop.triple.relation], self.k)[0]
        if _has_exact(linked):
            # A relation that has the asked name is meant, as it is written, even if these nodes have no such edge.
            exact = {(each.name, each.inverse) for each in linked if each.score == EXACT_SCORE}
            names = {each.name for each in linked if has_asked_name(hop.triple.relation, each)}
            linked = [
                each for each in linked if each.name in names and (each.name, not each.inverse) not in exact
            ]
        turned = [replace(relation, inverse=relation.inverse ^ hop.inverse) for relation in linked]
        before = _reached_before(hop, graph)
        came_by = None if before is None else (before.relation, not before.inverse)
        # Back along the edges that led here a hop goes only by their own name.
        return [each for each in turned if (each.name, each.inverse) != came_by or each.score == EXACT_SCORE]

    def _edges_of_nodes(
        self, graph: PropertyGraph, hop: Hop, heads: Rows, relations: Sequence[LinkedRelation]
    ) -> _Result:
        """Return the tails of the best relation that known nodes have."""
        previous = _reached_before(hop, graph)
        for relation in relations:
            _, tails = graph.neighbours(heads, relation.name, relation.inverse)
            if not len(tails):
                continue
            return self._reach(graph, heads, relation, relation.score, np.unique(tails), previous)
        return _Result()

    def _edges_of_names(
        self,
        graph: PropertyGraph,
        hop: Hop,
        by_name: Sequence[Sequence[LinkedEntity]],
        relations: Sequence[LinkedRelation],
    ) -> _Result:
        """Return the tails of the best pair of entity and relation, joined with those of the other names by the same
        relation."""
        groundings = [ground(graph, entities, relations, self.k) for entities in by_name]
        every = (grounding for group in groundings for grounding in group)
        first = max(every, key=lambda grounding: grounding.score, default=None)
        if first is None:
            return _Result()
        joined = _join_names(first, groundings, self.min_score)
        heads = np.unique([grounding.entity.row for grounding in joined])
        tails = np.unique(np.concatenate([grounding.rows for grounding in joined]))
        reached = self._reach(graph, heads, first.relation, first.score, tails, None)
        names = tuple(LinkedName(each.entity.name, each.entity.id, each.entity.reason) for each in joined)
        return replace(reached, match=replace(reached.match or GraphMatch(), entities=names))

    def _reach(
        self,
        graph: PropertyGraph,
        heads: Rows,
        relation: LinkedRelation,
        score: float,
        tails: Rows,
        previous: ReachedNodes | None,
    ) -> _Result:
        """Return the tails of a relation, without the constants of the chain if there are others."""
        roots = heads if previous is None else previous.roots
        others = tails[~np.isin(tails, roots)]
        rows = others if len(others) else tails
        reached = ReachedNodes(
            self.snapshot, graph, rows, relation.name, relation.inverse, heads, score, previous
        )
        filling = Filling("kg", reached.candidates(SHOWN_VALUES), reached, graph.name)
        arrow = f"<< {relation.name} <<" if relation.inverse else f">> {relation.name} >>"
        match = GraphMatch(graph.name, arrow, how=relation.reason, score=round(score, 3))
        return _Result(score, filling, match)

    def _properties(
        self,
        graph: PropertyGraph,
        hop: Hop,
        heads: Sequence[tuple[float, int]],
        relations: Sequence[LinkedRelation],
    ) -> _Result:
        """Return the values of the best property of nodes, each a score and a row: dates and numbers are often no
        nodes."""
        if hop.inverse or not heads:
            return _Result()
        entities = graph.entities(np.array([row for _, row in heads], dtype=np.int64))
        best, has_exact = _Result(), _has_exact(relations)
        for (score, _), entity in zip(heads, entities, strict=True):
            linked = self._link_property(graph, hop, entity)
            if linked is None or (has_exact and not has_asked_name(hop.triple.relation, linked)):
                continue
            if score * linked.score > best.score:
                best = _property_result(graph.name, hop, entity, linked, score * linked.score)
        return best

    def _link_property(self, graph: PropertyGraph, hop: Hop, entity: Entity) -> LinkedRelation | None:
        """Return the property of a node that the words of a hop stand for best."""
        if not entity.properties:
            return None
        labels = RelationLabels(graph.name, tuple(sorted(entity.properties)))
        linked = self.relations.link(labels, [hop.triple.relation], self.k)[0]
        return next((relation for relation in linked if not relation.inverse), None)


@dataclass(frozen=True, slots=True)
class _Result:
    """The values of one graph for a hop, how sure it is of them, and how it understood the hop."""

    score: float = 0.0
    filling: Filling | None = None
    match: GraphMatch | None = None


def _best(results: Sequence[_Result]) -> _Result:
    """Return the result with the highest score, the first of equals."""
    return max(results, key=lambda result: result.score)


def _has_exact(relations: Sequence[LinkedRelation]) -> bool:
    """Return whether one of the relations has the name that was asked for."""
    return any(relation.score == EXACT_SCORE for relation in relations)


def _prefer_exact_names(entities: Sequence[LinkedEntity]) -> Sequence[LinkedEntity]:
    """Return the entities that have the asked name, all if none has: if there is a "Film B", the "Film A" is not
    meant, though it may have the edges."""
    return [entity for entity in entities if entity.reason.startswith(EXACT_LINKS)] or entities


def _known_rows(snapshot: Snapshot, graph: PropertyGraph, hop: Hop) -> tuple[Rows | None, list[str]]:
    """Return the nodes of the known values: found in this graph, or aligned with nodes of another one; and the
    alignments in words. None if the values are no nodes."""
    known = hop.known_filling
    if known is None or known.source != "kg":
        return None, []
    ids = [candidate.id for candidate in hop.known if candidate.id]
    if known.graph == graph.name:
        if isinstance(known.all_values, ReachedNodes):
            return known.all_values.rows, []
        return (graph.rows(ids) if ids else None), []
    alignments = [alignment for id in ids for alignment in align_entity_with(snapshot, id, graph.name)]
    if not alignments:
        return None, []
    rows = graph.rows([alignment.target for alignment in alignments])
    return np.unique(rows), [alignment.summary for alignment in alignments]


def _reached_before(hop: Hop, graph: PropertyGraph) -> ReachedNodes | None:
    """Return how the known values of a hop were reached in this graph; None where they were not."""
    known = hop.known_filling
    values = known.all_values if known is not None and known.graph == graph.name else None
    return values if isinstance(values, ReachedNodes) else None


def _property_result(graph: str, hop: Hop, entity: Entity, linked: LinkedRelation, score: float) -> _Result:
    """Return the values of a property of a node."""
    hits_before = next((candidate.hits for candidate in hop.known if candidate.id == entity.id), ())
    value = entity.properties[linked.name]
    candidates = []
    for each in value if isinstance(value, tuple) else (value,):
        hits = (*hits_before, triple_hit(graph, entity, linked.name, str(each), score=score))
        candidates.append(Candidate(str(each), score, hits, quote_triples(hits)))
    match = GraphMatch(graph, property=linked.name, how=linked.reason, score=round(score, 3))
    return _Result(score, Filling("kg", tuple(candidates), graph=graph), match)


def _join_names(
    first: Grounding, groundings: Sequence[Sequence[Grounding]], min_score: float
) -> list[Grounding]:
    """Return a grounding with those of the other names by the same relation: an unknown may have several values."""
    joined = [first]
    for group in groundings:
        if first not in group:
            same = (each for each in group if each.relation == first.relation and each.score >= min_score)
            joined += [grounding for grounding in (next(same, None),) if grounding is not None]
    return joined


#: The source passages of a triple are looked up for this many values.
_VALUES_WITH_PASSAGES = 20


@dataclass(frozen=True, slots=True)
class ReachedNodes:
    """The nodes of a graph that one relation leads to: all values of an unknown, without their names.

    ``rows`` and ``heads`` are rows of the graph, ascending. ``previous`` is how the heads were reached, None if they
    are what a constant of the chain stands for; ``also`` has the other triples that lead to them. ``inverse``: the
    relation was followed from its tails. ``snapshot`` has the passages that triples were extracted from.
    """

    snapshot: Snapshot
    graph: PropertyGraph
    rows: Rows
    relation: str
    inverse: bool
    heads: Rows
    score: float
    previous: ReachedNodes | None = None
    also: tuple[ReachedNodes, ...] = ()

    def share(self, other: ValueSet) -> ReachedNodes | None:
        """Return the nodes that are in both, reached both ways; None for those of another graph."""
        if not isinstance(other, ReachedNodes) or other.graph.name != self.graph.name:
            return None
        return replace(self, rows=np.intersect1d(self.rows, other.rows), also=(*self.also, other))

    def back(self) -> ReachedNodes:
        """Return the heads that lead to these nodes."""
        _, near = self.graph.neighbours(self.rows, self.relation, not self.inverse)
        rows = np.intersect1d(near, self.heads)
        return ReachedNodes(
            self.snapshot, self.graph, rows, self.relation, not self.inverse, self.rows, self.score
        )

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def roots(self) -> Rows:
        """The rows of the constants of the chain from which these nodes were reached."""
        return self.heads if self.previous is None else self.previous.roots

    def candidates(self, most: int) -> tuple[Candidate, ...]:
        """Return the first ``most`` values by id, each with the triples that lead to it, the first hop first."""
        rows = self.rows[:most]
        return tuple(
            Candidate(entity.name, self.score, hits, quote_triples(hits), entity.id)
            for entity, hits in zip(self.graph.entities(rows), self._evidence(rows), strict=True)
        )

    def _evidence(self, rows: Rows) -> list[tuple[Hit, ...]]:
        """Return for each row the triples of one path to it, with their source passages; of several heads the first
        by id counts."""
        offsets, neighbours = self.graph.neighbours(rows, self.relation, not self.inverse)
        starts, ends = offsets[:-1].tolist(), offsets[1:].tolist()
        first_heads = [
            int(near[np.isin(near, self.heads)][0])
            for near in (neighbours[start:end] for start, end in zip(starts, ends, strict=True))
        ]
        heads = np.array(first_heads, dtype=np.int64)
        before = [()] * len(rows) if self.previous is None else self.previous._evidence(heads)
        entities = zip(self.graph.entities(heads), self.graph.entities(rows), strict=True)
        evidence = []
        for place, (path, (source, target)) in enumerate(zip(before, entities, strict=True)):
            passages: tuple[Hit, ...] = ()
            if place < _VALUES_WITH_PASSAGES:
                passages = self._passages(int(heads[place]), int(rows[place]))
            evidence.append((*path, self._triple(source, target), *passages))
        for each in self.also:
            evidence = [(*own, *more) for own, more in zip(evidence, each._evidence(rows), strict=True)]
        return evidence

    def _passages(self, source: int, target: int) -> tuple[Hit, ...]:
        head, tail = (target, source) if self.inverse else (source, target)
        return source_passages(self.snapshot, self.graph, (head, self.relation, tail), self.score)

    def _triple(self, source: Entity, target: Entity) -> Hit:
        head, tail = (target, source) if self.inverse else (source, target)
        return triple_hit(self.graph.name, head, self.relation, tail.name, tail.id, self.score)
