"""Uploads: files that arrive, and their states."""

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

#: The OpenAPI description of a request that is read as it arrives.
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
    """Accept documents: ``uploads`` lists those that were accepted, ``refused`` the others, each with the reason.

    An accepted file is on the disk and survives the end of the server. It is read later; whether it could be read is
    in GET /uploads and /uploads/events. 429 with Retry-After if too much waits already.
    """
    return await accept_upload(
        request, server, base, lambda file, form: new_upload(file.id, "document", file.name, file.size)
    )


async def accept_upload(
    request: Request,
    server: Server,
    base: ServedBase,
    make_upload: Callable[[ReceivedFile, UploadForm], Upload],
) -> dict[str, Any]:
    """Receive files and accept those that ``make_upload`` makes uploads of; return these, and the others with the
    reasons. Raises RequestRefused, ServerBusy."""
    server.require_writable()
    spool, length = server.uploads.spools[base.name], int(request.headers.get("content-length") or 0)
    with server.uploads.reserve_space(base.name, length) as take:
        form = await receive_upload(request, spool, server.settings.limits, take)
        return await run_in_threadpool(
            _accept_files, form, server, base, make_upload
        )  # it waits for the disk


def _accept_files(
    form: UploadForm,
    server: Server,
    base: ServedBase,
    make_upload: Callable[[ReceivedFile, UploadForm], Upload],
) -> dict[str, Any]:
    uploads, refused = [], []
    for file in form.files:
        try:
            if file.error:
                raise UsageError(file.error, file.hint)
            uploads.append(make_upload(file, form))
        except ClewError as error:
            if file.id:
                server.uploads.spools[base.name].discard(file.id)
            refused.append({"name": file.name} | error_to_dict(error))
    lost = {upload.id: error for upload, error in server.uploads.accept(base.name, uploads)}
    refused += [{"name": file.name} | error_to_dict(lost[file.id]) for file in uploads if file.id in lost]
    accepted = [upload.to_dict() for upload in uploads if upload.id not in lost]
    return {"uploads": accepted, "refused": refused}


@router.get("/uploads")
def uploads(server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """List the uploads that wait, are being read or have ended recently, the oldest first. Failed ones say why.

    ``encoding`` has how many passages of how many can be found by their meaning; ``progress`` how many ``files``
    cannot be asked yet, and the ``share`` of all work that is done, which never falls. Each is null at the end."""
    name = base.name
    return {
        "uploads": server.uploads.all_uploads(name),
        "encoding": server.uploads.encoding_progress(name),
        "progress": server.uploads.progress(name),
    }


@router.get("/uploads/events", response_class=StreamingResponse)
def events(
    server: CurrentServer, base: CurrentBase, last_event_id: Annotated[str | None, Header()] = None
) -> StreamingResponse:
    """Follow the uploads as server-sent events: an ``upload`` with its new state (waiting, reading, indexing,
    encoding: it can be found by words, done, failed), ``pages`` with the number of pages that are read,
    ``encoding`` with the number of passages done, ``forgotten``.

    The events start now, or after Last-Event-ID; earlier states are in GET /uploads.
    """
    channel = server.uploads.events[base.name]
    return stream_channel(channel, str(channel.last_number) if last_event_id is None else last_event_id)


@router.delete("/uploads/{id}")
def forget(id: str, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Forget an upload that has ended, withdraw one that still waits, or cancel one that is being read. A document
    that was read from it stays."""
    server.require_writable()
    server.uploads.forget(base.name, id)
    return {"forgotten": id}
