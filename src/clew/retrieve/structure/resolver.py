"""Resolve the selectors of a question to nodes of the knowledge base: documents, pages, tables, rows and sections.

Documents are known by the words of their titles and file names, brands, initials and kinds of document
(:class:`DocumentTitles`).
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import distinct
from clew.core.text import hash_term, index_terms, is_stop_term, normalise, query_terms
from clew.core.types import DOCUMENT, PAGE, ROW, SECTION, TABLE, Document, Node, Scope
from clew.retrieve.structure.outline import Outline, heading_terms, normalise_label
from clew.retrieve.structure.query import FIGURE, FILE_NAME, Selector

if TYPE_CHECKING:
    from clew.core.protocols import Snapshot

#: Words for documents as such: one names a document only if the document's name has it, or if it is its file type.
_GENERIC = frozenset(
    term
    for word in (
        "document doc file pdf paper report article text page book booklet contract agreement manual "
        "spreadsheet workbook excel csv word docx html website presentation whole entire full complete "
        "filing statement press annual quarterly current release earnings results attached uploaded "
        "main short brief detail detailed content contents copy version please txt md xlsx htm"
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


#: The start of a file name's word stands for the word from this many letters on, where as many more follow ...
MIN_BRAND = 3
#: ... in at most this many words.
MAX_BRANDS = 20
#: Words for a kind of document, by the words of file names and titles that say so.
_KINDS_OF_DOCUMENT = {
    "10k": "annual",
    "20f": "annual",
    "10q": "quarterly",
    "earnings": "release press earnings results",
    "er": "release press earnings results",
    "8k": "current",
}


def alias_terms(document: Document) -> frozenset[str]:
    """Return more terms that name a document: its kind, and the initials of its words ("jj" for JOHNSON_JOHNSON)."""
    stem = re.sub(r"\.\w{1,5}$", "", document.name)
    words = re.findall(r"[^\W\d_]+|\d+[A-Za-z]*", f"{split_file_name(stem)} {document.title}")
    kinds = " ".join(_KINDS_OF_DOCUMENT.get(word.casefold(), "") for word in words)
    initials = ""
    for word in re.findall(r"[^\W_]+", stem):
        if not word.isalpha():
            break
        initials += word[0].casefold()
    return frozenset(index_terms(kinds)) | ({initials} if len(initials) > 1 else frozenset())


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
    """The titles and file names of documents, with a weight for each word: the fewer documents bear it, the more.

    A document is also called by the start of a word of its file name ("Ulta" for ULTABEAUTY), by such a word in two
    parts ("American Express" for AMERICANEXPRESS), by initials ("J&J"), and by its kind ("release" for EARNINGS,
    "annual" for 10K).
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._terms = [title_and_file_terms(document) for document in documents]
        self._documents_with: dict[str, list[int]] = {}
        self._aliases = [alias_terms(document) for document in documents]
        for number, ((title, file), aliases) in enumerate(zip(self._terms, self._aliases, strict=True)):
            for term in title | file | aliases:
                self._documents_with.setdefault(term, []).append(number)
        self._sorted_terms = sorted(self._documents_with)
        self._weights = {
            term: math.log(1 + len(documents) / len(numbers)) * (0.25 if term in _GENERIC else 1.0)
            for term, numbers in self._documents_with.items()
        }

    def __contains__(self, term: str) -> bool:
        """Return whether a term occurs in any title or file name."""
        return term in self._weights

    def match(self, text: str) -> list[TitleMatch]:
        """Return the documents that share a word with ``text``, best first.

        A word for a file type ("the spreadsheet") counts for the documents of that type. Numbers alone, such as
        years, name nothing: only "the 2021 report" does.
        """
        terms = self.terms(text)
        media_types = [kinds for term, kinds in _TYPE_TERMS.items() if term in terms]
        matches = []
        sharing = {number for term in terms for number in self._documents_with.get(term, ())}
        for number in range(len(self._documents)) if media_types else sharing:
            document, (title, file) = self._documents[number], self._terms[number]
            if is_other_volume(text, f"{document.title}; {document.name}"):
                continue
            common = terms & (title | file | self._aliases[number])
            if common and all(term.isdigit() for term in common) and terms.isdisjoint(_GENERIC):
                continue
            weight = self._weight(common)
            if any(kind in document.media_type for kinds in media_types for kind in kinds):
                weight += 0.25
            if weight > 0:
                shares = (self._weight(common & own) / self._weight(own) for own in (title, file) if own)
                matches.append(TitleMatch(document, weight, max(shares, default=0.0), common))
        return sorted(matches, key=lambda match: (-round(match.weight, 9), match.document.key))

    def match_file_names(self, text: str) -> list[Document]:
        """Return the documents whose whole file names stand in ``text``, in its order."""
        folded = text.casefold()
        places = [
            (place.start(), document)
            for document in self._documents
            if "." in document.name
            and document.name.casefold() in folded
            and (place := re.search(rf"(?<![\w-]){re.escape(document.name.casefold())}(?![\w-])", folded))
        ]
        return [document for _, document in sorted(places, key=lambda pair: (pair[0], pair[1].key))]

    def terms(self, text: str) -> frozenset[str]:
        """Return the terms of ``text``, with the terms of names that its words abbreviate in their place."""
        terms = set(name_terms(text))
        words = re.findall(r"[^\W_]+", text.casefold())
        for first, second in itertools.pairwise(words):
            if (joined := "".join(index_terms(first + second))) in self._documents_with:
                terms -= {*index_terms(first), *index_terms(second)}
                terms.add(joined)
        for initials in re.findall(r"\b[^\W\d_](?:&[^\W\d_])+(?!\w)", text.casefold()):
            if (joined := initials.replace("&", "")) in self._documents_with:
                terms -= set(joined)
                terms.add(joined)
        for word in words:
            known = not self._documents_with.keys().isdisjoint(index_terms(word))
            if len(word) < MIN_BRAND or known or is_stop_term(word):
                continue
            place = bisect.bisect_left(self._sorted_terms, word)
            brands = {
                term
                for term in self._sorted_terms[place : place + MAX_BRANDS]
                if term.startswith(word) and len(term) >= len(word) + MIN_BRAND
            }
            if brands:
                terms = (terms - set(index_terms(word))) | brands
        return frozenset(terms)

    def choose(self, text: str, share: float = 0.0) -> list[Document]:
        """Return the documents that ``text`` names: the best match, its equals, and those named by other words.

        Generic words alone ("the report") name the documents that bear them. ``share`` is the least share of a
        document's own name that must be in the text.
        """
        if exact := self.match_file_names(text):
            return exact
        terms = self.terms(text)
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

    def is_name(self, words: str, document: Document) -> bool:
        """Return whether ``words`` may be a name of a document that :meth:`choose` found: at least half of its
        specific terms are in the document's names, or it has generic terms alone."""
        number = self._documents.index(document)
        specific = self.terms(words) - _GENERIC
        title, file = self._terms[number]
        own = specific & (title | file | self._aliases[number])
        return bool(own) and 2 * len(own) >= len(specific) if specific else True

    def lacks_file(self, words: str) -> bool:
        """Return whether ``words`` have the name of a file that is none of these documents.

        "NIKE_2023_10K.pdf" is none beside "AMCOR_2023_10K.pdf". Where the names of one have every word of it, numbers
        aside, that may be meant: "FerryReport2020.pdf" beside "FerryReport2021.pdf".
        """
        if self.match_file_names(words):
            return False
        for name in re.findall(FILE_NAME, words, re.IGNORECASE):
            stem = split_file_name(re.sub(r"\.\w{1,5}$", "", name))
            terms = {term for term in ordered_name_terms(stem) if term.isalpha() and term not in _GENERIC}
            if not any(terms <= match.words for match in self.match(stem)):
                return True
        return False

    def _weight(self, terms: frozenset[str]) -> float:
        return sum(self._weights[term] for term in terms)


def is_other_volume(text: str, names: str) -> bool:
    """Return whether a text gives a word of a document's names another number than they do: "Guide 5" beside
    "Guide 6: Fermented foods". Years are no such numbers.

    >>> is_other_volume("page 2 of Guide 5", "Guide 6: Fermented foods")
    True
    """
    own, asked = _numbered_words(names), _numbered_words(text)
    return any(word in own and not numbers & own[word] for word, numbers in asked.items())


def _numbered_words(text: str) -> dict[str, set[str]]:
    numbers: dict[str, set[str]] = {}
    for word, number in re.findall(r"([^\W\d_]{3,})\s+(\d{1,3})(?!\w)", text.casefold()):
        numbers.setdefault(word, set()).add(number)
    return numbers


def is_only_generic(text: str) -> bool:
    """Return whether ``text`` speaks of documents without naming one ("the whole document")."""
    terms = name_terms(text)
    return bool(terms) and terms <= _GENERIC


def mentions_document(text: str) -> bool:
    """Return whether ``text`` calls something a document ("the Smith agreement")."""
    return not name_terms(text).isdisjoint(_GENERIC)


def name_terms(text: str) -> frozenset[str]:
    """Return the terms of ``text`` that can be part of a name, and the terms of file names in it."""
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
    """A structure that a question names: the key of its document, its kind, the id of its node, and the words for
    it."""

    document: str
    kind: str
    node: str
    words: str


class ReferenceResolver:
    """Resolves selectors within a scope."""

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

    @property
    def documents(self) -> list[Document]:
        """The documents in scope."""
        return self._documents

    @property
    def scope(self) -> Scope:
        """The documents in scope, as a scope."""
        return self._scope

    @property
    def titles(self) -> DocumentTitles:
        """The titles and file names of the documents in scope."""
        return self._titles

    def resolve_all(self, selectors: Sequence[Selector]) -> tuple[Reference, ...]:
        """Return the nodes that selectors name, in their order, each once.

        Where neither a selector nor the question names a document, every one in scope is searched, the best match of
        the question's words first, up to :data:`MAX_DOCUMENTS` that have the structure.
        """
        references: dict[str, Reference] = {}
        for selector in selectors:
            for node in self._find(selector):
                reference = Reference(node.document, node.kind, node.id, str(selector))
                references.setdefault(node.id, reference)
        return tuple(references.values())

    def _find(self, selector: Selector) -> list[Node]:
        if selector.node:
            return self._snapshot.nodes(self._snapshot.rows([selector.node]))
        named = self._named_by(selector.document) if selector.document else self.named_anywhere()
        if selector.kind == DOCUMENT:
            ids = [f"{document.key}:0" for document in named]
            return self._snapshot.nodes(self._snapshot.rows(ids))
        nodes: list[Node] = []
        matching = 0
        for document in named or ([] if selector.document else self.rank_documents()[:MAX_CANDIDATES]):
            own = self.nodes(selector, Outline(self._snapshot, document))
            nodes += own
            matching += bool(own)
            if not named and matching == MAX_DOCUMENTS:
                break
        return nodes

    def _named_by(self, words: str) -> list[Document]:
        own = [document for document in self._documents if document.key == words]
        return own or ([] if self.is_absent(words) else self._titles.choose(words)[:MAX_DOCUMENTS])

    def choose_documents(self, words: str) -> list[Document]:
        """Return the documents that ``words`` name, or the one with that key; none where more than half of the words
        say something else."""
        if own := [document for document in self._documents if document.key == words]:
            return own
        documents = [] if self.is_absent(words) else self._titles.choose(words)
        if not documents or self._titles.match_file_names(words):
            return documents[:MAX_DOCUMENTS]
        return documents[:MAX_DOCUMENTS] if self._titles.is_name(words, documents[0]) else []

    def named_anywhere(self) -> list[Document]:
        """Return the documents that the question names in any place."""
        return self._titles.choose(self._question, share=0.5)[:MAX_DOCUMENTS]

    def is_absent(self, words: str) -> bool:
        """Return whether ``words`` name a document that is not here: "NIKE_2023_10K.pdf", or "the Ulta report" where
        no title, file name, heading or text has the name Ulta."""
        return bool(self.absent_names(words))

    def absent_names(self, words: str) -> list[str]:
        """Return the names in ``words`` that make it a document that is not here; none where it may be one."""
        if any(document.key == words for document in self._documents):
            return []
        if self._titles.lacks_file(words):
            return re.findall(FILE_NAME, words, re.IGNORECASE)
        if not mentions_document(words):
            return []
        return [
            name
            for name in re.findall(r"\b[A-Z][\w&]+", words)
            if not is_only_generic(name) and name_terms(name) and not self._occurs(name)
        ]

    def _occurs(self, name: str) -> bool:
        """Return whether a word of a name occurs in any title, file name, heading or text."""
        terms = self._titles.terms(name) | set(index_terms(name))
        hashes = np.array([hash_term(term) for term in terms], dtype=np.uint64)
        fields = [self._snapshot.postings(field).document_frequency(hashes) for field in ("title", "text")]
        return any(term in self._titles for term in terms) or bool(np.any(fields))

    def rank_documents(self) -> list[Document]:
        """Return the documents in scope, those with the question's rarer words first."""
        if len(self._documents) < 2:
            return self._documents
        postings, column = self._snapshot.postings("text"), self._snapshot.column("document")
        weights: defaultdict[int, float] = defaultdict(float)
        terms = {hash_term(term) for term in query_terms(self._question)}
        postings.prefetch(np.array(sorted(terms), dtype=np.uint64))
        for term in terms:
            document_rows = distinct(column[postings.rows_with(term)[0]]).tolist()
            for row in document_rows:
                weights[row] += math.log(1 + len(self._documents) / len(document_rows))

        def rank(document: Document) -> tuple[float, str]:
            return -round(weights[self._snapshot.document_rows(document.key)[0]], 9), document.key

        return sorted(self._documents, key=rank)

    def nodes(self, selector: Selector, outline: Outline) -> list[Node]:
        """Return the nodes of one document that a selector names."""
        if selector.node:
            return self._snapshot.nodes(self._snapshot.rows([selector.node]))
        if selector.anchor:
            return self._neighbours(selector, selector.anchor, outline)
        inside: list[Node] | None = None
        if selector.within is not None:
            inside = self.nodes(selector.within, outline)
            if not inside:
                return []
        if selector.kind == ROW:
            return self._find_rows(selector, outline.tables if inside is None else inside, outline)
        if selector.kind == PAGE:
            return outline.find_pages(selector.number, selector.label)
        if selector.kind in {TABLE, FIGURE}:
            return _choose_labelled(selector, outline.within(selector.kind, inside), outline)
        sections = outline.within(SECTION, inside)
        if selector.word == "sheet" and outline.sheets:
            sections = outline.sheets
        if selector.name:
            return best_matches(selector, sections)
        if selector.label and (labelled := outline.sections_with_label(selector.word, selector.label)):
            return labelled
        return outline.nth_section(selector.number, selector.word, bool(selector.label))

    def _neighbours(self, selector: Selector, anchor: Selector, outline: Outline) -> list[Node]:
        """Return the structure that stands after or before another one."""
        anchors = self.nodes(anchor, outline)
        if not anchors and anchor.name:
            anchors = self.nodes(replace(anchor, kind=TABLE), outline)
        return (
            outline.find_neighbour(selector.kind, anchors, selector.relation, selector.word)
            if anchors
            else []
        )

    def _find_rows(self, selector: Selector, tables: Sequence[Node], outline: Outline) -> list[Node]:
        if selector.name:
            name = normalise(selector.name)
            rows = [
                row for table in tables for own, row in outline.named_rows(table) if normalise(own) == name
            ]
            return self._snapshot.nodes(np.array(rows[:1], dtype=np.int64))
        if selector.number is None or len(tables) != 1:
            return []
        own = outline.rows_of_table(tables[0])
        index = selector.number if selector.number < 0 else selector.number - 1
        return self._snapshot.nodes(own[index:][:1]) if -len(own) <= index < len(own) else []


def _choose_labelled(selector: Selector, nodes: list[Node], outline: Outline) -> list[Node]:
    """Return the tables or figures among ``nodes`` by name, label or number; all of them where nothing is said.

    "Table 12" is counted only where no table of the document has a printed number.
    """
    if selector.name:
        return best_matches(selector, nodes)
    if selector.label:
        if labelled := [node for node in nodes if outline.label_of(node) == normalise_label(selector.label)]:
            return labelled
        if any(outline.label_of(node) for node in outline.within(selector.kind, None)):
            return []
    if selector.number is not None:
        index = selector.number if selector.number < 0 else selector.number - 1
        return nodes[index:][:1] if -len(nodes) <= index < len(nodes) else []
    return [] if selector.label else nodes


def best_matches(selector: Selector, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes whose names match the name of a selector best; none where no match is good enough."""
    scored = [(match_name(selector.name, node), node) for node in nodes]
    best = max((score for score, _ in scored), default=0.0)
    return [node for score, node in scored if score > 0 and math.isclose(score, best)]


def match_name(words: str, node: Node) -> float:
    """Return how well words match the name of a section or table, 0 for not at all.

    All words must be words of the name, or, of a table, of its column headers and the heading above it; they must
    make up more than half of the name, or of its part after a colon, for a table also two words will do.
    """
    terms = ordered_name_terms(words)
    best = 0.0
    for name in (node.name, *re.split(r"[:—]|\s[-–]\s", node.name)[1:]):
        heading = heading_terms(name)
        allowed = {*heading, *ordered_name_terms(name)}
        if node.kind == TABLE:
            allowed |= _header_terms(node)
        if not terms or not allowed.issuperset(terms):
            continue
        share = len({*heading}.intersection(terms)) / max(len({*heading}), 1)
        enough = share > 0.5 or (node.kind == TABLE and (share >= 0.5 or len({*terms}) >= 2))
        best = max(best, len({*terms}) + share if enough else 0.0)
    return best


def _header_terms(node: Node) -> frozenset[str]:
    rows = (line for line in node.text.splitlines() if line.startswith("|"))
    return frozenset(ordered_name_terms(f"{next(rows, '')} {' '.join(node.headings[-1:])}"))
