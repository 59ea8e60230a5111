"""Substitution: from a pattern to the rows that its target can be.

``substitute(graph, pattern)`` is step 2 of 4StepFocus (Boer et al., 2024, Algorithm 2), with what the paper leaves
open: relations in a direction or any relation, constants with several candidates, predicates, quantifiers and
negation, and exact answers where triples form cycles. Without these it is the paper's algorithm with lines 14 and 19
corrected (:mod:`clew.triples.engine.reference`).
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
    """What the terms of a pattern can be in a graph.

    ``candidates`` has the rows of every term, ascending, by name; None: every node. Those of the target are exact;
    those of other terms have a partner in each of their triples. If the pattern has no answer, no term has
    candidates. ``rounds`` is how often a triple was revised. ``relaxed`` are the constraints that were given up to
    get an answer, in that order, and ``conflicts`` has for each of them the constraints that could not hold together
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
        """The rows of the target, ascending; None if nothing restricts it."""
        return self.candidates[self.target]

    @property
    def is_empty(self) -> bool:
        """Whether the pattern has no answer."""
        return self.rows is not None and not len(self.rows)


def substitute(graph: PropertyGraph, pattern: Pattern) -> Substitution:
    """Return what the terms of a pattern can be in a graph, the target exactly.

    A target that no triple reaches can be every node that its types, predicates and answer rows allow, if the rest of
    the pattern holds anywhere. Raises UsageError for a relation that the graph does not have, and for circular
    quantifiers.
    """
    started = time.perf_counter()
    state = Fixpoint(graph, pattern)
    holds = _solve(state)
    candidates: dict[str, Rows | None] = {}
    for name, of_term in state.candidates.items():
        rows = of_term.rows if holds else NO_ROWS
        candidates[name] = None if rows is None else rows.astype(np.int64)
    return Substitution(pattern.target, candidates, state.rounds, time.perf_counter() - started)


def _solve(state: Fixpoint) -> bool:
    """Narrow all terms; return whether every part of the pattern holds somewhere."""
    pattern = state.pattern
    quantified = any(triple.quantifier is not None for triple in pattern.triples)
    constants = {constant.name for constant in pattern.constants}
    order = order_quantifiers(pattern.triples, constants) if quantified else []
    if not state.run({n for n, triple in enumerate(pattern.triples) if triple.quantifier is None}):
        return False
    for number in order:
        if not apply_quantifier(state, number):
            return False
    unchecked = set(state.candidates)
    # Constants too: triples may connect nothing but constants.
    for name in (pattern.target, *state.candidates):
        if name in unchecked:
            unchecked -= state.connected[name]
            if not enforce_consistency(state, name):
                return False
    for variable in pattern.variables:
        candidates = state.candidates[variable.name]
        if candidates.rows is None and candidates.is_restricted:  # by something else than a triple
            candidates.materialise()
    return not state.has_no_answer
