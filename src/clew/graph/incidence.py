"""Which rows touch which keys (keywords, names, entities), in linear space.

Two passages are neighbours when they share a key. Written out, that is a quadratic number of edges; as an
incidence matrix and its transpose it is one number per passage and key, and a neighbourhood is two steps
through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from clew.protocols import Hashes, Rows


#: Below this many numbers, sorting finds the distinct ones faster than a mask over all rows.
_SORT_BELOW = 1 << 11


@dataclass(frozen=True, slots=True)
class Incidence:
    """A sparse 0/1 matrix of rows by keys, compressed both ways.

    ``keys`` are the 64-bit names of the keys, ascending; a key's *slot* is its index there. ``row_starts``
    (size + 1) and ``row_slots`` hold the slots of each row, ascending; ``key_starts`` and ``key_rows`` the
    rows of each slot, ascending.
    """

    keys: Hashes
    row_starts: NDArray[np.int64]
    row_slots: NDArray[np.int32]
    key_starts: NDArray[np.int64]
    key_rows: NDArray[np.int32]

    @classmethod
    def from_pairs(cls, keys: Hashes, rows: NDArray[np.int32], slots: NDArray[np.int32], size: int) -> Incidence:
        """Build it of distinct pairs, in any order; ``size`` is the number of rows."""
        if not _ascending(rows, slots):
            rows, slots = _sorted_pairs(rows, slots)
        _, by_key = _sorted_pairs(slots, rows)
        return cls(
            keys,
            run_starts(np.bincount(rows, minlength=size)),
            slots,
            run_starts(np.bincount(slots, minlength=len(keys))),
            by_key,
        )

    @property
    def size(self) -> int:
        """Number of rows, those without a key included."""
        return len(self.row_starts) - 1

    def slots_of(self, row: int) -> NDArray[np.int32]:
        """Return the slots of a row's keys, ascending."""
        return self.row_slots[self.row_starts[row] : self.row_starts[row + 1]]

    def counts(self) -> NDArray[np.int64]:
        """Return the number of rows of each slot."""
        return np.diff(self.key_starts)

    def rows_with(self, slots: NDArray[np.int32]) -> list[NDArray[np.int32]]:
        """Return the rows of each slot."""
        starts, ends = self.key_starts[slots].tolist(), self.key_starts[slots + 1].tolist()
        return [self.key_rows[start:end] for start, end in zip(starts, ends, strict=True)]

    def shared_slots(self, source: int, target: int) -> NDArray[np.int32]:
        """Return the slots that two rows have in common, ascending."""
        return np.intersect1d(self.slots_of(source), self.slots_of(target), assume_unique=True)

    def select_keys(self, selected: NDArray[np.bool_]) -> Incidence:
        """Return the same with only the keys marked in ``kept`` (one per slot)."""
        renumbered = np.cumsum(selected, dtype=np.int32) - np.int32(1)
        pairs = selected[self.row_slots]
        rows = np.repeat(np.arange(self.size, dtype=np.int32), np.diff(self.row_starts))
        return Incidence.from_pairs(self.keys[selected], rows[pairs], renumbered[self.row_slots[pairs]], self.size)


def distinct_rows(parts: list[NDArray[np.int32]], size: int, excluded: int) -> Rows:
    """Return the distinct rows of ``parts``, ascending, as int64, ``without`` one; all are below ``size``."""
    total = sum(map(len, parts))
    if total == 0:
        return np.empty(0, dtype=np.int64)
    joined = np.concatenate(parts)
    if total < _SORT_BELOW:
        few: Rows = np.unique(joined[joined != excluded]).astype(np.int64)
        return few
    seen = np.zeros(size, dtype=np.bool_)
    seen[joined] = True
    seen[excluded] = False
    rows: Rows = np.flatnonzero(seen)
    return rows


def run_starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each of consecutive runs of these lengths starts, and where the last one ends."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def find_positions(table: Hashes, wanted: Hashes) -> NDArray[np.int64]:
    """Return the index of each wanted number in an ascending ``table``, -1 where it is not there."""
    if not len(table):
        return np.full(len(wanted), -1, dtype=np.int64)
    near = np.searchsorted(table, wanted)
    near[near == len(table)] = 0
    near[table[near] != wanted] = -1
    return near


def _sorted_pairs(
    first: NDArray[np.int32], second: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return pairs of numbers that are not negative in ascending order."""
    # Packed into one number each: sorting numbers is many times faster than sorting an order of them.
    packed = np.sort((first.astype(np.int64) << 32) | second)
    return (packed >> 32).astype(np.int32), (packed & 0xFFFFFFFF).astype(np.int32)


def _ascending(rows: NDArray[np.int32], slots: NDArray[np.int32]) -> bool:
    later, same = rows[1:] > rows[:-1], rows[1:] == rows[:-1]
    return bool(np.all(later | (same & (slots[1:] > slots[:-1]))))
