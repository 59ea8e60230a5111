"""The edges of a triple, followed from its head or from its tail, for whole sets of rows at once.

An imported graph gives its adjacency as arrays. A mounted graph answers queries: what an edge costs there is a guess,
and no operation begins with all nodes.

A pair of nodes is looked up among the tails of whichever end has fewer edges, so that a hub costs nothing where the
other end is none. A join asks for millions of pairs, few of which are edges. Those that cannot be edges are found
first by a table with a byte for each hash of a pair, in which all edges of the pairs' ends are marked (Bloom, 1970,
with a single hash). The table never denies an edge; the pairs that it lets through are looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Mask, distinct, is_member, run_offsets
from clew.core.protocols import Adjacency, PropertyGraph
from clew.triples.engine.candidates import NO_ROWS, Candidates, RowSet, count_per_run, union, unique_rows
from clew.triples.engine.patterns import DirectedRelation

#: Edges that are looked at in one go: a bound on memory, 8 bytes each in a few arrays.
CHUNK_EDGES = 1 << 20
#: Assumed number of edges of a row where the graph cannot say.
_ASSUMED_DEGREE = 16
#: The degrees of larger sets are estimated by the average degree.
_SUMMED_ROWS = 1024
#: The table of pairs may be worth making from this many pairs on, up to so many edges to mark for each pair.
_MIN_PAIRS, _MAX_MARKED = 1 << 12, 4
#: Size of the table of pairs as powers of 2: bits beyond those of the number of edges, and at most.
_SPARE_BITS, _MAX_BITS = 3, 26
_HASH_FACTORS = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77)


class Edges:
    """The edges along directed relations, from their sources to their tails."""

    __slots__ = ("_arrays", "_average_degree", "_relations", "_size", "graph")

    def __init__(self, graph: PropertyGraph, relations: Sequence[DirectedRelation]) -> None:
        self.graph, self._relations = graph, relations
        arrays = [graph.adjacency(directed.relation, directed.inverse) for directed in relations]
        self._arrays = [adjacency for adjacency in arrays if adjacency is not None]
        self._size = graph.size if self._arrays else 0
        self._average_degree = 0.0

    @property
    def in_memory(self) -> bool:
        """Whether the edges are available as arrays."""
        return bool(self._arrays)

    def estimate_cost(self, rows: RowSet) -> float:
        """Return how many edges start at the rows of a set, exactly or estimated."""
        if not self._arrays:
            return len(rows) * _ASSUMED_DEGREE
        if len(rows) > _SUMMED_ROWS:
            if not self._average_degree:
                self._average_degree = sum(
                    len(adjacency.tails) / max(len(adjacency.starts) - 1, 1) for adjacency in self._arrays
                )
            return len(rows) * (1 + self._average_degree)
        total = 0
        for adjacency in self._arrays:
            starts, ends = adjacency.bounds(rows)
            total += int((ends - starts).sum())
        return total

    def sources(self) -> RowSet:
        """Return all rows at which an edge starts. In memory only."""
        return union(
            [
                np.flatnonzero(np.diff(adjacency.starts)).astype(np.uint32)
                if adjacency.heads is None
                else adjacency.heads
                for adjacency in self._arrays
            ],
            self._size,
        )

    def reach(self, rows: RowSet, candidates: Candidates) -> tuple[Mask, RowSet]:
        """Return which rows of a set have an edge to a candidate, (rows,), and the candidates that are reached."""
        if not self._arrays:
            return self._query_reach(rows, candidates)
        reaching, reached = _reach_along(self._arrays[0], rows, candidates, self._size)
        for adjacency in self._arrays[1:]:
            more_reaching, more_reached = _reach_along(adjacency, rows, candidates, self._size)
            reaching, reached = reaching | more_reaching, union([reached, more_reached], self._size)
        return reaching, reached

    def _query_reach(self, rows: RowSet, candidates: Candidates) -> tuple[Mask, RowSet]:
        reaching, reached = np.zeros(len(rows), dtype=np.bool_), NO_ROWS
        for offsets, tails in self._runs(rows):
            more_reaching, more_reached = _filter_runs(offsets, tails, candidates, 0)
            reaching, reached = reaching | more_reaching, union([reached, more_reached], 0)
        return reaching, reached

    def expand(self, rows: RowSet) -> tuple[NDArray[np.int64], RowSet]:
        """Return every edge from ``rows``, which may be in any order: the place of its source among them, and its
        tail.

        An edge along several of the relations is there several times.
        """
        owners, tails = [], []
        for offsets, others in self._runs(rows):
            owners.append(np.repeat(np.arange(len(rows)), np.diff(offsets)))
            tails.append(others)
        return np.concatenate(owners), np.concatenate(tails)

    def _runs(self, rows: RowSet) -> Iterator[tuple[NDArray[np.int64], RowSet]]:
        """Yield for each relation the tails of the rows, one run for each row, and the offsets of the runs."""
        if self._arrays:
            for adjacency in self._arrays:
                starts, ends = adjacency.bounds(rows)
                yield gather_tails(adjacency, starts, ends - starts)
            return
        for directed in self._relations:
            offsets, tails = self.graph.neighbours(rows.astype(np.int64), directed.relation, directed.inverse)
            yield offsets, tails.astype(np.uint32)

    def degrees(self, rows: RowSet) -> NDArray[np.int64]:
        """Return how many edges start at each of ``rows``, (rows,), an edge counted once for each of its
        relations."""
        total = np.zeros(len(rows), dtype=np.int64)
        if not self._arrays:
            for offsets, _ in self._runs(rows):
                total += np.diff(offsets)
        for adjacency in self._arrays:
            starts, ends = adjacency.bounds(rows)
            total += ends - starts
        return total

    def count_candidates(self, rows: RowSet, candidates: Candidates) -> NDArray[np.int64]:
        """Return to how many different candidates each row of a set has an edge, (rows,)."""
        total = np.empty(len(rows), dtype=np.int64)
        for first, last in split_ranges(self.degrees(rows)):
            part = rows[first:last]
            if len(self._relations) == 1:
                ((offsets, tails),) = self._runs(part)
                total[first:last] = count_per_run(candidates.contains(tails), offsets)
                continue
            owners, tails = self.expand(part)
            is_candidate = candidates.contains(tails)
            # Each pair once, though several relations may have it.
            pairs = distinct(owners[is_candidate] << 32 | tails[is_candidate].astype(np.int64))
            total[first:last] = np.bincount(pairs >> 32, minlength=len(part))
        return total

    def count_sources(self, rows: RowSet) -> NDArray[np.int64]:
        """Return for every node of the graph how many different rows of a set lead to it, (size,). In memory only."""
        total = np.zeros(self._size, dtype=np.int64)
        if len(self._arrays) > 1:
            owners, tails = self.expand(rows)
            pairs = distinct(tails.astype(np.int64) << 32 | owners)
            return total + np.bincount(pairs >> 32, minlength=self._size)
        for first, last in split_ranges(self.degrees(rows)):
            _, tails = self.expand(rows[first:last])
            total += np.bincount(tails, minlength=self._size)
        return total

    def has_edge(self, rows: RowSet, others: RowSet) -> Mask:
        """Return for each pair of a row and another whether an edge leads from the one to the other, (n,)."""
        if not self._arrays:
            sources, places = np.unique(rows, return_inverse=True)
            owners, tails = self.expand(sources)
            pairs = distinct(owners << 32 | tails.astype(np.int64))
            return is_member(places << 32 | others.astype(np.int64), pairs)
        joined = np.zeros(len(rows), dtype=np.bool_)
        for adjacency, directed in zip(self._arrays, self._relations, strict=True):
            reverse = self.graph.adjacency(directed.relation, not directed.inverse)
            assert reverse is not None
            joined |= has_edge(adjacency, reverse, rows, others, self._size)
        return joined


def split_ranges(sizes: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return ranges of consecutive rows with at most :data:`CHUNK_EDGES` edges together, or one row with more."""
    if sizes.sum() <= CHUNK_EDGES:
        return [(0, len(sizes))]
    offsets, bounds = run_offsets(sizes), [0]
    while bounds[-1] < len(sizes):
        after = int(offsets.searchsorted(offsets[bounds[-1]] + CHUNK_EDGES, side="right")) - 1
        bounds.append(max(after, bounds[-1] + 1))
    return list(pairwise(bounds))


def gather_tails(
    adjacency: Adjacency, starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], RowSet]:
    """Return the offsets of the sources' tails, (sources + 1,), and the tails, one source after the other."""
    offsets = run_offsets(sizes)
    if len(sizes) == 1:
        return offsets, adjacency.tails[starts[0] : starts[0] + sizes[0]]
    places = (starts - offsets[:-1]).repeat(sizes)
    places += np.arange(len(places))
    return offsets, adjacency.tails.take(places)


def _reach_along(
    adjacency: Adjacency, rows: RowSet, candidates: Candidates, size: int
) -> tuple[Mask, RowSet]:
    starts, ends = adjacency.bounds(rows)
    if len(rows) == 1:  # a slice is a set already, and costs nothing however long it is
        reached = candidates.select(adjacency.tails[starts[0] : ends[0]])
        return np.array([len(reached) > 0]), reached
    sizes = ends - starts
    ranges = split_ranges(sizes)
    if len(ranges) == 1:
        return _filter_runs(*gather_tails(adjacency, starts, sizes), candidates, size)
    reaching, is_reached = np.empty(len(rows), dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    for first, last in ranges:
        offsets, tails = gather_tails(adjacency, starts[first:last], sizes[first:last])
        reaching[first:last], reached = _filter_runs(offsets, tails, candidates, size)
        is_reached[reached] = True
    return reaching, np.flatnonzero(is_reached).astype(np.uint32)


def _filter_runs(
    offsets: NDArray[np.int64], tails: RowSet, candidates: Candidates, size: int
) -> tuple[Mask, RowSet]:
    """Return which runs of tails have a candidate, and the set of those candidates."""
    if candidates.rows is None:
        all_tails = unique_rows(tails, size)
        reached = candidates.select(all_tails)
        if len(reached) == len(all_tails):
            return offsets[1:] > offsets[:-1], reached
        is_candidate = is_member(tails, reached)
    else:
        is_candidate = candidates.contains(tails)
        reached = unique_rows(tails[is_candidate], size)
    return count_per_run(is_candidate, offsets) > 0, reached


def has_edge(adjacency: Adjacency, reverse: Adjacency, rows: RowSet, others: RowSet, size: int) -> Mask:
    """Return for each pair of a row and another whether it is an edge of ``adjacency``, (n,).

    ``reverse`` has the same edges from the other end; ``size`` is the number of rows in the graph.
    """
    if len(rows) < _MIN_PAIRS:
        return _look_up_pairs(adjacency, reverse, rows, others)
    places = np.flatnonzero(_possible_pairs(adjacency, reverse, rows, others, size))
    joined = np.zeros(len(rows), dtype=np.bool_)
    joined[places] = _look_up_pairs(adjacency, reverse, rows[places], others[places])
    return joined


def _possible_pairs(
    adjacency: Adjacency, reverse: Adjacency, rows: RowSet, others: RowSet, size: int
) -> Mask:
    """Return which pairs may be edges; all of them where marking the edges of their ends is not worth it."""
    ends = []
    for direction, nodes in ((adjacency, rows), (reverse, others)):
        sources = unique_rows(nodes, size)
        starts, stops = direction.bounds(sources)
        sizes = stops - starts
        ends.append((int(sizes.sum()), direction is reverse, direction, sources, starts, sizes))
    total, reversed_, direction, sources, starts, sizes = min(ends, key=lambda end: end[0])
    if total > len(rows) * _MAX_MARKED:
        return np.ones(len(rows), dtype=np.bool_)
    if not total:
        return np.zeros(len(rows), dtype=np.bool_)
    heads, tails = sources.repeat(sizes), gather_tails(direction, starts, sizes)[1]
    if reversed_:
        heads, tails = tails, heads
    bits = min(total.bit_length() + _SPARE_BITS, _MAX_BITS)
    table = np.zeros(1 << bits, dtype=np.bool_)
    table[_hash_pairs(heads, tails, bits)] = True
    return table.take(_hash_pairs(rows, others, bits))


def _hash_pairs(rows: RowSet, others: RowSet, bits: int) -> RowSet:
    mixed = rows * _HASH_FACTORS[0]
    mixed += others * _HASH_FACTORS[1]
    mixed >>= np.uint32(32 - bits)
    return mixed


def _look_up_pairs(adjacency: Adjacency, reverse: Adjacency, rows: RowSet, others: RowSet) -> Mask:
    """Return which pairs are edges, each looked up from the end that has fewer edges."""
    low, high = adjacency.bounds(rows)
    other_low, other_high = reverse.bounds(others)
    forwards = high - low <= other_high - other_low
    if forwards.all():
        return _search_runs(adjacency.tails, low, high, others)
    joined = np.empty(len(rows), dtype=np.bool_)
    joined[forwards] = _search_runs(adjacency.tails, low[forwards], high[forwards], others[forwards])
    backwards = ~forwards
    joined[backwards] = _search_runs(
        reverse.tails, other_low[backwards], other_high[backwards], rows[backwards]
    )
    return joined


def _search_runs(tails: RowSet, low: NDArray[np.int64], high: NDArray[np.int64], wanted: RowSet) -> Mask:
    """Return which wanted rows are in their run ``tails[low:high]``: a binary search in all runs at once."""
    ends = high
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        unfinished = low < high
        before = unfinished & (tails.take(middle, mode="clip") < wanted)
        low = np.where(before, middle + 1, low)
        high = np.where(unfinished & ~before, middle, high)
    present: Mask = low < ends
    present[present] = tails[low[present]] == wanted[present]
    return present
