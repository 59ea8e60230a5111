"""Uploads: files that arrive, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from clew.app.web.bases import ServedBase
from clew.app.web.errors import error_to_dict
from clew.app.web.events import stream_channel
from clew.app.web.server import CurrentBase, CurrentServer, Server
from clew.app.web.uploads.multipart import ReceivedFile, UploadForm, receive_upload
from clew.app.web.uploads.spool import Upload, new_upload
from clew.core.errors import ClewError, UsageError

router = APIRouter(prefix="/bases/{base}", tags=["uploads"])

#: What OpenAPI says of a request that is read as it arrives.
UPLOAD_SCHEMA: dict[str, Any] = {
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


@router.post("/uploads", status_code=202, openapi_extra=UPLOAD_SCHEMA)
async def upload(request: Request, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Take documents on: ``uploads`` has those that are, ``refused`` the others, each with the reason.

    What is taken on is on the disk and is not lost, though the server be killed; it is read in its turn, and refused
    then if it is not what a parser reads: see GET /uploads, or follow /uploads/events. 429 with Retry-After where too
    much waits already.
    """
    return await accept_upload(
        request, server, base, lambda one, form: new_upload(one.id, "document", one.name, one.size)
    )


async def accept_upload(
    request: Request, server: Server, base: ServedBase, made: Callable[[ReceivedFile, UploadForm], Upload]
) -> dict[str, Any]:
    """Receive files and take on those that ``made`` makes uploads of; return these and the others, each with its
    reason. Raises Refused, Busy."""
    server.require_writable()
    spool, claimed = server.uploads.spools[base.name], int(request.headers.get("content-length") or 0)
    with server.uploads.reserve_space(base.name, claimed) as take:
        form = await receive_upload(request, spool, server.settings.limits, take)
        return await run_in_threadpool(_taken, form, server, base, made)  # it waits for the disk


def _taken(
    form: UploadForm, server: Server, base: ServedBase, made: Callable[[ReceivedFile, UploadForm], Upload]
) -> dict[str, Any]:
    taken, refused = [], []
    for one in form.files:
        try:
            if one.error:
                raise UsageError(one.error, one.hint)
            taken.append(made(one, form))
        except ClewError as error:
            if one.id:
                server.uploads.spools[base.name].discard(one.id)
            refused.append({"name": one.name} | error_to_dict(error))
    lost = {upload.id: error for upload, error in server.uploads.accept(base.name, taken)}
    refused += [{"name": one.name} | error_to_dict(lost[one.id]) for one in taken if one.id in lost]
    return {"uploads": [one.to_dict() for one in taken if one.id not in lost], "refused": refused}


@router.get("/uploads")
def uploads(server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """List the uploads that wait, are being read, or were lately, the oldest first; those that failed say why."""
    name = base.name
    return {"uploads": server.uploads.all_uploads(name), "encoding": server.uploads.encoding_progress(name)}


@router.get("/uploads/events", response_class=StreamingResponse)
def events(
    server: CurrentServer, base: CurrentBase, last_event_id: Annotated[str | None, Header()] = None
) -> StreamingResponse:
    """Follow the uploads as server-sent events: an ``upload`` with its new state (waiting, reading, indexing,
    encoding: it can be found by words, done, failed), ``encoding`` with how many passages are done, ``forgotten``.

    It tells what happens from now on, or from Last-Event-ID; what was before is in GET /uploads.
    """
    channel = server.uploads.events[base.name]
    return stream_channel(channel, str(channel.last_number) if last_event_id is None else last_event_id)


@router.delete("/uploads/{id}")
def forget(id: str, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Forget an upload that has failed or is done, or take one back that still waits. The document that it became
    stays."""
    server.require_writable()
    server.uploads.forget(base.name, id)
    return {"forgotten": id}
