"""Hits as the numbered contexts of a prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clew.core.types import ENTITY, TRIPLE, Hit, Node

#: The ending of a file's name; in "St. Louis" there is none.
_ENDING = re.compile(r"\.\w{1,8}$")


def describe_place(node: Node) -> str:
    """Say where a node stands: ``report.pdf, page 3, Results > Costs``; of a triple or an entity, in which graph."""
    if node.kind in {TRIPLE, ENTITY}:
        return f"graph {node.document_name}"
    parts = [node.document_name]
    if node.page is not None:
        parts.append(f"page {node.page}")
    if node.headings:
        parts.append(" > ".join(node.headings))
    return ", ".join(parts)


def numbered_contexts(hits: Sequence[Hit]) -> str:
    """Return hits as numbered sources with their place, so that what surrounds a passage is not lost."""
    return "\n\n".join(f"[{n}] {describe_place(hit.node)}\n{hit.node.text}" for n, hit in enumerate(hits, 1))


def take_fitting(hits: Sequence[Hit], characters: int) -> list[Hit]:
    """Return the first hits whose texts together fit; the first always does."""
    taken: list[Hit] = []
    left = characters
    for hit in hits:
        left -= len(hit.node.text)
        if left < 0 and taken:
            break
        taken.append(hit)
    return taken


def hit_title(hit: Hit) -> str:
    """Return what a passage's document is called: its file name without the ending, or the title that it has; of an
    entity of a graph, its name."""
    if hit.node.kind == ENTITY:
        return hit.node.name
    return _ENDING.sub("", hit.node.document_name) or hit.node.document_name


def titled_contexts(hits: Sequence[Hit]) -> str:
    """Return hits as passages under the titles of their documents, as the prompts of the papers have them."""
    return "\n\n".join(f"Title: {hit_title(hit)}\n{hit.node.text}" for hit in hits)
