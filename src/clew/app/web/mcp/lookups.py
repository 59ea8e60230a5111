"""What a program sees of a base: its contents, search results, a document, a page, a node, an entity.

Each result is text to read, and the same in a structured form (JSON-compatible). Long results come in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clew.core.errors import NotFound, UsageError
from clew.core.text import shorten
from clew.core.types import DOCUMENT, PAGE, ROW, SECTION, TABLE, Document, Entity, GraphInfo, Node
from clew.knowledge_base.document_parts import nodes_on_page, nodes_within
from clew.knowledge_base.knowledge_base import KnowledgeBase

#: Characters of text that one result holds; characters of one passage among search results.
MAX_CHARACTERS, _MAX_HIT = 16_000, 2_000
#: Characters of a line of an outline; triples of each relation of an entity.
_LINE, _MAX_TRIPLES = 120, 10
#: Entities of one name that are shown.
_MAX_NAMESAKES = 10


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result: ``text`` to read, and the same as a JSON-compatible dictionary."""

    text: str
    structure: dict[str, Any]


def pending_notes(base: KnowledgeBase) -> list[str]:
    """Return a line that says which documents cannot be found yet; none if all can."""
    pending = base.store.snapshot().pending
    return [f"Not searchable yet: {pending} documents that were just added."] if pending else []


def list_contents(base: KnowledgeBase, start: int = 0) -> ToolResult:
    """Return the documents and graphs of a base, from the ``start``-th document on."""
    documents, graphs = base.documents(), base.graphs.infos()
    lines, more = _fit([_document_line(document) for document in documents], start)
    heads = [f"{len(documents)} documents, {len(graphs)} graphs", *pending_notes(base)]
    return ToolResult(
        "\n".join([*heads, *lines, *_continuation(more), *map(_graph_line, graphs)]),
        {
            "documents": list(map(_document_to_dict, documents[start : start + len(lines)])),
            "graphs": [{"graph": graph.name, "nodes": graph.nodes, "edges": graph.edges} for graph in graphs],
            "next": more,
        },
    )


def search_passages(
    base: KnowledgeBase, query: str, k: int, documents: Sequence[str] | None, where: str = ""
) -> ToolResult:
    """Return the best passages and table rows, each with its place."""
    hits = base.search(query, k=k, documents=documents, where=where)
    lines = [
        f"{number}. {hit.node.place}  ({hit.node.id})\n{_cut(hit.node.text)}"
        for number, hit in enumerate(hits, 1)
    ]
    structure = [_node_to_dict(hit.node) | {"score": hit.score, "text": _cut(hit.node.text)} for hit in hits]
    text = "\n\n".join([*(lines or ["Nothing found."]), *pending_notes(base)])
    return ToolResult(text, {"hits": structure})


def show_target(base: KnowledgeBase, target: str, page: int | None = None, start: int = 0) -> ToolResult:
    """Return what ``target`` names: a document (its outline, or its ``page``), a node by id, an entity by id.

    A section is shown with all that it contains, a page with all that is on it. Raises NotFound, UsageError.
    """
    if page is not None:
        return _show_texts(nodes_on_page(base.tree(target), page), start)
    key, _, position = target.rpartition(":")
    if key and position.isdecimal() and any(document.key == key for document in base.documents()):
        node = base.node(target)
        if node.kind == DOCUMENT:
            return _show_outline(base.tree(key), start)
        return _show_texts(nodes_within(base.tree(key), node.id), start)
    graph = target.partition(":")[0]
    if ":" in target and any(info.name == graph for info in base.graphs.infos()):
        return show_entities(base, graph, target)
    return _show_outline(base.tree(target), start)


def show_entities(base: KnowledgeBase, graph: str, name: str) -> ToolResult:
    """Return the entities of a graph with this id, name or alias, with their triples and their equivalents elsewhere.

    Raises NotFound, UsageError.
    """
    if not name.strip():
        raise UsageError("no entity is named", "Give its id, its name or an alias")
    namesakes = base.graphs.entities(graph, name)
    descriptions = base.graphs.describe(graph, namesakes[:_MAX_NAMESAKES], _MAX_TRIPLES)
    texts = []
    for description in descriptions:
        entity, lines = description.entity, _entity_lines(description.entity)
        for triple in description.triples:
            for end in triple.ends:
                head, tail = (end, entity) if triple.inverse else (entity, end)
                lines.append(f"{head.name} >> {triple.relation} >> {tail.name}  ({end.id})")
            if triple.total > len(triple.ends):
                lines.append(f"... {triple.total - len(triple.ends):,} more {triple.relation}")
        lines += [f"same as: {link.target_name}  ({link.target})" for link in description.equivalents]
        texts.append("\n".join(lines))
    if len(namesakes) > _MAX_NAMESAKES:
        texts.append(f"... {len(namesakes) - _MAX_NAMESAKES:,} more of that name: give an id")
    entities = [description.to_dict() for description in descriptions]
    return ToolResult("\n\n".join(texts), {"entities": entities, "named": len(namesakes)})


def _show_outline(nodes: Sequence[Node], start: int) -> ToolResult:
    """Return a document's sections, pages and tables; its passages where it has neither sections nor tables."""
    parts = [node for node in nodes[1:] if node.kind in {SECTION, PAGE, TABLE}]
    if not any(node.kind in {SECTION, TABLE} for node in parts):
        parts = [node for node in nodes[1:] if node.kind != ROW]
    lines, more = _fit([_outline_line(node) for node in parts], start)
    head = f"{nodes[0].document_name}: {nodes[0].name or nodes[0].text}  ({nodes[0].id})"
    return ToolResult(
        "\n".join([shorten(head, 4 * _LINE), *lines, *_continuation(more)]),
        {
            "nodes": [_node_to_dict(node) for node in [nodes[0], *parts[start : start + len(lines)]]],
            "next": more,
        },
    )


def _show_texts(nodes: Sequence[Node], start: int) -> ToolResult:
    """Return the texts of nodes from the ``start``-th on, as many as fit."""
    texts, more = _fit([node.text for node in nodes], start)
    shown = nodes[start : start + len(texts)]
    if not shown:
        raise NotFound(f"nothing from {start} on", f"There are {len(nodes)} parts")
    head = f"{shown[0].place}  ({shown[0].id})"
    structure = [_node_to_dict(node) | {"text": text} for node, text in zip(shown, texts, strict=True)]
    return ToolResult("\n\n".join([head, *texts, *_continuation(more)]), {"nodes": structure, "next": more})


def _fit(texts: Sequence[str], start: int) -> tuple[list[str], int | None]:
    """Return the texts from ``start`` on that fit in one result, at least one, and where the next result starts; None
    at the end. A text that is larger than a result is cut, and says so."""
    room = MAX_CHARACTERS
    fitting: list[str] = []
    for text in texts[start:]:
        if fitting and len(text) > room:
            return fitting, start + len(fitting)
        fitting.append(_cut(text, MAX_CHARACTERS))
        room -= len(text)
    return fitting, None


def _continuation(start: int | None) -> list[str]:
    return [] if start is None else [f"... there is more: start={start}"]


def _node_to_dict(node: Node) -> dict[str, Any]:
    """Return the kind and place of a node, without its text."""
    return {
        "id": node.id,
        "kind": node.kind,
        "document": node.document_name,
        "page": node.page,
        "section": " > ".join(node.headings),
        "name": node.name,
    }


def _document_to_dict(document: Document) -> dict[str, Any]:
    return {
        "id": document.key,
        "document": document.name,
        "title": document.title,
        "pages": document.pages,
    }


def _document_line(document: Document) -> str:
    pages = f", {document.pages} pages" if document.pages else ""
    title = f": {document.title}" if document.title and document.title != document.name else ""
    return f"- {document.name}{shorten(title, _LINE)}{pages}  ({document.key})"


def _graph_line(graph: GraphInfo) -> str:
    size = "mounted" if graph.url else f"{graph.nodes:,} nodes, {graph.edges:,} edges"
    return f"- graph {graph.name}: {size}"


def _outline_line(node: Node) -> str:
    indent = "  " * max(node.level - 1, 0)
    if node.kind == PAGE:
        return f"page {node.page}{f' ({node.name})' if node.name else ''}  ({node.id})"
    where = f", page {node.page}" if node.page is not None else ""
    kind = "" if node.kind == SECTION else f"{node.kind} "
    return f"{indent}{kind}{shorten(node.name or node.text, _LINE)}{where}  ({node.id})"


def _entity_lines(entity: Entity) -> list[str]:
    types = ", ".join(type for type in (entity.type, *entity.more_types) if type)
    lines = [f"{entity.name}{f' ({types})' if types else ''}  ({entity.id})"]
    if entity.aliases:
        lines.append(f"also: {'; '.join(entity.aliases)}")
    for key, value in sorted(entity.properties.items()):
        lines.append(f"{key}: {'; '.join(map(str, value)) if isinstance(value, tuple) else value}")
    return [*lines, entity.text] if entity.text else lines


def _cut(text: str, limit: int = _MAX_HIT) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n... (cut: {len(text):,} characters)"
