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
from clew.kb.segments import Field, read_arrays, write_arrays, write_manifest
from clew.text import VERSION, term_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.kb.graphs.nodes import Place
    from clew.kb.segments import Arrays
    from clew.protocols.nodes import Texts, Tick

#: Nodes whose words are sorted and kept at once: bounds memory and what a kill loses, not results.
BLOCK = 1 << 15
#: Nodes whose texts are written at once.
BATCH = 256
MANIFEST = "words.json"
#: Changing how words are counted changes this name, and they are counted again.
MAKER = f"words/2 text/{VERSION}"


def words(
    place: Place, what: str, size: int, texts: Texts | None, progress: Tick | None = None
) -> SegmentedPostings | None:
    """Return the postings of the texts ``what`` of ``size`` nodes; those that are missing are made of ``texts``.

    None where some are missing and ``texts`` are not given. ``progress`` is told how many nodes are done, of how
    many. Raises NotFound where the graph is removed meanwhile, Locked.
    """
    folder, found = place.kept("words", what), []
    for first in range(0, size, BLOCK):
        end = min(first + BLOCK, size)
        path = folder / f"{first:010}-{end:010}"
        field = _read(path)
        if field is None:
            if texts is None:
                return None
            made = _counted(range(first, end), texts, size, progress)
            with place.writing():
                if _read(path) is None:
                    _keep(path, made)
            # As it is read: what is made does not pile up in memory.
            field = _read(path) or made
        found.append(field)
    return SegmentedPostings(found, np.ones(size, dtype=np.bool_))


def damaged(folder: Path) -> list[Path]:
    """Return the blocks in ``folder`` that cannot be used; one that was being written is none yet."""
    return [path for path in sorted(folder.iterdir()) if path.suffix != ".new" and _read(path) is None]


def _counted(block: range, texts: Texts, size: int, progress: Tick | None) -> Field:
    lengths: list[NDArray[np.int64]] = []
    terms: list[NDArray[np.uint64]] = []
    counts: list[NDArray[np.uint32]] = []
    for start in range(block.start, block.stop, BATCH):
        rows = np.arange(start, min(start + BATCH, block.stop))
        found = [term_counts("\n".join(one)) for one in texts(rows)]
        lengths.append(np.array([len(one) for one in found], dtype=np.int64))
        pairs = [pair for one in found for pair in sorted(one.items())]
        terms.append(np.array([term for term, _ in pairs], dtype=np.uint64))
        counts.append(np.array([count for _, count in pairs], dtype=np.uint32))
        if progress:
            progress(int(rows[-1]) + 1, size)
    return Field.of(
        np.arange(block.start, block.stop),
        np.concatenate(lengths),
        np.concatenate(terms),
        np.concatenate(counts),
    )


def _keep(path: Path, field: Field) -> None:
    arrays: Arrays = {part: getattr(field, part) for part in Field.__slots__}
    files = write_arrays(arrays, path)
    write_manifest(path / MANIFEST, {"maker": MAKER, "files": files})


def _read(path: Path) -> Field | None:
    try:
        content = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        if content["maker"] != MAKER:
            return None
        arrays = read_arrays(path, content["files"])
        return Field(*(arrays[part] for part in Field.__slots__))  # type: ignore[arg-type]
    except (OSError, ValueError, KeyError, TypeError, Damaged):
        return None
