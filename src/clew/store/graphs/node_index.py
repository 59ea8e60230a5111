"""What is derived from the texts of a graph's nodes: their vectors, by encoder, and their words.

It lies in ``derived/nodes/<digest>``, apart from the arrays of :mod:`clew.store.graphs.arrays`, which are made again
when their form changes: vectors are hours of work. A folder is right for its graph or not there, and goes with it, so
nothing of a removed graph's texts stays. Vectors are appended as questions need them, by any process; a lock of
their own is held while some are written, never while they are made.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import cosines, run_offsets
from clew.core.errors import Damaged, NotFound
from clew.core.text import TEXT_VERSION, count_terms
from clew.store.array_files import read_arrays, write_arrays, write_manifest
from clew.store.database import hold_lock
from clew.store.postings import FieldPostings, SegmentedPostings
from clew.store.vectors import EXACT_LIMIT, SHORTLIST_PER_HIT, SHORTLIST_SIZE, VectorFiles, hash_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Mask, Rows, Vectors
    from clew.core.protocols import Encoder, NodeTexts, ProgressCallback
    from clew.store.array_files import Arrays
    from clew.store.binary_index import BinaryIndex

#: Texts that are encoded between two writes: what a kill loses at the most.
ENCODE_BATCH = 256
#: Vectors that are compared at once, and how far off BLAS may be.
_AT_ONCE, _ROUNDING = 1 << 14, 1e-5


@dataclass(frozen=True, slots=True)
class NodeFolder:
    """Where what is derived from a graph's nodes lies; ``there`` says whether the graph is still in the base."""

    folder: Path
    lock: Path
    graph_exists: Callable[[], bool]

    def subfolder(self, kind: str, what: str) -> Path:
        """Return the folder of the ``kind`` of thing that is derived from the texts named ``what``."""
        readable = re.sub(r"[^A-Za-z0-9._-]+", "-", what).strip("-.")[:40]
        return self.folder / f"{kind}-{readable}-{hashlib.blake2b(what.encode(), digest_size=4).hexdigest()}"

    @contextmanager
    def lock_for_writing(self) -> Iterator[None]:
        """Hold the lock, for a graph that is there. Raises NotFound, Locked."""
        with hold_lock(self.lock):
            if not self.graph_exists():
                raise NotFound("the graph was removed or replaced a moment ago", "Ask again")
            yield


def node_folder(derived: Path, digest: str, there: Callable[[], bool]) -> NodeFolder:
    """Return the place of the graph with that digest."""
    return NodeFolder(derived / "nodes" / digest, node_lock(derived), there)


def node_lock(derived: Path) -> Path:
    """Return the lock file of what is derived from nodes."""
    return derived.parent / "nodes.lock"


def delete_stale_node_data(derived: Path, digests: Sequence[str]) -> None:
    """Delete what was derived from graphs that are no longer there."""
    if (derived / "nodes").exists():
        with hold_lock(node_lock(derived)):
            for folder in (derived / "nodes").glob("*"):
                if folder.name not in digests:
                    shutil.rmtree(folder)


def check_node_data(derived: Path, digest: str, repair: bool, checksums: bool) -> Iterator[tuple[str, bool]]:
    """Yield what is wrong with what is kept of a graph, and whether it was put right: vectors that cannot be used are
    forgotten, signs and words made again (words when they are next asked for)."""
    for folder in sorted((derived / "nodes" / digest).glob("*")):
        if folder.name.startswith("words-"):
            for path in damaged_word_blocks(folder):
                if repair:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                yield "words of its nodes are damaged", repair
            continue
        store = VectorFiles(folder)
        if not store.read_manifest():
            if repair:
                shutil.rmtree(folder)
            yield "vectors of its nodes are damaged; encode again", repair
        elif (signs := store.binary_index_file()) is not None and not (
            signs.matches(store.vectors()) if checksums else signs.is_complete()
        ):
            if repair:
                with hold_lock(node_lock(derived)):
                    signs.rebuild(store.vectors())
            yield f"{signs.path.name} of the vectors of its nodes is missing or damaged", repair


@dataclass(frozen=True, slots=True)
class _State:
    """The slots as they were at one count: whose each is, and which are whose."""

    slots: Vectors
    slot_rows: Rows
    signs: BinaryIndex | None
    order: NDArray[np.int64]
    rows: Rows  # of each slot, in that order


class StoredNodeVectors:
    """:class:`clew.core.protocols.NodeVectors`."""

    def __init__(self, place: NodeFolder, encoder: Encoder, what: str, size: int) -> None:
        self.encoder = encoder
        self._place, self._size = place, size
        self._store = VectorFiles(place.subfolder("vectors", f"{encoder.name} {what}"))
        self._held: tuple[int, _State] | None = None

    def rows_without_vectors(self, rows: Rows | None = None) -> Rows:
        """Return those of ``rows`` without a vector, ascending, each once."""
        asked = np.ones(self._size, dtype=np.bool_)
        if rows is not None:
            asked[:] = False
            asked[np.asarray(rows, dtype=np.int64)] = True
        state = self._state()
        if state is not None:
            asked[state.rows] = False
        return np.flatnonzero(asked)

    def encode_missing(self, rows: Rows, texts: NodeTexts, progress: ProgressCallback | None = None) -> int:
        """Make and keep the vectors that are missing, a batch at a time; return of how many nodes."""
        waiting = self.rows_without_vectors(rows)
        for start in range(0, len(waiting), ENCODE_BATCH):
            some = waiting[start : start + ENCODE_BATCH]
            self._make(some, texts(some))
            if progress:
                progress(start + len(some), len(waiting))
        return len(waiting)

    def _make(self, rows: Rows, parts: Sequence[Sequence[str]]) -> None:
        slots = np.repeat(rows, [len(one) for one in parts])
        hashes = hash_texts([text for one in parts for text in one])
        _, firsts, again = np.unique(hashes, return_index=True, return_inverse=True)
        flat = [text for one in parts for text in one]
        vectors = self.encoder.encode([flat[n] for n in firsts.tolist()])[again]
        with self._place.lock_for_writing():
            # Another process may have made some of them meanwhile.
            new = np.isin(slots, self.rows_without_vectors(rows))
            if new.any():
                self._store.append(self.encoder.name, vectors[new], slots[new], hashes[new])

    def vectors(self, rows: Rows) -> tuple[NDArray[np.int64], Vectors]:
        """Return the vectors of ``rows``: offsets (n + 1), and the vectors."""
        rows = np.asarray(rows, dtype=np.int64)
        state = self._state()
        if state is None:
            empty = np.empty((0, self.encoder.dimension), dtype=np.float32)
            return np.zeros(len(rows) + 1, dtype=np.int64), empty
        firsts = np.searchsorted(state.rows, rows)
        sizes = np.searchsorted(state.rows, rows, side="right") - firsts
        offsets = run_offsets(sizes)
        at = np.repeat(firsts - offsets[:-1], sizes) + np.arange(int(offsets[-1]))
        return offsets, np.asarray(state.slots[state.order[at]])

    def search(self, query: Vectors, k: int, allowed: Mask | None = None) -> tuple[Rows, Floats]:
        """Return at most ``k`` rows, nearest first, ties by row: exact up to 32,768 vectors, by a shortlist above.

        All that are as near as the last are compared, so that ties do not go by the order in which vectors were made.
        """
        state = self._state()
        if state is None or k < 1:
            return np.empty(0, dtype=np.int64), np.empty(0)
        among = np.ones(len(state.slot_rows), dtype=np.bool_) if allowed is None else allowed[state.slot_rows]
        slots = np.flatnonzero(among)
        if state.signs is not None and len(slots) > EXACT_LIMIT:
            slots = state.signs.shortlist(query, among, max(SHORTLIST_SIZE, SHORTLIST_PER_HIT * k))
        near = np.concatenate(
            [np.empty(0, dtype=np.float32), *(state.slots[some] @ query for some in _blocks(slots))]
        )
        if len(slots) > k:
            slots = slots[near >= np.partition(near, -k)[-k] - _ROUNDING]
        exact = [cosines(state.slots[some], query).round(9) for some in _blocks(slots)]
        scores, rows = np.concatenate([np.empty(0), *exact]), state.slot_rows[slots]
        order = np.lexsort((rows, -scores))[:k]
        return rows[order], scores[order]

    def _state(self) -> _State | None:
        count = int(self._store.read_manifest().get("count", 0))
        if not count:
            return None
        if self._held is None or self._held[0] != count:
            slots, rows, signs = self._store.open_for_search()
            order = np.argsort(rows, kind="stable")
            self._held = (len(rows), _State(slots, rows, signs, order, rows[order]))
        return self._held[1]


def _blocks(slots: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    return (slots[start : start + _AT_ONCE] for start in range(0, len(slots), _AT_ONCE))


#: Nodes whose words are sorted and kept at once: bounds memory and what a kill loses, not results.
WORD_BLOCK = 1 << 15
#: Nodes whose texts are written at once.
WORD_BATCH = 256
WORDS_MANIFEST = "words.json"
#: Changing how words are counted changes this name, and they are counted again.
WORDS_MAKER = f"words/2 text/{TEXT_VERSION}"


def node_word_postings(
    place: NodeFolder, what: str, size: int, texts: NodeTexts | None, progress: ProgressCallback | None = None
) -> SegmentedPostings | None:
    """Return the postings of the texts ``what`` of ``size`` nodes; those that are missing are made of ``texts``.

    None where some are missing and ``texts`` are not given. ``progress`` is told how many nodes are done, of how
    many. Raises NotFound where the graph is removed meanwhile, Locked.
    """
    folder, found = place.subfolder("words", what), []
    for first in range(0, size, WORD_BLOCK):
        end = min(first + WORD_BLOCK, size)
        path = folder / f"{first:010}-{end:010}"
        field = _read(path)
        if field is None:
            if texts is None:
                return None
            made = _counted(range(first, end), texts, size, progress)
            with place.lock_for_writing():
                if _read(path) is None:
                    _keep(path, made)
            # As it is read: what is made does not pile up in memory.
            field = _read(path) or made
        found.append(field)
    return SegmentedPostings(found, np.ones(size, dtype=np.bool_))


def damaged_word_blocks(folder: Path) -> list[Path]:
    """Return the blocks in ``folder`` that cannot be used; one that was being written is none yet."""
    return [path for path in sorted(folder.iterdir()) if path.suffix != ".new" and _read(path) is None]


def _counted(block: range, texts: NodeTexts, size: int, progress: ProgressCallback | None) -> FieldPostings:
    lengths: list[NDArray[np.int64]] = []
    terms: list[NDArray[np.uint64]] = []
    counts: list[NDArray[np.uint32]] = []
    for start in range(block.start, block.stop, WORD_BATCH):
        rows = np.arange(start, min(start + WORD_BATCH, block.stop))
        found = [count_terms("\n".join(one)) for one in texts(rows)]
        lengths.append(np.array([len(one) for one in found], dtype=np.int64))
        pairs = [pair for one in found for pair in sorted(one.items())]
        terms.append(np.array([term for term, _ in pairs], dtype=np.uint64))
        counts.append(np.array([count for _, count in pairs], dtype=np.uint32))
        if progress:
            progress(int(rows[-1]) + 1, size)
    return FieldPostings.from_terms(
        np.arange(block.start, block.stop),
        np.concatenate(lengths),
        np.concatenate(terms),
        np.concatenate(counts),
    )


def _keep(path: Path, field: FieldPostings) -> None:
    arrays: Arrays = {part: getattr(field, part) for part in FieldPostings.__slots__}
    files = write_arrays(arrays, path)
    write_manifest(path / WORDS_MANIFEST, {"maker": WORDS_MAKER, "files": files})


def _read(path: Path) -> FieldPostings | None:
    try:
        content = json.loads((path / WORDS_MANIFEST).read_text(encoding="utf-8"))
        if content["maker"] != WORDS_MAKER:
            return None
        arrays = read_arrays(path, content["files"])
        return FieldPostings(*(arrays[part] for part in FieldPostings.__slots__))  # type: ignore[arg-type]
    except (OSError, ValueError, KeyError, TypeError, Damaged):
        return None


# MERGED: The words of the texts of a graph's nodes, counted once and kept, a block of nodes after another.
