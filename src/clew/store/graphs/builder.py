"""Building a graph: from nodes and edges in any order to a packed graph that is a function of its content alone.

Nodes are staged in a temporary file without a name, so that a killed process leaves nothing behind; edges are
pairs of uint32 in memory, 8 bytes each. The packed graph is written to a second such file, so that the transaction
that stores it only copies.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Rows, TextSpans, sorted_unique
from clew.core.text import clean_names, iri_label
from clew.store.graphs.id_table import IdTable
from clew.store.graphs.tables import (
    NODES_PER_BLOB,
    PAIRS_PER_BLOB,
    STATEMENTS_PER_BLOB,
    canonical_json,
    clean_id,
    compress_lines,
    merge_node_parts,
    node_fields,
    node_lines,
)

if TYPE_CHECKING:
    from clew.core.protocols import NodeColumns

#: Replaces the IRI of a Wikidata property in a statement by that of the property itself, which has the label.
_WIKIDATA = ("http://www.wikidata.org/prop/direct/", "http://www.wikidata.org/entity/")
#: Nodes whose lines are made at once: a multiple of those of a row.
_LINES_STEP = 256 * NODES_PER_BLOB


class _BlobFile:
    """A temporary file of byte strings, appended one after the other and read back by number."""

    def __init__(self, folder: Path) -> None:
        self._file: IO[bytes] = TemporaryFile(dir=folder)  # noqa: SIM115 - closed by close()
        self._map: mmap | None = None
        self.ends = array("Q", [0])

    def append(self, content: bytes) -> None:
        self._file.write(content)
        self.ends.append(self.ends[-1] + len(content))

    def extend(self, contents: Sequence[bytes]) -> None:
        self._file.write(b"".join(contents))
        lengths = np.fromiter(map(len, contents), dtype=np.uint64, count=len(contents))
        self.ends.frombytes((np.cumsum(lengths) + np.uint64(self.ends[-1])).tobytes())

    def __getitem__(self, number: int) -> bytes:
        start, end = self.ends[number], self.ends[number + 1]
        if self._map is None or len(self._map) < end:
            self._file.flush()
            self._map = mmap(self._file.fileno(), 0, access=ACCESS_READ)
        return self._map[start:end]

    def read(self, numbers: Rows) -> list[bytes]:
        """Return the byte strings with these numbers."""
        if not len(numbers):
            return []
        self[int(numbers.max())]  # maps the file as far as it is needed
        content, ends = self._map, np.frombuffer(self.ends, dtype=np.uint64)
        assert content is not None
        bounds = zip(ends[numbers].tolist(), ends[numbers + 1].tolist(), strict=True)
        return [content[start:end] for start, end in bounds]

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        for start, end in zip(self.ends, self.ends[1:], strict=False):
            yield self._file.read(end - start)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
        self._file.close()


@dataclass(slots=True)
class PackedGraph:
    """A graph ready to be stored. ``pairs`` and ``statements`` have the relation and the number of each blob."""

    digest: str
    nodes: int
    edges: int
    relations: dict[str, str]
    node_blobs: _BlobFile
    edge_blobs: _BlobFile
    pairs: list[tuple[str, int]] = field(default_factory=list)
    statement_blobs: _BlobFile | None = None
    statements: list[tuple[str, int]] = field(default_factory=list)

    def close(self) -> None:
        """Delete the temporary files."""
        for file in (self.node_blobs, self.edge_blobs, self.statement_blobs):
            if file is not None:
                file.close()


def _pack_lines(lines: Sequence[bytes], blobs: _BlobFile, digest: hashlib.blake2b) -> None:
    digest.update(b"\n".join(lines) + b"\n")
    for first in range(0, len(lines), NODES_PER_BLOB):
        blobs.append(compress_lines(lines[first : first + NODES_PER_BLOB]))


class GraphBuilder:
    """A :class:`clew.core.protocols.GraphSink` that collects a graph and packs it.

    ``iris``: ids are IRIs. Nodes may then be given in parts, and the readable part of an IRI names a node, type or
    property that has no name of its own.
    """

    def __init__(self, name: str, folder: Path, *, iris: bool = False) -> None:
        self.name = name
        self._folder, self._iris = folder, iris
        self._ids = IdTable()
        self._relations, self._relation_names = IdTable(), list[str]()  # of add_edges
        self._edges: dict[str, array[int]] = {}
        self._parts = _BlobFile(folder)
        self._owners = array("I")
        self._described = bytearray()
        self._keys: set[str] = set()  # IRIs of properties and types
        self._statements = _BlobFile(folder)  # properties of edges
        # relation -> (number of its edge, number in _statements), flat
        self._statement_places: dict[str, array[int]] = {}

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
        """Add a node, or a part of one."""
        id = clean_id(id)
        number = self._ids.add(id)
        self._extend_described(number + 1)
        self._described[number] = 1
        part = node_fields(id, types, name, aliases, text, properties or {})
        if self._iris:
            self._keys.update(part.get("properties", ()), part.get("types", ()))
            if name:
                part |= {"name": name, "rank": rank}
        self._parts.append(canonical_json(part).encode())
        self._owners.append(number)

    def has_node(self, id: str) -> bool:
        """Return whether :meth:`add_node` was called for this id."""
        number = self._ids.find(clean_id(id))
        return number is not None and number < len(self._described) and self._described[number] > 0

    def add_nodes(self, nodes: NodeColumns) -> bool:
        """Add nodes, each as a whole; False, and none is added, where one was added before or is there twice."""
        nodes = replace(nodes, ids=clean_names(nodes.ids))
        if self._iris or "" in nodes.ids:
            return False
        numbers = self._ids.add_all(TextSpans.from_texts(nodes.ids))
        self._extend_described(len(self._ids))
        described = np.frombuffer(self._described, dtype=np.uint8)
        if described[numbers].any() or len(sorted_unique(numbers)) < len(numbers):
            return False
        described[numbers] = 1
        self._owners.frombytes(numbers.astype(np.uint32).tobytes())
        self._parts.extend(node_lines(nodes))
        return True

    def _extend_described(self, size: int) -> None:
        if size > len(self._described):
            self._described.extend(bytes(size - len(self._described)))

    def count_undescribed(self) -> int:
        """Return how many nodes only edges mention, where others are described; 0 for RDF, where it means nothing."""
        described = self._described.count(1)
        return len(self._ids) - described if described and not self._iris else 0

    def count_nodes(self) -> int:
        """Return how many nodes were added, or mentioned by edges."""
        return len(self._ids)

    def add_edge(
        self, head: str, relation: str, tail: str, properties: Mapping[str, Any] | None = None
    ) -> None:
        """Add an edge."""
        head, relation, tail = (clean_id(name) for name in (head, relation, tail))
        pairs = self._edges.get(relation)
        if pairs is None:
            pairs = self._edges[relation] = array("I")
        pairs.append(self._ids.add(head))
        pairs.append(self._ids.add(tail))
        if properties:
            places = self._statement_places.setdefault(relation, array("Q"))
            places.extend((len(pairs) // 2 - 1, len(self._statements)))
            self._statements.append(canonical_json(properties).encode())

    def add_edges(self, heads: TextSpans, relations: TextSpans, tails: TextSpans) -> None:
        """Add edges without properties."""
        pairs = np.empty((len(heads), 2), dtype=np.uint32)
        pairs[:, 0], pairs[:, 1] = self._ids.add_all(heads), self._ids.add_all(tails)
        numbers = self._relations.add_all(relations)
        if len(self._relations) > len(self._relation_names):
            self._relation_names = self._relations.ids()
        names = self._relation_names
        if len(numbers) and int(numbers.min()) == int(numbers.max()):
            self._edges.setdefault(names[int(numbers[0])], array("I")).frombytes(pairs.tobytes())
            return
        if len(names) < 1 << 16:
            numbers = numbers.astype(np.uint16)  # is sorted by radix
        order = np.argsort(numbers, kind="stable")
        sorted_numbers = numbers[order]
        firsts = np.flatnonzero(np.append(True, sorted_numbers[1:] != sorted_numbers[:-1]))[: len(heads)]
        for start, end in zip(firsts.tolist(), [*firsts[1:].tolist(), len(heads)], strict=False):
            relation = names[int(sorted_numbers[start])]
            self._edges.setdefault(relation, array("I")).frombytes(pairs[order[start:end]].tobytes())

    def close(self) -> None:
        """Delete the staged nodes and edges."""
        self._parts.close()
        self._statements.close()

    # Packing

    def pack(self, progress: Callable[[int, int], None] | None = None) -> PackedGraph:
        """Return the packed graph. The builder cannot be used afterwards."""
        order = self._ids.order()
        rank = np.empty(len(order), dtype=np.uint32)
        rank[order] = np.arange(len(order), dtype=np.uint32)
        labels = self._choose_labels(self._group_parts()) if self._iris else {}
        digest = hashlib.blake2b(digest_size=16)
        nodes, edges = _BlobFile(self._folder), _BlobFile(self._folder)
        relations = {labels.get(relation, relation): relation for relation in self._edges}
        renamed = {label: relation for label, relation in relations.items() if label != relation}
        packed = PackedGraph("", len(order), 0, renamed, nodes, edges)
        digest.update(f"{len(order)}\n{canonical_json(packed.relations)}\n".encode())
        lines = self._merged_lines(order, labels) if self._iris else self._node_lines(order)
        # Hashing and compressing leave the interpreter free, so they go on while the next lines are made.
        with ThreadPoolExecutor(1) as worker:
            unfinished: deque[Future[None]] = deque()
            for batch, done in zip(lines, range(0, len(order), _LINES_STEP), strict=True):
                if progress:
                    progress(done, len(order))
                unfinished.append(worker.submit(_pack_lines, batch, nodes, digest))
                if len(unfinished) > 2:
                    unfinished.popleft().result()
            for future in unfinished:
                future.result()
        if progress:
            progress(len(order), len(order))
        self._ids = IdTable()
        for relation in sorted(relations):
            self._pack_relation(relation, relations[relation], rank, packed, digest)
        packed.digest = digest.hexdigest()
        return packed

    def _group_parts(self) -> Callable[[int], Iterable[int]]:
        """Return a function from the number of a node to the numbers of its parts."""
        owners = np.frombuffer(self._owners, dtype=np.uint32)
        by_owner = np.argsort(owners, kind="stable")
        starts = np.searchsorted(owners[by_owner], np.arange(len(self._ids) + 1))
        return lambda number: by_owner[starts[number] : starts[number + 1]].tolist()

    def _merged_lines(self, order: Rows, labels: Mapping[str, str]) -> Iterator[list[bytes]]:
        """Yield the lines of the nodes of RDF in order of ids, :data:`_LINES_STEP` at a time."""
        parts_of, ids = self._group_parts(), self._ids.ids()
        for first in range(0, len(order), _LINES_STEP):
            batch = order[first : first + _LINES_STEP].tolist()
            merged = (
                merge_node_parts(
                    ids[number], self._read_parts(parts_of(number)), iri_label(ids[number]), labels
                )
                for number in batch
            )
            yield [canonical_json(fields).encode() for fields in merged]

    def _node_lines(self, order: Rows) -> Iterator[list[bytes]]:
        """Yield the lines of the nodes in order of ids, :data:`_LINES_STEP` at a time."""
        owners, ids = np.frombuffer(self._owners, dtype=np.uint32), self._ids.spans()
        counts = np.bincount(owners, minlength=len(order))
        last_parts = np.zeros(len(order), dtype=np.int64)
        last_parts[owners] = np.arange(len(owners))
        parts_of = self._group_parts() if (counts > 1).any() else None
        for first in range(0, len(order), _LINES_STEP):
            numbers = order[first : first + _LINES_STEP]
            described = np.flatnonzero(counts[numbers])
            lines = [b""] * len(numbers)
            parts = self._parts.read(last_parts[numbers[described]])
            for place, part in zip(described.tolist(), parts, strict=True):
                lines[place] = part
            others = np.flatnonzero(counts[numbers] != 1)
            texts = ids.take(numbers[others]).texts()
            for place, id in zip(others.tolist(), texts, strict=True):
                if lines[place] and parts_of:
                    node = merge_node_parts(id, self._read_parts(parts_of(int(numbers[place]))), id, {})
                    lines[place] = canonical_json(node).encode()
                else:
                    lines[place] = f'{{"id":{canonical_json(id)}}}'.encode()
            yield lines

    def _read_parts(self, numbers: Iterable[int]) -> list[dict[str, Any]]:
        return [json.loads(self._parts[number]) for number in numbers]

    def _choose_labels(self, parts_of: Callable[[int], Iterable[int]]) -> dict[str, str]:
        """Return the name of each relation, property and type.

        It is its label, else the readable part of its IRI; the IRI where two would have the same name.
        """
        iris = sorted({*self._edges, *self._keys})
        labels = [self._label(iri, parts_of) or iri_label(iri) for iri in iris]
        counts = Counter(labels)
        return {iri: label if counts[label] == 1 else iri for iri, label in zip(iris, labels, strict=True)}

    def _label(self, iri: str, parts_of: Callable[[int], Iterable[int]]) -> str:
        """Return the name of lowest rank of the node with this IRI; "" where there is none."""
        for candidate in dict.fromkeys((iri, iri.replace(*_WIKIDATA))):
            number = self._ids.find(candidate)
            parts = [] if number is None else self._read_parts(parts_of(number))
            if names := sorted((part.get("rank", 0), part["name"]) for part in parts if "name" in part):
                return str(names[0][1])
        return ""

    def _pack_relation(
        self, name: str, relation: str, rank: NDArray[np.uint32], packed: PackedGraph, digest: hashlib.blake2b
    ) -> None:
        edges = np.frombuffer(self._edges.pop(relation), dtype=np.uint32).reshape(-1, 2)
        keys = (rank[edges[:, 0]].astype(np.uint64) << np.uint64(32)) | rank[edges[:, 1]]
        del edges
        if relation in self._statement_places:
            unique = np.sort(keys)  # np.unique hashes first, which takes ten times as long
        else:
            keys.sort()
            unique = keys
        unique = unique[np.concatenate([[True], unique[1:] != unique[:-1]])]
        pairs = np.empty((len(unique), 2), dtype="<u4")
        pairs[:, 0], pairs[:, 1] = unique >> np.uint64(32), unique & np.uint64(0xFFFFFFFF)
        digest.update(f"{canonical_json(name)}\n{len(unique)}\n".encode())
        digest.update(pairs.tobytes())
        for start in range(0, len(pairs), PAIRS_PER_BLOB):
            packed.edge_blobs.append(pairs[start : start + PAIRS_PER_BLOB].tobytes())
            packed.pairs.append((name, start // PAIRS_PER_BLOB))
        packed.edges += len(pairs)
        if relation in self._statement_places:
            numbers = np.frombuffer(self._statement_places[relation], dtype=np.uint64).reshape(-1, 2)
            places = np.searchsorted(unique, keys[numbers[:, 0].astype(np.int64)])
            self._pack_statements(name, places, numbers[:, 1], packed, digest)

    def _pack_statements(
        self,
        name: str,
        places: NDArray[np.int64],
        statements: NDArray[np.uint64],
        packed: PackedGraph,
        digest: hashlib.blake2b,
    ) -> None:
        """Pack ``statements``, the properties of the edges at ``places`` among the pairs of the relation."""
        if packed.statement_blobs is None:
            packed.statement_blobs = _BlobFile(self._folder)
        order = np.argsort(places, kind="stable")
        blocks = places[order] // STATEMENTS_PER_BLOB
        for block in np.unique(blocks).tolist():
            inside = order[np.searchsorted(blocks, block) : np.searchsorted(blocks, block, side="right")]
            by_place: dict[int, set[bytes]] = {}
            for number in inside.tolist():
                texts = by_place.setdefault(int(places[number]), set())
                texts.add(self._statements[int(statements[number])])
            lines = [b"[%d,[%s]]" % (place, b",".join(sorted(texts))) for place, texts in by_place.items()]
            for line in lines:
                digest.update(line + b"\n")
            packed.statement_blobs.append(compress_lines(lines))
            packed.statements.append((name, block))
