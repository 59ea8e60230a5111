"""Making the vectors that are missing, and blanking those of removed nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clew.kb.database import Database
from clew.kb.fields import encoded_texts
from clew.kb.reading import Entry, entries, parsed
from clew.kb.vectors import Store, folder_of, text_hashes

if TYPE_CHECKING:
    from clew.protocols import Encoder, Mask, Rows

#: Texts that are encoded between two writes: what a kill loses at the most.
BATCH = 256


def encode(database: Database, derived: Path, encoder: Encoder, progress: Callable[[int, int], None]) -> int:
    """Encode every passage and table row without a vector; return how many were made, reused ones too."""
    store = Store(folder_of(derived, encoder.name))
    with database.reading() as connection:
        truth = entries(connection)
        total = connection.execute(
            "SELECT coalesce(sum(nodes), 0) FROM tally WHERE kind IN ('passage', 'row')"
        ).fetchone()[0]
    _, rows, _ = store.open()
    have = frozenset(rows.tolist())
    live = live_mask(truth)
    waiting = total - int(live[rows[rows < len(live)]].sum()) if len(rows) else total
    made = 0
    for batch_rows, texts in _missing(database, truth, have):
        _append(store, encoder, batch_rows, texts)
        made += len(texts)
        progress(made, waiting)
    store.forget(live)
    return made


def forget(database: Database, derived: Path) -> None:
    """Blank the vectors of nodes that are gone, for every encoder."""
    with database.reading() as connection:
        live = live_mask(entries(connection))
    for path in derived.glob("vectors/*"):
        Store(path).forget(live)


def live_mask(truth: list[Entry]) -> Mask:
    """Return which rows belong to a document."""
    live = np.zeros(max((one.end for one in truth), default=0), dtype=np.bool_)
    for one in truth:
        live[one.first : one.end] = True
    return live


def _missing(
    database: Database, truth: list[Entry], have: frozenset[int]
) -> Iterator[tuple[Rows, list[str]]]:
    """Yield rows without a vector and their texts, a batch at a time."""
    rows: list[int] = []
    texts: list[str] = []
    for one in truth:
        with database.reading() as connection:
            alive = connection.execute(
                "SELECT stamp FROM document WHERE first_row = ?", (one.first,)
            ).fetchone()
            if alive is None or alive[0] != one.stamp:
                continue
            nodes = parsed(connection, one).nodes
        for position, text in encoded_texts(nodes):
            if one.first + position not in have:
                rows.append(one.first + position)
                texts.append(text)
            if len(texts) == BATCH:
                yield np.array(rows, dtype=np.int64), texts
                rows, texts = [], []
    if texts:
        yield np.array(rows, dtype=np.int64), texts


def _append(store: Store, encoder: Encoder, rows: Rows, texts: list[str]) -> None:
    """Add vectors for rows; a text that has one already, even of a node that is gone, is not encoded again."""
    old, _, old_hashes = store.open()
    hashes = text_hashes(texts)
    order = np.argsort(old_hashes, kind="stable")
    places = np.searchsorted(old_hashes[order], hashes)
    places[places == len(order)] = 0
    known = old_hashes[order][places] == hashes if len(order) else np.zeros(len(texts), dtype=np.bool_)
    vectors = np.zeros((len(texts), encoder.dimension), dtype=np.float32)
    if known.any():
        vectors[known] = old[order[places[known]]]
    if not known.all():
        vectors[~known] = encoder.encode([texts[n] for n in np.flatnonzero(~known)])
    store.append(encoder.name, vectors, rows, hashes)
