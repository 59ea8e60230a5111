"""One question over several graphs: each holds some of its triples, joined where their nodes are the same (Boer et
al., 2024, Section 5, name "combining multiple knowledge bases" as future work)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import sorted_unique
from clew.core.types import ConstraintCheck
from clew.methods.focus.explanations import find_witnesses
from clew.methods.focus.pattern_builder import PreparedQuestion, exclude_constants
from clew.methods.focus.relation_matcher import ANY_RELATION_SCORE
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

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph, Snapshot

#: Candidates of an unknown that are looked for in another graph; the side with fewer of them goes first.
CARRIED = 5_000
#: Answers that are checked one by one where graphs share several unknowns, and ways to bind these that are tried.
CHECKED, TRIED = 500, 200

#: What the nodes of one graph are in another: by the names of both and the row.
AlignmentCache = dict[tuple[str, str, int], tuple["Rows", tuple[str, ...]]]


@dataclass(slots=True, eq=False)
class GraphPart:
    """What one graph holds of a question: a pattern of its own, with the constraints as they are written; ``asked``
    is the pattern before other graphs narrowed it."""

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
        names = {end for one in self.pattern.triples for end in (one.head, one.tail)}
        names |= {one.variable for one in self.pattern.predicates}
        return frozenset(one.name for one in self.pattern.variables if one.name in names)

    @property
    def confidences(self) -> dict[str, float]:
        """How sure it is, of each constraint as it is written, that it means what the graph has."""
        return dict(zip(self.prepared.texts, self.prepared.confidences, strict=True))

    def restrict(self, name: str, rows: Rows) -> bool:
        """Let an unknown be none but some rows; return whether that is news."""
        before, narrowed = self.pattern.variable(name).rows, restrict_variable(self.pattern, rows, name)
        after = narrowed.variable(name).rows
        if before is not None and after is not None and len(after) == len(before):
            return False
        self.pattern = narrowed
        return True


@dataclass(frozen=True, slots=True)
class CrossGraphJoin:
    """Several graphs that hold a question together. ``main`` has the unknown that is asked for; ``rows`` are its
    candidates there, exactly; ``links`` says for each unknown that two graphs share how its candidates were told the
    same."""

    snapshot: Snapshot
    main: GraphPart
    others: tuple[GraphPart, ...]
    rows: Rows
    links: Mapping[str, tuple[str, ...]]
    _kept: AlignmentCache = field(repr=False)

    def checks(self, row: int) -> dict[str, ConstraintCheck]:
        """Return the constraints that other graphs hold, as they are written, each with the triples by which an
        answer meets it; none where it does not."""
        patterns = self.bind_answer(row)
        if patterns is None:
            return {}
        found: dict[str, ConstraintCheck] = {}
        for other, pattern in zip(self.others, patterns[1:], strict=True):
            asked = replace(pattern, target=min(other.unknowns))
            rows = substitute(other.graph, asked).rows
            assert rows is not None and len(rows)
            hits = find_witnesses(self.snapshot, other.graph, asked, int(rows[0]))
            constraints, sure = (
                zip(hard_constraints(other.pattern), other.texts, strict=True),
                other.confidences,
            )
            found |= {
                text: ConstraintCheck(text, round(sure[text], 3), hits.get(id(one), ()))
                for one, text in constraints
            }
        return found

    def bind_answer(self, row: int) -> list[Pattern] | None:
        """Return the patterns of all parts, that of ``main`` first, for one answer: every unknown that they share is
        the same one node in all of them. None where there is no such node."""
        patterns = [restrict_variable(self.main.pattern, [row]), *(one.pattern for one in self.others)]
        return self._bind(patterns, sorted(shared_unknowns((self.main, *self.others))), [TRIED])

    def _bind(self, patterns: list[Pattern], names: Sequence[str], left: list[int]) -> list[Pattern] | None:
        parts = (self.main, *self.others)
        if not names:
            alive = (_alive(part, pattern) for part, pattern in zip(parts, patterns, strict=True))
            return patterns if all(alive) else None
        holders = [n for n, part in enumerate(parts) if names[0] in part.unknowns]
        sets = {n: substitute(parts[n].graph, replace(patterns[n], target=names[0])).rows for n in holders}
        first, rows = min(sets.items(), key=lambda one: np.inf if one[1] is None else len(one[1]))
        for row in () if rows is None else rows.tolist():
            left[0] -= 1
            if left[0] < 0:
                return None
            bound, one = list(patterns), np.array([row])
            bound[first] = restrict_variable(patterns[first], one, names[0])
            for n in holders:
                if n != first:
                    same_ = _carried(self.snapshot, parts[first].graph, one, parts[n].graph, self._kept)[0]
                    bound[n] = restrict_variable(patterns[n], same_, names[0])
            if (found := self._bind(bound, names[1:], left)) is not None:
                return found
        return None


def join_graphs(snapshot: Snapshot, prepared: Sequence[PreparedQuestion]) -> CrossGraphJoin | None:
    """Return how several graphs hold a question together, where that is more of it than one of them holds alone and
    something meets it; None otherwise.

    Each triple goes to the graph that is surest of it; graphs are narrowed in turn, each by the candidates that the
    others leave for the unknowns they share, until nothing changes. Where no two of them share more than one unknown
    and none is shared round about, that is exact; else the first :data:`CHECKED` answers are checked one by one, and
    no more are taken. None where an unknown that is shared has too many candidates everywhere to be looked for.
    Mounted graphs take no part.
    """
    parts = _parts([one for one in prepared if not one.graph.is_mounted])
    target = prepared[0].pattern.target
    asked = [one for one in parts if target in one.unknowns]
    if len(parts) < 2 or not asked or sum(len(one.texts) for one in parts) <= max(map(_held, prepared)):
        return None
    kept: AlignmentCache = {}
    links: dict[str, tuple[str, ...]] = {}
    if not _narrowed(snapshot, parts, kept, links) or not shared_unknowns(parts) <= links.keys():
        return None
    main = max(asked, key=lambda one: len(one.pattern.triples))
    rows = substitute(main.graph, main.pattern).rows
    if rows is None or not len(rows):
        return None
    found = CrossGraphJoin(snapshot, main, tuple(one for one in parts if one is not main), rows, links, kept)
    if not _is_tree(parts):
        exact = [row for row in rows[:CHECKED].tolist() if found.bind_answer(row) is not None]
        found = replace(found, rows=np.array(exact, dtype=np.int64))
    return found if len(found.rows) else None


def shared_unknowns(parts: Sequence[GraphPart]) -> frozenset[str]:
    """Return the unknowns that several parts have."""
    pairs = ((one, other) for one in parts for other in parts if other is not one)
    return frozenset(name for one, other in pairs for name in one.unknowns & other.unknowns)


def _is_tree(parts: Sequence[GraphPart]) -> bool:
    """Return whether narrowing alone is exact: parts and the unknowns that they share form no cycle."""
    names = sorted(shared_unknowns(parts))
    joins = [
        TypedTriple(f"part {n}", ANY_RELATION, name)
        for n, one in enumerate(parts)
        for name in names
        if name in one.unknowns
    ]
    ends = [*(f"part {n}" for n in range(len(parts))), *names]
    return len(joins) == len(ends) - len(set(connected_terms(joins, ends).values()))


def _parts(prepared: Sequence[PreparedQuestion]) -> list[GraphPart]:
    """Return what each graph holds where every triple and condition goes to the surest; graphs that hold none are
    left out."""
    surest: dict[str, tuple[float, int]] = {}
    for number, one in enumerate(prepared):
        for constraint, text in zip(hard_constraints(one.pattern), one.texts, strict=False):
            if not _stands_in(constraint) and constraint.weight > surest.get(text, (0.0, 0))[0]:
                surest[text] = constraint.weight, number
    parts = []
    for number, one in enumerate(prepared):
        own = [
            (constraint, text)
            for constraint, text in zip(hard_constraints(one.pattern), one.texts, strict=False)
            if surest.get(text, (0.0, -1))[1] == number
        ]
        if own:
            pattern = one.pattern.keep_only([*one.pattern.variables, *(it for it, _ in own)])
            pattern = exclude_constants(replace(pattern, answer_rows=None))
            parts.append(GraphPart(one, pattern, tuple(text for _, text in own), pattern))
    return parts


def hard_constraints(pattern: Pattern) -> list[TypedTriple | Predicate]:
    """Return the triples and predicates of a pattern, in the order of its constraints."""
    return [*pattern.triples, *pattern.predicates]


def _held(one: PreparedQuestion) -> int:
    """Return how many constraints a graph holds by itself, without those that follow any relation."""
    return sum(not _stands_in(it) for it in hard_constraints(one.pattern))


def _stands_in(one: TypedTriple | Predicate) -> bool:
    """Return whether a triple is followed along any relation because the graph has none like its own. One along a
    relation that is little like its words is worth no more, and is that relation."""
    return (
        isinstance(one, TypedTriple) and one.relations == ANY_DIRECTION and one.weight <= ANY_RELATION_SCORE
    )


def _narrowed(
    snapshot: Snapshot, parts: Sequence[GraphPart], kept: AlignmentCache, links: dict[str, tuple[str, ...]]
) -> bool:
    """Narrow the parts by each other until nothing changes; return whether each still has candidates. What was
    carried from one to another is in ``links``."""
    waiting = list(parts)
    while waiting:
        part = waiting.pop(0)
        for name in sorted(part.unknowns):
            others = [one for one in parts if one is not part and name in one.unknowns]
            if not others:
                continue
            # As the target, an unknown has exactly the candidates that the whole of the part leaves it.
            rows = substitute(part.graph, replace(part.pattern, target=name)).rows
            if rows is None or len(rows) > CARRIED:
                continue
            for other in others:
                carried, said = _carried(snapshot, part.graph, rows, other.graph, kept)
                links[name] = tuple(dict.fromkeys((*links.get(name, ()), *said)))
                if not len(carried):
                    return False
                if other.restrict(name, carried) and other not in waiting:
                    waiting.append(other)
    return all(_alive(one, one.pattern) for one in parts)


def _alive(part: GraphPart, pattern: Pattern) -> bool:
    """Return whether a part has candidates."""
    return not substitute(part.graph, replace(pattern, target=min(part.unknowns))).is_empty


def _carried(
    snapshot: Snapshot,
    graph: PropertyGraph,
    rows: Rows,
    other: PropertyGraph,
    kept: AlignmentCache,
) -> tuple[Rows, tuple[str, ...]]:
    """Return the nodes of another graph that some of one are the same as, ascending, and what says so."""
    found, said = [np.empty(0, dtype=np.int64)], list[str]()
    for row, id in zip(rows.tolist(), graph.ids(rows), strict=True):
        key = (graph.name, other.name, row)
        if key not in kept:
            links = align_entity_with(snapshot, id, other.name)
            kept[key] = other.rows([one.target for one in links]), tuple(one.summary for one in links)
        found.append(kept[key][0])
        said += kept[key][1]
    return sorted_unique(np.concatenate(found)), tuple(said)
