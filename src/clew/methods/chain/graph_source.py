"""Unknowns filled from knowledge graphs (Su et al., NAACL 2024, Algorithm 1)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from clew.core.component import Resources
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import EntityLinker, PropertyGraph, RelationLinker, RelationSource, Snapshot, Trail
from clew.core.steps import FillStep, GraphMatch, LinkedName
from clew.core.types import Entity, Hit, LinkedEntity, LinkedRelation, Question
from clew.methods.chain.answer_types import contradicts_relation
from clew.methods.chain.unknowns import MAX_KNOWN_VALUES, SHOWN_VALUES, Candidate, Filling, Hop
from clew.methods.triple_hits import quote_triples, source_passages, triple_hit
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

if TYPE_CHECKING:
    from clew.core.arrays import Rows


#: How a node was found that has the name itself (:mod:`clew.triples.linking.entities`).
EXACT_LINKS = ("name", "alias")
#: A graph with more relations than this has been extracted from text; of so many nodes the relations are compared.
MANY_RELATIONS, SAMPLED_NODES = 500, 50

#: Who chooses among the entities that a name may stand for: the ranking alone, or the model among the first.
EntityChoice = Literal["ranked", "model"]


def create_entity_linker(resources: Resources, entities: EntityChoice, component: str) -> EntityLinker:
    """Return the linker of names. Raises UsageError, naming the component, where it needs a model without one."""
    if entities == "ranked":
        return GraphEntityLinker(resources.encoder)
    model = resources.require_model(f"{component}(entities=model)")
    return GraphEntityLinker(resources.encoder, model=model, template=load_prompt("link-entity"))


def create_relation_linker(resources: Resources, aliases: str) -> GraphRelationLinker:
    """Return the linker of relations, with the wordings of the file ``aliases``, if any. Raises UsageError."""
    return GraphRelationLinker(resources.encoder, load_aliases(aliases) if aliases else {})


def min_relation_score(resources: Resources) -> float:
    """Return the score from which on a graph's edges are taken for a hop (docs/benchmarks.md: of relations in other
    words, nine in ten score more; of hops that a graph lacks, one in fifty). Words alone mistake more for each
    other."""
    return 0.4 if resources.encoder is None else 0.3


@dataclass(frozen=True, slots=True)
class GraphSource:
    """Links the known term and the relation of each hop to the base's graphs, and follows the edges.

    ``least`` is the score from which on a grounding is taken at all, ``same`` that of the entity alone: what a graph
    does not hold must not become what is spelled a little like it. Of several graphs the one whose grounding scores
    best answers. Deviations from the paper, which takes the one best entity and the one best property: the ``k`` best
    of both are tried together, and only pairs that have edges count; a relation may run from its tail; what a graph
    keeps as properties of a node (dates, numbers) is found as well; and an unknown never is what a constant of the
    chain stands for, where there is anything else ("films by the director of this film" are other films).
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

        Raises UsageError where ``entities`` is ``model`` and there is none.
        """
        return cls(
            resources.snapshot,
            create_entity_linker(resources, entities, component),
            create_relation_linker(resources, aliases),
            min_score=min_relation_score(resources),
        )

    def fill(self, question: Question, asks: Sequence[Hop], trail: Trail) -> list[Filling | None]:
        """Return what the graphs hold for each hop, None where they do not. Raises RemoteError, ModelError."""
        started = time.perf_counter()
        graphs = [self.snapshot.graph(name) for name in self._names(question)]
        tried = [self._asked(graph, question, asks, trail) for graph in graphs]
        seconds = (time.perf_counter() - started) / max(len(asks), 1)
        made: list[Filling | None] = []
        for number, ask in enumerate(asks):
            best = max((one[number] for one in tried), key=lambda one: one.score, default=_Tried())
            found = best.found if best.score >= self.min_score else None
            trail.add(
                FillStep(
                    self.name,
                    f"#{ask.unknown}",
                    str(ask.triple),
                    match=best.match,
                    values=tuple(one.value for one in found.candidates) if found else None,
                    of=found.count if found else None,
                    outcome=None if found else "not in the graphs",
                    hits=tuple(one.hits[-1] for one in found.candidates) if found else (),
                    seconds=seconds,
                )
            )
            made.append(found)
        return made

    def _names(self, question: Question) -> list[str]:
        wanted = question.scope.graphs
        return [name for name in self.snapshot.graphs() if wanted is None or name in wanted]

    def _asked(
        self, graph: PropertyGraph, question: Question, asks: Sequence[Hop], trail: Trail
    ) -> list[_Tried]:
        """Return the best that one graph has for each hop."""
        made = [self._known(graph, ask) for ask in asks]
        # Names are linked where no node is known, or other nodes may stand for the same thing; all in one call.
        open_ = [ask for ask, one in zip(asks, made, strict=True) if one.score < self.min_score]
        names = list(dict.fromkeys(value.value for ask in open_ for value in ask.known))
        found = self.entities.link(graph, names, question.text, self.k, trail) if names else []
        linked = {
            name: _meant([one for one in some if one.score >= self.min_entity_score])
            for name, some in zip(names, found, strict=True)
        }
        return [
            one
            if one.score >= self.min_score
            else max((one, self._named(graph, ask, linked)), key=lambda tried: tried.score)
            for ask, one in zip(asks, made, strict=True)
        ]

    def _known(self, graph: PropertyGraph, ask: Hop) -> _Tried:
        """Return the best of a hop from nodes that are known already, here or in another graph."""
        heads, links = _rows(self.snapshot, graph, ask)
        if heads is None:
            return _Tried()
        ways = self._ways(graph, ask, heads)
        edges = self._from_rows(graph, ask, heads, ways)
        own = self._own(graph, ask, [(1.0, row) for row in heads.tolist()[:MAX_KNOWN_VALUES]], ways)
        best = max((edges, own), key=lambda one: one.score)
        if links:
            return replace(best, match=replace(best.match or GraphMatch(), same=tuple(links)))
        return best

    def _named(self, graph: PropertyGraph, ask: Hop, linked: Mapping[str, Sequence[LinkedEntity]]) -> _Tried:
        """Return the best of a hop from the nodes that its names may stand for."""
        some = [linked[value.value] for value in ask.known]
        near = np.array([one.row for each in some for one in each], dtype=np.int64)
        ways = self._ways(graph, ask, near)
        edges = self._from_names(graph, ask, some, ways)
        own = self._own(graph, ask, [(one.score, one.row) for each in some for one in each], ways)
        return max((edges, own), key=lambda one: one.score)

    def _ways(self, graph: PropertyGraph, ask: Hop, near: Rows) -> list[LinkedRelation]:
        """Return the relations that the words of a hop may stand for, turned the way in which it is asked.

        Graphs that were extracted from text have thousands of relations: there only those of the nodes that may be
        meant are compared.
        """
        labels: RelationSource = graph
        if len(graph.relations()) > MANY_RELATIONS:
            labels = RelationLabels(graph.name, tuple(graph.relations_at(near[:SAMPLED_NODES])))
        found = self.relations.link(labels, [ask.triple.relation], self.k)[0]
        # What is asked for by its own name is no other relation: the graph does not hold it for these nodes, then.
        exact = {one.name for one in found if has_asked_name(ask.triple.relation, one)}
        some = [one for one in found if one.name in exact] if _exact(found) else found
        return [replace(one, inverse=one.inverse ^ ask.inverse) for one in some]

    def _from_rows(
        self, graph: PropertyGraph, ask: Hop, heads: Rows, ways: Sequence[LinkedRelation]
    ) -> _Tried:
        """Return where the best relation leads from nodes that are known."""
        every = (
            ask.known_filling.all_values
            if ask.known_filling and ask.known_filling.graph == graph.name
            else None
        )
        before = every if isinstance(every, ReachedNodes) else None
        for way in ways:
            _, tails = graph.neighbours(heads, way.name, way.inverse)
            if not len(tails):
                continue
            made = _tried(self.snapshot, graph, heads, way, way.score, np.unique(tails), before)
            if not _strays(ask, made):
                return made
        return _Tried()

    def _from_names(
        self,
        graph: PropertyGraph,
        ask: Hop,
        linked: Sequence[Sequence[LinkedEntity]],
        ways: Sequence[LinkedRelation],
    ) -> _Tried:
        """Return where the best pair of entity and relation leads, of each of the names, joined if they agree."""
        grounded = [ground(graph, some, ways, self.k) for some in linked]
        for first in sorted((one for some in grounded for one in some), key=lambda one: -one.score):
            same = _same(first, grounded, self.min_score)
            heads = np.unique([one.entity.row for one in same])
            tails = np.unique(np.concatenate([one.rows for one in same]))
            made = _tried(self.snapshot, graph, heads, first.relation, first.score, tails, None)
            if not _strays(ask, made):
                entities = tuple(
                    LinkedName(one.entity.name, one.entity.id, one.entity.reason) for one in same
                )
                return replace(made, match=replace(made.match or GraphMatch(), entities=entities))
        return _Tried()

    def _own(
        self,
        graph: PropertyGraph,
        ask: Hop,
        heads: Iterable[tuple[float, int]],
        ways: Sequence[LinkedRelation],
    ) -> _Tried:
        """Return the values of the property of the nodes that fits best: dates and numbers are often no nodes."""
        scored = list(heads)
        if ask.inverse or not scored:
            return _Tried()
        entities = graph.entities(np.array([row for _, row in scored], dtype=np.int64))
        best, exact = _Tried(), _exact(ways)
        for (score, _), entity in zip(scored, entities, strict=True):
            found = self._property(graph, ask, entity)
            if found and exact and not has_asked_name(ask.triple.relation, found):
                continue
            if found and score * found.score > best.score:
                made = _valued(graph.name, ask, entity, found, score * found.score)
                best = best if _strays(ask, made) else made
        return best

    def _property(self, graph: PropertyGraph, ask: Hop, entity: Entity) -> LinkedRelation | None:
        if not entity.properties:
            return None
        labels = RelationLabels(graph.name, tuple(sorted(entity.properties)))
        found = self.relations.link(labels, [ask.triple.relation], self.k)[0]
        return next((one for one in found if not one.inverse), None)


@dataclass(frozen=True, slots=True)
class _Tried:
    """What one graph has for a hop, how sure it is, and what the trail says of it."""

    score: float = 0.0
    found: Filling | None = None
    match: GraphMatch | None = None


def _exact(ways: Sequence[LinkedRelation]) -> bool:
    """Return whether a relation of the graph is called as it is asked for."""
    return any(one.score == EXACT_SCORE for one in ways)


def _meant(some: Sequence[LinkedEntity]) -> Sequence[LinkedEntity]:
    """Return the candidates that are called as they are asked for, all where none is: where there is a "Film B", the
    "Film A" is not meant, though it may have the edges."""
    return [one for one in some if one.reason.startswith(EXACT_LINKS)] or some


def _rows(snapshot: Snapshot, graph: PropertyGraph, ask: Hop) -> tuple[Rows | None, list[str]]:
    """Return the nodes that the known values are, where they came from this graph or are the same as in another, and
    then what says so; None where neither is known."""
    if ask.known_filling is None or ask.known_filling.source != "kg":
        return None, []
    if ask.known_filling.graph == graph.name and isinstance(ask.known_filling.all_values, ReachedNodes):
        return ask.known_filling.all_values.rows, []
    ids = [one.id for one in ask.known if one.id]
    if ask.known_filling.graph == graph.name:
        return (graph.rows(ids) if ids else None), []
    links = [link for id in ids for link in align_entity_with(snapshot, id, graph.name)]
    if not links:
        return None, []
    return np.unique(graph.rows([link.target for link in links])), [link.summary for link in links]


def _tried(
    snapshot: Snapshot,
    graph: PropertyGraph,
    heads: Rows,
    way: LinkedRelation,
    score: float,
    tails: Rows,
    before: ReachedNodes | None,
) -> _Tried:
    roots = heads if before is None else before.roots
    others = tails[~np.isin(tails, roots)]
    rows = others if len(others) else tails
    reached = ReachedNodes(snapshot, graph, rows, way.name, way.inverse, heads, score, before)
    found = Filling("kg", reached.candidates(SHOWN_VALUES), reached, graph.name)
    arrow = f"<< {way.name} <<" if way.inverse else f">> {way.name} >>"
    return _Tried(score, found, GraphMatch(graph.name, arrow, how=way.reason, score=round(score, 3)))


def _valued(graph: str, ask: Hop, entity: Entity, way: LinkedRelation, score: float) -> _Tried:
    before = next((one.hits for one in ask.known if one.id == entity.id), ())
    given = entity.properties[way.name]
    candidates = []
    for value in given if isinstance(given, tuple) else (given,):
        hits = (*before, triple_hit(graph, entity, way.name, str(value), score=score))
        candidates.append(Candidate(str(value), score, hits, quote_triples(hits)))
    match = GraphMatch(graph, property=way.name, how=way.reason, score=round(score, 3))
    return _Tried(score, Filling("kg", tuple(candidates), graph=graph), match)


def _strays(ask: Hop, made: _Tried) -> bool:
    """Return whether nothing that was found can be what the relation of a hop leads to."""
    values = made.found.candidates if made.found else ()
    return not ask.inverse and all(contradicts_relation(ask.triple.relation, one.value) for one in values)


def _same(first: Grounding, grounded: Sequence[Sequence[Grounding]], least: float) -> list[Grounding]:
    """Return a grounding with those of the other names by the same relation: an unknown may have several values."""
    alike = [
        next((one for one in some if one.relation == first.relation and one.score >= least), None)
        for some in grounded
        if first not in some
    ]
    return [first, *(one for one in alike if one is not None)]


#: Of so many values the passages are looked up that they were extracted from.
_SAID = 20


@dataclass(frozen=True, slots=True)
class ReachedNodes:
    """The nodes of a graph that one relation leads to from others: all values of an unknown, without their names.

    ``rows`` and ``heads`` are rows of the graph, ascending; ``before`` is how the heads were reached, None where they
    are what a constant of the chain stands for. ``inverse``: the relation was followed from its tails. ``snapshot``
    is where the passages are that a triple was extracted from.
    """

    snapshot: Snapshot
    graph: PropertyGraph
    rows: Rows
    relation: str
    inverse: bool
    heads: Rows
    score: float
    previous: ReachedNodes | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def roots(self) -> Rows:
        """The rows that constants of the chain stand for, from which these were reached."""
        return self.heads if self.previous is None else self.previous.roots

    def candidates(self, most: int) -> tuple[Candidate, ...]:
        """Return the first ``most`` values by id, each with the triples that lead to it, the first hop first."""
        rows = self.rows[:most]
        paths = self._paths(rows)
        return tuple(
            Candidate(one.name, self.score, hits, quote_triples(hits), one.id)
            for one, hits in zip(self.graph.entities(rows), paths, strict=True)
        )

    def _paths(self, rows: Rows) -> list[tuple[Hit, ...]]:
        """Return for each row the triples of one path that leads to it; of several heads the first by id."""
        offsets, near = self.graph.neighbours(rows, self.relation, not self.inverse)
        heads = np.array(
            [
                self._first(near[start:end])
                for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
            ],
            dtype=np.int64,
        )
        before = [()] * len(rows) if self.previous is None else self.previous._paths(heads)
        ends = zip(self.graph.entities(heads), self.graph.entities(rows), strict=True)
        said = [
            self._said(*pair) if place < _SAID else ()
            for place, pair in enumerate(zip(heads.tolist(), rows.tolist(), strict=True))
        ]
        return [
            (*path, self._fact(*pair), *passages)
            for path, pair, passages in zip(before, ends, said, strict=True)
        ]

    def _said(self, source: int, target: int) -> tuple[Hit, ...]:
        """Return the passages that a triple was extracted from."""
        head, tail = (target, source) if self.inverse else (source, target)
        return source_passages(self.snapshot, self.graph, (head, self.relation, tail), self.score)

    def _first(self, near: Rows) -> int:
        return int(near[np.isin(near, self.heads)][0])

    def _fact(self, source: Entity, target: Entity) -> Hit:
        head, tail = (target, source) if self.inverse else (source, target)
        return triple_hit(self.graph.name, head, self.relation, tail.name, tail.id, self.score)
