"""Documents: listed, shown as text and as pages, searched, removed."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import FileResponse, Response
from pydantic import Field

from clew.app.answers.view import table_cells
from clew.app.web.api.questions import KEY, Condition, Form, Key, Name, refuse_long
from clew.app.web.method_choices import DEFAULT, resolve_retriever
from clew.app.web.server import CurrentBase, CurrentServer, nearest_scale
from clew.core.errors import NotFound
from clew.core.text import file_name
from clew.core.types import ROW, SECTION, TABLE, Document
from clew.knowledge_base.trash import TRASH_DAYS, Trash, TrashedDocument

router = APIRouter(prefix="/bases/{base}", tags=["documents"])

KeyInPath = Annotated[str, Path(pattern=KEY, description="The document's key.")]
#: Characters of a document's text in one reply.
_MAX_TEXT = 200_000
#: Nodes whose boxes one reply has.
_MAX_BOXED = 100
#: Nodes in one reply.
_MAX_NODES = 5_000


@router.get("/documents")
def documents(base: CurrentBase) -> dict[str, Any]:
    """List the documents, by name."""
    return {"documents": list(map(_document_to_dict, base.knowledge_base.documents()))}


@router.get("/documents/{key}")
def document(key: KeyInPath, base: CurrentBase) -> dict[str, Any]:
    """Return a document with its outline: sections and tables, by their pages."""
    nodes = base.knowledge_base.tree(key)
    outline = [
        {"id": node.id, "kind": node.kind, "name": node.name, "level": node.level, "page": node.page}
        for node in nodes
        if node.kind in {SECTION, TABLE}
    ]
    return _document_to_dict(base.knowledge_base.store.document(key)) | {"outline": outline[:_MAX_NODES]}


@router.get("/documents/{key}/nodes")
def nodes(
    key: KeyInPath,
    base: CurrentBase,
    start: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MAX_NODES)] = 1_000,
    page: Annotated[int | None, Query(ge=1, description="Only nodes that start on this page.")] = None,
) -> dict[str, Any]:
    """Return the nodes of a document in reading order, with their texts; ``total`` counts all."""
    nodes = [node for node in base.knowledge_base.tree(key) if page is None or node.page == page]
    return {"total": len(nodes), "nodes": [node.to_dict() for node in nodes[start : start + limit]]}


@router.get("/documents/{key}/text")
def text(
    key: KeyInPath,
    base: CurrentBase,
    start: Annotated[int, Query(ge=0)] = 0,
    end: Annotated[int | None, Query(ge=0)] = None,
) -> dict[str, Any]:
    """Return the characters ``start`` to ``end`` of a document's text, at most 200,000 at a time. The spans of nodes
    refer to this text."""
    whole = base.knowledge_base.store.document_text(key)
    last = min(len(whole) if end is None else end, start + _MAX_TEXT)
    return {"start": start, "text": whole[start:last], "characters": len(whole)}


@router.get("/nodes")
def some_nodes(
    base: CurrentBase,
    id: Annotated[list[str], Query(max_length=500, description="Node ids, as in a trail.")],
) -> dict[str, Any]:
    """Return several nodes with their texts, in the order of their ids. Nodes that were removed are skipped."""
    nodes = []
    for node_id in dict.fromkeys(id):
        with suppress(NotFound):
            nodes.append(base.knowledge_base.node(node_id).to_dict())
    return {"nodes": nodes}


@router.get("/nodes/{id}")
def node(
    id: str,
    base: CurrentBase,
    around: Annotated[
        int, Query(ge=0, le=20_000, description="Characters before and after, for the context.")
    ] = 1_000,
) -> dict[str, Any]:
    """Return a node with the text around it: ``inside`` is the document's text in the node's span, ``before`` and
    ``after`` are the text on both sides. A table, and the table of a row, has its ``cells``, the header first."""
    node = base.knowledge_base.node(id)
    whole = base.knowledge_base.store.document_text(node.document)
    first, last = node.span
    data = node.to_dict() | {
        "parent": node.parent,
        "media_type": base.knowledge_base.store.document(node.document).media_type,
        "before": whole[max(0, first - around) : first],
        "inside": whole[first:last],
        "after": whole[last : last + around],
    }
    table = node if node.kind == TABLE else None
    if node.kind == ROW and node.parent is not None:
        table = base.knowledge_base.node(node.parent)
    if table is not None:
        data["table"] = {"id": table.id, "caption": table.name, "cells": table_cells(table.text)}
    return data


@router.get("/documents/{key}/pages/{page}.png", response_class=Response)
def picture(
    key: KeyInPath,
    page: int,
    server: CurrentServer,
    base: CurrentBase,
    scale: Annotated[float, Query(gt=0, le=3, description="Pixels to the point: 0.5, 1, 1.5, 2 or 3.")] = 1.5,
) -> Response:
    """Return a page of a PDF as PNG. 404 if the file was moved or changed: the image always shows the page that the
    document was read from."""
    image = server.page_images.get(base, key, page, nearest_scale(scale))
    # The key is a hash of the content, so the image never changes.
    headers = {"Cache-Control": "private, max-age=86400, immutable"}
    return Response(image.png, media_type="image/png", headers=headers)


@router.get("/documents/{key}/pages/{page}")
def page(
    key: KeyInPath,
    page: int,
    server: CurrentServer,
    base: CurrentBase,
    node: Annotated[list[str] | None, Query(description="Ids of nodes whose boxes to return.")] = None,
) -> dict[str, Any]:
    """Return the size of a page in points, and the boxes of nodes on it: x0, y0, x1, y1 from its top left."""
    picture = server.page_images.get(base, key, page, 1.5)
    boxes = [
        {"node": shown.id, "box": [box.x0, box.y0, box.x1, box.y1]}
        for shown in map(base.knowledge_base.node, (node or ())[:_MAX_BOXED])
        for box in shown.boxes
        if box.page == page and shown.document == key
    ]
    image = f"{base.api_path}/documents/{key}/pages/{page}.png"
    return {"page": page, "width": picture.width, "height": picture.height, "boxes": boxes, "image": image}


@router.get("/documents/{key}/original", response_class=FileResponse)
def original(key: KeyInPath, base: CurrentBase) -> FileResponse:
    """Return the file that a document was read from, byte for byte. 404 if it was moved or changed since."""
    document = base.knowledge_base.store.document(key)
    path = base.knowledge_base.files.original(key)
    # Only a PDF is shown in the browser: what else a file holds could be a page with scripts.
    is_pdf = document.media_type == "application/pdf"
    return FileResponse(
        path,
        media_type="application/pdf" if is_pdf else "application/octet-stream",
        filename=document.name,
        content_disposition_type="inline" if is_pdf else "attachment",
    )


class Tagging(Form):
    """Tags to give to documents (keys), and tags to take away."""

    documents: Annotated[list[Key], Field(min_length=1, max_length=10_000)]
    add: Annotated[list[Name], Field(max_length=20, default_factory=list)]
    remove: Annotated[list[Name], Field(max_length=20, default_factory=list)]


@router.post("/documents/tags")
def tag(asked: Tagging, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Give tags to documents, or take tags away. ``tag = lease`` in a condition finds them."""
    with server.open_for_writing(base) as writable:
        writable.tag(*asked.documents, add=asked.add, remove=asked.remove)
    return {"tagged": asked.documents}


class Removal(Form):
    """Documents (keys) to move to the trash."""

    documents: Annotated[list[Key], Field(min_length=1, max_length=10_000)]


@router.post("/documents/remove")
def move_to_trash(asked: Removal, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Move documents to the trash, from which they can be restored for 30 days; ``trash`` are their ids there."""
    with server.open_for_writing(base) as writable:
        documents = {document.key: document for document in writable.documents()}
        trash = Trash(writable)
        trash.empty(TRASH_DAYS)
        keys = writable.document_keys(*asked.documents)
        ids = trash.add([path for key in keys for path in documents[key].paths])
    for key in keys:
        server.uploads.discard_document(base.name, key)
        server.page_images.forget(base, key)
    return {"removed": sorted(keys), "trash": ids}


@router.get("/trash")
def trash(base: CurrentBase) -> dict[str, Any]:
    """List the documents in the trash, the latest first."""
    return {"documents": [trashed_to_dict(entry) for entry in Trash(base.knowledge_base).documents()]}


class Trashed(Form):
    """Documents of the trash, by their ids there."""

    ids: Annotated[list[Name], Field(min_length=1, max_length=10_000)]


@router.post("/trash/restore")
def restore(asked: Trashed, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Put documents of the trash back."""
    with server.open_for_writing(base) as writable:
        places = Trash(writable).restore(*asked.ids)
    server.uploads.request_catch_up(base.name)
    return {"restored": len(places)}


@router.post("/trash/delete")
def delete(asked: Trashed, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Delete documents of the trash for good."""
    with server.open_for_writing(base) as writable:
        Trash(writable).delete(*asked.ids)
    return {"deleted": len(asked.ids)}


@router.delete("/documents/{key}")
def remove(
    key: KeyInPath,
    server: CurrentServer,
    base: CurrentBase,
    forget: Annotated[bool, Query(description="Also forget the questions whose answers rest on it.")] = False,
) -> dict[str, Any]:
    """Remove a document from the base. A file that was added from a folder stays in the folder. Answers in the
    history that quote the document remain, unless ``forget``; ``quoted`` counts them."""
    with server.open_for_writing(base) as writable:
        removed = writable.remove(key)
    server.uploads.discard_document(base.name, key)
    server.page_images.forget(base, key)
    quoted = base.history.questions_citing(key)
    if forget:
        for id in quoted:
            base.history.forget(id)
    return {"removed": [document.key for document in removed], "quoted": 0 if forget else len(quoted)}


class Search(Form):
    """A search. ``retriever`` is a name of /config; ``documents`` (keys) restrict the search."""

    question: str
    k: Annotated[int, Field(ge=1, le=200)] = 10
    retriever: Annotated[str, Field(max_length=200)] = DEFAULT
    documents: Annotated[list[Key], Field(max_length=10_000)] | None = None
    where: Condition = ""


@router.post("/search")
def search(asked: Search, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Find passages and table rows, best first."""
    refuse_long(server, asked.question)
    retriever = resolve_retriever(asked.retriever)
    with server.questions.search_slots.admit():
        hits = base.knowledge_base.search(
            asked.question, k=asked.k, retriever=retriever, documents=asked.documents, where=asked.where
        )
    return {"hits": [hit.to_dict() for hit in hits]}


def trashed_to_dict(entry: TrashedDocument) -> dict[str, Any]:
    """Return a document of the trash without the folders of its file."""
    return {"id": entry.id, "document": entry.name, "title": entry.title, "when": entry.when}


def _document_to_dict(document: Document) -> dict[str, Any]:
    """Return a document without the folders of its files, which are nobody's business."""
    return document.to_dict() | {
        "paths": list(map(file_name, document.paths)),
        "folders": [],
    }
