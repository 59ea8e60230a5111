"""What is searched of a graph: memory-mapped arrays, a pure function of the packed graph, rebuilt where missing.

They lie in ``derived/graphs/<digest>``, so a folder is right for its graph or not there; names and ids of a removed
graph go with its folder.

* ``ids``, ``ids.starts``: the external ids in UTF-8, ascending, one after the other.
* ``types.starts``, ``types.rows``: the rows of each type.
* ``names.hashes``, ``names.rows``: the hash of every folded name and alias, ascending, and whose it is.
* ``out.heads``, ``out.starts``, ``out.tails`` and the same with ``in``: the tails of heads and the heads of tails,
  relation after relation. A relation lists the rows that have an edge, unless a quarter of all have; then its
  starts are those of every row. So a graph of thousands of relations costs no more than its edges.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.errors import Damaged
from clew.kb.graphs import truth
from clew.kb.graphs.packing import Stored
from clew.kb.segments import checksum, read_arrays, starts_of, write_arrays, write_manifest
from clew.text import folded_name, term_hash

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.kb.segments import Arrays
    from clew.protocols import Rows

#: Changing what is made changes this name, and every graph's arrays are made anew.
MAKER = "graphs/1"
MANIFEST = "graph.json"
#: From this share of all rows on, a relation's starts are those of every row.
DENSE = 0.25
EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Direction:
    """The edges of one relation, one way. ``heads`` are the rows with an edge, ascending; None: ``starts`` has
    every row."""

    heads: NDArray[np.uint32] | None
    starts: NDArray[np.int64]
    tails: NDArray[np.uint32]

    @classmethod
    def of(cls, sources: NDArray[np.uint32], tails: NDArray[np.uint32], size: int) -> Direction:
        """Make a direction of edges sorted by source and tail."""
        if not len(sources):
            return cls(np.empty(0, dtype=np.uint32), np.zeros(1, dtype=np.int64), tails)
        firsts = np.flatnonzero(np.concatenate([[True], sources[1:] != sources[:-1]]))
        heads = sources[firsts]
        if len(heads) >= DENSE * size:
            return cls(None, starts_of(np.bincount(sources, minlength=size)), tails)
        return cls(heads, np.append(firsts, len(sources)).astype(np.int64), tails)

    def bounds(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the tails of each row start and end."""
        if self.heads is None:
            return self.starts[rows], self.starts[rows + 1]
        wanted = rows.astype(np.uint32)  # one type, or the whole array would be converted
        places = np.minimum(np.searchsorted(self.heads, wanted), max(len(self.heads) - 1, 0))
        if not len(self.heads):
            return places, places
        starts = self.starts[places]
        return starts, np.where(self.heads[places] == wanted, self.starts[places + 1], starts)

    def adjacent(self, rows: Rows) -> tuple[NDArray[np.int64], Rows]:
        """Return the tails of rows: offsets (n + 1), rows ascending for each."""
        starts, ends = self.bounds(rows)
        if len(rows) == 1:
            found = self.tails[starts[0] : ends[0]].astype(np.int64)
            return np.array([0, len(found)], dtype=np.int64), found
        sizes = ends - starts
        offsets = starts_of(sizes)
        places = np.repeat(starts - offsets[:-1], sizes) + np.arange(int(offsets[-1]))
        return offsets, self.tails[places].astype(np.int64)


@dataclass(frozen=True, slots=True)
class GraphArrays:
    """The arrays of one graph, opened. ``content`` is its manifest."""

    content: dict[str, Any]
    arrays: Arrays

    def direction(self, relation: int, inverse: bool) -> Direction:
        """Return the edges of the ``relation``-th relation."""
        way = "in" if inverse else "out"
        first, count, at, length, edge, edges = self.content["places"][way][relation]
        starts = self.arrays[f"{way}.starts"][at : at + length]
        heads = self.arrays[f"{way}.heads"][first : first + count] if count >= 0 else None
        tails = self.arrays[f"{way}.tails"][edge : edge + edges]
        return Direction(heads, starts, tails)  # type: ignore[arg-type]


def folder_of(derived: Path, digest: str) -> Path:
    """Return where the arrays of a graph lie."""
    return derived / "graphs" / digest


def load(folder: Path) -> GraphArrays | None:
    """Open the arrays in a folder; None where they are missing, of another version, or of the wrong size."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if content["maker"] != MAKER:
            return None
        return GraphArrays(content, read_arrays(folder, content["files"]))
    except (OSError, ValueError, KeyError, TypeError, Damaged):
        return None


def faults(folder: Path) -> list[str]:
    """Return which files in a folder are not those of its manifest; the manifest itself where that is of no use."""
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        wanted = {str(name): str(said[1]) for name, said in files.items()}
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return [MANIFEST]
    return [
        name
        for name, sum in wanted.items()
        if not (folder / name).is_file() or checksum(folder / name) != sum
    ]


def tidy(derived: Path, digests: Sequence[str]) -> None:
    """Delete the arrays of graphs that are no longer there."""
    for folder in (derived / "graphs").glob("*"):
        if folder.name not in digests:
            shutil.rmtree(folder, ignore_errors=True)


def build(connection: sqlite3.Connection, graph: Stored, folder: Path) -> None:
    """Make the arrays of a graph in ``folder``. Raises Damaged where the graph itself cannot be read."""
    names = truth.relations(connection, graph)
    ways: dict[str, list[Direction]] = {"out": [], "in": []}
    examples: list[list[int]] = []
    for name in names:
        # bytearray: one copy of the relation, which the arrays then share
        packed = bytearray().join(truth.pairs(connection, graph, name))
        pairs = np.frombuffer(packed, dtype="<u4").astype(np.uint32, copy=False).reshape(-1, 2)
        heads, tails = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
        ways["out"].append(Direction.of(heads, tails, graph.nodes))
        keys = (tails.astype(np.uint64) << np.uint64(32)) | heads
        keys.sort()
        sources = (keys >> np.uint64(32)).astype(np.uint32)
        ways["in"].append(Direction.of(sources, keys.astype(np.uint32), graph.nodes))
        examples.append(_spread(pairs))
    nodes = _Nodes({row for rows in examples for row in rows})
    for row, line in enumerate(truth.node_lines(connection, graph)):
        nodes.take(row, json.loads(line.decode()))
    types = nodes.types(graph.nodes)
    relations = {
        name: {
            "edges": len(out.tails),
            "head_types": types.counted(out),
            "tail_types": types.counted(back),
            "examples": [nodes.pair(rows[n : n + 2]) for n in range(0, len(rows), 2)],
        }
        for name, out, back, rows in zip(names, ways["out"], ways["in"], examples, strict=True)
    }
    arrays = nodes.arrays() | {"types.starts": types.starts, "types.rows": types.rows}
    places = {}
    for way, directions in ways.items():
        made, places[way] = _joined(directions)
        arrays |= {f"{way}.{part}": one for part, one in made.items()}
        directions.clear()
    # The manifest is written last, so that a folder without one is an unfinished one.
    files = write_arrays(arrays, folder)
    content = {
        "maker": MAKER,
        "files": files,
        "types": types.names,
        "relations": relations,
        "places": places,
    }
    write_manifest(folder / MANIFEST, content)


@dataclass(frozen=True, slots=True)
class _Types:
    """The types of a graph: their names, sorted, and their rows, type after type."""

    names: list[str]
    starts: NDArray[np.int64]
    rows: NDArray[np.uint32]
    of_row: NDArray[np.int64]  # places in codes at which each row's types start
    codes: NDArray[np.int64]

    def counted(self, one: Direction) -> dict[str, int]:
        """Return how many edges of a direction start at nodes of each type."""
        degrees = np.diff(one.starts)
        heads = np.arange(len(degrees)) if one.heads is None else one.heads
        sizes = self.of_row[heads + 1] - self.of_row[heads]
        starts = starts_of(sizes)
        places = np.repeat(self.of_row[heads] - starts[:-1], sizes) + np.arange(int(starts[-1]))
        counts = np.bincount(self.codes[places], weights=np.repeat(degrees, sizes), minlength=len(self.names))
        return {name: int(count) for name, count in zip(self.names, counts, strict=True) if count}


class _Nodes:
    """Collects ids, types and names, row after row; the names themselves of the rows in ``wanted`` alone."""

    def __init__(self, wanted: set[int]) -> None:
        self._wanted = wanted
        self._names: dict[int, str] = {}
        self._ids = bytearray()
        self._ends = array("q", [0])
        self._types: dict[str, array[int]] = {}
        self._hashes = array("Q")
        self._owners = array("I")

    def take(self, row: int, kept: dict[str, Any]) -> None:
        """Take the node of a row."""
        self._ids += kept["id"].encode()
        self._ends.append(len(self._ids))
        for one in kept.get("types", ()):
            if one not in self._types:
                self._types[one] = array("I")
            self._types[one].append(row)
        own = kept.get("name", kept["id"])
        if row in self._wanted:
            self._names[row] = own
        names = {folded_name(own)}
        if "aliases" in kept:
            names.update(map(folded_name, kept["aliases"]))
        for name in names:
            self._hashes.append(term_hash(name))
            self._owners.append(row)

    def pair(self, rows: Sequence[int]) -> list[str]:
        """Return the names of two rows."""
        return [self._names[row] for row in rows]

    def arrays(self) -> Arrays:
        """Return the arrays of ids and names."""
        hashes = np.frombuffer(self._hashes, dtype=np.uint64)
        owners = np.frombuffer(self._owners, dtype=np.uint32)
        order = np.lexsort((owners, hashes))
        return {
            "ids": np.frombuffer(self._ids, dtype=np.uint8),
            "ids.starts": np.frombuffer(self._ends, dtype=np.int64),
            "names.hashes": hashes[order],
            "names.rows": owners[order],
        }

    def types(self, size: int) -> _Types:
        """Return the types; ``size`` is the number of rows."""
        names = sorted(self._types)
        by_type = [np.frombuffer(self._types[one], dtype=np.uint32) for one in names]
        sizes = np.array([len(one) for one in by_type], dtype=np.int64)
        rows = np.concatenate([np.empty(0, dtype=np.uint32), *by_type])
        order = np.argsort(rows, kind="stable")
        codes = np.repeat(np.arange(len(names)), sizes)[order]
        return _Types(names, starts_of(sizes), rows, starts_of(np.bincount(rows, minlength=size)), codes)


def _spread(pairs: NDArray[np.uint32]) -> list[int]:
    """Return the rows of both ends of a few edges from all over the relation."""
    places = sorted({int(place) for place in np.linspace(0, len(pairs) - 1, EXAMPLES + 2)[1:-1]})
    return list(map(int, pairs[places].ravel()))


def _joined(directions: list[Direction]) -> tuple[Arrays, list[list[int]]]:
    """Return the arrays of all relations one after the other, and where each has its part."""
    places: list[list[int]] = []
    first = at = edge = 0
    for one in directions:
        count = -1 if one.heads is None else len(one.heads)
        places.append([first, count, at, len(one.starts), edge, len(one.tails)])
        first, at, edge = first + max(count, 0), at + len(one.starts), edge + len(one.tails)
    heads = [one.heads for one in directions if one.heads is not None]
    return {
        "heads": np.concatenate([np.empty(0, dtype=np.uint32), *heads]),
        "starts": np.concatenate([np.empty(0, dtype=np.int64), *(one.starts for one in directions)]),
        "tails": np.concatenate([np.empty(0, dtype=np.uint32), *(one.tails for one in directions)]),
    }, places
