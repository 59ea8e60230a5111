"""Answer questions about the structure of documents ("table 2 on page 4") with the nodes that they name.

The paper (Wang et al., AAAI 2024, Section 4 and Supplementary 8.3) has a language model decide whether a question
asks about structure and which pages and tables it names, and then fetches "the content of pages [the passages of that
page] and the content of tables [their Markdown]" (Figure 4). Here patterns find the phrases
(:mod:`clew.retrieve.structure.phrases`), and the documents decide whether what they name exists
(:mod:`clew.retrieve.structure.resolver`). A language model, where one is configured, adds what the patterns miss.
Besides pages and tables, a question may name sections and whole documents.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.errors import BadCompletion
from clew.core.trail import StructureReference, StructureStep
from clew.core.types import DOCUMENT, PAGE, SECTION, TABLE, Hit, Question, Scope, Usage
from clew.retrieve.structure.phrases import Phrase, find_phrases
from clew.retrieve.structure.resolver import Outline, Reference, ReferenceResolver

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.prompts.templates import Template
    from clew.core.protocols import LanguageModel, Snapshot, Trail


EVERYTHING = Scope()


@dataclass(frozen=True, slots=True)
class StructureSearch:
    """Answers questions about structure with the content of what they name, at most ``limit`` hits.

    With ``reader``, the phrases that a language model finds are added to those of the patterns.
    """

    snapshot: Snapshot
    reader: StructureReader | None = None
    limit: int = 30

    def find(self, question: Question, trail: Trail) -> Sequence[Hit]:
        """Return the content of what the question names; nothing for a question about content."""
        started = time.perf_counter()
        reading = ModelReading((), Usage())
        if self.reader:
            reading = self.reader.read(question.text, self.snapshot, question.scope)
        phrases = [*find_phrases(question.text), *reading.phrases]
        references = resolve_phrases(question.text, phrases, self.snapshot, question.scope)
        hits = fetch_hits(self.snapshot, references, self.limit)
        if hits or self.reader:
            trail.add(
                StructureStep(
                    tuple(StructureReference(ref.words, ref.kind, ref.node) for ref in references),
                    reading.unreadable or None,
                    hits=tuple(hits),
                    usage=reading.usage,
                    seconds=time.perf_counter() - started,
                )
            )
        return hits


def find_references(question: str, snapshot: Snapshot, scope: Scope = EVERYTHING) -> tuple[Reference, ...]:
    """Return the structures that a question names, by pattern; none for a question about content.

    Where the question names a document, by words of its title or file name, only that document is looked at. Where it
    names none, every document in scope with such a structure is, the best match of the question's words first, up to
    :data:`clew.retrieve.structure.resolver.MAX_DOCUMENTS`.
    """
    return resolve_phrases(question, find_phrases(question), snapshot, scope)


def resolve_phrases(
    question: str, phrases: Sequence[Phrase], snapshot: Snapshot, scope: Scope = EVERYTHING
) -> tuple[Reference, ...]:
    """Return the nodes that the phrases of a question name, in the order of the question, each once."""
    if not phrases:
        return ()
    resolver = ReferenceResolver(snapshot, question, scope)
    resolved: list[tuple[Phrase, list[Reference]]] = []
    documents = dict(zip(phrases, resolver.named_documents(phrases), strict=True))
    for phrase in sorted(phrases, key=_vagueness):
        if _vagueness(phrase) and any(
            phrase.start < other.end and other.start < phrase.end for other, _ in resolved
        ):
            continue
        within = documents[phrase]
        references = [] if within is None else resolver.resolve(phrase, within)
        if references:
            resolved.append((phrase, references))
    resolved.sort(key=lambda pair: pair[0].start)
    by_node = {reference.node: reference for _, references in reversed(resolved) for reference in references}
    order = dict.fromkeys(reference.node for _, references in resolved for reference in references)
    return tuple(by_node[node] for node in order)


def _vagueness(phrase: Phrase) -> int:
    """Return how vague a phrase is: a vaguer reading of the same words gives way to a more definite one.

    "The table" gives way to the table's name. "Summarise the harbour report" means the document, whatever its first
    heading is, unless page 2 of it is named. "Show the risk factors of it" means no document.
    """
    return 1 if phrase.is_bare else 2 if phrase.kind == DOCUMENT else 3 if phrase.word == "part" else 0


def fetch_hits(snapshot: Snapshot, references: Sequence[Reference], limit: int = 30) -> list[Hit]:
    """Return the content of the references, in their order, at most ``limit`` hits; scores fall with the order.

    The content of a page is its passages and tables in order; of a table its Markdown; of a section its own passages
    and tables and those of its subsections, in order; of a document the same, or, where that is more than its share
    of ``limit``, the first passages of each of its sections. Where the limit is short, every reference has an equal
    share of it, and the next ones take what a reference leaves.
    """
    documents = {document.key: document for document in snapshot.documents()}
    content: list[tuple[int, Reference]] = []
    seen: set[int] = set()
    for number, reference in enumerate(references):
        share = -(-(limit - len(content)) // (len(references) - number))
        outline = Outline(snapshot, documents[reference.document])
        rows = _content_rows(snapshot, outline, reference, share).tolist()
        rows = [row for row in rows if row not in seen][:share]
        content += [(row, reference) for row in rows]
        seen.update(rows)
    nodes = snapshot.nodes(np.array([row for row, _ in content], dtype=np.int64))
    return [
        Hit(
            node,
            1.0 - rank / len(content),
            (node.id,) if node.id == reference.node else (reference.node, node.id),
            () if node.id == reference.node else (f"structure: {reference.words}",),
        )
        for rank, (node, (_, reference)) in enumerate(zip(nodes, content, strict=True))
    ]


def _content_rows(snapshot: Snapshot, outline: Outline, reference: Reference, limit: int) -> Rows:
    """Return the rows of a reference's content, in reading order; only a document's are limited."""
    row = snapshot.rows([reference.node])
    node = snapshot.nodes(row)[0]
    if node.kind == TABLE:
        return row
    if node.kind == PAGE:
        return outline.rows_on_page(node.page or 0)
    rows = outline.evidence_rows(outline.subtree_rows(node))
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
    """The phrases that a model read in a question; ``unreadable`` is a reply that could not be parsed."""

    phrases: tuple[Phrase, ...]
    usage: Usage
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class StructureReader:
    """Asks a language model which structures a question names (the paper, Section 4 and Supplementary 8.2).

    ``template`` is the prompt ``structure``, which lists at most ``max_documents`` documents. The phrases add to
    those of the patterns, and they must name something that exists all the same.
    """

    model: LanguageModel
    template: Template
    max_documents: int = 100

    def read(self, question: str, snapshot: Snapshot, scope: Scope) -> ModelReading:
        """Return the phrases that the model names; none of a reply in another form. Raises ModelError."""
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
        return ModelReading(tuple(_read_phrases(structures, len(question))), completion.usage)


def _read_phrases(structures: list[Mapping[str, Any]], end: int) -> Iterator[Phrase]:
    for structure in structures:
        kind, number, page = structure["kind"], structure["number"], structure["page"]
        name, document = (structure["name"] or "").strip(), (structure["document"] or "").strip()
        label = "" if number is None else str(number)
        # A section's number is given as its name ("2.1", "Item 1A").
        numbered = _NUMBERED_NAME.fullmatch(name) if kind in {SECTION, TABLE} else None
        if numbered:
            label = numbered["label"].casefold()
        yield Phrase(
            kind,
            end,
            end,
            number=number,
            label=label,
            word=((numbered and numbered["word"]) or kind).casefold(),
            name=(document or name) if kind == DOCUMENT else "" if label else name,
            page=page if kind == TABLE else None,
            document=document,
            words=" ".join(filter(None, [kind, label or name, document and f"of {document}"])),
        )


_NUMBERED_NAME = re.compile(
    r"(?:(?P<word>[A-Za-z]+)\s+)?(?P<label>[A-Za-z]?\d+[a-z]?(?:\.\d+)*|[IVXLC]+)", re.IGNORECASE
)
