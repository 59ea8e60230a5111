"""An imported graph: arrays hold its structure, the database its names and texts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import DirectedEdges, Floats, Mask, Rows, range_indices, run_offsets
from clew.core.errors import NotFound, RemovedMeanwhile, unknown_name_error
from clew.core.protocols import Encoder, NodeTexts, Postings, ProgressCallback, PropertyColumn
from clew.core.text import clean_name, fold_name, hash_term
from clew.core.types import Entity, Property, Relation
from clew.store.database import Database
from clew.store.graphs import tables
from clew.store.graphs.arrays import GraphArrays
from clew.store.graphs.node_index import NodeFolder, StoredNodeVectors, node_word_postings
from clew.store.graphs.spelling_index import SpellingIndex
from clew.store.graphs.tables import StoredGraph


@dataclass(frozen=True, slots=True)
class RowTypes:
    """The types of every row: those of row n are ``codes[starts[n]:starts[n + 1]]``, as positions in ``names``."""

    names: tuple[str, ...]
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]

    @classmethod
    def from_arrays(cls, opened: GraphArrays, size: int) -> RowTypes:
        """Invert the arrays that list the rows of every type."""
        starts: Any = opened.arrays["types.starts"]
        rows: Any = opened.arrays["types.rows"]
        codes = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
        order = np.argsort(rows, kind="stable")
        names = tuple(opened.manifest["types"])
        return cls(names, run_offsets(np.bincount(rows, minlength=size)), codes[order])

    def describe_column(self, column: PropertyColumn) -> Property:
        """Return a summary of a column. Its example is from the middle, since the first values are often odd ones."""
        rows = column.rows.astype(np.int64)
        starts = self.starts[rows]
        places = range_indices(starts, self.starts[rows + 1] - starts)
        counts = np.bincount(self.codes[places], minlength=len(self.names))
        return Property(
            len(rows),
            int(np.count_nonzero(~np.isnan(column.numbers))),
            {name: int(count) for name, count in zip(self.names, counts, strict=True) if count},
            int(rows[len(rows) // 2]),
        )


#: Nodes that are remembered as they were read: a question asks for the same ones several times.
MAX_ENTITIES = 2048
#: Types whose masks, one flag for each row, are cached.
_MAX_MASKS = 32


class ImportedGraph:
    """A :class:`clew.core.protocols.PropertyGraph` that is stored in a base.

    Rows are in order of ids, so a tie broken by row is broken by id.
    """

    is_mounted = False

    def __init__(
        self, database: Database, stored: StoredGraph, opened: GraphArrays, nodes: NodeFolder
    ) -> None:
        self._database, self._stored, self._opened, self._nodes = database, stored, opened, nodes
        self.name = stored.name
        self.size = stored.nodes
        self.digest = stored.digest
        self._ids: Any = opened.arrays["ids"]
        self._starts: Any = opened.arrays["ids.starts"]
        self._relations = {name: number for number, name in enumerate(opened.manifest["relations"])}
        self._types = {name: number for number, name in enumerate(opened.manifest["types"])}
        self._edges: dict[tuple[str | None, bool], DirectedEdges] = {}
        self._relation_infos: dict[str, Relation] | None = None
        self._properties: dict[str, Property] | None = None
        self._entities: dict[int, Entity] = {}
        self._described: frozenset[str] | None = None  # relations with edges that have properties
        self._type_masks: dict[int, Mask] = {}
        self._vectors: dict[tuple[str, str], StoredNodeVectors] = {}
        self._postings: dict[str, Postings] = {}

    def types(self) -> Mapping[str, int]:
        """Return the node types, with how many nodes have each."""
        starts: Any = self._opened.arrays["types.starts"]
        return {name: int(starts[number + 1] - starts[number]) for name, number in self._types.items()}

    def relations(self) -> Mapping[str, Relation]:
        """Return the relations by name, with their numbers of edges, types of ends, and examples."""
        if self._relation_infos is None:  # cached: a graph may have thousands, and linkers ask for each name
            self._relation_infos = {
                name: Relation(
                    info["edges"],
                    info["head_types"],
                    info["tail_types"],
                    tuple((head, tail) for head, tail in info["examples"]),
                    self._stored.relations.get(name, ""),
                )
                for name, info in self._opened.manifest["relations"].items()
            }
        return self._relation_infos

    def rows(self, ids: Sequence[str]) -> Rows:
        """Return the row of each id. Raises NotFound."""
        return np.array([self._row(id) for id in ids], dtype=np.int64)

    def _row(self, id: str) -> int:
        graph, _, external = id.partition(":")
        encoded = external.encode("utf-8", "surrogatepass")
        row = bisect_left(range(self.size), encoded, key=self._id)
        if graph != self.name or row == self.size or self._id(row) != encoded:
            raise NotFound(
                f"no node '{id}' in the graph '{self.name}'",
                f"Ids are {self.name}:ID; by name: clew graph show {self.name} NAME",
            )
        return row

    def _id(self, row: int) -> bytes:
        encoded: bytes = self._ids[self._starts[row] : self._starts[row + 1]].tobytes()
        return encoded

    def ids(self, rows: Rows) -> list[str]:
        """Return the id of each row."""
        return [f"{self.name}:{self._id(row).decode()}" for row in np.asarray(rows).tolist()]

    def entities(self, rows: Rows) -> list[Entity]:
        """Return the nodes of ``rows``, in that order. Raises NotFound where the graph was replaced meanwhile."""
        wanted = np.asarray(rows).tolist()
        known = self._entities
        with self._database.read_transaction() as connection:
            stored = self._current(connection)
            missing = [row for row in dict.fromkeys(wanted) if row not in known]
            read = dict(zip(missing, tables.read_entities(connection, stored, missing), strict=True))
        entities = [read[row] if row in read else known[row] for row in wanted]
        if len(known) + len(read) > MAX_ENTITIES:
            # Replaced, not emptied: another thread may be reading it.
            known = self._entities = {}
        if len(read) <= MAX_ENTITIES:
            known |= read
        return entities

    def _current(self, connection: Any) -> StoredGraph:
        """Return the stored graph. Raises NotFound where it was removed or replaced since this one was opened."""
        if not tables.has_graph(connection, self._stored):
            raise RemovedMeanwhile(
                f"the graph '{self.name}' was removed or replaced a moment ago", "Ask again"
            )
        return self._stored

    def rows_of_type(self, type: str) -> Rows:
        """Return the rows of a type, ascending; none for a type that does not occur."""
        number = self._types.get(type)
        return np.empty(0, dtype=np.int64) if number is None else self._typed_rows(number).astype(np.int64)

    def _typed_rows(self, number: int) -> NDArray[np.uint32]:
        starts: Any = self._opened.arrays["types.starts"]
        rows: Any = self._opened.arrays["types.rows"]
        typed: NDArray[np.uint32] = rows[starts[number] : starts[number + 1]]
        return typed

    def has_type(self, rows: Rows, type: str) -> Mask:
        """Return which of ``rows`` have a type, (n,)."""
        number = self._types.get(type)
        if number is None:
            return np.zeros(len(rows), dtype=np.bool_)
        if number not in self._type_masks:
            mask = np.zeros(self.size, dtype=np.bool_)
            mask[self._typed_rows(number)] = True
            while len(self._type_masks) >= _MAX_MASKS:
                self._type_masks.pop(next(iter(self._type_masks)), None)
            self._type_masks[number] = mask
            return mask[rows]
        return self._type_masks[number][rows]

    def properties(self) -> Mapping[str, Property]:
        """Return the properties of nodes, by name, in the order of names."""
        if self._properties is None:  # cached: it looks at every value
            columns = sorted(self._opened.manifest["columns"])
            types = RowTypes.from_arrays(self._opened, self.size) if columns else None
            self._properties = (
                {name: types.describe_column(self.property_values(name)) for name in columns} if types else {}
            )
        return self._properties

    def property_values(self, property: str) -> PropertyColumn:
        """Return the values of a property."""
        opened = self._opened
        numbers = {name: n for n, name in enumerate(opened.manifest["columns"])}
        at, count, byte, byte_count = opened.manifest["columns"].get(property, (0, 0, 0, 0))
        first = at + numbers.get(property, 0)  # every property before it has one start more than values
        return PropertyColumn(
            opened.arrays["columns.rows"][at : at + count],  # type: ignore[arg-type]
            opened.arrays["columns.numbers"][at : at + count],  # type: ignore[arg-type]
            opened.arrays["columns.texts"][byte : byte + byte_count],  # type: ignore[arg-type]
            opened.arrays["columns.starts"][first : first + count + 1],  # type: ignore[arg-type]
        )

    def find_by_name(self, name: str) -> Rows:
        """Return the rows with this name or alias, ascending."""
        hashes: Any = self._opened.arrays["names.hashes"]
        name_hash = np.uint64(hash_term(fold_name(clean_name(name))))  # as names are stored
        place = int(np.searchsorted(hashes, name_hash))
        if place == len(hashes) or hashes[place] != name_hash:
            return np.empty(0, dtype=np.int64)
        return self._name_owners(np.array([place], dtype=np.int64))[1]

    def _name_owners(self, places: Rows) -> tuple[NDArray[np.int64], Rows]:
        """Return the owners of the names at ``places``: how many rows have each, and the rows, ascending for each."""
        owners: Any = self._opened.arrays["names.owners"]
        starts, sizes = owners[places], owners[places + 1] - owners[places]
        rows = self._opened.arrays["names.rows"][range_indices(starts, sizes)]
        return sizes, rows.astype(np.int64)

    def find_similar_names(self, name: str, k: int) -> tuple[Rows, Floats]:
        """Return at most ``k`` rows with the name or alias most similar to ``name``, best first, and the similarity.

        Ties are in the order of ids.
        """
        places, similarity = SpellingIndex(self._opened.arrays).find_similar(clean_name(name))
        sizes, rows = self._name_owners(places)
        # A name of common grams alone, or longer than the index keeps, is found by its hash.
        exact = self.find_by_name(name)
        rows = np.concatenate([exact, rows])
        similarity = np.concatenate([np.ones(len(exact)), np.repeat(np.minimum(similarity, 0.99), sizes)])
        order = np.lexsort((rows, -similarity))
        _, firsts = np.unique(rows[order], return_index=True)
        best = order[np.sort(firsts)[:k]]
        return rows[best], similarity[best]

    def neighbours(
        self, rows: Rows, relation: str | None, inverse: bool = False
    ) -> tuple[NDArray[np.int64], Rows]:
        """Return the tails of ``rows`` (with ``inverse``: the heads): offsets (n + 1), rows ascending for each.

        ``relation`` None: along any relation.
        """
        return self._directed_edges(relation, inverse).neighbours(np.asarray(rows, dtype=np.int64))

    def adjacency(self, relation: str | None, inverse: bool = False) -> DirectedEdges:
        """Return the edges of a relation (None: of any) as arrays."""
        return self._directed_edges(relation, inverse)

    def _directed_edges(self, relation: str | None, inverse: bool) -> DirectedEdges:
        edges = self._edges.get((relation, inverse))
        if edges is None:
            if relation is not None and relation not in self._relations:
                raise unknown_name_error(f"relation in the graph '{self.name}'", relation, self._relations)
            number = None if relation is None else self._relations[relation]
            edges = self._edges[relation, inverse] = self._opened.edges(number, inverse)
        return edges

    def relations_at(self, rows: Rows) -> list[str]:
        """Return the relations that have an edge at one of ``rows``, at either end, sorted by name."""
        ends = np.asarray(rows, dtype=np.int64)
        names, numbers = list(self._relations), set[int]()
        for direction in ("out", "in"):
            places = np.array(self._opened.manifest["places"][direction], dtype=np.int64).reshape(-1, 6)
            # The heads of all relations that list their heads lie in one array, relation after relation.
            sparse = np.flatnonzero(places[:, 1] > 0)
            heads = np.isin(self._opened.arrays[f"{direction}.heads"], ends.astype(np.uint32))
            owners = np.searchsorted(places[sparse, 0], np.flatnonzero(heads), side="right") - 1
            numbers.update(sparse[owners].tolist())
            for number in np.flatnonzero(places[:, 1] < 0).tolist():
                starts, stops = self._directed_edges(names[number], direction == "in").bounds(ends)
                if (stops > starts).any():
                    numbers.add(number)
        return sorted(names[number] for number in numbers)

    def edge_properties(self, head: int, relation: str, tail: int) -> Sequence[Mapping[str, Any]]:
        """Return the properties of an edge, one mapping for each time that the edge was given with any."""
        if self._described is not None and relation not in self._described:
            return []
        edges = self._directed_edges(relation, inverse=False)
        starts, ends = edges.bounds(np.array([head], dtype=np.int64))
        place = int(starts[0] + np.searchsorted(edges.tails[starts[0] : ends[0]], np.uint32(tail)))
        if place >= ends[0] or edges.tails[place] != tail:
            return []
        with self._database.read_transaction() as connection:
            stored = self._current(connection)
            if self._described is None:
                self._described = tables.relations_with_statements(connection, stored)
            if relation not in self._described:
                return []
            return tables.read_edge_properties(connection, stored, relation, place)

    def answer_types(self) -> Sequence[str]:
        """Return the types of nodes that may answer a question; empty for any."""
        return self._stored.answer_types

    def node_vectors(self, encoder: Encoder, kind: str) -> StoredNodeVectors:
        """Return the vectors of a kind of text; those that are missing can be made by ``encoder``."""
        vectors = self._vectors.get((encoder.name, kind))
        if vectors is None or vectors.encoder is not encoder:
            vectors = StoredNodeVectors(self._nodes, encoder, kind, self.size)
            self._vectors[encoder.name, kind] = vectors
        return vectors

    def node_postings(
        self, kind: str, texts: NodeTexts | None = None, progress: ProgressCallback | None = None
    ) -> Postings | None:
        """Return the postings of a kind of text; where there are none yet, count the words of ``texts``."""
        postings = self._postings.get(kind)
        if postings is None:
            postings = node_word_postings(self._nodes, kind, self.size, texts, progress)
            if postings is not None:  # cached: sums over all postings are computed once
                self._postings[kind] = postings
        return postings
