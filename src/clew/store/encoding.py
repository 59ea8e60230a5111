"""Encoding: making the vectors that are missing, and blanking those of removed nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import add_headings
from clew.core.types import RETRIEVED_KINDS, SECTION, ParsedNode
from clew.store.database import Database
from clew.store.documents import DocumentEntry, read_entries, read_parsed_document
from clew.store.vectors import VectorFiles, hash_texts, vectors_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Mask, Rows
    from clew.core.protocols import Encoder

#: Texts that are encoded between two writes: at most so many are lost when the process is killed.
BATCH = 256


def encode_missing(
    database: Database, derived: Path, encoder: Encoder, progress: Callable[[int, int], None]
) -> int:
    """Encode every passage and table row without a vector; return how many vectors were made or reused."""
    files = VectorFiles(vectors_folder(derived, encoder.name))
    with database.read_transaction() as connection:
        entries = read_entries(connection)
        total = connection.execute(
            "SELECT coalesce(sum(nodes), 0) FROM tally WHERE kind IN ('passage', 'row')"
        ).fetchone()[0]
    known = KnownTexts(files)
    rows = known.rows
    live = live_mask(entries)
    missing_count = total - int(live[rows[rows < len(live)]].sum()) if len(rows) else total
    done = 0
    for batch_rows, texts in _missing_batches(database, entries, frozenset(rows.tolist())):
        _append(files, known, encoder, batch_rows, texts)
        done += len(texts)
        progress(done, missing_count)
    files.repair_binary_index()
    files.clear_removed(live)
    return done


def clear_removed_vectors(database: Database, derived: Path) -> None:
    """Blank the vectors of removed nodes, for every encoder."""
    with database.read_transaction() as connection:
        live = live_mask(read_entries(connection))
    for path in derived.glob("vectors/*"):
        VectorFiles(path).clear_removed(live)


def live_mask(entries: list[DocumentEntry]) -> Mask:
    """Return which rows belong to a document."""
    live = np.zeros(max((entry.end for entry in entries), default=0), dtype=np.bool_)
    for entry in entries:
        live[entry.first : entry.end] = True
    return live


def texts_to_encode(nodes: Sequence[ParsedNode]) -> Iterator[tuple[int, str]]:
    """Yield the position and the text to encode of every retrieved node of a document."""
    title = nodes[0].name
    for position, node in enumerate(nodes):
        if node.kind in RETRIEVED_KINDS:
            yield position, add_headings(title, _headings(nodes, position), node.text)


def _headings(nodes: Sequence[ParsedNode], position: int) -> list[str]:
    path = []
    parent = nodes[position].parent
    while parent is not None:
        if nodes[parent].kind == SECTION:
            path.append(nodes[parent].name)
        parent = nodes[parent].parent
    return path[::-1]


def _missing_batches(
    database: Database, entries: list[DocumentEntry], encoded: frozenset[int]
) -> Iterator[tuple[Rows, list[str]]]:
    """Yield the rows that are not in ``encoded`` and their texts, a batch at a time."""
    rows: list[int] = []
    texts: list[str] = []
    for entry in entries:
        with database.read_transaction() as connection:
            stamp = connection.execute(
                "SELECT stamp FROM document WHERE first_row = ?", (entry.first,)
            ).fetchone()
            if stamp is None or stamp[0] != entry.stamp:
                continue  # removed since the list was made
            nodes = read_parsed_document(connection, entry).nodes
        for position, text in texts_to_encode(nodes):
            if entry.first + position not in encoded:
                rows.append(entry.first + position)
                texts.append(text)
            if len(texts) == BATCH:
                yield np.array(rows, dtype=np.int64), texts
                rows, texts = [], []
    if texts:
        yield np.array(rows, dtype=np.int64), texts


class KnownTexts:
    """The texts that already have a vector, those of removed nodes included; updated while more are encoded."""

    def __init__(self, files: VectorFiles) -> None:
        _, self.rows, hashes = files.open()
        self._order = np.argsort(hashes, kind="stable")
        self._sorted_hashes = hashes[self._order]
        self._new_slots: dict[int, int] = {}
        self._count = len(hashes)

    def slots(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the slot of each text's vector, -1 where there is none."""
        slots = np.array(
            [self._new_slots.get(text_hash, -1) for text_hash in hashes.tolist()], dtype=np.int64
        )
        if len(self._sorted_hashes):
            places = np.searchsorted(self._sorted_hashes, hashes)
            places[places == len(self._sorted_hashes)] = 0
            stored = self._sorted_hashes[places] == hashes
            slots[stored] = self._order[places[stored]]
        return slots

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Record that the next slots have the vectors of these texts, in this order."""
        for text_hash in hashes.tolist():
            self._new_slots.setdefault(text_hash, self._count)
            self._count += 1


def _append(files: VectorFiles, known: KnownTexts, encoder: Encoder, rows: Rows, texts: list[str]) -> None:
    """Append the vectors of rows. A text with a vector is not encoded again, nor the same text twice in a batch."""
    hashes = hash_texts(texts)
    slots = known.slots(hashes)
    reused = slots >= 0
    vectors = np.zeros((len(texts), encoder.dimension), dtype=np.float32)
    if reused.any():
        vectors[reused] = files.vectors()[slots[reused]]
    if not reused.all():
        new = np.flatnonzero(~reused)
        _, first, inverse = np.unique(hashes[new], return_index=True, return_inverse=True)
        vectors[new] = encoder.encode([texts[n] for n in new[first].tolist()])[inverse]
    files.append(encoder.name, vectors, rows, hashes)
    known.add(hashes)
