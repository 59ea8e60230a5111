"""A graph as dictionaries: what an imported one must be equal to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clew.core.protocols import GraphSink, PropertyGraph
from clew.core.text import fold_name


class Twin:
    """:class:`clew.core.protocols.GraphSink` of nodes and edges in dictionaries and sets, by external id."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.edges: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}

    def add_node(self, id: str, *, rank: int = 0, **said: Any) -> None:
        self.nodes[id] = said

    def add_edge(
        self, head: str, relation: str, tail: str, properties: Mapping[str, Any] | None = None
    ) -> None:
        for id in (head, tail):
            self.nodes.setdefault(id, {})
        said = self.edges.setdefault((head, relation, tail), [])
        if properties and properties not in said:
            said.append(properties)

    def has_node(self, id: str) -> bool:
        return bool(self.nodes.get(id))

    def give(self, sink: GraphSink, order: Sequence[int] | None = None) -> None:
        """Give everything to another sink, edges and nodes in the ``order`` of their places."""
        calls: list[Any] = [
            lambda id=id, said=said: sink.add_node(id, **said) for id, said in self.nodes.items()
        ]
        for triple, several in self.edges.items():
            for properties in several or [None]:
                calls.append(lambda t=triple, p=properties: sink.add_edge(*t, p))  # type: ignore[call-arg]
        for place in order or range(len(calls)):
            calls[place]()

    def size(self) -> int:
        """How many calls :meth:`give` makes."""
        return len(self.nodes) + sum(max(len(one), 1) for one in self.edges.values())


def assert_equal(graph: PropertyGraph, twin: Twin) -> None:
    """Check every method of ``graph`` against the dictionaries."""
    ids = sorted(twin.nodes)
    full = [f"{graph.name}:{id}" for id in ids]
    every = np.arange(graph.size)
    assert graph.ids(every) == full
    assert graph.rows(full).tolist() == every.tolist()
    for id, entity in zip(ids, graph.entities(every), strict=True):
        said = twin.nodes[id]
        types = [one for one in dict.fromkeys(said.get("types", ())) if one]
        name = said.get("name") or id
        assert (entity.id, entity.name, entity.text) == (f"{graph.name}:{id}", name, said.get("text", ""))
        assert [one for one in (entity.type, *entity.more_types) if one] == types
        assert set(entity.aliases) == {one for one in said.get("aliases", ()) if one} - {said.get("name")}
        properties = {k: v for k, v in (said.get("properties") or {}).items() if v is not None}
        assert entity.properties == {k: tuple(v) if isinstance(v, list) else v for k, v in properties.items()}
    _assert_types(graph, twin, ids)
    names: dict[str, set[int]] = {}
    for row, id in enumerate(ids):
        said = twin.nodes[id]
        for name in (said.get("name") or id, *(one for one in said.get("aliases", ()) if one)):
            names.setdefault(fold_name(name), set()).add(row)
    for name, rows in names.items():
        assert graph.find_by_name(name.upper()).tolist() == sorted(rows) or graph.find_by_name(
            name
        ).tolist() == sorted(rows)
    _assert_edges(graph, twin, ids)


def _assert_types(graph: PropertyGraph, twin: Twin, ids: list[str]) -> None:
    types: dict[str, list[int]] = {}
    for row, id in enumerate(ids):
        for type in {one for one in twin.nodes[id].get("types", ()) if one}:
            types.setdefault(type, []).append(row)
    assert graph.types() == {type: len(rows) for type, rows in types.items()}
    for type, rows in types.items():
        assert graph.rows_of_type(type).tolist() == rows
    assert graph.rows_of_type("no such type").tolist() == []


def _assert_edges(graph: PropertyGraph, twin: Twin, ids: list[str]) -> None:
    row_of = {id: row for row, id in enumerate(ids)}
    relations = {relation for _, relation, _ in twin.edges}
    assert set(graph.relations()) == relations
    backwards = np.arange(graph.size)[::-1]
    assert graph.relations_at(backwards) == sorted(relations)
    for id, row in row_of.items():
        assert graph.relations_at(np.array([row])) == sorted({r for h, r, t in twin.edges if id in (h, t)})
    for relation in relations:
        pairs = sorted((row_of[h], row_of[t]) for h, r, t in twin.edges if r == relation)
        found = graph.relations()[relation]
        assert found.edges == len(pairs)
        for inverse, counted in ((False, found.head_types), (True, found.tail_types)):
            offsets, others = graph.neighbours(backwards, relation, inverse)
            for number, row in enumerate(backwards.tolist()):
                expected = sorted((h if inverse else t) for h, t in pairs if (t if inverse else h) == row)
                assert others[offsets[number] : offsets[number + 1]].tolist() == expected
                one = graph.neighbours(np.array([row]), relation, inverse)
                assert one[0].tolist() == [0, len(expected)] and one[1].tolist() == expected
            types: dict[str, int] = {}
            for pair in pairs:
                for type in {one for one in twin.nodes[ids[pair[inverse]]].get("types", ()) if one}:
                    types[type] = types.get(type, 0) + 1
            assert counted == types
        names = {id: twin.nodes[id].get("name") or id for id in ids}
        assert set(found.examples) <= {(names[ids[h]], names[ids[t]]) for h, t in pairs}
        assert found.examples
    for (head, relation, tail), properties in twin.edges.items():
        said = graph.edge_properties(row_of[head], relation, row_of[tail])
        key = lambda one: sorted((k, repr(v)) for k, v in one.items())  # noqa: E731
        assert sorted(said, key=key) == sorted(properties, key=key)
