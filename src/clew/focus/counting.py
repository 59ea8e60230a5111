"""Quantifiers and negation, as the degree of a head into the set of the tail's candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clew.chains import Count
from clew.errors import UsageError
from clew.focus.candidates import Candidates, of_constant
from clew.focus.joining import is_between, made_exact
from clew.focus.patterns import components
from clew.focus.sets import NOTHING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from clew.focus.fixpoint import Fixpoint
    from clew.focus.patterns import TypedTriple
    from clew.focus.sets import Set
    from clew.protocols import Mask


def in_order(triples: Sequence[TypedTriple], given: Collection[str]) -> list[int]:
    """Return the triples that count, each after those that narrow what it counts; the terms in ``given`` are counted
    as they were given.

    Raises UsageError where two wait for each other.
    """
    reached = components(triples, [name for one in triples for name in (one.head, one.tail)])
    left = [
        n for n, one in enumerate(triples) if one.count is not None and not is_between(one, reached[one.head])
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


def counted(state: Fixpoint, number: int) -> bool:
    """Narrow the head of a triple that counts, and what follows; return whether every term still has a candidate."""
    triple = state.pattern.triples[number]
    head = state.candidates[triple.head]
    constant = next((one for one in state.pattern.constants if one.name == triple.tail), None)
    if constant is None:
        made_exact(state, triple.tail)
        tail = state.candidates[triple.tail]
    else:
        tail = of_constant(state.graph, constant, state.dense)
    if head.rows is None:
        edges = state.edges(number)
        several = triple.count is not None and triple.count.least > 0
        head.materialise(edges.sources() if several and edges.known else None)
    rows = NOTHING if head.rows is None else head.rows
    if triple.head == triple.tail:
        return state.narrow(triple.head, rows[~state.edges(number).joins(rows, rows)])
    return state.narrow(triple.head, rows[_passing(state, number, rows, tail)])


def _passing(state: Fixpoint, number: int, rows: Set, tail: Candidates) -> Mask:
    count = state.pattern.triples[number].count or Count()
    found = _degrees(state, number, rows, tail)
    passing: Mask = found >= count.least
    if count.most is not None:
        passing &= found <= count.most
    if count.only and tail.tested:
        passing &= found == state.edges(number).counts(rows, Candidates(state.graph, state.dense))
    return passing


def _degrees(state: Fixpoint, number: int, rows: Set, tail: Candidates) -> NDArray[np.int64]:
    """Return how many candidates of the tail each row leads to: counted from the side with fewer edges."""
    forwards, backwards = state.edges(number), state.edges(number, backwards=True)
    if tail.rows is not None and backwards.known and backwards.cost(tail.rows) < forwards.cost(rows):
        return backwards.tallied(tail.rows)[rows]
    return forwards.counts(rows, tail)
