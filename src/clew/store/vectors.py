"""The vectors of one encoder: append-only files.

``vectors.f32`` holds the vectors, ``rows.i64`` the row that each slot is for, ``texts.u64`` a hash of the
text that it stands for, so that a text which comes again (a changed file) need not be encoded again. The
manifest says how many slots count; bytes beyond it are what a crash left, and are overwritten. Where there are
many, ``signs.u64`` holds their codes (:mod:`clew.store.binary_index`); made of the vectors, it can be made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import cosines
from clew.core.text import hash_term
from clew.store.array_files import write_manifest
from clew.store.binary_index import BinaryIndex, BinaryIndexFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Mask, Rows, Vectors

MANIFEST = "vectors.json"
#: With this many vectors or more their signs are kept, too.
BINARY_INDEX_MINIMUM = 1 << 15
#: With a larger share of slots for removed rows the files are written anew.
MAX_DEAD_SHARE = 0.2


def vectors_folder(derived: Path, encoder: str) -> Path:
    """Return the folder of an encoder's vectors: a readable name, and a hash that tells alike ones apart."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", encoder).strip("-.")[:40]
    return derived / "vectors" / f"{readable}-{hashlib.blake2b(encoder.encode(), digest_size=4).hexdigest()}"


@dataclass(frozen=True)
class VectorFiles:
    """The files of one encoder. Writing methods are called under ``index.lock``."""

    folder: Path

    def read_manifest(self) -> dict[str, Any]:
        """Return name, dimension and count; an empty dictionary where nothing usable is stored."""
        try:
            content = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
            wanted = {
                "vectors.f32": content["count"] * content["dimension"] * 4,
                "rows.i64": content["count"] * 8,
                "texts.u64": content["count"] * 8,
            }
            whole = all((self.folder / name).stat().st_size >= size for name, size in wanted.items())
            return dict(content) if whole else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def open(self) -> tuple[Vectors, Rows, NDArray[np.uint64]]:
        """Return vectors (count, dimension), rows and text hashes, memory-mapped."""
        content = self.read_manifest()
        count, dimension = content.get("count", 0), content.get("dimension", 0)
        if not count:
            none = np.empty(0, dtype=np.int64)
            return np.empty((0, dimension), dtype=np.float32), none, none.astype(np.uint64)
        vectors = self.vectors()
        rows = np.fromfile(self.folder / "rows.i64", np.dtype("<i8"), count)
        texts = np.fromfile(self.folder / "texts.u64", np.dtype("<u8"), count)
        return vectors, rows, texts

    def open_for_search(self) -> tuple[Vectors, Rows, BinaryIndex | None]:
        """Return vectors, rows, and the signs where they are whole; all of one state of the files.

        Where the signs are damaged, search is exact: slower until they are made again, never wrong.
        """
        while True:
            content = self.read_manifest()
            file = self.binary_index_file()
            signs = file.read() if file is not None and file.is_complete() else None
            vectors, rows, _ = self.open()
            if self.read_manifest() == content:
                return vectors, rows, signs

    def vectors(self) -> Vectors:
        """Return the vectors alone, (count, dimension), memory-mapped; there must be some."""
        content = self.read_manifest()
        shape = (content["count"], content["dimension"])
        return np.memmap(self.folder / "vectors.f32", np.dtype("<f4"), "r", shape=shape)

    def append(self, name: str, vectors: Vectors, rows: Rows, texts: NDArray[np.uint64]) -> None:
        """Add slots; on disk before the manifest counts them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = self.read_manifest() or {"name": name, "dimension": int(vectors.shape[1]), "count": 0}
        count, dimension = content["count"], content["dimension"]
        for file, array, width in (
            ("vectors.f32", vectors.astype("<f4"), 4 * dimension),
            ("rows.i64", rows.astype("<i8"), 8),
            ("texts.u64", texts.astype("<u8"), 8),
        ):
            path = self.folder / file
            with path.open("r+b" if path.exists() else "w+b") as stream:
                stream.truncate(count * width)
                stream.seek(count * width)
                stream.write(np.ascontiguousarray(array).tobytes())
                stream.flush()
                os.fsync(stream.fileno())
        content["count"] = count + len(rows)
        self._sign(content, count, vectors)
        write_manifest(self.folder / MANIFEST, content)

    def binary_index_file(self) -> BinaryIndexFile | None:
        """Return the file of signs; None where there are too few vectors for one to be kept."""
        content = self.read_manifest()
        return self._signs(content) if content.get("count", 0) >= BINARY_INDEX_MINIMUM else None

    def repair_binary_index(self) -> bool:
        """Make the file of signs where it should be and is not whole; return whether it was made."""
        signs = self.binary_index_file()
        if signs is None or signs.is_complete():
            return False
        signs.rebuild(self.vectors())
        return True

    def _signs(self, content: dict[str, Any]) -> BinaryIndexFile:
        return BinaryIndexFile(self.folder / "signs.u64", content["dimension"], content["count"])

    def _sign(self, content: dict[str, Any], before: int, vectors: Vectors) -> None:
        """Keep the signs of ``vectors``, which were added to ``before`` others; the manifest comes after."""
        if content["count"] < BINARY_INDEX_MINIMUM:
            return
        after = self._signs(content)
        if before >= BINARY_INDEX_MINIMUM and self._signs(content | {"count": before}).is_complete():
            after.write(before, vectors)
            return
        shape = (content["count"], content["dimension"])
        after.rebuild(np.memmap(self.folder / "vectors.f32", np.dtype("<f4"), "r", shape=shape))

    def clear_removed(self, live: Mask) -> None:
        """Blank the vectors of rows that do not live; write the files anew where there are many of them."""
        content = self.read_manifest()
        if not content:
            return
        vectors, rows, texts = self.open()
        gone = ~live_slots(rows, live)
        if gone.mean() > MAX_DEAD_SHARE:
            kept = ~gone
            fresh = VectorFiles(self.folder.with_suffix(".new"))
            fresh.append(content["name"], np.array(vectors[kept]), rows[kept], texts[kept])
            (self.folder / "signs.u64").unlink(missing_ok=True)
            for file in ("vectors.f32", "rows.i64", "texts.u64", "signs.u64", MANIFEST):
                # The manifest last: until then the old count is refused by the smaller files, and rebuilt.
                if (fresh.folder / file).exists():
                    (fresh.folder / file).replace(self.folder / file)
            fresh.folder.rmdir()
            return
        blank = np.flatnonzero(gone & (texts != 0))
        if len(blank):
            writable = np.memmap(self.folder / "vectors.f32", np.dtype("<f4"), "r+", shape=vectors.shape)
            writable[blank] = 0
            writable.flush()
            signs = self.binary_index_file()
            if signs is not None and signs.is_complete():
                signs.clear_slots(blank)
            texts[blank] = 0
            with (self.folder / "texts.u64").open("r+b") as stream:
                stream.write(texts.astype("<u8").tobytes())
                os.fsync(stream.fileno())


def hash_texts(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return a hash of each text, never 0, which stands for a text that was removed."""
    return np.array([hash_term(text) or 1 for text in texts], dtype=np.uint64)


def live_slots(rows: Rows, live: Mask) -> NDArray[np.bool_]:
    """Return which of ``rows`` are marked in ``live``."""
    known = (rows >= 0) & (rows < len(live))
    return known & live[np.where(known, rows, 0)] if len(live) else known & False


if TYPE_CHECKING:
    Slots = NDArray[np.int64]

#: Among so many vectors the products with all of them are computed; a scope is often smaller than a base.
EXACT_LIMIT = 1 << 15
#: A shortlist has so many vectors, and so many for each one asked for (docs/decisions/0005).
SHORTLIST_SIZE, SHORTLIST_PER_HIT = 3000, 25
#: Vectors whose products are computed at a time.
BLOCK = 1 << 16
#: How many more than asked for are scored again exactly, so that rounding in BLAS cannot push one out.
SPARE = 16


@dataclass(frozen=True)
class StoredVectors:
    """:class:`clew.core.protocols.VectorView` over one encoder's slots, as they were when it was made.

    ``live`` marks the rows of the snapshot that live, ``wanted`` those that should have a vector. Without
    ``signs`` every search is exact.
    """

    slots: Vectors
    slot_rows: Rows
    live: Mask
    expected: Mask
    binary_index: BinaryIndex | None = None

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.slots.shape[1])

    @cached_property
    def _living(self) -> Mask:
        """Which slots are the ones of a living row: the last, where it has several."""
        found = np.zeros(len(self.slots), dtype=np.bool_)
        found[self._slot_of[self._slot_of >= 0]] = True
        return found

    @cached_property
    def _living_rows(self) -> Rows:
        """The row of each slot; 0 for slots of removed rows."""
        return np.where(self._living, self.slot_rows, 0)

    @cached_property
    def _slot_of(self) -> Slots:
        found = np.full(len(self.live) + 1, -1, dtype=np.int64)
        slots = np.flatnonzero(live_slots(self.slot_rows, self.live))
        found[self.slot_rows[slots]] = slots
        return found

    def missing_count(self) -> int:
        """Return how many retrieved nodes have no vector yet."""
        return int((self.expected & (self._slot_of[:-1] < 0)).sum())

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of ``rows``, (n, dimension); zeros for a row without one."""
        slots = self._slot_of[rows]
        found = np.zeros((len(slots), self.dimension), dtype=np.float32)
        has = slots >= 0
        found[has] = self.slots[slots[has]]
        return found

    def search(self, queries: Vectors, k: int, allowed: Mask | None = None) -> tuple[Rows, Floats]:
        """Return the ``k`` nearest rows by inner product for each query, best first; -1 where fewer exist."""
        among = self._among(allowed)
        slots = np.flatnonzero(among)
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        found = np.full((len(queries), k), -1, dtype=np.int64)
        scores = np.full((len(queries), k), -np.inf)
        if not len(slots) or not k:
            return found, scores
        if self.binary_index is None or len(slots) <= EXACT_LIMIT:
            proposed = list(self._proposed(queries, slots, k + SPARE))
        else:
            size = max(SHORTLIST_SIZE, SHORTLIST_PER_HIT * k)
            lists = [self.binary_index.shortlist(query, among, size) for query in queries]
            proposed = [
                self._proposed(query[None], near, k + SPARE)[0]
                for query, near in zip(queries, lists, strict=True)
            ]
        for number, near in enumerate(proposed):
            exact = cosines(self.slots[near], queries[number]).round(9)
            rows = self.slot_rows[near]
            # Ties keep the order of rows here; whoever makes hits of them breaks ties by node id.
            order = np.lexsort((rows, -exact))[:k]
            found[number, : len(order)] = rows[order]
            scores[number, : len(order)] = exact[order]
        return found, scores

    def _among(self, allowed: Mask | None) -> Mask:
        """Return which slots to search: those of living, allowed rows."""
        return self._living if allowed is None else self._living & allowed[self._living_rows]

    def _proposed(self, queries: Vectors, slots: Slots, k: int) -> Slots:
        """Return for each query the ``k`` of ``slots`` with the greatest products, in no order."""
        k = min(k, len(slots))
        whole = len(slots) == len(self.slots)
        best = np.empty((len(queries), 0), dtype=np.int64)
        best_scores = np.empty((len(queries), 0), dtype=np.float32)
        for start in range(0, len(slots), BLOCK):
            some = slots[start : start + BLOCK]
            block = self.slots[start : start + BLOCK] if whole else self.slots[some]
            products = queries @ block.T
            places = np.broadcast_to(some, products.shape)
            best, best_scores = _greatest(
                np.concatenate([best, places], axis=1), np.concatenate([best_scores, products], axis=1), k
            )
        return best


def _greatest(places: Slots, scores: Vectors, k: int) -> tuple[Slots, Vectors]:
    """Return the ``k`` greatest of each row of ``scores``, and their places."""
    if scores.shape[1] <= k:
        return places, scores
    top = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    return np.take_along_axis(places, top, 1), np.take_along_axis(scores, top, 1)


# MERGED: Nearest vectors: exact where there are few, the best of a shortlist by signs where there are many.
