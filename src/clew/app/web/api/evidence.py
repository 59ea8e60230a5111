"""What is said of a name, and what changed between two documents."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query

from clew.app.web.api.questions import Condition, Key
from clew.app.web.server import CurrentBase, CurrentServer

router = APIRouter(prefix="/bases/{base}", tags=["evidence"])

#: Sentences in one reply.
_MAX_STATEMENTS = 5_000
#: Changes in one reply.
_MAX_CHANGES = 2_000


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


@router.get("/diff")
def diff(
    server: CurrentServer,
    base: CurrentBase,
    before: Annotated[Key, Query(description="The key of the earlier document.")],
    after: Annotated[Key, Query(description="The key of the later document.")],
    start: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MAX_CHANGES)] = 200,
) -> dict[str, Any]:
    """Return what changed between two documents: counts, headings, and for each change the quotes of both sides with
    their places, the ranges that differ, and the numbers. ``total`` counts all changes."""
    with server.questions.search_slots.admit():
        comparison = base.knowledge_base.compare(before, after)
    changes = comparison.changes[start : start + limit]
    shown = replace(comparison, changes=changes).to_dict()
    return shown | {"counts": comparison.counts(), "total": len(comparison.changes)}
