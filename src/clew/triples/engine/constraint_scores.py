"""How far each row of the target meets each constraint: this ranks answers and explains them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from clew.core.arrays import Floats, Rows
from clew.core.protocols import PropertyGraph
from clew.triples.engine.patterns import (
    Constant,
    Constraint,
    Pattern,
    Predicate,
    TypedTriple,
    restrict_variable,
)
from clew.triples.engine.substitution import substitute


def constraint_scores(graph: PropertyGraph, pattern: Pattern, rows: Rows) -> Floats:
    """Return how far each row meets each constraint of ``pattern.constraints``, (rows, constraints), from 0 to 1.

    Each constraint is looked at by itself, with the triples that lead from the target to it and the types of the
    terms on the way; a quantified triple also with all that restricts what it counts. 1 is met and 0 is not. Where an
    end of a triple is a constant with several candidates, it is the score of the best candidate by which the triple
    is met. A constraint that nothing connects to the target is met by all rows or by none.
    """
    wanted = np.asarray(rows, dtype=np.int64)
    scores = np.zeros((len(wanted), len(pattern.constraints)))
    for column, constraint in enumerate(pattern.constraints):
        alone = restrict_variable(_isolate(pattern, constraint), wanted)
        for score, narrowed in _by_constant_score(alone, constraint):
            met = substitute(graph, narrowed).rows
            meets = np.isin(wanted, wanted if met is None else met)
            scores[meets & (scores[:, column] == 0), column] = score
    return scores


def _by_constant_score(pattern: Pattern, constraint: Constraint) -> Iterator[tuple[float, Pattern]]:
    """Yield the pattern with those candidates of a triple's constant that have at least a score, best score first."""
    constant = None
    if isinstance(constraint, TypedTriple) and constraint.quantifier is None:
        ends = (constraint.head, constraint.tail)
        constant = next(
            (candidate for candidate in pattern.constants if candidate.name in ends and candidate.scores),
            None,
        )
    if constant is None:
        yield 1.0, pattern
        return
    for score in sorted(set(constant.scores), reverse=True):
        rows = tuple(row for row, own in zip(constant.rows, constant.scores, strict=True) if own >= score)
        constants = tuple(
            Constant(constant.name, rows) if other is constant else other for other in pattern.constants
        )
        yield score, replace(pattern, constants=constants)


def _isolate(pattern: Pattern, constraint: Constraint) -> Pattern:
    """Return the pattern of one constraint: the triples from the target to it, and the restrictions of its count."""
    if isinstance(constraint, TypedTriple):
        ends = {constraint.head, constraint.tail}
    else:
        ends = {constraint.variable if isinstance(constraint, Predicate) else constraint.name}
    constraints: list[Constraint] = [constraint, *_path(pattern, ends, constraint)]
    if isinstance(constraint, TypedTriple) and constraint.quantifier is not None:
        constraints += _restrictions_on_tail(pattern, constraint)
    target = pattern.variable(pattern.target)
    for variable in pattern.variables:
        if variable.types and (variable is not target or variable is constraint):
            constraints.append(variable)
    alone = replace(pattern, answer_rows=None).keep_only(constraints)
    free = replace(alone.variable(alone.target), rows=None, excluded=())
    return replace(
        alone,
        variables=tuple(free if variable.name == alone.target else variable for variable in alone.variables),
    )


def _path(pattern: Pattern, ends: set[str], constraint: Constraint) -> list[TypedTriple]:
    """Return the shortest path of triples from the target to one of ``ends``; empty where there is none."""
    paths: dict[str, list[TypedTriple]] = {pattern.target: []}
    queue = [pattern.target]
    for name in queue:
        if name in ends:
            return paths[name]
        for triple in pattern.triples:
            if triple.quantifier is None and triple is not constraint and name in (triple.head, triple.tail):
                for other in (triple.head, triple.tail):
                    if other not in paths:
                        paths[other] = [*paths[name], triple]
                        queue.append(other)
    return []


def _restrictions_on_tail(pattern: Pattern, quantified: TypedTriple) -> list[Constraint]:
    """Return the constraints on the tail of a quantified triple, and on the terms connected to the tail without
    passing the target."""
    seen, queue = {quantified.tail, pattern.target, quantified.head}, [quantified.tail]
    constants = {constant.name for constant in pattern.constants}
    constraints: list[Constraint] = []
    for name in queue:
        if name in constants:  # other triples of a constant do not restrict it
            continue
        constraints += [predicate for predicate in pattern.predicates if predicate.variable == name]
        for triple in pattern.triples:
            if triple is quantified or name not in (triple.head, triple.tail):
                continue
            if triple.quantifier is not None and triple.head != name:
                continue
            constraints.append(triple)
            new = {triple.head, triple.tail} - seen
            seen |= new
            queue += sorted(new)
    return constraints
