"""Parts of a document by their place in it: what stands on a page, its nth table, what a section holds."""

from __future__ import annotations

from collections.abc import Sequence

from clew.core.errors import NotFound, UsageError
from clew.core.types import DOCUMENT, PAGE, PASSAGE, ROW, SECTION, TABLE, Node


def nodes_on_page(nodes: Sequence[Node], number: int) -> list[Node]:
    """Return what starts on a page and is not part of something else that does: no rows of its tables.

    ``nodes`` are a document's, itself first. Raises UsageError where it has no pages, NotFound where not this one.
    """
    last = max((node.page or 0 for node in nodes), default=0)
    if not last:
        raise UsageError(
            f"'{nodes[0].document_name}' has no pages", f"See: clew show {nodes[0].document_name}"
        )
    if not any(node.kind == PAGE and node.page == number for node in nodes):
        raise NotFound(f"'{nodes[0].document_name}' has no page {number}", f"Its pages: 1 to {last}")
    shown = [node for node in nodes if node.page == number and node.kind in {SECTION, PASSAGE, TABLE}]
    tables = {node.id for node in shown if node.kind == TABLE}
    # Rows of a table that began on an earlier page are on this one all the same.
    rows = [node for node in nodes if node.kind == ROW and node.page == number and node.parent not in tables]
    return sorted(shown + rows, key=lambda node: node.position)


def find_table(nodes: Sequence[Node], number: int) -> Node:
    """Return a document's table by its number, from 1. Raises NotFound."""
    tables = [node for node in nodes if node.kind == TABLE]
    if number > len(tables):
        raise NotFound(f"'{nodes[0].document_name}' has no table {number}", f"It has {len(tables)}")
    return tables[number - 1]


def nodes_within(nodes: Sequence[Node], id: str) -> list[Node]:
    """Return a node and what it holds, in reading order: a section with its passages, tables and sections.

    A table holds its rows in its own text; a page, what stands on it.
    """
    top = next(node for node in nodes if node.id == id)
    if top.kind == PAGE and top.page is not None:
        return nodes_on_page(nodes, top.page)
    if top.kind not in {DOCUMENT, SECTION}:
        return [top]
    inside = {id}
    found = [top] if top.kind == SECTION else []
    for node in nodes:  # a parent stands before its children
        if node.parent in inside and node.kind != PAGE:
            inside.add(node.id)
            if node.kind in {SECTION, PASSAGE, TABLE}:
                found.append(node)
    return found
