"""The edges of a triple, from its head or from its tail: whole sets through them at once.

An imported graph gives its adjacency as arrays. Of a mounted one every set is asked, and only what comes back is
known: what an edge costs is a guess, and no operation begins with all nodes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from clew.focus.lookup import gathered, joined
from clew.focus.sets import NOTHING, distinct, offsets_of, summed, together, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from clew.focus.candidates import Candidates
    from clew.focus.patterns import Way
    from clew.focus.sets import Set
    from clew.protocols import Adjacency, Mask, PropertyGraph

#: Edges that are looked at in one go: a bound on memory, 8 bytes each in a few arrays.
CHUNK = 1 << 20
#: What a row is taken to have of tails where nobody can say.
_GUESS = 16
#: Of sets larger than this the degrees are estimated by their average.
_EXACT = 1024


class Edges:
    """The edges of some ways, from their sources to their tails."""

    __slots__ = ("_arrays", "_average", "_size", "_ways", "graph")

    def __init__(self, graph: PropertyGraph, ways: Sequence[Way]) -> None:
        self.graph, self._ways = graph, ways
        arrays = [graph.adjacency(way.relation, way.inverse) for way in ways]
        self._arrays = [one for one in arrays if one is not None]
        self._size = graph.size if self._arrays else 0
        self._average = 0.0

    @property
    def known(self) -> bool:
        """Whether the edges are there as arrays."""
        return bool(self._arrays)

    def cost(self, rows: Set) -> float:
        """Return how many edges start at the rows of a set, exactly or about."""
        if not self._arrays:
            return len(rows) * _GUESS
        if len(rows) > _EXACT:
            if not self._average:
                per = [len(one.tails) / max(len(one.starts) - 1, 1) for one in self._arrays]
                self._average = sum(per)
            return len(rows) * (1 + self._average)
        total = 0
        for one in self._arrays:
            starts, ends = one.bounds(rows)
            total += int((ends - starts).sum())
        return total

    def sources(self) -> Set:
        """Return all rows that an edge starts at."""
        found = [
            np.flatnonzero(np.diff(one.starts)).astype(np.uint32) if one.heads is None else one.heads
            for one in self._arrays
        ]
        return together(found, self._size)

    def reach(self, rows: Set, other: Candidates) -> tuple[Mask, Set]:
        """Return which rows of a set have an edge to a candidate, and the candidates that are reached."""
        if not self._arrays:
            return self._asked(rows, other)
        kept, found = _along(self._arrays[0], rows, other, self._size)
        for one in self._arrays[1:]:
            more, others = _along(one, rows, other, self._size)
            kept, found = kept | more, together([found, others], self._size)
        return kept, found

    def _asked(self, rows: Set, other: Candidates) -> tuple[Mask, Set]:
        kept, found = np.zeros(len(rows), dtype=np.bool_), NOTHING
        for way in self._ways:
            offsets, others = self.graph.adjacent(rows.astype(np.int64), way.relation, way.inverse)
            more, reached = _filtered(offsets, others.astype(np.uint32), other, 0)
            kept, found = kept | more, together([found, reached], 0)
        return kept, found

    def pairs(self, rows: Set) -> tuple[NDArray[np.int64], Set]:
        """Return every edge from some rows, given in any order: the place of its source among them, and its tail.

        An edge that several ways have is there several times.
        """
        owners, tails = [], []
        for offsets, others in self._runs(rows):
            owners.append(np.repeat(np.arange(len(rows)), np.diff(offsets)))
            tails.append(others)
        return np.concatenate(owners), np.concatenate(tails)

    def _runs(self, rows: Set) -> Iterator[tuple[NDArray[np.int64], Set]]:
        if self._arrays:
            for one in self._arrays:
                starts, ends = one.bounds(rows)
                yield gathered(one, starts, ends - starts)
            return
        for way in self._ways:
            offsets, others = self.graph.adjacent(rows.astype(np.int64), way.relation, way.inverse)
            yield offsets, others.astype(np.uint32)

    def runs(self, rows: Set) -> Iterator[tuple[int, int, NDArray[np.int64], Set]]:
        """Yield the tails of some rows, in any order, some rows at a time: the range of these, how many tails each
        has, and the tails. For arrays alone; once for each way."""
        for one in self._arrays:
            starts, ends = one.bounds(rows)
            sizes = ends - starts
            for first, last in cuts(sizes):
                yield first, last, sizes[first:last], gathered(one, starts[first:last], sizes[first:last])[1]

    def degrees(self, rows: Set) -> NDArray[np.int64]:
        """Return how many edges start at each of some rows, each counted once for each way."""
        total = np.zeros(len(rows), dtype=np.int64)
        if not self._arrays:
            for offsets, _ in self._runs(rows):
                total += np.diff(offsets)
        for one in self._arrays:
            starts, ends = one.bounds(rows)
            total += ends - starts
        return total

    def counts(self, rows: Set, other: Candidates) -> NDArray[np.int64]:
        """Return how many different candidates each row of a set has an edge to."""
        total = np.empty(len(rows), dtype=np.int64)
        for first, last in cuts(self.degrees(rows)):
            some = rows[first:last]
            if len(self._ways) == 1:
                ((offsets, others),) = self._runs(some)
                total[first:last] = summed(other.has(others), offsets)
                continue
            owners, others = self.pairs(some)
            keep = other.has(others)
            keys = distinct(owners[keep] << 32 | others[keep].astype(np.int64), 0)  # each pair once
            total[first:last] = np.bincount(keys >> 32, minlength=len(some))
        return total

    def tallied(self, rows: Set) -> NDArray[np.int64]:
        """Return for every node how many different rows of a set lead to it, (size,): for arrays alone."""
        total = np.zeros(self._size, dtype=np.int64)
        if len(self._arrays) > 1:
            owners, others = self.pairs(rows)
            keys = distinct(others.astype(np.int64) << 32 | owners, 0)
            return total + np.bincount(keys >> 32, minlength=self._size)
        for first, last in cuts(self.degrees(rows)):
            _, others = self.pairs(rows[first:last])
            total += np.bincount(others, minlength=self._size)
        return total

    def joins(self, rows: Set, others: Set) -> Mask:
        """Return which pairs of a row and another have an edge, (n,) both."""
        found = np.zeros(len(rows), dtype=np.bool_)
        if not self._arrays:
            sources, places = np.unique(rows, return_inverse=True)
            owners, tails = self.pairs(sources)
            keys = distinct(owners << 32 | tails.astype(np.int64), 0)
            return within(places << 32 | others.astype(np.int64), keys)
        for one, way in zip(self._arrays, self._ways, strict=True):
            back = self.graph.adjacency(way.relation, not way.inverse)
            assert back is not None
            found |= joined(one, back, rows, others, self._size)
        return found


def cuts(sizes: NDArray[np.int64], chunk: int = 0) -> list[tuple[int, int]]:
    """Return the ranges of consecutive rows that have at most ``chunk`` edges together, or one row with more."""
    chunk = chunk or CHUNK
    if sizes.sum() <= chunk:
        return [(0, len(sizes))]
    offsets, at = offsets_of(sizes), [0]
    while at[-1] < len(sizes):
        after = int(offsets.searchsorted(offsets[at[-1]] + chunk, side="right")) - 1
        at.append(max(after, at[-1] + 1))
    return list(pairwise(at))


def _along(one: Adjacency, rows: Set, other: Candidates, size: int) -> tuple[Mask, Set]:
    starts, ends = one.bounds(rows)
    if len(rows) == 1:  # a slice is a set already, and costs nothing however long it is
        found = other.keep(one.tails[starts[0] : ends[0]])
        return np.array([len(found) > 0]), found
    sizes = ends - starts
    ranges = cuts(sizes)
    if len(ranges) == 1:
        return _filtered(*gathered(one, starts, sizes), other, size)
    kept, marks = np.empty(len(rows), dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    for first, last in ranges:
        offsets, others = gathered(one, starts[first:last], sizes[first:last])
        kept[first:last], found = _filtered(offsets, others, other, size)
        marks[found] = True
    return kept, np.flatnonzero(marks).astype(np.uint32)


def _filtered(offsets: NDArray[np.int64], others: Set, other: Candidates, size: int) -> tuple[Mask, Set]:
    """Return which runs of ``others`` have a candidate, and the set of those candidates."""
    if other.rows is None:
        every = distinct(others, size)
        found = other.keep(every)
        if len(found) == len(every):
            return offsets[1:] > offsets[:-1], found
        passed = within(others, found)
    else:
        passed = other.has(others)
        found = distinct(others[passed], size)
    return summed(passed, offsets) > 0, found
