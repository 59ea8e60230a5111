"""Which rows touch which keys (keywords, names, entities), in linear space.

Two passages are neighbours when they share a key. Written out, that is a quadratic number of edges; as an
incidence matrix and its transpose it is one number per passage and key, and a neighbourhood is two steps
through it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.core.protocols import Snapshot
from clew.core.text import STOPWORDS, candidate_names, hash_term, index_terms, title_names
from clew.core.types import RETRIEVED_KINDS, Scope

if TYPE_CHECKING:
    from clew.core.arrays import Hashes, Rows


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
    def from_pairs(
        cls, keys: Hashes, rows: NDArray[np.int32], slots: NDArray[np.int32], size: int
    ) -> Incidence:
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
        return Incidence.from_pairs(
            self.keys[selected], rows[pairs], renumbered[self.row_slots[pairs]], self.size
        )


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


#: Postings that are looked at in one go; bounds the memory of a construction, not its result.
_BLOCK = 1 << 20


def passage_rows(snapshot: Snapshot) -> Rows:
    """Return the live rows of the kinds whose text is searched, ascending."""
    return np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS)).astype(np.int64)


def passage_blocks(snapshot: Snapshot, field: str) -> Iterator[Rows]:
    """Yield the rows of whole documents, ascending, with about a million postings of ``field`` at a time."""
    rows = passage_rows(snapshot)
    if not len(rows):
        return
    document = snapshot.column("document")[rows]
    first = np.flatnonzero(np.r_[True, document[1:] != document[:-1]])
    postings = np.add.reduceat(snapshot.postings(field).lengths(rows), first)
    block = np.cumsum(postings) // _BLOCK
    cuts = first[np.r_[False, block[1:] != block[:-1]]]
    yield from np.split(rows, cuts)


@dataclass(frozen=True, slots=True)
class PostingBlock:
    """The postings of some rows. ``vocabulary`` are their terms, ascending; ``which`` and ``counts`` say
    which of them a row contains and how often, from ``starts[i]`` to ``starts[i + 1]``."""

    rows: Rows
    starts: NDArray[np.int64]
    vocabulary: Hashes
    term_indices: NDArray[np.int32]
    counts: NDArray[np.int32]

    def posting_rows(self) -> NDArray[np.int32]:
        """Return the row of each posting."""
        return np.repeat(self.rows.astype(np.int32), np.diff(self.starts))


def posting_blocks(snapshot: Snapshot, field: str) -> Iterator[PostingBlock]:
    """Yield the postings of all passages, whole documents at a time."""
    postings = snapshot.postings(field)
    for rows in passage_blocks(snapshot, field):
        starts, terms, counts = postings.term_matrix(rows)
        # np.unique(return_inverse=True), with the one sort that it needs.
        order = np.argsort(terms)
        ascending = terms[order]
        new = np.r_[ascending[:1] == ascending[:1], ascending[1:] != ascending[:-1]]
        which = np.empty(len(terms), dtype=np.int32)
        which[order] = np.cumsum(new, dtype=np.int32) - np.int32(1)
        yield PostingBlock(rows, starts, ascending[new], which, counts.astype(np.int32))


def build_incidence(blocks: Iterable[PostingBlock], keys: Hashes, size: int) -> Incidence:
    """Return which of ``keys`` (ascending) the rows of ``blocks`` contain; ``size`` is the snapshot's."""
    rows_found: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    slots_found: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    for block in blocks:
        slots = find_positions(keys, block.vocabulary).astype(np.int32)[block.term_indices]
        kept = slots >= 0
        rows_found.append(block.posting_rows()[kept])
        slots_found.append(slots[kept])
    return Incidence.from_pairs(keys, np.concatenate(rows_found), np.concatenate(slots_found), size)


def documents_by_title(snapshot: Snapshot) -> dict[int, list[str]]:
    """Return, for each hashed name of a title, the keys of the documents that bear it.

    A title's names are those of :func:`clew.core.text.title_names`; a function word alone is none.
    """
    found: dict[int, list[str]] = {}
    for document in snapshot.documents():
        for name in title_names(document.title):
            if name not in STOPWORDS:
                found.setdefault(hash_term(name), []).append(document.key)
    return found


def leading_passages(snapshot: Snapshot, count: int) -> dict[str, list[int]]:
    """Return the rows of the first ``count`` passages of each document, by document key."""
    rows = passage_rows(snapshot)
    found = {}
    for document in snapshot.documents():
        start, end = np.searchsorted(rows, snapshot.document_rows(document.key))
        found[document.key] = rows[start : min(end, start + count)].tolist()
    return found


_WORD = re.compile(r"\w(?:[\w'’.,]*\w)?")


def surface_forms(text: str, words: Sequence[int], phrases: Sequence[int] = (), limit: int = 5) -> list[str]:
    """Return how ``text`` writes the terms and names with these hashes; at most ``limit``, phrases first.

    Each is given once, as it first occurs, in the order of the text. A word of several terms (CJK) stands
    for itself only if all its terms are asked for; otherwise the term stands.
    """
    asked = frozenset(words)
    held = _names_of(text) if len(phrases) else {}
    wanted = frozenset(phrases)
    found = {number: name for number, name in held.items() if number in wanted}
    for word in _WORD.findall(text) if asked else ():
        for term in index_terms(word):
            number = hash_term(term)
            if number in asked and number not in found:
                found[number] = word if len(index_terms(word)) == 1 else term
    return list(dict.fromkeys(found.values()))[:limit]


# A walk asks for the names that join one passage to several others.
@lru_cache(maxsize=256)
def _names_of(text: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for name, start, end in candidate_names(text):
        found.setdefault(hash_term(name), " ".join(text[start:end].split()))
    return found


# MERGED: What every graph over passages starts from: their rows, their terms, the titles of their documents.
# MERGED: The words behind hashes, for people: found again in the text that holds them.
