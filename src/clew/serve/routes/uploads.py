"""Uploads: files that arrive, and what becomes of them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from clew.serve.events import streamed
from clew.serve.multipart import received
from clew.serve.server import Here, Opened
from clew.serve.spool import new_upload

router = APIRouter(prefix="/bases/{base}", tags=["uploads"])

#: What OpenAPI says of a request that is read as it arrives.
FILES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "files": {"type": "array", "items": {"type": "string", "format": "binary"}}
                    },
                }
            }
        },
    }
}


@router.post("/uploads", status_code=202, openapi_extra=FILES)
async def upload(request: Request, here: Here, opened: Opened) -> dict[str, Any]:
    """Take documents on: ``uploads`` has those that are, ``refused`` the others, each with the reason.

    What is taken on is on the disk and is not lost, though the server be killed; it is read in its turn, and refused
    then if it is not what a parser reads: see GET /uploads, or follow /uploads/events. 429 with Retry-After where too
    much waits already.
    """
    here.need_writing()
    here.uploads.room(opened.name, int(request.headers.get("content-length") or 0))
    form = await received(request, here.uploads.spools[opened.name], here.settings.limits)
    taken = [new_upload(one.id, "document", one.name, one.size) for one in form.files if not one.error]
    await run_in_threadpool(here.uploads.accept, opened.name, taken)  # it waits for the disk
    refused = [{"name": one.name, "error": one.error, "hint": one.hint} for one in form.files if one.error]
    return {"uploads": [one.shape() for one in taken], "refused": refused}


@router.get("/uploads")
def uploads(here: Here, opened: Opened) -> dict[str, Any]:
    """List the uploads that wait, are being read, or were lately, the oldest first; those that failed say why."""
    name = opened.name
    return {"uploads": here.uploads.every(name), "encoding": here.uploads.encoding(name)}


@router.get("/uploads/events", response_class=StreamingResponse)
def events(
    here: Here, opened: Opened, last_event_id: Annotated[str | None, Header()] = None
) -> StreamingResponse:
    """Follow the uploads as server-sent events: an ``upload`` with its new state (waiting, reading, indexing,
    encoding: it can be found by words, done, failed), ``encoding`` with how many passages are done, ``forgotten``.

    It tells what happens from now on, or from Last-Event-ID; what was before is in GET /uploads.
    """
    channel = here.uploads.events[opened.name]
    return streamed(channel, str(channel.last) if last_event_id is None else last_event_id)


@router.delete("/uploads/{id}")
def forget(id: str, here: Here, opened: Opened) -> dict[str, Any]:
    """Forget an upload that has failed or is done, or take one back that still waits. The document that it became
    stays."""
    here.need_writing()
    here.uploads.forget(opened.name, id)
    return {"forgotten": id}
