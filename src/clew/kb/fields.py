"""What is indexed of a node: a pure function of its own document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from clew.text import TEXT_VERSION, candidate_names, count_terms, hash_term, title_names, add_headings
from clew.types import DOCUMENT, RETRIEVED_KINDS, SECTION, TABLE, ParsedNode

#: Changing what is indexed changes this name, and every base rebuilds its segments.
SEGMENTS_MAKER = f"segments/1 text/{TEXT_VERSION}"
FIELDS = ("text", "title", "mention")


def count_field_terms(field: str, node: ParsedNode) -> Counter[int] | None:
    """Return the hashed terms of ``node`` in a field and their counts; None where it has no part in it."""
    if field == "text":
        return count_terms(node.text) if node.kind in RETRIEVED_KINDS else None
    if field == "title":
        return count_terms(node.name) if node.kind in {DOCUMENT, SECTION, TABLE} else None
    if node.kind == DOCUMENT:
        return Counter(map(hash_term, title_names(node.name)))
    if node.kind in RETRIEVED_KINDS:
        return Counter({hash_term(name) for name, _, _ in candidate_names(node.text)})
    return None


def texts_to_encode(nodes: Sequence[ParsedNode]) -> Iterator[tuple[int, str]]:
    """Yield the position of every retrieved node of a document, and the text that stands for it as a vector."""
    title = nodes[0].name
    for position, node in enumerate(nodes):
        if node.kind in RETRIEVED_KINDS:
            yield position, add_headings(title, _headings(nodes, position), node.text)


def _headings(nodes: Sequence[ParsedNode], position: int) -> list[str]:
    path = []
    parent = nodes[position].parent
    while parent is not None:
        if nodes[parent].kind == SECTION:
            path.append(nodes[parent].name)
        parent = nodes[parent].parent
    return path[::-1]
