"""What is indexed of a node: a pure function of its own document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from clew.text import VERSION, names, term_counts, term_hash, title_names, with_headings
from clew.types import DOCUMENT, RETRIEVED, SECTION, TABLE, ParsedNode

#: Changing what is indexed changes this name, and every base rebuilds its segments.
MAKER = f"segments/1 text/{VERSION}"
FIELDS = ("text", "title", "mention")


def field_counts(field: str, node: ParsedNode) -> Counter[int] | None:
    """Return the hashed terms of ``node`` in a field and their counts; None where it has no part in it."""
    if field == "text":
        return term_counts(node.text) if node.kind in RETRIEVED else None
    if field == "title":
        return term_counts(node.name) if node.kind in {DOCUMENT, SECTION, TABLE} else None
    if node.kind == DOCUMENT:
        return Counter(map(term_hash, title_names(node.name)))
    if node.kind in RETRIEVED:
        return Counter({term_hash(name) for name, _, _ in names(node.text)})
    return None


def encoded_texts(nodes: Sequence[ParsedNode]) -> Iterator[tuple[int, str]]:
    """Yield the position of every retrieved node of a document, and the text that stands for it as a vector."""
    title = nodes[0].name
    for position, node in enumerate(nodes):
        if node.kind in RETRIEVED:
            yield position, with_headings(title, _headings(nodes, position), node.text)


def _headings(nodes: Sequence[ParsedNode], position: int) -> list[str]:
    path = []
    parent = nodes[position].parent
    while parent is not None:
        if nodes[parent].kind == SECTION:
            path.append(nodes[parent].name)
        parent = nodes[parent].parent
    return path[::-1]
