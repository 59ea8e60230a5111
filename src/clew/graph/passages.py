"""What every graph over passages starts from: their rows, their terms, the titles of their documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.graph.incidence import Incidence, find_positions
from clew.protocols import Snapshot
from clew.text import STOPWORDS, hash_term, title_names
from clew.types import RETRIEVED_KINDS, Scope

if TYPE_CHECKING:
    from clew.protocols import Hashes, Rows

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

    A title's names are those of :func:`clew.text.title_names`; a function word alone is none.
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
