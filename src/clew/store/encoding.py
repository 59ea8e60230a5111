"""Making the vectors that are missing, and blanking those of removed nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clew.store.database import Database
from clew.store.documents import DocumentEntry, read_entries, read_parsed_document
from clew.store.segments import texts_to_encode
from clew.store.vectors import VectorFiles, hash_texts, vectors_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Mask, Rows
    from clew.core.protocols import Encoder

#: Texts that are encoded between two writes: what a kill loses at the most.
BATCH = 256


def encode_missing(
    database: Database, derived: Path, encoder: Encoder, progress: Callable[[int, int], None]
) -> int:
    """Encode every passage and table row without a vector; return how many were made, reused ones too."""
    store = VectorFiles(vectors_folder(derived, encoder.name))
    with database.read_transaction() as connection:
        truth = read_entries(connection)
        total = connection.execute(
            "SELECT coalesce(sum(nodes), 0) FROM tally WHERE kind IN ('passage', 'row')"
        ).fetchone()[0]
    known = KnownTexts(store)
    rows = known.rows
    have = frozenset(rows.tolist())
    live = live_mask(truth)
    waiting = total - int(live[rows[rows < len(live)]].sum()) if len(rows) else total
    made = 0
    for batch_rows, texts in _missing(database, truth, have):
        _append(store, known, encoder, batch_rows, texts)
        made += len(texts)
        progress(made, waiting)
    store.repair_binary_index()
    store.clear_removed(live)
    return made


def clear_removed_vectors(database: Database, derived: Path) -> None:
    """Blank the vectors of nodes that are gone, for every encoder."""
    with database.read_transaction() as connection:
        live = live_mask(read_entries(connection))
    for path in derived.glob("vectors/*"):
        VectorFiles(path).clear_removed(live)


def live_mask(truth: list[DocumentEntry]) -> Mask:
    """Return which rows belong to a document."""
    live = np.zeros(max((one.end for one in truth), default=0), dtype=np.bool_)
    for one in truth:
        live[one.first : one.end] = True
    return live


def _missing(
    database: Database, truth: list[DocumentEntry], have: frozenset[int]
) -> Iterator[tuple[Rows, list[str]]]:
    """Yield rows without a vector and their texts, a batch at a time."""
    rows: list[int] = []
    texts: list[str] = []
    for one in truth:
        with database.read_transaction() as connection:
            alive = connection.execute(
                "SELECT stamp FROM document WHERE first_row = ?", (one.first,)
            ).fetchone()
            if alive is None or alive[0] != one.stamp:
                continue
            nodes = read_parsed_document(connection, one).nodes
        for position, text in texts_to_encode(nodes):
            if one.first + position not in have:
                rows.append(one.first + position)
                texts.append(text)
            if len(texts) == BATCH:
                yield np.array(rows, dtype=np.int64), texts
                rows, texts = [], []
    if texts:
        yield np.array(rows, dtype=np.int64), texts


class KnownTexts:
    """The texts that have a vector already, also of nodes that are gone; kept up to date while more are made."""

    def __init__(self, store: VectorFiles) -> None:
        _, self.rows, hashes = store.open()
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]
        self._made: dict[int, int] = {}
        self._count = len(hashes)

    def slots(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the slot of each text's vector, -1 where there is none."""
        places = np.searchsorted(self._sorted, hashes)
        places[places == len(self._sorted)] = 0
        found = np.array([self._made.get(number, -1) for number in hashes.tolist()], dtype=np.int64)
        if len(self._sorted):
            old = self._sorted[places] == hashes
            found[old] = self._order[places[old]]
        return found

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Take note of texts that got the next slots, in this order."""
        for number in hashes.tolist():
            self._made.setdefault(number, self._count)
            self._count += 1


def _append(store: VectorFiles, known: KnownTexts, encoder: Encoder, rows: Rows, texts: list[str]) -> None:
    """Add vectors for rows; a text that has one already is not encoded again, nor one twice in a batch."""
    hashes = hash_texts(texts)
    slots = known.slots(hashes)
    old = slots >= 0
    vectors = np.zeros((len(texts), encoder.dimension), dtype=np.float32)
    if old.any():
        vectors[old] = store.vectors()[slots[old]]
    if not old.all():
        new = np.flatnonzero(~old)
        _, first, again = np.unique(hashes[new], return_index=True, return_inverse=True)
        made = encoder.encode([texts[n] for n in new[first].tolist()])
        vectors[new] = made[again]
    store.append(encoder.name, vectors, rows, hashes)
    known.add(hashes)
