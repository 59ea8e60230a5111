"""What each constraint of a question leaves, and why a node is no answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.core.errors import UsageError
from clew.triples.query.evaluation import solve_question

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph
    from clew.triples.engine.patterns import Predicate
    from clew.triples.query.question import Count, EdgePattern, GraphQuestion, Ranking


#: Combinations of unknowns that are joined to look for near misses. A constraint that takes more is passed over.
MAX_NEAR_BINDINGS = 200_000


@dataclass(frozen=True, slots=True)
class Element:
    """A constraint of a question: what it is, and how the question writes it. A term stands for its types."""

    part: EdgePattern | Predicate | Count | Ranking | str
    text: str


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """A constraint, how many answers are left after it and all before it, and how many answers the question would
    have without it."""

    text: str
    left: int
    without: int


@dataclass(frozen=True, slots=True)
class MissedConstraints:
    """The constraints that keep a node from being an answer; none if it is one. ``alone``: each of them is enough,
    the node would be an answer if that one were dropped; else all of them would have to be dropped. ``restriction``
    says what else excludes it."""

    texts: tuple[str, ...]
    alone: bool = False
    restriction: str = ""


def list_elements(question: GraphQuestion) -> list[Element]:
    """Return the constraints of a question, types first, in the order in which they are counted."""
    group, names = question.group, question.names
    elements = [
        Element(term, f"{term} : {' or '.join(types)}")
        for term, types in question.types.items()
        if term in group.terms and term not in names
    ]
    elements += [Element(edge, edge.text) for edge in group.edges if edge.text]
    elements += [Element(test, text) for test in group.tests if (text := question.test_texts.get(test))]
    elements += [Element(count, count.edge.text) for count in group.counts]
    elements += [Element(ranking, ranking.text) for ranking in question.rankings]
    return elements


def keep_elements(question: GraphQuestion, elements: Collection[Element]) -> GraphQuestion:
    """Return the question with no other constraints than these."""
    parts = [element.part for element in elements]
    group = question.group
    edges = tuple(edge for edge in group.edges if edge in parts)
    bound = {question.target, *(end for edge in edges for end in edge.ends)}
    tests = tuple(
        test
        for test in group.tests
        if test in parts or (test not in question.test_texts and test.variable in bound)
    )
    counts = tuple(count for count in group.counts if count in parts)
    bound |= {test.variable for test in tests} | {term for count in counts for term in count.outside}
    inner = [term for term in question.types if term not in group.terms]
    types = {
        term: types
        for term, types in question.types.items()
        if term in parts or term in inner or term in question.names
    }
    bound |= {term for term in types if term in group.terms}
    terms = tuple(term for term in group.terms if term in bound)
    rankings = tuple(ranking for ranking in question.rankings if ranking in parts)
    reduced = replace(group, terms=terms, edges=edges, tests=tests, counts=counts)
    return replace(question, group=reduced, types=types, rankings=rankings)


def measure_funnel(graph: PropertyGraph, question: GraphQuestion) -> list[FunnelStep]:
    """Return the constraints with what each leaves. Raises UsageError as
    :func:`~clew.triples.query.evaluation.solve_question` does."""
    elements = list_elements(question)

    def count(selected: Collection[Element]) -> int:
        return len(solve_question(graph, keep_elements(question, selected)))

    return [
        FunnelStep(element.text, count(elements[: place + 1]), count(_others(elements, [element])))
        for place, element in enumerate(elements)
    ]


def find_near_misses(graph: PropertyGraph, question: GraphQuestion, limit: int) -> Rows:
    """Return nodes that would be answers if one constraint were dropped, ascending for each constraint in turn.

    A constraint is passed over without which more than ``limit`` nodes are left, or nothing but types restricts the
    answer: it tells little; and one without which too many combinations of unknowns are left to join. Raises
    UsageError as :func:`~clew.triples.query.evaluation.solve_question` does.
    """
    elements = [element for element in list_elements(question) if element.part not in question.rankings]
    unranked = replace(question, rankings=())
    answers = solve_question(graph, question)
    near = dict[int, None]()
    for element in elements:
        reduced = keep_elements(unranked, _others(elements, [element]))
        group = reduced.group
        ends = {end for edge in group.edges for end in edge.ends} | {test.variable for test in group.tests}
        if reduced.target not in ends:
            continue
        try:
            rows = np.setdiff1d(solve_question(graph, reduced, MAX_NEAR_BINDINGS), answers)
        except UsageError:
            continue
        if len(rows) <= limit:
            near |= dict.fromkeys(rows.tolist())
    return np.array(list(near)[:limit], dtype=np.int64)


def find_missed_constraints(graph: PropertyGraph, question: GraphQuestion, row: int) -> MissedConstraints:
    """Return the constraints that keep a node from being an answer: each that is enough alone, else a smallest set
    that cannot be made smaller. Superlatives come last: where a node misses nothing else, it is not the best.

    Raises UsageError as :func:`~clew.triples.query.evaluation.solve_question` does.
    """
    if row in solve_question(graph, question).tolist():
        return MissedConstraints(())
    ranked = [element for element in list_elements(question) if element.part in question.rankings]
    hard = _others(list_elements(question), ranked)
    restricted = replace(question, rankings=(), answer_rows=np.array([row], dtype=np.int64))

    if question.answer_rows is not None and row not in question.answer_rows.tolist():
        restriction = "it is not of the types that may answer (clew graph add --answers)"
    else:
        restriction = ""

    def holds(selected: Collection[Element]) -> bool:
        return len(solve_question(graph, keep_elements(restricted, selected))) > 0

    if holds(hard):
        return MissedConstraints(tuple(element.text for element in ranked), len(ranked) == 1, restriction)
    alone = [element for element in hard if holds(_others(hard, [element]))]
    if alone:
        return MissedConstraints(tuple(element.text for element in alone), True, restriction)
    satisfied: list[Element] = []
    for element in hard:
        if holds([*satisfied, element]):
            satisfied.append(element)
    return MissedConstraints(tuple(element.text for element in _others(hard, satisfied)), False, restriction)


def _others(elements: Iterable[Element], excluded: Collection[Element]) -> list[Element]:
    return [element for element in elements if not any(element is other for other in excluded)]
