"""Which pairs of nodes have an edge, for many pairs at once.

A pair is looked up among the tails of whichever end has fewer edges, so a hub costs nothing where the other end is
none. A join asks for millions of pairs of which few have one: those that cannot are found first, by a table of one
byte for each value of a hash of a pair, in which all edges of the pairs' ends are marked (Bloom, 1970, with a single
hash). It never denies an edge that is there; what it lets through is looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clew.focus.sets import unique_rows, run_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.focus.sets import RowSet
    from clew.protocols import Adjacency, Mask

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
