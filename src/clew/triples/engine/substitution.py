"""Substitution: from a pattern to the rows that its target can be.

``substitute(graph, pattern)`` is step 2 of 4StepFocus (Boer et al., 2024, Algorithm 2), with what the paper leaves
open: relations and directions or any of them, constants with several candidates, predicates, quantifiers and
negation, cycles made exact. Without any of these it is the paper's algorithm, its lines 14 and 19 put right
(:mod:`clew.triples.engine.fixpoint`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.triples.engine.cycle_join import enforce_consistency
from clew.triples.engine.fixpoint import Fixpoint
from clew.triples.engine.quantifiers import apply_quantifier, order_quantifiers
from clew.triples.engine.row_sets import NO_ROWS

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph
    from clew.triples.engine.patterns import Constraint, Pattern


@dataclass(frozen=True, slots=True, eq=False)
class Substitution:
    """What the terms of a pattern can be.

    ``sets`` has the rows of every term, ascending, by name; None: every node. Those of the target are exact; those
    of the others have a partner in each of their triples. Where the pattern has no answer, no term has any.
    ``rounds`` is how often a triple was looked at. ``relaxed`` are the constraints that were given up so that there
    is an answer, in that order, and ``conflicts`` for each of them those that could not hold together
    (:func:`clew.triples.engine.relaxation.relax`).
    """

    target: str
    candidates: Mapping[str, Rows | None]
    rounds: int
    seconds: float
    relaxed: tuple[Constraint, ...] = ()
    conflicts: tuple[tuple[Constraint, ...], ...] = ()

    @property
    def rows(self) -> Rows | None:
        """The rows of the target, ascending; None where nothing restricts it."""
        return self.candidates[self.target]

    @property
    def is_empty(self) -> bool:
        """Whether the pattern has no answer."""
        return self.rows is not None and not len(self.rows)


def substitute(graph: PropertyGraph, pattern: Pattern) -> Substitution:
    """Return what the terms of a pattern can be in a graph, the target exactly.

    A target that no triple reaches is every node that its types, predicates and answers allow, if the rest of the
    pattern holds anywhere. Raises UsageError for a relation that the graph does not have, and for quantifiers that
    wait for each other.
    """
    started = time.perf_counter()
    state = Fixpoint(graph, pattern)
    holds = _solved(state)
    sets: dict[str, Rows | None] = {}
    for name, one in state.candidates.items():
        rows = one.rows if holds else NO_ROWS
        sets[name] = None if rows is None else rows.astype(np.int64)
    return Substitution(pattern.target, sets, state.rounds, time.perf_counter() - started)


def _solved(state: Fixpoint) -> bool:
    """Narrow everything; return whether every part of the pattern holds somewhere."""
    pattern = state.pattern
    counting = any(one.quantifier is not None for one in pattern.triples)
    order = order_quantifiers(pattern.triples, {one.name for one in pattern.constants}) if counting else []
    if not state.run({n for n, one in enumerate(pattern.triples) if one.quantifier is None}):
        return False
    for number in order:
        if not apply_quantifier(state, number):
            return False
    left = set(state.candidates)
    for name in (pattern.target, *state.candidates):  # constants too: triples may join nothing but them
        if name in left:
            left -= state.connected[name]
            if not enforce_consistency(state, name):
                return False
    for variable in pattern.variables:  # what no triple has narrowed, but something else restricts
        one = state.candidates[variable.name]
        if one.rows is None and one.is_restricted:
            one.materialise()
    return not state.has_no_answer
