"""From the words of a question to nodes of the base: which document, which page, table or section."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import hash_term, index_terms, query_terms
from clew.core.types import DOCUMENT, PAGE, ROW, SECTION, TABLE, Document, Node, Scope
from clew.retrieve.structure.outline import Outline, heading_terms
from clew.retrieve.structure.phrases import Phrase
from clew.retrieve.structure.titles import (
    DocumentTitles,
    is_only_generic,
    mentions_document,
    name_terms,
    ordered_name_terms,
)

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import Snapshot

#: Where no document is named, at most this many have their structure fetched ...
MAX_DOCUMENTS = 5
#: ... of at most this many that are looked at.
MAX_CANDIDATES = 40


@dataclass(frozen=True, slots=True)
class Reference:
    """A structure that a question names: its document's key, its kind, its node's id, and the words."""

    document: str
    kind: str
    node: str
    words: str


class ReferenceResolver:
    """Finds what phrases of one question name, in a snapshot and a scope."""

    def __init__(self, snapshot: Snapshot, question: str, scope: Scope) -> None:
        self._snapshot = snapshot
        self._question = question
        inside = scope.documents
        self._scope = Scope(inside)
        every = snapshot.documents()
        self._documents = [one for one in every if inside is None or one.key in inside]
        self._names = (
            DocumentTitles(self._documents)
            if inside is not None
            else snapshot.memoize("graph/names", lambda: DocumentTitles(every), documents_only=True)
        )

    def resolve(self, phrase: Phrase, named: Sequence[Document]) -> list[Reference]:
        """Return what ``phrase`` names in the documents that the question ``named`` for it.

        Where it named none, every document in scope is looked at, the best-matching first.
        """
        if phrase.kind == DOCUMENT:
            ids = [f"{document.key}:0" for document in self._whole_documents(phrase)]
            return [self._reference(phrase, node) for node in self._snapshot.nodes(self._snapshot.rows(ids))]
        found: list[Reference] = []
        with_it = 0
        for document in named or self._candidates(phrase):
            nodes = self._nodes(phrase, Outline(self._snapshot, document), bool(named))
            found += [self._reference(phrase, node) for node in nodes]
            with_it += bool(nodes)
            if not named and with_it == MAX_DOCUMENTS:
                break
        return found

    def named_documents(self, found: Sequence[Phrase]) -> list[list[Document] | None]:
        """Return for each phrase the documents that the question names for it.

        They are those named by the words around it; else, as in "page 2 and table 1 of the lease" or "compare
        table 1 of the lease with page 2", those of the phrase it is joined to or of the one before it; else
        those named anywhere. None where it is of something that is not in the base.
        """
        definite = [phrase for phrase in found if phrase.kind != DOCUMENT]
        own = {phrase: self._around(phrase, definite) for phrase in definite}
        anywhere = self._names.choose(self._question, share=0.5)
        foreign = {phrase for phrase, documents in own.items() if documents is None}
        return [
            None if phrase in foreign else own.get(phrase) or self._borrowed(phrase, own) or anywhere
            for phrase in found
        ]

    def _borrowed(self, phrase: Phrase, own: Mapping[Phrase, list[Document] | None]) -> list[Document]:
        lenders = [other for other, documents in own.items() if documents]
        after = sorted((one for one in lenders if one.start >= phrase.end), key=lambda one: one.start)
        before = sorted((one for one in lenders if one.end <= phrase.start), key=lambda one: -one.end)
        joined = bool(after) and _JOINED.fullmatch(self._question[phrase.end : after[0].start])
        nearest = [*after[:1], *before[:1]] if joined else [*before[:1], *after[:1]]
        return (own[nearest[0]] or []) if nearest else []

    def _reference(self, phrase: Phrase, node: Node) -> Reference:
        said = phrase.words or " ".join(self._question[phrase.start : phrase.end].split())
        return Reference(node.document, node.kind, node.id, said)

    def _around(self, phrase: Phrase, definite: Sequence[Phrase]) -> list[Document] | None:
        """Return the documents that the words around a phrase name; other phrases delimit these words.

        None where it is a page, table or section of something that is not in the base.
        """
        if phrase.document:
            return self._names.choose(phrase.document)
        before = max((one.end for one in definite if one.end <= phrase.start), default=0)
        after = min((one.start for one in definite if one.start >= phrase.end), default=None)
        if phrase.name and not phrase.at_end:
            following = _OF_NAMED.match(phrase.name)
        else:
            following = _OF.match(self._question[phrase.end : after])
        what = _BESIDES.split(following["what"])[0] if following else ""
        if what and self._foreign(what) and following and following["of"]:
            return None
        chosen = self._names.choose(what) if what and not self._foreign(what) else []
        return chosen or self._names.choose(self._question[before : phrase.start], share=0.5)

    def _foreign(self, what: str) -> bool:
        """Return whether "the surveyors' chart", of which a page is spoken, is nothing in this base.

        It is not where it is called a document ("the Smith agreement"), nor where half of its words or more
        are in titles, headings or captions.
        """
        words = name_terms(what)
        hashes = np.array([hash_term(word) for word in words], dtype=np.uint64)
        known = self._snapshot.postings("title").document_frequency(hashes) > 0
        in_names = [word in self._names for word in words]
        return bool(words) and not mentions_document(what) and bool((known | in_names).mean() < 0.5)

    def _whole_documents(self, phrase: Phrase) -> list[Document]:
        """Return the documents of "summarise the lease and the handbook", if it mentions nothing else."""
        if phrase.document:
            return self._names.choose(phrase.document)[:MAX_DOCUMENTS]
        pieces = [piece for piece in _SEVERAL.split(phrase.name) if ordered_name_terms(piece)]
        chosen = [self._names.match_all_words(piece) for piece in pieces]
        if chosen and all(chosen):
            return list(dict.fromkeys(document for found in chosen for document in found[:MAX_DOCUMENTS]))
        return self._by_text()[:MAX_DOCUMENTS] if is_only_generic(phrase.name) and not any(chosen) else []

    def _candidates(self, phrase: Phrase) -> list[Document]:
        """Return the documents that may have the structure, where none is named: best match of text first."""
        if phrase.kind == PAGE:
            return [document for document in self._by_text() if document.pages][:MAX_CANDIDATES]
        if phrase.name:
            rows = self._rows_with(anchor_words(phrase), phrase.kind)
        elif phrase.kind == SECTION:
            rows = self._rows_with([phrase.label] if phrase.label else [], phrase.kind)
        else:
            rows = np.flatnonzero(self._snapshot.mask(self._scope, [TABLE]))
        holding = set(self._snapshot.column("document")[rows].tolist())
        first = {one.key: self._snapshot.document_rows(one.key)[0] for one in self._documents}
        return [one for one in self._by_text() if first[one.key] in holding][:MAX_CANDIDATES]

    def _rows_with(self, words: Sequence[str], kind: str) -> Rows:
        """Return rows of sections, or of tables and their rows, whose name or header has one of ``words``."""
        kinds, fields = (
            ([SECTION], ["title"]) if kind == SECTION else ([TABLE, ROW, SECTION], ["title", "text"])
        )
        hashes = {hash_term(term) for word in words for term in (word, *index_terms(word))}
        rows = [self._snapshot.postings(field).rows_with(number)[0] for field in fields for number in hashes]
        every = np.unique(np.concatenate(rows)) if rows else np.empty(0, dtype=np.int64)
        return every[self._snapshot.mask(self._scope, kinds)[every]]

    def _by_text(self) -> list[Document]:
        """Return the documents in scope, those first that hold the question's rarer words."""
        if len(self._documents) < 2:
            return self._documents
        postings, column = self._snapshot.postings("text"), self._snapshot.column("document")
        weights: defaultdict[int, float] = defaultdict(float)
        for term in set(query_terms(self._question)):
            holding = np.unique(column[postings.rows_with(hash_term(term))[0]]).tolist()
            for row in holding:
                weights[row] += math.log(1 + len(self._documents) / len(holding))
        first = {one.key: self._snapshot.document_rows(one.key)[0] for one in self._documents}
        return sorted(self._documents, key=lambda one: (-round(weights[first[one.key]], 9), one.key))

    def _nodes(self, phrase: Phrase, outline: Outline, named: bool) -> list[Node]:
        """Return the nodes of one document that a phrase names; ``named`` if the question names that one."""
        if phrase.word == "part" and not named:
            return []  # "the conclusion" of what?
        if phrase.kind == PAGE:
            return outline.find_pages(phrase.number, phrase.label)
        if phrase.word == "sheet":
            return _sheets(phrase, outline)
        if phrase.kind == TABLE:
            return _tables(phrase, outline)
        if phrase.name:
            return best_matches(phrase, outline.sections)
        labelled = outline.sections_with_label(phrase.word, phrase.label) if phrase.label else []
        # "section 3" of headings without numbers, or "the third section" of any.
        counted = (
            named
            and phrase.word in {"section", "chapter"}
            and not (phrase.label and outline.has_numbered_headings)
        )
        return labelled or (outline.nth_section(phrase.number) if counted and phrase.number else [])


def _tables(phrase: Phrase, outline: Outline) -> list[Node]:
    tables = outline.tables_on(phrase.page)
    if phrase.name:
        return best_matches(phrase, tables)
    if phrase.label and (labelled := outline.tables_with_label(phrase.label, tables)):
        return labelled
    if phrase.number is not None:
        at = phrase.number if phrase.number < 0 else phrase.number - 1
        return tables[at:][:1] if -len(tables) <= at < len(tables) else []
    return [] if phrase.label else tables


def _sheets(phrase: Phrase, outline: Outline) -> list[Node]:
    if "sheet" not in outline.document.media_type and "excel" not in outline.document.media_type:
        return []
    sheets = [node for node in outline.sections if node.level == 1]
    if phrase.number is not None:
        return sheets[phrase.number - 1 :][:1] if phrase.number > 0 else sheets[phrase.number :][:1]
    return best_matches(phrase, sheets)


def best_matches(phrase: Phrase, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes whose names fit the words of a phrase best; none where none fits well enough."""
    scored = [(match_score(phrase, node), node) for node in nodes]
    best = max((score for score, _ in scored), default=0.0)
    return [node for score, node in scored if score > 0 and math.isclose(score, best)]


def match_score(phrase: Phrase, node: Node) -> float:
    """Return how well the words of a phrase name a section or table, 0 for not at all.

    Of "the hours and charges section" every word back to some article or preposition must be a word of the
    heading; of "the section on hours and charges" the first words. Together they must make up more than half
    of the heading, or of its part after a colon; a third will do for "section on". A table may also be named
    by its column headers and the heading above it, by two words, or by the first word of its caption.
    """
    return max(_fit(phrase, name, node) for name in (node.name, *re.split(r"[:—]|\s[-–]\s", node.name)[1:]))


def _fit(phrase: Phrase, name: str, node: Node) -> float:
    heading = heading_terms(name)
    around = {*heading, *_header_terms(node)} if node.kind == TABLE else {*heading}
    best = 0.0
    for words in possible_names(phrase):
        said = ordered_name_terms(words)
        run = said if phrase.at_end else list(itertools.takewhile(around.__contains__, said))
        if not run or not around.issuperset(run):
            continue
        share = len({*heading}.intersection(run)) / max(len({*heading}), 1)
        if phrase.word in {"heading", "part"}:
            enough = share == 1
        elif node.kind == TABLE:
            enough = share >= 0.5 or len({*run}) >= 2 or run[:1] == heading[:1]
        else:
            enough = share > 0.5 or (share >= 1 / 3 and not phrase.at_end and not phrase.whole)
        best = max(best, len({*run}) + share if enough else 0.0)
    return best


def possible_names(phrase: Phrase) -> list[str]:
    """Return what of a phrase's words may be a name: for a name at their end, all that follows a boundary."""
    if not phrase.at_end:
        return [phrase.name]
    if quoted := re.search(r"[\"“'‘]([^\"”]+)[\"”'’]\s*$", phrase.name):
        return [quoted[1]]
    starts = [0, *(match.end() for match in _BEFORE_NAME.finditer(phrase.name))]
    return [phrase.name[start:] for start in starts]


def anchor_words(phrase: Phrase) -> list[str]:
    """Return the word of a named phrase that must be a word of the name: the one beside the noun."""
    said = ordered_name_terms(phrase.name)
    return said[-1:] if phrase.at_end else said[:1]


def _header_terms(node: Node) -> frozenset[str]:
    rows = (line for line in node.text.splitlines() if line.startswith("|"))
    return frozenset(ordered_name_terms(f"{next(rows, '')} {' '.join(node.headings[-1:])}"))


_STOPS = (
    r"\b(?:say|says|show|shows|list|lists|tell|tells|describe|describes|mention|mentions|state|states|cover|"
    r"contain|contains|give|gives|discuss|about|regarding|concerning|do|does|did|what|how|which|who|when|where|"
    r"why|is|are|was|were|compare|summari[sz]e)\b|[?;:!]|$"
)
_OF = re.compile(
    rf"^\s*(?:['’]s?\s+)?(?:(?P<of>of)\s+|(?:in|from|within|inside)\s+|,\s*(?:of|in|from)?\s*)"
    rf"(?P<what>.*?)(?:{_STOPS})",
    re.IGNORECASE,
)
_OF_NAMED = re.compile(rf"^.*\b(?:(?P<of>$.)|of|in|from|within)\s+(?P<what>.+?)(?:{_STOPS})", re.IGNORECASE)
_BESIDES = re.compile(r"\s(?:that|which|who|where|for|on|with|by|from)\s|,", re.IGNORECASE)
_JOINED = re.compile(r"\s*(?:,|and|or|&|with|to|against|vs\.?)?\s*(?:the\s+|with\s+)*", re.IGNORECASE)
_SEVERAL = re.compile(r"\b(?:and|with|to|against|versus|vs\.?)\b|[,&]", re.IGNORECASE)
_BEFORE_NAME = re.compile(
    r"(?:^|\s)(?:the|an?|this|that|its|their|our|my|your|which|what|whose|each|every|any|in|on|of|at|from|to|by|"
    r"does|do|did|is|are|summari[sz]e|compare|explain|describe|show|read|and|with)(?=\s)|['’]s(?=\s)|,",
    re.IGNORECASE,
)
