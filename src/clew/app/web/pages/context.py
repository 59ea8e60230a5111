"""What several templates are given: the choices of the form, the lists of a base, the names of nodes."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fastapi.responses import HTMLResponse

from clew.app.answers.view import AnswerView, NodeView, table_cells
from clew.app.web.method_choices import DEFAULT, NEED_MODEL, offered_methods
from clew.app.web.pages.language import format_day, format_month, gettext, ngettext
from clew.app.web.pages.render import document_title, render_page
from clew.app.web.uploads.manager import SEARCHABLE
from clew.app.web.uploads.spool import INDEXING
from clew.core.document_filter import document_fields
from clew.core.errors import ClewError, NotFound
from clew.core.text import shorten
from clew.core.types import DOCUMENT, SECTION, TABLE, Document, Node
from clew.knowledge_base.trash import Trash
from clew.parse.graphs.formats import readable_suffixes

if TYPE_CHECKING:
    from clew.app.web.bases import ServedBase
    from clew.app.web.server import Server

#: The methods of the papers, which stand before the baselines.
_OWN = ("kgp", "chain", "focus", "drill", "kgp-paper", "drill-paper")
#: Documents that a page lists at first, and at most; more are found by their names.
_MAX_DOCUMENTS, ALL_DOCUMENTS = 100, 3_000
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


def form_choices(server: Server) -> dict[str, Any]:
    """Return what the form offers: the methods in two groups, and the models."""
    methods = offered_methods(server.settings.recipes)
    return {
        "default": methods[DEFAULT],
        "own": [methods[name] for name in _OWN if name in methods],
        "others": [choice for name, choice in methods.items() if name not in {*_OWN, DEFAULT}],
        "models": server.questions.models.choices,
        "need_model": NEED_MODEL,
    }


@dataclass(frozen=True, slots=True)
class Listing:
    """What the lists of a page show: documents whose name, title or tags have ``find`` and that have the ``tag``,
    ``every`` such document or the first ones, and questions ``before`` a time or with ``words``."""

    find: str = ""
    tag: str = ""
    every: bool = False
    before: float | None = None
    words: str = ""


def render_home(
    server: Server,
    base: ServedBase,
    form: Mapping[str, str] | None = None,
    problem: ClewError | None = None,
    status: int = 200,
    listing: Listing = Listing(),
) -> HTMLResponse:
    """Render the page of a base: the question form, earlier questions and the contents."""
    return render_page(
        "base.html",
        status=status,
        title=base.title,
        base=base.name,
        form=dict(form or {}),
        problem=problem,
        choices=form_choices(server),
        locked=server.settings.token is not None,
        limits=server.settings.limits,
        graph_suffixes=readable_suffixes(),
        offers_sample=server.settings.projects is not None,
        suggestions=suggest_questions(base),
        current=[],
        **question_lists(base, listing.before, listing.words),
        **document_lists(server, base, listing),
        **upload_lists(server, base),
        sources=server.sources.sources(base.name),
    )


def question_lists(base: ServedBase, before: float | None = None, words: str = "") -> dict[str, Any]:
    """Return the history as the sidebar shows it: the pinned conversations, then the others by day; those ``before``
    a time, or with these ``words``."""
    lines = base.history.conversations(QUESTIONS_PER_PAGE + 1, before, words.strip())
    older = lines[QUESTIONS_PER_PAGE - 1]["asked"] if len(lines) > QUESTIONS_PER_PAGE else None
    shown = lines[:QUESTIONS_PER_PAGE]
    days: dict[str, list[dict[str, Any]]] = {}
    for line in shown:
        day = "Pinned" if line["pinned"] else name_day(line["asked"])
        days.setdefault(day, []).append(line)
    pinned = days.pop("Pinned", [])
    groups = ([(gettext("Pinned"), pinned)] if pinned else []) + list(days.items())
    return {"questions": shown, "days": groups, "older": older, "before": before, "words": words}


#: Questions that are suggested, and documents that are looked through for them.
_MAX_SUGGESTIONS, _MAX_SUGGESTING = 4, 8
#: Headings that most documents have, which say nothing about one.
_PLAIN_HEADINGS = frozenset("introduction contents summary preface appendix notes references index".split())


def suggest_questions(base: ServedBase) -> list[str]:
    """Return questions that the documents can answer, made of their headings and tables; [] for an empty base."""
    documents = base.knowledge_base.documents()[:_MAX_SUGGESTING]
    return list(_suggestions(base, tuple(documents)))


@lru_cache(maxsize=8)
def _suggestions(base: ServedBase, documents: tuple[Document, ...]) -> tuple[str, ...]:
    """Return the questions that some documents suggest; cached, as a key names a document's content."""
    sections: list[str] = []
    cells: list[str] = []
    tables: list[str] = []
    for document in documents:
        tree = base.knowledge_base.tree(document.key)
        heading = next((name for node in tree if (name := _suggested_heading(node))), "")
        if heading:
            sections.append(f"What does the section “{heading}” say?")
        table = next((node for node in tree if node.kind == TABLE), None)
        if table is not None:
            if table.page is not None:
                tables.append(f"What does the table on page {table.page} of {document.name} show?")
            cells += _cell_questions(table_cells(table.text))[:1]
    mixed = [*sections[:2], *cells[:1], *tables[:1], *sections[2:], *cells[1:]]
    return tuple(dict.fromkeys(mixed))[:_MAX_SUGGESTIONS]


def _suggested_heading(node: Node) -> str:
    """Return the words of a heading that says what its section is about, "" for another node."""
    if node.kind != SECTION or node.level < 2:
        return ""
    words = re.sub(r"^[\W\d]+", "", node.name).strip()
    is_plain = words.casefold() in _PLAIN_HEADINGS or not re.fullmatch(
        r"(?!(?:The|For|Part|Item|Note) )[A-Z][a-z][A-Za-z ,'’-]*", words
    )
    return "" if is_plain or not 2 <= len(words.split()) <= 6 else words


def _cell_questions(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return questions after numbers of a table, by their row and column."""
    if len(cells) < 2 or len(cells[0]) < 2:
        return []
    # A single noun in the singular reads well with any row: "the value of Bilge pump, brass".
    noun = re.compile(r"(?!\w+ed\b|(?:Lost|Sold|Paid|Left|Built)\b)[A-Z][a-z]{2,}[^s\W](?: \(.+\))?")
    column = next((n for n, name in enumerate(cells[0]) if n and noun.fullmatch(name)), 0)
    rows = [
        row for row in cells[1:] if len(row) > column and re.fullmatch(r"[A-Za-z][\w ,.'-]{3,40}", row[0])
    ]
    numbers = [row for row in rows if column and re.match(r"[($€£]?\d", row[column])]
    name = re.sub(r"\s*\(.*?\)", "", cells[0][column]).strip()
    return [f"What is the {name[:1].lower()}{name[1:]} of {row[0]}?" for row in numbers]


def name_day(seconds: float, now: float | None = None) -> str:
    """Return the day of a timestamp in the server's time zone: Today, Yesterday, the date, or for earlier years the
    month."""
    day = datetime.fromtimestamp(seconds).astimezone().date()
    today = datetime.fromtimestamp(time.time() if now is None else now).astimezone().date()
    if day >= today:
        return gettext("Today")
    if day == today - timedelta(days=1):
        return gettext("Yesterday")
    if day.year == today.year:
        return format_day(day)
    return format_month(day)


#: Tags that a page offers.
_MAX_TAGS = 30


def document_lists(server: Server, base: ServedBase, listing: Listing) -> dict[str, Any]:
    """Return what the lists of documents and graphs show."""
    find, tag = listing.find, listing.tag
    documents = base.knowledge_base.documents()
    labels = {document.key: document_fields(document).get("tag", ()) for document in documents}
    counts = Counter(label for names in labels.values() for label in names)
    wanted = find.casefold()
    matches = [
        document
        for document in documents
        if wanted in " ".join((document.name, document.title, *labels[document.key])).casefold()
        and (not tag or tag in labels[document.key])
    ]
    return {
        "tag": tag,
        "tags": sorted(counts.most_common(_MAX_TAGS), key=lambda item: item[0].casefold()),
        "trashed": 0 if server.settings.read_only else Trash(base.knowledge_base).count(),
        "total": len(documents),
        "found": len(matches),
        "documents": matches[: ALL_DOCUMENTS if listing.every else _MAX_DOCUMENTS],
        "find": find,
        "graphs": base.knowledge_base.graphs.infos(),
        "read_only": server.settings.read_only,
    }


def upload_lists(server: Server, base: ServedBase) -> dict[str, Any]:
    """Return the uploads that are under way or could not be read; those that were read are among the documents."""
    uploads: list[dict[str, Any]] = server.uploads.all_uploads(base.name)
    shown = [
        upload for upload in uploads if upload["state"] not in {INDEXING, *SEARCHABLE} or upload["notes"]
    ]
    return {
        "under_way": [upload for upload in shown if upload["state"] != "failed"],
        "failed": [upload for upload in shown if upload["state"] == "failed"],
        "progress": server.uploads.progress(base.name),
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
            labels[id] = _stored_label(stored[id]) if id in stored else _lost_label()
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


def _lost_label() -> NodeLabel:
    return NodeLabel(gettext("no longer here"), gettext("no longer here"))


def _stored_label(node: NodeView) -> NodeLabel:
    text = shorten(node.text or node.id, _PREVIEW)
    return NodeLabel(_place(node.document, node.page), node.document, text, page=node.page)


def _place(document: str, page: int | None) -> str:
    return document if page is None else document + gettext(", p. %(page)s", page=str(page))


def document_titles(base: ServedBase, keys: Iterable[str]) -> dict[str, str]:
    """Return the titles of documents by their keys; documents that are gone, or called by their file, have none."""
    titles = {}
    for key in dict.fromkeys(keys):
        with suppress(ClewError):
            document = base.knowledge_base.store.document(key)
            if (title := document_title(document)) != document.name:
                titles[key] = title
    return titles


@dataclass(frozen=True, slots=True)
class PickedSource:
    """A document or graph that a question is restricted to; ``kind`` is the name of its field in the form."""

    kind: str
    key: str
    called: str


@dataclass(frozen=True, slots=True)
class NextQuestion:
    """What a question that follows another, or asks it again, is asked with today.

    It has the ``picked`` sources, of ``total`` documents, that are still there (``lost``: how many are not), the
    ``recipe`` and ``model`` that can still be chosen ("" for the default), and the question that it ``follows``.
    ``gone_model`` is a model that can no longer be chosen, ``instead`` the one that answers in its place."""

    picked: list[PickedSource]
    total: int
    lost: int
    recipe: str
    model: str
    follows: str
    gone_model: str
    instead: str


def next_question(server: Server, base: ServedBase, entry: Mapping[str, Any]) -> NextQuestion:
    """Return what goes on from a question, without what was removed since it was asked."""
    documents = {document.key: document for document in base.knowledge_base.documents()}
    picked = [
        PickedSource("documents", key, document_title(documents[key]))
        for key in entry["documents"] or ()
        if key in documents
    ]
    graphs = {info.name for info in base.knowledge_base.graphs.infos()}
    picked += [PickedSource("graphs", name, name) for name in entry["graphs"] or () if name in graphs]
    asked = len(entry["documents"] or ()) + len(entry["graphs"] or ())
    follows = ""
    with suppress(NotFound):  # it was forgotten
        follows = base.history.get(entry["follows"] or "")["id"]
    models = [choice.id for choice in server.questions.models.choices]
    model = entry["model"] or ""
    is_gone = bool(model) and model not in models
    return NextQuestion(
        picked,
        len(documents),
        asked - len(picked),
        entry["recipe"] if entry["recipe"] in offered_methods(server.settings.recipes) else DEFAULT,
        "" if is_gone else model,
        follows,
        model if is_gone else "",
        models[0] if is_gone and models else "",
    )


def describe_scope(base: ServedBase, entry: Mapping[str, Any]) -> str:
    """Return in words what a question was restricted to, "" for nothing."""
    # The list of all documents is read only where it is needed.
    names = {}
    if entry.get("documents"):
        names = {document.key: document.name for document in base.knowledge_base.documents()}
    parts = [names.get(key) or gettext("a document that is gone") for key in entry.get("documents") or ()]
    parts += [gettext("graph %(name)s", name=name) for name in entry.get("graphs") or ()]
    rest = len(parts) - _MAX_SCOPE
    more = " " + ngettext("and %(num)s more", "and %(num)s more", rest) if rest > 0 else ""
    return gettext(", ").join(parts[:_MAX_SCOPE]) + more
