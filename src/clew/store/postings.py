"""Postings: the text index of one field, over all segments of a snapshot as if they were one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import range_indices, run_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Hashes, Mask, Rows


@dataclass(frozen=True, slots=True)
class FieldPostings:
    """The postings of one field in one segment: a sparse matrix of rows by terms, compressed both ways.

    ``rows`` are all nodes that have the field, ascending, those without a term included. ``starts``, ``terms`` and
    ``counts`` are the rows of the matrix (terms as positions in ``vocabulary``); ``holder_starts``, ``holders``
    (positions in ``rows``) and ``holder_counts`` its columns. The names of the attributes are names of files on disk.
    """

    rows: Rows
    starts: NDArray[np.int64]
    terms: NDArray[np.uint32]
    counts: NDArray[np.uint32]
    vocabulary: Hashes
    holder_starts: NDArray[np.int64]
    holders: NDArray[np.uint32]
    holder_counts: NDArray[np.uint32]

    @classmethod
    def from_terms(
        cls, rows: Rows, lengths: NDArray[np.int64], hashes: Hashes, counts: NDArray[np.uint32]
    ) -> FieldPostings:
        """Build both directions from the number of terms of each row, and the terms and counts row after row."""
        vocabulary, positions = np.unique(hashes, return_inverse=True)
        terms = positions.astype(np.uint32)
        owners = np.repeat(np.arange(len(rows), dtype=np.uint32), lengths)
        by_term = np.argsort(terms, kind="stable")
        return cls(
            rows,
            run_offsets(lengths),
            terms,
            counts,
            vocabulary,
            run_offsets(np.bincount(terms, minlength=len(vocabulary))),
            owners[by_term],
            counts[by_term],
        )

    def select_rows(
        self, mask: NDArray[np.bool_]
    ) -> tuple[Rows, NDArray[np.int64], Hashes, NDArray[np.uint32]]:
        """Return rows, lengths, hashes and counts of the rows marked in ``mask``, for :meth:`from_terms`."""
        lengths = np.diff(self.starts)
        pairs = np.repeat(mask, lengths)
        return self.rows[mask], lengths[mask], self.vocabulary[self.terms[pairs]], self.counts[pairs]


@dataclass(frozen=True)
class SegmentPart:
    """The postings of one segment, and which of its rows are live (None: all)."""

    field: FieldPostings
    live: NDArray[np.bool_] | None

    @cached_property
    def document_frequency(self) -> NDArray[np.int64]:
        """For each term of the vocabulary the number of live rows that contain it."""
        if self.live is None:
            return np.diff(self.field.holder_starts)
        live_holders = self.live[self.field.holders].astype(np.int64)
        return np.diff(run_offsets(live_holders)[self.field.holder_starts])

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of terms of each row, every occurrence counted."""
        return np.diff(run_offsets(self.field.counts)[self.field.starts])

    def rows_with(self, term: np.uint64) -> tuple[Rows, NDArray[np.int64]]:
        """Return the live rows that contain ``term``, and how often each does."""
        postings = self.field
        place = int(np.searchsorted(postings.vocabulary, term))
        if place == len(postings.vocabulary) or postings.vocabulary[place] != term:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        start, end = int(postings.holder_starts[place]), int(postings.holder_starts[place + 1])
        holders, counts = postings.holders[start:end], postings.holder_counts[start:end].astype(np.int64)
        if self.live is not None:
            live = self.live[holders]
            holders, counts = holders[live], counts[live]
        return postings.rows[holders], counts

    def terms_of_rows(self, rows: Rows) -> tuple[NDArray[np.int64], Hashes, NDArray[np.int64]]:
        """Return number of terms, terms and counts of rows; 0 terms for a row that is not here or not live."""
        postings = self.field
        places = np.searchsorted(postings.rows, rows)
        places[places == len(postings.rows)] = 0
        is_here = postings.rows[places] == rows if len(postings.rows) else np.zeros(len(rows), dtype=np.bool_)
        if self.live is not None and len(postings.rows):
            is_here = is_here & self.live[places]
        if not is_here.any():
            empty = np.empty(0, dtype=np.int64)
            return np.zeros(len(rows), dtype=np.int64), empty.astype(np.uint64), empty
        places = places[is_here]
        starts, sizes = postings.starts[places], postings.starts[places + 1] - postings.starts[places]
        lengths = np.zeros(len(rows), dtype=np.int64)
        lengths[is_here] = sizes
        pairs = range_indices(starts, sizes)
        return lengths, postings.vocabulary[postings.terms[pairs]], postings.counts[pairs].astype(np.int64)


@dataclass(frozen=True)
class SegmentedPostings:
    """A :class:`clew.core.protocols.Postings` over segments in ascending order of rows; ``live`` marks live rows."""

    segments: Sequence[FieldPostings]
    live: Mask = field(repr=False)

    @cached_property
    def _parts(self) -> list[SegmentPart]:
        parts = []
        for postings in self.segments:
            live = self.live[postings.rows]
            parts.append(SegmentPart(postings, None if live.all() else live))
        return parts

    @cached_property
    def node_count(self) -> int:
        """Number of live nodes that have the field."""
        return sum(
            len(part.field.rows) if part.live is None else int(part.live.sum()) for part in self._parts
        )

    @cached_property
    def average_length(self) -> float:
        """Mean number of terms of a live node; 0 where there is none."""
        total = sum(
            int((part.lengths if part.live is None else part.lengths[part.live]).sum())
            for part in self._parts
        )
        return total / self.node_count if self.node_count else 0.0

    def lengths(self, rows: Rows) -> NDArray[np.int64]:
        """Return the number of terms of each row, 0 for a row without the field."""
        return self._lengths[rows]

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        lengths = np.zeros(len(self.live), dtype=np.int64)
        for part in self._parts:
            lengths[part.field.rows] = part.lengths
        lengths[~self.live] = 0
        return lengths

    def document_frequency(self, terms: Hashes) -> NDArray[np.int64]:
        """Return the number of live nodes that contain each term."""
        terms = np.asarray(terms, dtype=np.uint64)
        frequency = np.zeros(len(terms), dtype=np.int64)
        for part in self._parts:
            vocabulary = part.field.vocabulary
            if len(vocabulary):
                places = np.searchsorted(vocabulary, terms)
                places[places == len(vocabulary)] = 0
                frequency += np.where(vocabulary[places] == terms, part.document_frequency[places], 0)
        return frequency

    def rows_with(self, term: int) -> tuple[Rows, NDArray[np.int64]]:
        """Return the live rows that contain ``term``, ascending, and how often each does."""
        parts = [part.rows_with(np.uint64(term)) for part in self._parts]
        if len(parts) == 1:
            return parts[0]
        empty = np.empty(0, dtype=np.int64)
        return (
            np.concatenate([empty, *(rows for rows, _ in parts)]),
            np.concatenate([empty, *(counts for _, counts in parts)]),
        )

    def term_matrix(self, rows: Rows) -> tuple[NDArray[np.int64], Hashes, NDArray[np.int64]]:
        """Return the terms of ``rows`` as a sparse matrix: offsets (n + 1), terms, counts."""
        rows = np.asarray(rows, dtype=np.int64)
        parts = [part.terms_of_rows(rows) for part in self._parts]
        if len(parts) == 1:
            lengths, terms, counts = parts[0]
            return run_offsets(lengths), terms, counts
        lengths = np.zeros(len(rows), dtype=np.int64)
        for part_lengths, _, _ in parts:
            lengths += part_lengths
        offsets = run_offsets(lengths)
        terms = np.empty(int(offsets[-1]), dtype=np.uint64)
        counts = np.empty(int(offsets[-1]), dtype=np.int64)
        for part_lengths, part_terms, part_counts in parts:
            # A row is in one segment only, so its terms go where all of the row's terms start.
            places = range_indices(offsets[:-1], part_lengths)
            terms[places], counts[places] = part_terms, part_counts
        return offsets, terms, counts

    def vocabulary(self) -> tuple[Hashes, NDArray[np.int64]]:
        """Return every live term, ascending, and the number of live nodes that contain it."""
        return self._vocabulary

    @cached_property
    def _vocabulary(self) -> tuple[Hashes, NDArray[np.int64]]:
        if not self._parts:
            return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        terms = np.concatenate([part.field.vocabulary for part in self._parts])
        frequency = np.concatenate([part.document_frequency for part in self._parts])
        unique_terms, places = np.unique(terms[frequency > 0], return_inverse=True)
        summed = np.zeros(len(unique_terms), dtype=np.int64)
        np.add.at(summed, places, frequency[frequency > 0])
        return unique_terms, summed
