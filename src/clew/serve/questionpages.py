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

from clew.api import triples_of
from clew.api.shapes import Triples
from clew.errors import ClewError, NotFound, UsageError
from clew.serve import history
from clew.serve.events import Channel, event_stream, seen
from clew.serve.problems import Refused, status_of
from clew.serve.render import Explained, fragment, page
from clew.serve.routes.questions import Ask, ask
from clew.serve.server import Here, Opened, Server
from clew.serve.shelf import Shelved
from clew.serve.showing import Shown, shown
from clew.serve.source import Source, rows_of, source_of
from clew.serve.views import choices_of, home_page, labels_of, scope_of
from clew.serve.walking import walk_of
from clew.types import ROW

router = APIRouter(prefix="/b/{base}", include_in_schema=False, route_class=Explained)

#: Hits of a step that are shown by their words while a question is answered.
_SHOWN = 40
#: Triples of each relation that are shown around one.
_TRIPLES = 8
#: Fields of the form that a person may leave empty.
_OPTIONAL = ("model", "recipe", "beside", "also")
#: Fields of a form: one for each document that is ticked.
_FIELDS = 20_000


@router.post("/ask")
async def ask_page(request: Request, here: Here, opened: Opened) -> Response:
    """Ask what the form says, once or with two methods; what is wrong is said above the form, which keeps its
    words."""
    try:
        given = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=_FIELDS)
    except ValueError as error:
        raise Refused(413, f"the form has more than {_FIELDS:,} fields", "Choose fewer documents") from error
    return await run_in_threadpool(_asked, given, here, opened)


def _asked(given: Mapping[str, list[str]], here: Server, opened: Shelved) -> Response:
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
        return home_page(here, opened, form, UsageError(str(error.errors()[0]["msg"])), 422)
    except ClewError as error:
        return home_page(here, opened, form, error, status_of(error))
    return _to(f"/b/{opened.name}/q/{first}")


@router.get("/q/{id}")
def question(id: str, here: Here, opened: Opened) -> HTMLResponse:
    """Show a question: as it is being answered, or with its answer; beside the one that it is compared with."""
    entries = [here.asking.entry(opened, id)]
    if entries[0]["beside"]:
        with suppress(NotFound):  # forgotten: this one stands alone
            entries.insert(0, here.asking.entry(opened, entries[0]["beside"]))
    asked = entries[-1]["question"] or entries[-1]["chain"]
    return page(
        "question.html",
        title=asked,
        base=opened.name,
        entries=[_told(entry, opened) for entry in entries],
        asked=asked,
        choices=choices_of(here),
    )


@router.get("/q/{id}/answer")
def answer(id: str, here: Here, opened: Opened) -> HTMLResponse:
    """Give what the page of a question shows below it, once it has ended."""
    entry = here.asking.entry(opened, id)
    return page("part-answer.html", base=opened.name, **_told(entry, opened))


@router.get("/q/{id}/events", response_class=StreamingResponse)
def events(
    id: str, here: Here, opened: Opened, last_event_id: Annotated[str | None, Header()] = None
) -> Response:
    """Follow a question as the API's events do, each ``step`` as it is to be shown: ``{"html": ...}``."""
    job = here.asking.get(opened, id)
    if job is None or (job.events.closed and last_event_id == str(job.events.last)):
        return Response(status_code=204)
    return event_stream(_followed(job.events, seen(last_event_id), opened))


async def _followed(channel: Channel, after: int, opened: Shelved) -> AsyncIterator[str]:
    async for wire in channel.follow(after):
        lines = wire.split("\n")
        if len(lines) > 2 and lines[1] == "event: step":
            step = json.loads(lines[2].removeprefix("data: "))
            ids = {id for hit in step["hits"][:_SHOWN] for id in (hit["id"], *hit["path"][-2:])}
            labels = await run_in_threadpool(labels_of, opened, ids, None)
            html = fragment("part-step.html", step=step, base=opened.name, labels=labels)
            yield f"{lines[0]}\n{lines[1]}\ndata: {json.dumps({'html': html})}\n\n"
        elif len(lines) > 2 and lines[1] == "event: answer":
            # The page asks for the answer as it is shown.
            yield f"{lines[0]}\n{lines[1]}\ndata: {{}}\n\n"
        else:
            yield wire


@router.get("/q/{id}/cite/{number}")
def cite(id: str, number: int, here: Here, opened: Opened, part: bool = False) -> HTMLResponse:
    """Show a piece of evidence where it stands, with the quoted words marked. ``part``: without a page around it."""
    entry = opened.history.get(id)
    found = (entry["answer"] or {}).get("evidence", [])
    if not 1 <= number <= len(found):
        raise NotFound(f"this answer has no evidence number {number}", f"It has {len(found)}")
    view = shown(entry["answer"])
    cited = view.citations[number - 1]
    spans = [tuple(one["span"]) for one in entry["answer"]["quotes"] if one["node"] == cited.id]
    source: Source | None = None
    gone = ""
    if not cited.in_graph:
        try:
            source = source_of(here, opened, cited.id, spans)
        except NotFound as error:
            gone = error.problem
    return page(
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


def _around(opened: Shelved, graph: str, ends: tuple[str, ...]) -> list[Triples]:
    """Return what a graph says of the head of a triple."""
    with suppress(ClewError):
        if ends:
            return triples_of(opened.base.graph(graph), opened.base.entities(graph, ends[0])[0], _TRIPLES)
    return []


def _told(entry: Mapping[str, Any], opened: Shelved) -> dict[str, Any]:
    """Return what the template of a question is given."""
    answered = entry["answer"]
    view: Shown | None = None
    if answered is not None:
        rows = [hit["id"] for hit in answered["evidence"] if hit["kind"] == ROW]
        view = shown(answered, rows_of(opened, rows))
    walk = walk_of(answered) if answered is not None else None
    ids = {place.id for place in walk.places} if walk is not None else set()
    if answered is not None:
        ids |= {hit["id"] for step in answered["trail"] for hit in step["hits"]}
        ids |= {id for step in answered["trail"] for hit in step["hits"] for id in hit["path"]}
    return {
        "entry": entry,
        "ended": entry["state"] in history.ENDED,
        "view": view,
        "walk": walk,
        "labels": labels_of(opened, ids, answered),
        "scope": scope_of(opened, entry),
    }


def _to(place: str) -> Response:
    return RedirectResponse(place, status_code=303)
