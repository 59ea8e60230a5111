"""What is searched of a graph: memory-mapped arrays, a pure function of the packed graph, rebuilt where missing.

They lie in ``derived/graphs/<digest>``, so a folder is right for its graph or not there; names and ids of a removed
graph go with its folder.

* ``ids``, ``ids.starts``: the external ids in UTF-8, ascending, one after the other.
* ``types.starts``, ``types.rows``: the rows of each type.
* ``names.hashes``, ``names.owners``, ``names.rows``: the hash of every different folded name and alias, ascending,
and whose it is; ``names.texts``, ``names.starts``: their beginnings, in UTF-8; ``grams.*``: which of them have
which three characters (:mod:`clew.store.graphs.spelling_index`).
* ``out.heads``, ``out.starts``, ``out.tails`` and the same with ``in``: the tails of heads and the heads of tails,
  relation after relation. A relation lists the rows that have an edge, unless a quarter of all have; then its
  starts are those of every row. So a graph of thousands of relations costs no more than its edges.
* ``any.out.heads`` and so on: the same with all relations as one, a pair of nodes once.
* ``columns.rows``, ``columns.numbers``, ``columns.texts``, ``columns.starts``: the values of properties, property
  after property (:class:`clew.core.protocols.Column`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import run_offsets
from clew.core.errors import Damaged
from clew.store.array_files import file_checksum, read_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Rows
    from clew.store.array_files import Arrays

#: Changing what is made changes this name, and every graph's arrays are made anew.
MAKER = "graphs/3"
MANIFEST = "graph.json"
#: From this share of all rows on, a relation's starts are those of every row.
DENSE = 0.25


@dataclass(frozen=True, slots=True)
class DirectedEdges:
    """The edges of one relation, one way. ``heads`` are the rows with an edge, ascending; None: ``starts`` has
    every row."""

    heads: NDArray[np.uint32] | None
    starts: NDArray[np.int64]
    tails: NDArray[np.uint32]

    @classmethod
    def from_pairs(cls, sources: NDArray[np.uint32], tails: NDArray[np.uint32], size: int) -> DirectedEdges:
        """Make a direction of edges sorted by source and tail."""
        if not len(sources):
            return cls(np.empty(0, dtype=np.uint32), np.zeros(1, dtype=np.int64), tails)
        firsts = np.flatnonzero(np.concatenate([[True], sources[1:] != sources[:-1]]))
        heads = sources[firsts]
        if len(heads) >= DENSE * size:
            return cls(None, run_offsets(np.bincount(sources, minlength=size)), tails)
        return cls(heads, np.append(firsts, len(sources)).astype(np.int64), tails)

    def bounds(self, rows: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the tails of each row start and end."""
        # ``take`` rather than brackets: on few rows it costs half as much, and most questions are about few.
        if self.heads is None:
            return self.starts.take(rows), self.starts.take(rows + 1)
        wanted = rows.astype(np.uint32, copy=False)  # one type, or the whole array would be converted
        places = self.heads.searchsorted(wanted)
        starts = self.starts.take(places)
        if not len(self.heads):
            return starts, starts
        there = self.heads.take(places, mode="clip") == wanted
        return starts, self.starts.take(places + there)

    def neighbours(self, rows: Rows) -> tuple[NDArray[np.int64], Rows]:
        """Return the tails of rows: offsets (n + 1), rows ascending for each."""
        starts, ends = self.bounds(rows)
        if len(rows) == 1:
            found = self.tails[starts[0] : ends[0]].astype(np.int64)
            return np.array([0, len(found)], dtype=np.int64), found
        sizes = ends - starts
        offsets = run_offsets(sizes)
        places = np.repeat(starts - offsets[:-1], sizes) + np.arange(int(offsets[-1]))
        return offsets, self.tails[places].astype(np.int64)


@dataclass(frozen=True, slots=True)
class GraphArrays:
    """The arrays of one graph, opened. ``content`` is its manifest."""

    manifest: dict[str, Any]
    arrays: Arrays

    def edges(self, relation: int | None, inverse: bool) -> DirectedEdges:
        """Return the edges of the ``relation``-th relation; None: of all as one."""
        way = "in" if inverse else "out"
        place = self.manifest["any" if relation is None else "places"][way][relation or 0]
        first, count, at, length, edge, edges = place
        way = f"any.{way}" if relation is None else way
        starts = self.arrays[f"{way}.starts"][at : at + length]
        heads = self.arrays[f"{way}.heads"][first : first + count] if count >= 0 else None
        tails = self.arrays[f"{way}.tails"][edge : edge + edges]
        return DirectedEdges(heads, starts, tails)  # type: ignore[arg-type]


def arrays_folder(derived: Path, digest: str) -> Path:
    """Return where the arrays of a graph lie."""
    return derived / "graphs" / digest


def load_arrays(folder: Path) -> GraphArrays | None:
    """Open the arrays in a folder; None where they are missing, of another version, or of the wrong size."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if content["maker"] != MAKER:
            return None
        return GraphArrays(content, read_arrays(folder, content["files"]))
    except (OSError, ValueError, KeyError, TypeError, Damaged):
        return None


def find_faults(folder: Path) -> list[str]:
    """Return which files in a folder are not those of its manifest; the manifest itself where that is of no use."""
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        wanted = {str(name): str(said[1]) for name, said in files.items()}
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return [MANIFEST]
    return [
        name
        for name, sum in wanted.items()
        if not (folder / name).is_file() or file_checksum(folder / name) != sum
    ]


def delete_stale_arrays(derived: Path, digests: Sequence[str]) -> None:
    """Delete the arrays of graphs that are no longer there."""
    for folder in (derived / "graphs").glob("*"):
        if folder.name not in digests:
            shutil.rmtree(folder, ignore_errors=True)
