"""The join that makes a fixpoint exact.

A fixpoint is arc consistent: every candidate has a partner in each of its triples, but where triples form a cycle the
partners need not be those of each other. Trees need no join, nor do terms with one candidate; what remains when the
leaves are taken off again and again (the 2-core) is joined here, term after term. Each partial match takes its
candidates for the next term from the triple that offers it fewest, as worst-case optimal joins do; what no later
triple asks for is dropped from the matches, and a candidate of the term that is asked for is not proven twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.triples.engine import edges as _edges
from clew.triples.engine.patterns import TypedTriple, triples_on_cycles
from clew.triples.engine.row_sets import NO_ROWS
from clew.triples.language.typed_chain import NOT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Mask
    from clew.triples.engine.fixpoint import Fixpoint
    from clew.triples.engine.row_sets import RowSet

if TYPE_CHECKING:
    Matches = dict[str, RowSet]


def enforce_consistency(state: Fixpoint, asked: str) -> bool:
    """Narrow the candidates of the terms around ``asked`` until those of ``asked`` are exactly its answers; return
    whether there are any."""
    reached = state.connected[asked]
    core = [] if state.is_empty(asked) else _core(state, reached)
    if not core:
        return state.run_deferred()
    terms = {end for number in core for end in _ends(state, number)}
    output = asked if asked in terms else _nearest(state, asked, terms)
    return state.narrow(output, _Join(state, core, terms, output).answers())


def negates_inner_edge(triple: TypedTriple, reached: frozenset[str]) -> bool:
    """Return whether a triple denies an edge between two terms that others join: each match is looked at then."""
    return triple.quantifier == NOT and triple.head != triple.tail and {triple.head, triple.tail} <= reached


def _ends(state: Fixpoint, number: int) -> tuple[str, str]:
    triple = state.pattern.triples[number]
    return triple.head, triple.tail


def _core(state: Fixpoint, reached: frozenset[str]) -> list[int]:
    """Return the triples on cycles among some terms, and between cycles."""
    numbers = [
        number
        for number, triple in enumerate(state.pattern.triples)
        if triple.head != triple.tail
        and {triple.head, triple.tail} <= reached
        and (triple.quantifier is None or negates_inner_edge(triple, reached))
    ]
    if len(numbers) < len(reached):
        return []
    # A term with one candidate joins nothing: it is as many different terms as it has triples. Not so where an edge
    # is denied, because what that joins must be matched together.
    triples = {number: state.pattern.triples[number] for number in numbers}
    denied = any(one.quantifier is not None for one in triples.values())
    single = set() if denied else {name for name in reached if len(state.candidates[name]) == 1}
    return triples_on_cycles(triples, single)


def _nearest(state: Fixpoint, asked: str, terms: set[str]) -> str:
    """Return the term of the core through which ``asked`` hangs on it."""
    seen, waiting = {asked}, [asked]
    for one in waiting:
        if one in terms:
            return one
        for number in sorted(state.triples_at([one])):
            new = [end for end in _ends(state, number) if end not in seen]
            seen.update(new)
            waiting += new
    return min(terms)


@dataclass(frozen=True, slots=True)
class _Step:
    """A term to bind: the triples that lead to it from bound terms (with their numbers, and True where from the
    tail), those that deny an edge to them, and the terms that are needed after it."""

    name: str
    joins: tuple[tuple[str, int, bool], ...]
    denied: tuple[tuple[str, int, bool], ...]
    needed: frozenset[str]


class _Join:
    def __init__(self, state: Fixpoint, core: Sequence[int], terms: set[str], output: str) -> None:
        self._state, self._output = state, output
        self._first, self._steps = self._planned(core, terms)
        self._proven = np.zeros(int(self._rows(output)[-1]) + 1, dtype=np.bool_)

    def _rows(self, name: str) -> RowSet:
        rows = self._state.candidates[name].rows
        return NO_ROWS if rows is None else rows

    def _planned(self, core: Sequence[int], terms: set[str]) -> tuple[str, list[_Step]]:
        """Return the term to begin with, that with the fewest candidates, and the others in the order in which most
        triples, then fewest candidates, speak for them."""
        size = {name: len(self._rows(name)) for name in terms}
        first = min(terms, key=lambda one: (size[one], one))
        bound, left, steps = [first], terms - {first}, []
        while left:
            joins = {name: self._leading(core, bound, name) for name in left}
            name = min(left, key=lambda one: (not joins[one][0], -len(joins[one][0]), size[one], one))
            bound.append(name)
            left.remove(name)
            needed = {
                end for n in core if set(_ends(self._state, n)) & left for end in _ends(self._state, n)
            } - left
            steps.append(_Step(name, *joins[name], frozenset(needed | {self._output}).intersection(bound)))
        return first, steps

    def _leading(
        self, core: Sequence[int], bound: Sequence[str], name: str
    ) -> tuple[tuple[tuple[str, int, bool], ...], tuple[tuple[str, int, bool], ...]]:
        found: tuple[list[tuple[str, int, bool]], list[tuple[str, int, bool]]] = ([], [])
        for number in core:
            head, tail = _ends(self._state, number)
            denied = self._state.pattern.triples[number].quantifier is not None
            if tail == name and head in bound:
                found[denied].append((head, number, False))
            elif head == name and tail in bound:
                found[denied].append((tail, number, True))
        return tuple(found[0]), tuple(found[1])

    def answers(self) -> RowSet:
        """Return the candidates of the term that is asked for that are in a match."""
        self._extend({self._first: self._rows(self._first)}, 0)
        return np.flatnonzero(self._proven).astype(np.uint32)

    def _extend(self, matches: Matches, depth: int) -> None:
        """Bind the terms from ``depth`` on; a part of the matches at a time, so that they stay few."""
        if depth == len(self._steps):
            self._proven[matches[self._output]] = True
            return
        step = self._steps[depth]
        degrees = np.stack(
            [self._state.edges(n, back).degrees(matches[source]) for source, n, back in step.joins]
        )
        for first, last in _edges.split_ranges(degrees.min(axis=0)):
            part, offered = {name: rows[first:last] for name, rows in matches.items()}, degrees[:, first:last]
            if self._output in part and (last - first) < degrees.shape[1]:
                left = ~self._proven[
                    part[self._output]
                ]  # what the parts before have shown needs no second match
                part, offered = _taken(part, left), offered[:, left]
            if not offered.size:
                continue
            extended = self._bound(part, step, offered)
            if len(extended[step.name]):
                self._extend(_dropped(extended, step.needed), depth + 1)

    def _bound(self, matches: Matches, step: _Step, degrees: NDArray[np.int64]) -> Matches:
        """Return the matches with a term bound in every way that its triples allow."""
        cheapest = degrees.argmin(axis=0)
        parts = []
        for place, (source, number, back) in enumerate(step.joins):
            chosen = np.flatnonzero(cheapest == place)
            if not len(chosen):
                continue
            owners, found = self._state.edges(number, back).expand(matches[source][chosen])
            keep = self._state.candidates[step.name].contains(found)
            part = _taken(matches, chosen[owners[keep]]) | {step.name: found[keep]}
            others = [one for one in step.joins if one[1:] != (number, back)]
            for checks, wanted in ((others, True), (step.denied, False)):
                for end, n, reverse in checks:
                    ok = self._state.edges(n, reverse).has_edge(part[end], part[step.name])
                    part = _taken(part, ok if wanted else ~ok)
            parts.append(part)
        return {name: np.concatenate([one[name] for one in parts]) for name in (*matches, step.name)}


def _taken(matches: Mapping[str, RowSet], which: NDArray[np.int64] | Mask) -> Matches:
    return {name: rows[which] for name, rows in matches.items()}


def _dropped(matches: Matches, needed: frozenset[str]) -> Matches:
    """Return the matches by the terms that are still needed, each once."""
    if needed >= matches.keys():
        return matches
    kept = {name: rows for name, rows in matches.items() if name in needed}
    order = np.lexsort(tuple(kept.values()))
    ordered = _taken(kept, order)
    new = np.zeros(len(order), dtype=np.bool_)
    new[0] = True
    for rows in ordered.values():
        new[1:] |= rows[1:] != rows[:-1]
    return _taken(ordered, new)
