"""Sets of rows: ascending uint32 arrays without repetition. Runs of them lie one after the other, between offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from clew.core.arrays import sorted_unique

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Mask

if TYPE_CHECKING:
    RowSet = NDArray[np.uint32]

Number = TypeVar("Number", bound="np.integer[Any]")
NO_ROWS: RowSet = np.empty(0, dtype=np.uint32)
#: A set is put in order by marking its rows among all rows, not by sorting, from this share of them on.
_MARKED = 16


def as_set(rows: Any) -> RowSet:
    """Return the set of some rows, given in any order."""
    given = np.asarray(rows)
    if given.dtype == np.uint32 and (len(given) < 2 or bool((given[1:] > given[:-1]).all())):
        return given
    found: RowSet = sorted_unique(given).astype(np.uint32)
    return found


def unique_rows(rows: NDArray[Number], size: int) -> NDArray[Number]:
    """Return the set of rows that are in any order; ``size``: how many rows there are in all, 0 if unknown."""
    if len(rows) < 2:
        return rows
    if size and len(rows) * _MARKED > size:
        marks = np.zeros(size, dtype=np.bool_)
        marks[rows] = True
        return np.flatnonzero(marks).astype(rows.dtype)
    ordered = np.sort(rows)
    first = np.empty(len(ordered), dtype=np.bool_)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def is_member(rows: NDArray[Any], among: NDArray[Any]) -> Mask:
    """Return which of ``rows`` are in an ascending array of the same type."""
    if not len(among):
        return np.zeros(len(rows), dtype=np.bool_)
    places = among.searchsorted(rows)
    found: Mask = among.take(places, mode="clip") == rows
    return found


def intersect(one: RowSet, other: RowSet) -> RowSet:
    """Return what two sets have in common."""
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    return small[is_member(small, large)]


def union(sets: Sequence[RowSet], size: int) -> RowSet:
    """Return the union of sets."""
    return sets[0] if len(sets) == 1 else unique_rows(np.concatenate(sets), size)


def run_offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each of consecutive runs of these sizes starts, and where the last one ends."""
    offsets = np.empty(len(sizes) + 1, dtype=np.int64)
    offsets[0] = 0
    sizes.cumsum(out=offsets[1:])
    return offsets


def count_per_run(flags: Mask, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many flags are set in each run."""
    sums = np.empty(len(flags) + 1, dtype=np.int64)
    sums[0] = 0
    flags.cumsum(out=sums[1:])
    ends = sums.take(offsets)
    counted: NDArray[np.int64] = ends[1:] - ends[:-1]
    return counted
