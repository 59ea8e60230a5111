"""Sets of rows as ascending uint32 arrays without repetition. Runs of rows lie one after the other, between
offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from clew.core.arrays import sorted_unique

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Mask

    RowSet = NDArray[np.uint32]

Number = TypeVar("Number", bound="np.integer[Any]")
NO_ROWS: RowSet = np.empty(0, dtype=np.uint32)
#: Rows are put in order by a flag for each row of the graph instead of by sorting where they are at least 1 in so
#: many.
_FLAGGED = 16


def as_set(rows: Any) -> RowSet:
    """Return ``rows``, in any order and perhaps repeated, as a set."""
    array = np.asarray(rows)
    if array.dtype == np.uint32 and (len(array) < 2 or bool((array[1:] > array[:-1]).all())):
        return array
    ordered: RowSet = sorted_unique(array).astype(np.uint32)
    return ordered


def unique_rows(rows: NDArray[Number], size: int) -> NDArray[Number]:
    """Return ``rows``, in any order, as a set; ``size`` is the number of rows in the graph, 0 if unknown."""
    if len(rows) < 2:
        return rows
    if size and len(rows) * _FLAGGED > size:
        flags = np.zeros(size, dtype=np.bool_)
        flags[rows] = True
        return np.flatnonzero(flags).astype(rows.dtype)
    ordered = np.sort(rows)
    first = np.empty(len(ordered), dtype=np.bool_)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def is_member(rows: NDArray[Any], among: NDArray[Any]) -> Mask:
    """Return for each row whether it is in the ascending array ``among`` of the same type, (rows,)."""
    if not len(among):
        return np.zeros(len(rows), dtype=np.bool_)
    places = among.searchsorted(rows)
    members: Mask = among.take(places, mode="clip") == rows
    return members


def intersect(left: RowSet, right: RowSet) -> RowSet:
    """Return the intersection of two sets."""
    small, large = (left, right) if len(left) <= len(right) else (right, left)
    return small[is_member(small, large)]


def union(sets: Sequence[RowSet], size: int) -> RowSet:
    """Return the union of sets; ``size`` as for :func:`unique_rows`."""
    return sets[0] if len(sets) == 1 else unique_rows(np.concatenate(sets), size)


def run_offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each run starts and where the last one ends, (runs + 1,), for runs of these sizes."""
    offsets = np.empty(len(sizes) + 1, dtype=np.int64)
    offsets[0] = 0
    sizes.cumsum(out=offsets[1:])
    return offsets


def count_per_run(flags: Mask, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many flags are set in each run, (runs,)."""
    sums = np.empty(len(flags) + 1, dtype=np.int64)
    sums[0] = 0
    flags.cumsum(out=sums[1:])
    ends = sums.take(offsets)
    counts: NDArray[np.int64] = ends[1:] - ends[:-1]
    return counts
