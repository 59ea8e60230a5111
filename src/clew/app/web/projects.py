"""Projects that are made, renamed and deleted in the app: knowledge bases in a folder of the person who runs it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import clew
from clew.app.web.bases import TITLE_SETTING, ServedBase
from clew.app.web.errors import RequestRefused
from clew.app.web.settings import free_name
from clew.app.web.uploads.spool import new_upload
from clew.core.errors import NotFound, UsageError
from clew.core.files import create_folder

if TYPE_CHECKING:
    from fastapi import FastAPI

    from clew.app.web.server import Server

#: The most characters of a title.
MAX_TITLE = 80
SAMPLE_TITLE = "Sample: the river Oskell"


def create_project(app: FastAPI, title: str) -> ServedBase:
    """Make an empty project and serve it. Raises UsageError, RequestRefused where none can be made, StoreError."""
    server: Server = app.state.server
    folder = server.settings.projects
    if folder is None:
        raise RequestRefused(403, "this server makes no projects")
    title = _clean_title(title)
    taken = {base.name for base in server.bases.all()}
    taken |= {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    name = free_name(title.lower(), taken)
    create_folder(folder)
    base = server.bases.open(name, folder / name, title)
    server.uploads.add_base(name, folder / name)
    server.sources.add_base(name, folder / name)
    app.state.add_routes([name])
    return base


def create_sample(app: FastAPI) -> ServedBase:
    """Make a project of the documents that come with clew, which are then read as uploads are."""
    files = sample_documents()
    server: Server = app.state.server
    base = create_project(app, SAMPLE_TITLE)
    spool = server.uploads.spools[base.name]
    uploads = []
    for path in files:
        id, file = spool.begin()
        with file, path.open("rb") as source:
            shutil.copyfileobj(source, file)
        uploads.append(new_upload(id, "document", path.name, path.stat().st_size))
    server.uploads.accept(base.name, uploads)
    return base


def sample_documents() -> Sequence[Path]:
    """Return the sample documents, from the installed package or from a checkout. Raises NotFound."""
    package = Path(clew.__file__).parent
    for folder in (package / "samples", package.parents[1] / "samples" / "documents"):
        if folder.is_dir():
            return sorted(path for path in folder.iterdir() if path.is_file())
    raise NotFound("the sample documents are not installed")


def rename_project(server: Server, base: ServedBase, title: str) -> None:
    """Give a project a title; its address stays. Raises UsageError."""
    with server.open_for_writing(base) as writable:
        writable.store.set_setting(TITLE_SETTING, _clean_title(title))


def is_deletable(server: Server, base: ServedBase) -> bool:
    """Return whether a project was made in the app; others are folders of a person, who deletes them."""
    return base.knowledge_base.path.parent == server.settings.projects


def delete_project(server: Server, base: ServedBase) -> None:
    """Delete a project with its documents and questions. The files that documents were read from stay.

    Raises RequestRefused for one that was not made in the app, ServerBusy while a file is being read into it.
    """
    server.require_writable()
    if not is_deletable(server, base):
        path = base.knowledge_base.path
        raise RequestRefused(403, f"'{base.title}' was not made here: it is the folder {path}")
    server.grids.stop_base(base)
    server.questions.stop_base(base)
    server.sources.drop_base(base.name)
    server.uploads.drop_base(base.name)
    server.bases.drop(base.name)
    shutil.rmtree(base.knowledge_base.path)


def _clean_title(title: str) -> str:
    title = " ".join(title.split())
    if not 0 < len(title) <= MAX_TITLE:
        raise UsageError(f"the name of a project has 1 to {MAX_TITLE} characters")
    return title
