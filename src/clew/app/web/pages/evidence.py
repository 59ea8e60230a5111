"""The pages about a name, of what changed between two documents, of quotes that were put aside, and of tables of
answers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from clew.app.answers.view import TextPiece, excerpt
from clew.app.web.api.questions import KEY
from clew.app.web.pages.context import ALL_DOCUMENTS, document_titles
from clew.app.web.pages.language import gettext
from clew.app.web.pages.render import PageRoute, document_title, render_page
from clew.app.web.server import CurrentBase, CurrentServer
from clew.core.types import Node
from clew.knowledge_base.memo import TITLE

router = APIRouter(include_in_schema=False, route_class=PageRoute)

#: Sentences about a name that a page shows.
_MAX_STATEMENTS = 200


@router.get("/b/{base}/about")
def about(
    server: CurrentServer, base: CurrentBase, name: Annotated[str, Query(max_length=500)] = ""
) -> HTMLResponse:
    """Show what the documents and graphs say of a name, by the dates of the sentences."""
    profile, statements = None, []
    if name.strip():
        with server.questions.search_slots.admit():
            profile = base.knowledge_base.about(name.strip())
        statements = list(profile.statements[:_MAX_STATEMENTS])
    periods: dict[str, list[dict[str, Any]]] = {}
    for statement in statements:
        start = max(statement.text.find(statement.form), 0)
        span = (start, start + len(statement.form))
        line = {
            "node": statement.node,
            "text": statement.text,
            "pieces": excerpt(statement.text, [span], around=None),
        }
        periods.setdefault(statement.date_text or gettext("Without a date"), []).append(line)
    aliases: dict[str, list[str]] = {}
    for alias in profile.aliases if profile is not None else ():
        aliases.setdefault(alias.name, []).append(alias.source)
    return render_page(
        "about.html",
        title=name or gettext("About a name"),
        base=base.name,
        asked=name.strip(),
        profile=profile,
        statements=statements,
        total=0 if profile is None else len(profile.statements),
        documents=len({s.node.document for s in profile.statements}) if profile is not None else 0,
        periods=list(periods.items()),
        aliases=[(other, gettext(", ").join(dict.fromkeys(places))) for other, places in aliases.items()],
        titles=document_titles(base, (statement.node.document for statement in statements)),
    )


#: Changes that a page shows, and characters around a difference.
_MAX_CHANGES, _AROUND_EDIT = 300, 200


@router.get("/b/{base}/changes")
def changes(
    server: CurrentServer,
    base: CurrentBase,
    before: Annotated[str, Query(pattern=f"{KEY}|^$")] = "",
    after: Annotated[str, Query(pattern=f"{KEY}|^$")] = "",
    numbers: bool = False,
) -> HTMLResponse:
    """Show what changed from one document to another, with both quotes; with ``numbers``, only other numbers."""
    comparison, lines, total = None, [], 0
    if before and after:
        with server.questions.search_slots.admit():
            comparison = base.knowledge_base.compare(before, after)
        shown = [change for change in comparison.changes if change.numbers or not numbers]
        total = len(shown)
        for change in shown[:_MAX_CHANGES]:
            sides = [
                (mark, node, _mark_edits(node, [edit[side] for edit in change.edits]))
                for side, (mark, node) in enumerate((("before", change.before), ("after", change.after)))
                if node is not None
            ]
            lines.append({"change": change, "sides": sides})
    documents = []
    for document in base.knowledge_base.documents():
        title = document_title(document)
        # Two versions have one title.
        documents.append((document.key, title if title == document.name else f"{title} ({document.name})"))
    return render_page(
        "changes.html",
        title=gettext("What changed"),
        base=base.name,
        documents=documents[:ALL_DOCUMENTS],
        before=before,
        after=after,
        numbers=numbers,
        comparison=comparison,
        counts=None if comparison is None else comparison.counts(),
        lines=lines,
        total=total,
    )


def _mark_edits(node: Node, spans: list[tuple[int, int]]) -> tuple[TextPiece, ...]:
    """Return the text of one side, cut to the surroundings of its edits, with the edits marked."""
    return excerpt(node.text, [span for span in spans if span[0] < span[1]], around=_AROUND_EDIT)


@router.get("/b/{base}/basket")
def basket(server: CurrentServer, base: CurrentBase) -> HTMLResponse:
    """Show the quotes that were put aside, their notes, and where to get them as a memo."""
    quotes = base.knowledge_base.basket
    pinned = quotes.quotes()
    return render_page(
        "basket.html",
        title=gettext("Put aside"),
        base=base.name,
        quotes=pinned,
        missing=quotes.missing(),
        memo_title=gettext(TITLE),
        titles=document_titles(base, (quote.node.document for quote in pinned)),
        read_only=server.settings.read_only,
    )


@router.get("/b/{base}/grids")
def grids(
    server: CurrentServer,
    base: CurrentBase,
    documents: Annotated[list[str] | None, Query(max_length=ALL_DOCUMENTS)] = None,
) -> HTMLResponse:
    """Show where to ask many documents the same questions, and what was asked so before."""
    return render_page(
        "grid.html",
        title=gettext("Table of answers"),
        base=base.name,
        documents=[(item.key, document_title(item)) for item in base.knowledge_base.documents()],
        picked=set(documents or ()),
        grids=server.grids.all_grids(base),
        read_only=server.settings.read_only,
    )


@router.get("/b/{base}/grids/{id}")
def grid(id: str, server: CurrentServer, base: CurrentBase, part: bool = False) -> HTMLResponse:
    """Show a table of answers, as far as it is. ``part``: without a page around it."""
    # The state is read first: where it has ended, all its cells are there.
    now = server.grids.progress(id)
    read = server.grids.read(base, id)
    rows = [(document, read.row(document)) for document in read.documents]
    return render_page(
        "part-grid.html" if part else "grid-answers.html",
        title=gettext("Table of answers"),
        base=base.name,
        id=id,
        now=now,
        questions=read.questions,
        rows=rows,
        cells=len(rows) * len(read.questions),
        filled=sum(bool(cell.answer) for _, row in rows for cell in row),
        missing=len(read.missing()),
        read_only=server.settings.read_only,
    )
