"""Sources: folders that a base follows, pages of the web, and text that is pasted."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request
from pydantic import Field

from clew.app.web.api.questions import Form, Name
from clew.app.web.server import CurrentBase, CurrentServer, Server
from clew.app.web.uploads.spool import new_upload
from clew.core.errors import NotFound, UsageError, refuse_password
from clew.core.sources import refuse_system_folders
from clew.core.text import shorten
from clew.knowledge_base.ingest.web_page import is_page_address

router = APIRouter(prefix="/bases/{base}", tags=["sources"])

#: Characters of a name that is made of a text's first line.
_MAX_NAME = 60


class NewSource(Form):
    """A source: the path of a folder on this machine, or the address of a page; its documents get ``tags``.

    A folder of the whole system (`/`, `/etc`, ...) and the home folder are followed only with ``anyway``.
    """

    kind: Literal["folder", "page"]
    place: Annotated[str, Field(min_length=1, max_length=2_000)]
    tags: Annotated[list[Name], Field(max_length=20, default_factory=list)]
    anyway: bool = False


@router.get("/sources")
def sources(server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """List the sources with their states: ``waiting``, ``reading``, ``watching``, ``paused``, ``missing`` (the folder
    is not there now), ``done`` or ``failed``."""
    return {"sources": server.sources.sources(base.name)}


@router.post("/sources", status_code=202)
def add(asked: NewSource, request: Request, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Add a source. A folder, with its subfolders, is followed as ``clew watch`` does; only the person who runs the
    server can add one. A page is read once, if its site allows it."""
    server.require_writable()
    if asked.kind == "folder":
        server.require_local_user(request)
        place = str(_check_folder(asked.place, server))
        if not asked.anyway:
            refuse_system_folders(place)
    else:
        place = asked.place if "//" in asked.place else f"https://{asked.place}"
        if not is_page_address(place) or not urlsplit(place).hostname:
            raise UsageError(
                f"'{asked.place}' is no address of a page", "Such as https://example.org/report.html"
            )
        refuse_password(place, "the address of the page", "The address is stored: give one without")
    source = server.sources.add(base.name, asked.kind, place, asked.tags, anyway=asked.anyway)
    return {"id": source.id, "place": source.place}


def _check_folder(text: str, server: Server) -> Path:
    folder = Path(text).expanduser()
    if not folder.is_absolute():
        raise UsageError(f"'{text}' is no whole path", f"Such as {Path.home() / 'Documents'}")
    folder = folder.resolve()
    if not folder.is_dir():
        raise NotFound(f"there is no folder {folder}" if not folder.exists() else f"{folder} is a file")
    inside = [base.knowledge_base.path for base in server.bases.all()]
    if server.settings.projects is not None:
        inside.append(server.settings.projects.resolve())
    if any(folder == path or path in folder.parents for path in inside):
        raise UsageError(f"{folder} is a folder of clew itself")
    return folder


#: Folders that are offered.
_MAX_FOLDERS = 30


@router.get("/folders")
def folders(
    request: Request,
    server: CurrentServer,
    base: CurrentBase,
    start: Annotated[str, Query(max_length=2_000)] = "",
) -> dict[str, Any]:
    """List the folders of this machine whose paths begin with ``start``, or that are in the person's own folder; only
    for the person who runs the server."""
    server.require_local_user(request)
    path = Path(start).expanduser() if start else Path.home()
    if not path.is_absolute():
        return {"folders": []}
    parent, prefix = (path, "") if start.endswith("/") or not start else (path.parent, path.name)
    names: list[str] = []
    with suppress(OSError):
        names = sorted(
            str(entry)
            for entry in parent.iterdir()
            if entry.name.casefold().startswith(prefix.casefold())
            and (prefix or not entry.name.startswith("."))
            and entry.is_dir()
        )
    return {"folders": names[:_MAX_FOLDERS]}


class SourceChange(Form):
    """``paused``: look at a folder no more, or again. ``again``: read a page again."""

    paused: bool | None = None
    again: bool = False


@router.patch("/sources/{id}")
def change(
    id: str, asked: SourceChange, request: Request, server: CurrentServer, base: CurrentBase
) -> dict[str, Any]:
    """Pause a source, go on with it, or read a page again."""
    _require_right(id, request, server, base.name)
    return {"id": server.sources.change(base.name, id, paused=asked.paused, again=asked.again).id}


@router.delete("/sources/{id}")
def remove(id: str, request: Request, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Follow a source no more. Its documents stay."""
    _require_right(id, request, server, base.name)
    return {"removed": server.sources.remove(base.name, id).id}


def _require_right(id: str, request: Request, server: Server, base: str) -> None:
    """Raise RequestRefused where a person may not change a source: a folder belongs to who runs the server."""
    server.require_writable()
    if any(source["id"] == id and source["kind"] == "folder" for source in server.sources.sources(base)):
        server.require_local_user(request)


class PastedText(Form):
    """A text, which becomes a document with this title, or named by its first line."""

    text: Annotated[str, Field(min_length=1)]
    title: Annotated[str, Field(max_length=120)] = ""


@router.post("/texts", status_code=202)
def paste(asked: PastedText, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Add a text as a document; it is read as an upload is."""
    server.require_writable()
    title = asked.title or shorten(asked.text.split("\n")[0].strip("# \t"), _MAX_NAME)
    data = (asked.text if not asked.title else f"# {asked.title}\n\n{asked.text}").encode()
    with server.uploads.reserve_space(base.name, len(data)) as take:
        take(len(data))
        id, file = server.uploads.spools[base.name].begin()
        with file:
            file.write(data)
        name = re.sub(r"[/\\]", " ", title).strip(". ") or "Pasted text"
        upload = new_upload(id, "document", f"{name}.md", len(data))
        if refused := server.uploads.accept(base.name, [upload]):
            raise refused[0][1]
    return {"upload": upload.to_dict()}
