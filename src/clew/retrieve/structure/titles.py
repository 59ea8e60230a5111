"""Documents by the words of a question: titles, file names, brands, initials and kinds of document."""

from __future__ import annotations

import bisect
import itertools
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
