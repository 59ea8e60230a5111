"""What a server offers: bases, models, methods, limits."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field

from clew.app.web.api.questions import Form
from clew.app.web.bases import ServedBase
from clew.app.web.errors import error_to_dict
from clew.app.web.method_choices import offered_methods, offered_retrievers
from clew.app.web.projects import create_project, create_sample, delete_project, rename_project
from clew.app.web.server import CurrentBase, CurrentServer
from clew.app.web.settings import NO_MODEL

router = APIRouter(tags=["bases"])


@router.get("/config")
def config(server: CurrentServer) -> dict[str, Any]:
    """Return what may be chosen, and what the server takes on. ``models`` may be empty; ``none`` is always one."""
    settings, models = server.settings, server.questions.models.choices
    return {
        "models": [{"id": model.id, "goes": model.goes, "leaves_machine": model.leaves} for model in models],
        "model": models[0].id if models else NO_MODEL,
        "recipes": list(map(asdict, offered_methods(settings.recipes).values())),
        "retrievers": list(map(asdict, offered_retrievers().values())),
        "limits": asdict(settings.limits),
        "read_only": settings.read_only,
        "load": server.questions.queue_lengths(),
    }


@router.get("/bases")
def bases(server: CurrentServer) -> dict[str, Any]:
    """List the bases, with their sizes."""
    return {"bases": [_base_to_dict(served) for served in server.bases.all()]}


@router.get("/bases/{base}")
def base(base: CurrentBase) -> dict[str, Any]:
    """Return one base, with its sizes and what its search cannot find yet."""
    return _base_to_dict(base)


class ProjectTitle(Form):
    """What a project is called."""

    title: Annotated[str, Field(max_length=200)]


@router.post("/bases", status_code=201)
def create(asked: ProjectTitle, request: Request, server: CurrentServer) -> dict[str, Any]:
    """Make a project; only for the person who runs the server, on its machine."""
    server.require_local_user(request)
    return _base_to_dict(create_project(request.app, asked.title))


@router.post("/bases/sample", status_code=201)
def sample(request: Request, server: CurrentServer) -> dict[str, Any]:
    """Make a project of the sample documents; only for the person who runs the server, on its machine."""
    server.require_local_user(request)
    return _base_to_dict(create_sample(request.app))


@router.patch("/bases/{base}")
def rename(asked: ProjectTitle, request: Request, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Rename a project; only for the person who runs the server, on its machine."""
    server.require_local_user(request)
    rename_project(server, base, asked.title)
    return {"base": base.name, "title": base.title}


@router.delete("/bases/{base}")
def delete(request: Request, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Delete a project that was made in the app, with its documents and questions; only for the person who runs the
    server, on its machine."""
    server.require_local_user(request)
    delete_project(server, base)
    return {"deleted": base.name}


@router.get("/bases/{base}/recipes")
def recipes(
    server: CurrentServer,
    base: CurrentBase,
    model: Annotated[str | None, Query(max_length=200, description="A name of /config; the default.")] = None,
) -> dict[str, Any]:
    """List the methods that may be chosen for this base with this model; ``problem`` says why one cannot be asked."""
    chosen = server.questions.models.choice(model)
    with server.questions.search_slots.admit():
        offered = []
        for choice in offered_methods(server.settings.recipes).values():
            error = base.knowledge_base.recipe_error(choice.recipe, None if chosen is None else chosen.name)
            offered.append(asdict(choice) | {"problem": None if error is None else error_to_dict(error)})
    return {"model": NO_MODEL if chosen is None else chosen.id, "recipes": offered}


def _base_to_dict(served: ServedBase) -> dict[str, Any]:
    base = served.knowledge_base
    info = base.info(digest=False)
    return {
        "base": served.name,
        "title": served.title,
        "documents": info.documents,
        "pages": info.pages,
        "passages": info.nodes.get("passage", 0),
        "tables": info.nodes.get("table", 0),
        "sections": info.nodes.get("section", 0),
        "bytes": info.bytes,
        "unit": base.store.passage_unit,
        "encoder": base.encoding.name,
        "graphs": [graph.name for graph in info.graphs],
        "pending": info.pending,
        "generation": info.generation,
    }
