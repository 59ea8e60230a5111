"""Small real graphs for the tests of linking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from clew.core.protocols import PropertyGraph
from clew.store.store import Store


def graph_of(
    base: Store, triples: Iterable[Sequence[str]], name: str = "g", **nodes: dict[str, Any]
) -> PropertyGraph:
    """Store triples, and what is said of nodes by id, and return the graph as it is opened."""
    builder = base.graphs.create_builder(name)
    for id, value in nodes.items():
        builder.add_node(id, **value)
    for head, relation, tail in triples:
        builder.add_edge(head, relation, tail)
    base.graphs.store_graph(builder, [])
    return base.snapshot().graph(name)
