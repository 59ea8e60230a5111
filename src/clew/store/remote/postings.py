"""Postings of a copy in object storage: the large arrays are read in ranges, the others are in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Hashes, Rows, find_positions
from clew.store.remote.layout import RANGED
from clew.store.remote.pieces import PieceCache, StoredBytes
from clew.store.segments import FIELDS, FieldPostings, Segment, SegmentedPostings, SegmentPart

_ITEM = np.dtype("<u4")


class RangedArray:
    """An array of 32-bit numbers in a file of a copy. Indexing fetches the pieces that it needs; as a whole it is an
    array of numpy that has fetched them all."""

    def __init__(self, content: StoredBytes, length: int) -> None:
        self._content, self._length = content, length
        # What stands before the numbers in a .npy file.
        self._offset = content.file.size - length * _ITEM.itemsize
        self._ends = np.array(content.file.ends, dtype=np.int64)

    def __len__(self) -> int:
        return self._length

    def digests(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> set[str]:
        """Return the digests of the pieces with the numbers of ranges."""
        starts, ends = starts[starts < ends], ends[starts < ends]
        first = np.searchsorted(self._ends, self._offset + starts * _ITEM.itemsize, side="right")
        last = np.searchsorted(self._ends, self._offset + ends * _ITEM.itemsize - 1, side="right")
        change = np.zeros(len(self._ends) + 1, dtype=np.int64)
        np.add.at(change, first, 1)
        np.add.at(change, last + 1, -1)
        pieces = self._content.file.pieces
        return {pieces[number] for number in np.flatnonzero(np.cumsum(change)).tolist()}

    def __getitem__(self, index: Any) -> NDArray[np.uint32]:
        """Return a slice without a step, or the numbers at an array of places."""
        if isinstance(index, slice):
            start, end, _ = index.indices(self._length)
            (content,) = self._content.read_ranges([(self._place(start), self._place(max(start, end)))])
            return np.frombuffer(content, _ITEM)
        places = np.asarray(index, dtype=np.int64)
        numbers = np.empty(len(places), dtype=_ITEM)
        piece_of = np.searchsorted(self._ends, self._offset + places * _ITEM.itemsize, side="right")
        needed = np.unique(piece_of).tolist()
        pieces = self._content.cache.get(self._content.file.pieces[number] for number in needed)
        for number in needed:
            here = piece_of == number
            # The numbers of a piece begin at its start: its size and that of the header are multiples of theirs.
            piece = np.frombuffer(pieces[self._content.file.pieces[number]], _ITEM)
            start = self._content.file.piece_start(number)
            numbers[here] = piece[places[here] - (start - self._offset) // _ITEM.itemsize]
        return numbers

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:] if dtype is None else self[:].astype(dtype)

    def _place(self, number: int) -> int:
        return self._offset + number * _ITEM.itemsize


@dataclass(frozen=True)
class RemotePart(SegmentPart):
    """The postings of one segment of a copy, in which every row is live."""

    row_lengths: NDArray[np.uint32]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of terms of each row, every occurrence counted."""
        return self.row_lengths.astype(np.int64)

    def term_digests(self, terms: Hashes) -> set[str]:
        """Return the digests of the pieces that the postings of ``terms`` need."""
        postings = self.field
        places = find_positions(postings.vocabulary, terms)
        places = places[places >= 0]
        starts, ends = postings.holder_starts[places], postings.holder_starts[places + 1]
        return _digests((postings.holders, postings.holder_counts), starts, ends)

    def row_digests(self, rows: Rows) -> set[str]:
        """Return the digests of the pieces that the terms of ``rows`` need."""
        postings = self.field
        places = find_positions(postings.rows, rows)
        places = places[places >= 0]
        return _digests(
            (postings.terms, postings.counts), postings.starts[places], postings.starts[places + 1]
        )


def _digests(arrays: Sequence[Any], starts: Any, ends: Any) -> set[str]:
    starts, ends = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    ranged = [array for array in arrays if isinstance(array, RangedArray)]
    return {digest for array in ranged for digest in array.digests(starts, ends)}


@dataclass(frozen=True)
class RemotePostings(SegmentedPostings):
    """The postings of one field. What a call needs of all segments is fetched at the same time."""

    row_lengths: Sequence[NDArray[np.uint32]]
    cache: PieceCache

    @cached_property
    def _parts(self) -> list[SegmentPart]:
        return list(self._remote_parts)

    @cached_property
    def _remote_parts(self) -> list[RemotePart]:
        pairs = zip(self.segments, self.row_lengths, strict=True)
        return [RemotePart(postings, None, lengths) for postings, lengths in pairs]

    def prefetch(self, terms: Hashes | None = None, rows: Rows | None = None) -> None:
        """Begin to fetch the postings of ``terms`` and the terms of ``rows``, without waiting for them."""
        digests: set[str] = set()
        for part in self._remote_parts:
            digests |= set() if terms is None else part.term_digests(terms)
            digests |= set() if rows is None else part.row_digests(rows)
        self.cache.begin(digests)

    def rows_with(self, term: int) -> tuple[Rows, NDArray[np.int64]]:
        """Return the live rows that contain ``term``, ascending, and how often each does."""
        terms = np.array([term], dtype=np.uint64)
        self.cache.get(digest for part in self._remote_parts for digest in part.term_digests(terms))
        return super().rows_with(term)

    def term_matrix(self, rows: Rows) -> tuple[NDArray[np.int64], Hashes, NDArray[np.int64]]:
        """Return the terms of ``rows`` as a sparse matrix: offsets (n + 1), terms, counts."""
        rows = np.asarray(rows, dtype=np.int64)
        self.cache.get(digest for part in self._remote_parts for digest in part.row_digests(rows))
        return super().term_matrix(rows)


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """A segment of a copy, with the number of terms of the rows of each field."""

    segment: Segment
    row_lengths: Mapping[str, NDArray[np.uint32]]


def open_segment(name: str, arrays: Mapping[str, Any], content: Mapping[str, StoredBytes]) -> RemoteSegment:
    """Return a segment from the arrays of its file and the files of its large arrays, by ``FIELD.ARRAY``."""
    fields = {}
    for field in FIELDS:
        parts: list[Any] = []
        for part in FieldPostings.__slots__:
            key = f"{field}.{part}"
            if key in arrays:
                parts.append(arrays[key])
            else:
                assert part in RANGED
                parts.append(RangedArray(content[key], int(arrays[f"{key}.size"][0])))
        fields[field] = FieldPostings(*parts)
    segment = Segment(name, arrays["documents"], arrays["kind"], arrays["parent"], arrays["page"], fields)
    return RemoteSegment(segment, {field: arrays[f"{field}.lengths"] for field in FIELDS})
