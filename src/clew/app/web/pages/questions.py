"""The pages of questions: asked with a form, followed while they are answered, opened again, set side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from clew.app.answers.view import AnswerView, Evidence, StepView
from clew.app.answers.walk import draw_walk
from clew.app.web import history
from clew.app.web.api.questions import Ask, ask
from clew.app.web.bases import ServedBase
from clew.app.web.errors import RequestRefused, status_code
from clew.app.web.events import stream_channel
from clew.app.web.pages.answer import EvidenceBlock, describe_step, make_answer_page, whole_table
from clew.app.web.pages.context import (
    describe_scope,
    document_titles,
    form_choices,
    next_question,
    node_labels,
    question_lists,
    render_home,
)
from clew.app.web.pages.language import gettext, ngettext
from clew.app.web.pages.render import PageRoute, render_fragment, render_page
from clew.app.web.pages.source import ALL_ROWS, SourceView, table_rows, view_earlier, view_source
from clew.app.web.server import CurrentBase, CurrentServer, Server
from clew.core.errors import ClewError, NotFound, UsageError
from clew.core.types import ROW, TABLE, Quote
from clew.knowledge_base.graphs import entity_triples
from clew.knowledge_base.results import EntityTriples

router = APIRouter(prefix="/b/{base}", include_in_schema=False, route_class=PageRoute)

#: Earlier questions of a conversation that a page shows.
_MAX_EARLIER = 20
#: Triples of each relation that are shown around a triple.
_MAX_TRIPLES = 8
#: Fields of the form that a person may leave empty.
_OPTIONAL_FIELDS = ("where", "model", "recipe", "beside", "also", "follows", "verbatim", "page")
#: Fields that a form may have: one for each document that is ticked.
_MAX_FIELDS = 20_000


@router.post("/ask")
async def ask_page(request: Request, server: CurrentServer, base: CurrentBase) -> Response:
    """Ask what the form says, with one method or two. An error is shown above the form of the same page,
    which keeps its words."""
    try:
        fields = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=_MAX_FIELDS)
    except ValueError as error:
        problem = f"the form has more than {_MAX_FIELDS:,} fields"
        raise RequestRefused(413, problem, "Choose fewer documents") from error
    return await run_in_threadpool(_submit_form, fields, server, base)


def _submit_form(fields: Mapping[str, list[str]], server: Server, base: ServedBase) -> Response:
    form = {name: fields[name][0] for name in ("question", "chain", *_OPTIONAL_FIELDS) if fields.get(name)}
    also, page = form.pop("also", ""), form.pop("page", "")
    lists = {name: fields[name] for name in ("documents", "graphs") if fields.get(name)}
    try:
        request = Ask.model_validate(form | lists)
        id = ask(request, server, base)["id"]
        if also:
            id = ask(request.model_copy(update={"recipe": also, "beside": id}), server, base)["id"]
        return RedirectResponse(f"/b/{base.name}/q/{id}", status_code=303)
    except ValidationError as error:
        problem: ClewError = UsageError(str(error.errors()[0]["msg"]))
        status = 422
    except ClewError as error:
        problem, status = error, status_code(error)
    with suppress(NotFound):  # the question of the page was forgotten
        if page:
            return render_question(server, base, page, form.get("question", ""), problem, status)
    return render_home(server, base, form, problem, status)


@router.get("/q/{id}")
def question(id: str, server: CurrentServer, base: CurrentBase) -> HTMLResponse:
    """Show a question while it is answered, or with its answer; beside the one that it is compared with."""
    return render_question(server, base, id)


def render_question(
    server: Server,
    base: ServedBase,
    id: str,
    typed: str = "",
    problem: ClewError | None = None,
    status: int = 200,
) -> HTMLResponse:
    """Return the page of a question, with what was ``typed`` on it and the ``problem`` of asking that. Raises
    NotFound."""
    entries = [server.questions.entry(base, id)]
    if entries[0]["beside"]:
        with suppress(NotFound):  # the other was forgotten: this one stands alone
            entries.insert(0, server.questions.entry(base, entries[0]["beside"]))
    asked = entries[-1]["question"] or entries[-1]["chain"]
    contexts = [_entry_context(entry, server, base) for entry in entries]
    if len(contexts) > 1:
        for context, other in zip(contexts, reversed(contexts), strict=True):
            context["compared"] = _compare(context["view"], other["view"])
    return render_page(
        "question.html",
        status=status,
        title=asked,
        typed=typed,
        problem=problem,
        base=base.name,
        entries=contexts,
        earlier=_earlier_turns(entries[-1], base),
        asked=asked,
        current=[entry["id"] for entry in entries],
        limits=server.settings.limits,
        **question_lists(base),
    )


def _compare(view: AnswerView | None, other: AnswerView | None) -> str:
    """Describe what an answer has and the other one lacks."""
    if view is None or other is None:
        return ""
    same = " ".join(view.text.casefold().split()) == " ".join(other.text.casefold().split())
    nodes = {item.node.id for item in view.evidence}
    only = len(nodes - {item.node.id for item in other.evidence})
    words = gettext("same answer") if same else gettext("different answer")
    only_here = ngettext(
        "%(only)s of %(num)s piece of evidence only here",
        "%(only)s of %(num)s pieces of evidence only here",
        len(nodes),
        only=only,
    )
    return gettext("%(answer)s; %(evidence)s", answer=words, evidence=only_here)


def _earlier_turns(entry: Mapping[str, Any], base: ServedBase) -> list[dict[str, Any]]:
    """Return the questions of a conversation before ``entry``, the first one first."""
    turns: list[dict[str, Any]] = []
    follows = entry.get("follows")
    with suppress(NotFound):  # an earlier question was forgotten
        while follows and len(turns) < _MAX_EARLIER:
            turns.insert(0, base.history.get(follows))
            follows = turns[0].get("follows")
    return turns


@router.get("/q/{id}/how")
def how(id: str, server: CurrentServer, base: CurrentBase, part: bool = False) -> HTMLResponse:
    """Show how an answer was found in full: the walk, the chain, the trail, the method. ``part``: without a page
    around it."""
    entry = server.questions.entry(base, id)
    if entry["answer"] is None:
        raise NotFound("this question has no answer yet")
    view = AnswerView.from_dict(entry["answer"])
    walk = draw_walk(view)
    ids = {id for step in view.steps for hit in step.hits for id in (hit.node.id, *hit.path)}
    ids |= {node.id for node in walk.nodes} if walk is not None else set()
    return render_page(
        "part-how.html" if part else "how.html",
        title=gettext("How this was found"),
        base=base.name,
        entry=entry,
        view=view,
        page=make_answer_page(view),
        walk=walk,
        labels=node_labels(base, ids, view),
        choices=form_choices(server),
        go_on=next_question(server, base, entry),
    )


@router.get("/q/{id}/answer")
def answer(id: str, server: CurrentServer, base: CurrentBase) -> HTMLResponse:
    """Return what the page of a question shows below it, once it has ended."""
    context = _entry_context(server.questions.entry(base, id), server, base)
    return render_page("part-answer.html", base=base.name, **context)


@router.get("/q/{id}/events", response_class=StreamingResponse)
def events(
    id: str,
    server: CurrentServer,
    base: CurrentBase,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Follow a question as the API's events do, with each ``step`` as HTML: ``{"html": ...}``."""
    job = server.questions.get(base, id)
    if job is None or (job.events.is_closed and last_event_id == str(job.events.last_number)):
        return Response(status_code=204)
    return stream_channel(job.events, last_event_id, _render_event)


def _render_event(event: str, data: str) -> str:
    """Return what the page gets of an event: a step as HTML, and no answer, which it fetches as HTML."""
    if event == "step":
        line = describe_step(StepView.from_dict(json.loads(data)))
        return json.dumps({"html": render_fragment("part-live.html", line=line)})
    return "{}" if event == "answer" else data


@router.get("/q/{id}/table/{number}")
def table(id: str, number: int, base: CurrentBase) -> HTMLResponse:
    """Return the whole table of a piece of evidence, of which the page of the answer shows some rows."""
    stored = base.history.get(id)["answer"]
    evidence = () if stored is None else AnswerView.from_dict(stored).evidence
    chosen = next((item for item in evidence if item.number == number and item.node.kind == TABLE), None)
    if chosen is None:
        raise NotFound(f"this answer has no table number {number}")
    cells, marked = whole_table(chosen)
    return render_page("part-table.html", cells=cells, caption=chosen.node.name, marked=marked)


@router.get("/q/{id}/cite/{number}")
def cite(
    id: str,
    number: int,
    server: CurrentServer,
    base: CurrentBase,
    part: bool = False,
    alternative: Annotated[int, Query(ge=0)] = 0,
    rows: Annotated[int | None, Query(ge=ALL_ROWS)] = None,
) -> HTMLResponse:
    """Show a piece of evidence where it stands, with the quoted words marked; with ``alternative``, a number from 1,
    those of that alternative. ``part``: without a page around it."""
    stored = base.history.get(id)["answer"]
    view = None if stored is None else AnswerView.from_dict(stored)
    evidence_blocks = () if view is None else make_answer_page(view).evidence
    if not 1 <= number <= len(evidence_blocks):
        raise NotFound(f"this answer has no evidence number {number}", f"It has {len(evidence_blocks)}")
    cited = evidence_blocks[number - 1]
    quotes = cited.evidence.quotes
    if view is not None and alternative:
        supports = [
            each for item in view.alternatives[alternative - 1 : alternative] for each in item.supports
        ]
        quotes = tuple(support.quote for support in supports if support.number == number)
    source: SourceView | None = None
    gone = ""
    if not cited.node.in_graph:
        evidence = [block.evidence for block in evidence_blocks]
        source, gone = _view_citation(server, base, cited, quotes, evidence, rows)
    return render_page(
        "part-source.html" if part else "source.html",
        title=f"[{number}] {cited.node.document}",
        base=base.name,
        number=number,
        cited=cited,
        source=source,
        gone=gone,
        around=_triples_around(base, cited.node.key, cited.ends),
        back=f"/b/{base.name}/q/{id}",
        titles=document_titles(base, [cited.node.key]),
        cites=id,
        words="",
    )


def _view_citation(
    server: Server,
    base: ServedBase,
    cited: EvidenceBlock,
    quotes: Sequence[Quote],
    evidence: Sequence[Evidence],
    rows: int | None,
) -> tuple[SourceView | None, str]:
    """Return the source of a citation as it is today, and what happened to it since, "" where nothing did."""
    node = cited.node
    words = quotes[0].text if quotes else node.text
    today = base.knowledge_base.trace_citation(node.id, node.document, words, node.page)
    if today.node is None:
        is_removed = today.state == "removed"
        earlier = view_earlier(base, node.id, quotes)
        return earlier, _describe_loss(node.document, is_removed=is_removed, is_shown=earlier is not None)
    if today.state == "unchanged":
        return view_source(server, base, node.id, quotes, evidence, cited.number, rows), ""
    start = today.node.text.find(words)
    moved = [Quote(today.node.id, words, (start, start + len(words)))] if quotes and start >= 0 else []
    source = view_source(server, base, today.node.id, moved, (), cited.number, rows)
    if today.node.page is None:
        return source, gettext("source changed since this answer; the words are still there")
    page = str(today.node.page)
    moved_to = gettext(
        "source changed since this answer; the words are still there, now on page %(page)s", page=page
    )
    return source, moved_to


def _describe_loss(document: str, *, is_removed: bool, is_shown: bool) -> str:
    """Say that the words of a citation are no longer in the documents; ``is_shown``: they are shown as they were."""
    if is_removed:
        happened = gettext("source removed")
        if is_shown:
            happened = gettext("source removed; this is how it was when it was cited")
    else:
        happened = gettext("source changed, and these words are gone")
        if is_shown:
            happened = gettext(
                "source changed, and these words are gone; this is how it was when it was cited"
            )
    return f"{happened}: {document}"


def _triples_around(base: ServedBase, graph: str, ends: tuple[str, ...]) -> list[EntityTriples]:
    """Return the triples of the head of a triple."""
    with suppress(ClewError):
        if ends:
            head = base.knowledge_base.graphs.entities(graph, ends[0])[0]
            return entity_triples(base.knowledge_base.graphs.get(graph), head, _MAX_TRIPLES)
    return []


def _entry_context(entry: Mapping[str, Any], server: Server, base: ServedBase) -> dict[str, Any]:
    """Return what the template of an answer is given."""
    view = None if entry["answer"] is None else AnswerView.from_dict(entry["answer"])
    page = None
    if view is not None:
        row_ids = [item.node.id for item in view.evidence if item.node.kind == ROW]
        page = make_answer_page(view, table_rows(base, row_ids))
    return {
        "entry": entry,
        "ended": entry["state"] in history.FINAL_STATES,
        "view": view,
        "page": page,
        "compared": "",
        "titles": {} if view is None else document_titles(base, (item.node.key for item in view.evidence)),
        "scope": describe_scope(base, entry),
        "go_on": next_question(server, base, entry),
        # What graphs alone answered waits for no document.
        "early": entry["early"]
        and not (view is not None and view.evidence and all(item.node.in_graph for item in view.evidence)),
    }
