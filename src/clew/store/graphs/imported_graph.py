"""The properties of a graph's nodes, described from their columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import run_offsets
from clew.core.errors import NotFound, unknown_name_error
from clew.core.protocols import PropertyColumn
from clew.core.text import fold_name, hash_term
from clew.core.types import Entity, Property, Relation
from clew.store.database import Database
from clew.store.graphs import tables as truth
from clew.store.graphs.arrays import DirectedEdges, GraphArrays
from clew.store.graphs.node_index import NodeFolder, StoredNodeVectors, node_word_postings
from clew.store.graphs.packing import StoredGraph
from clew.store.graphs.spelling_index import SpellingIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Mask, Rows
    from clew.core.protocols import Encoder, NodeTexts, Postings, ProgressCallback


@dataclass(frozen=True, slots=True)
class RowTypes:
    """The types of every row: those of row n are ``codes[starts[n]:starts[n + 1]]``, as places in ``names``."""

    names: tuple[str, ...]
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]

    @classmethod
    def from_arrays(cls, opened: GraphArrays, size: int) -> RowTypes:
        """Turn round the arrays that have the rows of every type."""
        starts: Any = opened.arrays["types.starts"]
        rows: Any = opened.arrays["types.rows"]
        codes = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
        order = np.argsort(rows, kind="stable")
        names = tuple(opened.manifest["types"])
        return cls(names, run_offsets(np.bincount(rows, minlength=size)), codes[order])

    def describe_column(self, column: PropertyColumn) -> Property:
        """Return what a column holds; its example is in the middle, where it is no odd beginning."""
        rows = column.rows.astype(np.int64)
        starts = self.starts[rows]
        sizes = self.starts[rows + 1] - starts
        offsets = run_offsets(sizes)
        places = np.repeat(starts - offsets[:-1], sizes) + np.arange(int(offsets[-1]))
        counts = np.bincount(self.codes[places], minlength=len(self.names))
        return Property(
            len(rows),
            int(np.count_nonzero(~np.isnan(column.numbers))),
            {name: int(count) for name, count in zip(self.names, counts, strict=True) if count},
            int(rows[len(rows) // 2]),
        )


#: Types whose nodes are kept as one flag for each row.
_MARKED = 32


class ImportedGraph:
    """:class:`clew.core.protocols.PropertyGraph` of a graph in a base. Rows are in order of ids, so that a tie
    broken by
    row is one broken by id."""

    is_mounted = False

    def __init__(
        self, database: Database, stored: StoredGraph, opened: GraphArrays, place: NodeFolder
    ) -> None:
        self._database, self._stored, self._opened, self._place = database, stored, opened, place
        self.name = stored.name
        self.size = stored.nodes
        self._ids: Any = opened.arrays["ids"]
        self._starts: Any = opened.arrays["ids.starts"]
        self._relations = {name: number for number, name in enumerate(opened.manifest["relations"])}
        self._types = {name: number for number, name in enumerate(opened.manifest["types"])}
        self._directions: dict[tuple[str | None, bool], DirectedEdges] = {}
        self._described: dict[str, Relation] | None = None
        self._properties: dict[str, Property] | None = None
        self._marked: dict[int, Mask] = {}
        self._vectors: dict[tuple[str, str], StoredNodeVectors] = {}
        self._words: dict[str, Postings] = {}

    def types(self) -> Mapping[str, int]:
        """Return the node types, with how many nodes have each."""
        starts: Any = self._opened.arrays["types.starts"]
        return {name: int(starts[number + 1] - starts[number]) for name, number in self._types.items()}

    def relations(self) -> Mapping[str, Relation]:
        """Return the relations by name, with their numbers of edges, types of ends, and examples."""
        if self._described is None:  # made once: a graph may have thousands, and linkers ask for each name
            self._described = {
                name: Relation(
                    kept["edges"],
                    kept["head_types"],
                    kept["tail_types"],
                    tuple((head, tail) for head, tail in kept["examples"]),
                    self._stored.relations.get(name, ""),
                )
                for name, kept in self._opened.manifest["relations"].items()
            }
        return self._described

    def rows(self, ids: Sequence[str]) -> Rows:
        """Return the row of each id. Raises NotFound."""
        return np.array([self._row(id) for id in ids], dtype=np.int64)

    def _row(self, id: str) -> int:
        graph, _, external = id.partition(":")
        wanted = external.encode("utf-8", "surrogatepass")
        row = bisect_left(range(self.size), wanted, key=self._id)
        if graph != self.name or row == self.size or self._id(row) != wanted:
            raise NotFound(
                f"no node '{id}' in the graph '{self.name}'",
                f"Ids are {self.name}:ID; by name: clew graph show {self.name} NAME",
            )
        return row

    def _id(self, row: int) -> bytes:
        found: bytes = self._ids[self._starts[row] : self._starts[row + 1]].tobytes()
        return found

    def ids(self, rows: Rows) -> list[str]:
        """Return the id of each row."""
        return [f"{self.name}:{self._id(row).decode()}" for row in np.asarray(rows).tolist()]

    def entities(self, rows: Rows) -> list[Entity]:
        """Return the nodes of ``rows``, in that order. Raises NotFound where the graph was replaced meanwhile."""
        with self._database.read_transaction() as connection:
            return truth.read_entities(connection, self._current(connection), np.asarray(rows).tolist())

    def _current(self, connection: Any) -> StoredGraph:
        found = {one.name: one for one in truth.read_graphs(connection)}.get(self.name)
        if found is None or found.digest != self._stored.digest:
            raise NotFound(f"the graph '{self.name}' was removed or replaced a moment ago", "Ask again")
        return found

    def rows_of_type(self, type: str) -> Rows:
        """Return the rows of a type, ascending."""
        number = self._types.get(type)
        if number is None:
            return np.empty(0, dtype=np.int64)
        starts: Any = self._opened.arrays["types.starts"]
        return self._opened.arrays["types.rows"][starts[number] : starts[number + 1]].astype(np.int64)

    def has_type(self, rows: Rows, type: str) -> Mask:
        """Return which of ``rows`` have a type, (n,)."""
        number = self._types.get(type)
        if number is None:
            return np.zeros(len(rows), dtype=np.bool_)
        if number not in self._marked:
            starts: Any = self._opened.arrays["types.starts"]
            mask = np.zeros(self.size, dtype=np.bool_)
            mask[self._opened.arrays["types.rows"][starts[number] : starts[number + 1]]] = True
            while len(self._marked) >= _MARKED:
                self._marked.pop(next(iter(self._marked)), None)
            self._marked[number] = mask
            return mask[rows]
        return self._marked[number][rows]

    def properties(self) -> Mapping[str, Property]:
        """Return the properties that nodes have, by name, in the order of names."""
        if self._properties is None:  # made once: it looks at every value
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
        at, count, byte, bytes = opened.manifest["columns"].get(property, (0, 0, 0, 0))
        first = at + numbers.get(property, 0)  # each property before has one start more than values
        return PropertyColumn(
            opened.arrays["columns.rows"][at : at + count],  # type: ignore[arg-type]
            opened.arrays["columns.numbers"][at : at + count],  # type: ignore[arg-type]
            opened.arrays["columns.texts"][byte : byte + bytes],  # type: ignore[arg-type]
            opened.arrays["columns.starts"][first : first + count + 1],  # type: ignore[arg-type]
        )

    def find_by_name(self, name: str) -> Rows:
        """Return the rows with this name or alias, ascending."""
        hashes: Any = self._opened.arrays["names.hashes"]
        wanted = np.uint64(hash_term(fold_name(name)))
        place = int(np.searchsorted(hashes, wanted))
        if place == len(hashes) or hashes[place] != wanted:
            return np.empty(0, dtype=np.int64)
        return self._owned(np.array([place], dtype=np.int64))[1]

    def _owned(self, places: Rows) -> tuple[NDArray[np.int64], Rows]:
        """Return whose the names at ``places`` are: how many rows have each, and the rows, ascending for each."""
        owners: Any = self._opened.arrays["names.owners"]
        starts, sizes = owners[places], owners[places + 1] - owners[places]
        at = np.repeat(starts - run_offsets(sizes)[:-1], sizes) + np.arange(int(sizes.sum()))
        return sizes, self._opened.arrays["names.rows"][at].astype(np.int64)

    def find_similar_names(self, name: str, k: int) -> tuple[Rows, Floats]:
        """Return the rows whose name or alias is most like ``name``, at most ``k``, best first, with their likeness;
        ties in the order of ids."""
        places, alike = SpellingIndex(self._opened.arrays).find_similar(name)
        sizes, rows = self._owned(places)
        # What is spelled with common grams alone, or is longer than what is kept, is found by its hash.
        exact = self.find_by_name(name)
        rows = np.concatenate([exact, rows])
        alike = np.concatenate([np.ones(len(exact)), np.repeat(np.minimum(alike, 0.99), sizes)])
        order = np.lexsort((rows, -alike))
        _, firsts = np.unique(rows[order], return_index=True)
        best = order[np.sort(firsts)[:k]]
        return rows[best], alike[best]

    def neighbours(
        self, rows: Rows, relation: str | None, inverse: bool = False
    ) -> tuple[NDArray[np.int64], Rows]:
        """Return the tails of ``rows`` (with ``inverse``: the heads): offsets (n + 1), rows ascending for each;
        ``relation`` None: along any."""
        return self._direction(relation, inverse).neighbours(np.asarray(rows, dtype=np.int64))

    def adjacency(self, relation: str | None, inverse: bool = False) -> DirectedEdges:
        """Return the edges of a relation (None: of any) as arrays."""
        return self._direction(relation, inverse)

    def _direction(self, relation: str | None, inverse: bool) -> DirectedEdges:
        found = self._directions.get((relation, inverse))
        if found is None:
            if relation is not None and relation not in self._relations:
                raise unknown_name_error(f"relation in the graph '{self.name}'", relation, self._relations)
            number = None if relation is None else self._relations[relation]
            found = self._directions[relation, inverse] = self._opened.edges(number, inverse)
        return found

    def relations_at(self, rows: Rows) -> list[str]:
        """Return the relations that have an edge at one of ``rows``, at either end, sorted by name."""
        wanted = np.asarray(rows, dtype=np.int64)
        names, found = list(self._relations), set[int]()
        for way in ("out", "in"):
            places = np.array(self._opened.manifest["places"][way], dtype=np.int64).reshape(-1, 6)
            sparse = np.flatnonzero(places[:, 1] > 0)
            at = np.flatnonzero(np.isin(self._opened.arrays[f"{way}.heads"], wanted.astype(np.uint32)))
            found.update(sparse[np.searchsorted(places[sparse, 0], at, side="right") - 1].tolist())
            for number in np.flatnonzero(places[:, 1] < 0).tolist():
                starts, ends = self._direction(names[number], way == "in").bounds(wanted)
                found.update({number} if (ends > starts).any() else ())
        return sorted(names[number] for number in found)

    def edge_properties(self, head: int, relation: str, tail: int) -> Sequence[Mapping[str, Any]]:
        """Return the properties of an edge, one mapping for each time that it was given with any."""
        one = self._direction(relation, inverse=False)
        starts, ends = one.bounds(np.array([head], dtype=np.int64))
        place = int(starts[0] + np.searchsorted(one.tails[starts[0] : ends[0]], np.uint32(tail)))
        if place >= ends[0] or one.tails[place] != tail:
            return []
        with self._database.read_transaction() as connection:
            return truth.read_edge_properties(connection, self._current(connection), relation, place)

    # What is kept of the nodes' texts

    def answer_types(self) -> Sequence[str]:
        """Return the types of the nodes that may answer a question; none where any may."""
        return self._stored.answer_types

    def node_vectors(self, encoder: Encoder, what: str) -> StoredNodeVectors:
        """Return the vectors that ``encoder`` made, or is to make, of the texts that ``what`` names."""
        found = self._vectors.get((encoder.name, what))
        if found is None or found.encoder is not encoder:
            found = self._vectors[encoder.name, what] = StoredNodeVectors(
                self._place, encoder, what, self.size
            )
        return found

    def node_postings(
        self, what: str, texts: NodeTexts | None = None, progress: ProgressCallback | None = None
    ) -> Postings | None:
        """Return the postings of the texts that ``what`` names; made of ``texts`` where there are none."""
        found = self._words.get(what)
        if found is None:
            found = node_word_postings(self._place, what, self.size, texts, progress)
            if found is not None:  # what is summed over all postings is summed once
                self._words[what] = found
        return found


# MERGED: A graph as the rest of clew sees it: the arrays for structure, the truth for what is shown.
