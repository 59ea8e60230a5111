"""Constraints that contradict each other: which, and what is left when the weakest of them is given up."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.triples.engine.patterns import restrict_variable
from clew.triples.engine.substitution import Substitution, substitute

if TYPE_CHECKING:
    from clew.core.protocols import PropertyGraph
    from clew.triples.engine.patterns import Constraint, Pattern


def relax(graph: PropertyGraph, pattern: Pattern) -> Substitution:
    """Return what the terms of a pattern can be, giving up constraints until there is an answer.

    While there is none, constraints are looked for that cannot hold together, none of which can be left out, and the
    weakest of them, of equal ones the last, is given up. Where there are no rows that may answer at all, nothing
    helps, and the result is empty.
    """
    started = time.perf_counter()
    found, gone, conflicts = (
        substitute(graph, pattern),
        list["Constraint"](),
        list[tuple["Constraint", ...]](),
    )
    left, rounds = list(pattern.constraints), found.rounds
    while found.is_empty and left:
        conflict = find_conflict(graph, pattern.keep_only(left))
        if not conflict:
            break
        weakest = min(reversed(conflict), key=lambda one: one.weight)
        conflicts.append(conflict)
        gone.append(weakest)
        left = [one for one in left if one is not weakest]
        found = substitute(graph, pattern.keep_only(left))
        rounds += found.rounds
    seconds = time.perf_counter() - started
    return Substitution(found.target, found.candidates, rounds, seconds, tuple(gone), tuple(conflicts))


def find_conflict(graph: PropertyGraph, pattern: Pattern) -> tuple[Constraint, ...]:
    """Return constraints that cannot hold together, none of which can be left out; none where all can.

    Strong ones are left out first, so that of several such sets one with weak constraints is found.
    """
    left = list(pattern.constraints)
    if not substitute(graph, pattern).is_empty or substitute(graph, pattern.keep_only(())).is_empty:
        return ()
    for one in sorted(pattern.constraints, key=lambda one: -one.weight):
        fewer = [other for other in left if other is not one]
        if substitute(graph, pattern.keep_only(fewer)).is_empty:
            left = fewer
    return tuple(left)


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a row is no answer: the constraints that drop it; none for one that is.

    ``alone``: each of them does so by itself, and without any one of them the row would be an answer; else all of
    them have to be given up. ``restricted``: it is none of the rows that may answer, whatever the constraints.
    """

    row: int
    constraints: tuple[Constraint, ...] = ()
    alone: bool = False
    restricted: bool = False


def why_not(graph: PropertyGraph, pattern: Pattern, row: int) -> WhyNot:
    """Return which constraints of a pattern drop a row of the target."""
    asked = restrict_variable(pattern, (row,))
    if substitute(graph, asked.keep_only(())).is_empty:
        return WhyNot(row, restricted=True)
    if not substitute(graph, asked).is_empty:
        return WhyNot(row)
    constraints = asked.constraints
    own = dict(zip(map(id, constraints), pattern.constraints, strict=True))
    alone = [one for one in constraints if not substitute(graph, asked.without([one])).is_empty]
    if alone:
        return WhyNot(row, tuple(own[id(one)] for one in alone), alone=True)
    return WhyNot(row, tuple(own[id(one)] for one in relax(graph, asked).relaxed))
