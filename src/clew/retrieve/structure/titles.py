"""Which documents a question names: by words of their titles and file names."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.core.text import index_terms, is_stop_term
from clew.core.types import Document

#: Words for a document as such: they name one only where it bears them itself, or where its type is meant.
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
    """A document that some words name, and how well.

    ``weight`` is that of the words found, ``share`` their share of its title or its file name.
    """

    document: Document
    weight: float
    share: float
    words: frozenset[str]


class DocumentTitles:
    """The names of some documents, weighed: a word that few of them bear says more than one that all do."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._words = [title_and_file_terms(document) for document in documents]
        self._bearing: dict[str, list[int]] = {}
        for number, (title, file) in enumerate(self._words):
            for word in title | file:
                self._bearing.setdefault(word, []).append(number)
        self._weights = {
            word: math.log(1 + len(documents) / len(bearing)) * (0.25 if word in _GENERIC else 1.0)
            for word, bearing in self._bearing.items()
        }

    def __contains__(self, word: str) -> bool:
        """Return whether a term is a word of any document's name."""
        return word in self._weights

    def match(self, text: str) -> list[TitleMatch]:
        """Return the documents that share a word with ``text``, best first.

        A word of a type ("the spreadsheet") speaks for the documents of that type.
        """
        asked = name_terms(text)
        wanted = [kinds for term, kinds in _TYPE_TERMS.items() if term in asked]
        found = []
        bearing = {number for word in asked for number in self._bearing.get(word, ())}
        for number in range(len(self._documents)) if wanted else bearing:
            document, (title, file) = self._documents[number], self._words[number]
            common = asked & (title | file)
            weight = self._weight(common)
            if any(kind in document.media_type for kinds in wanted for kind in kinds):
                weight += 0.25
            if weight > 0:
                shares = (self._weight(common & own) / self._weight(own) for own in (title, file) if own)
                found.append(TitleMatch(document, weight, max(shares, default=0.0), common))
        return sorted(found, key=lambda named: (-round(named.weight, 9), named.document.key))

    def choose(self, text: str, share: float = 0.0) -> list[Document]:
        """Return the documents that ``text`` names: the best, its equals, and those named by other words.

        Generic words alone ("the report") name the documents that bear them. ``share`` is the least share of
        a document's own name that must be there.
        """
        left = name_terms(text)
        named = [one for one in self.match(text) if one.share >= share or len(one.words - _GENERIC) > 1]
        chosen: list[Document] = []
        while named:
            best = named[0]
            if chosen and not best.words - _GENERIC:
                break
            equals = [one for one in named if math.isclose(one.weight, best.weight)]
            chosen += [one.document for one in equals]
            left -= frozenset().union(*(one.words for one in equals))
            # "the harbour report and the lease": what is left of the words may name another.
            named = [
                one for one in self.match(" ".join(left)) if one.document not in chosen and one.share >= 0.5
            ]
        return chosen

    def _weight(self, words: frozenset[str]) -> float:
        return sum(self._weights[word] for word in words)

    def match_all_words(self, text: str) -> list[Document]:
        """Return the documents whose names hold every word of ``text`` that is not generic, best first.

        For "summarise the lease", which is about the document only if nothing else is mentioned.
        """
        specific = name_terms(text) - _GENERIC
        return [one.document for one in self.match(text) if specific <= one.words]


def is_only_generic(text: str) -> bool:
    """Return whether ``text`` speaks of documents without naming one ("the whole document")."""
    asked = name_terms(text)
    return bool(asked) and asked <= _GENERIC


def mentions_document(text: str) -> bool:
    """Return whether ``text`` calls something a document ("the Smith agreement")."""
    return not name_terms(text).isdisjoint(_GENERIC)


def name_terms(text: str) -> frozenset[str]:
    """Return the terms of ``text`` that can name something, those of file names in it too."""
    return frozenset(ordered_name_terms(text)) | frozenset(ordered_name_terms(split_file_name(text)))


def ordered_name_terms(text: str) -> list[str]:
    """Return the terms of ``text`` in order, function words left out; "10-K" is one word, as in file names."""
    joined = re.sub(r"\b(\d+)-([A-Za-z])\b", r"\1\2", text)
    return [term for term in index_terms(joined) if not is_stop_term(term)]


def split_file_name(name: str) -> str:
    """Return a file name as words: cut at ``_``, at capitals and between words and numbers.

    >>> cut("FerryReport2021_final")
    'Ferry Report 2021 final'
    """
    spaced = re.sub(r"(?:_|(?<=[a-z])-(?=[a-z])|(?<=[a-z])-(?=\d))+", " ", name)
    return re.sub(r"(?<=[a-z])(?=[A-Z\d])|(?<=\d{4})(?=[A-Za-z])", " ", spaced)


def title_and_file_terms(document: Document) -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms of a document's title, and those of its file name."""
    stem = re.sub(r"\.\w{1,5}$", "", document.name)
    return frozenset(ordered_name_terms(document.title)), frozenset(ordered_name_terms(split_file_name(stem)))
