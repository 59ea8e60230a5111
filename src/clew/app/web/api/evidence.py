"""Everything said about a name, changes between two documents, and quotes set aside for a memo."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from clew.app.web.api.questions import Condition, Form, Key, Name
from clew.app.web.server import CurrentBase, CurrentServer
from clew.knowledge_base.memo import TITLE, Memo

router = APIRouter(prefix="/bases/{base}", tags=["evidence"])

#: Sentences in one reply.
_MAX_STATEMENTS = 5_000
#: Changes in one reply.
_MAX_CHANGES = 2_000
#: Characters of a quote, a question and a note, and of a title.
_MAX_TEXT, _MAX_TITLE = 20_000, 500
_MEDIA_TYPES = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "md": "text/markdown; charset=utf-8",
}


@router.get("/about")
def about(
    server: CurrentServer,
    base: CurrentBase,
    name: Annotated[
        str, Query(min_length=1, max_length=500, description="A person, company, place or term.")
    ],
    documents: Annotated[
        list[Key] | None, Query(max_length=10_000, description="Keys of documents; by default all.")
    ] = None,
    where: Annotated[Condition, Query(description="A condition on the fields of documents.")] = "",
    start: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MAX_STATEMENTS)] = 200,
) -> dict[str, Any]:
    """Return what the documents and graphs say of a name: sentences in the order of their dates, other names, who it
    occurs with, triples. ``total`` counts all sentences; a misspelt name has none, but ``suggestions``."""
    with server.questions.search_slots.admit():
        profile = base.knowledge_base.about(name, documents=documents, where=where)
    statements = profile.statements[start : start + limit]
    return replace(profile, statements=statements).to_dict() | {"total": len(profile.statements)}


@router.get("/diff")
def diff(
    server: CurrentServer,
    base: CurrentBase,
    before: Annotated[Key, Query(description="The key of the earlier document.")],
    after: Annotated[Key, Query(description="The key of the later document.")],
    start: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MAX_CHANGES)] = 200,
) -> dict[str, Any]:
    """Return what changed between two documents: counts, headings, and for each change the quotes of both sides with
    their places, the ranges that differ, and the numbers. ``total`` counts all changes."""
    with server.questions.search_slots.admit():
        comparison = base.knowledge_base.compare(before, after)
    changes = comparison.changes[start : start + limit]
    shown = replace(comparison, changes=changes).to_dict()
    return shown | {"counts": comparison.counts(), "total": len(comparison.changes)}


class PinForm(Form):
    """A quote to put aside: words of a passage or table row, by default all of it, with the question that it answers
    and a note."""

    node: Name
    text: Annotated[str, Field(max_length=_MAX_TEXT)] = ""
    question: Annotated[str, Field(max_length=_MAX_TEXT)] = ""
    note: Annotated[str, Field(max_length=_MAX_TEXT)] = ""


class NoteForm(Form):
    """The note of a quote, "" for none."""

    note: Annotated[str, Field(max_length=_MAX_TEXT)]


@router.get("/basket")
def basket(base: CurrentBase) -> dict[str, Any]:
    """List the quotes that were put aside; ``missing`` counts those of documents that were removed or changed."""
    quotes = base.knowledge_base.basket
    return {"quotes": [quote.to_dict() for quote in quotes.quotes()], "missing": quotes.missing()}


@router.post("/basket", status_code=201)
def pin(quote: PinForm, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Put a quote aside; one that is there already is not added twice. 400 for words that do not stand there."""
    server.require_writable()
    pinned = base.knowledge_base.basket.pin(quote.node, quote.text, question=quote.question, note=quote.note)
    return pinned.to_dict()


@router.put("/basket/{id}")
def annotate(id: str, form: NoteForm, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Set the note of a quote."""
    server.require_writable()
    base.knowledge_base.basket.annotate(id, form.note)
    return {"id": id, "note": form.note}


@router.delete("/basket/{id}")
def unpin(id: str, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Take a quote out of the basket."""
    server.require_writable()
    base.knowledge_base.basket.remove(id)
    return {"removed": [id]}


@router.delete("/basket")
def clear(server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Take all quotes out."""
    server.require_writable()
    return {"removed": base.knowledge_base.basket.clear()}


@router.get("/memo", response_class=Response)
def memo(
    base: CurrentBase,
    form: Annotated[Literal["docx", "md"], Query(description="Word or Markdown.")] = "docx",
    title: Annotated[str, Query(max_length=_MAX_TITLE)] = TITLE,
) -> Response:
    """Return the quotes that were put aside as a document, each with a footnote to document, page and digest."""
    written = Memo(base.knowledge_base.basket.quotes(), title)
    content = written.to_docx() if form == "docx" else written.to_markdown().encode()
    return Response(
        content,
        media_type=_MEDIA_TYPES[form],
        headers={"Content-Disposition": f'attachment; filename="memo.{form}"'},
    )
