"""From what a reader gives, in whatever order, to a packed graph that is a function of its content alone.

Nodes are staged in a temporary file that has no name, so that a process that is killed leaves nothing behind; edges
as pairs of uint32 in memory, 8 bytes each. What is packed is written to a second such file, so that the transaction
that stores it only copies.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from clew.core.text import iri_label
from clew.store.graphs.packing import (
    NODES_PER_BLOB,
    PAIRS_PER_BLOB,
    STATEMENTS_PER_BLOB,
    canonical_json,
    compress_lines,
    merge_node_parts,
    node_fields,
    split_batches,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: How the IRI of a Wikidata property in a statement becomes that of the property itself, which has the label.
_WIKIDATA = ("http://www.wikidata.org/prop/direct/", "http://www.wikidata.org/entity/")
_TICK = 50_000


class _File:
    """Bytes appended one after the other to a temporary file, and read back by number."""

    def __init__(self, folder: Path) -> None:
        self._file: IO[bytes] = TemporaryFile(dir=folder)  # noqa: SIM115 - closed by close()
        self._map: mmap | None = None
        self.ends = array("Q", [0])

    def append(self, content: bytes) -> None:
        self._file.write(content)
        self.ends.append(self.ends[-1] + len(content))

    def __getitem__(self, number: int) -> bytes:
        start, end = self.ends[number], self.ends[number + 1]
        if self._map is None or len(self._map) < end:
            self._file.flush()
            self._map = mmap(self._file.fileno(), 0, access=ACCESS_READ)
        return self._map[start:end]

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
    """A graph ready to be stored. ``pairs`` and ``statements`` say of what relation and number each blob is."""

    digest: str
    nodes: int
    edges: int
    relations: dict[str, str]
    node_blobs: _File
    edge_blobs: _File
    pairs: list[tuple[str, int]] = field(default_factory=list)
    statement_blobs: _File | None = None
    statements: list[tuple[str, int]] = field(default_factory=list)

    def close(self) -> None:
        """Forget the temporary files."""
        for one in (self.node_blobs, self.edge_blobs, self.statement_blobs):
            if one is not None:
                one.close()


class GraphBuilder:
    """:class:`clew.core.protocols.GraphSink`. ``iris``: ids are IRIs, so that nodes may be given in parts, and
    what has no
    name of its own is called by the readable part of its IRI."""

    def __init__(self, name: str, folder: Path, *, iris: bool = False) -> None:
        self.name = name
        self._folder, self._iris = folder, iris
        self._numbers: dict[str, int] = {}
        self._edges: dict[str, array[int]] = {}
        self._parts = _File(folder)
        self._owners = array("I")
        self._described = bytearray()
        self._keys: set[str] = set()  # IRIs of properties and types
        self._said = _File(folder)
        self._said_at: dict[str, array[int]] = {}  # relation -> (number of its edge, number in _said), flat

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
        """Take (part of) a node."""
        number = self._number(id)
        if number >= len(self._described):
            self._described.extend(bytes(number - len(self._described) + 1))
        self._described[number] = 1
        part = node_fields(id, types, name, aliases, text, properties or {})
        if self._iris:
            self._keys.update(part.get("properties", ()), part.get("types", ()))
            if name:
                part |= {"name": name, "rank": rank}
        self._parts.append(canonical_json(part).encode())
        self._owners.append(number)

    def has_node(self, id: str) -> bool:
        """Return whether :meth:`node` was called for this id."""
        number = self._numbers.get(id)
        return number is not None and number < len(self._described) and self._described[number] > 0

    def count_undescribed(self) -> int:
        """Return how many nodes edges alone name, where others are described; 0 for RDF, where that says nothing."""
        described = sum(self._described)
        return len(self._numbers) - described if described and not self._iris else 0

    def add_edge(
        self, head: str, relation: str, tail: str, properties: Mapping[str, Any] | None = None
    ) -> None:
        """Take an edge."""
        pairs = self._edges.get(relation)
        if pairs is None:
            pairs = self._edges[relation] = array("I")
        numbers = self._numbers
        pairs.append(numbers.setdefault(head, len(numbers)))
        pairs.append(numbers.setdefault(tail, len(numbers)))
        if properties:
            at = self._said_at.setdefault(relation, array("Q"))
            at.extend((len(pairs) // 2 - 1, len(self._said)))
            self._said.append(canonical_json(properties).encode())

    def _number(self, id: str) -> int:
        return self._numbers.setdefault(id, len(self._numbers))

    def close(self) -> None:
        """Forget what was staged."""
        self._parts.close()
        self._said.close()

    # Packing

    def pack(self, progress: Callable[[int, int], None] | None = None) -> PackedGraph:
        """Return the graph, packed. The builder is used up."""
        tick = progress or (lambda done, total: None)
        ids = list(self._numbers)
        order = sorted(range(len(ids)), key=ids.__getitem__)
        rank = np.empty(len(ids), dtype=np.uint32)
        rank[order] = np.arange(len(ids), dtype=np.uint32)
        names = self._names(self._grouped()) if self._iris else {}
        made = hashlib.blake2b(digest_size=16)
        nodes, edges = _File(self._folder), _File(self._folder)
        relations = {names.get(one, one): one for one in self._edges}
        packed = PackedGraph("", len(ids), 0, {k: v for k, v in relations.items() if k != v}, nodes, edges)
        made.update(f"{len(ids)}\n{canonical_json(packed.relations)}\n".encode())
        for batch in split_batches(self._lines(ids, order, names, tick), NODES_PER_BLOB):
            for line in batch:
                made.update(line + b"\n")
            nodes.append(compress_lines(batch))
        self._numbers.clear()
        for relation in sorted(relations):
            self._pack_relation(relation, relations[relation], rank, packed, made)
        packed.digest = made.hexdigest()
        return packed

    def _grouped(self) -> Callable[[int], Iterable[int]]:
        """Return what gives the parts of a node, by its number."""
        owners = np.frombuffer(self._owners, dtype=np.uint32)
        by_owner = np.argsort(owners, kind="stable")
        starts = np.searchsorted(owners[by_owner], np.arange(len(self._numbers) + 1))
        return lambda number: by_owner[starts[number] : starts[number + 1]].tolist()

    def _lines(
        self, ids: list[str], order: list[int], names: Mapping[str, str], tick: Callable[[int, int], None]
    ) -> Iterator[bytes]:
        parts_of = self._grouped()
        for done, number in enumerate(order):
            if not done % _TICK:
                tick(done, len(order))
            id, parts = ids[number], list(parts_of(number))
            if self._iris:
                given = [json.loads(self._parts[part]) for part in parts]
                yield canonical_json(merge_node_parts(id, given, iri_label(id), names)).encode()
            elif not parts:
                yield f'{{"id":{canonical_json(id)}}}'.encode()
            elif len(parts) == 1:
                yield self._parts[parts[0]]
            else:
                given = [json.loads(self._parts[part]) for part in parts]
                yield canonical_json(merge_node_parts(id, given, id, {})).encode()
        tick(len(order), len(order))

    def _names(self, parts_of: Callable[[int], Iterable[int]]) -> dict[str, str]:
        """Return what each property and type is called: by its label, else by the readable part of its IRI;
        by the IRI where two would be called the same."""
        properties = sorted({*self._edges, *self._keys})
        wanted = [self._label(one, parts_of) or iri_label(one) for one in properties]
        times = Counter(wanted)
        return {one: name if times[name] == 1 else one for one, name in zip(properties, wanted, strict=True)}

    def _label(self, iri: str, parts_of: Callable[[int], Iterable[int]]) -> str:
        for one in dict.fromkeys((iri, iri.replace(*_WIKIDATA))):
            number = self._numbers.get(one)
            parts = [] if number is None else [json.loads(self._parts[part]) for part in parts_of(number)]
            if named := sorted((part.get("rank", 0), part["name"]) for part in parts if "name" in part):
                return str(named[0][1])
        return ""

    def _pack_relation(
        self, name: str, relation: str, rank: NDArray[np.uint32], packed: PackedGraph, made: hashlib.blake2b
    ) -> None:
        given = np.frombuffer(self._edges.pop(relation), dtype=np.uint32).reshape(-1, 2)
        keys = (rank[given[:, 0]].astype(np.uint64) << np.uint64(32)) | rank[given[:, 1]]
        del given
        unique = np.sort(keys)  # and not np.unique, which hashes first: ten times as long
        unique = unique[np.concatenate([[True], unique[1:] != unique[:-1]])]
        pairs = np.empty((len(unique), 2), dtype="<u4")
        pairs[:, 0], pairs[:, 1] = unique >> np.uint64(32), unique & np.uint64(0xFFFFFFFF)
        made.update(f"{canonical_json(name)}\n{len(unique)}\n".encode())
        made.update(pairs.tobytes())
        for start in range(0, len(pairs), PAIRS_PER_BLOB):
            packed.edge_blobs.append(pairs[start : start + PAIRS_PER_BLOB].tobytes())
            packed.pairs.append((name, start // PAIRS_PER_BLOB))
        packed.edges += len(pairs)
        if relation in self._said_at:
            at = np.frombuffer(self._said_at[relation], dtype=np.uint64).reshape(-1, 2)
            places = np.searchsorted(unique, keys[at[:, 0].astype(np.int64)])
            self._pack_statements(name, places, at[:, 1], packed, made)

    def _pack_statements(
        self,
        name: str,
        places: NDArray[np.int64],
        said: NDArray[np.uint64],
        packed: PackedGraph,
        made: hashlib.blake2b,
    ) -> None:
        """Store the properties of the edges at ``places`` among the pairs of the relation."""
        if packed.statement_blobs is None:
            packed.statement_blobs = _File(self._folder)
        order = np.argsort(places, kind="stable")
        blocks = places[order] // STATEMENTS_PER_BLOB
        for block in np.unique(blocks).tolist():
            inside = order[np.searchsorted(blocks, block) : np.searchsorted(blocks, block, side="right")]
            by_place: dict[int, set[bytes]] = {}
            for one in inside.tolist():
                by_place.setdefault(int(places[one]), set()).add(self._said[int(said[one])])
            found = [b"[%d,[%s]]" % (place, b",".join(sorted(texts))) for place, texts in by_place.items()]
            for line in found:
                made.update(line + b"\n")
            packed.statement_blobs.append(compress_lines(found))
            packed.statements.append((name, block))
