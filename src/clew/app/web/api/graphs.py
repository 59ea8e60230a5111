"""Knowledge graphs beside the documents: listed, described, looked up, added, removed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from clew.app.web.api.uploads import UPLOAD_SCHEMA, accept_upload
from clew.app.web.bases import ServedBase
from clew.app.web.errors import RequestRefused
from clew.app.web.server import CurrentBase, CurrentServer, Server
from clew.app.web.uploads.multipart import ReceivedFile, UploadForm
from clew.app.web.uploads.spool import FINAL_STATES, Upload, new_upload
from clew.core.errors import UsageError
from clew.core.types import GraphInfo
from clew.knowledge_base.ingest.graphs import default_graph_name
from clew.knowledge_base.source_files import UPLOAD_PREFIX
from clew.parse.graphs.reader import FORMATS
from clew.store.graphs.graph_store import check_graph_name

router = APIRouter(prefix="/bases/{base}", tags=["graphs"])

#: Forms that an upload may have: one file, not packed, as what it unpacks to could not be foreseen.
_FORMS = tuple(form for form in FORMATS if form != "stark")
#: How many entities of one name are shown.
_NAMESAKES = 50


@router.get("/graphs")
def graphs(base: CurrentBase) -> dict[str, Any]:
    """List the imported and mounted graphs."""
    return {"graphs": [_graph(one) for one in base.knowledge_base.graphs.infos()]}


@router.get("/graphs/{name}")
def schema(name: str, base: CurrentBase) -> dict[str, Any]:
    """Return what a graph holds: types of nodes and relations, with counts and examples."""
    graph = base.knowledge_base.graphs.get(name)
    relations = sorted(graph.relations().items(), key=lambda one: (-one[1].edges, one[0]))
    return {
        "graph": name,
        "nodes": graph.size,
        "types": dict(graph.types()),
        "answers": list(graph.answer_types()),
        "relations": [relation.to_dict(name) for name, relation in relations],
    }


@router.get("/graphs/{name}/entities")
def entities(
    name: str,
    base: CurrentBase,
    called: Annotated[str, Query(max_length=1_000, description="Its name, an alias, or its id.")],
    limit: Annotated[int, Query(ge=1, le=200, description="Triples of each relation, at most.")] = 10,
) -> dict[str, Any]:
    """Return the entities of a graph that are called so, each with its triples and what it is the same as."""
    found = base.knowledge_base.graphs.entities(name, called)[:_NAMESAKES]
    return {"entities": [one.to_dict() for one in base.knowledge_base.graphs.describe(name, found, limit)]}


@router.post("/graphs", status_code=202, openapi_extra=UPLOAD_SCHEMA)
async def add(request: Request, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Take graph files on, each a graph: CSV, TSV, JSON lines, Parquet, N-Triples, Turtle, RDF/XML.

    The field ``name`` (with one file) says what the graph is called, by default as the file; ``form`` what form it
    has, by default that of its name. A graph of that name must be removed first. As with /uploads, it is read in
    its turn.
    """
    named: set[str] = set()  # graphs of this request

    def made(one: ReceivedFile, form: UploadForm) -> Upload:
        name = form.fields.get("name", "") if len(form.files) == 1 else ""
        upload = new_upload(one.id, "graph", one.name, one.size)
        upload = _checked(upload, name, form.fields.get("form", ""), named | _graphs(server, base))
        named.add(upload.graph)
        return upload

    return await accept_upload(request, server, base, made)


@router.delete("/graphs/{name}")
def remove(name: str, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Remove a graph: the base is as if it had never been added."""
    with server.open_for_writing(base) as writable:
        gone = writable.graphs.remove(name)
    return {"removed": gone.name}


def _graphs(server: Server, base: ServedBase) -> set[str]:
    """Return the names of the graphs that there are, or that wait."""
    waiting = {
        one["graph"] for one in server.uploads.all_uploads(base.name) if one["state"] not in FINAL_STATES
    }
    return {one.name for one in base.knowledge_base.graphs.infos()} | waiting


def _checked(upload: Upload, name: str, form: str, taken: Collection[str]) -> Upload:
    """Return a graph's upload with its name and form. Raises UsageError, UnreadableFile, Refused."""
    name = name or default_graph_name(Path(upload.name))  # of the name alone
    check_graph_name(name)
    if name in taken:
        raise RequestRefused(
            409, f"there is a graph named '{name}'", "Remove it first, or give this one another name"
        )
    form = form or _form_of(upload.name)
    if form not in _FORMS:
        raise UsageError(f"a graph cannot be uploaded as '{form}'", f"Known: {', '.join(_FORMS)}")
    return replace(upload, graph=name, form=form)


def _form_of(name: str) -> str:
    """Return the form that a file's name says. Raises UsageError."""
    ending = PurePath(name).suffix.lower().removeprefix(".")
    for form, endings in FORMATS.items():
        if ending in endings:
            return form
    known = ", ".join(f".{ending}" for endings in FORMATS.values() for ending in endings)
    raise UsageError(
        f"'{name}' does not say what form of graph it holds", f"Known by name: {known}; not packed"
    )


def _graph(graph: GraphInfo) -> dict[str, Any]:
    """Return a graph for a page: where its files lie on the server's disks is left out."""
    shape = graph.to_dict()
    shape["url"] = None
    shape["mounted"] = bool(graph.url)
    for source in shape["sources"]:
        source["path"] = PurePath(source["path"].removeprefix(UPLOAD_PREFIX)).name
    return shape
