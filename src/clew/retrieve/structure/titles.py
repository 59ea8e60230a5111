"""Find the documents that a question names by words of their titles and file names."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.core.text import index_terms, is_stop_term
from clew.core.types import Document

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
