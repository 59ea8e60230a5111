"""Resolve the words of a question to nodes of the knowledge base: a document, a page, a table or a section.

Documents are found by the words of their titles and file names; what is in a document, by number, label or name
(:class:`Outline`).
"""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import hash_term, index_terms, is_stop_term, query_terms
from clew.core.types import DOCUMENT, KINDS, PAGE, PASSAGE, ROW, SECTION, TABLE, Document, Node, Scope
from clew.retrieve.structure.phrases import Phrase, parse_roman

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import Snapshot

_TABLE_LABEL = re.compile(
    r"^\W*(?:table|tab\.|tabelle|tableau|tabla)(?:\s+(?:no\.?\s*)?|(?=\d))"
    r"(?P<label>[a-z]{0,2}[.-]?\d+[a-z]?(?:[.-]\d+)*|[ivxlc]+|(?-i:[A-Z]))\b",
    re.IGNORECASE,
)
_SECTION_LABEL = re.compile(
    r"^\W*(?:(?P<word>[^\W\d_]{3,}|§)\s*)?(?P<label>[a-z]?\d+[a-z]?(?:\.\d+)*|[a-z]\.\d+(?:\.\d+)*|[ivxlc]+|[a-z])(?=[\s.:)–—-]|$)",
    re.IGNORECASE,
)
#: Words before the number of a heading that are part of its label.
LABEL_WORDS = frozenset(
    "section chapter item part article appendix annex clause exhibit schedule note attachment paragraph §".split()
)
#: The words by which people refer to a heading without a word before its number ("3.2 Data").
_WORDS_FOR_NUMBERED = {"section", "chapter", "clause", "paragraph", "part", "article"}


class Outline:
    """One document's structure. Rows are those of the snapshot."""

    def __init__(self, snapshot: Snapshot, document: Document) -> None:
        self._snapshot = snapshot
        self.document = document
        self.start, self.end = snapshot.document_rows(document.key)
        span = slice(self.start, self.end)
        self._kind = snapshot.column("kind")[span]
        self._page = snapshot.column("page")[span]
        self._parent = snapshot.column("parent")[span]

    @cached_property
    def sections(self) -> list[Node]:
        """The sections in reading order."""
        return self._snapshot.nodes(self.rows_of_kind(SECTION))

    @cached_property
    def tables(self) -> list[Node]:
        """The tables in reading order."""
        return self._snapshot.nodes(self.rows_of_kind(TABLE))

    def rows_of_kind(self, kind: str) -> Rows:
        """Return the rows of one kind, ascending."""
        return np.flatnonzero(self._kind == KINDS.index(kind)) + self.start

    def find_pages(self, number: int | None, label: str = "") -> list[Node]:
        """Return the page with a number (negative from the end), else the one with a printed label."""
        pages = self._snapshot.nodes(self.rows_of_kind(PAGE))
        if number is not None and number < 0:
            number += self.document.pages + 1
        numbered = [node for node in pages if number is not None and node.page == number]
        return numbered or [node for node in pages if label and node.name.casefold() == label]

    def tables_on(self, page: int | None) -> list[Node]:
        """Return the tables that start or have a row on a page (negative from the end); None for all."""
        if page is None:
            return self.tables
        number = page + self.document.pages + 1 if page < 0 else page
        rows = np.flatnonzero((self._kind == KINDS.index(ROW)) & (self._page == number))
        table_rows = np.array(sorted(set(self._parent[rows].tolist())), dtype=np.int64)
        ids = set(self._snapshot.ids(table_rows))
        return [node for node in self.tables if node.page == number or node.id in ids]

    def tables_with_label(self, label: str, tables: list[Node]) -> list[Node]:
        """Return the tables whose caption says "Table <label>"."""
        return [node for node in tables if parse_table_label(node.name) == normalise_label(label)]

    def sections_with_label(self, word: str, label: str) -> list[Node]:
        """Return the sections whose heading starts with a word and label ("Item 1A") or with a label alone."""
        label = normalise_label(label)
        sections = []
        for node in self.sections:
            match = _SECTION_LABEL.match(node.name)
            if match and normalise_label(match["label"]) == label:
                heading_word = (match["word"] or "").casefold()
                # A lone letter or numeral without a word before it may be a word of the heading itself.
                next_character = node.name[match.end() : match.end() + 1]
                is_label = match["label"][0].isdigit() or next_character in set(".:)")
                alone = not heading_word and word in _WORDS_FOR_NUMBERED and is_label
                if heading_word == word or alone:
                    sections.append(node)
        return sections

    @cached_property
    def has_numbered_headings(self) -> bool:
        """Whether any heading is numbered."""
        return any(_SECTION_LABEL.match(node.name) and node.name[:1].isdigit() for node in self.sections)

    def nth_section(self, number: int) -> list[Node]:
        """Return the n-th of the outermost sections, negative from the end."""
        levels = sorted({node.level for node in self.sections})
        by_level = ([node for node in self.sections if node.level == level] for level in levels)
        # A single outermost heading is the document's title.
        outermost = next((nodes for nodes in by_level if len(nodes) > 1), self.sections)
        index = number if number < 0 else number - 1
        return outermost[index:][:1] if -len(outermost) <= index < len(outermost) else []

    def subtree_rows(self, node: Node) -> Rows:
        """Return the rows of a section with everything inside it, of a whole document, or of any other node alone."""
        row = self.start + node.position
        if node.kind != SECTION:
            return np.arange(row, self.end if row == self.start else row + 1)
        after = slice(node.position + 1, None)
        outside = (self._parent[after] < row) & (self._kind[after] != KINDS.index(PAGE))
        length = int(np.argmax(outside)) if outside.any() else len(outside)
        return np.arange(row, row + 1 + length)

    def evidence_rows(self, rows: Rows) -> Rows:
        """Return the rows among ``rows`` that serve as evidence: passages, and tables as a whole."""
        kinds = self._kind[rows - self.start]
        evidence: Rows = rows[(kinds == KINDS.index(PASSAGE)) | (kinds == KINDS.index(TABLE))]
        return evidence

    def rows_on_page(self, number: int) -> Rows:
        """Return the rows of the passages and tables that start on a page, and of tables that continue there."""
        rows = np.flatnonzero(self._page == number) + self.start
        continued = [self.start + node.position for node in self.tables_on(number)]
        return np.array(sorted({*self.evidence_rows(rows).tolist(), *continued}), dtype=np.int64)


def parse_table_label(caption: str) -> str:
    """Return the label of a caption ("Table IV: Dues" -> "4"), "" for a caption without one."""
    match = _TABLE_LABEL.match(caption)
    return normalise_label(match["label"]) if match else ""


def normalise_label(label: str) -> str:
    """Return the form in which labels are compared: lower case, Roman numerals as digits, "2-3" as "2.3"."""
    folded = label.casefold().strip(" .").replace("-", ".")
    number = parse_roman(folded)
    return re.sub(r"^([a-z])\.?(?=\d)", r"\1", str(number) if number else folded)


def heading_terms(name: str) -> list[str]:
    """Return the terms of a heading or caption in order, without its label and function words."""
    rest = name
    if match := _TABLE_LABEL.match(name):
        rest = name[match.end() :]
    elif match := _SECTION_LABEL.match(name):
        word = (match["word"] or "").casefold()
        # "Apollo 11 landing" is no numbered heading; "Room 3: Losses", "Part II The vessel" and "3.2 Data" are.
        plain = not word and match["label"][:1].isdigit()
        if plain or word in LABEL_WORDS or name[match.end() : match.end() + 1] in {".", ":", ")"}:
            rest = name[match.end() :]
    return [term for term in index_terms(rest) if not is_stop_term(term)] or index_terms(name)


#: Words for documents as such: one names a document only if the document's name has it, or if it is its file type.
_GENERIC = frozenset(
    term
    for word in (
        "document doc file pdf paper report article text page book booklet contract agreement filing manual "
        "spreadsheet workbook excel csv word docx html website presentation whole entire full complete "
        "attached uploaded main short brief detail detailed content contents copy version please txt md xlsx htm"
    ).split()
    for term in index_terms(word)
)
_TYPES = {
    "pdf": ("pdf",),
    "spreadsheet": ("spreadsheet", "excel", "csv"),
    "workbook": ("spreadsheet", "excel"),
    "excel": ("spreadsheet", "excel"),
    "csv": ("csv",),
    "docx": ("wordprocessing", "msword"),
    "html": ("html",),
    "website": ("html",),
    "markdown": ("markdown",),
}
_TYPE_TERMS = {term: kinds for word, kinds in _TYPES.items() for term in index_terms(word)}


@dataclass(frozen=True, slots=True)
class TitleMatch:
    """A document whose title or file name shares ``words`` with a text.

    ``weight`` is the weight of these words, ``share`` their share of the title's or the file name's weight.
    """

    document: Document
    weight: float
    share: float
    words: frozenset[str]


class DocumentTitles:
    """The titles and file names of documents, with a weight for each word: the fewer documents bear it, the more."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._terms = [title_and_file_terms(document) for document in documents]
        self._documents_with: dict[str, list[int]] = {}
        for number, (title, file) in enumerate(self._terms):
            for term in title | file:
                self._documents_with.setdefault(term, []).append(number)
        self._weights = {
            term: math.log(1 + len(documents) / len(numbers)) * (0.25 if term in _GENERIC else 1.0)
            for term, numbers in self._documents_with.items()
        }

    def __contains__(self, term: str) -> bool:
        """Return whether a term occurs in any title or file name."""
        return term in self._weights

    def match(self, text: str) -> list[TitleMatch]:
        """Return the documents that share a word with ``text``, best first.

        A word for a file type ("the spreadsheet") counts for the documents of that type.
        """
        terms = name_terms(text)
        media_types = [kinds for term, kinds in _TYPE_TERMS.items() if term in terms]
        matches = []
        sharing = {number for term in terms for number in self._documents_with.get(term, ())}
        for number in range(len(self._documents)) if media_types else sharing:
            document, (title, file) = self._documents[number], self._terms[number]
            common = terms & (title | file)
            weight = self._weight(common)
            if any(kind in document.media_type for kinds in media_types for kind in kinds):
                weight += 0.25
            if weight > 0:
                shares = (self._weight(common & own) / self._weight(own) for own in (title, file) if own)
                matches.append(TitleMatch(document, weight, max(shares, default=0.0), common))
        return sorted(matches, key=lambda match: (-round(match.weight, 9), match.document.key))

    def choose(self, text: str, share: float = 0.0) -> list[Document]:
        """Return the documents that ``text`` names: the best match, its equals, and those named by other words.

        Generic words alone ("the report") name the documents that bear them. ``share`` is the least share of a
        document's own name that must be in the text.
        """
        terms = name_terms(text)
        matches = [
            match for match in self.match(text) if match.share >= share or len(match.words - _GENERIC) > 1
        ]
        chosen: list[Document] = []
        while matches:
            best = matches[0]
            if chosen and not best.words - _GENERIC:
                break
            equals = [match for match in matches if math.isclose(match.weight, best.weight)]
            chosen += [match.document for match in equals]
            terms -= frozenset().union(*(match.words for match in equals))
            # "the harbour report and the lease": the rest of the words may name another document.
            matches = [
                match
                for match in self.match(" ".join(terms))
                if match.document not in chosen and match.share >= 0.5
            ]
        return chosen

    def match_all_words(self, text: str) -> list[Document]:
        """Return the documents whose names contain every word of ``text`` that is not generic, best first.

        "Summarise the lease" is about the document only if nothing else is mentioned.
        """
        specific = name_terms(text) - _GENERIC
        return [match.document for match in self.match(text) if specific <= match.words]

    def _weight(self, terms: frozenset[str]) -> float:
        return sum(self._weights[term] for term in terms)


def is_only_generic(text: str) -> bool:
    """Return whether ``text`` speaks of documents without naming one ("the whole document")."""
    terms = name_terms(text)
    return bool(terms) and terms <= _GENERIC


def mentions_document(text: str) -> bool:
    """Return whether ``text`` calls something a document ("the Smith agreement")."""
    return not name_terms(text).isdisjoint(_GENERIC)


def name_terms(text: str) -> frozenset[str]:
    """Return the terms of ``text`` that can name something, with those of the file names in it."""
    return frozenset(ordered_name_terms(text)) | frozenset(ordered_name_terms(split_file_name(text)))


def ordered_name_terms(text: str) -> list[str]:
    """Return the terms of ``text`` in order, without function words; "10-K" is one word, as in file names."""
    joined = re.sub(r"\b(\d+)-([A-Za-z])\b", r"\1\2", text)
    return [term for term in index_terms(joined) if not is_stop_term(term)]


def split_file_name(name: str) -> str:
    """Return a file name as words: split at ``_``, at capitals, and between words and numbers.

    >>> split_file_name("FerryReport2021_final")
    'Ferry Report 2021 final'
    """
    spaced = re.sub(r"(?:_|(?<=[a-z])-(?=[a-z])|(?<=[a-z])-(?=\d))+", " ", name)
    return re.sub(r"(?<=[a-z])(?=[A-Z\d])|(?<=\d{4})(?=[A-Za-z])", " ", spaced)


def title_and_file_terms(document: Document) -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms of a document's title, and those of its file name."""
    stem = re.sub(r"\.\w{1,5}$", "", document.name)
    return frozenset(ordered_name_terms(document.title)), frozenset(ordered_name_terms(split_file_name(stem)))


#: Where a question names no document, it is answered from at most this many ...
MAX_DOCUMENTS = 5
#: ... of at most this many that are searched.
MAX_CANDIDATES = 40


@dataclass(frozen=True, slots=True)
class Reference:
    """A structure that a question names: the key of its document, its kind, the id of its node, and the question's
    words for it."""

    document: str
    kind: str
    node: str
    words: str


class ReferenceResolver:
    """Resolves the phrases of one question within a scope."""

    def __init__(self, snapshot: Snapshot, question: str, scope: Scope) -> None:
        self._snapshot = snapshot
        self._question = question
        keys = scope.documents
        self._scope = Scope(keys)
        documents = snapshot.documents()
        self._documents = [document for document in documents if keys is None or document.key in keys]
        self._titles = (
            DocumentTitles(self._documents)
            if keys is not None
            else snapshot.memoize("graph/names", lambda: DocumentTitles(documents), documents_only=True)
        )

    def resolve(self, phrase: Phrase, named: Sequence[Document]) -> list[Reference]:
        """Return the nodes that ``phrase`` names in the documents ``named`` by the question.

        Where the question names none, every document in scope is searched, the best match first.
        """
        if phrase.kind == DOCUMENT:
            ids = [f"{document.key}:0" for document in self._whole_documents(phrase)]
            return [self._reference(phrase, node) for node in self._snapshot.nodes(self._snapshot.rows(ids))]
        references: list[Reference] = []
        matching_documents = 0
        for document in named or self._candidates(phrase):
            nodes = self._nodes(phrase, Outline(self._snapshot, document), bool(named))
            references += [self._reference(phrase, node) for node in nodes]
            matching_documents += bool(nodes)
            if not named and matching_documents == MAX_DOCUMENTS:
                break
        return references

    def named_documents(self, phrases: Sequence[Phrase]) -> list[list[Document] | None]:
        """Return for each phrase the documents that the question names for it.

        They are the documents named by the words around the phrase. Where these name none, as in "page 2 and table 1
        of the lease" or "compare table 1 of the lease with page 2", they are those of the phrase that it is joined
        to, or of the one before it; else those named anywhere in the question. None stands for a phrase about
        something that is not in the knowledge base.
        """
        parts = [phrase for phrase in phrases if phrase.kind != DOCUMENT]
        own = {phrase: self._documents_around(phrase, parts) for phrase in parts}
        anywhere = self._titles.choose(self._question, share=0.5)
        foreign = {phrase for phrase, documents in own.items() if documents is None}
        return [
            None if phrase in foreign else own.get(phrase) or self._documents_beside(phrase, own) or anywhere
            for phrase in phrases
        ]

    def _documents_beside(
        self, phrase: Phrase, own: Mapping[Phrase, list[Document] | None]
    ) -> list[Document]:
        """Return the documents of the phrase that this one is joined to, else of the nearest one before or after."""
        others = [other for other, documents in own.items() if documents]
        after = sorted(
            (other for other in others if other.start >= phrase.end), key=lambda other: other.start
        )
        before = sorted(
            (other for other in others if other.end <= phrase.start), key=lambda other: -other.end
        )
        joined = bool(after) and _JOINED.fullmatch(self._question[phrase.end : after[0].start])
        nearest = [*after[:1], *before[:1]] if joined else [*before[:1], *after[:1]]
        return (own[nearest[0]] or []) if nearest else []

    def _reference(self, phrase: Phrase, node: Node) -> Reference:
        words = phrase.words or " ".join(self._question[phrase.start : phrase.end].split())
        return Reference(node.document, node.kind, node.id, words)

    def _documents_around(self, phrase: Phrase, parts: Sequence[Phrase]) -> list[Document] | None:
        """Return the documents that the words around a phrase name; the other ``parts`` delimit these words.

        None for a page, table or section of something that is not in the knowledge base.
        """
        if phrase.document:
            return self._titles.choose(phrase.document)
        start = max((part.end for part in parts if part.end <= phrase.start), default=0)
        end = min((part.start for part in parts if part.start >= phrase.end), default=None)
        if phrase.name and not phrase.at_end:
            owner = _OF_NAMED.match(phrase.name)
        else:
            owner = _OF.match(self._question[phrase.end : end])
        words = _BESIDES.split(owner["what"])[0] if owner else ""
        if words and self._is_foreign(words) and owner and owner["of"]:
            return None
        documents = self._titles.choose(words) if words and not self._is_foreign(words) else []
        return documents or self._titles.choose(self._question[start : phrase.start], share=0.5)

    def _is_foreign(self, words: str) -> bool:
        """Return whether the owner of a page ("the surveyors' chart") is nothing in this knowledge base.

        It may be something in it if it is called a document ("the Smith agreement"), or if at least half of its words
        occur in titles, headings or captions.
        """
        terms = name_terms(words)
        hashes = np.array([hash_term(term) for term in terms], dtype=np.uint64)
        in_headings = self._snapshot.postings("title").document_frequency(hashes) > 0
        in_titles = [term in self._titles for term in terms]
        return bool(terms) and not mentions_document(words) and bool((in_headings | in_titles).mean() < 0.5)

    def _whole_documents(self, phrase: Phrase) -> list[Document]:
        """Return the documents of "summarise the lease and the handbook"; none where something else is mentioned."""
        if phrase.document:
            return self._titles.choose(phrase.document)[:MAX_DOCUMENTS]
        pieces = [piece for piece in _SEVERAL.split(phrase.name) if ordered_name_terms(piece)]
        matches = [self._titles.match_all_words(piece) for piece in pieces]
        if matches and all(matches):
            return list(dict.fromkeys(document for match in matches for document in match[:MAX_DOCUMENTS]))
        return (
            self._rank_documents()[:MAX_DOCUMENTS]
            if is_only_generic(phrase.name) and not any(matches)
            else []
        )

    def _candidates(self, phrase: Phrase) -> list[Document]:
        """Return the documents that may contain the structure, where none is named: best match of text first."""
        if phrase.kind == PAGE:
            return [document for document in self._rank_documents() if document.pages][:MAX_CANDIDATES]
        if phrase.name:
            rows = self._rows_with(anchor_words(phrase), phrase.kind)
        elif phrase.kind == SECTION:
            rows = self._rows_with([phrase.label] if phrase.label else [], phrase.kind)
        else:
            rows = np.flatnonzero(self._snapshot.mask(self._scope, [TABLE]))
        document_rows = set(self._snapshot.column("document")[rows].tolist())
        return [
            document
            for document in self._rank_documents()
            if self._snapshot.document_rows(document.key)[0] in document_rows
        ][:MAX_CANDIDATES]

    def _rows_with(self, words: Sequence[str], kind: str) -> Rows:
        """Return the rows of sections, or of tables and their rows, with one of ``words`` in name or header."""
        kinds, fields = (
            ([SECTION], ["title"]) if kind == SECTION else ([TABLE, ROW, SECTION], ["title", "text"])
        )
        hashes = {hash_term(term) for word in words for term in (word, *index_terms(word))}
        rows = [self._snapshot.postings(field).rows_with(number)[0] for field in fields for number in hashes]
        distinct = np.unique(np.concatenate(rows)) if rows else np.empty(0, dtype=np.int64)
        return distinct[self._snapshot.mask(self._scope, kinds)[distinct]]

    def _rank_documents(self) -> list[Document]:
        """Return the documents in scope, those with the question's rarer words first."""
        if len(self._documents) < 2:
            return self._documents
        postings, column = self._snapshot.postings("text"), self._snapshot.column("document")
        weights: defaultdict[int, float] = defaultdict(float)
        for term in set(query_terms(self._question)):
            document_rows = np.unique(column[postings.rows_with(hash_term(term))[0]]).tolist()
            for row in document_rows:
                weights[row] += math.log(1 + len(self._documents) / len(document_rows))

        def rank(document: Document) -> tuple[float, str]:
            return -round(weights[self._snapshot.document_rows(document.key)[0]], 9), document.key

        return sorted(self._documents, key=rank)

    def _nodes(self, phrase: Phrase, outline: Outline, named: bool) -> list[Node]:
        """Return the nodes of one document that a phrase names; ``named`` says whether the question names it."""
        if phrase.word == "part" and not named:
            return []  # "the conclusion" of what?
        if phrase.kind == PAGE:
            return outline.find_pages(phrase.number, phrase.label)
        if phrase.word == "sheet":
            return _find_sheets(phrase, outline)
        if phrase.kind == TABLE:
            return _find_tables(phrase, outline)
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


def _find_tables(phrase: Phrase, outline: Outline) -> list[Node]:
    tables = outline.tables_on(phrase.page)
    if phrase.name:
        return best_matches(phrase, tables)
    if phrase.label and (labelled := outline.tables_with_label(phrase.label, tables)):
        return labelled
    if phrase.number is not None:
        index = phrase.number if phrase.number < 0 else phrase.number - 1
        return tables[index:][:1] if -len(tables) <= index < len(tables) else []
    return [] if phrase.label else tables


def _find_sheets(phrase: Phrase, outline: Outline) -> list[Node]:
    if "sheet" not in outline.document.media_type and "excel" not in outline.document.media_type:
        return []
    sheets = [node for node in outline.sections if node.level == 1]
    if phrase.number is not None:
        return sheets[phrase.number - 1 :][:1] if phrase.number > 0 else sheets[phrase.number :][:1]
    return best_matches(phrase, sheets)


def best_matches(phrase: Phrase, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes whose names match the words of a phrase best; none where no match is good enough."""
    scored = [(match_score(phrase, node), node) for node in nodes]
    best = max((score for score, _ in scored), default=0.0)
    return [node for score, node in scored if score > 0 and math.isclose(score, best)]


def match_score(phrase: Phrase, node: Node) -> float:
    """Return how well the words of a phrase match the name of a section or table, 0 for not at all.

    In "the hours and charges section" every word back to some article or preposition must be a word of the heading;
    in "the section on hours and charges" the first words must be. Together they must make up more than half of the
    heading, or of its part after a colon; for "section on", a third suffices. A table may also be named by its column
    headers and the heading above it, by two words, or by the first word of its caption.
    """
    return max(
        _match_name(phrase, name, node) for name in (node.name, *re.split(r"[:—]|\s[-–]\s", node.name)[1:])
    )


def _match_name(phrase: Phrase, name: str, node: Node) -> float:
    heading = heading_terms(name)
    allowed = {*heading, *_header_terms(node)} if node.kind == TABLE else {*heading}
    best = 0.0
    for words in possible_names(phrase):
        terms = ordered_name_terms(words)
        run = terms if phrase.at_end else list(itertools.takewhile(allowed.__contains__, terms))
        if not run or not allowed.issuperset(run):
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
    """Return the parts of a phrase's words that may be a name; at their end, each part that follows a boundary."""
    if not phrase.at_end:
        return [phrase.name]
    if quoted := re.search(r"[\"“'‘]([^\"”]+)[\"”'’]\s*$", phrase.name):
        return [quoted[1]]
    starts = [0, *(match.end() for match in _BEFORE_NAME.finditer(phrase.name))]
    return [phrase.name[start:] for start in starts]


def anchor_words(phrase: Phrase) -> list[str]:
    """Return the term of a named phrase that the name must contain: the one beside "section" or "table"."""
    terms = ordered_name_terms(phrase.name)
    return terms[-1:] if phrase.at_end else terms[:1]


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
