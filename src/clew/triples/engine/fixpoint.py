"""SUBSTITUTE (4StepFocus, Algorithm 2): the candidates of all terms narrowed by all triples until nothing changes.

As printed the algorithm is wrong: lines 14 and 19 intersect each side with *its own* neighbours, so that a chain over
two variables comes out empty. Line 14 must narrow the tail's candidates and line 19 the head's. Here one look at a
triple's edges narrows both: from the side that has fewer edges, keeping the sources of those that end at a
candidate, and their ends. What is looked at next is the triple that costs least, so a constant with a million
neighbours waits until the others have left few nodes to compare it with.

Where triples form a cycle a join follows (:mod:`clew.triples.engine.cycle_join`), which looks at each of them
anyway. A triple of
a cycle is therefore not looked at again for a few candidates less at one of its ends, but put off until after the
join, when most are gone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from clew.triples.engine.candidates import Candidates, constant_candidates, variable_candidates
from clew.triples.engine.edges import Edges
from clew.triples.engine.patterns import connected_terms, triples_on_cycles
from clew.triples.engine.row_sets import NO_ROWS

if TYPE_CHECKING:
    from clew.core.protocols import PropertyGraph
    from clew.triples.engine.patterns import Pattern
    from clew.triples.engine.row_sets import RowSet


#: A triple on a cycle is put off where more than this share of the candidates of its end is left.
_MOST = 0.9


class Fixpoint:
    """The candidates of a pattern's terms in a graph, by name. ``rounds``: how often a triple was looked at."""

    def __init__(self, graph: PropertyGraph, pattern: Pattern) -> None:
        self.graph, self.pattern = graph, pattern
        self.dense = all(
            graph.adjacency(way.relation, way.inverse) is not None
            for triple in pattern.triples
            for way in triple.relations
        )
        self.candidates: dict[str, Candidates] = {
            one.name: constant_candidates(graph, one, self.dense) for one in pattern.constants
        }
        for variable in pattern.variables:
            self.candidates[variable.name] = variable_candidates(graph, pattern, variable, self.dense)
        self.rounds = 0
        self.connected = connected_terms(pattern.triples, self.candidates)
        self._required = self._needed()
        self._edges: dict[tuple[int, bool], Edges] = {}
        self._costs: dict[tuple[int, bool], tuple[int, float]] = {}
        self._plain: dict[str, set[int]] = {}
        #: Triples on cycles, until the join; and those put off.
        self._cyclic = self._on_cycles()
        self._later: set[int] = set()
        for number, triple in enumerate(pattern.triples):
            if triple.quantifier is None:
                self._plain.setdefault(triple.head, set()).add(number)
                self._plain.setdefault(triple.tail, set()).add(number)

    def _needed(self) -> set[str]:
        """Return the terms that must have a candidate: all but those that are only counted, which may be none. A
        constant that a plain triple joins, or whose own tails are counted, is more than that."""
        triples = self.pattern.triples
        if all(one.quantifier is None for one in triples):
            return set(self.candidates)
        bound = {one.head for one in triples} | {one.tail for one in triples if one.quantifier is None}
        constants = {one.name for one in self.pattern.constants}
        counted = [
            {one.tail} - bound if one.tail in constants else self.connected[one.tail]
            for one in triples
            if one.quantifier is not None and not {one.head, self.pattern.target} & self.connected[one.tail]
        ]
        return set(self.candidates).difference(*counted)

    def _on_cycles(self) -> frozenset[int]:
        plain = {
            n: one
            for n, one in enumerate(self.pattern.triples)
            if one.quantifier is None and one.head != one.tail
        }
        if len(plain) < min(map(len, self.connected.values())):
            return frozenset()
        return frozenset(triples_on_cycles(plain))

    def is_empty(self, name: str) -> bool:
        """Return whether a term has no candidate left."""
        rows = self.candidates[name].rows
        return rows is not None and not len(rows)

    @property
    def has_no_answer(self) -> bool:
        """Whether the pattern has no answer: a term that must have a candidate has none left."""
        return any(map(self.is_empty, self._required))

    def edges(self, number: int, backwards: bool = False) -> Edges:
        """Return the edges of a triple from its head, or from its tail."""
        found = self._edges.get((number, backwards))
        if found is None:
            ways = self.pattern.triples[number].relations
            if backwards:
                ways = tuple(way.opposite for way in ways)
            found = self._edges[number, backwards] = Edges(self.graph, ways)
        return found

    def triples_at(self, names: Iterable[str]) -> set[int]:
        """Return the triples, without those that count, at some terms."""
        return {number for name in names for number in self._plain.get(name, ())}

    def run(self, waiting: set[int]) -> bool:
        """Look at triples, and at those that this changes something for, until nothing changes; return whether every
        term still has a candidate."""
        triples = self.pattern.triples
        for name in self.candidates:
            if self.is_empty(name):
                self._clear(name, waiting)
        while waiting:
            number = self._next(waiting)
            waiting.discard(number)
            self._later.discard(number)
            head, tail = self.candidates[triples[number].head], self.candidates[triples[number].tail]
            before = head.rows, tail.rows
            self._revise(number, head, tail)
            self.rounds += 1
            for name, one, rows in zip(
                (triples[number].head, triples[number].tail), (head, tail), before, strict=True
            ):
                if one.rows is not rows:
                    self._follow(name, number, rows, waiting)
        return not self.has_no_answer

    def _follow(self, name: str, number: int, before: RowSet | None, waiting: set[int]) -> None:
        """Have the other triples at a term that was narrowed looked at, or put off; if it has no candidate left, none
        of what it is joined to has."""
        rows = self.candidates[name].rows
        asked = self._plain[name] - {number}
        if self._cyclic and before is not None and rows is not None and len(rows) > len(before) * _MOST:
            off = (asked & self._cyclic) - waiting
            self._later |= off
            asked -= off
        waiting |= asked
        if self.is_empty(name):
            self._clear(name, waiting)

    def run_deferred(self) -> bool:
        """Look at what was put off; return as :meth:`run`."""
        waiting, self._later, self._cyclic = self._later, set(), frozenset()
        return self.run(waiting) if waiting else not self.has_no_answer

    def _clear(self, name: str, waiting: set[int]) -> None:
        """Leave nothing to the terms that triples join to one without candidates."""
        for one in self.connected[name]:
            self.candidates[one].narrow_to(NO_ROWS)
        gone = self.triples_at(self.connected[name])
        waiting -= gone
        self._later -= gone

    def narrow(self, name: str, rows: RowSet) -> bool:
        """Leave a term only these of its candidates, and every other what follows; return as :meth:`run`."""
        if self.candidates[name].narrow_to(rows):
            self._later |= self.triples_at([name])
        return self.run_deferred()

    def _next(self, waiting: set[int]) -> int:
        """Return the triple that costs least; one whose terms are both unrestricted only if there is no other."""
        triples, candidates = self.pattern.triples, self.candidates
        able = [
            number
            for number in waiting
            if candidates[triples[number].head].rows is not None
            or candidates[triples[number].tail].rows is not None
        ]
        if len(able) == 1:
            return able[0]
        if not able:
            return min(waiting, key=lambda n: (self._size(n), n))
        return min(able, key=lambda n: (self._cost(n), n))

    def _size(self, number: int) -> int:
        triple = self.pattern.triples[number]
        return min(len(self.candidates[triple.head]), len(self.candidates[triple.tail]))

    def _cost(self, number: int) -> float:
        triple = self.pattern.triples[number]
        return min(self._from(number, triple.head, False), self._from(number, triple.tail, True))

    def _from(self, number: int, name: str, backwards: bool) -> float:
        """Return how many edges there are from a side, remembered as long as its candidates stay."""
        one = self.candidates[name]
        if one.rows is None:
            return math.inf
        known = self._costs.get((number, backwards))
        if known is None or known[0] != one.version:
            cost = self.edges(number, backwards).estimate_cost(one.rows)
            known = self._costs[number, backwards] = (one.version, cost)
        return known[1]

    def _revise(self, number: int, head: Candidates, tail: Candidates) -> None:
        """Leave the head what has an edge to a candidate of the tail, and the tail what such an edge ends at."""
        triple = self.pattern.triples[number]
        if triple.head == triple.tail:
            self._loops(number, head)
            return
        if head.rows is None and tail.rows is None:
            self._begin(number, head, tail)
        backwards = head.rows is None
        if head.rows is not None and tail.rows is not None and len(head.rows) + len(tail.rows) > 2:
            backwards = self._from(number, triple.tail, True) < self._from(number, triple.head, False)
        source, other = (tail, head) if backwards else (head, tail)
        rows = source.rows if source.rows is not None else NO_ROWS
        kept, found = self.edges(number, backwards).reach(rows, other)
        other.narrow_to(found)
        if not kept.all():
            source.narrow_to(rows[kept])

    def _begin(self, number: int, head: Candidates, tail: Candidates) -> None:
        """Write down the smaller of two sides that nothing has narrowed yet."""
        backwards = len(tail) < len(head)
        edges, one = self.edges(number, backwards), tail if backwards else head
        if edges.in_memory:
            one.materialise(edges.sources())
        else:
            one.materialise()

    def _loops(self, number: int, one: Candidates) -> None:
        """Leave a term the nodes with an edge to themselves."""
        edges = self.edges(number)
        if one.rows is None:
            one.materialise(edges.sources() if edges.in_memory else None)
        rows = one.rows if one.rows is not None else NO_ROWS
        one.narrow_to(rows[edges.has_edge(rows, rows)])
