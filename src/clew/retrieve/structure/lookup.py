"""Answer questions about the structure of documents ("table 2 on page 4") with the nodes that they name.

The paper (Wang et al., AAAI 2024, Section 4 and Supplementary 8.3) has a language model decide whether a question
asks about structure and which pages and tables it names, and then fetches "the content of pages [the passages of that
page] and the content of tables [their Markdown]" (Figure 4). Here trained scores read the question
(:class:`PlainReader`: :mod:`clew.questions.outline_reading`). A language model, where one is configured, reads what
they are not sure of, and its reading is evaluated in the same way. Besides pages and tables, a question may name
sections, rows, figures and whole documents.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from clew.core.errors import BadCompletion
from clew.core.text import index_terms, query_terms
from clew.core.trail import StructureReference, StructureStep
from clew.core.types import (
    DOCUMENT,
    PAGE,
    ROW,
    SECTION,
    STATED_FROM,
    TABLE,
    Hit,
    Plan,
    Question,
    Scope,
    Usage,
)
from clew.retrieve.structure.algebra import NOTHING, Finding, evaluate
from clew.retrieve.structure.outline import Outline
from clew.retrieve.structure.query import FIGURE, Query, Selector
from clew.retrieve.structure.resolver import Reference, ReferenceResolver

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows
    from clew.core.prompts.templates import Template
    from clew.core.protocols import LanguageModel, Snapshot, Trail


#: A language model is asked where it is at least so likely that a question is about structure.
ASKED_FROM = 0.1
#: The characters that one table, and all hits of a question together, may have.
TABLE_CHARACTERS, HITS_CHARACTERS = 3_500, 10_000
#: The characters of a table that is only counted or listed.
LISTED_CHARACTERS = 800
#: Rows of the head of a table that is shown in part.
HEAD_ROWS = 5


@dataclass(frozen=True, slots=True)
class StructureResult:
    """What a question about structure is answered with.

    ``hits`` is the content that it asks for, or what the answer rests on. ``text`` is the computed answer, "" where a
    reader answers from the hits. ``is_missing``: what the question points at is not there, and ``text`` says so.
    ``plan`` is the query that gave it, and ``probability`` how likely it is meant, None for one that a model wrote.
    """

    hits: tuple[Hit, ...] = ()
    text: str = ""
    is_missing: bool = False
    plan: Plan | None = None
    probability: float | None = None

    def __bool__(self) -> bool:
        """Whether the question is about structure."""
        return bool(self.hits or self.text)


class QueryReading(Protocol):
    """A query that a question may mean, and how likely that is."""

    @property
    def query(self) -> Query:
        """The query."""

    @property
    def probability(self) -> float:
        """The probability that the reading is right, 0 to 1."""


class PlainReader(Protocol):
    """Reads plain questions about structure without a language model."""

    def read(self, text: str, snapshot: Snapshot, scope: Scope) -> Sequence[QueryReading]:
        """Return the likeliest queries that a question may mean, the likeliest first; () for one about content."""


@dataclass(frozen=True, slots=True)
class StructureSearch:
    """Answers questions about structure with the content of what they name, at most ``limit`` hits.

    ``plain`` reads the question. With ``reader``, a language model is asked where no reading is likely enough to be
    stated and the question may be about structure (:data:`ASKED_FROM`), or, with ``always``, wherever none is, as in
    the paper. What the model writes must exist as well.
    """

    snapshot: Snapshot
    plain: PlainReader
    reader: StructureReader | None = None
    always: bool = False
    limit: int = 30

    def find(self, question: Question, trail: Trail) -> StructureResult:
        """Return what the question names, with the computed answer; nothing for a question about content."""
        started = time.perf_counter()
        readings = self.plain.read(question.text, self.snapshot, question.scope)
        finding, written, likely = (
            self._find_likely(question, readings),
            None,
            sum(each.probability for each in readings),
        )
        if not finding and self.reader and (self.always or likely >= ASKED_FROM):
            written = self.reader.read(question.text, self.snapshot, question.scope)
            if not self.always or likely >= ASKED_FROM or written.names_its_places:
                finding = evaluate(question.text, written.queries, self.snapshot, question.scope)
        if not (finding or written):
            return StructureResult()
        hits = fetch_hits(self.snapshot, finding.references, self.limit, finding.listed, question.text)
        trail.add(
            StructureStep(
                tuple(StructureReference(ref.words, ref.kind, ref.node) for ref in finding.references),
                (written.unreadable or None) if written else None,
                hits=tuple(hits),
                usage=written.usage if written else Usage(),
                seconds=time.perf_counter() - started,
            )
        )
        queries = written.queries if written else (readings[0].query,)
        plan = Plan("structure", "; ".join(map(str, queries)), queries[0].operation) if queries else None
        probability = None if written else readings[0].probability
        return StructureResult(tuple(hits), finding.text, finding.is_missing, plan, probability)

    def find_certain(self, question: Question) -> Finding:
        """Return what the question means where it is about structure, likely enough to be stated; else nothing."""
        return self._find_likely(question, self.plain.read(question.text, self.snapshot, question.scope))

    def _find_likely(self, question: Question, readings: Sequence[QueryReading]) -> Finding:
        if not readings or readings[0].probability < STATED_FROM:
            return NOTHING
        resolver = ReferenceResolver(self.snapshot, question.text, question.scope)
        # The first word of a question has a capital of its own.
        behind = question.text.strip().partition(" ")[2]
        if not resolver.named_anywhere() and (absent := resolver.absent_names(behind)):
            return Finding(text=f'No document here is called "{" ".join(absent)}".', is_missing=True)
        return evaluate(question.text, [readings[0].query], self.snapshot, question.scope)


def fetch_hits(
    snapshot: Snapshot,
    references: Sequence[Reference],
    limit: int = 30,
    listed: bool = False,
    question: str = "",
) -> list[Hit]:
    """Return the content of the references, in their order, at most ``limit`` hits; scores fall with the order.

    The content of a page is its passages and tables in order; of a table its Markdown; of a section its own passages
    and tables and those of its subsections, in order; of a document the same, or, where that is more than its share
    of ``limit``, the first passages of each of its sections. Where the limit is short, every reference has an equal
    share of it, and the next ones take what a reference leaves.

    With ``listed``, the nodes themselves are returned, not their content. A long table is given in part
    (:func:`excerpt_table`), by the words of ``question``, so that the hits together stay within a model's context;
    the id of its node leads to the whole.
    """
    documents = {document.key: document for document in snapshot.documents()}
    content: list[tuple[int, Reference]] = []
    seen: set[int] = set()
    for number, reference in enumerate(references):
        share = -(-(limit - len(content)) // (len(references) - number))
        outline = Outline(snapshot, documents[reference.document])
        rows = (
            snapshot.rows([reference.node]) if listed else _content_rows(snapshot, outline, reference, share)
        ).tolist()
        rows = [row for row in rows if row not in seen][:share]
        content += [(row, reference) for row in rows]
        seen.update(rows)
    nodes = snapshot.nodes(np.array([row for row, _ in content], dtype=np.int64))
    tables = sum(node.kind == TABLE for node in nodes)
    spoken = sum(len(node.text) for node in nodes if node.kind != TABLE)
    most = LISTED_CHARACTERS if listed else TABLE_CHARACTERS
    room = min(most, max(HITS_CHARACTERS - spoken, HITS_CHARACTERS // 4) // max(tables, 1))
    words = _words_beside(question, references)
    nodes = [
        replace(node, text=excerpt_table(node.text, node.id, room, words)) if node.kind == TABLE else node
        for node in nodes
    ]
    return [
        Hit(
            node,
            1.0 - rank / len(content),
            (node.id,) if node.id == reference.node else (reference.node, node.id),
            () if node.id == reference.node else (f"structure: {reference.words}",),
        )
        for rank, (node, (_, reference)) in enumerate(zip(nodes, content, strict=True))
    ]


def _words_beside(question: str, references: Sequence[Reference]) -> str:
    """Return the question without the words that point at the references."""
    for words in dict.fromkeys(reference.words for reference in references if reference.words):
        question = question.replace(words, " ")
    return question


def excerpt_table(markdown: str, id: str, characters: int, question: str = "") -> str:
    """Return a table in Markdown in about ``characters``: the whole, or its header, the rows that share rare words
    with ``question``, its first rows, and a line that counts its rows and says where the others are.

    A word counts by the logarithm of how few rows of the table have it; rows are kept in the table's order.
    """
    if len(markdown) <= characters:
        return markdown
    caption, lines = _split_table(markdown)
    header, rows = lines[:2], lines[2:]
    scores = _score_rows(rows, set(query_terms(question)))
    matching = [row for row in np.argsort(-scores, kind="stable").tolist() if scores[row] > 0]
    room = characters - sum(len(line) + 1 for line in (caption, *header)) - 200
    chosen: set[int] = set()
    # The matching rows have two thirds of the room, so that a word in every other row leaves room for the head.
    for row, least in [
        *((row, room // 3) for row in matching),
        *((row, 0) for row in range(min(HEAD_ROWS, len(rows)))),
    ]:
        if row not in chosen and room - len(rows[row]) - 1 >= least:
            chosen.add(row)
            room -= len(rows[row]) + 1
    for row in range(len(rows)):
        if row in chosen:
            continue
        if matching or room <= len(rows[row]):
            break
        chosen.add(row)
        room -= len(rows[row]) + 1
    shared = len(chosen.intersection(matching))
    counted = (
        f"{len(matching):,} share words with the question, {shared:,} of them here; " if matching else ""
    )
    shown = [rows[row] for row in sorted(chosen)]
    where = f"({len(shown):,} of {len(rows):,} rows; {counted}all of them: clew show {id})"
    header = [line if len(line) <= characters else f"{line[:characters]}…" for line in header]
    return "\n".join([*([caption, ""] if caption else []), *header, *shown, "", where])


def _split_table(markdown: str) -> tuple[str, list[str]]:
    lines = markdown.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("|")), len(lines))
    return "\n".join(lines[:first]).strip(), [line for line in lines[first:] if line.startswith("|")]


def _score_rows(rows: Sequence[str], terms: set[str]) -> Floats:
    """Return the weight of the question's terms in each row of a table, (rows,); a term in every row weighs 0."""
    scores = np.zeros(len(rows))
    if not terms:
        return scores
    having: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        for term in terms.intersection(index_terms(row)):
            having.setdefault(term, []).append(number)
    for numbers in having.values():
        scores[numbers] += np.log(len(rows) / len(numbers))
    return scores


def _content_rows(snapshot: Snapshot, outline: Outline, reference: Reference, limit: int) -> Rows:
    """Return the rows of a reference's content, in reading order; only a document's are limited."""
    row = snapshot.rows([reference.node])
    node = snapshot.nodes(row)[0]
    if node.kind in {TABLE, ROW}:
        return row
    if node.kind == PAGE:
        return outline.rows_on_page(node.page or 0)
    rows = outline.evidence_rows(outline.subtree_rows(node))
    if node.kind == SECTION and not len(rows):
        rows = outline.evidence_rows(outline.labelled_rows(node))
    return rows if node.kind == SECTION or len(rows) <= limit else leading_rows(rows, snapshot, limit)


def leading_rows(rows: Rows, snapshot: Snapshot, limit: int) -> Rows:
    """Return ``limit`` of a document's rows, ascending: the first of every section, then the second, and so on."""
    parent = snapshot.column("parent")[rows]
    order = np.argsort(parent, kind="stable")
    _, starts, sizes = np.unique(parent[order], return_index=True, return_counts=True)
    rank = np.empty(len(rows), dtype=np.int64)
    rank[order] = np.arange(len(rows)) - np.repeat(starts, sizes)
    return np.sort(rows[np.lexsort((rows, rank))[:limit]])


@dataclass(frozen=True, slots=True)
class ModelReading:
    """The queries that a model read in a question; ``unreadable`` is a reply that could not be parsed.
    ``names_its_places``: the question has all words of a name that the model gives a place."""

    queries: tuple[Query, ...]
    usage: Usage
    unreadable: str = ""
    names_its_places: bool = False


@dataclass(frozen=True, slots=True)
class StructureReader:
    """Asks a language model to write a question about structure as a query; in the paper it names pages and tables
    (Section 4, Supplementary 8.2).

    ``template`` is the prompt ``structure-query``, which lists at most ``max_documents`` documents. Small models name
    a page for any question: a reading counts only if the question may be about structure, or has all words of the
    name that the model gives the place.
    """

    model: LanguageModel
    template: Template
    max_documents: int = 100

    def read(self, question: str, snapshot: Snapshot, scope: Scope) -> ModelReading:
        """Return the queries that the model writes; none of a reply in another form. Raises ModelError."""
        documents = [
            document
            for document in snapshot.documents()
            if scope.documents is None or document.key in scope.documents
        ]
        names = [f"{document.name} ({document.title})" for document in documents[: self.max_documents]]
        prompt = self.template.render(question=question, documents="\n".join(names))
        completion = self.model.complete([prompt])[0]
        try:
            reply = self.template.parse(completion.text)
        except BadCompletion:
            return ModelReading((), completion.usage, completion.text)
        is_named = any(_names(question, each) for each in reply["structures"])
        return ModelReading(read_queries(reply), completion.usage, names_its_places=is_named)


def _names(question: str, structure: Mapping[str, Any]) -> bool:
    """Return whether a question has all words of the name that a model gives a section, table or document."""
    words = set(query_terms(structure["document" if structure["kind"] == DOCUMENT else "name"] or ""))
    return structure["kind"] != PAGE and bool(words) and words <= set(query_terms(question))


def read_queries(reply: Mapping[str, Any]) -> tuple[Query, ...]:
    """Return the query that a model wrote as a reply to ``structure-query``; none if it asks about content."""
    operation, counted, text = reply["operation"], reply["counted"] or "", (reply["text"] or "").strip()
    selectors = tuple(map(_read_selector, reply["structures"]))
    places = [selector for selector in selectors if selector.kind != DOCUMENT]
    document = next((selector.document for selector in selectors if selector.document), "")
    if operation in {"count", "list"}:
        return (Query(operation, selectors, counted, counted),) if counted else ()
    if operation == "locate":
        return (Query("locate", tuple(places[:1]), PAGE, PAGE, text, document),) if places or text else ()
    if operation == "exists":
        return (Query("exists", tuple(places[:1])),) if places and places[0].document else ()
    if operation == "differ" and len(selectors) == 2 and not places:
        return (Query("changes", selectors),)
    return (Query("show", selectors),) if operation in {"show", "differ"} and selectors else ()


def _read_selector(structure: Mapping[str, Any]) -> Selector:
    kind, number, page = structure["kind"], structure["number"], structure["page"]
    name, document = (structure["name"] or "").strip(), (structure["document"] or "").strip()
    relation, beside = structure["relation"] or "", (structure["beside"] or "").strip()
    label = "" if number is None else str(number)
    # A section's number is given as its name ("2.1", "Item 1A").
    numbered = _NUMBERED_NAME.fullmatch(name) if kind in {SECTION, TABLE} else None
    if numbered:
        label = numbered["label"].casefold()
    anchor = read_place(beside) if relation and beside else None
    order: Literal["", "after", "before"] = ""
    if anchor and relation != "under":
        order = "after" if relation == "after" else "before"
    within = None if order else anchor
    return Selector(
        kind,
        number=number,
        label=label,
        word=((numbered and numbered["word"]) or kind).casefold(),
        name=(document or name) if kind == DOCUMENT else "" if label else name,
        within=Selector(PAGE, page) if kind == TABLE and page else within,
        relation=order,
        anchor=anchor if order else None,
        document=document,
        words=" ".join(
            filter(
                None, [kind, label or name, beside and f"{relation} {beside}", document and f"of {document}"]
            )
        ),
    )


def read_place(words: str) -> Selector:
    """Return the structure that a model calls "page 3", "section 2.1" or "Methods".

    >>> read_place("page 3").number, read_place("Methods").name
    (3, 'Methods')
    """
    numbered = _NUMBERED_NAME.fullmatch(words.strip())
    if numbered is None:
        return Selector(SECTION, name=words)
    word, label = (numbered["word"] or SECTION).casefold(), numbered["label"].casefold()
    kind = word if word in {PAGE, TABLE, FIGURE, ROW} else SECTION
    return Selector(kind, int(label) if label.isdigit() else None, label, word)


_NUMBERED_NAME = re.compile(
    r"(?:(?P<word>[A-Za-z]+)\s+)?(?P<label>[A-Za-z]?\d+[a-z]?(?:\.\d+)*|[IVXLC]+)", re.IGNORECASE
)
