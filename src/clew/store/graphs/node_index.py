"""The indexes of the texts of a graph's nodes: vectors, by encoder, and words.

They lie in ``derived/nodes/<digest>``, apart from the arrays of :mod:`clew.store.graphs.arrays`, which are rebuilt
when their format changes: vectors are hours of work. A folder belongs to exactly one content of a graph and is
removed with it, so nothing of a removed graph's texts remains. Vectors are appended as questions need them, by any
process. A lock of their own is held while some are written, never while they are computed.

Words are counted in blocks of nodes. Each block is a folder of its own, complete or absent, so that counting the
words of millions of nodes keeps what it has when it is interrupted, and holds one block in memory.
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

from clew.core.arrays import cosines, range_indices, read_arrays, run_offsets, write_arrays, write_manifest
from clew.core.errors import Damaged, RemovedMeanwhile
from clew.core.text import TEXT_VERSION, count_terms
from clew.store.database import hold_lock, refuse_exhaustion
from clew.store.segments import FieldPostings, SegmentedPostings
from clew.store.vectors import EXACT_LIMIT, SHORTLIST_PER_HIT, SHORTLIST_SIZE, VectorFiles, hash_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Arrays, Floats, Mask, Rows, Vectors
    from clew.core.protocols import Encoder, NodeTexts, ProgressCallback
    from clew.store.binary_index import BinaryIndex

#: Texts that are encoded between two writes: at most so many are lost when the process is killed.
ENCODE_BATCH = 256
#: Vectors that are compared at once, and the greatest error of BLAS.
_COMPARED, _ROUNDING = 1 << 14, 1e-5
#: Vectors that are copied at once.
_COPIED = 1 << 16
#: Nodes whose words are sorted and stored at once: bounds memory and what a kill loses, not results.
WORD_BLOCK = 1 << 15
#: Nodes whose texts are in memory at once.
WORD_BATCH = 256
WORDS_MANIFEST = "words.json"
#: Changing how words are counted changes this name, and they are counted again.
WORDS_MAKER = f"words/2 text/{TEXT_VERSION}"

# The folder of one graph


@dataclass(frozen=True, slots=True)
class NodeFolder:
    """The folder of the indexes of one graph; ``graph_exists`` returns whether the graph is still in the base."""

    folder: Path
    lock: Path
    graph_exists: Callable[[], bool]

    def subfolder(self, index: str, key: str) -> Path:
        """Return the folder of an index (``vectors``, ``words``) of the texts that ``key`` names."""
        readable = re.sub(r"[^A-Za-z0-9._-]+", "-", key).strip("-.")[:40]
        return self.folder / f"{index}-{readable}-{hashlib.blake2b(key.encode(), digest_size=4).hexdigest()}"

    @contextmanager
    def lock_for_writing(self) -> Iterator[None]:
        """Hold the lock. Raises NotFound where the graph was removed, and Locked."""
        with hold_lock(self.lock):
            if not self.graph_exists():
                raise RemovedMeanwhile("the graph was removed or replaced a moment ago", "Ask again")
            yield


def node_folder(derived: Path, digest: str, graph_exists: Callable[[], bool]) -> NodeFolder:
    """Return the folder of the graph with that digest."""
    return NodeFolder(derived / "nodes" / digest, node_lock(derived), graph_exists)


def node_lock(derived: Path) -> Path:
    """Return the lock file of the indexes of nodes."""
    return derived.parent / "nodes.lock"


def delete_stale_node_data(derived: Path, digests: Sequence[str]) -> None:
    """Delete the indexes of graphs other than those with one of ``digests``."""
    if (derived / "nodes").exists():
        with hold_lock(node_lock(derived)):
            for folder in (derived / "nodes").glob("*"):
                if folder.name not in digests:
                    shutil.rmtree(folder)


def copy_node_data(derived: Path, target: Path, digests: Sequence[str]) -> None:
    """Copy the indexes of the graphs with one of ``digests`` to the folder ``target`` of derived data."""
    with hold_lock(node_lock(derived)):
        for digest in digests:
            if (folder := derived / "nodes" / digest).exists():
                shutil.copytree(folder, target / "nodes" / digest, ignore=shutil.ignore_patterns("*.new"))


def carry_node_data(
    derived: Path, old: str, new: str, row_map: NDArray[np.int64], stale: Rows, size: int
) -> None:
    """Give an edited graph, of ``size`` nodes, those indexes of the graph before whose texts are the same.

    ``old`` and ``new`` are digests, ``row_map`` is the new row of each old one (-1: none), ``stale`` are the old rows
    of the nodes whose texts may have changed. Vectors of the others are copied. Words are, for blocks of nodes that
    have all their rows and texts from before; the other blocks are counted again when they are needed.
    """
    source, target = derived / "nodes" / old, derived / "nodes" / new
    with hold_lock(node_lock(derived)):
        if not source.exists() or target.exists():
            return
        new_rows = row_map.copy()
        new_rows[stale] = -1
        is_same = new_rows == np.arange(len(new_rows))
        unfinished = target.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        for folder in sorted(source.iterdir()):
            if folder.name.startswith("words-"):
                for block in sorted(folder.iterdir()):
                    first, _, end = block.name.partition("-")
                    is_whole = end.isdigit() and int(end) == min(int(first) + WORD_BLOCK, size)
                    if is_whole and is_same[int(first) : int(end)].all() and int(end) <= len(is_same):
                        shutil.copytree(block, unfinished / folder.name / block.name)
                continue
            _copy_vectors(VectorFiles(folder), VectorFiles(unfinished / folder.name), new_rows)
        if unfinished.exists():
            unfinished.rename(target)


def _copy_vectors(source: VectorFiles, target: VectorFiles, new_rows: NDArray[np.int64]) -> None:
    manifest = source.read_manifest()
    if not manifest.get("count"):
        return
    vectors, rows, hashes = source.open()
    for start in range(0, len(rows), _COPIED):
        part = slice(start, start + _COPIED)
        is_kept = new_rows[rows[part]] >= 0
        if is_kept.any():
            remaining = new_rows[rows[part][is_kept]]
            target.append(
                manifest["name"], np.asarray(vectors[part])[is_kept], remaining, hashes[part][is_kept]
            )


def check_node_data(derived: Path, digest: str, repair: bool, checksums: bool) -> Iterator[tuple[str, bool]]:
    """Yield each problem of the indexes of a graph, and whether it was repaired.

    Damaged vectors and words are deleted; words are counted again when needed. Binary codes are rebuilt.
    """
    for folder in sorted((derived / "nodes" / digest).glob("*")):
        if folder.name.startswith("words-"):
            for path in damaged_word_blocks(folder):
                if repair:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                yield "words of its nodes are damaged", repair
            continue
        files = VectorFiles(folder)
        if not files.read_manifest():
            if repair:
                shutil.rmtree(folder)
            yield "vectors of its nodes are damaged; encode again", repair
        elif faulty := files.find_faulty_binary_index(checksums):
            if repair:
                with hold_lock(node_lock(derived)):
                    faulty.rebuild(files.vectors())
            yield f"{faulty.path.name} of the vectors of its nodes is missing or damaged", repair


# Vectors


@dataclass(frozen=True, slots=True)
class _Slots:
    """The slots of the vector files as they were at one count, and their order by row."""

    vectors: Vectors
    slot_rows: Rows
    binary_index: BinaryIndex | None
    order: NDArray[np.int64]
    sorted_rows: Rows  # the row of each slot, in that order


class StoredNodeVectors:
    """The :class:`clew.core.protocols.NodeVectors` of an imported graph."""

    def __init__(self, folder: NodeFolder, encoder: Encoder, kind: str, size: int) -> None:
        self.encoder = encoder
        self._folder, self._size = folder, size
        self._files = VectorFiles(folder.subfolder("vectors", f"{encoder.name} {kind}"))
        self._opened: tuple[int, _Slots] | None = None

    def rows_without_vectors(self, rows: Rows | None = None) -> Rows:
        """Return the rows (of ``rows``, by default of all nodes) that have no vector, ascending, each once."""
        missing = np.ones(self._size, dtype=np.bool_)
        if rows is not None:
            missing[:] = False
            missing[np.asarray(rows, dtype=np.int64)] = True
        slots = self._open_slots()
        if slots is not None:
            missing[slots.sorted_rows] = False
        return np.flatnonzero(missing)

    def encode_missing(self, rows: Rows, texts: NodeTexts, progress: ProgressCallback | None = None) -> int:
        """Make and store the missing vectors, a batch at a time; return the number of nodes that were encoded."""
        missing = self.rows_without_vectors(rows)
        for start in range(0, len(missing), ENCODE_BATCH):
            batch = missing[start : start + ENCODE_BATCH]
            self._encode_batch(batch, texts(batch))
            if progress:
                progress(start + len(batch), len(missing))
        return len(missing)

    def _encode_batch(self, rows: Rows, node_texts: Sequence[Sequence[str]]) -> None:
        slot_rows = np.repeat(rows, [len(texts) for texts in node_texts])
        texts = [text for texts in node_texts for text in texts]
        hashes = hash_texts(texts)
        _, firsts, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        vectors = self.encoder.encode([texts[n] for n in firsts.tolist()])[inverse]
        with self._folder.lock_for_writing():
            # Another process may have made some of them meanwhile.
            new = np.isin(slot_rows, self.rows_without_vectors(rows))
            if new.any():
                self._files.append(self.encoder.name, vectors[new], slot_rows[new], hashes[new])

    def vectors(self, rows: Rows) -> tuple[NDArray[np.int64], Vectors]:
        """Return the vectors of ``rows``: offsets (n + 1), and the vectors."""
        rows = np.asarray(rows, dtype=np.int64)
        slots = self._open_slots()
        if slots is None:
            empty = np.empty((0, self.encoder.dimension), dtype=np.float32)
            return np.zeros(len(rows) + 1, dtype=np.int64), empty
        firsts = np.searchsorted(slots.sorted_rows, rows)
        sizes = np.searchsorted(slots.sorted_rows, rows, side="right") - firsts
        return run_offsets(sizes), np.asarray(slots.vectors[slots.order[range_indices(firsts, sizes)]])

    def search(self, query: Vectors, k: int, allowed: Mask | None = None) -> tuple[Rows, Floats]:
        """Return at most ``k`` rows, nearest first, ties by row: exact up to 32,768 vectors, by a shortlist above.

        All vectors as near as the last hit are compared, so that ties do not depend on the order of encoding.
        """
        opened = self._open_slots()
        if opened is None or k < 1:
            return np.empty(0, dtype=np.int64), np.empty(0)
        searched = (
            np.ones(len(opened.slot_rows), dtype=np.bool_) if allowed is None else allowed[opened.slot_rows]
        )
        slots = np.flatnonzero(searched)
        if opened.binary_index is not None and len(slots) > EXACT_LIMIT:
            slots = opened.binary_index.shortlist(query, searched, max(SHORTLIST_SIZE, SHORTLIST_PER_HIT * k))
        products = np.concatenate(
            [
                np.empty(0, dtype=np.float32),
                *(opened.vectors[block] @ query for block in _split_blocks(slots)),
            ]
        )
        if len(slots) > k:
            slots = slots[products >= np.partition(products, -k)[-k] - _ROUNDING]
        exact = [cosines(opened.vectors[block], query).round(9) for block in _split_blocks(slots)]
        scores, rows = np.concatenate([np.empty(0), *exact]), opened.slot_rows[slots]
        order = np.lexsort((rows, -scores))[:k]
        return rows[order], scores[order]

    def _open_slots(self) -> _Slots | None:
        """Return the slots, opened again where their number has changed; None where there are none."""
        count = int(self._files.read_manifest().get("count", 0))
        if not count:
            return None
        if self._opened is None or self._opened[0] != count:
            vectors, rows, binary_index = self._files.open_for_search()
            order = np.argsort(rows, kind="stable")
            self._opened = (len(rows), _Slots(vectors, rows, binary_index, order, rows[order]))
        return self._opened[1]


def _split_blocks(slots: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    return (slots[start : start + _COMPARED] for start in range(0, len(slots), _COMPARED))


# Words


def node_word_postings(
    folder: NodeFolder,
    kind: str,
    size: int,
    texts: NodeTexts | None,
    progress: ProgressCallback | None = None,
) -> SegmentedPostings | None:
    """Return the postings of a kind of text of ``size`` nodes; missing blocks are counted from ``texts``.

    None where some are missing and ``texts`` is not given. ``progress`` is called with the number of nodes done
    and the total. Raises NotFound where the graph is removed meanwhile, and Locked.
    """
    words_folder, blocks = folder.subfolder("words", kind), []
    for first in range(0, size, WORD_BLOCK):
        end = min(first + WORD_BLOCK, size)
        path = words_folder / f"{first:010}-{end:010}"
        block = _read_block(path)
        if block is None:
            if texts is None:
                return None
            counted = _count_words(range(first, end), texts, size, progress)
            with folder.lock_for_writing():
                if _read_block(path) is None:
                    arrays: Arrays = {part: getattr(counted, part) for part in FieldPostings.__slots__}
                    files = write_arrays(arrays, path)
                    write_manifest(path / WORDS_MANIFEST, {"maker": WORDS_MAKER, "files": files})
            # Memory-mapped, so that the counted blocks do not pile up in memory.
            block = _read_block(path) or counted
        blocks.append(block)
    return SegmentedPostings(blocks, np.ones(size, dtype=np.bool_))


def damaged_word_blocks(folder: Path) -> list[Path]:
    """Return the blocks in ``folder`` that cannot be used; an unfinished one does not count as a block."""
    return [path for path in sorted(folder.iterdir()) if path.suffix != ".new" and _read_block(path) is None]


def _count_words(
    block: range, texts: NodeTexts, size: int, progress: ProgressCallback | None
) -> FieldPostings:
    lengths: list[NDArray[np.int64]] = []
    terms: list[NDArray[np.uint64]] = []
    counts: list[NDArray[np.uint32]] = []
    for start in range(block.start, block.stop, WORD_BATCH):
        rows = np.arange(start, min(start + WORD_BATCH, block.stop))
        term_counts = [count_terms("\n".join(node_texts)) for node_texts in texts(rows)]
        lengths.append(np.array([len(counter) for counter in term_counts], dtype=np.int64))
        pairs = [pair for counter in term_counts for pair in sorted(counter.items())]
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


def _read_block(path: Path) -> FieldPostings | None:
    try:
        manifest = json.loads((path / WORDS_MANIFEST).read_text(encoding="utf-8"))
        if manifest["maker"] != WORDS_MAKER:
            return None
        arrays = read_arrays(path, manifest["files"])
        return FieldPostings(*(arrays[part] for part in FieldPostings.__slots__))  # type: ignore[arg-type]
    except (OSError, ValueError, KeyError, TypeError, Damaged) as error:
        refuse_exhaustion(error)
        return None
