"""The pages of questions: asked with a form, followed as they are answered, opened again, set side by side."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Header, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from clew.app.answers.view import AnswerView, view_answer
from clew.app.answers.walk import draw_walk
from clew.app.web import history
from clew.app.web.api.questions import Ask, ask
from clew.app.web.bases import ServedBase
from clew.app.web.errors import RequestRefused, status_code
from clew.app.web.events import EventChannel, parse_last_event_id, stream_events
from clew.app.web.pages.context import describe_scope, form_choices, node_labels, render_home
from clew.app.web.pages.render import PageRoute, render_fragment, render_page
from clew.app.web.pages.source import SourceView, table_rows, view_source
from clew.app.web.server import CurrentBase, CurrentServer, Server
from clew.core.errors import ClewError, NotFound, UsageError
from clew.core.types import ROW
from clew.knowledge_base.graphs import entity_triples
from clew.knowledge_base.results import EntityTriples

router = APIRouter(prefix="/b/{base}", include_in_schema=False, route_class=PageRoute)

#: Hits of a step that are shown by their words while a question is answered.
_SHOWN = 40
#: Triples of each relation that are shown around one.
_TRIPLES = 8
#: Fields of the form that a person may leave empty.
_OPTIONAL = ("model", "recipe", "beside", "also")
#: Fields of a form: one for each document that is ticked.
_FIELDS = 20_000


@router.post("/ask")
async def ask_page(request: Request, here: CurrentServer, opened: CurrentBase) -> Response:
    """Ask what the form says, once or with two methods; what is wrong is said above the form, which keeps its
    words."""
    try:
        given = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=_FIELDS)
    except ValueError as error:
        raise RequestRefused(
            413, f"the form has more than {_FIELDS:,} fields", "Choose fewer documents"
        ) from error
    return await run_in_threadpool(_asked, given, here, opened)


def _asked(given: Mapping[str, list[str]], here: Server, opened: ServedBase) -> Response:
    form = {name: given[name][0] for name in ("question", "chain", *_OPTIONAL) if given.get(name)}
    also = form.pop("also", "")
    try:
        made = Ask.model_validate(
            form | {name: given[name] for name in ("documents", "graphs") if given.get(name)}
        )
        first = ask(made, here, opened)["id"]
        if also:
            second = ask(made.model_copy(update={"recipe": also, "beside": first}), here, opened)["id"]
            return _to(f"/b/{opened.name}/q/{second}")
    except ValidationError as error:
        return render_home(here, opened, form, UsageError(str(error.errors()[0]["msg"])), 422)
    except ClewError as error:
        return render_home(here, opened, form, error, status_code(error))
    return _to(f"/b/{opened.name}/q/{first}")


@router.get("/q/{id}")
def question(id: str, here: CurrentServer, opened: CurrentBase) -> HTMLResponse:
    """Show a question: as it is being answered, or with its answer; beside the one that it is compared with."""
    entries = [here.questions.entry(opened, id)]
    if entries[0]["beside"]:
        with suppress(NotFound):  # forgotten: this one stands alone
            entries.insert(0, here.questions.entry(opened, entries[0]["beside"]))
    asked = entries[-1]["question"] or entries[-1]["chain"]
    return render_page(
        "question.html",
        title=asked,
        base=opened.name,
        entries=[_told(entry, opened) for entry in entries],
        asked=asked,
        choices=form_choices(here),
    )


@router.get("/q/{id}/answer")
def answer(id: str, here: CurrentServer, opened: CurrentBase) -> HTMLResponse:
    """Give what the page of a question shows below it, once it has ended."""
    entry = here.questions.entry(opened, id)
    return render_page("part-answer.html", base=opened.name, **_told(entry, opened))


@router.get("/q/{id}/events", response_class=StreamingResponse)
def events(
    id: str, here: CurrentServer, opened: CurrentBase, last_event_id: Annotated[str | None, Header()] = None
) -> Response:
    """Follow a question as the API's events do, each ``step`` as it is to be shown: ``{"html": ...}``."""
    job = here.questions.get(opened, id)
    if job is None or (job.events.closed and last_event_id == str(job.events.last_number)):
        return Response(status_code=204)
    return stream_events(_followed(job.events, parse_last_event_id(last_event_id), opened))


async def _followed(channel: EventChannel, after: int, opened: ServedBase) -> AsyncIterator[str]:
    async for wire in channel.follow(after):
        lines = wire.split("\n")
        if len(lines) > 2 and lines[1] == "event: step":
            step = json.loads(lines[2].removeprefix("data: "))
            ids = {id for hit in step["hits"][:_SHOWN] for id in (hit["id"], *hit["path"][-2:])}
            labels = await run_in_threadpool(node_labels, opened, ids, None)
            html = render_fragment("part-step.html", step=step, base=opened.name, labels=labels)
            yield f"{lines[0]}\n{lines[1]}\ndata: {json.dumps({'html': html})}\n\n"
        elif len(lines) > 2 and lines[1] == "event: answer":
            # The page asks for the answer as it is shown.
            yield f"{lines[0]}\n{lines[1]}\ndata: {{}}\n\n"
        else:
            yield wire


@router.get("/q/{id}/cite/{number}")
def cite(id: str, number: int, here: CurrentServer, opened: CurrentBase, part: bool = False) -> HTMLResponse:
    """Show a piece of evidence where it stands, with the quoted words marked. ``part``: without a page around it."""
    entry = opened.history.get(id)
    found = (entry["answer"] or {}).get("evidence", [])
    if not 1 <= number <= len(found):
        raise NotFound(f"this answer has no evidence number {number}", f"It has {len(found)}")
    view = view_answer(entry["answer"])
    cited = view.citations[number - 1]
    spans = [tuple(one["span"]) for one in entry["answer"]["quotes"] if one["node"] == cited.id]
    source: SourceView | None = None
    gone = ""
    if not cited.in_graph:
        try:
            source = view_source(here, opened, cited.id, spans)
        except NotFound as error:
            gone = error.problem
    return render_page(
        "part-source.html" if part else "source.html",
        title=f"[{number}] {cited.document}",
        base=opened.name,
        number=number,
        cited=cited,
        source=source,
        gone=gone,
        around=_around(opened, cited.key, cited.ends),
        back=f"/b/{opened.name}/q/{id}",
    )


def _around(opened: ServedBase, graph: str, ends: tuple[str, ...]) -> list[EntityTriples]:
    """Return what a graph says of the head of a triple."""
    with suppress(ClewError):
        if ends:
            return entity_triples(
                opened.base.graphs.get(graph), opened.base.graphs.entities(graph, ends[0])[0], _TRIPLES
            )
    return []


def _told(entry: Mapping[str, Any], opened: ServedBase) -> dict[str, Any]:
    """Return what the template of a question is given."""
    answered = entry["answer"]
    view: AnswerView | None = None
    if answered is not None:
        rows = [hit["id"] for hit in answered["evidence"] if hit["kind"] == ROW]
        view = view_answer(answered, table_rows(opened, rows))
    walk = draw_walk(answered) if answered is not None else None
    ids = {place.id for place in walk.places} if walk is not None else set()
    if answered is not None:
        ids |= {hit["id"] for step in answered["trail"] for hit in step["hits"]}
        ids |= {id for step in answered["trail"] for hit in step["hits"] for id in hit["path"]}
    return {
        "entry": entry,
        "ended": entry["state"] in history.FINAL_STATES,
        "view": view,
        "walk": walk,
        "labels": node_labels(opened, ids, answered),
        "scope": describe_scope(opened, entry),
    }


def _to(place: str) -> Response:
    return RedirectResponse(place, status_code=303)
