"""Editing a stored graph in place: edges and nodes are removed and added without reading the graph's files again.

Afterwards the graph is, bit by bit, the one that its builder makes of the same nodes and edges. Of the database only
the rows are written that differ; those of a node or an edge are packed with others, so the cost is that of the change
where no node comes or goes, and where one does, that of writing the rows of the nodes behind it and of all edges.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import find_in_runs
from clew.core.errors import UsageError
from clew.core.text import iri_label
from clew.core.types import GraphEditCounts
from clew.store.graphs import tables
from clew.store.graphs.arrays import GraphArrays
from clew.store.graphs.tables import (
    NODES_PER_BLOB,
    PAIRS_PER_BLOB,
    STATEMENTS_PER_BLOB,
    StoredGraph,
    canonical_json,
    clean_id,
    compress_lines,
    node_fields,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Rows

    #: Edges of one relation, ascending: the row of the head in the upper 32 bits, that of the tail in the lower.
    Keys = NDArray[np.uint64]

_HALF, _LOWER = np.uint64(32), np.uint64(0xFFFFFFFF)
#: Batches of nodes that are compressed at once.
_COMPRESSED_AT_ONCE = 64

Triple = tuple[str, str, str]


class GraphEdits:
    """Edges and nodes to remove from a graph and to add to it. Removals come first, whatever the order of the calls.

    It is a :class:`clew.core.protocols.GraphSink`, so that readers of graph files can fill it; ``removals`` is a sink
    whose edges and nodes are removed.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.edges: dict[Triple, set[str]] = {}  # the properties of each, as canonical JSON
        self.removed_nodes: dict[str, None] = {}
        self.removed_edges: dict[Triple, None] = {}

    def add_node(
        self,
        id: str,
        *,
        types: Sequence[str] = (),
        name: str = "",
        aliases: Sequence[str] = (),
        text: str = "",
        properties: Mapping[str, Any] | None = None,
        rank: int = 0,
    ) -> None:
        """Add a node, or describe anew one that the graph has. ``rank`` has no meaning here."""
        self.nodes[clean_id(id)] = node_fields(id, types, name, aliases, text, properties or {})

    def has_node(self, id: str) -> bool:
        """Return whether :meth:`add_node` was called for this id."""
        return clean_id(id) in self.nodes

    def add_edge(
        self, head: str, relation: str, tail: str, properties: Mapping[str, Any] | None = None
    ) -> None:
        """Add an edge; ends that the graph does not have become nodes. An edge that is there gets the properties."""
        texts = self.edges.setdefault((clean_id(head), clean_id(relation), clean_id(tail)), set())
        if properties:
            texts.add(canonical_json(properties))

    def remove_node(self, id: str) -> None:
        """Remove a node with its edges."""
        self.removed_nodes[clean_id(id)] = None

    def remove_edge(self, head: str, relation: str, tail: str) -> None:
        """Remove an edge with its properties. An end that nothing describes goes with its last edge."""
        self.removed_edges[clean_id(head), clean_id(relation), clean_id(tail)] = None

    @property
    def removals(self) -> _Removals:
        """A sink that collects removals."""
        return _Removals(self)

    def update(self, others: GraphEdits) -> None:
        """Take over the edits of ``others``; its descriptions of nodes replace those here."""
        self.nodes |= others.nodes
        self.removed_nodes |= others.removed_nodes
        self.removed_edges |= others.removed_edges
        for triple, texts in others.edges.items():
            self.edges.setdefault(triple, set()).update(texts)

    def __len__(self) -> int:
        return len(self.nodes) + len(self.edges) + len(self.removed_nodes) + len(self.removed_edges)


@dataclass(frozen=True, slots=True)
class _Removals:
    """A sink: the edges that it is given are removed, and the nodes, of which only the ids count."""

    edits: GraphEdits

    def add_node(self, id: str, **fields: Any) -> None:
        """Remove a node."""
        self.edits.remove_node(id)

    def has_node(self, id: str) -> bool:
        """Return whether the node is removed."""
        return clean_id(id) in self.edits.removed_nodes

    def add_edge(
        self, head: str, relation: str, tail: str, properties: Mapping[str, Any] | None = None
    ) -> None:
        """Remove an edge."""
        self.edits.remove_edge(head, relation, tail)


@dataclass(frozen=True, slots=True)
class GraphChange:
    """The change of a graph's rows. Removed edges have the old rows of their ends, added ones the new rows.

    ``row_map`` is the new row of each old one, -1 for a removed node. ``replaced`` are the old rows of the nodes that
    are removed or described anew; ``described`` the new rows and lines of those that are new or described anew. All
    are ascending.
    """

    size: int
    row_map: NDArray[np.int64]
    replaced: Rows
    described: dict[int, bytes]
    removed: dict[str, Keys] = field(default_factory=dict)
    added: dict[str, Keys] = field(default_factory=dict)

    @property
    def moves_rows(self) -> bool:
        """Whether a node comes or goes, so that others have new rows."""
        return self.size != len(self.row_map) or bool((self.row_map < 0).any())


def pack_keys(heads: Any, tails: Any) -> Keys:
    """Return the edges between these rows as keys, in the given order."""
    keys: Keys = (np.asarray(heads).astype(np.uint64) << _HALF) | np.asarray(tails).astype(np.uint64)
    return keys


def split_keys(keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of both ends of each edge."""
    return (keys >> _HALF).astype(np.int64), (keys & _LOWER).astype(np.int64)


def edit_keys(keys: Keys, removed: Keys, added: Keys, row_map: NDArray[np.int64] | None) -> Keys:
    """Return ascending keys without ``removed``, in their new rows (None: as they are), with ``added``."""
    if len(removed):
        keys = np.delete(keys, np.searchsorted(keys, removed))
    if row_map is not None:
        keys = pack_keys(*(row_map[rows] for rows in split_keys(keys)))
    if len(added):
        places = np.searchsorted(keys, added)
        is_new = (
            keys[np.minimum(places, len(keys) - 1)] != added if len(keys) else np.ones(len(added), np.bool_)
        )
        keys = np.insert(keys, places[is_new], added[is_new])
    return keys


def _find_pairs(pairs: NDArray[np.uint32], keys: Keys) -> Rows:
    """Return where each of ``keys`` is or belongs among sorted pairs, (n,)."""
    heads, tails = split_keys(keys)
    column = np.ascontiguousarray(pairs[:, 0])
    starts, ends = (column.searchsorted(heads.astype(np.uint32), side=side) for side in ("left", "right"))
    return find_in_runs(pairs[:, 1], starts, ends, tails)


class GraphEditor:
    """Applies edits to one stored graph within a write transaction. ``iris``: its ids are IRIs."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        stored: StoredGraph,
        opened: GraphArrays,
        edits: GraphEdits,
        *,
        iris: bool,
    ) -> None:
        self._connection, self._stored, self._opened = connection, stored, opened
        self._edits, self._iris = edits, iris
        self._ids: Any = opened.arrays["ids"]
        self._starts: Any = opened.arrays["ids.starts"]
        self._row_of: dict[str, int | None] = {}
        self._batches: dict[int, list[bytes]] = {}
        self._missing: list[str] = []

    def apply(self, options: str) -> tuple[StoredGraph, GraphChange, GraphEditCounts]:
        """Change the rows of the database; return the graph, the change and its counts.

        Raises UsageError where nothing would be left, and Damaged.
        """
        removed_rows, removed = self._find_removals()
        added = self._find_additions()
        removed_rows |= self._find_bare_nodes(removed_rows, removed, added)
        change = self._plan(removed_rows, removed, added)
        if not change.size:
            raise UsageError(
                f"the graph '{self._stored.name}' would have no node",
                f"To remove it: clew graph remove {self._stored.name}",
            )
        writer = _GraphWriter(self._connection, self._stored, change)
        statements = self._statements(change)
        graph = writer.write(self._relation_iris, statements, options)
        is_kept = change.row_map[change.replaced] >= 0
        counts = GraphEditCounts(
            nodes_added=change.size - int((change.row_map >= 0).sum()),
            nodes_removed=int((~is_kept).sum()),
            nodes_described=int(is_kept.sum()),
            edges_added=sum(map(len, change.added.values())),
            edges_removed=sum(map(len, change.removed.values())),
            edges_described=sum(
                key not in change.added.get(relation, ())
                for relation, by_key in statements.items()
                for key in by_key
            ),
            missing=tuple(self._missing),
        )
        return graph, change, counts

    # Looking up

    def _row(self, id: str) -> int | None:
        """Return the row of a node, None for one that the graph does not have."""
        if id not in self._row_of:
            encoded = id.encode()
            row = bisect_left(range(self._stored.nodes), encoded, key=self._id)
            self._row_of[id] = row if row < self._stored.nodes and self._id(row) == encoded else None
        return self._row_of[id]

    def _id(self, row: int) -> bytes:
        encoded: bytes = self._ids[self._starts[row] : self._starts[row + 1]].tobytes()
        return encoded

    def _line(self, row: int) -> bytes:
        """Return the stored line of a node."""
        batch = row // NODES_PER_BLOB
        if batch not in self._batches:
            self._batches[batch] = tables.read_node_batch(self._connection, self._stored, batch)
        return self._batches[batch][row % NODES_PER_BLOB]

    @cached_property
    def _relation_numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self._opened.manifest["relations"])}

    @cached_property
    def _relation_iris(self) -> dict[str, str]:
        """The IRIs of relations whose name differs from them, new relations included."""
        return dict(self._stored.relations)

    def _relation_name(self, relation: str) -> str:
        """Return the name of a relation of the graph that is given by its name, or by its IRI."""
        if relation in self._relation_numbers:
            return relation
        named = next((name for name, iri in self._relation_iris.items() if iri == relation), None)
        return relation if named is None else named

    def _new_relation_name(self, relation: str) -> str:
        name = self._relation_name(relation)
        label = iri_label(name) if self._iris else name
        if name in self._relation_numbers or name in self._relation_iris or label == name:
            return name
        if label in self._relation_numbers or label in self._relation_iris:
            return name  # another IRI has this label
        self._relation_iris[label] = name
        return label

    # Planning

    def _find_removals(self) -> tuple[set[int], dict[str, set[tuple[int, int]]]]:
        """Return the rows to remove, and the edges by relation."""
        rows = set[int]()
        for id in self._edits.removed_nodes:
            row = self._row(id)
            if row is None:
                self._missing.append(id)
            else:
                rows.add(row)
        removed: dict[str, set[tuple[int, int]]] = {}
        for relation, pairs in self._edges_at(np.array(sorted(rows), dtype=np.int64)):
            removed.setdefault(relation, set()).update(pairs)
        for head, relation, tail in self._edits.removed_edges:
            name, ends = self._relation_name(relation), (self._row(head), self._row(tail))
            if self._has_edge(name, *ends):
                removed.setdefault(name, set()).add(ends)  # type: ignore[arg-type]
            else:
                self._missing.append(f"{head} >> {relation} >> {tail}")
        return rows, removed

    def _edges_at(self, rows: Rows) -> Iterator[tuple[str, Iterable[tuple[int, int]]]]:
        """Yield the edges of each relation with an end in ``rows``."""
        if not len(rows):
            return
        for relation, number in self._relation_numbers.items():
            for inverse in (False, True):
                offsets, others = self._opened.edges(number, inverse).neighbours(rows)
                own, ends = np.repeat(rows, np.diff(offsets)).tolist(), others.tolist()
                if own:
                    yield relation, zip(*((ends, own) if inverse else (own, ends)), strict=True)

    def _has_edge(self, relation: str, head: int | None, tail: int | None) -> bool:
        number = self._relation_numbers.get(relation)
        if number is None or head is None or tail is None:
            return False
        tails = self._opened.edges(number, inverse=False).neighbours(np.array([head]))[1]
        place = int(np.searchsorted(tails, tail))
        return place < len(tails) and int(tails[place]) == tail

    def _find_additions(self) -> dict[str, set[tuple[str, str]]]:
        """Return all edges to be added, by the name of their relation."""
        added: dict[str, set[tuple[str, str]]] = {}
        for head, relation, tail in self._edits.edges:
            added.setdefault(self._new_relation_name(relation), set()).add((head, tail))
        return added

    def _find_bare_nodes(
        self,
        removed_rows: set[int],
        removed: Mapping[str, set[tuple[int, int]]],
        added: Mapping[str, set[tuple[str, str]]],
    ) -> set[int]:
        """Return the nodes that lose their last edge and that nothing describes: only edges ever named them."""
        used = {id for pairs in added.values() for pair in pairs for id in pair} | self._edits.nodes.keys()
        ends = {row for pairs in removed.values() for pair in pairs for row in pair} - removed_rows
        candidates = np.array(
            sorted(
                row for row in ends if (id := self._id(row).decode()) not in used and self._is_bare(row, id)
            ),
            dtype=np.int64,
        )
        degrees = np.zeros(len(candidates), dtype=np.int64)
        for number in self._relation_numbers.values():
            for inverse in (False, True):
                starts, stops = self._opened.edges(number, inverse).bounds(candidates)
                degrees += stops - starts
        place_of = {row: place for place, row in enumerate(candidates.tolist())}
        for pairs in removed.values():
            for pair in pairs:
                for row in pair:
                    if row in place_of:
                        degrees[place_of[row]] -= 1
        return set(candidates[degrees == 0].tolist())

    def _is_bare(self, row: int, id: str) -> bool:
        return bool(json.loads(self._line(row)) == self._bare_fields(id))

    def _bare_fields(self, id: str) -> dict[str, Any]:
        return node_fields(id, (), iri_label(id) if self._iris else "", (), "", {})

    def _plan(
        self,
        removed_rows: set[int],
        removed: Mapping[str, set[tuple[int, int]]],
        added: Mapping[str, set[tuple[str, str]]],
    ) -> GraphChange:
        old_size = self._stored.nodes
        given = {id for pairs in added.values() for pair in pairs for id in pair} | self._edits.nodes.keys()
        # A node that is removed and added again comes back at its place, without its old edges.
        returning = {row for id in given if (row := self._row(id)) is not None and row in removed_rows}
        gone = np.array(sorted(removed_rows - returning), dtype=np.int64)
        new_ids = sorted((id for id in given if self._row(id) is None), key=str.encode)
        places = np.array(
            [bisect_left(range(old_size), id.encode(), key=self._id) for id in new_ids], dtype=np.int64
        )
        remains = np.ones(old_size, dtype=np.bool_)
        remains[gone] = False
        row_map = np.cumsum(remains) - 1
        kept_before = np.concatenate([[0], np.cumsum(remains)])
        row_map += np.searchsorted(places, np.arange(old_size), side="right")
        row_map[gone] = -1
        new_row = {
            id: int(kept_before[place]) + number
            for number, (id, place) in enumerate(zip(new_ids, places.tolist(), strict=True))
        }

        def row_after(id: str) -> int:
            row = self._row(id)
            return new_row[id] if row is None else int(row_map[row])

        described = {new_row[id]: self._new_line(id) for id in new_ids}
        replaced = set(gone.tolist())
        for id in given:
            row = self._row(id)
            if row is None or (id not in self._edits.nodes and row not in returning):
                continue
            line = self._new_line(id)
            if line != self._line(row):
                described[int(row_map[row])] = line
                replaced.add(row)
        removed_keys = {
            relation: np.sort(pack_keys(*np.array(list(pairs)).T))
            for relation, pairs in removed.items()
            if pairs
        }
        added_keys = {}
        for relation, pairs in added.items():
            keys = np.sort(pack_keys(*np.array([(row_after(h), row_after(t)) for h, t in pairs]).T))
            added_keys[relation] = keys[~self._remains(relation, pairs, keys, row_after, removed)]
        return GraphChange(
            old_size - len(gone) + len(new_ids),
            row_map,
            np.array(sorted(replaced), dtype=np.int64),
            dict(sorted(described.items())),
            removed_keys,
            {relation: keys for relation, keys in added_keys.items() if len(keys)},
        )

    def _remains(
        self,
        relation: str,
        pairs: set[tuple[str, str]],
        keys: Keys,
        row_after: Any,
        removed: Mapping[str, set[tuple[int, int]]],
    ) -> NDArray[np.bool_]:
        """Return for each key of ``pairs`` whether the graph has that edge and it is not removed."""
        gone = removed.get(relation, set())
        there = [
            (row_after(head), row_after(tail))
            for head, tail in pairs
            if (ends := (self._row(head), self._row(tail))) not in gone and self._has_edge(relation, *ends)
        ]
        return np.isin(keys, pack_keys(*np.array(there).T)) if there else np.zeros(len(keys), np.bool_)

    def _new_line(self, id: str) -> bytes:
        fields = self._edits.nodes.get(id)
        if fields is None:
            fields = self._bare_fields(id)
        elif self._iris and "name" not in fields:
            fields = fields | {key: name for key, name in self._bare_fields(id).items() if key == "name"}
        return canonical_json(fields).encode()

    def _statements(self, change: GraphChange) -> dict[str, dict[int, set[bytes]]]:
        """Return the properties of added edges by relation and key."""
        statements: dict[str, dict[int, set[bytes]]] = {}
        new_rows = {json.loads(line)["id"]: row for row, line in change.described.items()}

        def row_after(id: str) -> int:
            row = self._row(id)
            return new_rows[id] if row is None else int(change.row_map[row])

        for (head, relation, tail), texts in self._edits.edges.items():
            if texts:
                key = row_after(head) << 32 | row_after(tail)
                by_key = statements.setdefault(self._new_relation_name(relation), {})
                by_key.setdefault(key, set()).update(text.encode() for text in texts)
        return statements


class _GraphWriter:
    """Writes the rows of the database that a change concerns, and computes the digest of the whole."""

    def __init__(self, connection: sqlite3.Connection, stored: StoredGraph, change: GraphChange) -> None:
        self._connection, self._stored, self._change = connection, stored, change
        self._digest = hashlib.blake2b(digest_size=16)

    def write(
        self,
        relation_iris: Mapping[str, str],
        statements: Mapping[str, dict[int, set[bytes]]],
        options: str,
    ) -> StoredGraph:
        """Write the graph; return it as it is stored."""
        change, none = self._change, np.empty(0, dtype=np.uint64)
        names = tables.read_relations(self._connection, self._stored)
        sizes = {name: tables.count_pairs(self._connection, self._stored, name) for name in names}
        for name in {*change.removed, *change.added}:
            sizes[name] = (
                sizes.get(name, 0) - len(change.removed.get(name, none)) + len(change.added.get(name, none))
            )
        relations = {name: iri for name, iri in relation_iris.items() if sizes.get(name)}
        self._digest.update(f"{change.size}\n{canonical_json(relations)}\n".encode())
        self._write_nodes()
        for name in sorted({*names, *change.added}):
            self._write_relation(name, sizes[name], statements.get(name, {}))
        graph = replace(
            self._stored,
            digest=self._digest.hexdigest(),
            nodes=change.size,
            edges=sum(sizes.values()),
            relations=relations,
        )
        tables.update_graph(self._connection, graph, options)
        return graph

    def _write_nodes(self) -> None:
        batches = -(-self._stored.nodes // NODES_PER_BLOB)
        written: list[tuple[int, Future[bytes]]] = []
        # Compressing leaves the interpreter free, so it goes on while the next lines are read.
        with ThreadPoolExecutor(2) as workers:
            for number, (lines, is_new) in enumerate(self._node_batches()):
                content = lines if isinstance(lines, bytes) else b"\n".join(lines)
                self._digest.update(content)
                self._digest.update(b"\n")
                if is_new and isinstance(lines, list):
                    written.append((number, workers.submit(compress_lines, lines)))
                    written[-_COMPRESSED_AT_ONCE:][0][1].result()  # so that lines do not pile up
            for number, blob in written:
                tables.write_blob(
                    self._connection, "graph_node", (self._stored.number, number), blob.result()
                )
        tables.delete_blobs(
            self._connection,
            "graph_node",
            self._stored.number,
            range(-(-self._change.size // NODES_PER_BLOB), batches),
        )

    def _node_batches(self) -> Iterator[tuple[bytes | list[bytes], bool]]:
        """Yield the content or the lines of each batch, and whether its row is to be written."""
        change, size = self._change, self._stored.nodes
        bounds, touched = self._batch_bounds()
        waiting: list[bytes] = []
        moved = False
        for number, content in enumerate(tables.read_node_batches(self._connection, self._stored)):
            first, end = number * NODES_PER_BLOB, min((number + 1) * NODES_PER_BLOB, size)
            if not moved and number not in touched:
                yield content, False
                continue
            lines = content.split(b"\n")
            if number in touched:
                rows = change.row_map[first:end].tolist()
                old = {new: line for new, line in zip(rows, lines, strict=True) if new >= 0}
                new_rows = range(int(bounds[number]), int(bounds[number + 1]))
                lines = [change.described.get(row) or old[row] for row in new_rows]
            moved |= len(lines) != end - first
            if not moved:
                yield lines, True
                continue
            waiting += lines
            while len(waiting) >= NODES_PER_BLOB:
                yield waiting[:NODES_PER_BLOB], True
                waiting = waiting[NODES_PER_BLOB:]
        if waiting:
            yield waiting, True

    def _batch_bounds(self) -> tuple[Rows, set[int]]:
        """Return the new rows at which the nodes of each batch begin and end, and the batches that change.

        A new node belongs to the batch of the old node before it, the first ones to the first.
        """
        change = self._change
        remaining, size = np.flatnonzero(change.row_map >= 0), len(change.row_map)
        firsts = np.arange(0, size, NODES_PER_BLOB)
        bounds = np.append(change.row_map[remaining], change.size)[np.searchsorted(remaining, firsts)]
        bounds[0] = 0
        bounds = np.append(bounds, change.size)
        has_other_size = np.diff(bounds) != np.diff(np.append(firsts, size))
        return bounds, {
            *np.flatnonzero(has_other_size).tolist(),
            *(change.replaced // NODES_PER_BLOB).tolist(),
        }

    def _write_relation(self, name: str, size: int, statements: dict[int, set[bytes]]) -> None:
        change, none = self._change, np.empty(0, dtype=np.uint64)
        removed, added = change.removed.get(name, none), change.added.get(name, none)
        blobs = list(tables.read_pairs(self._connection, self._stored, name))
        old_blobs = blobs
        row_map = change.row_map if change.moves_rows else None
        if len(removed) or len(added) or row_map is not None or statements:
            old_pairs = np.frombuffer(b"".join(blobs), dtype="<u4").reshape(-1, 2)
            pairs = (
                np.delete(old_pairs, _find_pairs(old_pairs, removed), axis=0) if len(removed) else old_pairs
            )
            if row_map is not None:
                pairs = row_map.astype("<u4")[pairs]
            if len(added):
                pairs = np.insert(
                    pairs, _find_pairs(pairs, added), np.column_stack(split_keys(added)), axis=0
                )
            blobs = [
                pairs[start : start + PAIRS_PER_BLOB].tobytes()
                for start in range(0, len(pairs), PAIRS_PER_BLOB)
            ]
            for number, blob in enumerate(blobs):
                if number >= len(old_blobs) or blob != old_blobs[number]:
                    tables.write_blob(
                        self._connection, "graph_edge", (self._stored.number, name, number), blob
                    )
            tables.delete_blobs(
                self._connection, "graph_edge", self._stored.number, range(len(blobs), len(old_blobs)), name
            )
            if len(removed) or len(added) or statements:
                self._write_statements(name, old_pairs, pairs, statements)
        if not size:
            return
        self._digest.update(f"{canonical_json(name)}\n{size}\n".encode())
        for blob in blobs:
            self._digest.update(blob)
        for line in tables.read_statement_lines(self._connection, self._stored, name):
            self._digest.update(line + b"\n")

    def _write_statements(
        self,
        name: str,
        old_pairs: NDArray[np.uint32],
        pairs: NDArray[np.uint32],
        statements: dict[int, set[bytes]],
    ) -> None:
        """Write the properties of edges again: their positions among the edges have changed."""
        by_place: dict[int, set[bytes]] = {}
        old = [
            (int(place), rest[:-1])
            for place, _, rest in (
                line[1:].partition(b",")
                for line in tables.read_statement_lines(self._connection, self._stored, name)
            )
        ]
        if old:
            rows = old_pairs[np.array([place for place, _ in old], dtype=np.int64)]
            ends = self._change.row_map[rows]
            is_removed = np.isin(pack_keys(*rows.T), self._change.removed.get(name, ()))
            places = _find_pairs(pairs, pack_keys(*np.maximum(ends, 0).T)).tolist()
            for place, gone, (_, texts) in zip(places, is_removed.tolist(), old, strict=True):
                if not gone:
                    by_place[place] = {canonical_json(part).encode() for part in json.loads(texts)}
        keys = np.fromiter(statements, np.uint64, len(statements))
        for place, encoded in zip(_find_pairs(pairs, keys).tolist(), statements.values(), strict=True):
            by_place.setdefault(place, set()).update(encoded)
        if not old and not by_place:
            return
        tables.delete_statements(self._connection, self._stored, name)
        blocks: dict[int, list[bytes]] = {}
        for place in sorted(by_place):
            line = b"[%d,[%s]]" % (place, b",".join(sorted(by_place[place])))
            blocks.setdefault(place // STATEMENTS_PER_BLOB, []).append(line)
        for block, lines in blocks.items():
            key = (self._stored.number, name, block)
            tables.write_blob(self._connection, "graph_statement", key, compress_lines(lines))
