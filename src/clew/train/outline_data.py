"""Questions about the structure of documents with their exact meaning, prepared for training.

A source is a folder with ``documents/`` and ``questions.jsonl`` (question, document, plan), or a JSON file of
outlines that were written for training: ``documents`` with their pages, headings, tables and figures, and
``questions`` with a plan and one or more wordings. ``plan`` is a :class:`clew.retrieve.structure.query.Query` as
JSON, defaults left out; ``counted`` is its kind, and its operation may also be ``content``, where no structure is
asked for, and ``differ`` or ``neighbour``, which show places. An option is right if it means what the plan means, by
the places that both lead to.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import UsageError
from clew.core.text import normalise
from clew.core.types import DOCUMENT, ROW, SECTION, Location, Node, ParsedDocument, Scope, Table
from clew.knowledge_base.knowledge_base import ENCODER_SETTING, encoder_setting
from clew.knowledge_base.knowledge_base import open as open_base
from clew.parse.documents.builder import DocumentBuilder
from clew.questions.outline_plans import CONTENT, place_key
from clew.questions.outline_reading import ReadOutlines, read_outlines
from clew.questions.text import QuestionText
from clew.retrieve.structure.outline import Outline
from clew.retrieve.structure.query import Operation, Query, Selector
from clew.retrieve.structure.resolver import ReferenceResolver

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, Snapshot

QUESTIONS_FILE, DOCUMENTS_FOLDER = "questions.jsonl", "documents"
WORDINGS = ("plain", "typed", "talk", "odd")
_MEDIA_TYPES = {
    ".pdf": "application/pdf",
    ".html": "text/html",
    ".md": "text/markdown",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


@dataclass(frozen=True, slots=True)
class OutlineQuestion:
    """A question about the document with the name ``document``, "" for all of a base, and what it means: a query,
    None where it asks for content. ``source`` and ``document`` are held out together."""

    source: str
    document: str
    question: str
    plan: Query | None
    kind: str
    wording: str


@dataclass(slots=True, eq=False)
class OutlineExample:
    """A question with its options, which of them are ``right``, since they lead to the same places, and which are
    ``fitting``, since they also say it in the same way; the ``shape`` of one of these, and what it takes each number
    of the question for."""

    question: OutlineQuestion
    read: ReadOutlines
    right: NDArray[np.bool_]
    fitting: NDArray[np.bool_]
    roles: tuple[str, ...]
    shape: str


def read_selector(written: Mapping[str, Any]) -> Selector:
    """Return a selector from JSON."""
    fields = {
        name: value
        for name, value in written.items()
        if name not in {"within", "anchor"} and value is not None
    }
    for name in ("within", "anchor"):
        if written.get(name):
            fields[name] = read_selector(written[name])
    if "label" in fields:
        fields["label"] = str(fields["label"])
    return Selector(**fields)


def read_plan(written: Mapping[str, Any]) -> Query | None:
    """Return a query from JSON; None for a question about content."""
    operation = written["operation"]
    if operation == "content":
        return None
    selectors = tuple(map(read_selector, written.get("selectors", ())))
    operation = cast(Operation, {"differ": "show", "neighbour": "show"}.get(operation, operation))
    kind = written.get("counted", "")
    return Query(
        operation, selectors, kind, written.get("word", kind), written.get("text", ""),
        labelled=written.get("labelled", False), without=written.get("without", False),
    )  # fmt: skip


def read_outline_source(path: Path) -> list[OutlineQuestion]:
    """Return the questions of a folder or file. Raises UsageError for one without questions."""
    if path.is_file():
        written = json.loads(path.read_text(encoding="utf-8"))
        return [
            OutlineQuestion(
                path.stem, row["document"], row[wording], read_plan(row["plan"]), row["kind"], wording
            )
            for row in written["questions"]
            for wording in WORDINGS
            if row.get(wording)
        ]
    if not (path / QUESTIONS_FILE).is_file():
        raise UsageError(
            f"no questions about outlines in {path}", f"It needs {DOCUMENTS_FOLDER}/ and {QUESTIONS_FILE}"
        )
    rows = [json.loads(line) for line in (path / QUESTIONS_FILE).read_text(encoding="utf-8").splitlines()]
    return [
        OutlineQuestion(
            path.name, "" if row["document"] == "*" else row["document"], row["question"], read_plan(row["plan"]),
            row["kind"], row["wording"],
        )
        for row in rows
    ]  # fmt: skip


def build_outline(written: Mapping[str, Any], texts: Sequence[str] = ()) -> ParsedDocument:
    """Return a document that has the outline that is written, with a few words in each section, and ``texts``, which
    its questions look for."""
    builder = DocumentBuilder()
    pages = int(written.get("pages") or 0)
    printed = [str(label) for label in written.get("printed") or ()]
    tables = list(written.get("tables", ()))
    figures = list(written.get("figures", ()))
    for page in range(1, pages + 1) if pages else (None,):
        if page is not None:
            label = printed[page - 1] if page <= len(printed) else ""
            builder.add_page(page, label)
        own = [section for section in written["sections"] if page is None or section.get("page") == page]
        placed = []
        for section in own:
            builder.add_heading(int(section["level"]), section["name"])
            builder.add_paragraph(f"This is said of {section['name']}.")
            for table in tables:
                if table.get("section") == section["name"] and (page is None or table.get("page") == page):
                    _add_table(builder, table, page)
                    placed.append(id(table))
        for table in tables:
            if id(table) not in placed and (page is None or table.get("page") == page):
                _add_table(builder, table, page)
        for figure in figures:
            if page is None or figure.get("page") == page:
                builder.add_paragraph(figure["caption"])
    for text in texts:
        builder.add_paragraph(f"Of this is said: {text}.")
    name = written["name"]
    media_type = _MEDIA_TYPES.get(Path(name).suffix, "text/plain")
    data = json.dumps(written, sort_keys=True).encode()
    return builder.finish(
        data=data, title=written["title"], media_type=media_type, parser="outline/1", pages=pages
    )


def _add_table(builder: DocumentBuilder, written: Mapping[str, Any], page: int | None) -> None:
    columns = tuple(map(str, written.get("columns") or ("", "")))
    rows = tuple((str(row), *("1",) * (len(columns) - 1)) for row in written.get("rows", ()))
    row_pages = () if page is None else (page,) * len(rows)
    builder.add_table(Table(columns, rows, written.get("caption") or "", row_pages=row_pages))


def agree(query: Query, plan: Query) -> int:
    """Return how alike two queries say what they mean: a neighbour may be named, too, but was not."""
    agreement = int(query.operation == plan.operation) + int(len(query.selectors) == len(plan.selectors))
    for own, other in zip(query.selectors, plan.selectors, strict=False):
        agreement += own.kind == other.kind
        agreement += 2 * ((own.anchor is None) == (other.anchor is None)) + (own.relation == other.relation)
        agreement += 2 * ((own.within is None) == (other.within is None))
        agreement += sum(
            bool(getattr(own, name)) == bool(getattr(other, name)) for name in ("name", "label", "number")
        )
        agreement += own.number == other.number
    return agreement


class OutlineWorld:
    """The documents of a source in a base in a temporary folder until it is closed."""

    def __init__(self, path: Path, encoder: Encoder) -> None:
        self.encoder = encoder
        self._temporary = tempfile.TemporaryDirectory()
        self.base = open_base(
            Path(self._temporary.name) / "base",
            create=True,
            settings={ENCODER_SETTING: encoder_setting("none")},
        )
        if path.is_dir():
            self.base.add(path / DOCUMENTS_FOLDER)
        else:
            source = json.loads(path.read_text(encoding="utf-8"))
            for number, written in enumerate(source["documents"]):
                texts = {
                    row["plan"]["text"]
                    for row in source["questions"]
                    if row["document"] == written["name"] and row["plan"].get("text")
                }
                place = Location(f"/outlines/{written['name']}", "/outlines", 1, 1, number)
                self.base.store.put_document(build_outline(written, sorted(texts)), place)
            self.base.store.catch_up()
        self.snapshot: Snapshot = self.base.store.snapshot()
        self.documents = {document.name: document for document in self.snapshot.documents()}

    def __enter__(self) -> OutlineWorld:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the base."""
        self.base.close()
        self._temporary.cleanup()

    def prepare(self, question: OutlineQuestion, alone: bool = True) -> OutlineExample:
        """Return a question with its options; ``alone`` if only its document may be asked, else all may."""
        document = self.documents.get(question.document)
        scope = Scope() if document is None or not alone else Scope(documents=frozenset({document.key}))
        resolver = ReferenceResolver(self.snapshot, question.question, scope)
        text = QuestionText(question.question)
        vector = self.encoder.encode([question.question], query=True)[0].astype(np.float64)
        read = read_outlines(text, self.snapshot, resolver, self.encoder, vector)
        key = CONTENT if question.plan is None else self._meaning(question.plan, question, resolver)
        right = np.array([option.key == key for option in read.options])
        if key[0] == "missing" and not right.any():
            right[-1] = True  # a heading that is not there: nothing of the outline is meant
        fitting = right.copy()
        if question.plan is not None and right.any():
            agreement = np.array([agree(option.query, question.plan) for option in read.options])
            fitting &= agreement == agreement[right].max()
        first = read.options[int(np.argmax(fitting))] if right.any() else None
        roles = () if first is None else first.numbers or ("",) * len(read.contexts)
        return OutlineExample(question, read, right, fitting, roles, "" if first is None else first.shape)

    def names(self, question: OutlineQuestion) -> bool:
        """Return whether a question names its document better than any other."""
        titles = ReferenceResolver(self.snapshot, question.question, Scope()).titles
        matches = titles.match(question.question)
        if not matches or matches[0].document.name != question.document:
            return False
        return len(matches) == 1 or matches[1].weight < matches[0].weight

    def _meaning(
        self, plan: Query, question: OutlineQuestion, resolver: ReferenceResolver
    ) -> tuple[object, ...]:
        """Return what a query means over the document that it is asked of, or that a selector names: equal for
        queries that mean the same."""
        if plan.operation == "longest":
            return ("longest",)
        named = [self.documents[each.document] for each in plan.selectors if each.document in self.documents]
        if plan.operation == "changes":
            return ("changes", frozenset(document.key for document in named))
        if plan.kind == DOCUMENT:
            conditions = ((each.kind, plan.without) for each in plan.selectors)
            return (plan.operation, DOCUMENT, *next(conditions, ()))
        if plan.operation == "locate" and not plan.selectors:
            return ("locate", "text", normalise(plan.text))
        own = [*named, *filter(None, [self.documents.get(question.document)]), *self.documents.values()][0]
        outline, root = Outline(self.snapshot, own), f"{own.key}:0"
        places = [
            self._find_place(selector, outline, resolver)
            for selector in plan.selectors
            if selector.kind != DOCUMENT
        ]
        if plan.operation in {"count", "list"}:
            word = plan.word or plan.kind
            if plan.kind == SECTION and not outline.sections_with_word(word):
                word = SECTION
            place = places[0][1][0].id if places and places[0][1] else root
            return (plan.operation, plan.kind, word, plan.labelled, place)
        prefix = (plan.operation,) if plan.operation in {"locate", "exists"} else ()
        if not places:
            return (*prefix, "show", frozenset({root}))
        if len(places) == 1:
            return (*prefix, *place_key(*places[0]))
        return (*prefix, "show", frozenset(node.id for _, nodes in places for node in nodes))

    def _find_place(
        self, selector: Selector, outline: Outline, resolver: ReferenceResolver
    ) -> tuple[Selector, list[Node]]:
        """Return a selector, with the place that it is within, and the nodes that it names: those of the document
        that it names, where that is here, else of ``outline``."""
        if other := self.documents.get(selector.document):
            outline = Outline(self.snapshot, other)
        nodes = resolver.nodes(selector, outline)
        if selector.kind == ROW and selector.name and not nodes:
            # The table may be called otherwise here; the row is the same.
            nodes = resolver.nodes(replace(selector, within=None), outline)
        if selector.within and (inside := resolver.nodes(selector.within, outline)):
            selector = replace(selector, within=replace(selector.within, node=inside[0].id))
        return selector, nodes
