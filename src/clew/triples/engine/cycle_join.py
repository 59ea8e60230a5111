"""The join that makes a fixpoint exact where triples form cycles.

A fixpoint is arc consistent: every candidate has a partner in each of its triples, but on a cycle the partners need
not be partners of each other. Trees need no join, nor do terms with one candidate. What remains when leaves are taken
off repeatedly (the 2-core) is joined here, term after term. Each partial match takes its candidates for the next term
from the triple that offers it fewest, as worst-case optimal joins do. Terms that no later triple needs are dropped
from the matches, and a candidate of the term that is asked for is not proven twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.triples.engine.candidates import NO_ROWS
from clew.triples.engine.edges import split_ranges
from clew.triples.engine.patterns import TypedTriple, triples_on_cycles
from clew.triples.language.typed_chain import NOT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Mask
    from clew.triples.engine.candidates import RowSet
    from clew.triples.engine.substitution import Fixpoint

    #: Partial matches: the rows of every bound term, (matches,) each.
    Matches = dict[str, RowSet]


def enforce_consistency(state: Fixpoint, asked: str) -> bool:
    """Narrow the terms connected to ``asked`` until the candidates of ``asked`` are exactly its answers; return
    whether there are any."""
    connected = state.connected[asked]
    core = [] if state.is_empty(asked) else _core_triples(state, connected)
    if not core:
        return state.run_deferred()
    terms = {end for number in core for end in _ends(state, number)}
    output = asked if asked in terms else _nearest(state, asked, terms)
    return state.narrow(output, _Join(state, core, terms, output).answers())


def negates_inner_edge(triple: TypedTriple, connected: frozenset[str]) -> bool:
    """Return whether a triple denies an edge between two terms that other triples connect. It is then checked for
    each match instead of being counted."""
    return triple.quantifier == NOT and triple.head != triple.tail and {triple.head, triple.tail} <= connected


def _ends(state: Fixpoint, number: int) -> tuple[str, str]:
    triple = state.pattern.triples[number]
    return triple.head, triple.tail


def _core_triples(state: Fixpoint, connected: frozenset[str]) -> list[int]:
    """Return the triples on cycles among connected terms, and those between cycles."""
    triples = {
        number: triple
        for number, triple in enumerate(state.pattern.triples)
        if triple.head != triple.tail
        and {triple.head, triple.tail} <= connected
        and (triple.quantifier is None or negates_inner_edge(triple, connected))
    }
    if len(triples) < len(connected):
        return []
    # A term with one candidate joins nothing: it could be a different term in each of its triples. Not so where an
    # edge is denied, because both of its ends must be matched together.
    if any(triple.quantifier is not None for triple in triples.values()):
        return triples_on_cycles(triples)
    return triples_on_cycles(triples, {name for name in connected if len(state.candidates[name]) == 1})


def _nearest(state: Fixpoint, asked: str, terms: set[str]) -> str:
    """Return the term of the core that is nearest to ``asked``, breadth first."""
    seen, queue = {asked}, [asked]
    for name in queue:
        if name in terms:
            return name
        for number in sorted(state.triples_at([name])):
            new = [end for end in _ends(state, number) if end not in seen]
            seen.update(new)
            queue += new
    return min(terms)


@dataclass(frozen=True, slots=True)
class _Link:
    """A triple between a bound term and the one to bind: ``backwards``, the bound one is its tail."""

    bound: str
    number: int
    backwards: bool


@dataclass(frozen=True, slots=True)
class _Step:
    """A term to bind: the triples that lead to it from bound terms, those that deny an edge to them, and the terms
    that are needed after it."""

    name: str
    joins: tuple[_Link, ...]
    denials: tuple[_Link, ...]
    needed: frozenset[str]


class _Join:
    def __init__(self, state: Fixpoint, core: Sequence[int], terms: set[str], output: str) -> None:
        self._state, self._output = state, output
        self._first, self._steps = self._plan(core, terms)
        self._proven = np.zeros(int(self._rows(output)[-1]) + 1, dtype=np.bool_)

    def _rows(self, name: str) -> RowSet:
        rows = self._state.candidates[name].rows
        return NO_ROWS if rows is None else rows

    def _plan(self, core: Sequence[int], terms: set[str]) -> tuple[str, list[_Step]]:
        """Return the term to begin with, the one with fewest candidates, and the steps that bind the others: next is
        the term that most triples lead to, of several the one with fewest candidates."""
        sizes = {name: len(self._rows(name)) for name in terms}
        first = min(terms, key=lambda name: (sizes[name], name))
        bound, unbound, steps = [first], terms - {first}, []
        while unbound:
            joins = {name: self._links(core, bound, name, denied=False) for name in unbound}
            name = min(unbound, key=lambda name: (not joins[name], -len(joins[name]), sizes[name], name))
            denials = self._links(core, bound, name, denied=True)
            bound.append(name)
            unbound.remove(name)
            ends = [set(_ends(self._state, number)) for number in core]
            needed = {self._output}.union(*(pair for pair in ends if pair & unbound)).intersection(bound)
            steps.append(_Step(name, joins[name], denials, frozenset(needed)))
        return first, steps

    def _links(self, core: Sequence[int], bound: Sequence[str], name: str, denied: bool) -> tuple[_Link, ...]:
        """Return the core's triples, or those that deny an edge, between ``name`` and the bound terms."""
        links = []
        for number in core:
            head, tail = _ends(self._state, number)
            if (self._state.pattern.triples[number].quantifier is not None) != denied:
                continue
            if tail == name and head in bound:
                links.append(_Link(head, number, False))
            elif head == name and tail in bound:
                links.append(_Link(tail, number, True))
        return tuple(links)

    def answers(self) -> RowSet:
        """Return the candidates of the output term that are in a match."""
        self._extend({self._first: self._rows(self._first)}, 0)
        return np.flatnonzero(self._proven).astype(np.uint32)

    def _extend(self, matches: Matches, depth: int) -> None:
        """Bind the terms from ``depth`` on, a part of the matches at a time so that they stay few."""
        if depth == len(self._steps):
            self._proven[matches[self._output]] = True
            return
        step = self._steps[depth]
        degrees = np.stack(
            [
                self._state.edges(link.number, link.backwards).degrees(matches[link.bound])
                for link in step.joins
            ]
        )
        for first, last in split_ranges(degrees.min(axis=0)):
            part = {name: rows[first:last] for name, rows in matches.items()}
            part_degrees = degrees[:, first:last]
            if self._output in part and (last - first) < degrees.shape[1]:
                # A candidate that an earlier part has proven needs no second match.
                unproven = ~self._proven[part[self._output]]
                part, part_degrees = _select(part, unproven), part_degrees[:, unproven]
            if not part_degrees.size:
                continue
            extended = self._bind(part, step, part_degrees)
            if len(extended[step.name]):
                self._extend(_project(extended, step.needed), depth + 1)

    def _bind(self, matches: Matches, step: _Step, degrees: NDArray[np.int64]) -> Matches:
        """Return the matches with the step's term bound in every way that its triples allow. ``degrees`` is how many
        tails each join offers to each match, (joins, matches)."""
        cheapest = degrees.argmin(axis=0)
        parts = []
        for place, join in enumerate(step.joins):
            chosen = np.flatnonzero(cheapest == place)
            if not len(chosen):
                continue
            owners, rows = self._state.edges(join.number, join.backwards).expand(matches[join.bound][chosen])
            is_candidate = self._state.candidates[step.name].contains(rows)
            part = _select(matches, chosen[owners[is_candidate]]) | {step.name: rows[is_candidate]}
            for links, expected in (
                ([other for other in step.joins if other is not join], True),
                (step.denials, False),
            ):
                for link in links:
                    edges = self._state.edges(link.number, link.backwards)
                    part = _select(part, edges.has_edge(part[link.bound], part[step.name]) == expected)
            parts.append(part)
        return {name: np.concatenate([part[name] for part in parts]) for name in (*matches, step.name)}


def _select(matches: Mapping[str, RowSet], which: NDArray[np.int64] | Mask) -> Matches:
    return {name: rows[which] for name, rows in matches.items()}


def _project(matches: Matches, needed: frozenset[str]) -> Matches:
    """Return the matches by the terms that are still needed, without repetition."""
    if needed >= matches.keys():
        return matches
    projected = {name: rows for name, rows in matches.items() if name in needed}
    order = np.lexsort(tuple(projected.values()))
    ordered = _select(projected, order)
    is_new = np.zeros(len(order), dtype=np.bool_)
    is_new[0] = True
    for rows in ordered.values():
        is_new[1:] |= rows[1:] != rows[:-1]
    return _select(ordered, is_new)
