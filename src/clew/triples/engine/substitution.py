"""Substitution: from a pattern to the rows that its target can be.

``substitute(graph, pattern)`` is step 2 of 4StepFocus (Boer et al., 2024, Algorithm 2), with what the paper leaves
open: relations in a direction or any relation, constants with several candidates, predicates, quantifiers and
negation, and exact answers where triples form cycles. Without these it is the paper's algorithm with lines 14 and 19
corrected (:mod:`clew.triples.engine.reference`): line 14 must narrow the tail's candidates and line 19 the head's.

:class:`Fixpoint` narrows the candidates of all terms by all triples until nothing changes. One revision of a triple
narrows both its ends: it follows the edges from the side that has fewer of them, and keeps the sources of those that
end at a candidate, and their ends. The triple that costs least is revised next, so a constant with a million
neighbours waits until other triples have left few nodes to compare it with. Quantifiers follow, inner ones first.

A fixpoint is arc consistent: every candidate has a partner in each of its triples, but on a cycle the partners need
not be partners of each other. Trees need no join, nor do terms with one candidate. What remains when leaves are taken
off repeatedly (the 2-core) is joined, term after term (:func:`enforce_consistency`). Each partial match takes its
candidates for the next term from the triple that offers it fewest, as worst-case optimal joins do. Terms that no
later triple needs are dropped from the matches, and a candidate of the term that is asked for is not proven twice.
The join looks at each triple on a cycle anyway. So such a triple is not revised again because one of its ends lost a
few candidates: it is deferred until after the join, when most candidates are gone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Mask, Rows
from clew.core.errors import UsageError
from clew.core.protocols import PropertyGraph
from clew.triples.engine.candidates import (
    NO_ROWS,
    Candidates,
    RowSet,
    constant_candidates,
    variable_candidates,
)
from clew.triples.engine.edges import Edges, split_ranges
from clew.triples.engine.patterns import Constraint, Pattern, TypedTriple, connected_terms, triples_on_cycles
from clew.triples.language.chain import NOT, Quantifier

#: Partial matches: the rows of every bound term, (matches,) each.
Matches = dict[str, RowSet]

#: A triple on a cycle is deferred where more than this share of its end's candidates is left.
_DEFERRED_SHARE = 0.9


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


def order_quantifiers(triples: Sequence[TypedTriple], constants: Collection[str]) -> list[int]:
    """Sort the numbers of the quantified triples, so that each comes after the triples that restrict its candidates.

    ``constants`` are the names of terms whose given candidates are counted. Raises UsageError for two quantifiers
    that depend on each other.
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
