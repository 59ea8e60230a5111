"""Quantifiers and negation, as the degree of a head into the set of the tail's candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clew.core.errors import UsageError
from clew.triples.engine.candidates import Candidates, constant_candidates
from clew.triples.engine.cycle_join import enforce_consistency, negates_inner_edge
from clew.triples.engine.patterns import connected_terms
from clew.triples.engine.row_sets import NO_ROWS
from clew.triples.language.typed_chain import Quantifier

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from clew.core.arrays import Mask
    from clew.triples.engine.fixpoint import Fixpoint
    from clew.triples.engine.patterns import TypedTriple
    from clew.triples.engine.row_sets import RowSet


def order_quantifiers(triples: Sequence[TypedTriple], given: Collection[str]) -> list[int]:
    """Return the triples that count, each after those that narrow what it counts; the terms in ``given`` are counted
    as they were given.

    Raises UsageError where two wait for each other.
    """
    reached = connected_terms(triples, [name for one in triples for name in (one.head, one.tail)])
    left = [
        n
        for n, one in enumerate(triples)
        if one.quantifier is not None and not negates_inner_edge(one, reached[one.head])
    ]
    order: list[int] = []
    while left:
        ready = [
            n
            for n in left
            if not any(
                triples[n].tail not in given
                and triples[other].head in reached[triples[n].tail]
                and triples[n].head not in reached[triples[n].tail]
                for other in left
                if other != n
            )
        ]
        if not ready:
            said = ", ".join(f"{triples[n].head} and {triples[n].tail}" for n in left)
            raise UsageError(f"quantifiers that wait for each other: {said}", "Count without one of them")
        order += ready
        left = [n for n in left if n not in ready]
    return order


def apply_quantifier(state: Fixpoint, number: int) -> bool:
    """Narrow the head of a triple that counts, and what follows; return whether every term still has a candidate."""
    triple = state.pattern.triples[number]
    head = state.candidates[triple.head]
    constant = next((one for one in state.pattern.constants if one.name == triple.tail), None)
    if constant is None:
        enforce_consistency(state, triple.tail)
        tail = state.candidates[triple.tail]
    else:
        tail = constant_candidates(state.graph, constant, state.dense)
    if head.rows is None:
        edges = state.edges(number)
        several = triple.quantifier is not None and triple.quantifier.least > 0
        head.materialise(edges.sources() if several and edges.in_memory else None)
    rows = NO_ROWS if head.rows is None else head.rows
    if triple.head == triple.tail:
        return state.narrow(triple.head, rows[~state.edges(number).has_edge(rows, rows)])
    return state.narrow(triple.head, rows[_passing(state, number, rows, tail)])


def _passing(state: Fixpoint, number: int, rows: RowSet, tail: Candidates) -> Mask:
    count = state.pattern.triples[number].quantifier or Quantifier()
    found = _degrees(state, number, rows, tail)
    passing: Mask = found >= count.least
    if count.most is not None:
        passing &= found <= count.most
    if count.only and tail.is_restricted:
        passing &= found == state.edges(number).count_candidates(rows, Candidates(state.graph, state.dense))
    return passing


def _degrees(state: Fixpoint, number: int, rows: RowSet, tail: Candidates) -> NDArray[np.int64]:
    """Return how many candidates of the tail each row leads to: counted from the side with fewer edges."""
    forwards, backwards = state.edges(number), state.edges(number, backwards=True)
    if (
        tail.rows is not None
        and backwards.in_memory
        and backwards.estimate_cost(tail.rows) < forwards.estimate_cost(rows)
    ):
        return backwards.count_sources(tail.rows)[rows]
    return forwards.count_candidates(rows, tail)
