"""What a program sees of a base: what it holds, what a search finds, a document, a page, a node, an entity.

Each comes as text to read and in a structured form (JSON-compatible), long ones a part at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.core.errors import NotFound, UsageError
from clew.core.text import shorten
from clew.core.types import DOCUMENT, PAGE, ROW, SECTION, TABLE, Node
from clew.methods.readers.contexts import describe_place

if TYPE_CHECKING:
    from clew.core.types import Document, Entity, GraphInfo
    from clew.knowledge_base.knowledge_base import KnowledgeBase

#: How many characters of texts one look gives; what one passage of a search may have of them.
MAX_CHARACTERS, _HIT = 16_000, 2_000
#: How many characters a line of an outline has; how many triples of each relation an entity is shown with.
_LINE, _TRIPLES = 120, 10
#: How many entities of one name are shown.
_NAMESAKES = 10


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A reply: text for who reads it, and the same for a program."""

    text: str
    structure: dict[str, Any]


def pending_notes(base: KnowledgeBase) -> list[str]:
    """Say what of a base cannot be found yet."""
    late = base.store.snapshot().pending
    return [f"Not searchable yet: {late} documents that were just added."] if late else []


def list_contents(base: KnowledgeBase, start: int = 0) -> ToolResult:
    """Return the documents and graphs that a base holds, from the ``start``-th document."""
    documents, graphs = base.documents(), base.graphs.infos()
    lines = [_document_line(one) for one in documents]
    shown, more = _part(lines, start)
    heads = [f"{len(documents)} documents, {len(graphs)} graphs", *pending_notes(base)]
    return ToolResult(
        "\n".join([*heads, *shown, *_more(more), *(_graph_line(one) for one in graphs)]),
        {
            "documents": [_document_brief(one) for one in documents[start : start + len(shown)]],
            "graphs": [{"graph": one.name, "nodes": one.nodes, "edges": one.edges} for one in graphs],
            "next": more,
        },
    )


def search_passages(base: KnowledgeBase, query: str, k: int, documents: Sequence[str] | None) -> ToolResult:
    """Return the best passages and table rows, each with its place."""
    hits = base.search(query, k=k, documents=documents)
    lines = [
        f"{number}. {describe_place(hit.node)}  ({hit.node.id})\n{_cut(hit.node.text)}"
        for number, hit in enumerate(hits, 1)
    ]
    shapes = [_brief(hit.node) | {"score": hit.score, "text": _cut(hit.node.text)} for hit in hits]
    return ToolResult("\n\n".join([*(lines or ["Nothing found."]), *pending_notes(base)]), {"hits": shapes})


def show_target(base: KnowledgeBase, what: str, page: int | None = None, start: int = 0) -> ToolResult:
    """Return what ``what`` names: a document (its outline, or its ``page``), a node by id, an entity by id.

    A section is shown with all that it holds, a page with what stands on it. Raises NotFound, UsageError.
    """
    if page is not None:
        from clew.knowledge_base.document_parts import nodes_on_page

        return _texts(nodes_on_page(base.tree(what), page), start)
    key, _, position = what.rpartition(":")
    if key and position.isdigit() and any(one.key == key for one in base.documents()):
        from clew.knowledge_base.document_parts import nodes_within

        node = base.node(what)
        if node.kind == DOCUMENT:
            return _outline(base.tree(key), start)
        return _texts(nodes_within(base.tree(key), node.id), start)
    graph = what.partition(":")[0]
    if ":" in what and any(one.name == graph for one in base.graphs.infos()):
        return show_entities(base, graph, what)
    return _outline(base.tree(what), start)


def show_entities(base: KnowledgeBase, graph: str, what: str) -> ToolResult:
    """Return the entities of a graph with this id, name or alias, with their triples and what they are the same as.

    Raises NotFound, UsageError.
    """
    if not what.strip():
        raise UsageError("no entity is named", "Give its id, its name or an alias")
    texts = []
    named = base.graphs.entities(graph, what)
    described = base.graphs.describe(graph, named[:_NAMESAKES], _TRIPLES)
    for told in described:
        one, lines = told.entity, _entity_lines(told.entity)
        for triple in told.triples:
            for end in triple.ends:
                head, tail = (end, one) if triple.inverse else (one, end)
                lines.append(f"{head.name} >> {triple.relation} >> {tail.name}  ({end.id})")
            if triple.total > len(triple.ends):
                lines.append(f"... {triple.total - len(triple.ends):,} more {triple.relation}")
        lines += [f"same as: {link.target_name}  ({link.target})" for link in told.equivalents]
        texts.append("\n".join(lines))
    if len(named) > _NAMESAKES:
        texts.append(f"... {len(named) - _NAMESAKES:,} more of that name: give an id")
    return ToolResult(
        "\n\n".join(texts), {"entities": [told.to_dict() for told in described], "named": len(named)}
    )


def _outline(nodes: Sequence[Node], start: int) -> ToolResult:
    """Return a document's sections, pages and tables; where it has none of them, its passages."""
    parts = [node for node in nodes[1:] if node.kind in {SECTION, PAGE, TABLE}]
    if not any(node.kind in {SECTION, TABLE} for node in parts):
        parts = [node for node in nodes[1:] if node.kind != ROW]
    shown, more = _part([_outline_line(node) for node in parts], start)
    head = f"{nodes[0].document_name}: {nodes[0].name or nodes[0].text}  ({nodes[0].id})"
    return ToolResult(
        "\n".join([shorten(head, 4 * _LINE), *shown, *_more(more)]),
        {"nodes": [_brief(node) for node in [nodes[0], *parts[start : start + len(shown)]]], "next": more},
    )


def _texts(nodes: Sequence[Node], start: int) -> ToolResult:
    """Return the texts of nodes, as many as there is room for."""
    shown, more = _part([node.text for node in nodes], start)
    those = nodes[start : start + len(shown)]
    if not those:
        raise NotFound(f"nothing from {start} on", f"There are {len(nodes)} parts")
    head = f"{describe_place(those[0])}  ({those[0].id})"
    shapes = [_brief(node) | {"text": text} for node, text in zip(those, shown, strict=True)]
    return ToolResult("\n\n".join([head, *shown, *_more(more)]), {"nodes": shapes, "next": more})


def _part(texts: Sequence[str], start: int) -> tuple[list[str], int | None]:
    """Return the texts from ``start`` that there is room for, at least one, and where the rest starts."""
    room = MAX_CHARACTERS
    taken: list[str] = []
    for text in texts[start:]:
        if taken and len(text) > room:
            return taken, start + len(taken)
        # One that is larger than all the room is cut, and says so.
        taken.append(
            text
            if len(text) <= MAX_CHARACTERS
            else f"{text[:MAX_CHARACTERS]}\n... (cut: {len(text):,} characters)"
        )
        room -= len(text)
    return taken, None


def _more(start: int | None) -> list[str]:
    return [] if start is None else [f"... there is more: start={start}"]


def _brief(node: Node) -> dict[str, Any]:
    """Return a node without its text: what it is, and where."""
    return {
        "id": node.id,
        "kind": node.kind,
        "document": node.document_name,
        "page": node.page,
        "section": " > ".join(node.headings),
        "name": node.name,
    }


def _document_brief(document: Document) -> dict[str, Any]:
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


def _entity_lines(one: Entity) -> list[str]:
    types = ", ".join(type for type in (one.type, *one.more_types) if type)
    lines = [f"{one.name}{f' ({types})' if types else ''}  ({one.id})"]
    if one.aliases:
        lines.append(f"also: {'; '.join(one.aliases)}")
    for key, value in sorted(one.properties.items()):
        lines.append(f"{key}: {'; '.join(map(str, value)) if isinstance(value, tuple) else value}")
    return [*lines, one.text] if one.text else lines


def _cut(text: str) -> str:
    return text if len(text) <= _HIT else f"{text[:_HIT]}\n... (cut: {len(text):,} characters)"
