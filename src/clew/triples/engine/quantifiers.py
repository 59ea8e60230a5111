"""Quantifiers and negation: how many of the tail's candidates a head has edges to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clew.core.errors import UsageError
from clew.triples.engine.candidates import Candidates, constant_candidates
from clew.triples.engine.cycle_join import enforce_consistency, negates_inner_edge
from clew.triples.engine.patterns import connected_terms
from clew.triples.engine.row_sets import NO_ROWS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from clew.core.arrays import Mask
    from clew.triples.engine.fixpoint import Fixpoint
    from clew.triples.engine.patterns import TypedTriple
    from clew.triples.engine.row_sets import RowSet
    from clew.triples.language.typed_chain import Quantifier


def order_quantifiers(triples: Sequence[TypedTriple], constants: Collection[str]) -> list[int]:
    """Return the numbers of the quantified triples, each after those that narrow what it counts.

    ``constants`` are the names of terms whose candidates are counted as they were given. Raises UsageError where two
    quantifiers each have to be applied before the other.
    """
    connected = connected_terms(triples, [name for triple in triples for name in (triple.head, triple.tail)])

    def narrows(other: int, number: int) -> bool:
        """Whether the triple ``other`` narrows what the triple ``number`` counts."""
        triple = triples[number]
        counted = connected[triple.tail]
        return triple.tail not in constants and triples[other].head in counted and triple.head not in counted

    pending = [
        number
        for number, triple in enumerate(triples)
        if triple.quantifier is not None and not negates_inner_edge(triple, connected[triple.head])
    ]
    order: list[int] = []
    while pending:
        ready = [
            number
            for number in pending
            if not any(narrows(other, number) for other in pending if other != number)
        ]
        if not ready:
            pairs = ", ".join(f"{triples[number].head} and {triples[number].tail}" for number in pending)
            raise UsageError(f"circular quantifiers: {pairs}", "Remove one of them")
        order += ready
        pending = [number for number in pending if number not in ready]
    return order


def apply_quantifier(state: Fixpoint, number: int) -> bool:
    """Narrow the head of a quantified triple, then propagate; return whether every term still has a candidate."""
    triple = state.pattern.triples[number]
    assert triple.quantifier is not None
    head = state.candidates[triple.head]
    constant = next(
        (candidate for candidate in state.pattern.constants if candidate.name == triple.tail), None
    )
    if constant is None:
        enforce_consistency(state, triple.tail)
        tail = state.candidates[triple.tail]
    else:
        tail = constant_candidates(state.graph, constant, state.dense)
    if head.rows is None:
        edges = state.edges(number)
        needs_edge = triple.quantifier.least > 0
        head.materialise(edges.sources() if needs_edge and edges.in_memory else None)
    rows = NO_ROWS if head.rows is None else head.rows
    if triple.head == triple.tail:  # only NOT: a pattern refuses other quantifiers here
        return state.narrow(triple.head, rows[~state.edges(number).has_edge(rows, rows)])
    return state.narrow(triple.head, rows[_satisfies(state, number, triple.quantifier, rows, tail)])


def _satisfies(state: Fixpoint, number: int, quantifier: Quantifier, rows: RowSet, tail: Candidates) -> Mask:
    """Return which heads have as many of the tail's candidates as the quantifier says, (rows,)."""
    degrees = _candidate_degrees(state, number, rows, tail)
    satisfied: Mask = degrees >= quantifier.least
    if quantifier.most is not None:
        satisfied &= degrees <= quantifier.most
    if quantifier.only and tail.is_restricted:
        every_node = Candidates(state.graph, state.dense)
        satisfied &= degrees == state.edges(number).count_candidates(rows, every_node)
    return satisfied


def _candidate_degrees(state: Fixpoint, number: int, rows: RowSet, tail: Candidates) -> NDArray[np.int64]:
    """Return to how many of the tail's candidates each row leads, counted from the side with fewer edges, (rows,)."""
    forwards, backwards = state.edges(number), state.edges(number, backwards=True)
    if (
        tail.rows is not None
        and backwards.in_memory
        and backwards.estimate_cost(tail.rows) < forwards.estimate_cost(rows)
    ):
        return backwards.count_sources(tail.rows)[rows]
    return forwards.count_candidates(rows, tail)
