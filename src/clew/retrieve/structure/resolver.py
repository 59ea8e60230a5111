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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import distinct, union
from clew.core.text import hash_term, index_terms, is_stop_term, query_terms
from clew.core.types import DOCUMENT, PAGE, ROW, SECTION, TABLE, Document, Node, Scope
from clew.retrieve.structure.grammar import FILE_NAME, Selector
from clew.retrieve.structure.outline import Outline, heading_terms

if TYPE_CHECKING:
    from clew.core.arrays import Rows
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
    """Return the terms by which a document is called beside those of its title and file name: its kind, and the
    initials of its words ("jj" for JOHNSON_JOHNSON)."""
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
        """Return whether ``words`` can be a name of a document that :meth:`choose` took for it: at least half of
        what is not generic occurs in its names, or nothing else is said than that it is a document."""
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

    def match_all_words(self, text: str) -> list[Document]:
        """Return the documents whose names contain every word of ``text`` that is not generic, best first.

        "Summarise the lease" is about the document only if nothing else is mentioned.
        """
        if exact := self.match_file_names(text):
            return exact
        specific = self.terms(text) - _GENERIC
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


def vagueness(selector: Selector) -> int:
    """Return how vague a selector is: a vaguer reading of the same words gives way to a more definite one.

    "The table" gives way to the table's name. "Summarise the harbour report" means the document, whatever its first
    heading is, unless page 2 of it is named. "Show the risk factors of it" means no document.
    """
    return 1 if selector.is_bare else 2 if selector.kind == DOCUMENT else 3 if selector.word == "part" else 0


class ReferenceResolver:
    """Resolves the selectors of one question within a scope."""

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

    def resolve_all(self, selectors: Sequence[Selector]) -> tuple[Reference, ...]:
        """Return the nodes that selectors name, in the order of the question, each once."""
        if not selectors:
            return ()
        resolved: list[tuple[Selector, list[Reference]]] = []
        documents = dict(zip(selectors, self.named_documents(selectors), strict=True))
        for selector in sorted(selectors, key=vagueness):
            if vagueness(selector) and any(
                selector.start < other.end and other.start < selector.end for other, _ in resolved
            ):
                continue
            within = documents[selector]
            references = [] if within is None else self.resolve(selector, within)
            if references:
                resolved.append((selector, references))
        resolved.sort(key=lambda pair: pair[0].start)
        by_node = {
            reference.node: reference for _, references in reversed(resolved) for reference in references
        }
        order = dict.fromkeys(reference.node for _, references in resolved for reference in references)
        return tuple(by_node[node] for node in order)

    def nodes(self, selector: Selector, outline: Outline) -> list[Node]:
        """Return the nodes of one document, which the question names, that a selector names."""
        return self._nodes(selector, outline, named=True)

    def choose_documents(self, words: str) -> list[Document]:
        """Return the documents that ``words`` name; none where more than half of the words say something else."""
        documents = [] if self.is_absent(words) else self._titles.choose(words)
        if not documents or self._titles.match_file_names(words):
            return documents[:MAX_DOCUMENTS]
        return documents[:MAX_DOCUMENTS] if self._titles.is_name(words, documents[0]) else []

    def named_anywhere(self) -> list[Document]:
        """Return the documents that the question names in any place."""
        return self._titles.choose(self._question, share=0.5)[:MAX_DOCUMENTS]

    def rank_documents(self) -> list[Document]:
        """Return the documents in scope, those with the question's rarer words first."""
        return self._rank_documents()

    def resolve(self, selector: Selector, named: Sequence[Document]) -> list[Reference]:
        """Return the nodes that ``selector`` names in the documents ``named`` by the question.

        Where the question names none, every document in scope is searched, the best match first.
        """
        if selector.kind == DOCUMENT:
            ids = [f"{document.key}:0" for document in self._whole_documents(selector)]
            return [
                self._reference(selector, node) for node in self._snapshot.nodes(self._snapshot.rows(ids))
            ]
        references: list[Reference] = []
        matching_documents = 0
        for document in named or self._candidates(selector):
            nodes = self._nodes(selector, Outline(self._snapshot, document), bool(named))
            references += [self._reference(selector, node) for node in nodes]
            matching_documents += bool(nodes)
            if not named and matching_documents == MAX_DOCUMENTS:
                break
        return references

    def named_documents(self, selectors: Sequence[Selector]) -> list[list[Document] | None]:
        """Return for each selector the documents that the question names for it.

        They are the documents named by the words around the selector. Where these name none, as in "page 2 and
        table 1 of the lease" or "compare table 1 of the lease with page 2", they are those of the selector
        that it is joined to, or of the one before it; else those named anywhere in the question. None stands for
        a selector about something that is not in the knowledge base.
        """
        parts = [selector for selector in selectors if selector.kind != DOCUMENT]
        own = {selector: self._documents_around(selector, parts) for selector in parts}
        anywhere = self._titles.choose(self._question, share=0.5)
        foreign = {selector for selector, documents in own.items() if documents is None}
        return [
            None
            if selector in foreign
            else own.get(selector) or self._documents_beside(selector, own) or anywhere
            for selector in selectors
        ]

    def _documents_beside(
        self, selector: Selector, own: Mapping[Selector, list[Document] | None]
    ) -> list[Document]:
        """Return the documents of the selector that this one is joined to, else of the nearest one."""
        others = [other for other, documents in own.items() if documents]
        after = sorted(
            (other for other in others if other.start >= selector.end), key=lambda other: other.start
        )
        before = sorted(
            (other for other in others if other.end <= selector.start), key=lambda other: -other.end
        )
        joined = bool(after) and _JOINED.fullmatch(self._question[selector.end : after[0].start])
        nearest = [*after[:1], *before[:1]] if joined else [*before[:1], *after[:1]]
        return (own[nearest[0]] or []) if nearest else []

    def _reference(self, selector: Selector, node: Node) -> Reference:
        words = selector.words or " ".join(self._question[selector.start : selector.end].split())
        return Reference(node.document, node.kind, node.id, words)

    def _documents_around(self, selector: Selector, parts: Sequence[Selector]) -> list[Document] | None:
        """Return the documents that the words around a selector name; the other ``parts`` delimit these words.

        None for a page, table or section of something that is not in the knowledge base.
        """
        words = selector.document
        if selector.words:
            return self._titles.choose(words)
        foreign = bool(words) and self._is_foreign(words)
        if foreign and selector.owned:
            return None
        documents = self._titles.choose(words) if words and not foreign else []
        start = max((part.end for part in parts if part.end <= selector.start), default=0)
        return documents or self._titles.choose(self._question[start : selector.start], share=0.5)

    def is_absent(self, words: str) -> bool:
        """Return whether ``words`` name a document that is not here: "NIKE_2023_10K.pdf", or "the Ulta report" where
        no title, file name, heading or text has the name Ulta."""
        if self._titles.lacks_file(words):
            return True
        return mentions_document(words) and any(
            not is_only_generic(name) and name_terms(name) and not self._occurs(name)
            for name in re.findall(r"\b[A-Z][\w&]+", words)
        )

    def _occurs(self, name: str) -> bool:
        """Return whether a word of a name occurs in any title, file name, heading or text."""
        terms = self._titles.terms(name) | set(index_terms(name))
        hashes = np.array([hash_term(term) for term in terms], dtype=np.uint64)
        fields = [self._snapshot.postings(field).document_frequency(hashes) for field in ("title", "text")]
        return any(term in self._titles for term in terms) or bool(np.any(fields))

    def _is_foreign(self, words: str) -> bool:
        """Return whether the owner of a page ("the surveyors' chart") is nothing in this knowledge base.

        It may be something in it if it is called a document ("the Smith agreement"), or if at least half of its words
        occur in titles, headings or captions.
        """
        terms = self._titles.terms(words)
        hashes = np.array([hash_term(term) for term in terms], dtype=np.uint64)
        in_headings = self._snapshot.postings("title").document_frequency(hashes) > 0
        in_titles = [term in self._titles for term in terms]
        return bool(terms) and not mentions_document(words) and bool((in_headings | in_titles).mean() < 0.5)

    def _whole_documents(self, selector: Selector) -> list[Document]:
        """Return the documents of "summarise the lease and the handbook"; none where something else is mentioned."""
        if selector.document:
            return self._titles.choose(selector.document)[:MAX_DOCUMENTS]
        pieces = [piece for piece in _SEVERAL.split(selector.name) if ordered_name_terms(piece)]
        matches = [self._titles.match_all_words(piece) for piece in pieces]
        if matches and all(matches):
            return list(dict.fromkeys(document for match in matches for document in match[:MAX_DOCUMENTS]))
        return (
            self._rank_documents()[:MAX_DOCUMENTS]
            if is_only_generic(selector.name) and not any(matches)
            else []
        )

    def _candidates(self, selector: Selector) -> list[Document]:
        """Return the documents that may contain the structure, where none is named: best match of text first."""
        if selector.kind == PAGE:
            return [document for document in self._rank_documents() if document.pages][:MAX_CANDIDATES]
        if selector.name:
            rows = self._rows_with(anchor_words(selector), selector.kind)
        elif selector.kind == SECTION:
            rows = self._rows_with([selector.label] if selector.label else [], selector.kind)
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
        postings = [self._snapshot.postings(field) for field in fields]
        for each in postings:
            each.prefetch(np.array(sorted(hashes), dtype=np.uint64))
        rows = [each.rows_with(number)[0] for each in postings for number in hashes]
        having = union(rows)
        return having[self._snapshot.mask(self._scope, kinds)[having]]

    def _rank_documents(self) -> list[Document]:
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

    def _nodes(self, selector: Selector, outline: Outline, named: bool) -> list[Node]:
        """Return the nodes of one document that a selector names; ``named`` says whether the question names it."""
        if selector.anchor:
            return self._neighbours(selector, selector.anchor, outline, named)
        if selector.kind == ROW:
            return self._find_rows(selector, outline, named)
        if selector.kind == TABLE and selector.within and selector.within.kind == SECTION:
            inside = self._nodes(selector.within, outline, named)
            rows = {row for node in inside for row in outline.subtree_rows(node).tolist()}
            tables = [node for node in outline.tables if outline.start + node.position in rows]
            return _choose_tables(selector, tables, outline)
        if selector.word == "part" and not named:
            return []  # "the conclusion" of what?
        if selector.kind == PAGE:
            return outline.find_pages(selector.number, selector.label)
        if selector.word == "sheet":
            return _find_sheets(selector, outline)
        if selector.kind == TABLE:
            return _find_tables(selector, outline)
        if selector.name:
            return best_matches(selector, outline.sections)
        labelled = outline.sections_with_label(selector.word, selector.label) if selector.label else []
        # "section 3" of headings without numbers, or "the third section" of any.
        counted = (
            named
            and selector.word in {"section", "chapter"}
            and not (selector.label and outline.has_numbered_headings)
        )
        return labelled or (outline.nth_section(selector.number) if counted and selector.number else [])

    def _neighbours(self, selector: Selector, anchor: Selector, outline: Outline, named: bool) -> list[Node]:
        """Return the structure that stands after or before another one."""
        anchors = self._nodes(anchor, outline, named)
        if not anchors and anchor.name:
            anchors = self._nodes(replace(anchor, kind=TABLE), outline, named)
        if not anchors:
            return []
        first, last = anchors[0], anchors[-1]
        if selector.kind == PAGE:
            pages = [number for node in anchors for number in outline.pages_of(node)]
            if not pages:
                return []
            number = max(pages) + 1 if selector.relation == "after" else min(pages) - 1
            return outline.find_pages(number) if number > 0 else []
        if selector.kind == TABLE:
            place = selector.number or 1
            if last.kind == PAGE:
                page = last.page or 0
                after = [node for node in outline.tables if (node.page or 0) > page]
                before = [node for node in outline.tables if (node.page or 0) < page]
            else:
                after = [node for node in outline.tables if node.position > last.position]
                before = [node for node in outline.tables if node.position < first.position]
            if selector.relation == "after":
                return after[place - 1 :][:1] if place > 0 else after[place:][:1]
            return before[-1:] if place in {1, -1} else before[place - 1 :][:1]
        if selector.kind == SECTION and first.kind == SECTION:
            return outline.neighbour_section(first, selector.relation, selector.word)
        return []

    def _find_rows(self, selector: Selector, outline: Outline, named: bool) -> list[Node]:
        tables = self._nodes(selector.within, outline, named) if selector.within else outline.tables
        if selector.number is None or len(tables) != 1 or not named:
            return []
        rows = outline.rows_of_table(tables[0])
        index = selector.number if selector.number < 0 else selector.number - 1
        inside = -len(rows) <= index < len(rows)
        return self._snapshot.nodes(rows[index:][:1]) if inside else []


def _find_tables(selector: Selector, outline: Outline) -> list[Node]:
    page = None
    if selector.within is not None and selector.within.kind == PAGE:
        pages = outline.find_pages(selector.within.number, selector.within.label)
        if not pages:
            return []
        page = pages[0].page
    return _choose_tables(selector, outline.tables_on(page), outline)


def _choose_tables(selector: Selector, tables: list[Node], outline: Outline) -> list[Node]:
    if selector.name:
        return best_matches(selector, tables)
    if selector.label and (labelled := outline.tables_with_label(selector.label, tables)):
        return labelled
    if selector.number is not None:
        index = selector.number if selector.number < 0 else selector.number - 1
        return tables[index:][:1] if -len(tables) <= index < len(tables) else []
    return [] if selector.label else tables


def _find_sheets(selector: Selector, outline: Outline) -> list[Node]:
    sheets = outline.sheets
    if selector.number is not None:
        return sheets[selector.number - 1 :][:1] if selector.number > 0 else sheets[selector.number :][:1]
    return best_matches(selector, sheets)


def best_matches(selector: Selector, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes whose names match the words of a selector best; none where no match is good enough."""
    scored = [(match_score(selector, node), node) for node in nodes]
    best = max((score for score, _ in scored), default=0.0)
    return [node for score, node in scored if score > 0 and math.isclose(score, best)]


def match_score(selector: Selector, node: Node) -> float:
    """Return how well the words of a selector match the name of a section or table, 0 for not at all.

    In "the hours and charges section" every word back to some article or preposition must be a word of the heading;
    in "the section on hours and charges" the first words must be. Together they must make up more than half of the
    heading, or of its part after a colon; for "section on", a third suffices. A table may also be named by its column
    headers and the heading above it, by two words, or by the first word of its caption.
    """
    return max(
        _match_name(selector, name, node) for name in (node.name, *re.split(r"[:—]|\s[-–]\s", node.name)[1:])
    )


def _match_name(selector: Selector, name: str, node: Node) -> float:
    heading = heading_terms(name)
    allowed = {*heading, *ordered_name_terms(name)}
    if node.kind == TABLE:
        allowed |= _header_terms(node)
    best = 0.0
    for words in possible_names(selector):
        terms = ordered_name_terms(words)
        run = terms if selector.at_end else list(itertools.takewhile(allowed.__contains__, terms))
        if not run or not allowed.issuperset(run):
            continue
        share = len({*heading}.intersection(run)) / max(len({*heading}), 1)
        if selector.word in {"heading", "part"}:
            enough = share == 1
        elif node.kind == TABLE:
            enough = share >= 0.5 or len({*run}) >= 2 or run[:1] == heading[:1]
        else:
            enough = share > 0.5 or (share >= 1 / 3 and not selector.at_end and not selector.whole)
        best = max(best, len({*run}) + share if enough else 0.0)
    return best


def possible_names(selector: Selector) -> list[str]:
    """Return the parts of a selector's words that may be a name; at their end, each part that follows a boundary."""
    if not selector.at_end:
        return [selector.name]
    if quoted := re.search(r"[\"“'‘]([^\"”]+)[\"”'’]\s*$", selector.name):
        return [quoted[1]]
    starts = [0, *(match.end() for match in _BEFORE_NAME.finditer(selector.name))]
    return [selector.name[start:] for start in starts]


def anchor_words(selector: Selector) -> list[str]:
    """Return the term of a named selector that the name must contain: the one beside "section" or "table"."""
    terms = ordered_name_terms(selector.name)
    return terms[-1:] if selector.at_end else terms[:1]


def _header_terms(node: Node) -> frozenset[str]:
    rows = (line for line in node.text.splitlines() if line.startswith("|"))
    return frozenset(ordered_name_terms(f"{next(rows, '')} {' '.join(node.headings[-1:])}"))


_JOINED = re.compile(r"\s*(?:,|and|or|&|with|to|against|vs\.?)?\s*(?:the\s+|with\s+)*", re.IGNORECASE)
_SEVERAL = re.compile(r"\b(?:and|with|to|against|versus|vs\.?)\b|[,&]", re.IGNORECASE)
_BEFORE_NAME = re.compile(
    r"(?:^|\s)(?:the|an?|this|that|its|their|our|my|your|which|what|whose|each|every|any|in|on|of|at|from|to|by|"
    r"does|do|did|is|are|summari[sz]e|compare|explain|describe|show|read|and|with)(?=\s)|['’]s(?=\s)|,",
    re.IGNORECASE,
)
