"""The vectors of one encoder: append-only files, search over them, and the encoding of texts that have none.

``vectors.f32`` contains the vectors, ``rows.i64`` the row of each slot, ``texts.u64`` a hash of the text that was
encoded, so that a text which comes again (in a changed file) need not be encoded again. The manifest says how many
slots count; bytes beyond them were left by a crash and are overwritten. Where there are many vectors, ``signs.u64``
contains their binary codes (:mod:`clew.store.binary_index`), which can be rebuilt from the vectors.

Search is exact where there are few vectors. Where there are many, it takes the best of a shortlist by binary codes.
BLAS only proposes: the scores of what it proposes are summed again in float64, row by row, since BLAS gives
other last bits for another number of rows.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import cosines, find_positions, write_manifest
from clew.core.files import create_folder, open_private
from clew.core.protocols import encoder_batch
from clew.core.text import add_headings, hash_term
from clew.core.types import RETRIEVED_KINDS, SECTION, ParsedNode
from clew.store.binary_index import BinaryIndex, BinaryIndexFile
from clew.store.database import UNFINISHED_VECTORS, Database, refuse_exhaustion
from clew.store.documents import DocumentEntry, StoredRecords, read_entries, read_parsed_document

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Mask, Rows, Vectors
    from clew.core.protocols import Encoder

MANIFEST = "vectors.json"
#: From this many vectors on, binary codes are stored, too.
BINARY_INDEX_MINIMUM = 1 << 15
#: With a larger share of slots of removed rows, the files are rewritten.
MAX_DEAD_SHARE = 0.2


def vectors_folder(derived: Path, encoder: str) -> Path:
    """Return the folder of an encoder's vectors: a readable name, and a hash that makes it unique."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", encoder).strip("-.")[:40]
    return derived / "vectors" / f"{readable}-{hashlib.blake2b(encoder.encode(), digest_size=4).hexdigest()}"


@dataclass(frozen=True)
class VectorFiles:
    """The files of one encoder. Writing methods are called under ``index.lock``."""

    folder: Path

    def read_manifest(self) -> dict[str, Any]:
        """Return name, dimension and count; an empty dictionary where nothing usable is stored."""
        try:
            manifest = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
            needed = {
                "vectors.f32": manifest["count"] * manifest["dimension"] * 4,
                "rows.i64": manifest["count"] * 8,
                "texts.u64": manifest["count"] * 8,
            }
            complete = all((self.folder / name).stat().st_size >= size for name, size in needed.items())
            return dict(manifest) if complete else {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            refuse_exhaustion(error)
            return {}

    def open(self) -> tuple[Vectors, Rows, NDArray[np.uint64]]:
        """Return vectors (count, dimension), rows and text hashes, memory-mapped."""
        manifest = self.read_manifest()
        count, dimension = manifest.get("count", 0), manifest.get("dimension", 0)
        if not count:
            empty = np.empty(0, dtype=np.int64)
            return np.empty((0, dimension), dtype=np.float32), empty, empty.astype(np.uint64)
        vectors = self._map_vectors(count, dimension)
        rows = np.fromfile(self.folder / "rows.i64", np.dtype("<i8"), count)
        texts = np.fromfile(self.folder / "texts.u64", np.dtype("<u8"), count)
        return vectors, rows, texts

    def open_for_search(self) -> tuple[Vectors, Rows, BinaryIndex | None]:
        """Return vectors, rows, and the binary index where it is complete; all from one state of the files.

        Another process may replace them meanwhile (:meth:`clear_removed`): then they are read again. Where the binary
        index is damaged, search is exact: slower until it is rebuilt, never wrong.
        """
        while True:
            files, manifest = self._find_files()
            try:
                file = files.binary_index_file()
                binary_index = file.read() if file is not None and file.is_complete() else None
                vectors, rows, _ = files.open()
            except (OSError, ValueError) as error:  # a file that is gone, or is shorter now
                refuse_exhaustion(error)
                if files.read_manifest() == manifest:
                    raise
                continue
            if files.read_manifest() == manifest:
                return vectors, rows, binary_index

    def _find_files(self) -> tuple[VectorFiles, dict[str, Any]]:
        """Return the files with their manifest; for a moment, while they are replaced, they have another name."""
        replaced = VectorFiles(self.folder.with_name(self.folder.name + UNFINISHED_VECTORS[1]))
        for files in (self, replaced):
            if manifest := files.read_manifest():
                return files, manifest
        return self, self.read_manifest()

    def vectors(self) -> Vectors:
        """Return the vectors alone, (count, dimension), memory-mapped; there must be some."""
        manifest = self.read_manifest()
        return self._map_vectors(manifest["count"], manifest["dimension"])

    def _map_vectors(self, count: int, dimension: int) -> Vectors:
        return np.memmap(self.folder / "vectors.f32", np.dtype("<f4"), "r", shape=(count, dimension))

    def append(self, name: str, vectors: Vectors, rows: Rows, texts: NDArray[np.uint64]) -> None:
        """Append slots. They are on disk before the manifest counts them."""
        create_folder(self.folder)
        manifest = self.read_manifest() or {"name": name, "dimension": int(vectors.shape[1]), "count": 0}
        count, dimension = manifest["count"], manifest["dimension"]
        for file, array, width in (
            ("vectors.f32", vectors.astype("<f4"), 4 * dimension),
            ("rows.i64", rows.astype("<i8"), 8),
            ("texts.u64", texts.astype("<u8"), 8),
        ):
            path = self.folder / file
            with open_private(path, "r+b" if path.exists() else "w+b") as stream:
                stream.truncate(count * width)
                stream.seek(count * width)
                stream.write(np.ascontiguousarray(array).tobytes())
                stream.flush()
                os.fsync(stream.fileno())
        manifest["count"] = count + len(rows)
        self._append_codes(manifest, count, vectors)
        write_manifest(self.folder / MANIFEST, manifest)

    def binary_index_file(self) -> BinaryIndexFile | None:
        """Return the file of binary codes; None where there are too few vectors for one."""
        manifest = self.read_manifest()
        return self._code_file(manifest) if manifest.get("count", 0) >= BINARY_INDEX_MINIMUM else None

    def find_faulty_binary_index(self, checksums: bool) -> BinaryIndexFile | None:
        """Return the file of binary codes if it is missing or damaged; with ``checksums``, compare every code."""
        file = self.binary_index_file()
        if file is None or (file.matches(self.vectors()) if checksums else file.is_complete()):
            return None
        return file

    def repair_binary_index(self) -> bool:
        """Rebuild the file of binary codes where it is missing or incomplete; return whether it was rebuilt."""
        file = self.find_faulty_binary_index(checksums=False)
        if file is not None:
            file.rebuild(self.vectors())
        return file is not None

    def _code_file(self, manifest: dict[str, Any]) -> BinaryIndexFile:
        return BinaryIndexFile(self.folder / "signs.u64", manifest["dimension"], manifest["count"])

    def _append_codes(self, manifest: dict[str, Any], previous: int, vectors: Vectors) -> None:
        """Store the codes of ``vectors``, appended to ``previous`` others; the manifest is written afterwards."""
        if manifest["count"] < BINARY_INDEX_MINIMUM:
            return
        file = self._code_file(manifest)
        if previous >= BINARY_INDEX_MINIMUM and self._code_file(manifest | {"count": previous}).is_complete():
            file.write(previous, vectors)
            return
        shape = (manifest["count"], manifest["dimension"])
        file.rebuild(np.memmap(self.folder / "vectors.f32", np.dtype("<f4"), "r", shape=shape))

    def copy_live(self, target: VectorFiles, live: Mask) -> None:
        """Write the slots whose rows are live to ``target``, which is new, in the same order."""
        manifest = self.read_manifest()
        if not manifest.get("count"):
            return
        vectors, rows, texts = self.open()
        is_live = live_slots(rows, live)
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
            remaining = is_live[part]
            target.append(
                manifest["name"],
                np.asarray(vectors[part])[remaining],
                rows[part][remaining],
                texts[part][remaining],
            )

    def clear_removed(self, live: Mask) -> None:
        """Blank the vectors of rows that are not live; rewrite the files where there are many of them."""
        manifest = self.read_manifest()
        if not manifest:
            return
        vectors, rows, texts = self.open()
        removed = ~live_slots(rows, live)
        if np.count_nonzero(removed) > MAX_DEAD_SHARE * len(removed):
            remaining = ~removed
            fresh, old = (self.folder.with_name(self.folder.name + suffix) for suffix in UNFINISHED_VECTORS)
            shutil.rmtree(fresh, ignore_errors=True)
            VectorFiles(fresh).append(
                manifest["name"], np.array(vectors[remaining]), rows[remaining], texts[remaining]
            )
            self.folder.rename(old)
            fresh.rename(self.folder)
            shutil.rmtree(old)
            return
        blank = np.flatnonzero(removed & (texts != 0))
        if len(blank):
            with (self.folder / "vectors.f32").open("r+b") as stream:
                for slot in blank.tolist():
                    stream.seek(slot * vectors[0].nbytes)
                    stream.write(bytes(vectors[0].nbytes))
                stream.flush()
                os.fsync(stream.fileno())
            code_file = self.binary_index_file()
            if code_file is not None and code_file.is_complete():
                code_file.clear_slots(blank)
            texts[blank] = 0
            with (self.folder / "texts.u64").open("r+b") as stream:
                stream.write(texts.astype("<u8").tobytes())
                os.fsync(stream.fileno())


def hash_texts(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return a hash of each text, never 0, which marks a removed text."""
    return np.array([hash_term(text) or 1 for text in texts], dtype=np.uint64)


def live_slots(rows: Rows, live: Mask) -> NDArray[np.bool_]:
    """Return which of ``rows`` are marked in ``live``."""
    in_range = (rows >= 0) & (rows < len(live))
    return in_range & live[np.where(in_range, rows, 0)] if len(live) else in_range & False


if TYPE_CHECKING:
    Slots = NDArray[np.int64]

#: Up to this many vectors, the products with all of them are computed; a scope is often smaller than a base.
EXACT_LIMIT = 1 << 15
#: Vectors of a shortlist: at least so many, and so many for each requested hit (docs/decisions/0005).
SHORTLIST_SIZE, SHORTLIST_PER_HIT = 3000, 25
#: Vectors whose products are computed at a time.
BLOCK = 1 << 16
#: How many more than requested are scored again exactly, so that rounding in BLAS cannot push one out.
SPARE = 16


@dataclass(frozen=True)
class StoredVectors:
    """A :class:`clew.core.protocols.VectorIndex` over the slots of one encoder, as they were when it was made.

    ``live`` marks the live rows of the snapshot, ``expected`` those that should have a vector. Without
    ``binary_index`` every search is exact.
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
    def _live_slots(self) -> Mask:
        """Which slots belong to a live row; of several slots of a row the last."""
        mask = np.zeros(len(self.slots), dtype=np.bool_)
        mask[self._slot_of[self._slot_of >= 0]] = True
        return mask

    @cached_property
    def _live_slot_rows(self) -> Rows:
        """The row of each slot; 0 for slots of removed rows."""
        return np.where(self._live_slots, self.slot_rows, 0)

    @cached_property
    def _slot_of(self) -> Slots:
        """The slot of each row, -1 for a row without one."""
        slot_of = np.full(len(self.live) + 1, -1, dtype=np.int64)
        slots = np.flatnonzero(live_slots(self.slot_rows, self.live))
        slot_of[self.slot_rows[slots]] = slots
        return slot_of

    def missing_count(self) -> int:
        """Return how many retrieved nodes have no vector yet."""
        return int((self.expected & (self._slot_of[:-1] < 0)).sum())

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of ``rows``, (n, dimension); zeros for a row without one."""
        slots = self._slot_of[rows]
        vectors = np.zeros((len(slots), self.dimension), dtype=np.float32)
        has_vector = slots >= 0
        vectors[has_vector] = self.slots[slots[has_vector]]
        return vectors

    def search(self, queries: Vectors, k: int, allowed: Mask | None = None) -> tuple[Rows, Floats]:
        """Return the ``k`` nearest rows by inner product for each query, best first; -1 where fewer exist."""
        searched = self._searched_slots(allowed)
        slots = np.flatnonzero(searched)
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        hit_rows = np.full((len(queries), k), -1, dtype=np.int64)
        scores = np.full((len(queries), k), -np.inf)
        if not len(slots) or not k:
            return hit_rows, scores
        if self.binary_index is None or len(slots) <= EXACT_LIMIT:
            proposals = list(self._propose(queries, slots, k + SPARE))
        else:
            size = max(SHORTLIST_SIZE, SHORTLIST_PER_HIT * k)
            shortlists = [self.binary_index.shortlist(query, searched, size) for query in queries]
            proposals = [
                self._propose(query[None], shortlist, k + SPARE)[0]
                for query, shortlist in zip(queries, shortlists, strict=True)
            ]
        for number, proposed in enumerate(proposals):
            exact = cosines(self.slots[proposed], queries[number]).round(9)
            rows = self.slot_rows[proposed]
            # Ties are in the order of rows here; the caller, who makes hits, breaks ties by node id.
            order = np.lexsort((rows, -exact))[:k]
            hit_rows[number, : len(order)] = rows[order]
            scores[number, : len(order)] = exact[order]
        return hit_rows, scores

    def _searched_slots(self, allowed: Mask | None) -> Mask:
        """Return which slots to search: the slots of live, allowed rows."""
        if allowed is None:
            return self._live_slots
        if not len(allowed):  # no row yet, while the index is made anew beside the vectors of before
            return np.zeros_like(self._live_slots)
        return self._live_slots & allowed[self._live_slot_rows]

    def _propose(self, queries: Vectors, slots: Slots, k: int) -> Slots:
        """Return for each query the ``k`` of ``slots`` with the greatest products, in no order."""
        k = min(k, len(slots))
        all_slots = len(slots) == len(self.slots)
        best = np.empty((len(queries), 0), dtype=np.int64)
        best_scores = np.empty((len(queries), 0), dtype=np.float32)
        for start in range(0, len(slots), BLOCK):
            batch = slots[start : start + BLOCK]
            block = self.slots[start : start + BLOCK] if all_slots else self.slots[batch]
            products = queries @ block.T
            batch_slots = np.broadcast_to(batch, products.shape)
            best, best_scores = _top_k(
                np.concatenate([best, batch_slots], axis=1),
                np.concatenate([best_scores, products], axis=1),
                k,
            )
        return best


def _top_k(slots: Slots, scores: Vectors, k: int) -> tuple[Slots, Vectors]:
    """Return the slots with the ``k`` greatest of each row of ``scores``, and these scores, in no order."""
    if scores.shape[1] <= k:
        return slots, scores
    top = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    return np.take_along_axis(slots, top, 1), np.take_along_axis(scores, top, 1)


#: Texts that are encoded between two writes: at most so many are lost when the process is killed. An encoder that
#: works on several machines names more, its ``batch``, so that all have work.
BATCH = 256


def encode_missing(
    database: Database, derived: Path, encoder: Encoder, progress: Callable[[int, int], None]
) -> int:
    """Encode every passage and table row without a vector; return how many vectors were made or reused."""
    finish_rewriting(derived)
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
    batch = max(BATCH, encoder_batch(encoder))
    for batch_rows, texts in _missing_batches(database, entries, frozenset(rows.tolist()), batch):
        _append(files, known, encoder, batch_rows, texts)
        done += len(texts)
        progress(done, missing_count)
    files.repair_binary_index()
    files.clear_removed(live)
    return done


def clear_removed_vectors(database: Database, derived: Path) -> None:
    """Blank the vectors of removed nodes, for every encoder."""
    finish_rewriting(derived)
    with database.read_transaction() as connection:
        live = live_mask(read_entries(connection))
    for path in derived.glob("vectors/*"):
        VectorFiles(path).clear_removed(live)


def finish_rewriting(derived: Path) -> None:
    """Finish or undo what a process began that was killed in :meth:`VectorFiles.clear_removed`."""
    fresh_suffix, old_suffix = UNFINISHED_VECTORS
    for old in derived.glob(f"vectors/*{old_suffix}"):
        folder = old.with_name(old.name.removesuffix(old_suffix))
        if folder.exists():
            shutil.rmtree(old)
        else:
            old.rename(folder)
    for fresh in derived.glob(f"vectors/*{fresh_suffix}"):
        shutil.rmtree(fresh)


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
    database: Database, entries: list[DocumentEntry], encoded: frozenset[int], batch: int
) -> Iterator[tuple[Rows, list[str]]]:
    """Yield the rows that are not in ``encoded`` and their texts, ``batch`` of them at a time."""
    rows: list[int] = []
    texts: list[str] = []
    for entry in entries:
        with database.read_transaction() as connection:
            stamp = connection.execute(
                "SELECT stamp FROM document WHERE first_row = ?", (entry.first,)
            ).fetchone()
            if stamp is None or stamp[0] != entry.stamp:
                continue  # removed since the list was made
            nodes = read_parsed_document(StoredRecords(connection), entry).nodes
        for position, text in texts_to_encode(nodes):
            if entry.first + position not in encoded:
                rows.append(entry.first + position)
                texts.append(text)
            if len(texts) == batch:
                yield np.array(rows, dtype=np.int64), texts
                rows, texts = [], []
    if texts:
        yield np.array(rows, dtype=np.int64), texts


class KnownTexts:
    """The texts that have a vector, also those of removed nodes; updated during encoding."""

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
        places = find_positions(self._sorted_hashes, hashes)
        stored = places >= 0
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
