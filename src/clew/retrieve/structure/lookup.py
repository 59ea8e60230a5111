"""Answer questions about the structure of documents ("table 2 on page 4") with the nodes that they name.

The paper (Wang et al., AAAI 2024, Section 4 and Supplementary 8.3) has a language model decide whether a question
asks about structure and which pages and tables it names, and then fetches "the content of pages [the passages of that
page] and the content of tables [their Markdown]" (Figure 4). Here patterns find the selectors
(:mod:`clew.retrieve.structure.selectors`), and the documents decide whether what they name exists
(:mod:`clew.retrieve.structure.resolver`). A language model, where one is configured, adds what the patterns miss.
Besides pages and tables, a question may name sections and whole documents.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.errors import BadCompletion
from clew.core.text import index_terms, query_terms
from clew.core.trail import StructureReference, StructureStep
from clew.core.types import DOCUMENT, PAGE, ROW, SECTION, TABLE, Hit, Question, Scope, Usage
from clew.retrieve.structure.algebra import evaluate
from clew.retrieve.structure.grammar import Selector, parse_question
from clew.retrieve.structure.outline import Outline
from clew.retrieve.structure.resolver import Reference

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows
    from clew.core.prompts.templates import Template
    from clew.core.protocols import LanguageModel, Snapshot, Trail


EVERYTHING = Scope()
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
    """

    hits: tuple[Hit, ...] = ()
    text: str = ""
    is_missing: bool = False

    def __bool__(self) -> bool:
        """Whether the question is about structure."""
        return bool(self.hits or self.text)


@dataclass(frozen=True, slots=True)
class StructureSearch:
    """Answers questions about structure with the content of what they name, at most ``limit`` hits.

    With ``reader``, the selectors that a language model reads are added to those of the grammar.
    """

    snapshot: Snapshot
    reader: StructureReader | None = None
    limit: int = 30

    def find(self, question: Question, trail: Trail) -> StructureResult:
        """Return what the question names, with the computed answer; nothing for a question about content."""
        started = time.perf_counter()
        reading = ModelReading((), Usage())
        if self.reader:
            reading = self.reader.read(question.text, self.snapshot, question.scope)
        queries = parse_question(question.text)
        if not (queries or reading.selectors or self.reader):
            return StructureResult()
        finding = evaluate(question.text, queries, self.snapshot, question.scope, reading.selectors)
        hits = fetch_hits(self.snapshot, finding.references, self.limit, finding.listed, question.text)
        if finding or self.reader:
            trail.add(
                StructureStep(
                    tuple(StructureReference(ref.words, ref.kind, ref.node) for ref in finding.references),
                    reading.unreadable or None,
                    hits=tuple(hits),
                    usage=reading.usage,
                    seconds=time.perf_counter() - started,
                )
            )
        return StructureResult(tuple(hits), finding.text, finding.is_missing)


def find_references(question: str, snapshot: Snapshot, scope: Scope = EVERYTHING) -> tuple[Reference, ...]:
    """Return the structures that a question names, without a model; none for a question about content.

    Where the question names a document, by words of its title or file name, only that document is looked at. Where it
    names none, every document in scope with such a structure is, the best match of the question's words first, up to
    :data:`clew.retrieve.structure.resolver.MAX_DOCUMENTS`.
    """
    queries = parse_question(question)
    return evaluate(question, queries, snapshot, scope).references if queries else ()


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
    for reference in references:
        question = question.replace(reference.words, " ")
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
    """The selectors that a model read in a question; ``unreadable`` is a reply that could not be parsed."""

    selectors: tuple[Selector, ...]
    usage: Usage
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class StructureReader:
    """Asks a language model which structures a question names (the paper, Section 4 and Supplementary 8.2).

    ``template`` is the prompt ``structure``, which lists at most ``max_documents`` documents. The selectors add to
    those of the patterns, and they must name something that exists all the same. Small models name a page for any
    question: a place counts only if the question has a word for such a place, or the name of the place itself.
    """

    model: LanguageModel
    template: Template
    max_documents: int = 100

    def read(self, question: str, snapshot: Snapshot, scope: Scope) -> ModelReading:
        """Return the selectors that the model names; none of a reply in another form. Raises ModelError."""
        documents = [
            document
            for document in snapshot.documents()
            if scope.documents is None or document.key in scope.documents
        ]
        names = [f"{document.name} ({document.title})" for document in documents[: self.max_documents]]
        prompt = self.template.render(question=question, documents="\n".join(names))
        completion = self.model.complete([prompt])[0]
        try:
            structures = self.template.parse(completion.text)["structures"]
        except BadCompletion:
            return ModelReading((), completion.usage, completion.text)
        named = [structure for structure in structures if _points_at(question, structure)]
        return ModelReading(tuple(_read_selectors(named, len(question))), completion.usage)


#: Words for places in documents, in some languages: what a question that points at one has.
_PLACE = re.compile(
    r"\b(?:pages?|pp?\.|tab(?:le|ell|ul)\w*|sections?|sub-?sections?|chapters?|append\w+|annex\w*|figures?|parts?"
    r"|items?|schedules?|exhibits?|articles?|clauses?|paragraphs?|headings?|captions?|sheets?|slides?|notes?|index"
    r"|documents?|files?|reports?|seiten?|abschnitt\w*|kapitel\w*|anhang\w*|tableaux?|chapitres?|p[áa]gin\w+|tablas?"
    r"|secci[óo]n\w*|cap[íi]tul\w*|anexos?|sezion\w*|capitol\w*|allegat\w*|tabela\w*|sekcj\w*|stron\w*|bladzijde\w*"
    r"|страниц\w*|таблиц\w*|раздел\w*|глав\w*)\b|[页頁表節章节]|ページ|페이지",
    re.IGNORECASE,
)


def _points_at(question: str, structure: Mapping[str, Any]) -> bool:
    """Return whether a question has a word for such a place, or all words of the name that a model gives it."""
    if _PLACE.search(question):
        return True
    name = structure["document"] if structure["kind"] == DOCUMENT else structure["name"]
    words = set(query_terms(name or ""))
    return structure["kind"] != PAGE and bool(words) and words <= set(query_terms(question))


def _read_selectors(structures: list[Mapping[str, Any]], end: int) -> Iterator[Selector]:
    for structure in structures:
        kind, number, page = structure["kind"], structure["number"], structure["page"]
        name, document = (structure["name"] or "").strip(), (structure["document"] or "").strip()
        label = "" if number is None else str(number)
        # A section's number is given as its name ("2.1", "Item 1A").
        numbered = _NUMBERED_NAME.fullmatch(name) if kind in {SECTION, TABLE} else None
        if numbered:
            label = numbered["label"].casefold()
        yield Selector(
            kind,
            end,
            end,
            number=number,
            label=label,
            word=((numbered and numbered["word"]) or kind).casefold(),
            name=(document or name) if kind == DOCUMENT else "" if label else name,
            within=Selector(PAGE, end, end, number=page) if kind == TABLE and page else None,
            document=document,
            words=" ".join(filter(None, [kind, label or name, document and f"of {document}"])),
        )


_NUMBERED_NAME = re.compile(
    r"(?:(?P<word>[A-Za-z]+)\s+)?(?P<label>[A-Za-z]?\d+[a-z]?(?:\.\d+)*|[IVXLC]+)", re.IGNORECASE
)
