"""Triples of a graph as evidence: hits that are shown and quoted as passages are."""

from __future__ import annotations

from collections.abc import Sequence

from clew.core.errors import NotFound
from clew.core.protocols import PropertyGraph, Snapshot
from clew.core.types import TRIPLE, Entity, Hit, Node, Quote


def triple_hit(
    graph: str, head: Entity, relation: str, tail: str, tail_id: str = "", score: float = 1.0
) -> Hit:
    """Return a triple as a hit. ``tail`` is the name of its tail; ``tail_id`` is "" for the value of a property."""
    id = f"{head.id} >> {relation} >> {tail_id.removeprefix(f'{graph}:') or tail}"
    text = f"{head.name} >> {relation} >> {tail}"
    node = Node(id, TRIPLE, text, graph, graph, 0, None, relation, 0, None, (), (0, len(text)))
    return Hit(node, score, (id,))


def quote_triples(hits: Sequence[Hit]) -> tuple[Quote, ...]:
    """Return for each hit that is a triple its whole text as a quote."""
    triples = (hit for hit in hits if hit.node.kind == TRIPLE)
    return tuple(Quote(hit.node.id, hit.node.text, (0, len(hit.node.text))) for hit in triples)


def source_passages(
    snapshot: Snapshot, graph: PropertyGraph, edge: tuple[int, str, int], score: float
) -> tuple[Hit, ...]:
    """Return the passages of this base that an edge (head, relation, tail) was extracted from."""
    passages: list[Hit] = []
    statements = graph.edge_properties(*edge)
    for id in dict.fromkeys(str(each["passage"]) for each in statements if "passage" in each):
        try:
            (node,) = snapshot.nodes(snapshot.rows([id]))
        except NotFound:  # the graph was extracted from documents of another base
            continue
        passages.append(Hit(node, score, (id,)))
    return tuple(passages)
