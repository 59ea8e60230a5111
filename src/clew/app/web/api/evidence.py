"""What is said of a name, as the page and programs are given it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query

from clew.app.web.api.questions import Condition, Key
from clew.app.web.server import CurrentBase, CurrentServer

router = APIRouter(prefix="/bases/{base}", tags=["evidence"])

#: Sentences in one reply.
_MAX_STATEMENTS = 5_000


@router.get("/about")
def about(
    server: CurrentServer,
    base: CurrentBase,
    name: Annotated[
        str, Query(min_length=1, max_length=500, description="A person, company, place or term.")
    ],
    documents: Annotated[
        list[Key] | None, Query(max_length=10_000, description="Keys of documents; by default all.")
    ] = None,
    where: Annotated[Condition, Query(description="A condition on the fields of documents.")] = "",
    start: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MAX_STATEMENTS)] = 200,
) -> dict[str, Any]:
    """Return what the documents and graphs say of a name: sentences in the order of their dates, other names, who it
    occurs with, triples. ``total`` counts all sentences; a misspelt name has none, but ``suggestions``."""
    with server.questions.search_slots.admit():
        profile = base.knowledge_base.about(name, documents=documents, where=where)
    statements = profile.statements[start : start + limit]
    return replace(profile, statements=statements).to_dict() | {"total": len(profile.statements)}
