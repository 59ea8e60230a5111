"""Evidence: triples of a graph as hits, hits as the contexts of a prompt, and the places of nodes in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from clew.core.errors import NotFound
from clew.core.protocols import Prompt, PropertyGraph, Snapshot
from clew.core.types import ENTITY, TRIPLE, Entity, Hit, Node, Quote

#: The suffix of a file name; "St. Louis" has none.
_ENDING = re.compile(r"\.\w{1,8}$")


def describe_place(node: Node) -> str:
    """Return the place of a node in words: ``report.pdf, page 3, Results > Costs``; of a triple or entity, its
    graph."""
    if node.kind in {TRIPLE, ENTITY}:
        return f"graph {node.document_name}"
    parts = [node.document_name]
    if node.page is not None:
        parts.append(f"page {node.page}")
    if node.headings:
        parts.append(" > ".join(node.headings))
    return ", ".join(parts)


def numbered_contexts(hits: Sequence[Hit]) -> list[str]:
    """Return hits as numbered sources, each with its place."""
    return [f"[{n}] {describe_place(hit.node)}\n{hit.node.text}" for n, hit in enumerate(hits, 1)]


def make_passages_optional(prompt: Prompt, passages: Sequence[str], separator: str = "\n\n") -> Prompt:
    """Return a prompt whose passages, shown divided by ``separator``, may be left out one by one where it is too
    long for the model: the last, least relevant, first. The first one stays."""
    parts = [separator + passage for passage in reversed(passages[1:])]
    return replace(prompt, optional=(*prompt.optional, *parts))


def take_fitting(hits: Sequence[Hit], characters: int) -> list[Hit]:
    """Return the first hits whose texts together have at most ``characters``; at least the first hit."""
    fitting: list[Hit] = []
    room = characters
    for hit in hits:
        room -= len(hit.node.text)
        if room < 0 and fitting:
            break
        fitting.append(hit)
    return fitting


def hit_title(hit: Hit) -> str:
    """Return the name of a passage's document without its suffix; of an entity of a graph, its name."""
    if hit.node.kind == ENTITY:
        return hit.node.name
    return _ENDING.sub("", hit.node.document_name) or hit.node.document_name


def titled_contexts(hits: Sequence[Hit]) -> list[str]:
    """Return hits as passages under the titles of their documents, as in the prompts of the papers."""
    return [f"Title: {hit_title(hit)}\n{hit.node.text}" for hit in hits]


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
