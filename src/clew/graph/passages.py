"""What every graph over passages starts from: their rows, their terms, the titles of their documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.graph.incidence import Incidence, positions
from clew.protocols import Snapshot
from clew.text import STOPWORDS, term_hash, title_names
from clew.types import RETRIEVED, Scope

if TYPE_CHECKING:
    from clew.protocols import Hashes, Rows

#: Postings that are looked at in one go; bounds the memory of a construction, not its result.
_BLOCK = 1 << 20


def passage_rows(snapshot: Snapshot) -> Rows:
    """Return the live rows of the kinds whose text is searched, ascending."""
    return np.flatnonzero(snapshot.mask(Scope(), RETRIEVED)).astype(np.int64)


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


def containing(snapshot: Snapshot, field: str, keys: Hashes) -> Incidence:
    """Return which of ``keys`` (ascending) the passages contain, by the postings of ``field``."""
    postings = snapshot.postings(field)
    rows_found: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    slots_found: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    for rows in passage_blocks(snapshot, field):
        starts, terms, _ = postings.of(rows)
        vocabulary, which = np.unique(terms, return_inverse=True)
        slots = positions(keys, vocabulary)[which]
        kept = slots >= 0
        rows_found.append(np.repeat(rows, np.diff(starts))[kept].astype(np.int32))
        slots_found.append(slots[kept].astype(np.int32))
    return Incidence.of(keys, np.concatenate(rows_found), np.concatenate(slots_found), snapshot.size)


def documents_by_title(snapshot: Snapshot) -> dict[int, list[str]]:
    """Return, for each hashed name of a title, the keys of the documents that bear it.

    A title's names are those of :func:`clew.text.title_names`; a function word alone is none.
    """
    found: dict[int, list[str]] = {}
    for document in snapshot.documents():
        for name in title_names(document.title):
            if name not in STOPWORDS:
                found.setdefault(term_hash(name), []).append(document.key)
    return found


def leading_passages(snapshot: Snapshot, count: int) -> dict[str, list[int]]:
    """Return the rows of the first ``count`` passages of each document, by document key."""
    rows = passage_rows(snapshot)
    found = {}
    for document in snapshot.documents():
        start, end = np.searchsorted(rows, snapshot.document_rows(document.key))
        found[document.key] = rows[start : min(end, start + count)].tolist()
    return found
