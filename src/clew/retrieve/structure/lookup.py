"""A language model reads which structures a question names (the paper, Section 4 and Supplementary 8.2).

It adds to the patterns of :mod:`clew.retrieve.structure.phrases`; what it names must exist in the base all the same.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.errors import BadCompletion
from clew.core.steps import StructureReference, StructureStep
from clew.core.types import DOCUMENT, PAGE, SECTION, TABLE, Hit, Question, Scope, Usage
from clew.retrieve.structure.outline import Outline
from clew.retrieve.structure.phrases import Phrase, find_phrases
from clew.retrieve.structure.resolver import Reference, ReferenceResolver

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.prompts.templates import Template
    from clew.core.protocols import LanguageModel, Snapshot, Trail


@dataclass(frozen=True, slots=True)
class ModelReading:
    """What a model read: the phrases, what it cost, and its reply where that could not be understood."""

    phrases: tuple[Phrase, ...]
    usage: Usage
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class StructureReader:
    """Asks ``model`` with ``template`` (the prompt ``structure``), listing at most ``shown`` documents."""

    model: LanguageModel
    template: Template
    max_documents: int = 100

    def read(self, question: str, snapshot: Snapshot, scope: Scope) -> ModelReading:
        """Return what the model names; nothing of a reply in another form. Raises ModelError."""
        keys = scope.documents
        inside = [one for one in snapshot.documents() if keys is None or one.key in keys]
        names = [f"{one.name} ({one.title})" for one in inside[: self.max_documents]]
        prompt = self.template.render(question=question, documents="\n".join(names))
        completion = self.model.complete([prompt])[0]
        try:
            named = self.template.parse(completion.text)["structures"]
        except BadCompletion:
            return ModelReading((), completion.usage, completion.text)
        return ModelReading(tuple(_phrases(named, len(question))), completion.usage)


def _phrases(named: list[Mapping[str, Any]], end: int) -> Iterator[Phrase]:
    for one in named:
        kind, number, page = one["kind"], one["number"], one["page"]
        name, document = (one["name"] or "").strip(), (one["document"] or "").strip()
        label = "" if number is None else str(number)
        # A section number is given as its name ("2.1", "Item 1A").
        numbered = _NUMBERED.fullmatch(name) if kind in {SECTION, TABLE} else None
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


_NUMBERED = re.compile(
    r"(?:(?P<word>[A-Za-z]+)\s+)?(?P<label>[A-Za-z]?\d+[a-z]?(?:\.\d+)*|[IVXLC]+)", re.IGNORECASE
)

EVERYTHING = Scope()


def find_references(question: str, snapshot: Snapshot, scope: Scope = EVERYTHING) -> tuple[Reference, ...]:
    """Return the structures that a question names, by pattern; nothing for a question about content.

    Where the question names a document, by words of its title or file name, only that one is looked at; where
    it names none, every document in scope that has such a structure, those that match the question's words
    best first, up to :data:`clew.retrieve.structure.resolver.MAX_DOCUMENTS`.
    """
    return resolve_phrases(question, find_phrases(question), snapshot, scope)


def resolve_phrases(
    question: str, found: Sequence[Phrase], snapshot: Snapshot, scope: Scope = EVERYTHING
) -> tuple[Reference, ...]:
    """Return what phrases of a question name in a base, in the order of the question, each once."""
    if not found:
        return ()
    binder = ReferenceResolver(snapshot, question, scope)
    named: list[tuple[Phrase, list[Reference]]] = []
    documents = dict(zip(found, binder.named_documents(found), strict=True))
    for phrase in sorted(found, key=_modesty):
        if _modesty(phrase) and any(phrase.start < old.end and old.start < phrase.end for old, _ in named):
            continue
        inside = documents[phrase]
        references = [] if inside is None else binder.resolve(phrase, inside)
        if references:
            named.append((phrase, references))
    named.sort(key=lambda pair: pair[0].start)
    by_node = {reference.node: reference for _, references in reversed(named) for reference in references}
    order = dict.fromkeys(reference.node for _, references in named for reference in references)
    return tuple(by_node[node] for node in order)


def _modesty(phrase: Phrase) -> int:
    """Return how little a phrase says: what says less gives way to what says more of the same words.

    "The table" gives way to its name; "summarise the harbour report" is the document, whatever its first
    heading is, unless page 2 of it is named; and "show the risk factors of it" is no document.
    """
    return 1 if phrase.is_bare else 2 if phrase.kind == DOCUMENT else 3 if phrase.word == "part" else 0


def fetch_hits(snapshot: Snapshot, references: Sequence[Reference], limit: int = 30) -> list[Hit]:
    """Return what the references name, in the order of the references, at most ``limit`` hits.

    A page is its passages and tables in order; a table its Markdown; a section its passages, tables and
    subsections' in order; a document the same, or, if that is more than its part of ``limit``, the first
    passages of each of its sections. Where the limit is short every reference has an equal part of it, and
    what one leaves the next ones take. Scores only fall with the order.
    """
    documents = {document.key: document for document in snapshot.documents()}
    hits: list[tuple[int, Reference]] = []
    seen: set[int] = set()
    for number, reference in enumerate(references):
        share = -(-(limit - len(hits)) // (len(references) - number))
        outline = Outline(snapshot, documents[reference.document])
        rows = [row for row in _content(snapshot, outline, reference, share).tolist() if row not in seen]
        hits += [(row, reference) for row in rows[:share]]
        seen.update(rows[:share])
    nodes = snapshot.nodes(np.array([row for row, _ in hits], dtype=np.int64))
    return [
        Hit(
            node,
            1.0 - rank / len(hits),
            (node.id,) if node.id == reference.node else (reference.node, node.id),
            () if node.id == reference.node else (f"structure: {reference.words}",),
        )
        for rank, (node, (_, reference)) in enumerate(zip(nodes, hits, strict=True))
    ]


def _content(snapshot: Snapshot, outline: Outline, reference: Reference, limit: int) -> Rows:
    """Return the rows that a reference stands for, in reading order; ``limit`` only for a document."""
    row = snapshot.rows([reference.node])
    node = snapshot.nodes(row)[0]
    if node.kind == TABLE:
        return row
    if node.kind == PAGE:
        return outline.rows_on_page(node.page or 0)
    rows = outline.evidence_rows(outline.subtree_rows(node))
    return rows if node.kind == SECTION or len(rows) <= limit else leading_rows(rows, snapshot, limit)


def leading_rows(rows: Rows, snapshot: Snapshot, limit: int) -> Rows:
    """Return ``limit`` of a document's rows, ascending: the first of every section, then the second, ..."""
    parent = snapshot.column("parent")[rows]
    order = np.argsort(parent, kind="stable")
    _, starts, sizes = np.unique(parent[order], return_index=True, return_counts=True)
    rank = np.empty(len(rows), dtype=np.int64)
    rank[order] = np.arange(len(rows)) - np.repeat(starts, sizes)
    return np.sort(rows[np.lexsort((rows, rank))[:limit]])


@dataclass(frozen=True, slots=True)
class StructureSearch:
    """Answers questions about structure with the nodes that they name; ``limit`` bounds the hits.

    ``reader`` is asked as well, where there is one, and what it names is added to what the patterns found.
    """

    snapshot: Snapshot
    reader: StructureReader | None = None
    limit: int = 30

    def find(self, question: Question, trail: Trail) -> Sequence[Hit]:
        """Return the content of what the question names; nothing if it asks about content."""
        started = time.perf_counter()
        found = find_phrases(question.text)
        read = ModelReading((), Usage())
        if self.reader:
            read = self.reader.read(question.text, self.snapshot, question.scope)
        named = resolve_phrases(question.text, [*found, *read.phrases], self.snapshot, question.scope)
        hits = fetch_hits(self.snapshot, named, self.limit)
        if hits or self.reader:
            trail.add(
                StructureStep(
                    tuple(StructureReference(one.words, one.kind, one.node) for one in named),
                    read.unreadable or None,
                    hits=tuple(hits),
                    usage=read.usage,
                    seconds=time.perf_counter() - started,
                )
            )
        return hits


# MERGED: Questions about the structure of documents: recognised by pattern, answered from the nodes they name.
