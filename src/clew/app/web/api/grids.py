"""Grids: the same questions asked of many documents, each alone."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from clew.app.web.api.questions import Form, Key
from clew.app.web.server import CurrentBase, CurrentServer

router = APIRouter(prefix="/bases/{base}/grids", tags=["grids"])

_MEDIA_TYPES = {
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "csv": "text/csv; charset=utf-8",
}


class NewGrid(Form):
    """Questions, and keys of documents; without any, of all documents."""

    questions: Annotated[list[Annotated[str, Field(max_length=4_000)]], Field(min_length=1, max_length=200)]
    documents: Annotated[list[Key], Field(max_length=10_000, default_factory=list)]


@router.get("")
def grids(server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """List the grids, the latest first."""
    return {"grids": server.grids.all_grids(base)}


@router.post("", status_code=202)
def create(asked: NewGrid, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Begin a grid: each question is asked of each document alone, one after another."""
    server.require_writable()
    return {"id": server.grids.create(base, asked.questions, asked.documents)}


@router.get("/{id}")
def grid(id: str, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Return a grid with its state and the cells that are answered, each with the quote that it rests on."""
    return server.grids.progress(id) | server.grids.read(base, id).to_dict()


@router.post("/{id}/stop", status_code=202)
def stop(id: str, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Stop a grid after its current cell."""
    server.grids.stop(id)
    return {"id": id}


@router.post("/{id}/continue", status_code=202)
def go_on(id: str, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Answer the open cells of a grid."""
    server.require_writable()
    server.grids.go_on(base, id)
    return {"id": id}


@router.delete("/{id}")
def delete(id: str, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Delete a grid."""
    server.require_writable()
    server.grids.delete(base, id)
    return {"deleted": id}


@router.get("/{id}/file", response_class=Response)
def file(
    id: str,
    server: CurrentServer,
    base: CurrentBase,
    form: Annotated[Literal["xlsx", "csv"], Query(description="Excel or CSV.")] = "xlsx",
) -> Response:
    """Return a grid as a spreadsheet, with the quotes."""
    written = server.grids.read(base, id)
    with TemporaryDirectory(prefix="clew-") as folder:
        path = Path(folder) / f"grid.{form}"
        written.write(path)
        content = path.read_bytes()
    headers = {"Content-Disposition": f'attachment; filename="grid.{form}"'}
    return Response(content, media_type=_MEDIA_TYPES[form], headers=headers)
