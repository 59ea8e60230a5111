"""The vectors of one encoder: append-only files, exact search.

``vectors.f32`` holds the vectors, ``rows.i64`` the row that each slot is for, ``texts.u64`` a hash of the
text that it stands for, so that a text which comes again (a changed file) need not be encoded again. The
manifest says how many slots count; bytes beyond it are what a crash left, and are overwritten. Search is
exact: BLAS proposes, and the scores of what it proposes are summed again in float64, row by row, since BLAS
gives other last bits for another number of rows.
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

from clew.kb.segments import write_manifest
from clew.text import term_hash

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.protocols import Floats, Mask, Rows, Vectors

MANIFEST = "vectors.json"
#: Vectors whose products are computed at a time.
BLOCK = 1 << 16
#: How many more than asked for are scored again exactly, so that rounding in BLAS cannot push one out.
SPARE = 16
#: With a larger share of slots for removed rows the files are written anew.
DEAD = 0.2


def folder_of(derived: Path, encoder: str) -> Path:
    """Return the folder of an encoder's vectors: a readable name, and a hash that tells alike ones apart."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", encoder).strip("-.")[:40]
    return derived / "vectors" / f"{readable}-{hashlib.blake2b(encoder.encode(), digest_size=4).hexdigest()}"


@dataclass(frozen=True)
class Store:
    """The files of one encoder. Writing methods are called under ``index.lock``."""

    folder: Path

    def manifest(self) -> dict[str, Any]:
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
        content = self.manifest()
        count, dimension = content.get("count", 0), content.get("dimension", 0)
        if not count:
            none = np.empty(0, dtype=np.int64)
            return np.empty((0, dimension), dtype=np.float32), none, none.astype(np.uint64)
        vectors = self.vectors()
        rows = np.fromfile(self.folder / "rows.i64", np.dtype("<i8"), count)
        texts = np.fromfile(self.folder / "texts.u64", np.dtype("<u8"), count)
        return vectors, rows, texts

    def vectors(self) -> Vectors:
        """Return the vectors alone, (count, dimension), memory-mapped; there must be some."""
        content = self.manifest()
        shape = (content["count"], content["dimension"])
        return np.memmap(self.folder / "vectors.f32", np.dtype("<f4"), "r", shape=shape)

    def append(self, name: str, vectors: Vectors, rows: Rows, texts: NDArray[np.uint64]) -> None:
        """Add slots; on disk before the manifest counts them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = self.manifest() or {"name": name, "dimension": int(vectors.shape[1]), "count": 0}
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
        write_manifest(self.folder / MANIFEST, content | {"count": count + len(rows)})

    def forget(self, live: Mask) -> None:
        """Blank the vectors of rows that do not live; write the files anew where there are many of them."""
        content = self.manifest()
        if not content:
            return
        vectors, rows, texts = self.open()
        gone = ~_living(rows, live)
        if gone.mean() > DEAD:
            kept = ~gone
            fresh = Store(self.folder.with_suffix(".new"))
            fresh.append(content["name"], np.array(vectors[kept]), rows[kept], texts[kept])
            for file in ("vectors.f32", "rows.i64", "texts.u64", MANIFEST):
                # The manifest last: until then the old count is refused by the smaller files, and rebuilt.
                (fresh.folder / file).replace(self.folder / file)
            fresh.folder.rmdir()
            return
        blank = np.flatnonzero(gone & (texts != 0))
        if len(blank):
            writable = np.memmap(self.folder / "vectors.f32", np.dtype("<f4"), "r+", shape=vectors.shape)
            writable[blank] = 0
            writable.flush()
            texts[blank] = 0
            with (self.folder / "texts.u64").open("r+b") as stream:
                stream.write(texts.astype("<u8").tobytes())
                os.fsync(stream.fileno())


@dataclass(frozen=True)
class ExactView:
    """:class:`clew.protocols.VectorView` over one encoder's slots, as they were when it was made."""

    slots: Vectors
    slot_rows: Rows
    live: Mask
    wanted: Mask

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.slots.shape[1])

    @cached_property
    def _slot_of(self) -> NDArray[np.int64]:
        found = np.full(len(self.live) + 1, -1, dtype=np.int64)
        living = np.flatnonzero(_living(self.slot_rows, self.live))
        found[self.slot_rows[living]] = living
        return found

    def missing(self) -> int:
        """Return how many retrieved nodes have no vector yet."""
        return int((self.wanted & (self._slot_of[:-1] < 0)).sum())

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of ``rows``, (n, dimension); zeros for a row without one."""
        slots = self._slot_of[rows]
        found = np.zeros((len(slots), self.dimension), dtype=np.float32)
        has = slots >= 0
        found[has] = self.slots[slots[has]]
        return found

    def search(self, queries: Vectors, k: int, allowed: Mask | None = None) -> tuple[Rows, Floats]:
        """Return the ``k`` nearest rows by inner product for each query, best first; -1 where fewer exist."""
        among = self._slot_of[:-1] >= 0
        rows = np.flatnonzero(among if allowed is None else among & allowed)
        slots = self._slot_of[rows]
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        found = np.full((len(queries), k), -1, dtype=np.int64)
        scores = np.full((len(queries), k), -np.inf)
        if not len(rows) or not k:
            return found, scores
        for number, near in enumerate(self._propose(queries, slots, min(k + SPARE, len(rows)))):
            exact = np.einsum(
                "ij,j->i", self.slots[slots[near]].astype(np.float64), queries[number].astype(np.float64)
            ).round(9)
            # Ties keep the order of rows here; whoever makes hits of them breaks ties by node id.
            order = np.lexsort((rows[near], -exact))[:k]
            found[number, : len(order)] = rows[near][order]
            scores[number, : len(order)] = exact[order]
        return found, scores

    def _propose(self, queries: Vectors, slots: NDArray[np.int64], k: int) -> NDArray[np.int64]:
        """Return for each query the places in ``slots`` of its ``k`` nearest, in no order."""
        whole = len(slots) == len(self.slots) and bool((np.diff(slots) == 1).all())
        best = np.empty((len(queries), 0), dtype=np.int64)
        best_scores = np.empty((len(queries), 0), dtype=np.float32)
        for start in range(0, len(slots), BLOCK):
            some = slots[start : start + BLOCK]
            block = self.slots[start : start + BLOCK] if whole else self.slots[some]
            products = queries @ block.T
            places = np.broadcast_to(np.arange(start, start + len(some)), products.shape)
            if len(some) > k:
                top = np.argpartition(-products, k - 1, axis=1)[:, :k]
                products, places = np.take_along_axis(products, top, 1), np.take_along_axis(places, top, 1)
            best = np.concatenate([best, places], axis=1)
            best_scores = np.concatenate([best_scores, products], axis=1)
            if best.shape[1] > k:
                top = np.argpartition(-best_scores, k - 1, axis=1)[:, :k]
                best, best_scores = np.take_along_axis(best, top, 1), np.take_along_axis(best_scores, top, 1)
        return best


def text_hashes(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return a hash of each text, never 0, which stands for a text that was removed."""
    return np.array([term_hash(text) or 1 for text in texts], dtype=np.uint64)


def _living(rows: Rows, live: Mask) -> NDArray[np.bool_]:
    known = (rows >= 0) & (rows < len(live))
    return known & live[np.where(known, rows, 0)] if len(live) else known & False
