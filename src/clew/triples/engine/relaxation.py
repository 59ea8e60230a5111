"""Find constraints that contradict each other, and drop the weakest of them."""

from __future__ import annotations

import time
from dataclasses import dataclass

from clew.core.protocols import PropertyGraph
from clew.triples.engine.patterns import Constraint, Pattern, restrict_variable
from clew.triples.engine.substitution import Substitution, substitute


def relax(graph: PropertyGraph, pattern: Pattern) -> Substitution:
    """Return what the terms of a pattern can be, giving up constraints until there is an answer.

    As long as there is none, the weakest constraint of a smallest conflict (:func:`find_conflict`) is given up, the
    last of equally weak ones. Where no row may answer at all nothing helps, and the result is empty.
    """
    started = time.perf_counter()
    remaining, relaxed = list(pattern.constraints), list["Constraint"]()
    conflicts = list[tuple["Constraint", ...]]()
    substitution = substitute(graph, pattern)
    rounds = substitution.rounds
    while substitution.is_empty and remaining:
        conflict = find_conflict(graph, pattern.keep_only(remaining))
        if not conflict:
            break
        weakest = min(reversed(conflict), key=lambda constraint: constraint.weight)
        conflicts.append(conflict)
        relaxed.append(weakest)
        remaining = [constraint for constraint in remaining if constraint is not weakest]
        substitution = substitute(graph, pattern.keep_only(remaining))
        rounds += substitution.rounds
    seconds = time.perf_counter() - started
    return Substitution(
        pattern.target, substitution.candidates, rounds, seconds, tuple(relaxed), tuple(conflicts)
    )


def find_conflict(graph: PropertyGraph, pattern: Pattern) -> tuple[Constraint, ...]:
    """Return constraints that cannot hold together although any fewer of them can; none if all can hold.

    Strong constraints are left out first, so that of several such sets one with weak constraints is returned.
    """
    if not substitute(graph, pattern).is_empty or substitute(graph, pattern.keep_only(())).is_empty:
        return ()
    conflict = list(pattern.constraints)
    for constraint in sorted(pattern.constraints, key=lambda constraint: -constraint.weight):
        others = [other for other in conflict if other is not constraint]
        if substitute(graph, pattern.keep_only(others)).is_empty:
            conflict = others
    return tuple(conflict)


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a row is no answer: the constraints that exclude it, none for a row that is an answer.

    ``alone``: each of them excludes the row by itself, and without any one of them it would be an answer; otherwise
    all of them have to be given up. ``restricted``: the row is not among those that may answer, whatever the
    constraints.
    """

    row: int
    constraints: tuple[Constraint, ...] = ()
    alone: bool = False
    restricted: bool = False


def why_not(graph: PropertyGraph, pattern: Pattern, row: int) -> WhyNot:
    """Return which constraints of a pattern exclude a row of the target."""
    restricted = restrict_variable(pattern, (row,))
    if substitute(graph, restricted.keep_only(())).is_empty:
        return WhyNot(row, restricted=True)
    if not substitute(graph, restricted).is_empty:
        return WhyNot(row)
    # The target's types are a constraint, and the restricted pattern has another object for them.
    original = dict(zip(map(id, restricted.constraints), pattern.constraints, strict=True))
    alone = [
        constraint
        for constraint in restricted.constraints
        if not substitute(graph, restricted.without([constraint])).is_empty
    ]
    if alone:
        return WhyNot(row, tuple(original[id(constraint)] for constraint in alone), alone=True)
    relaxed = relax(graph, restricted).relaxed
    return WhyNot(row, tuple(original[id(constraint)] for constraint in relaxed))
