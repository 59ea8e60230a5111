"""Graphs that are read as one, in which nodes that a confirmed link joins are one node.

A link is confirmed where the graphs themselves say that nodes are the same: both have an identifier that no other
node of their graphs has, or one is declared to be the same as the other (``owl:sameAs``). A name confirms nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import (
    DirectedEdges,
    TextSpans,
    distinct,
    is_member,
    range_indices,
    run_offsets,
    sorted_unique,
    union,
)
from clew.core.errors import UsageError
from clew.core.protocols import PropertyColumn
from clew.core.types import Entity, Property, Relation
from clew.triples.linking.entity_alignment import IdentifierIndex, is_same_as_relation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Mask, Rows
    from clew.core.protocols import Encoder, PropertyGraph, Snapshot

#: Nodes and edges that are joined at most: links are looked for among all nodes.
MOST_JOINED = 200_000
#: Stands between the names of graphs that are read as one, and in no graph's own name.
AND = " + "


class LinkedGraph:
    """A :class:`clew.core.protocols.PropertyGraph` of several, with the types, names, properties and edges of all.

    A node has the id and name that the first graph gives it. Nothing is stored, so nodes have no vectors.
    """

    is_mounted = False

    def __init__(self, graphs: Sequence[PropertyGraph], same: Rows) -> None:
        """Join graphs; ``same`` has for each of their nodes, end to end, the first node that is the same."""
        self.graphs = tuple(graphs)
        self.name = AND.join(graph.name for graph in graphs)
        self._starts = run_offsets(np.array([graph.size for graph in graphs]))
        firsts, self._rows = np.unique(same, return_inverse=True)
        self.size = len(firsts)
        self._nodes = np.argsort(self._rows, kind="stable")
        self._bounds = run_offsets(np.bincount(self._rows))
        self._edges: dict[tuple[str | None, bool], DirectedEdges] = {}
        types = dict.fromkeys(type for graph in graphs for type in graph.types())
        properties = dict.fromkeys(name for graph in graphs for name in graph.properties())
        self._types = {type: self._unite([graph.rows_of_type(type) for graph in graphs]) for type in types}
        self._columns = {name: self._join_columns(name) for name in properties}
        self._relations: dict[str, Relation] = {}
        for name, info in ((name, info) for graph in graphs for name, info in graph.relations().items()):
            tails, heads = (self.adjacency(name, inverse).tails for inverse in (False, True))
            types_of_ends = self._count_types(heads), self._count_types(tails)
            self._relations[name] = Relation(len(tails), *types_of_ends, info.examples, info.id)
        self._properties: dict[str, Property] = {}
        for name, column in self._columns.items():
            numbers, types_of_rows = int((~np.isnan(column.numbers)).sum()), self._count_types(column.rows)
            self._properties[name] = Property(len(column.rows), numbers, types_of_rows, int(column.rows[0]))

    def _joined(self, place: int, rows: NDArray[np.integer[Any]]) -> Rows:
        """Return the rows here of nodes of one graph."""
        joined: Rows = self._rows[self._starts[place] + rows.astype(np.int64)]
        return joined

    def _unite(self, own: Sequence[Rows]) -> Rows:
        return union([self._joined(place, rows) for place, rows in enumerate(own)])

    def _own(self, rows: Rows) -> Iterator[tuple[int, PropertyGraph, Rows]]:
        """Yield the place of each graph, the graph, and its nodes among ``rows``."""
        first = self._bounds[rows]
        nodes = self._nodes[range_indices(first, self._bounds[rows + 1] - first)]
        for place, graph in enumerate(self.graphs):
            start, end = self._starts[place : place + 2]
            yield place, graph, sorted_unique(nodes[(start <= nodes) & (nodes < end)] - start)

    def _count_types(self, rows: NDArray[np.uint32]) -> dict[str, int]:
        counts = {type: int(self.has_type(rows.astype(np.int64), type).sum()) for type in self._types}
        return {type: count for type, count in counts.items() if count}

    def _join_columns(self, property: str) -> PropertyColumn:
        columns = [graph.property_values(property) for graph in self.graphs]
        given = [(place, column) for place, column in enumerate(columns) if column is not None]
        rows = np.concatenate([self._joined(place, column.rows) for place, column in given])
        order = np.argsort(rows, kind="stable")
        numbers = np.concatenate([column.numbers for _, column in given])
        lengths = np.concatenate([np.diff(column.starts) for _, column in given])
        content = np.concatenate([column.texts for _, column in given])
        texts = TextSpans(content, run_offsets(lengths)[:-1], lengths).take(order)
        starts = run_offsets(texts.lengths)
        return PropertyColumn(rows[order].astype(np.uint32), numbers[order], texts.concatenate(), starts)

    def types(self) -> Mapping[str, int]:
        """Return the node types, with the number of nodes of each."""
        return {type: len(rows) for type, rows in self._types.items()}

    def relations(self) -> Mapping[str, Relation]:
        """Return the relations; those of one name are one."""
        return self._relations

    def properties(self) -> Mapping[str, Property]:
        """Return the properties; those of one name are one."""
        return self._properties

    def property_values(self, property: str) -> PropertyColumn:
        """Return all values of a property, none for one that no node has."""
        return self._columns.get(property) or self._join_columns(property)

    def answer_types(self) -> Sequence[str]:
        """Return that any node may answer."""
        return ()

    def rows(self, ids: Sequence[str]) -> Rows:
        """Return the row of each id, which any of the graphs may have given. Raises NotFound."""
        places = {graph.name: place for place, graph in enumerate(self.graphs)}
        own = [(places.get(id.partition(":")[0], 0), id) for id in ids]
        rows = [int(self._joined(place, self.graphs[place].rows([id]))[0]) for place, id in own]
        return np.array(rows, dtype=np.int64)

    def rows_of(self, part: PropertyGraph, rows: Rows) -> Rows:
        """Return the rows here of nodes of one of the graphs, or of some that are read as one, ascending."""
        if isinstance(part, LinkedGraph):
            return sorted_unique(self.rows(part.ids(rows)))
        return sorted_unique(self._joined(self.graphs.index(part), rows))

    def ids(self, rows: Rows) -> list[str]:
        """Return the id of each row."""
        return [entity.id for entity in self.entities(rows)]

    def entities(self, rows: Rows) -> list[Entity]:
        """Return the nodes of ``rows``, in that order."""
        nodes: defaultdict[int, list[Entity]] = defaultdict(list)
        for place, graph, own in self._own(np.asarray(rows, dtype=np.int64)):
            for row, entity in zip(self._joined(place, own).tolist(), graph.entities(own), strict=True):
                nodes[row].append(entity)
        return [_merge_entities(nodes[row]) for row in np.asarray(rows).tolist()]

    def find_by_name(self, name: str) -> Rows:
        """Return the rows with this name or alias, ascending."""
        return self._unite([graph.find_by_name(name) for graph in self.graphs])

    def find_similar_names(self, name: str, k: int) -> tuple[Rows, Floats]:
        """Return at most ``k`` rows with the name most similar to ``name``, best first, and the similarity."""
        alike = [graph.find_similar_names(name, k) for graph in self.graphs]
        rows = np.concatenate([self._joined(place, own) for place, (own, _) in enumerate(alike)])
        similarity = np.concatenate([own for _, own in alike])
        order = np.lexsort((rows, -similarity))
        best = order[np.sort(np.unique(rows[order], return_index=True)[1])[:k]]
        return rows[best], similarity[best]

    def rows_of_type(self, type: str) -> Rows:
        """Return the rows of a type, ascending."""
        return self._types.get(type, np.empty(0, dtype=np.int64))

    def has_type(self, rows: Rows, type: str) -> Mask:
        """Return which of ``rows`` have a type, (n,)."""
        return is_member(rows, self.rows_of_type(type))

    def neighbours(
        self, rows: Rows, relation: str | None, inverse: bool = False
    ) -> tuple[NDArray[np.int64], Rows]:
        """Return the tails of ``rows`` (with ``inverse``: the heads): offsets (n + 1), rows ascending for each."""
        return self.adjacency(relation, inverse).neighbours(np.asarray(rows, dtype=np.int64))

    def adjacency(self, relation: str | None, inverse: bool = False) -> DirectedEdges:
        """Return all edges of a relation (None: of any) as arrays. Raises UsageError for an unknown relation."""
        if (relation, inverse) not in self._edges:
            pairs = []
            for place, graph in enumerate(self.graphs):
                if relation is None or relation in graph.relations():
                    edges = graph.adjacency(relation, inverse)
                    assert edges is not None
                    heads = np.arange(graph.size) if edges.heads is None else edges.heads
                    sources = self._joined(place, np.repeat(heads, np.diff(edges.starts)))
                    pairs.append(sources * self.size + self._joined(place, edges.tails))
            if not pairs:
                raise UsageError(f"no relation '{relation}' in {self.name}")
            heads, tails = np.divmod(distinct(np.concatenate(pairs)), self.size)
            self._edges[relation, inverse] = DirectedEdges.from_pairs(
                heads.astype(np.uint32), tails.astype(np.uint32), self.size
            )
        return self._edges[relation, inverse]

    def relations_at(self, rows: Rows) -> list[str]:
        """Return the relations that have an edge at one of ``rows``, at either end, sorted by name."""
        return sorted({name for _, graph, own in self._own(rows) for name in graph.relations_at(own)})

    def find_edge(self, head: int, relation: str, tail: int) -> tuple[PropertyGraph, tuple[int, str, int]]:
        """Return the first graph that has an edge, and the edge as it is there."""
        ends = zip(self._own(np.array([head])), self._own(np.array([tail])), strict=True)
        for (_, graph, heads), (_, _, tails) in ends:
            for own in heads.tolist() if relation in graph.relations() else ():
                for end in np.intersect1d(graph.neighbours(np.array([own]), relation)[1], tails).tolist():
                    return graph, (own, relation, end)
        raise UsageError(f"no such edge in {self.name}: {relation}")

    def find_owner(self, entity: Entity, property: str) -> tuple[PropertyGraph, Entity]:
        """Return the first graph that gives a node a property, and the node as it is there."""
        own = self._own(self.rows([entity.id]))
        nodes = ((graph, node) for _, graph, rows in own for node in graph.entities(rows))
        return next((each for each in nodes if property in each[1].properties), (self.graphs[0], entity))

    def edge_properties(self, head: int, relation: str, tail: int) -> Sequence[Mapping[str, Any]]:
        """Return the properties of an edge in the first graph that has it."""
        graph, edge = self.find_edge(head, relation, tail)
        return graph.edge_properties(*edge)

    def node_vectors(self, encoder: Encoder, kind: str) -> Any:
        """Raise UsageError."""
        raise UsageError(f"the nodes of {self.name} have no vectors")

    def node_postings(self, kind: str, texts: Any = None, progress: Any = None) -> Any:
        """Raise UsageError."""
        raise UsageError(f"the nodes of {self.name} have no postings")


def _merge_entities(entities: Sequence[Entity]) -> Entity:
    """Return one node of those that several graphs have of it."""
    first, given = entities[0], defaultdict[str, dict[Any, None]](dict)
    for each in entities:
        for name, value in each.properties.items():
            given[name] |= dict.fromkeys(value if isinstance(value, tuple) else (value,))
    types = dict.fromkeys(type for each in entities for type in (each.type, *each.more_types) if type)
    names = dict.fromkeys(name for each in entities for name in (each.name, *each.aliases))
    return Entity(
        first.id,
        next(iter(types), ""),
        first.name,
        tuple(names)[1:],
        next((each.text for each in entities if each.text), ""),
        {name: tuple(values) if len(values) > 1 else next(iter(values)) for name, values in given.items()},
        tuple(types)[1:],
    )


def join_linked(snapshot: Snapshot, graphs: Sequence[PropertyGraph]) -> tuple[LinkedGraph, ...]:
    """Return the graphs that confirmed links join, each group as one; none of mounted graphs, nor where they are not
    :func:`is_joinable`."""
    stored = [graph for graph in graphs if not graph.is_mounted and not isinstance(graph, LinkedGraph)]
    if len(stored) < 2 or not is_joinable(stored):
        return ()
    key = AND.join(graph.name for graph in stored)
    joined: tuple[LinkedGraph, ...] = snapshot.memoize(f"linked/{key}", lambda: _join(snapshot, stored))
    return joined


def is_joinable(graphs: Sequence[PropertyGraph]) -> bool:
    """Return whether graphs have at most :data:`MOST_JOINED` nodes and edges."""
    edges = sum(relation.edges for graph in graphs for relation in graph.relations().values())
    return edges + sum(graph.size for graph in graphs) <= MOST_JOINED


def _join(snapshot: Snapshot, graphs: Sequence[PropertyGraph]) -> tuple[LinkedGraph, ...]:
    starts = run_offsets(np.array([graph.size for graph in graphs]))
    same = np.arange(starts[-1])
    for start, graph in zip(starts, graphs, strict=False):
        for relation in filter(is_same_as_relation, graph.relations()):
            offsets, tails = graph.neighbours(np.arange(graph.size), relation)
            same = _label(same, start + np.repeat(np.arange(graph.size), np.diff(offsets)), start + tails)
    identified = []
    for place, graph in enumerate(graphs):
        index = snapshot.memoize(f"identifiers/{graph.name}", partial(IdentifierIndex, graph))
        hashes, numbers = np.unique(index.hashes, return_inverse=True)
        own = same[starts[place] + index.owners]
        first, last = np.full(len(hashes), len(same)), np.zeros(len(hashes), dtype=np.int64)
        np.minimum.at(first, numbers, own)
        np.maximum.at(last, numbers, own)
        single = first == last  # what several nodes of a graph have identifies none
        identified.append((hashes[single], first[single], np.full(int(single.sum()), place)))
    hashes, nodes, places = map(np.concatenate, zip(*identified, strict=True))
    order = np.argsort(hashes, kind="stable")
    before, after = order[:-1], order[1:]
    linked = hashes[before] == hashes[after]
    same = _label(same, nodes[before][linked], nodes[after][linked])
    groups = _label(np.arange(len(graphs)), places[before][linked], places[after][linked])
    members = (np.flatnonzero(groups == group).tolist() for group in np.unique(groups))
    return tuple(
        LinkedGraph(
            [graphs[place] for place in own],
            np.concatenate([same[starts[place] : starts[place + 1]] for place in own]),
        )
        for own in members
        if len(own) > 1
    )


def _label(labels: Rows, ends: Rows, others: Rows) -> Rows:
    """Return the labels of nodes, each the first that is the same, with further pairs that are the same."""
    while (labels[ends] != labels[others]).any():
        lowest = np.minimum(labels[ends], labels[others])
        joined = labels.copy()
        np.minimum.at(joined, np.concatenate([labels[ends], labels[others]]), np.tile(lowest, 2))
        while (joined != joined[joined]).any():
            joined = joined[joined]
        labels = joined
    return labels
