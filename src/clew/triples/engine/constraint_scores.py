"""Which constraints each row of the target meets: what ranks answers, and explains them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from clew.triples.engine.patterns import (
    Constant,
    Constraint,
    Pattern,
    Predicate,
    TypedTriple,
    restrict_variable,
)
from clew.triples.engine.substitution import substitute

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows
    from clew.core.protocols import PropertyGraph


def constraint_scores(graph: PropertyGraph, pattern: Pattern, rows: Rows) -> Floats:
    """Return how far each row meets each constraint of ``pattern.constraints``, (rows, constraints), from 0 to 1.

    A constraint is looked at by itself, with the triples that lead from the target to it and the types of what they
    lead over; for one that counts, with all that says what is counted. 1: met; 0: not. Where an end of a triple
    is a constant with several candidates, the score of the best candidate by which it is met. What nothing joins to
    the target is met by all rows or by none.
    """
    wanted = np.asarray(rows, dtype=np.int64)
    found = np.zeros((len(wanted), len(pattern.constraints)))
    for column, constraint in enumerate(pattern.constraints):
        part = restrict_variable(_alone(pattern, constraint), wanted)
        for score, some in _levels(part, constraint):
            fits = substitute(graph, some)
            passed = np.isin(wanted, fits.rows if fits.rows is not None else wanted)
            found[passed & (found[:, column] == 0), column] = score
    return found


def _levels(pattern: Pattern, constraint: Constraint) -> list[tuple[float, Pattern]]:
    """Return the pattern with the candidates of a triple's constant of at least each score, best first."""
    ends = (constraint.head, constraint.tail) if isinstance(constraint, TypedTriple) else ()
    constant = next((one for one in pattern.constants if one.name in ends and one.scores), None)
    negative = isinstance(constraint, TypedTriple) and constraint.quantifier is not None
    if constant is None or negative:
        return [(1.0, pattern)]
    made = []
    for score in sorted(set(constant.scores), reverse=True):
        kept = [n for n, one in enumerate(constant.scores) if one >= score]
        fewer = Constant(constant.name, tuple(constant.rows[n] for n in kept))
        constants = tuple(fewer if one is constant else one for one in pattern.constants)
        made.append((score, replace(pattern, constants=constants)))
    return made


def _alone(pattern: Pattern, constraint: Constraint) -> Pattern:
    """Return the pattern of one constraint, the triples from the target to it, and what it counts."""
    if isinstance(constraint, TypedTriple):
        ends = {constraint.head, constraint.tail}
    else:
        ends = {constraint.variable if isinstance(constraint, Predicate) else constraint.name}
    kept: list[Constraint] = [constraint, *_path(pattern, ends, constraint)]
    if isinstance(constraint, TypedTriple) and constraint.quantifier is not None:
        kept += _counted(pattern, constraint)
    target = pattern.variable(pattern.target)
    for variable in pattern.variables:
        if variable.types and (variable is not target or variable is constraint):
            kept.append(variable)
    alone = replace(pattern, answer_rows=None).keep_only(kept)
    free = replace(alone.variable(alone.target), rows=None, excluded=())
    return replace(
        alone, variables=tuple(free if one.name == alone.target else one for one in alone.variables)
    )


def _path(pattern: Pattern, ends: set[str], constraint: Constraint) -> list[TypedTriple]:
    """Return the fewest triples that lead from the target to one of ``ends``."""
    paths: dict[str, list[TypedTriple]] = {pattern.target: []}
    waiting = [pattern.target]
    for name in waiting:
        if name in ends:
            return paths[name]
        for triple in pattern.triples:
            if triple.quantifier is None and triple is not constraint and name in (triple.head, triple.tail):
                for other in (triple.head, triple.tail):
                    if other not in paths:
                        paths[other] = [*paths[name], triple]
                        waiting.append(other)
    return []


def _counted(pattern: Pattern, constraint: TypedTriple) -> list[Constraint]:
    """Return the constraints on what a triple counts: those on its tail, and on what is joined to that without the
    target."""
    seen, waiting, kept = (
        {constraint.tail, pattern.target, constraint.head},
        [constraint.tail],
        list[Constraint](),
    )
    known = {one.name for one in pattern.constants}
    for name in waiting:
        if name in known:  # what else leads to a constant says nothing of what is counted
            continue
        kept += [one for one in pattern.predicates if one.variable == name]
        for triple in pattern.triples:
            if triple is constraint or name not in (triple.head, triple.tail):
                continue
            if triple.quantifier is not None and triple.head != name:
                continue
            kept.append(triple)
            new = {triple.head, triple.tail} - seen
            seen |= new
            waiting += sorted(new)
    return kept
