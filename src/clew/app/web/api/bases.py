"""What is served: bases, models, methods, limits."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from clew.app.web import method_choices as choices
from clew.app.web.bases import ServedBase
from clew.app.web.errors import error_to_dict
from clew.app.web.server import CurrentBase, CurrentServer
from clew.app.web.settings import NO_MODEL

router = APIRouter(tags=["bases"])


@router.get("/config")
def config(here: CurrentServer) -> dict[str, Any]:
    """Return what may be chosen, and what the server takes on. ``models`` may be empty; ``none`` is always one."""
    settings = here.settings
    return {
        "models": [{"id": one.id, "goes": one.goes, "leaves_machine": one.leaves} for one in settings.models],
        "model": settings.models[0].id if settings.models else NO_MODEL,
        "recipes": [asdict(one) for one in choices.offered_methods(settings.recipes).values()],
        "retrievers": [asdict(one) for one in choices.offered_retrievers().values()],
        "limits": asdict(settings.limits),
        "read_only": settings.read_only,
        "load": here.questions.queue_lengths(),
    }


@router.get("/bases")
def bases(here: CurrentServer) -> dict[str, Any]:
    """List the bases, with their sizes."""
    return {"bases": [_shape(one) for one in here.bases.all()]}


@router.get("/bases/{base}")
def base(opened: CurrentBase) -> dict[str, Any]:
    """Return one base, with its sizes and what its search cannot find yet."""
    return _shape(opened)


@router.get("/bases/{base}/recipes")
def recipes(
    here: CurrentServer,
    opened: CurrentBase,
    model: Annotated[str | None, Query(max_length=200, description="A name of /config; the default.")] = None,
) -> dict[str, Any]:
    """List the methods that may be chosen for this base with this model; ``problem`` says why one cannot be asked."""
    chosen = here.settings.model(model)
    with here.questions.search_slots.admit():
        found = []
        for one in choices.offered_methods(here.settings.recipes).values():
            refused = opened.base.recipe_error(one.recipe, None if chosen is None else chosen.name)
            found.append(asdict(one) | {"problem": None if refused is None else error_to_dict(refused)})
    return {"model": NO_MODEL if chosen is None else chosen.id, "recipes": found}


def _shape(shelved: ServedBase) -> dict[str, Any]:
    opened = shelved.base
    info = opened.info(digest=False)
    return {
        "base": shelved.name,
        "documents": info.documents,
        "pages": info.pages,
        "passages": info.nodes.get("passage", 0),
        "tables": info.nodes.get("table", 0),
        "sections": info.nodes.get("section", 0),
        "bytes": info.bytes,
        "unit": opened.store.passage_unit,
        "encoder": opened.encoding.name,
        "graphs": [one.name for one in info.imported],
        "pending": info.pending,
        "generation": info.generation,
    }
