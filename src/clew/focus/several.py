"""Many patterns at once: those of one form share every look at the edges.

A single question over a few hundred edges costs what its numpy calls cost. Where many patterns differ in their
constants alone (an evaluation, a table of names to look up), a candidate is a pair of pattern and row, packed into
one integer, and the fixpoint is that of :mod:`clew.focus.fixpoint` over sets of such pairs. Only patterns whose
triples form trees, each with a constant, are taken together; the others are substituted one by one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.focus.edges import Edges, cuts
from clew.focus.patterns import Pattern, TypedTriple, Way, components
from clew.focus.sets import distinct, within
from clew.focus.substitution import Substituted, substitute

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from clew.protocols import Mask, PropertyGraph

    #: Ascending pairs of pattern (upper 32 bits) and row.
    Pairs = NDArray[np.int64]

#: Patterns that are taken together at most: a bound on memory.
TOGETHER = 512
_ROW = 0xFFFFFFFF


def substitute_all(graph: PropertyGraph, patterns: Sequence[Pattern]) -> list[Substituted]:
    """Return for each pattern what :func:`clew.focus.substitute` does; ``seconds`` is its share of those taken
    together."""
    found: list[Substituted | None] = [None] * len(patterns)
    groups: dict[Hashable, list[int]] = {}
    for number, pattern in enumerate(patterns):
        groups.setdefault(_form(pattern), []).append(number)
    arrays = graph.adjacency(None) is not None
    for numbers in groups.values():
        several = arrays and len(numbers) > 1 and _are_trees(patterns[numbers[0]])
        for first in range(0, len(numbers), TOGETHER if several else 1):
            some = numbers[first : first + TOGETHER] if several else [numbers[first]]
            asked = [patterns[n] for n in some]
            made = _Several(graph, asked).solved() if several else [substitute(graph, asked[0])]
            for number, one in zip(some, made, strict=True):
                found[number] = one
    return [one for one in found if one is not None]


def _form(pattern: Pattern) -> Hashable:
    """Return what patterns have in common that are taken together: all but the rows of their terms. Of strings, whose
    hash is remembered."""
    if pattern.predicates or pattern.answers is not None:
        return id(pattern)
    parts: list[Hashable] = [pattern.target]
    for variable in pattern.variables:
        parts += variable.name, variable.types, variable.rows is None
    for constant in pattern.constants:
        parts.append(constant.name)
    for triple in pattern.triples:
        parts += triple.head, triple.tail, triple.count
        for way in triple.ways:
            parts += way.relation, way.inverse
    return tuple(parts)


def _are_trees(pattern: Pattern) -> bool:
    """Return whether a pattern's triples form trees, each with a term whose rows are given."""
    if pattern.predicates or pattern.answers is not None or any(one.count for one in pattern.triples):
        return False
    variables = [one.name for one in pattern.variables]
    names = [*variables, *(one.name for one in pattern.constants)]
    trees = set(components(pattern.triples, names).values())
    free = {one.name for one in pattern.variables if one.rows is None}
    return len(pattern.triples) == len(names) - len(trees) and not any(tree <= free for tree in trees)


class _Several:
    def __init__(self, graph: PropertyGraph, patterns: Sequence[Pattern]) -> None:
        self._graph, self._patterns = graph, patterns
        self._types = {one.name: one.types for one in patterns[0].variables}
        self._out = {
            one.name: _pairs([of.variables[place].without for of in patterns])
            for place, one in enumerate(patterns[0].variables)
        }
        self._sets: dict[str, Pairs] = {
            one.name: _pairs([of.constants[place].rows for of in patterns])
            for place, one in enumerate(patterns[0].constants)
        }
        for place, one in enumerate(patterns[0].variables):
            if one.rows is not None:
                self._sets[one.name] = self._own(
                    one.name, _pairs([of.variables[place].rows for of in patterns])
                )
        self._edges: dict[tuple[int, bool], Edges] = {}
        self.rounds = 0

    def _own(self, name: str, pairs: Pairs) -> Pairs:
        """Return those of some pairs that a variable may be by itself."""
        if len(self._out[name]):
            pairs = pairs[~within(pairs, self._out[name])]
        if types := self._types[name]:
            rows = pairs & _ROW
            marks = self._graph.typed(rows, types[0])
            for type in types[1:]:
                marks = marks | self._graph.typed(rows, type)
            pairs = pairs[marks]
        return pairs

    def solved(self) -> list[Substituted]:
        """Narrow everything until nothing changes."""
        started = time.perf_counter()
        triples = self._patterns[0].triples
        waiting = set(range(len(triples)))
        while waiting:
            able = [n for n in waiting if {triples[n].head, triples[n].tail} & self._sets.keys()]
            number = min(able, key=lambda n: (self._size(triples[n]), n))
            waiting.discard(number)
            changed = self._revise(number, triples[number])
            self.rounds += 1
            waiting |= {
                n
                for n, one in enumerate(triples)
                if n != number and not changed.isdisjoint((one.head, one.tail))
            }
        return self._split(started)

    def _size(self, triple: TypedTriple) -> int:
        return min(len(self._sets[end]) for end in (triple.head, triple.tail) if end in self._sets)

    def _revise(self, number: int, triple: TypedTriple) -> set[str]:
        """Narrow both ends of a triple, through the edges of the one with fewer pairs; return which changed."""
        source, other = sorted(
            (triple.head, triple.tail), key=lambda one: len(self._sets[one]) if one in self._sets else np.inf
        )
        key = (number, source == triple.tail)
        if key not in self._edges:
            ways = [Way(one.relation, one.inverse != key[1]) for one in triple.ways]
            self._edges[key] = Edges(self._graph, ways)
        kept, found = self._reached(self._edges[key], self._sets[source], other)
        changed = set()
        if other not in self._sets or len(found) != len(self._sets[other]):
            self._sets[other] = found
            changed.add(other)
        if not kept.all():
            self._sets[source] = self._sets[source][kept]
            changed.add(source)
        return changed

    def _reached(self, edges: Edges, pairs: Pairs, other: str) -> tuple[Mask, Pairs]:
        rows = (pairs & _ROW).astype(np.uint32)
        kept, parts = np.zeros(len(pairs), dtype=np.bool_), []
        for first, last in cuts(edges.degrees(rows)):
            owners, others = edges.pairs(rows[first:last])
            reached = (pairs[first:last] & ~_ROW)[owners] | others
            if other in self._sets:
                passed = within(reached, self._sets[other])
                parts.append(distinct(reached[passed], 0))
            else:
                every = distinct(reached, 0)
                own = self._own(other, every)
                passed = (
                    np.ones(len(reached), dtype=np.bool_) if len(own) == len(every) else within(reached, own)
                )
                parts.append(own)
            kept[first:last] = np.bincount(owners[passed], minlength=last - first) > 0
        return kept, parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))

    def _split(self, started: float) -> list[Substituted]:
        """Return the sets of each pattern; none where some term has no candidate."""
        bounds = np.arange(len(self._patterns) + 1) << 32
        places = {name: pairs.searchsorted(bounds) for name, pairs in self._sets.items()}
        there = np.ones(len(self._patterns), dtype=np.bool_)
        for at in places.values():
            there &= np.diff(at) > 0
        rows = {name: pairs & _ROW for name, pairs in self._sets.items()}
        share = (time.perf_counter() - started) / len(self._patterns)
        target = self._patterns[0].target
        names = list(rows)
        runs = [[some[a:b] for a, b in pairwise(places[name].tolist())] for name, some in rows.items()]
        nothing = np.empty(0, dtype=np.int64)
        return [
            Substituted(
                target,
                dict(zip(names, some if holds else [nothing] * len(some), strict=True)),
                self.rounds,
                share,
            )
            for some, holds in zip(zip(*runs, strict=True), there.tolist(), strict=True)
        ]


def _pairs(rows: Sequence[Any]) -> Pairs:
    """Return the pairs of some rows for each pattern."""
    sizes = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    if not sizes.sum():
        return np.empty(0, dtype=np.int64)
    every = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(sizes.sum()))
    return distinct(np.repeat(np.arange(len(rows)) << 32, sizes) | every, 0)
