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
from clew.parse.graphs.formats import graph_formats
from clew.store.graphs.graph_store import check_graph_name

router = APIRouter(prefix="/bases/{base}", tags=["graphs"])

#: Entities of one name that are returned.
_MAX_NAMESAKES = 50


@router.get("/graphs")
def graphs(base: CurrentBase) -> dict[str, Any]:
    """List the imported and mounted graphs."""
    return {"graphs": list(map(_graph_to_dict, base.knowledge_base.graphs.infos()))}


@router.get("/graphs/{name}")
def schema(name: str, base: CurrentBase) -> dict[str, Any]:
    """Return the schema of a graph: types of nodes and relations, with counts and examples."""
    graph = base.knowledge_base.graphs.get(name)
    relations = sorted(graph.relations().items(), key=lambda item: (-item[1].edges, item[0]))
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
    """Return the entities of a graph with this name, each with its triples and its equivalents in other graphs."""
    graphs = base.knowledge_base.graphs
    descriptions = graphs.describe(name, graphs.entities(name, called)[:_MAX_NAMESAKES], limit)
    return {"entities": [description.to_dict() for description in descriptions]}


@router.post("/graphs", status_code=202, openapi_extra=UPLOAD_SCHEMA)
async def add(request: Request, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Accept graph files, each a graph: CSV, TSV, JSON lines, Parquet, N-Triples, Turtle, RDF/XML.

    The field ``name`` (with one file) names the graph, by default after the file; ``form`` is its format, by default
    that of the file's name. An existing graph of that name must be removed first. As with /uploads, the file is read
    later.
    """
    names: set[str] = set()  # graphs of this request

    def make_upload(file: ReceivedFile, form: UploadForm) -> Upload:
        name = form.fields.get("name", "") if len(form.files) == 1 else ""
        upload = new_upload(file.id, "graph", file.name, file.size)
        taken = names | _graph_names(server, base)
        upload = _name_graph(upload, name, form.fields.get("form", ""), taken)
        names.add(upload.graph)
        return upload

    return await accept_upload(request, server, base, make_upload)


@router.delete("/graphs/{name}")
def remove(name: str, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Remove a graph. The base is then as if it had never been added."""
    with server.open_for_writing(base) as writable:
        graph = writable.graphs.remove(name)
    return {"removed": graph.name}


def _graph_names(server: Server, base: ServedBase) -> set[str]:
    """Return the names of the graphs of a base, and of those that wait to be read."""
    uploads = server.uploads.all_uploads(base.name)
    waiting = {upload["graph"] for upload in uploads if upload["state"] not in FINAL_STATES}
    return {graph.name for graph in base.knowledge_base.graphs.infos()} | waiting


def _name_graph(upload: Upload, name: str, form: str, taken: Collection[str]) -> Upload:
    """Return the upload of a graph with its name and format. Raises UsageError, UnreadableFile, RequestRefused."""
    name = name or default_graph_name(Path(upload.name))
    check_graph_name(name)
    if name in taken:
        raise RequestRefused(
            409, f"there is a graph named '{name}'", "Remove it first, or give this one another name"
        )
    form = form or _format_of(upload.name)
    # An upload is one file, and no archive, whose unpacked size is unknown.
    known = dict.fromkeys(known_form.name for known_form in graph_formats() if known_form.suffixes)
    if form not in known:
        raise UsageError(f"a graph cannot be uploaded as '{form}'", f"Known: {', '.join(known)}")
    return replace(upload, graph=name, form=form)


def _format_of(name: str) -> str:
    """Return the format of a file by its name. Raises UsageError."""
    suffix = PurePath(name).suffix.lower()
    for form in graph_formats():
        if suffix in form.suffixes:
            return form.name
    known = ", ".join(suffix for form in graph_formats() for suffix in form.suffixes)
    raise UsageError(
        f"'{name}' does not say what form of graph it holds", f"Known by name: {known}; not packed"
    )


def _graph_to_dict(graph: GraphInfo) -> dict[str, Any]:
    """Return a graph without its address and the folders of its files, which are nobody's business."""
    data = graph.to_dict() | {"url": None, "mounted": bool(graph.url)}
    for source in data["sources"]:
        source["path"] = PurePath(source["path"].removeprefix(UPLOAD_PREFIX)).name
    return data
