"""Which pairs of nodes have an edge, for many pairs at once.

A pair is looked up among the tails of whichever end has fewer edges, so a hub costs nothing where the other end is
none. A join asks for millions of pairs of which few have one: those that cannot are found first, by a table of one
byte for each value of a hash of a pair, in which all edges of the pairs' ends are marked (Bloom, 1970, with a single
hash). It never denies an edge that is there; what it lets through is looked up.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from clew.triples.engine.row_sets import NO_ROWS, count_per_run, is_member, run_offsets, union, unique_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from clew.core.arrays import Mask
    from clew.core.protocols import Adjacency, PropertyGraph
    from clew.triples.engine.candidates import Candidates
    from clew.triples.engine.patterns import DirectedRelation
    from clew.triples.engine.row_sets import RowSet

#: From this many pairs on, a table may be worth making; and up to so many edges to mark for each pair.
_MANY, _FEW = 1 << 12, 4
#: Bytes of the table for each edge in it, and at the most, as powers of 2.
_ROOM, _LARGEST = 3, 26
_MIX = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77)


def has_edge(one: Adjacency, back: Adjacency, rows: RowSet, others: RowSet, size: int) -> Mask:
    """Return which pairs of a row and another, (n,) both, are edges of ``one``; ``back`` has the same edges from the
    other end. ``size``: how many rows there are in all."""
    if len(rows) < _MANY:
        return _searched(one, back, rows, others)
    left = np.flatnonzero(_possible(one, back, rows, others, size))
    found = np.zeros(len(rows), dtype=np.bool_)
    found[left] = _searched(one, back, rows[left], others[left])
    return found


def _possible(one: Adjacency, back: Adjacency, rows: RowSet, others: RowSet, size: int) -> Mask:
    """Return which pairs may be edges; all of them where marking the edges of their ends is not worth it."""
    ends = []
    for way, given in ((one, rows), (back, others)):
        sources = unique_rows(given, size)
        starts, stops = way.bounds(sources)
        sizes = stops - starts
        ends.append((int(sizes.sum()), way is back, way, sources, starts, sizes))
    total, turned, way, sources, starts, sizes = min(ends, key=lambda end: end[0])
    if total > len(rows) * _FEW:
        return np.ones(len(rows), dtype=np.bool_)
    if not total:
        return np.zeros(len(rows), dtype=np.bool_)
    heads, tails = sources.repeat(sizes), gather_tails(way, starts, sizes)[1]
    if turned:
        heads, tails = tails, heads
    bits = min(total.bit_length() + _ROOM, _LARGEST)
    marks = np.zeros(1 << bits, dtype=np.bool_)
    marks[_hashed(heads, tails, bits)] = True
    return marks.take(_hashed(rows, others, bits))


def _hashed(rows: RowSet, others: RowSet, bits: int) -> RowSet:
    mixed = rows * _MIX[0]
    mixed += others * _MIX[1]
    mixed >>= np.uint32(32 - bits)
    return mixed


def _searched(one: Adjacency, back: Adjacency, rows: RowSet, others: RowSet) -> Mask:
    """Return which pairs are edges: each looked for from the end that has fewer."""
    low, high = one.bounds(rows)
    other_low, other_high = back.bounds(others)
    near = high - low <= other_high - other_low
    if near.all():
        return _found(one.tails, low, high, others)
    found = np.empty(len(rows), dtype=np.bool_)
    found[near] = _found(one.tails, low[near], high[near], others[near])
    far = ~near
    found[far] = _found(back.tails, other_low[far], other_high[far], rows[far])
    return found


def _found(tails: RowSet, low: NDArray[np.int64], high: NDArray[np.int64], wanted: RowSet) -> Mask:
    """Return which of the wanted are in their run of ``tails``: a binary search in all runs at once."""
    ends = high
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        open = low < high
        before = open & (tails.take(middle, mode="clip") < wanted)
        low = np.where(before, middle + 1, low)
        high = np.where(open & ~before, middle, high)
    found: Mask = low < ends
    found[found] = tails[low[found]] == wanted[found]
    return found


def gather_tails(
    one: Adjacency, starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], RowSet]:
    """Return the tails of sources, one after the other, and where those of each start."""
    offsets = run_offsets(sizes)
    if len(sizes) == 1:
        return offsets, one.tails[starts[0] : starts[0] + sizes[0]]
    places = (starts - offsets[:-1]).repeat(sizes)
    places += np.arange(len(places))
    return offsets, one.tails.take(places)


#: Edges that are looked at in one go: a bound on memory, 8 bytes each in a few arrays.
CHUNK_EDGES = 1 << 20
#: What a row is taken to have of tails where nobody can say.
_GUESS = 16
#: Of sets larger than this the degrees are estimated by their average.
_EXACT = 1024


class Edges:
    """The edges of some ways, from their sources to their tails."""

    __slots__ = ("_arrays", "_average", "_size", "_ways", "graph")

    def __init__(self, graph: PropertyGraph, ways: Sequence[DirectedRelation]) -> None:
        self.graph, self._ways = graph, ways
        arrays = [graph.adjacency(way.relation, way.inverse) for way in ways]
        self._arrays = [one for one in arrays if one is not None]
        self._size = graph.size if self._arrays else 0
        self._average = 0.0

    @property
    def in_memory(self) -> bool:
        """Whether the edges are there as arrays."""
        return bool(self._arrays)

    def estimate_cost(self, rows: RowSet) -> float:
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

    def sources(self) -> RowSet:
        """Return all rows that an edge starts at."""
        found = [
            np.flatnonzero(np.diff(one.starts)).astype(np.uint32) if one.heads is None else one.heads
            for one in self._arrays
        ]
        return union(found, self._size)

    def reach(self, rows: RowSet, other: Candidates) -> tuple[Mask, RowSet]:
        """Return which rows of a set have an edge to a candidate, and the candidates that are reached."""
        if not self._arrays:
            return self._asked(rows, other)
        kept, found = _along(self._arrays[0], rows, other, self._size)
        for one in self._arrays[1:]:
            more, others = _along(one, rows, other, self._size)
            kept, found = kept | more, union([found, others], self._size)
        return kept, found

    def _asked(self, rows: RowSet, other: Candidates) -> tuple[Mask, RowSet]:
        kept, found = np.zeros(len(rows), dtype=np.bool_), NO_ROWS
        for way in self._ways:
            offsets, others = self.graph.neighbours(rows.astype(np.int64), way.relation, way.inverse)
            more, reached = _filtered(offsets, others.astype(np.uint32), other, 0)
            kept, found = kept | more, union([found, reached], 0)
        return kept, found

    def expand(self, rows: RowSet) -> tuple[NDArray[np.int64], RowSet]:
        """Return every edge from some rows, given in any order: the place of its source among them, and its tail.

        An edge that several ways have is there several times.
        """
        owners, tails = [], []
        for offsets, others in self._runs(rows):
            owners.append(np.repeat(np.arange(len(rows)), np.diff(offsets)))
            tails.append(others)
        return np.concatenate(owners), np.concatenate(tails)

    def _runs(self, rows: RowSet) -> Iterator[tuple[NDArray[np.int64], RowSet]]:
        if self._arrays:
            for one in self._arrays:
                starts, ends = one.bounds(rows)
                yield gather_tails(one, starts, ends - starts)
            return
        for way in self._ways:
            offsets, others = self.graph.neighbours(rows.astype(np.int64), way.relation, way.inverse)
            yield offsets, others.astype(np.uint32)

    def runs(self, rows: RowSet) -> Iterator[tuple[int, int, NDArray[np.int64], RowSet]]:
        """Yield the tails of some rows, in any order, some rows at a time: the range of these, how many tails each
        has, and the tails. For arrays alone; once for each way."""
        for one in self._arrays:
            starts, ends = one.bounds(rows)
            sizes = ends - starts
            for first, last in split_ranges(sizes):
                yield (
                    first,
                    last,
                    sizes[first:last],
                    gather_tails(one, starts[first:last], sizes[first:last])[1],
                )

    def degrees(self, rows: RowSet) -> NDArray[np.int64]:
        """Return how many edges start at each of some rows, each counted once for each way."""
        total = np.zeros(len(rows), dtype=np.int64)
        if not self._arrays:
            for offsets, _ in self._runs(rows):
                total += np.diff(offsets)
        for one in self._arrays:
            starts, ends = one.bounds(rows)
            total += ends - starts
        return total

    def count_candidates(self, rows: RowSet, other: Candidates) -> NDArray[np.int64]:
        """Return how many different candidates each row of a set has an edge to."""
        total = np.empty(len(rows), dtype=np.int64)
        for first, last in split_ranges(self.degrees(rows)):
            some = rows[first:last]
            if len(self._ways) == 1:
                ((offsets, others),) = self._runs(some)
                total[first:last] = count_per_run(other.contains(others), offsets)
                continue
            owners, others = self.expand(some)
            keep = other.contains(others)
            keys = unique_rows(owners[keep] << 32 | others[keep].astype(np.int64), 0)  # each pair once
            total[first:last] = np.bincount(keys >> 32, minlength=len(some))
        return total

    def count_sources(self, rows: RowSet) -> NDArray[np.int64]:
        """Return for every node how many different rows of a set lead to it, (size,): for arrays alone."""
        total = np.zeros(self._size, dtype=np.int64)
        if len(self._arrays) > 1:
            owners, others = self.expand(rows)
            keys = unique_rows(others.astype(np.int64) << 32 | owners, 0)
            return total + np.bincount(keys >> 32, minlength=self._size)
        for first, last in split_ranges(self.degrees(rows)):
            _, others = self.expand(rows[first:last])
            total += np.bincount(others, minlength=self._size)
        return total

    def has_edge(self, rows: RowSet, others: RowSet) -> Mask:
        """Return which pairs of a row and another have an edge, (n,) both."""
        found = np.zeros(len(rows), dtype=np.bool_)
        if not self._arrays:
            sources, places = np.unique(rows, return_inverse=True)
            owners, tails = self.expand(sources)
            keys = unique_rows(owners << 32 | tails.astype(np.int64), 0)
            return is_member(places << 32 | others.astype(np.int64), keys)
        for one, way in zip(self._arrays, self._ways, strict=True):
            back = self.graph.adjacency(way.relation, not way.inverse)
            assert back is not None
            found |= has_edge(one, back, rows, others, self._size)
        return found


def split_ranges(sizes: NDArray[np.int64], chunk: int = 0) -> list[tuple[int, int]]:
    """Return the ranges of consecutive rows that have at most ``chunk`` edges together, or one row with more."""
    chunk = chunk or CHUNK_EDGES
    if sizes.sum() <= chunk:
        return [(0, len(sizes))]
    offsets, at = run_offsets(sizes), [0]
    while at[-1] < len(sizes):
        after = int(offsets.searchsorted(offsets[at[-1]] + chunk, side="right")) - 1
        at.append(max(after, at[-1] + 1))
    return list(pairwise(at))


def _along(one: Adjacency, rows: RowSet, other: Candidates, size: int) -> tuple[Mask, RowSet]:
    starts, ends = one.bounds(rows)
    if len(rows) == 1:  # a slice is a set already, and costs nothing however long it is
        found = other.select(one.tails[starts[0] : ends[0]])
        return np.array([len(found) > 0]), found
    sizes = ends - starts
    ranges = split_ranges(sizes)
    if len(ranges) == 1:
        return _filtered(*gather_tails(one, starts, sizes), other, size)
    kept, marks = np.empty(len(rows), dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    for first, last in ranges:
        offsets, others = gather_tails(one, starts[first:last], sizes[first:last])
        kept[first:last], found = _filtered(offsets, others, other, size)
        marks[found] = True
    return kept, np.flatnonzero(marks).astype(np.uint32)


def _filtered(
    offsets: NDArray[np.int64], others: RowSet, other: Candidates, size: int
) -> tuple[Mask, RowSet]:
    """Return which runs of ``others`` have a candidate, and the set of those candidates."""
    if other.rows is None:
        every = unique_rows(others, size)
        found = other.select(every)
        if len(found) == len(every):
            return offsets[1:] > offsets[:-1], found
        passed = is_member(others, found)
    else:
        passed = other.contains(others)
        found = unique_rows(others[passed], size)
    return count_per_run(passed, offsets) > 0, found


# MERGED: The edges of a triple, from its head or from its tail: whole sets through them at once.
