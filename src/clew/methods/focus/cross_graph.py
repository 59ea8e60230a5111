"""One question over several graphs: each holds some of its triples, and they are joined where their nodes are the
same.

The paper names "combining multiple knowledge bases" as future work (Boer et al., 2024, Section 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clew.core.arrays import Rows, sorted_unique
from clew.core.protocols import PropertyGraph, Snapshot
from clew.core.types import ConstraintCheck
from clew.methods.focus.explanations import find_witnesses
from clew.methods.focus.pattern_builder import ANY_RELATION_SCORE, PreparedQuestion, exclude_constants
from clew.triples.engine.patterns import (
    ANY_DIRECTION,
    ANY_RELATION,
    Pattern,
    Predicate,
    TypedTriple,
    connected_terms,
    restrict_variable,
)
from clew.triples.engine.substitution import substitute
from clew.triples.linking.entity_alignment import align_entity_with

#: At most so many candidates of an unknown are looked for in another graph.
MAX_ALIGNED = 5_000
#: Answers that are checked one by one where graphs share several unknowns, and bindings of these that are tried.
MAX_CHECKED, MAX_BINDINGS = 500, 200

#: The nodes of another graph that a node is aligned with and the evidence, by the names of both graphs and the row.
AlignmentCache = dict[tuple[str, str, int], tuple["Rows", tuple[str, ...]]]


@dataclass(slots=True, eq=False)
class GraphPart:
    """The part of a question that one graph holds: a pattern of its own, and its constraints as they are written.

    ``original_pattern`` is the pattern before other graphs narrowed it.
    """

    prepared: PreparedQuestion
    pattern: Pattern
    texts: tuple[str, ...]
    original_pattern: Pattern

    @property
    def graph(self) -> PropertyGraph:
        """The graph."""
        return self.prepared.graph

    @property
    def unknowns(self) -> frozenset[str]:
        """The unknowns of its triples and predicates."""
        names = {end for triple in self.pattern.triples for end in (triple.head, triple.tail)}
        names |= {predicate.variable for predicate in self.pattern.predicates}
        return frozenset(variable.name for variable in self.pattern.variables if variable.name in names)

    @property
    def confidences(self) -> dict[str, float]:
        """How sure it is of each constraint, as it is written, that it means what the graph has."""
        return dict(zip(self.prepared.texts, self.prepared.confidences, strict=True))

    def restrict(self, name: str, rows: Rows) -> bool:
        """Restrict an unknown to rows; return whether that excludes any."""
        before, narrowed = self.pattern.variable(name).rows, restrict_variable(self.pattern, rows, name)
        after = narrowed.variable(name).rows
        if before is not None and after is not None and len(after) == len(before):
            return False
        self.pattern = narrowed
        return True


@dataclass(frozen=True, slots=True)
class CrossGraphJoin:
    """Several graphs that hold a question together.

    ``main`` has the target; ``rows`` are exactly its candidates there. ``links`` says for each unknown that graphs
    share which alignments of its candidates were used.
    """

    snapshot: Snapshot
    main: GraphPart
    others: tuple[GraphPart, ...]
    rows: Rows
    links: Mapping[str, tuple[str, ...]]
    _cache: AlignmentCache = field(repr=False)

    def checks(self, row: int) -> dict[str, ConstraintCheck]:
        """Return the constraints that other graphs hold, as they are written, each with the triples by which an
        answer meets it; empty for a row that is no answer."""
        patterns = self.bind_answer(row)
        if patterns is None:
            return {}
        checks: dict[str, ConstraintCheck] = {}
        for part, pattern in zip(self.others, patterns[1:], strict=True):
            of_unknown = replace(pattern, target=min(part.unknowns))
            rows = substitute(part.graph, of_unknown).rows
            assert rows is not None and len(rows)
            hits = find_witnesses(self.snapshot, part.graph, of_unknown, int(rows[0]))
            confidences = part.confidences
            for constraint, text in zip(hard_constraints(part.pattern), part.texts, strict=True):
                confidence = round(confidences[text], 3)
                checks[text] = ConstraintCheck(text, confidence, hits.get(id(constraint), ()))
        return checks

    def bind_answer(self, row: int) -> list[Pattern] | None:
        """Return the patterns of all parts, that of ``main`` first, with the target bound to ``row`` and every shared
        unknown bound to one node in all of them; None if there are no such nodes."""
        patterns = [restrict_variable(self.main.pattern, [row]), *(part.pattern for part in self.others)]
        shared = sorted(shared_unknowns((self.main, *self.others)))
        return self._bind(patterns, shared, iter(range(MAX_BINDINGS)))

    def _bind(
        self, patterns: list[Pattern], names: Sequence[str], attempts: Iterator[int]
    ) -> list[Pattern] | None:
        parts = (self.main, *self.others)
        if not names:
            holds = all(_has_candidates(part, pattern) for part, pattern in zip(parts, patterns, strict=True))
            return patterns if holds else None
        name, *rest = names
        holders = [n for n, part in enumerate(parts) if name in part.unknowns]
        candidates = {n: substitute(parts[n].graph, replace(patterns[n], target=name)).rows for n in holders}
        first, rows = min(candidates.items(), key=lambda item: np.inf if item[1] is None else len(item[1]))
        for row in () if rows is None else rows.tolist():
            if next(attempts, None) is None:
                return None
            bound, node = list(patterns), np.array([row])
            bound[first] = restrict_variable(patterns[first], node, name)
            for n in holders:
                if n != first:
                    same, _ = _align(self.snapshot, parts[first].graph, node, parts[n].graph, self._cache)
                    bound[n] = restrict_variable(patterns[n], same, name)
            if (complete := self._bind(bound, rest, attempts)) is not None:
                return complete
        return None


def join_graphs(snapshot: Snapshot, prepared: Sequence[PreparedQuestion]) -> CrossGraphJoin | None:
    """Return how several graphs hold a question together; None if that is no more than one of them holds alone, or if
    nothing meets it.

    Each constraint goes to the graph that is surest of it. Then graphs are narrowed in turn, each by the candidates
    that the others leave for the unknowns they share, until nothing changes. If no two graphs share more than one
    unknown and the shared unknowns form no cycle, that is exact; otherwise the first :data:`MAX_CHECKED` answers are
    checked one by one, and no more are taken. None also if a shared unknown has too many candidates in every graph.
    Mounted graphs take no part.
    """
    parts = _assign_constraints([question for question in prepared if not question.graph.is_mounted])
    target = prepared[0].pattern.target
    with_target = [part for part in parts if target in part.unknowns]
    if len(parts) < 2 or not with_target:
        return None
    if sum(len(part.texts) for part in parts) <= max(map(_count_held, prepared)):
        return None
    cache: AlignmentCache = {}
    links: dict[str, tuple[str, ...]] = {}
    if not _narrow_in_turn(snapshot, parts, cache, links) or not shared_unknowns(parts) <= links.keys():
        return None
    main = max(with_target, key=lambda part: len(part.pattern.triples))
    rows = substitute(main.graph, main.pattern).rows
    if rows is None or not len(rows):
        return None
    others = tuple(part for part in parts if part is not main)
    join = CrossGraphJoin(snapshot, main, others, rows, links, cache)
    if not _is_tree(parts):
        exact = [row for row in rows[:MAX_CHECKED].tolist() if join.bind_answer(row) is not None]
        join = replace(join, rows=np.array(exact, dtype=np.int64))
    return join if len(join.rows) else None


def shared_unknowns(parts: Sequence[GraphPart]) -> frozenset[str]:
    """Return the unknowns that several parts have."""
    pairs = ((part, other) for part in parts for other in parts if other is not part)
    return frozenset(name for part, other in pairs for name in part.unknowns & other.unknowns)


def hard_constraints(pattern: Pattern) -> list[TypedTriple | Predicate]:
    """Return the triples and predicates of a pattern, in the order of its constraints."""
    return [*pattern.triples, *pattern.predicates]


def _is_tree(parts: Sequence[GraphPart]) -> bool:
    """Return whether narrowing alone is exact: the parts and the unknowns that they share form no cycle."""
    names = sorted(shared_unknowns(parts))
    links = [
        TypedTriple(f"part {n}", ANY_RELATION, name)
        for n, part in enumerate(parts)
        for name in names
        if name in part.unknowns
    ]
    ends = [*(f"part {n}" for n in range(len(parts))), *names]
    return len(links) == len(ends) - len(set(connected_terms(links, ends).values()))


def _assign_constraints(prepared: Sequence[PreparedQuestion]) -> list[GraphPart]:
    """Return what each graph holds if every triple and condition goes to the surest; graphs that hold none are left
    out."""
    surest: dict[str, tuple[float, int]] = {}
    for number, question in enumerate(prepared):
        for constraint, text in zip(hard_constraints(question.pattern), question.texts, strict=False):
            if not _is_placeholder(constraint) and constraint.weight > surest.get(text, (0.0, 0))[0]:
                surest[text] = constraint.weight, number
    parts = []
    for number, question in enumerate(prepared):
        own = [
            (constraint, text)
            for constraint, text in zip(hard_constraints(question.pattern), question.texts, strict=False)
            if surest.get(text, (0.0, -1))[1] == number
        ]
        if own:
            constraints = [*question.pattern.variables, *(constraint for constraint, _ in own)]
            pattern = replace(question.pattern.keep_only(constraints), answer_rows=None)
            pattern = exclude_constants(pattern)
            parts.append(GraphPart(question, pattern, tuple(text for _, text in own), pattern))
    return parts


def _count_held(prepared: PreparedQuestion) -> int:
    """Return how many constraints a graph holds alone, without those that follow any relation."""
    return sum(not _is_placeholder(constraint) for constraint in hard_constraints(prepared.pattern))


def _is_placeholder(constraint: TypedTriple | Predicate) -> bool:
    """Return whether a triple follows any relation because the graph has none like its own. A triple along a relation
    that is little like its words has no higher weight, but follows that relation."""
    return (
        isinstance(constraint, TypedTriple)
        and constraint.relations == ANY_DIRECTION
        and constraint.weight <= ANY_RELATION_SCORE
    )


def _narrow_in_turn(
    snapshot: Snapshot,
    parts: Sequence[GraphPart],
    cache: AlignmentCache,
    links: dict[str, tuple[str, ...]],
) -> bool:
    """Narrow the parts by each other until nothing changes; return whether each still has candidates. The alignments
    that were used are entered into ``links``."""
    waiting = list(parts)
    while waiting:
        part = waiting.pop(0)
        for name in sorted(part.unknowns):
            others = [other for other in parts if other is not part and name in other.unknowns]
            if not others:
                continue
            # As the target, an unknown has exactly the candidates that the whole part leaves it.
            rows = substitute(part.graph, replace(part.pattern, target=name)).rows
            if rows is None or len(rows) > MAX_ALIGNED:
                continue
            for other in others:
                aligned, evidence = _align(snapshot, part.graph, rows, other.graph, cache)
                links[name] = tuple(dict.fromkeys((*links.get(name, ()), *evidence)))
                if not len(aligned):
                    return False
                if other.restrict(name, aligned) and other not in waiting:
                    waiting.append(other)
    return all(_has_candidates(part, part.pattern) for part in parts)


def _has_candidates(part: GraphPart, pattern: Pattern) -> bool:
    return not substitute(part.graph, replace(pattern, target=min(part.unknowns))).is_empty


def _align(
    snapshot: Snapshot,
    graph: PropertyGraph,
    rows: Rows,
    other: PropertyGraph,
    cache: AlignmentCache,
) -> tuple[Rows, tuple[str, ...]]:
    """Return the nodes of another graph that the nodes of one are the same as, ascending, and the evidence."""
    aligned, evidence = [np.empty(0, dtype=np.int64)], list[str]()
    for row, id in zip(rows.tolist(), graph.ids(rows), strict=True):
        key = (graph.name, other.name, row)
        if key not in cache:
            alignments = align_entity_with(snapshot, id, other.name)
            targets = other.rows([alignment.target for alignment in alignments])
            cache[key] = targets, tuple(alignment.summary for alignment in alignments)
        aligned.append(cache[key][0])
        evidence += cache[key][1]
    return sorted_unique(np.concatenate(aligned)), tuple(evidence)
