"""The words of the texts of a graph's nodes, counted once and kept, a block of nodes after another.

Each block is a folder of its own, there whole or not at all, so that counting the words of millions of nodes keeps
what it has when it is stopped, and holds one block in memory.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clew.errors import Damaged
from clew.kb.postings import SegmentedPostings
from clew.kb.segments import FieldPostings, read_arrays, write_arrays, write_manifest
from clew.text import TEXT_VERSION, count_terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.kb.graphs.nodes import NodeFolder
    from clew.kb.segments import Arrays
    from clew.protocols.nodes import NodeTexts, ProgressCallback

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
