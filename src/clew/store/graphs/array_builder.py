"""Building the arrays of a graph (:mod:`clew.store.graphs.arrays`) from its packed form in the database."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Arrays, DirectedEdges, range_indices, run_offsets, write_arrays, write_manifest
from clew.core.files import create_folder
from clew.core.text import fold_name, fold_names, hash_terms, parse_number, scalar_text
from clew.store.graphs import tables
from clew.store.graphs.arrays import MAKER, MANIFEST
from clew.store.graphs.spelling_index import build_spelling_index, clip_name
from clew.store.graphs.tables import StoredGraph

#: Number of examples that are kept of a relation.
EXAMPLES = 3
_HALF = np.uint64(32)
#: Nodes whose lines are parsed at once.
_NODE_BATCH = 1 << 12
#: Names that are copied at once.
_NAME_BATCH = 1 << 16


def build_arrays(
    connection: sqlite3.Connection,
    graph: StoredGraph,
    folder: Path,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Build the arrays of a graph in ``folder``. Raises Damaged where the graph itself cannot be read.

    ``progress`` is called with how many of its nodes were read, and of how many.
    """
    names = tables.read_relations(connection, graph)
    packed = [b"".join(tables.read_pairs(connection, graph, name)) for name in names]
    pairs = [
        np.frombuffer(content, dtype="<u4").astype(np.uint32, copy=False).reshape(-1, 2) for content in packed
    ]
    del packed
    rows_of_examples = [example_rows(part) for part in pairs]
    nodes = NodeCollector({row for rows in rows_of_examples for row in rows})
    # Sorting the edges leaves the interpreter free, so it goes on while the nodes are read.
    with ThreadPoolExecutor(1) as worker:
        edges = worker.submit(_index_edges, pairs, graph.nodes)
        del pairs
        _read_nodes(connection, graph, nodes, progress)
        directions, merged = edges.result()
        del edges
    types = NodeTypes.from_rows(nodes.rows_by_type(), graph.nodes)
    relations = {
        name: describe_relation(forward, backward, types, nodes.names_of(rows))
        for name, forward, backward, rows in zip(
            names, directions["out"], directions["in"], rows_of_examples, strict=True
        )
    }
    arrays = nodes.arrays(folder.parent) | {"types.starts": types.starts, "types.rows": types.rows}
    columns, column_places = nodes.columns.arrays()
    arrays |= columns
    edge_arrays, edge_places = join_edges(directions, merged)
    # The manifest is written last: a folder without one is unfinished.
    files = write_arrays(arrays | edge_arrays, folder)
    content = {
        "maker": MAKER,
        "files": files,
        "types": types.names,
        "relations": relations,
        "columns": column_places,
    }
    write_manifest(folder / MANIFEST, content | edge_places)


def join_edges(
    directions: dict[str, list[DirectedEdges]], merged: dict[str, list[DirectedEdges]]
) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays of all edges, and the places of relations in them; empties its arguments to free memory."""
    arrays: Arrays = {}
    places: dict[str, dict[str, list[list[int]]]] = {"places": {}, "any": {}}
    for key, prefix, by_direction in (("any", "any.", merged), ("places", "", directions)):
        for direction in ("out", "in"):
            joined, places[key][direction] = concatenate_relations(by_direction.pop(direction))
            arrays |= {f"{prefix}{direction}.{part}": array for part, array in joined.items()}
    return arrays, places


def describe_relation(
    forward: DirectedEdges, backward: DirectedEdges, types: NodeTypes, example_names: Sequence[str]
) -> dict[str, Any]:
    """Return the manifest entry of a relation; names are as in :func:`example_rows`."""
    return {
        "edges": len(forward.tails),
        "head_types": types.count_edges(forward),
        "tail_types": types.count_edges(backward),
        "examples": [list(example_names[n : n + 2]) for n in range(0, len(example_names), 2)],
    }


def _read_nodes(
    connection: sqlite3.Connection,
    graph: StoredGraph,
    nodes: NodeCollector,
    progress: Callable[[int, int], None] | None,
) -> None:
    lines = tables.read_node_lines(connection, graph)
    for row in range(0, graph.nodes, _NODE_BATCH):
        if progress:
            progress(row, graph.nodes)
        nodes.add(row, json.loads(b"[%s]" % b",".join(islice(lines, _NODE_BATCH))))


def _index_edges(
    pairs: list[NDArray[np.uint32]], size: int
) -> tuple[dict[str, list[DirectedEdges]], dict[str, list[DirectedEdges]]]:
    """Return the edges of each relation, and of all as one, by direction. The list of ``pairs`` is emptied."""
    directions: dict[str, list[DirectedEdges]] = {"out": [], "in": []}
    pairs.reverse()
    while pairs:
        forward, backward = _both_directions(pairs.pop(), size)
        directions["out"].append(forward)
        directions["in"].append(backward)
    return directions, _merge_relations(directions["out"], size)


def _both_directions(pairs: NDArray[np.uint32], size: int) -> tuple[DirectedEdges, DirectedEdges]:
    """Return the edges of sorted pairs, from their heads and from their tails."""
    forward = DirectedEdges.from_pairs(
        np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]), size
    )
    keys = pairs[:, 1].astype(np.uint64)
    keys <<= _HALF
    keys |= pairs[:, 0]
    keys.sort()
    return forward, DirectedEdges.from_pairs(*_split_keys(keys), size)


def _split_keys(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the upper and the lower half of each key."""
    return (keys >> _HALF).astype(np.uint32), keys.astype(np.uint32)


def _merge_relations(relations: list[DirectedEdges], size: int) -> dict[str, list[DirectedEdges]]:
    """Return the edges of all relations as one, by direction."""
    keys = np.empty(sum(len(edges.tails) for edges in relations), dtype=np.uint64)
    at = 0
    for edges in relations:
        sources = np.arange(size, dtype=np.uint64) if edges.heads is None else edges.heads.astype(np.uint64)
        part = keys[at : at + len(edges.tails)]
        part[:] = np.repeat(sources << _HALF, np.diff(edges.starts))
        part |= edges.tails
        at += len(part)
    if len(relations) > 1:
        keys.sort()
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
    heads, tails = _split_keys(keys)
    forward = DirectedEdges.from_pairs(heads, tails, size)
    keys[:] = tails
    keys <<= _HALF
    keys |= heads
    del heads
    keys.sort()
    return {"out": [forward], "in": [DirectedEdges.from_pairs(*_split_keys(keys), size)]}


class _ColumnCollector:
    """Collects the values of properties, row after row."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._numbers: dict[str, array[float]] = {}
        self._texts: dict[str, bytearray] = {}
        self._lengths: dict[str, array[int]] = {}

    def add(self, row: int, nodes: Sequence[dict[str, Any]]) -> None:
        """Add the properties of nodes in their stored form; ``row`` is the row of the first."""
        columns: dict[str, tuple[list[int], list[Any]]] = {}
        for place, node in enumerate(nodes, row):
            if "properties" not in node:
                continue
            for name, content in node["properties"].items():
                column = columns.get(name)
                if column is None:
                    column = columns[name] = ([], [])
                if isinstance(content, list):
                    column[0].extend([place] * len(content))
                    column[1].extend(content)
                else:
                    column[0].append(place)
                    column[1].append(content)
        for name, (rows, values) in columns.items():
            if name not in self._rows:
                self._rows[name], self._numbers[name] = array("I"), array("d")
                self._texts[name], self._lengths[name] = bytearray(), array("q")
            if set(map(type, values)) == {int} and min(values) >= 0:
                texts, numbers = [b"%d" % value for value in values], map(float, values)
            else:
                folded = fold_names(list(map(scalar_text, values)))
                texts = [text.encode("utf-8", "surrogatepass") for text in folded]
                numbers = map(parse_number, values)
            self._rows[name].extend(rows)
            self._numbers[name].extend(numbers)
            self._texts[name] += b"".join(texts)
            self._lengths[name].extend(map(len, texts))

    def arrays(self) -> tuple[Arrays, dict[str, list[int]]]:
        """Return the arrays of all properties, one after the other, and the place of each.

        A place is the position of the first value, the number of values, the position of the first byte of the texts,
        and the number of bytes.
        """
        places: dict[str, list[int]] = {}
        at = byte = 0
        for name, rows in self._rows.items():
            places[name] = [at, len(rows), byte, len(self._texts[name])]
            at, byte = at + len(rows), byte + len(self._texts[name])
        starts = [run_offsets(np.frombuffer(lengths, dtype=np.int64)) for lengths in self._lengths.values()]
        return {
            "columns.rows": _concatenate_buffers(self._rows, np.uint32),
            "columns.numbers": _concatenate_buffers(self._numbers, np.float64),
            "columns.texts": _concatenate_buffers(self._texts, np.uint8),
            "columns.starts": np.concatenate([np.empty(0, dtype=np.int64), *starts]),
        }, places


def _concatenate_buffers(parts: Mapping[str, array[Any] | bytearray], dtype: Any) -> NDArray[Any]:
    return np.concatenate(
        [np.empty(0, dtype=dtype), *(np.frombuffer(part, dtype) for part in parts.values())]
    )


@dataclass(frozen=True, slots=True)
class NodeTypes:
    """The types of a graph: their names, sorted, and their rows, type after type.

    ``codes`` are the types of each row as positions in ``names``; those of row n start at ``row_starts[n]``.
    """

    names: list[str]
    starts: NDArray[np.int64]
    rows: NDArray[np.uint32]
    row_starts: NDArray[np.int64]
    codes: NDArray[np.int64]

    @classmethod
    def from_rows(cls, rows_by_type: Mapping[str, NDArray[np.uint32]], size: int) -> NodeTypes:
        """Make the types of the ascending rows of each; ``size`` is the number of rows of the graph."""
        names = sorted(rows_by_type)
        sizes = np.array([len(rows_by_type[name]) for name in names], dtype=np.int64)
        rows = np.concatenate([np.empty(0, dtype=np.uint32), *(rows_by_type[name] for name in names)])
        order = np.argsort(rows, kind="stable")
        codes = np.repeat(np.arange(len(names)), sizes)[order]
        return cls(names, run_offsets(sizes), rows, run_offsets(np.bincount(rows, minlength=size)), codes)

    def count_edges(self, edges: DirectedEdges) -> dict[str, int]:
        """Return how many edges of a direction start at nodes of each type."""
        degrees = np.diff(edges.starts)
        heads = np.arange(len(degrees)) if edges.heads is None else edges.heads
        sizes = self.row_starts[heads + 1] - self.row_starts[heads]
        places = range_indices(self.row_starts[heads], sizes)
        counts = np.bincount(self.codes[places], weights=np.repeat(degrees, sizes), minlength=len(self.names))
        return {name: int(count) for name, count in zip(self.names, counts, strict=True) if count}


class NodeCollector:
    """Collects ids, types and names, row after row; names are kept as text only for ``named_rows``."""

    def __init__(self, named_rows: set[int]) -> None:
        self._named_rows = named_rows
        self._names: dict[int, str] = {}
        self._ids = bytearray()
        self._id_ends = array("q", [0])
        self._types: dict[str, array[int]] = {}
        self._hashes = array("Q")
        self._owners = array("I")
        self._texts = bytearray()
        self._text_ends = array("q", [0])
        self.columns = _ColumnCollector()

    def add(self, row: int, nodes: Sequence[dict[str, Any]]) -> None:
        """Add nodes in their stored form; ``row`` is the row of the first."""
        _append_texts([node["id"].encode() for node in nodes], self._ids, self._id_ends)
        own_names = [node.get("name", node["id"]) for node in nodes]
        for place in self._named_rows.intersection(range(row, row + len(nodes))):
            self._names[place] = own_names[place - row]
        rows_of: dict[str, list[int]] = {}
        for place, node in enumerate(nodes, row):
            for type in node.get("types", ()):
                if type in rows_of:
                    rows_of[type].append(place)
                else:
                    rows_of[type] = [place]
        for type, rows in rows_of.items():
            self._types.setdefault(type, array("I")).extend(rows)
        folded, owners = fold_names(own_names), list(range(row, row + len(nodes)))
        for place, node in enumerate(nodes):
            if "aliases" in node:
                aliases = {*map(fold_name, node["aliases"])} - {folded[place]}
                folded += aliases
                owners += [row + place] * len(aliases)
        self.columns.add(row, nodes)
        self._hashes.frombytes(np.frombuffer(hash_terms(folded), dtype="<u8").astype(np.uint64).tobytes())
        self._owners.extend(owners)
        _append_texts(list(map(clip_name, folded)), self._texts, self._text_ends)

    def names_of(self, rows: Sequence[int]) -> list[str]:
        """Return the names of rows, which must be among the named ones."""
        return [self._names[row] for row in rows]

    def arrays(self, folder: Path) -> Arrays:
        """Return the arrays of ids and names; intermediate data goes to a nameless file in ``folder``."""
        hashes = np.frombuffer(self._hashes, dtype=np.uint64)
        owners = np.frombuffer(self._owners, dtype=np.uint32)
        order = np.lexsort((owners, hashes))
        hashes, owners = hashes[order], owners[order]
        firsts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])) if len(hashes) else order
        texts, starts = _reorder_texts(self._texts, self._text_ends, order[firsts])
        self._texts, self._text_ends = bytearray(), array("q", [0])
        create_folder(folder)
        arrays: Arrays = {
            "ids": np.frombuffer(self._ids, dtype=np.uint8),
            "ids.starts": np.frombuffer(self._id_ends, dtype=np.int64),
            "names.hashes": hashes[firsts],
            "names.owners": np.append(firsts, len(hashes)).astype(np.int64),
            "names.rows": owners,
            "names.texts": texts,
            "names.starts": starts,
        }
        return arrays | build_spelling_index(texts, starts, folder)

    def rows_by_type(self) -> dict[str, NDArray[np.uint32]]:
        """Return the rows of each type, ascending."""
        return {name: np.frombuffer(rows, dtype=np.uint32) for name, rows in self._types.items()}

    def name_entries(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32], list[bytes]]:
        """Return the hash, the row and the indexed text of every name and alias."""
        ends = self._text_ends.tolist()
        texts = [bytes(self._texts[start:end]) for start, end in pairwise(ends)]
        hashes, rows = np.frombuffer(self._hashes, np.uint64), np.frombuffer(self._owners, np.uint32)
        return hashes, rows, texts


def _append_texts(texts: Sequence[bytes], content: bytearray, ends: array[int]) -> None:
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    ends.frombytes((np.cumsum(lengths) + len(content)).tobytes())
    content += b"".join(texts)


def _reorder_texts(
    texts: bytearray, text_ends: array[int], places: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return texts in the order of ``places``, one after the other, and where each starts."""
    content, ends = np.frombuffer(texts, dtype=np.uint8), np.frombuffer(text_ends, dtype=np.int64)
    starts = run_offsets(ends[places + 1] - ends[places])
    ordered = np.empty(int(starts[-1]), dtype=np.uint8)
    for first in range(0, len(places), _NAME_BATCH):
        batch = places[first : first + _NAME_BATCH]
        byte_places = range_indices(ends[batch], ends[batch + 1] - ends[batch])
        ordered[starts[first] : starts[first] + len(byte_places)] = content[byte_places]
    return ordered, starts


def example_rows(pairs: NDArray[np.uint32]) -> list[int]:
    """Return the rows of both ends of a few edges, spread evenly over the relation."""
    places = sorted({int(place) for place in np.linspace(0, len(pairs) - 1, EXAMPLES + 2)[1:-1]})
    return list(map(int, pairs[places].ravel()))


def concatenate_relations(relations: list[DirectedEdges]) -> tuple[Arrays, list[list[int]]]:
    """Return the arrays of all relations one after the other, and the place of each relation in them."""
    places: list[list[int]] = []
    first = at = edge = 0
    for edges in relations:
        count = -1 if edges.heads is None else len(edges.heads)
        places.append([first, count, at, len(edges.starts), edge, len(edges.tails)])
        first, at, edge = first + max(count, 0), at + len(edges.starts), edge + len(edges.tails)
    heads = [edges.heads for edges in relations if edges.heads is not None]
    return {
        "heads": np.concatenate([np.empty(0, dtype=np.uint32), *heads]),
        "starts": np.concatenate([np.empty(0, dtype=np.int64), *(edges.starts for edges in relations)]),
        "tails": np.concatenate([np.empty(0, dtype=np.uint32), *(edges.tails for edges in relations)]),
    }, places
