"""Which documents a question is about, by the names, years and form words it holds.

People say which document they mean: a company, a year, a kind of report. What they say stands in the file
name, in the title, on the first pages, and all over the document, while the passage that holds the answer may
not repeat it. :class:`DocumentNames` turns that into a score per document, which a search adds to the scores
of the document's passages.
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
#: A name that is longer, written as one word, is a phrase and not a name.
_LONGEST = 40


def name_terms(name: str) -> Counter[str]:
    """Return the index terms of a file name or title, whole words and their parts, and its initials.

    >>> sorted(name_terms("AmberTrading_2022Q4_10K.pdf"))
    ['10', '10k', '2022', '2022q4', '4', 'amber', 'ambertrad', 'at', 'k', 'q', 'q42022', 'trade']
    """
    found: Counter[str] = Counter()
    initials = ""
    for word in _SEPARATORS.split(_SUFFIX.sub("", name)):
        parts = _PARTS.findall(word)
        written = {word, *parts}
        if period := _YEAR_FIRST.match(word.casefold()):
            written.add(period[2] + period[1])
        found.update({term for text in written for term in index_terms(text)})
        for part in parts:
            if part.isalpha():
                initials += part[0].casefold()
            else:
                _add_initials(found, initials)
                initials = ""
    _add_initials(found, initials)
    return found


def _add_initials(found: Counter[str], initials: str) -> None:
    if 2 <= len(initials) <= 6:
        found[initials] += 1


def question_keys(question: str, known: Iterable[str] = ()) -> list[str]:
    """Return the terms by which a question may name a document, each once.

    They are the words of its capitalised or digit-initial spans, each span written as one word ("American
    Express" is ``americanexpress`` in a file name, "10-K" is ``10k``), and whatever else is in ``known``.
    """
    found: dict[str, None] = {}
    for name, _, _ in candidate_names(question):
        words = [term for term in index_terms(name) if not is_stop_term(term)]
        joined = name.replace(" ", "")
        if len(name.split()) > 1 and len(words) > 1 and len(joined) <= _LONGEST:
            words += index_terms(joined)
        found.update(dict.fromkeys(words))
    held = set(known)
    found.update(dict.fromkeys(term for term in query_terms(question) if term in held))
    return [term for term in found if len(term) > 1 or not term.isascii()]


@dataclass(frozen=True, slots=True)
class DocumentProfile:
    """What documents are called and how long they are. Documents are numbered in the order of their keys.

    ``number`` has one entry per row of the snapshot (-1 where no document is). ``front`` marks the rows of a
    document's first pages. ``called`` gives, for a term of a name, the documents (by number) and its share of
    the name. ``front_length`` and ``length`` count terms, and are at least 1; ``passages`` counts searched
    nodes.
    """

    document_of_row: NDArray[np.int64]
    is_front: NDArray[np.bool_]
    name_shares: dict[str, list[tuple[int, float]]]
    front_lengths: Floats
    lengths: Floats
    passages: Floats

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self.lengths)


#: The front of a document: this many pages, or this many passages and rows where it has no pages.
FRONT_PAGES, FRONT_PASSAGES = 2, 20


def document_profile(snapshot: Snapshot) -> DocumentProfile:
    """Return the profile of the documents; made once per generation."""
    made: DocumentProfile = snapshot.memoize("names/profile", lambda: _profile(snapshot), documents_only=True)
    return made


def _profile(snapshot: Snapshot) -> DocumentProfile:
    documents = snapshot.documents()
    rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
    lengths = np.zeros(snapshot.size)
    lengths[rows] = snapshot.postings("text").lengths(rows)
    page = snapshot.column("page")
    number = np.full(snapshot.size, -1, dtype=np.int64)
    front = np.zeros(snapshot.size, dtype=np.bool_)
    called: dict[str, list[tuple[int, float]]] = {}
    for n, document in enumerate(documents):
        start, end = snapshot.document_rows(document.key)
        number[start:end] = n
        held = rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)]
        front[held[page[held] <= FRONT_PAGES] if document.pages else held[:FRONT_PASSAGES]] = True
        for term, share in document_name_shares(document).items():
            called.setdefault(term, []).append((n, share))

    def per_document(kept: Rows, weights: Floats | None = None) -> Floats:
        return np.bincount(number[kept], weights, len(documents)).astype(np.float64)

    fronts = np.flatnonzero(front)
    front_length = per_document(fronts, lengths[fronts]) + 1
    return DocumentProfile(
        number,
        front,
        called,
        front_length,
        per_document(rows, lengths[rows]) + 1,
        per_document(rows),
    )


def document_name_shares(document: Document) -> dict[str, float]:
    """Return the terms of a document's file name and title, with their share of the one that has more of it.

    A file name that says nothing ("scan0017.pdf", a hash) so takes nothing away from a title.
    """
    found: dict[str, float] = {}
    for name in (document.name, document.title):
        counted = name_terms(name)
        for term, count in counted.items():
            found[term] = max(count / counted.total(), found.get(term, 0.0))
    return found


@dataclass(frozen=True, slots=True)
class DocumentNames:
    r"""How well documents match the names in a question.

    Each key of the question (:func:`question_keys`) gives a document, from 0 to 1,

    .. math:: \frac{c}{c + \kappa} \cdot \frac{p(t | d)}{\max_{d'} p(t | d')} \cdot
              \sqrt{\frac{\ln(1 + D / n)}{\ln(1 + D)}}

    where ``p`` mixes the term's share of the words of the document's name, of its first pages, and of its
    whole text (a mixture of language models over fields: Ogilvie and Callan, SIGIR 2003), and ``c`` says how
    much there is to go by: an occurrence in the text counts once, one on the first pages ``front`` times
    more, one in the name ``name`` times. ``n`` is the sum of the first two factors over all ``D`` documents,
    that is, how many the key fits: a company that one document is about tells more than one that half of
    them are about, and a year that all of them are about leaves their order as it is. A single mention in a
    long document gives little. Where nothing matches, and in a base of one document, every score is 0.
    """

    snapshot: Snapshot
    shares: tuple[float, float, float] = (0.3, 0.3, 0.4)
    name: float = 20.0
    front: float = 3.0
    kappa: float = 10.0

    def scores(self, question: str) -> Floats:
        """Return one score per document, in the order of :meth:`Snapshot.documents`; 0 or more."""
        known = document_profile(self.snapshot)
        found = np.zeros(known.documents)
        if known.documents > 1:
            for key in question_keys(question, known.name_shares):
                found += self._key(key, known)
        return found

    def _key(self, key: str, known: DocumentProfile) -> Floats:
        rows, counts = self.snapshot.postings("text").rows_with(hash_term(key))
        fronts = known.is_front[rows]
        in_name = np.zeros(known.documents)
        for n, part in known.name_shares.get(key, ()):
            in_name[n] = part
        in_front = np.bincount(known.document_of_row[rows[fronts]], counts[fronts], known.documents)
        in_text = np.bincount(known.document_of_row[rows], counts, known.documents)
        of_name, of_front, of_text = self.shares
        share = of_name * in_name
        share += of_front * in_front / known.front_lengths + of_text * in_text / known.lengths
        best = share.max(initial=0.0)
        if not best:
            return np.zeros(known.documents)
        seen = self.name * (in_name > 0) + self.front * in_front + in_text
        likeness = seen / (seen + self.kappa) * share / best
        telling: Floats = likeness * np.sqrt(
            np.log1p(known.documents / likeness.sum()) / np.log1p(known.documents)
        )
        return telling

    def document_probabilities(self, scores: Floats, allowed: Mask) -> Floats:
        """Return the probability that each document is meant: ``passages * D ** score``, normalised.

        Documents without an allowed row get 0. Without any match each is as probable as it is long.
        """
        known = document_profile(self.snapshot)
        rows = np.flatnonzero(allowed)
        passages = np.bincount(known.document_of_row[rows], minlength=known.documents)
        weights = passages * float(known.documents) ** (scores - scores.max(initial=0.0))
        probabilities: Floats = weights / (weights.sum() or 1.0)
        return probabilities


def spread_to_rows(scores: Floats, snapshot: Snapshot) -> Floats:
    """Return a score per row from one per document; 0 for rows without a document."""
    number = document_profile(snapshot).document_of_row
    found: Floats = np.append(scores, 0.0)[number]
    return found
