"""Makes the arrays of a graph (:mod:`clew.store.graphs.arrays`) from what is stored of it."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import run_offsets
from clew.core.text import fold_name, hash_term, parse_number, scalar_text
from clew.store.array_files import write_arrays, write_manifest
from clew.store.graphs import tables as truth
from clew.store.graphs.arrays import MAKER, MANIFEST, DirectedEdges
from clew.store.graphs.packing import StoredGraph
from clew.store.graphs.spelling_index import build_spelling_index, clip_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.store.array_files import Arrays

#: Edges of a relation that are shown as examples of it.
EXAMPLES = 3
#: Names that are put in order at once.
_AT_ONCE = 1 << 16


def build_arrays(connection: sqlite3.Connection, graph: StoredGraph, folder: Path) -> None:
    """Make the arrays of a graph in ``folder``. Raises Damaged where the graph itself cannot be read."""
    names = truth.read_relations(connection, graph)
    ways: dict[str, list[DirectedEdges]] = {"out": [], "in": []}
    examples: list[list[int]] = []
    for name in names:
        packed = bytearray().join(truth.read_pairs(connection, graph, name))
        pairs = np.frombuffer(packed, dtype="<u4").astype(np.uint32, copy=False).reshape(-1, 2)
        for way, direction in zip(ways, _both_ways(pairs, graph.nodes), strict=True):
            ways[way].append(direction)
        examples.append(_spread(pairs))
    nodes = _Nodes({row for rows in examples for row in rows})
    for row, line in enumerate(truth.read_node_lines(connection, graph)):
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
    arrays = nodes.arrays(folder.parent) | {"types.starts": types.starts, "types.rows": types.rows}
    columns, numbers = nodes.columns.joined()
    arrays |= columns
    whole = {way: [one] for way, one in zip(ways, _merged(ways["out"], graph.nodes), strict=True)}
    places: dict[str, dict[str, list[list[int]]]] = {"": {}, "any.": {}}
    for prefix, every in (("any.", whole), ("", ways)):
        for way, directions in every.items():
            made, places[prefix][way] = _joined(directions)
            arrays |= {f"{prefix}{way}.{part}": one for part, one in made.items()}
            directions.clear()
    # The manifest is written last, so that a folder without one is an unfinished one.
    files = write_arrays(arrays, folder)
    content = {
        "maker": MAKER,
        "files": files,
        "types": types.names,
        "relations": relations,
        "places": places[""],
        "any": places["any."],
        "columns": numbers,
    }
    write_manifest(folder / MANIFEST, content)


def _both_ways(pairs: NDArray[np.uint32], size: int) -> tuple[DirectedEdges, DirectedEdges]:
    """Return the edges of sorted pairs, from their heads and from their tails."""
    heads, tails = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    keys = (tails.astype(np.uint64) << np.uint64(32)) | heads
    keys.sort()
    sources = (keys >> np.uint64(32)).astype(np.uint32)
    return DirectedEdges.from_pairs(heads, tails, size), DirectedEdges.from_pairs(
        sources, keys.astype(np.uint32), size
    )


def _merged(relations: list[DirectedEdges], size: int) -> tuple[DirectedEdges, DirectedEdges]:
    """Return the edges of all relations as one, from their heads and from their tails."""
    keys = np.empty(sum(len(one.tails) for one in relations), dtype=np.uint64)
    at = 0
    for one in relations:
        sources = np.arange(size, dtype=np.uint64) if one.heads is None else one.heads.astype(np.uint64)
        part = keys[at : at + len(one.tails)]
        part[:] = np.repeat(sources << np.uint64(32), np.diff(one.starts))
        part |= one.tails
        at += len(part)
    if len(relations) > 1:
        keys.sort()
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
    pairs = np.empty((len(keys), 2), dtype=np.uint32)
    pairs[:, 0], pairs[:, 1] = keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)
    del keys
    return _both_ways(pairs, size)


class _Columns:
    """Collects the values of properties, row after row."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._numbers: dict[str, array[float]] = {}
        self._texts: dict[str, bytearray] = {}
        self._lengths: dict[str, array[int]] = {}

    def take(self, row: int, properties: dict[str, Any]) -> None:
        """Take the properties of a row."""
        for name, given in properties.items():
            if name not in self._rows:
                self._rows[name], self._numbers[name] = array("I"), array("d")
                self._texts[name], self._lengths[name] = bytearray(), array("q")
            for value in given if isinstance(given, list) else [given]:
                text = fold_name(scalar_text(value)).encode("utf-8", "surrogatepass")
                self._rows[name].append(row)
                self._numbers[name].append(parse_number(value))
                self._texts[name] += text
                self._lengths[name].append(len(text))

    def joined(self) -> tuple[Arrays, dict[str, list[int]]]:
        """Return the arrays of all properties, one after the other, and where each starts: its values, its texts,
        and how many of both it has."""
        places: dict[str, list[int]] = {}
        at = byte = 0
        for name, rows in self._rows.items():
            places[name] = [at, len(rows), byte, len(self._texts[name])]
            at, byte = at + len(rows), byte + len(self._texts[name])
        starts = [run_offsets(np.frombuffer(one, dtype=np.int64)) for one in self._lengths.values()]
        return {
            "columns.rows": _end_to_end(self._rows, np.uint32),
            "columns.numbers": _end_to_end(self._numbers, np.float64),
            "columns.texts": _end_to_end(self._texts, np.uint8),
            "columns.starts": np.concatenate([np.empty(0, dtype=np.int64), *starts]),
        }, places


def _end_to_end(parts: Mapping[str, array[Any] | bytearray], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype=dtype), *(np.frombuffer(one, dtype) for one in parts.values())])


@dataclass(frozen=True, slots=True)
class _Types:
    """The types of a graph: their names, sorted, and their rows, type after type."""

    names: list[str]
    starts: NDArray[np.int64]
    rows: NDArray[np.uint32]
    of_row: NDArray[np.int64]  # places in codes at which each row's types start
    codes: NDArray[np.int64]

    def counted(self, one: DirectedEdges) -> dict[str, int]:
        """Return how many edges of a direction start at nodes of each type."""
        degrees = np.diff(one.starts)
        heads = np.arange(len(degrees)) if one.heads is None else one.heads
        sizes = self.of_row[heads + 1] - self.of_row[heads]
        starts = run_offsets(sizes)
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
        self._texts = bytearray()
        self._cuts = array("q", [0])
        self.columns = _Columns()

    def take(self, row: int, kept: dict[str, Any]) -> None:
        """Take the node of a row."""
        self._ids += kept["id"].encode()
        self._ends.append(len(self._ids))
        for one in kept.get("types", ()):
            if one not in self._types:
                self._types[one] = array("I")
            self._types[one].append(row)
        if "properties" in kept:
            self.columns.take(row, kept["properties"])
        own = kept.get("name", kept["id"])
        if row in self._wanted:
            self._names[row] = own
        names = {fold_name(own)}
        if "aliases" in kept:
            names.update(map(fold_name, kept["aliases"]))
        for name in names:
            self._hashes.append(hash_term(name))
            self._owners.append(row)
            self._texts += clip_name(name)
            self._cuts.append(len(self._texts))

    def pair(self, rows: Sequence[int]) -> list[str]:
        """Return the names of two rows."""
        return [self._names[row] for row in rows]

    def arrays(self, folder: Path) -> Arrays:
        """Return the arrays of ids and names; what is between is put into a nameless file in ``folder``."""
        hashes = np.frombuffer(self._hashes, dtype=np.uint64)
        owners = np.frombuffer(self._owners, dtype=np.uint32)
        order = np.lexsort((owners, hashes))
        hashes, owners = hashes[order], owners[order]
        firsts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])) if len(hashes) else order
        texts, starts = _picked(self._texts, self._cuts, order[firsts])
        self._texts, self._cuts = bytearray(), array("q", [0])
        folder.mkdir(parents=True, exist_ok=True)
        made: Arrays = {
            "ids": np.frombuffer(self._ids, dtype=np.uint8),
            "ids.starts": np.frombuffer(self._ends, dtype=np.int64),
            "names.hashes": hashes[firsts],
            "names.owners": np.append(firsts, len(hashes)).astype(np.int64),
            "names.rows": owners,
            "names.texts": texts,
            "names.starts": starts,
        }
        return made | build_spelling_index(texts, starts, folder)

    def types(self, size: int) -> _Types:
        """Return the types; ``size`` is the number of rows."""
        names = sorted(self._types)
        by_type = [np.frombuffer(self._types[one], dtype=np.uint32) for one in names]
        sizes = np.array([len(one) for one in by_type], dtype=np.int64)
        rows = np.concatenate([np.empty(0, dtype=np.uint32), *by_type])
        order = np.argsort(rows, kind="stable")
        codes = np.repeat(np.arange(len(names)), sizes)[order]
        return _Types(names, run_offsets(sizes), rows, run_offsets(np.bincount(rows, minlength=size)), codes)


def _picked(
    texts: bytearray, cuts: array[int], places: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return texts in the order of ``places``, one after the other, and where each starts."""
    content, ends = np.frombuffer(texts, dtype=np.uint8), np.frombuffer(cuts, dtype=np.int64)
    starts = run_offsets(ends[places + 1] - ends[places])
    picked = np.empty(int(starts[-1]), dtype=np.uint8)
    for first in range(0, len(places), _AT_ONCE):
        some = places[first : first + _AT_ONCE]
        sizes = ends[some + 1] - ends[some]
        offsets = run_offsets(sizes)
        at = np.repeat(ends[some] - offsets[:-1], sizes) + np.arange(int(offsets[-1]))
        picked[starts[first] : starts[first] + len(at)] = content[at]
    return picked, starts


def _spread(pairs: NDArray[np.uint32]) -> list[int]:
    """Return the rows of both ends of a few edges from all over the relation."""
    places = sorted({int(place) for place in np.linspace(0, len(pairs) - 1, EXAMPLES + 2)[1:-1]})
    return list(map(int, pairs[places].ravel()))


def _joined(directions: list[DirectedEdges]) -> tuple[Arrays, list[list[int]]]:
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
