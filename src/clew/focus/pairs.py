"""The fixpoint for many questions at once, over pairs of question and row.

A single question over a few hundred edges costs what its numpy calls cost. Where many questions differ in their
constants alone, a candidate is a pair of question and row, packed into one integer, and the fixpoint is that of
:mod:`clew.focus.fixpoint` over sets of such pairs. Only patterns whose triples form trees, each with a constant, are
taken together; no join is needed there.

Where the target alone is asked for, a triple is looked at again only if what changed lies farther from the target:
in a tree every candidate of a term then has a partner in each of the triples that lead away from the target, and that
is an answer. The other terms may keep candidates without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.focus.candidates import Candidates, variable_candidates
from clew.focus.edges import Edges
from clew.focus.patterns import Pattern, connected_terms
from clew.focus.sets import unique_rows, run_offsets, count_per_run, is_member

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.protocols import Mask, PropertyGraph, Rows

    #: Ascending pairs of question (upper 32 bits) and row.
    Pairs = NDArray[np.int64]

#: The part of a pair that is its row.
ROW = 0xFFFFFFFF
_QUESTION = ~ROW


def are_trees(pattern: Pattern, given: Iterable[str] = ()) -> bool:
    """Return whether a pattern's triples form trees, each with a constant or a variable of ``given``, and none
    counts."""
    if any(one.quantifier for one in pattern.triples):
        return False
    free = {one.name for one in pattern.variables}.difference(given)
    names = [*(one.name for one in pattern.variables), *(one.name for one in pattern.constants)]
    trees = set(connected_terms(pattern.triples, names).values())
    return len(pattern.triples) == len(names) - len(trees) and not any(tree <= free for tree in trees)


class PairFixpoint:
    """The sets of all terms of one pattern, for ``number`` questions.

    ``sets`` has the pairs of what is given: the constants, and variables whose rows are. ``out``: for a variable,
    the one row that it is not in each question, (number,), -1 for none; or such pairs. What a variable may be by
    itself in every question says the pattern.
    """

    def __init__(
        self,
        graph: PropertyGraph,
        pattern: Pattern,
        sets: Mapping[str, Pairs],
        out: Mapping[str, tuple[Rows | None, Pairs | None]],
        whole: bool,
    ) -> None:
        self._triples = pattern.triples
        self._out = dict(out)
        self._own: dict[str, Candidates] = {
            one.name: made
            for one in pattern.variables
            if (made := variable_candidates(graph, pattern, one, dense=True)).is_restricted
        }
        self.sets = {name: self._allowed(name, pairs) for name, pairs in sets.items()}
        self._parents, self._roots = _rooted(pattern)
        self._again = self._looked_at_again(whole)
        self._whole, self._graph = whole, graph
        self._edges: dict[tuple[int, bool], Edges] = {}
        self.rounds = 0

    def _looked_at_again(self, whole: bool) -> dict[str, frozenset[int]]:
        """Return for each term the triples that are looked at again when its set has changed."""
        found: dict[str, set[int]] = {name: set() for name in self._parents}
        for number, triple in enumerate(self._triples):
            for end, other in ((triple.head, triple.tail), (triple.tail, triple.head)):
                if whole or self._parents[end] == other:
                    found[end].add(number)
        return {name: frozenset(numbers) for name, numbers in found.items()}

    def _allowed(self, name: str, pairs: Pairs) -> Pairs:
        """Return those of some pairs that a variable may be by itself."""
        row, several = self._out.get(name, (None, None))
        if row is not None:
            pairs = pairs[row[pairs >> 32] != pairs & ROW]
        if several is not None and len(several):
            pairs = pairs[~is_member(pairs, several)]
        if name in self._own:
            pairs = pairs[self._own[name].contains(pairs.astype(np.uint32))]
        return pairs

    def run(self) -> None:
        """Narrow everything until nothing changes."""
        waiting = set(range(len(self._triples)))
        while waiting:
            able = [
                n for n in waiting if self._triples[n].head in self.sets or self._triples[n].tail in self.sets
            ]
            chosen = able[0] if len(able) == 1 else min(able, key=lambda n: (self._cost(n), n))
            waiting.discard(chosen)
            for name in self._revise(chosen):
                waiting |= self._again[name] - {chosen}
            self.rounds += 1

    def offsets(self, number: int) -> tuple[dict[str, NDArray[np.int64]], Mask]:
        """Return where the pairs of each of ``number`` questions start, (number + 1,), in the set of every term, or
        of those that tell whether there are answers; and which questions have any."""
        bounds = np.arange(number + 1) << 32
        there = np.ones(number, dtype=np.bool_)
        found = {}
        for name in self.sets if self._whole else self._roots:
            found[name] = at = self.sets[name].searchsorted(bounds)
            there &= at[1:] > at[:-1]
        return found, there

    def edges(self, number: int, backwards: bool) -> Edges:
        """Return the edges of a triple from its head, or from its tail."""
        found = self._edges.get((number, backwards))
        if found is None:
            ways = self._triples[number].relations
            if backwards:
                ways = tuple(way.opposite for way in ways)
            found = self._edges[number, backwards] = Edges(self._graph, ways)
        return found

    def _cost(self, number: int) -> float:
        triple = self._triples[number]
        return min(self._from(number, triple.head, False), self._from(number, triple.tail, True))

    def _from(self, number: int, name: str, backwards: bool) -> float:
        """Return how many edges there are from a side, exactly or about."""
        if name not in self.sets:
            return float("inf")
        return self.edges(number, backwards).estimate_cost(self.sets[name].astype(np.uint32))

    def _revise(self, number: int) -> list[str]:
        """Narrow both ends of a triple, through the edges of the side that has fewer; return which changed."""
        head, tail = self._triples[number].head, self._triples[number].tail
        backwards = head not in self.sets
        if not backwards and tail in self.sets:
            backwards = self._from(number, tail, True) < self._from(number, head, False)
        source, other = (tail, head) if backwards else (head, tail)
        pairs, changed = self.sets[source], []
        narrowing = self._whole or self._parents[other] == source
        kept, found = self._reached(self.edges(number, backwards), pairs, other, narrowing)
        if other not in self.sets or len(found) != len(self.sets[other]):
            self.sets[other] = found
            changed.append(other)
        if kept is not None and not kept.all():
            self.sets[source] = pairs[kept]
            changed.append(source)
        return changed

    def _reached(self, edges: Edges, pairs: Pairs, other: str, narrowing: bool) -> tuple[Mask | None, Pairs]:
        """Return which pairs have an edge to a candidate, if that is wanted, and the candidates that are reached."""
        kept = np.zeros(len(pairs), dtype=np.bool_) if narrowing else None
        parts: list[Pairs] = []
        questions, known = pairs & _QUESTION, self.sets.get(other)
        for first, last, sizes, tails in edges.runs(pairs.astype(np.uint32)):
            reached = questions[first:last].repeat(sizes) | tails
            if known is None:
                every = _ordered(reached)
                found = self._allowed(other, every)
                passed = None if len(found) == len(every) or kept is None else is_member(reached, found)
            else:
                passed = is_member(reached, known)
                found = _ordered(reached[passed])
            parts.append(found)
            if kept is not None:
                kept[first:last] |= (sizes if passed is None else count_per_run(passed, run_offsets(sizes))) > 0
        return kept, parts[0] if len(parts) == 1 else unique_rows(np.concatenate(parts), 0)


def _ordered(pairs: Pairs) -> Pairs:
    """Return the set of some pairs; those from one source each are in order already."""
    return pairs if bool((pairs[1:] > pairs[:-1]).all()) else unique_rows(pairs, 0)


def _rooted(pattern: Pattern) -> tuple[dict[str, str], list[str]]:
    """Return for each term the next one on the way to the root of its tree, "" for a root; and the roots: the target,
    and any term of every other tree."""
    names = [
        pattern.target,
        *(one.name for one in pattern.variables),
        *(one.name for one in pattern.constants),
    ]
    near: dict[str, list[str]] = {name: [] for name in names}
    for triple in pattern.triples:
        near[triple.head].append(triple.tail)
        near[triple.tail].append(triple.head)
    parents: dict[str, str] = {}
    roots = []
    for root in near:
        if root in parents:
            continue
        roots.append(root)
        parents[root], waiting = "", [root]
        for name in waiting:
            for other in near[name]:
                if other not in parents:
                    parents[other] = name
                    waiting.append(other)
    return parents, roots


def paired(rows: Any, questions: Any) -> Pairs:
    """Return the set of pairs of some rows and the questions they belong to."""
    found: Pairs = _ordered((np.asarray(questions, dtype=np.int64) << 32) | rows)
    return found
