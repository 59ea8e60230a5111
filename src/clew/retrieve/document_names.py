"""Find the documents that a question is about, by the names, years and kinds of report that it mentions.

People say which document they mean: a company, a year, a kind of report. Those words stand in the file name, in the
title, on the first pages and all over the document, but the passage with the answer may not repeat them.
:class:`DocumentNames` turns them into a score per document, which a search adds to the scores of the document's
passages.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import candidate_names, hash_term, index_terms, is_stop_term, query_terms
from clew.core.types import RETRIEVED_KINDS, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Mask, Rows
    from clew.core.protocols import Snapshot
    from clew.core.types import Document

_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,4}$")
_SEPARATORS = re.compile(r"[\W_]+")
# AnnualReport2022 is Annual, Report, 2022; MGM stays whole.
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_YEAR_FIRST = re.compile(r"^((?:19|20)\d\d)(q[1-4]|h[12])$")
#: A name with more characters, written as one word, is a phrase and not a name.
_MAX_JOINED = 40


def name_terms(name: str) -> Counter[str]:
    """Return the index terms of a file name or title, whole words and their parts, and its initials.

    >>> sorted(name_terms("AmberTrading_2022Q4_10K.pdf"))
    ['10', '10k', '2022', '2022q4', '4', 'amber', 'ambertrad', 'at', 'k', 'q', 'q42022', 'trade']
    """
    counts: Counter[str] = Counter()
    initials = ""
    for word in _SEPARATORS.split(_SUFFIX.sub("", name)):
        parts = _PARTS.findall(word)
        spellings = {word, *parts}
        if period := _YEAR_FIRST.match(word.casefold()):
            spellings.add(period[2] + period[1])
        counts.update({term for text in spellings for term in index_terms(text)})
        for part in parts:
            if part.isalpha():
                initials += part[0].casefold()
            else:
                _count_initials(counts, initials)
                initials = ""
    _count_initials(counts, initials)
    return counts


def _count_initials(counts: Counter[str], initials: str) -> None:
    if 2 <= len(initials) <= 6:
        counts[initials] += 1


def question_keys(question: str, known: Iterable[str] = ()) -> list[str]:
    """Return the terms by which a question may name a document, each once.

    They are the words of its capitalised or digit-initial spans, each span written as one word ("American
    Express" is ``americanexpress`` in a file name, "10-K" is ``10k``), and its other words that are in ``known``.
    """
    keys: dict[str, None] = {}
    for name, _, _ in candidate_names(question):
        words = [term for term in index_terms(name) if not is_stop_term(term)]
        joined = name.replace(" ", "")
        if len(name.split()) > 1 and len(words) > 1 and len(joined) <= _MAX_JOINED:
            words += index_terms(joined)
        keys.update(dict.fromkeys(words))
    known = set(known)
    keys.update(dict.fromkeys(term for term in query_terms(question) if term in known))
    return [term for term in keys if len(term) > 1 or not term.isascii()]


@dataclass(frozen=True, slots=True)
class DocumentProfile:
    """The names and lengths of all documents, numbered in the order of their keys.

    ``document_of_row`` has the number of each row's document (-1 for a row without one), and ``is_front`` marks the
    rows of a document's first pages. ``name_shares`` gives, for a term of a name, the documents with it and its share
    of the name. ``front_lengths`` and ``lengths`` count terms and are at least 1; ``passages`` counts searched nodes.
    """

    document_of_row: NDArray[np.int64]
    is_front: NDArray[np.bool_]
    name_shares: dict[str, list[tuple[int, float]]]
    front_lengths: Floats
    lengths: Floats
    passages: Floats

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self.lengths)


#: The front of a document: this many pages, or this many passages and rows where it has no pages.
FRONT_PAGES, FRONT_PASSAGES = 2, 20


def document_profile(snapshot: Snapshot) -> DocumentProfile:
    """Return the profile of the documents; computed once per generation."""
    profile: DocumentProfile = snapshot.memoize(
        "names/profile", lambda: _profile_documents(snapshot), documents_only=True
    )
    return profile


def _profile_documents(snapshot: Snapshot) -> DocumentProfile:
    documents = snapshot.documents()
    rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
    lengths = np.zeros(snapshot.size)
    lengths[rows] = snapshot.postings("text").lengths(rows)
    page = snapshot.column("page")
    document_of_row = np.full(snapshot.size, -1, dtype=np.int64)
    is_front = np.zeros(snapshot.size, dtype=np.bool_)
    name_shares: dict[str, list[tuple[int, float]]] = {}
    for number, document in enumerate(documents):
        start, end = snapshot.document_rows(document.key)
        document_of_row[start:end] = number
        own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)]
        is_front[own[page[own] <= FRONT_PAGES] if document.pages else own[:FRONT_PASSAGES]] = True
        for term, share in document_name_shares(document).items():
            name_shares.setdefault(term, []).append((number, share))

    def sum_by_document(counted: Rows, weights: Floats | None = None) -> Floats:
        return np.bincount(document_of_row[counted], weights, len(documents)).astype(np.float64)

    front_rows = np.flatnonzero(is_front)
    return DocumentProfile(
        document_of_row,
        is_front,
        name_shares,
        front_lengths=sum_by_document(front_rows, lengths[front_rows]) + 1,
        lengths=sum_by_document(rows, lengths[rows]) + 1,
        passages=sum_by_document(rows),
    )


def document_name_shares(document: Document) -> dict[str, float]:
    """Return the terms of a document's file name and title, each with its share of the file name or of the title,
    whichever is larger.

    So a file name that says nothing ("scan0017.pdf", a hash) does not weaken a title.
    """
    shares: dict[str, float] = {}
    for name in (document.name, document.title):
        counts = name_terms(name)
        for term, count in counts.items():
            shares[term] = max(count / counts.total(), shares.get(term, 0.0))
    return shares


@dataclass(frozen=True, slots=True)
class DocumentNames:
    r"""Scores how well documents match the names in a question.

    A document's score is a sum over the keys of the question (:func:`question_keys`), each adding from 0 to 1,

    .. math:: \frac{c}{c + \kappa} \cdot \frac{p(t | d)}{\max_{d'} p(t | d')} \cdot
              \sqrt{\frac{\ln(1 + D / n)}{\ln(1 + D)}}

    where ``p`` mixes the term's shares of the words of the document's name, of its first pages, and of its whole
    text by ``shares`` (a mixture of language models over fields: Ogilvie and Callan, SIGIR 2003). ``c`` is the amount
    of evidence: an occurrence in the text counts once, one on the first pages ``front`` times more, one in the name
    ``name`` times. ``n`` is the sum of the first two factors over all ``D`` documents, that is, how many documents
    the key fits: a company that one document is about tells more than one that half of them are about, and a year
    that all of them are about leaves their order as it is. A single mention in a long document adds little. Where
    nothing matches, and in a knowledge base of one document, every score is 0.
    """

    snapshot: Snapshot
    shares: tuple[float, float, float] = (0.3, 0.3, 0.4)
    name: float = 20.0
    front: float = 3.0
    kappa: float = 10.0

    def scores(self, question: str) -> Floats:
        """Return one score per document, in the order of :meth:`Snapshot.documents`; 0 or more."""
        profile = document_profile(self.snapshot)
        scores = np.zeros(profile.documents)
        if profile.documents > 1:
            for key in question_keys(question, profile.name_shares):
                scores += self._score_key(key, profile)
        return scores

    def _score_key(self, key: str, profile: DocumentProfile) -> Floats:
        rows, counts = self.snapshot.postings("text").rows_with(hash_term(key))
        is_front = profile.is_front[rows]
        in_name = np.zeros(profile.documents)
        for number, name_share in profile.name_shares.get(key, ()):
            in_name[number] = name_share
        in_front = np.bincount(profile.document_of_row[rows[is_front]], counts[is_front], profile.documents)
        in_text = np.bincount(profile.document_of_row[rows], counts, profile.documents)
        name_weight, front_weight, text_weight = self.shares
        share = name_weight * in_name
        share += front_weight * in_front / profile.front_lengths + text_weight * in_text / profile.lengths
        best = share.max(initial=0.0)
        if not best:
            return np.zeros(profile.documents)
        evidence = self.name * (in_name > 0) + self.front * in_front + in_text
        fit = evidence / (evidence + self.kappa) * share / best
        scores: Floats = fit * np.sqrt(np.log1p(profile.documents / fit.sum()) / np.log1p(profile.documents))
        return scores

    def document_probabilities(self, scores: Floats, allowed: Mask) -> Floats:
        """Return the probability that the question is about each document: ``passages * D ** score``, normalised.

        Documents without an allowed row get 0. Where nothing matches, a document is as probable as it is long.
        """
        profile = document_profile(self.snapshot)
        rows = np.flatnonzero(allowed)
        passages = np.bincount(profile.document_of_row[rows], minlength=profile.documents)
        weights = passages * float(profile.documents) ** (scores - scores.max(initial=0.0))
        probabilities: Floats = weights / (weights.sum() or 1.0)
        return probabilities


def spread_to_rows(scores: Floats, snapshot: Snapshot) -> Floats:
    """Return a score per row from one per document; 0 for rows without a document."""
    row_scores: Floats = np.append(scores, 0.0)[document_profile(snapshot).document_of_row]
    return row_scores
