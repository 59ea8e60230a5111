"""Parts of a document by their place: the nodes on a page, the nth table, the nodes within a section."""

from __future__ import annotations

from collections.abc import Sequence

from clew.core.errors import NotFound, UsageError
from clew.core.types import DOCUMENT, PAGE, PASSAGE, ROW, SECTION, TABLE, Node


def nodes_on_page(nodes: Sequence[Node], number: int) -> list[Node]:
    """Return the sections, passages and tables that start on a page, and the rows of tables that started before it.

    ``nodes`` are those of a document, itself first. Raises UsageError for a document without pages, and NotFound
    where it has no such page.
    """
    last = max((node.page or 0 for node in nodes), default=0)
    if not last:
        raise UsageError(
            f"'{nodes[0].document_name}' has no pages", f"See: clew show {nodes[0].document_name}"
        )
    if not any(node.kind == PAGE and node.page == number for node in nodes):
        raise NotFound(f"'{nodes[0].document_name}' has no page {number}", f"Its pages: 1 to {last}")
    starting = [node for node in nodes if node.page == number and node.kind in {SECTION, PASSAGE, TABLE}]
    # A table that starts here holds its rows in its own text.
    tables = {node.id for node in starting if node.kind == TABLE}
    rows = [node for node in nodes if node.kind == ROW and node.page == number and node.parent not in tables]
    return sorted(starting + rows, key=lambda node: node.position)


def find_table(nodes: Sequence[Node], number: int) -> Node:
    """Return a document's table by its number, from 1. Raises NotFound."""
    tables = [node for node in nodes if node.kind == TABLE]
    if number > len(tables):
        raise NotFound(f"'{nodes[0].document_name}' has no table {number}", f"It has {len(tables)}")
    return tables[number - 1]


def nodes_within(nodes: Sequence[Node], id: str) -> list[Node]:
    """Return a node and the nodes within it, in reading order: a section with its passages, tables and sections.

    A table has its rows in its own text. For a page, the nodes on it are returned without the page itself.
    """
    top = next(node for node in nodes if node.id == id)
    if top.kind == PAGE and top.page is not None:
        return nodes_on_page(nodes, top.page)
    if top.kind not in {DOCUMENT, SECTION}:
        return [top]
    ids = {id}
    inner = [top] if top.kind == SECTION else []
    for node in nodes:  # a parent stands before its children
        if node.parent in ids and node.kind != PAGE:
            ids.add(node.id)
            if node.kind in {SECTION, PASSAGE, TABLE}:
                inner.append(node)
    return inner
