"""The postings of one field over all segments of a snapshot, as if they were one, live nodes only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import run_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Hashes, Mask, Rows


@dataclass(frozen=True)
class SegmentPart:
    """The postings of one segment, and which of its rows live (None: all)."""

    field: FieldPostings
    live: NDArray[np.bool_] | None

    @cached_property
    def document_frequency(self) -> NDArray[np.int64]:
        """For each term of the vocabulary the number of live rows with it."""
        if self.live is None:
            return np.diff(self.field.holder_starts)
        living = self.live[self.field.holders].astype(np.int64)
        total = np.concatenate([[0], np.cumsum(living)])
        return np.diff(total[self.field.holder_starts])

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of terms of each row, counted as often as they occur."""
        total = np.concatenate([[0], np.cumsum(self.field.counts, dtype=np.int64)])
        return np.diff(total[self.field.starts])

    def rows_with(self, term: np.uint64) -> tuple[Rows, NDArray[np.int64]]:
        """Return the live rows with ``term``, and how often."""
        one = self.field
        place = int(np.searchsorted(one.vocabulary, term))
        if place == len(one.vocabulary) or one.vocabulary[place] != term:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        start, end = int(one.holder_starts[place]), int(one.holder_starts[place + 1])
        places, counts = one.holders[start:end], one.holder_counts[start:end].astype(np.int64)
        if self.live is not None:
            living = self.live[places]
            places, counts = places[living], counts[living]
        return one.rows[places], counts

    def terms_of_rows(self, rows: Rows) -> tuple[NDArray[np.int64], Hashes, NDArray[np.int64]]:
        """Return number of terms, terms and counts of rows; 0 terms for a row that is not here or not live."""
        one = self.field
        places = np.searchsorted(one.rows, rows)
        places[places == len(one.rows)] = 0
        known = one.rows[places] == rows if len(one.rows) else np.zeros(len(rows), dtype=np.bool_)
        if self.live is not None and len(one.rows):
            known = known & self.live[places]
        if not known.any():
            none = np.empty(0, dtype=np.int64)
            return np.zeros(len(rows), dtype=np.int64), none.astype(np.uint64), none
        places = places[known]
        starts, sizes = one.starts[places], one.starts[places + 1] - one.starts[places]
        lengths = np.zeros(len(rows), dtype=np.int64)
        lengths[known] = sizes
        pairs = np.repeat(starts - run_offsets(sizes)[:-1], sizes) + np.arange(int(sizes.sum()))
        return lengths, one.vocabulary[one.terms[pairs]], one.counts[pairs].astype(np.int64)


@dataclass(frozen=True)
class SegmentedPostings:
    """:class:`clew.core.protocols.Postings` over segments in ascending order of rows."""

    segments: Sequence[FieldPostings]
    live: Mask = field(repr=False)

    @cached_property
    def _parts(self) -> list[SegmentPart]:
        parts = []
        for one in self.segments:
            alive = self.live[one.rows]
            parts.append(SegmentPart(one, None if alive.all() else alive))
        return parts

    @cached_property
    def node_count(self) -> int:
        """Number of live nodes of the field."""
        return sum(len(p.field.rows) if p.live is None else int(p.live.sum()) for p in self._parts)

    @cached_property
    def average_length(self) -> float:
        """Mean number of terms of a live node; 0 where there is none."""
        total = sum(int((p.lengths if p.live is None else p.lengths[p.live]).sum()) for p in self._parts)
        return total / self.node_count if self.node_count else 0.0

    def lengths(self, rows: Rows) -> NDArray[np.int64]:
        """Return the number of terms of each row, 0 for one without postings."""
        return self._lengths[rows]

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        found = np.zeros(len(self.live), dtype=np.int64)
        for part in self._parts:
            found[part.field.rows] = part.lengths
        found[~self.live] = 0
        return found

    def document_frequency(self, terms: Hashes) -> NDArray[np.int64]:
        """Return the number of live nodes that contain each term."""
        terms = np.asarray(terms, dtype=np.uint64)
        found = np.zeros(len(terms), dtype=np.int64)
        for part in self._parts:
            vocabulary = part.field.vocabulary
            if len(vocabulary):
                places = np.searchsorted(vocabulary, terms)
                places[places == len(vocabulary)] = 0
                found += np.where(vocabulary[places] == terms, part.document_frequency[places], 0)
        return found

    def rows_with(self, term: int) -> tuple[Rows, NDArray[np.int64]]:
        """Return the live rows that contain ``term``, ascending, and how often each does."""
        found = [part.rows_with(np.uint64(term)) for part in self._parts]
        if len(found) == 1:
            return found[0]
        none = np.empty(0, dtype=np.int64)
        return (
            np.concatenate([none, *(rows for rows, _ in found)]),
            np.concatenate([none, *(counts for _, counts in found)]),
        )

    def term_matrix(self, rows: Rows) -> tuple[NDArray[np.int64], Hashes, NDArray[np.int64]]:
        """Return the terms of ``rows`` as a sparse matrix: offsets (n + 1), terms, counts."""
        rows = np.asarray(rows, dtype=np.int64)
        found = [part.terms_of_rows(rows) for part in self._parts]
        if len(found) == 1:
            lengths, terms, counts = found[0]
            return run_offsets(lengths), terms, counts
        lengths = (
            np.sum([one[0] for one in found], axis=0, dtype=np.int64)
            if found
            else np.zeros(len(rows), dtype=np.int64)
        )
        starts = run_offsets(lengths)
        terms = np.empty(int(starts[-1]), dtype=np.uint64)
        counts = np.empty(int(starts[-1]), dtype=np.int64)
        for sizes, some_terms, some_counts in found:
            # A row is in one segment only, so its terms go where all of the row's terms start.
            into = np.repeat(starts[:-1] - run_offsets(sizes)[:-1], sizes) + np.arange(int(sizes.sum()))
            terms[into], counts[into] = some_terms, some_counts
        return starts, terms, counts

    def vocabulary(self) -> tuple[Hashes, NDArray[np.int64]]:
        """Return every live term, ascending, and the number of live nodes that contain it."""
        return self._vocabulary

    @cached_property
    def _vocabulary(self) -> tuple[Hashes, NDArray[np.int64]]:
        if not self._parts:
            return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        terms = np.concatenate([part.field.vocabulary for part in self._parts])
        frequency = np.concatenate([part.document_frequency for part in self._parts])
        every, place = np.unique(terms[frequency > 0], return_inverse=True)
        summed = np.zeros(len(every), dtype=np.int64)
        np.add.at(summed, place, frequency[frequency > 0])
        return every, summed


@dataclass(frozen=True, slots=True)
class FieldPostings:
    """The postings of one field: a sparse matrix of rows by terms, compressed both ways.

    ``rows`` are all nodes of the field, ascending, those without a term included. ``starts``, ``terms`` and
    ``counts`` are its rows (terms as places in ``vocabulary``); ``holder_starts``, ``holders`` (places in
    ``rows``) and ``holder_counts`` its columns.
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
        """Build both directions of each row's number of terms, and of the terms and counts row after row."""
        vocabulary, places = np.unique(hashes, return_inverse=True)
        terms = places.astype(np.uint32)
        owner = np.repeat(np.arange(len(rows), dtype=np.uint32), lengths)
        by_term = np.argsort(terms, kind="stable")
        return cls(
            rows,
            run_offsets(lengths),
            terms,
            counts,
            vocabulary,
            run_offsets(np.bincount(terms, minlength=len(vocabulary))),
            owner[by_term],
            counts[by_term],
        )

    def select_rows(
        self, keep: NDArray[np.bool_]
    ) -> tuple[Rows, NDArray[np.int64], Hashes, NDArray[np.uint32]]:
        """Return rows, lengths, hashes and counts of the rows marked in ``keep``."""
        lengths = np.diff(self.starts)
        pairs = np.repeat(keep, lengths)
        return self.rows[keep], lengths[keep], self.vocabulary[self.terms[pairs]], self.counts[pairs]
