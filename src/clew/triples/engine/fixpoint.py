"""SUBSTITUTE (4StepFocus, Algorithm 2): the candidates of all terms are narrowed by all triples until nothing
changes.

The algorithm as printed is wrong (:mod:`clew.triples.engine.reference` shows how): line 14 must narrow the tail's
candidates and line 19 the head's. Here one revision of a triple narrows both: it follows the edges from the side that
has fewer of them, and keeps the sources of those that end at a candidate, and their ends. The triple that costs least
is revised next, so a constant with a million neighbours waits until other triples have left few nodes to compare it
with.

Where triples form a cycle, a join follows (:mod:`clew.triples.engine.cycle_join`), which looks at each of them
anyway. So a triple on a cycle is not revised again because one of its ends lost a few candidates: it is deferred
until after the join, when most candidates are gone.
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

#: A triple on a cycle is deferred where more than this share of its end's candidates is left.
_DEFERRED_SHARE = 0.9


class Fixpoint:
    """The candidates of a pattern's terms in a graph, by name, while they are narrowed.

    Triples are known by their numbers in ``pattern.triples``. ``connected`` has for each term those that triples join
    to it; ``rounds`` is how many revisions were made.
    """

    def __init__(self, graph: PropertyGraph, pattern: Pattern) -> None:
        self.graph, self.pattern = graph, pattern
        self.dense = all(
            graph.adjacency(directed.relation, directed.inverse) is not None
            for triple in pattern.triples
            for directed in triple.relations
        )
        self.candidates: dict[str, Candidates] = {
            constant.name: constant_candidates(graph, constant, self.dense) for constant in pattern.constants
        }
        for variable in pattern.variables:
            self.candidates[variable.name] = variable_candidates(graph, pattern, variable, self.dense)
        self.rounds = 0
        self.connected = connected_terms(pattern.triples, self.candidates)
        self._required = self._required_terms()
        self._edges: dict[tuple[int, bool], Edges] = {}
        self._costs: dict[tuple[int, bool], tuple[int, float]] = {}
        #: Triples on cycles, which may be deferred until the join; and those that are.
        self._cyclic = self._cyclic_triples()
        self._deferred: set[int] = set()
        #: The triples without a quantifier, by the terms at their ends.
        self._plain: dict[str, set[int]] = {}
        for number, triple in enumerate(pattern.triples):
            if triple.quantifier is None:
                self._plain.setdefault(triple.head, set()).add(number)
                self._plain.setdefault(triple.tail, set()).add(number)

    def _required_terms(self) -> set[str]:
        """Return the terms that must have a candidate: all but those that are only counted, of which there may be
        none. A constant at an end of a plain triple, or whose own tails are counted, is more than counted."""
        triples = self.pattern.triples
        if all(triple.quantifier is None for triple in triples):
            return set(self.candidates)
        bound = {triple.head for triple in triples}
        bound |= {triple.tail for triple in triples if triple.quantifier is None}
        constants = {constant.name for constant in self.pattern.constants}
        counted = [
            {triple.tail} - bound if triple.tail in constants else self.connected[triple.tail]
            for triple in triples
            if triple.quantifier is not None
            and not {triple.head, self.pattern.target} & self.connected[triple.tail]
        ]
        return set(self.candidates).difference(*counted)

    def _cyclic_triples(self) -> frozenset[int]:
        plain = {
            number: triple
            for number, triple in enumerate(self.pattern.triples)
            if triple.quantifier is None and triple.head != triple.tail
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
        """Return the edges of a triple from its head, or ``backwards`` from its tail."""
        edges = self._edges.get((number, backwards))
        if edges is None:
            relations = self.pattern.triples[number].relations
            if backwards:
                relations = tuple(directed.opposite for directed in relations)
            edges = self._edges[number, backwards] = Edges(self.graph, relations)
        return edges

    def triples_at(self, names: Iterable[str]) -> set[int]:
        """Return the triples without a quantifier that have one of the terms as an end."""
        return {number for name in names for number in self._plain.get(name, ())}

    def run(self, waiting: set[int]) -> bool:
        """Revise the ``waiting`` triples, and those that this affects, until nothing changes.

        Returns whether every term that must have a candidate still has one.
        """
        for name in self.candidates:
            if self.is_empty(name):
                self._clear(name, waiting)
        while waiting:
            number = self._next(waiting)
            waiting.discard(number)
            self._deferred.discard(number)
            triple = self.pattern.triples[number]
            head, tail = self.candidates[triple.head], self.candidates[triple.tail]
            head_before, tail_before = head.rows, tail.rows
            self._revise(number, head, tail)
            self.rounds += 1
            if head.rows is not head_before:
                self._propagate(triple.head, number, head_before, waiting)
            if tail.rows is not tail_before:
                self._propagate(triple.tail, number, tail_before, waiting)
        return not self.has_no_answer

    def _propagate(self, name: str, number: int, before: RowSet | None, waiting: set[int]) -> None:
        """Let the other triples at a term that was narrowed wait for a revision, or defer them. If the term has no
        candidate left, clear the terms connected to it."""
        rows = self.candidates[name].rows
        affected = self._plain[name] - {number}
        if (
            self._cyclic
            and before is not None
            and rows is not None
            and len(rows) > len(before) * _DEFERRED_SHARE
        ):
            deferred = (affected & self._cyclic) - waiting
            self._deferred |= deferred
            affected -= deferred
        waiting |= affected
        if self.is_empty(name):
            self._clear(name, waiting)

    def run_deferred(self) -> bool:
        """Revise the deferred triples; from now on none is deferred. Returns what :meth:`run` does."""
        waiting, self._deferred, self._cyclic = self._deferred, set(), frozenset()
        return self.run(waiting) if waiting else not self.has_no_answer

    def _clear(self, name: str, waiting: set[int]) -> None:
        """Leave no candidates to the terms that triples join to a term without any."""
        for connected in self.connected[name]:
            self.candidates[connected].narrow_to(NO_ROWS)
        settled = self.triples_at(self.connected[name])
        waiting -= settled
        self._deferred -= settled

    def narrow(self, name: str, rows: RowSet) -> bool:
        """Restrict a term to ``rows``, some of its candidates, then propagate. Returns what :meth:`run` does."""
        if self.candidates[name].narrow_to(rows):
            self._deferred |= self.triples_at([name])
        return self.run_deferred()

    def _next(self, waiting: set[int]) -> int:
        """Return the triple that costs least; one with two unrestricted ends only if there is no other."""
        triples, candidates = self.pattern.triples, self.candidates
        restricted = [
            number
            for number in waiting
            if candidates[triples[number].head].rows is not None
            or candidates[triples[number].tail].rows is not None
        ]
        if len(restricted) == 1:
            return restricted[0]
        if restricted:
            return min(restricted, key=lambda number: (self._cost(number), number))
        return min(
            waiting,
            key=lambda number: (
                min(len(candidates[triples[number].head]), len(candidates[triples[number].tail])),
                number,
            ),
        )

    def _cost(self, number: int) -> float:
        triple = self.pattern.triples[number]
        return min(self._cost_from(number, triple.head, False), self._cost_from(number, triple.tail, True))

    def _cost_from(self, number: int, name: str, backwards: bool) -> float:
        """Return how many edges a triple has from one side, remembered as long as the side's candidates stay."""
        candidates = self.candidates[name]
        if candidates.rows is None:
            return math.inf
        known = self._costs.get((number, backwards))
        if known is None or known[0] != candidates.version:
            cost = self.edges(number, backwards).estimate_cost(candidates.rows)
            known = self._costs[number, backwards] = (candidates.version, cost)
        return known[1]

    def _revise(self, number: int, head: Candidates, tail: Candidates) -> None:
        """Keep the head's candidates with an edge to a candidate of the tail, and the tail's at the end of one."""
        triple = self.pattern.triples[number]
        if triple.head == triple.tail:
            self._revise_loop(number, head)
            return
        if head.rows is None and tail.rows is None:
            smaller, backwards = (tail, True) if len(tail) < len(head) else (head, False)
            edges = self.edges(number, backwards)
            smaller.materialise(edges.sources() if edges.in_memory else None)
        backwards = head.rows is None
        if head.rows is not None and tail.rows is not None and len(head.rows) + len(tail.rows) > 2:
            backwards = self._cost_from(number, triple.tail, True) < self._cost_from(
                number, triple.head, False
            )
        source, other = (tail, head) if backwards else (head, tail)
        rows = source.rows if source.rows is not None else NO_ROWS
        reaching, reached = self.edges(number, backwards).reach(rows, other)
        other.narrow_to(reached)
        if not reaching.all():
            source.narrow_to(rows[reaching])

    def _revise_loop(self, number: int, candidates: Candidates) -> None:
        """Keep the candidates with an edge to themselves."""
        edges = self.edges(number)
        if candidates.rows is None:
            candidates.materialise(edges.sources() if edges.in_memory else None)
        rows = candidates.rows if candidates.rows is not None else NO_ROWS
        candidates.narrow_to(rows[edges.has_edge(rows, rows)])
