"""What several pages show: the choices of the form, the lists of a base, the names of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.app.web import method_choices as choices
from clew.app.web.pages.render import render_page
from clew.core.errors import ClewError
from clew.core.text import shorten
from clew.core.types import Node

if TYPE_CHECKING:
    from fastapi.responses import HTMLResponse

    from clew.app.web.bases import ServedBase
    from clew.app.web.server import Server

#: The methods of the papers, which stand before the baselines.
_OWN = ("kgp", "chain", "focus", "drill", "kgp-paper", "drill-paper")
#: Documents that a page lists; more are found by their names.
MAX_DOCUMENTS = 300
#: Questions that a page lists; the older ones are on further pages.
QUESTIONS_PER_PAGE = 30
#: Nodes whose texts a page of an answer holds.
_LABELS = 400
_PREVIEW = 320


@dataclass(frozen=True, slots=True)
class NodeLabel:
    """A node as a walk and a trail name it: where it lies, and the start of its text."""

    place: str
    document: str
    text: str = ""
    key: str = ""
    position: int | None = None
    page: int | None = None


def form_choices(here: Server) -> dict[str, Any]:
    """Return what the form offers: the methods in two groups, and the models."""
    known = choices.offered_methods(here.settings.recipes)
    offered = [one for name, one in known.items() if name != choices.DEFAULT]
    own = sorted((one for one in offered if one.name in _OWN), key=lambda one: _OWN.index(one.name))
    return {
        "default": known[choices.DEFAULT],
        "own": own,
        "others": [one for one in offered if one.name not in _OWN],
        "models": here.settings.models,
    }


def render_home(
    here: Server,
    opened: ServedBase,
    form: Mapping[str, str] | None = None,
    problem: ClewError | None = None,
    status: int = 200,
    find: str = "",
    before: float | None = None,
) -> HTMLResponse:
    """Return the page of a base: where to ask, what was asked (``before`` a time), and what is in it."""
    questions = opened.history.latest(QUESTIONS_PER_PAGE + 1, before)
    older = questions[QUESTIONS_PER_PAGE - 1]["asked"] if len(questions) > QUESTIONS_PER_PAGE else None
    return render_page(
        "base.html",
        status=status,
        title=opened.name,
        base=opened.name,
        form=dict(form or {}),
        problem=problem,
        choices=form_choices(here),
        bases=[one.name for one in here.bases.all()],
        locked=here.settings.token is not None,
        questions=questions[:QUESTIONS_PER_PAGE],
        older=older,
        before=before,
        limits=here.settings.limits,
        **document_lists(here, opened, find),
        **upload_lists(here, opened),
    )


def document_lists(here: Server, opened: ServedBase, find: str = "") -> dict[str, Any]:
    """Return what the lists of documents and graphs show; ``find``: only documents that are called so."""
    every = opened.base.documents()
    found = [one for one in every if find.casefold() in f"{one.name} {one.title}".casefold()]
    return {
        "total": len(every),
        "found": len(found),
        "documents": found[:MAX_DOCUMENTS],
        "find": find,
        "graphs": opened.base.graphs.infos(),
        "read_only": here.settings.read_only,
    }


def upload_lists(here: Server, opened: ServedBase) -> dict[str, Any]:
    """Return the uploads that are under way or could not be read; those that are done are in the list."""
    every: list[dict[str, Any]] = here.uploads.all_uploads(opened.name)
    return {
        "uploads": [one for one in every if one["state"] != "done" or one["notes"]],
        "encoding": here.uploads.encoding_progress(opened.name),
    }


def node_labels(
    opened: ServedBase, ids: Iterable[str], answered: Mapping[str, Any] | None
) -> dict[str, NodeLabel]:
    """Return what the nodes ``ids`` are called. One that is gone since is known by what the answer kept of it."""
    kept = {} if answered is None else _kept(answered)
    found = {}
    for id in sorted(ids)[:_LABELS]:
        try:
            found[id] = _label(opened.base.node(id))
        except ClewError:
            found[id] = kept.get(id) or NodeLabel("no longer here", "no longer here")
    return found


def _label(node: Node) -> NodeLabel:
    place = node.document_name
    if node.page is not None:
        place += f", p. {node.page}"
    text = node.name if node.kind in {"document", "section"} and node.name else node.text
    return NodeLabel(
        place, node.document_name, shorten(text, _PREVIEW), node.document, node.position, node.page
    )


def _kept(answered: Mapping[str, Any]) -> dict[str, NodeLabel]:
    hits = [*(hit for step in answered["trail"] for hit in step["hits"]), *answered["evidence"]]
    return {
        hit["id"]: NodeLabel(
            hit["document"] + (f", p. {hit['page']}" if hit["page"] is not None else ""),
            hit["document"],
            shorten(hit.get("text") or hit["id"], _PREVIEW),
            page=hit["page"],
        )
        for hit in hits
    }


def describe_scope(opened: ServedBase, entry: Mapping[str, Any]) -> str:
    """Return in words what a question was restricted to, "" for nothing."""
    # The list of all documents is made only where it is needed.
    names = {one.key: one.name for one in opened.base.documents()} if entry.get("documents") else {}
    documents = [names.get(key, "a document that is gone") for key in entry.get("documents") or ()]
    graphs = [f"graph {name}" for name in entry.get("graphs") or ()]
    some = documents + graphs
    return ", ".join(some[:5]) + (f" and {len(some) - 5} more" if len(some) > 5 else "")
