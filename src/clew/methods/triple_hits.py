"""Triples of a graph as evidence: hits like any other, shown and quoted as passages are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clew.core.errors import NotFound
from clew.core.protocols import PropertyGraph, Snapshot
from clew.core.types import TRIPLE, Entity, Hit, Node, Quote

if TYPE_CHECKING:
    pass


def triple_hit(
    graph: str, head: Entity, relation: str, tail: str, tail_id: str = "", score: float = 1.0
) -> Hit:
    """Return a triple as a hit. ``tail`` is its words; ``tail_id`` "" for the value of a property."""
    id = f"{head.id} >> {relation} >> {tail_id.removeprefix(f'{graph}:') or tail}"
    text = f"{head.name} >> {relation} >> {tail}"
    node = Node(id, TRIPLE, text, graph, graph, 0, None, relation, 0, None, (), (0, len(text)))
    return Hit(node, score, (id,))


def quote_triples(hits: Sequence[Hit]) -> tuple[Quote, ...]:
    """Return the whole text of each triple as a quote: what it says, it says with all its words."""
    triples = (hit for hit in hits if hit.node.kind == TRIPLE)
    return tuple(Quote(hit.node.id, hit.node.text, (0, len(hit.node.text))) for hit in triples)


def source_passages(
    snapshot: Snapshot, graph: PropertyGraph, edge: tuple[int, str, int], score: float
) -> tuple[Hit, ...]:
    """Return the passages that an edge (head, relation, tail) was extracted from, where they are in this base."""
    found: list[Hit] = []
    statements = graph.edge_properties(*edge)
    for id in dict.fromkeys(str(one["passage"]) for one in statements if "passage" in one):
        try:
            (node,) = snapshot.nodes(snapshot.rows([id]))
        except NotFound:  # an extraction that somebody else made, of texts that are not here
            continue
        found.append(Hit(node, score, (id,)))
    return tuple(found)
