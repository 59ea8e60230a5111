"""What several templates are given: the choices of the form, the lists of a base, the names of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.app.web.method_choices import DEFAULT, offered_methods
from clew.app.web.pages.render import render_page
from clew.core.errors import ClewError
from clew.core.text import shorten
from clew.core.types import DOCUMENT, SECTION

if TYPE_CHECKING:
    from fastapi.responses import HTMLResponse

    from clew.app.answers.view import AnswerView, NodeView
    from clew.app.web.bases import ServedBase
    from clew.app.web.server import Server

#: The methods of the papers, which stand before the baselines.
_OWN = ("kgp", "chain", "focus", "drill", "kgp-paper", "drill-paper")
#: Documents that a page lists; more are found by their names.
MAX_DOCUMENTS = 300
#: Questions that a page lists; the older ones are on further pages.
QUESTIONS_PER_PAGE = 30
#: Nodes whose texts a page of an answer holds.
_MAX_LABELS = 400
#: Characters of a node's text on a page of an answer.
_PREVIEW = 320
#: Documents and graphs that are named where a question was restricted to several.
_MAX_SCOPE = 5


@dataclass(frozen=True, slots=True)
class NodeLabel:
    """A node as a walk and a trail name it: where it lies, and the start of its text."""

    place: str
    document: str
    text: str = ""
    key: str = ""
    position: int | None = None
    page: int | None = None


_GONE = NodeLabel("no longer here", "no longer here")


def form_choices(server: Server) -> dict[str, Any]:
    """Return what the form offers: the methods in two groups, and the models."""
    methods = offered_methods(server.settings.recipes)
    return {
        "default": methods[DEFAULT],
        "own": [methods[name] for name in _OWN if name in methods],
        "others": [choice for name, choice in methods.items() if name not in {*_OWN, DEFAULT}],
        "models": server.settings.models,
    }


def render_home(
    server: Server,
    base: ServedBase,
    form: Mapping[str, str] | None = None,
    problem: ClewError | None = None,
    status: int = 200,
    find: str = "",
    before: float | None = None,
) -> HTMLResponse:
    """Return the page of a base: where to ask, what was asked (``before`` a time), and what is in it."""
    questions = base.history.latest(QUESTIONS_PER_PAGE + 1, before)
    older = questions[QUESTIONS_PER_PAGE - 1]["asked"] if len(questions) > QUESTIONS_PER_PAGE else None
    return render_page(
        "base.html",
        status=status,
        title=base.name,
        base=base.name,
        form=dict(form or {}),
        problem=problem,
        choices=form_choices(server),
        bases=[other.name for other in server.bases.all()],
        locked=server.settings.token is not None,
        questions=questions[:QUESTIONS_PER_PAGE],
        older=older,
        before=before,
        limits=server.settings.limits,
        **document_lists(server, base, find),
        **upload_lists(server, base),
    )


def document_lists(server: Server, base: ServedBase, find: str = "") -> dict[str, Any]:
    """Return what the lists of documents and graphs show; ``find`` is a part of the documents' names or titles."""
    documents = base.knowledge_base.documents()
    wanted = find.casefold()
    matches = [document for document in documents if wanted in f"{document.name} {document.title}".casefold()]
    return {
        "total": len(documents),
        "found": len(matches),
        "documents": matches[:MAX_DOCUMENTS],
        "find": find,
        "graphs": base.knowledge_base.graphs.infos(),
        "read_only": server.settings.read_only,
    }


def upload_lists(server: Server, base: ServedBase) -> dict[str, Any]:
    """Return the uploads that are under way or could not be read; those that are done are among the documents."""
    uploads: list[dict[str, Any]] = server.uploads.all_uploads(base.name)
    return {
        "uploads": [upload for upload in uploads if upload["state"] != "done" or upload["notes"]],
        "encoding": server.uploads.encoding_progress(base.name),
    }


def node_labels(base: ServedBase, ids: Iterable[str], view: AnswerView | None) -> dict[str, NodeLabel]:
    """Return what the nodes ``ids`` are called. A node that was removed has the name that the answer kept of it."""
    hits = [] if view is None else [*(hit for step in view.steps for hit in step.hits), *view.evidence]
    stored = {hit.node.id: hit.node for hit in hits}
    labels = {}
    for id in sorted(ids)[:_MAX_LABELS]:
        try:
            node = base.knowledge_base.node(id)
        except ClewError:
            labels[id] = _stored_label(stored[id]) if id in stored else _GONE
            continue
        text = node.name if node.kind in {DOCUMENT, SECTION} and node.name else node.text
        labels[id] = NodeLabel(
            _place(node.document_name, node.page),
            node.document_name,
            shorten(text, _PREVIEW),
            node.document,
            node.position,
            node.page,
        )
    return labels


def _stored_label(node: NodeView) -> NodeLabel:
    text = shorten(node.text or node.id, _PREVIEW)
    return NodeLabel(_place(node.document, node.page), node.document, text, page=node.page)


def _place(document: str, page: int | None) -> str:
    return document if page is None else f"{document}, p. {page}"


def describe_scope(base: ServedBase, entry: Mapping[str, Any]) -> str:
    """Return in words what a question was restricted to, "" for nothing."""
    # The list of all documents is read only where it is needed.
    names = {}
    if entry.get("documents"):
        names = {document.key: document.name for document in base.knowledge_base.documents()}
    parts = [names.get(key, "a document that is gone") for key in entry.get("documents") or ()]
    parts += [f"graph {name}" for name in entry.get("graphs") or ()]
    more = f" and {len(parts) - _MAX_SCOPE} more" if len(parts) > _MAX_SCOPE else ""
    return ", ".join(parts[:_MAX_SCOPE]) + more
