"""BM25 and TF-IDF over the postings of a snapshot: exact, in float64, with the statistics of the live nodes.

Both are sums over the terms of a query, ``sum_t weight(t) * gain(tf(t, d), d)``; TF-IDF divides them by the length
of the node's vector. :class:`TermSum` computes such a sum in two ways: for all nodes, one term after the other (a
search), or for a few given nodes (a step of a graph walk).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from clew.core.arrays import Floats, Hashes, Mask, Rows, distinct, find_positions, sorted_unique
from clew.core.component import INTERNAL, component
from clew.core.languages import ENGLISH, document_languages
from clew.core.protocols import Postings, Snapshot
from clew.core.text import hash_term, query_forms, query_terms
from clew.core.types import RETRIEVED_KINDS, Hit, Question
from clew.retrieve.ranking import as_hits, best_rows, positive_rows

Counts = np.ndarray[tuple[int], np.dtype[np.int64]]
#: Turns the counts of a term in some rows into gains: ``gain(rows, counts)``.
Gain = Callable[[Rows, Counts], Floats]


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The terms of a query: their hashes, ascending, and how often each occurs in it."""

    hashes: Hashes
    counts: Floats

    @classmethod
    def from_text(cls, query: str) -> QueryTerms:
        """Return the terms of ``query`` without function words (:func:`clew.core.text.query_terms`)."""
        return cls._count(query_terms(query))

    @classmethod
    def for_documents(cls, query: str, snapshot: Snapshot, field: str = "text") -> QueryTerms:
        """Return the terms of ``query`` in the languages of the documents: of the forms of a word those that occur in
        ``field``, or the first where none does."""
        languages = document_languages(snapshot)
        if languages == (ENGLISH,):
            return cls.from_text(query)
        forms = query_forms(query, languages)
        hashes = np.array([hash_term(term) for terms in forms for term in terms], dtype=np.uint64)
        occurs = iter((snapshot.postings(field).document_frequency(hashes) > 0).tolist())
        chosen: list[str] = []
        for terms in forms:
            present = [term for term in terms if next(occurs)]
            chosen += present or terms[:1]
        return cls._count(chosen)

    @classmethod
    def _count(cls, terms: Sequence[str]) -> QueryTerms:
        counts = sorted(Counter(map(hash_term, terms)).items())
        return cls(
            np.array([term for term, _ in counts], dtype=np.uint64),
            np.array([count for _, count in counts], dtype=np.float64),
        )


@dataclass(slots=True)
class LatestScores:
    """Remembers the scores of the latest query over all rows: a graph walk asks for the same query at every hop."""

    entry: tuple[str, Floats] | None = None

    def get(self, query: str) -> Floats | None:
        """Return the scores of ``query`` if it was the latest, else None."""
        entry = self.entry  # read once: another thread may replace it
        return entry[1] if entry is not None and entry[0] == query else None

    def put(self, query: str, scores: Floats) -> Floats:
        """Remember and return ``scores``, which become read-only."""
        scores.flags.writeable = False
        self.entry = (query, scores)
        return scores


class _LexicalSearch:
    """What BM25 and TF-IDF share: they differ in the sum over the query's terms."""

    __slots__ = ()

    snapshot: Snapshot
    _latest: LatestScores

    def _term_sum(self, query: str) -> TermSum:
        raise NotImplementedError  # abstract: BM25 and TF-IDF define it

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best nodes that share a term with the question, best first."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        rows, scores = self._best_rows(question.text, k, allowed)
        return as_hits(self.snapshot, rows, scores)

    def nearest(self, query: str, k: int, allowed: Mask) -> Rows:
        """Return at most ``k`` allowed rows that share a term with ``query``, best first."""
        return self._best_rows(query, k, allowed)[0]

    def all_scores(self, query: str) -> Floats:
        """Return the score of every row of the snapshot, 0 where no term is shared; not rounded."""
        scores = self._latest.get(query)
        return self._latest.put(query, self._term_sum(query).for_all_rows()) if scores is None else scores

    def scores(self, query: str, rows: Rows) -> Floats:
        """Return the score of each of ``rows``, in their order, repetitions included; not rounded."""
        scores = self._latest.get(query)
        if scores is None:
            term_sum = self._term_sum(query)
            if term_sum.is_cheap_for(rows):
                return term_sum.for_rows(rows)
            scores = self.all_scores(query)
        return scores[rows]

    def _best_rows(self, query: str, k: int, allowed: Mask) -> tuple[Rows, Floats]:
        scores = self.all_scores(query)
        rows = positive_rows(scores, allowed)
        return best_rows(self.snapshot, rows, scores[rows], k)


@component("bm25", summary="Okapi BM25")
@dataclass(frozen=True, slots=True)
class BM25(_LexicalSearch):
    r"""Okapi BM25 (Robertson and Zaragoza, 2009, section 3.4), with the idf that Lucene uses.

    .. math:: \sum_{t \in q} qtf(t) \cdot \ln\left(1 + \frac{N - df(t) + 0.5}{df(t) + 0.5}\right) \cdot
              \frac{tf(t, d) \, (k_1 + 1)}{tf(t, d) + k_1 (1 - b + b \, |d| / \overline{|d|})}

    ``k1`` bounds what repetition of a term adds, and ``b`` says how much a long node is discounted. The idf is never
    negative, not even for a term that most nodes contain. ``field`` names the postings.
    """

    snapshot: Snapshot
    k1: float = 1.2
    b: float = 0.75
    field: Annotated[str, INTERNAL] = "text"
    _latest: LatestScores = dataclasses.field(
        default_factory=LatestScores, init=False, repr=False, compare=False
    )

    def _term_sum(self, query: str) -> TermSum:
        postings = self.snapshot.postings(self.field)
        terms = QueryTerms.for_documents(query, self.snapshot, self.field)
        weights = terms.counts * lucene_idf(postings, terms.hashes) * (self.k1 + 1)
        lengths = row_lengths(self.snapshot, self.field)
        flat, slope = self.k1 * (1 - self.b), self.k1 * self.b / (postings.average_length or 1.0)

        def gain(rows: Rows, counts: Counts) -> Floats:
            saturated: Floats = counts / (counts + flat + slope * lengths[rows])
            return saturated

        return TermSum(postings, terms.hashes, weights, gain, self.snapshot.size)


@component("tfidf", summary="TF-IDF cosine")
@dataclass(frozen=True, slots=True)
class TfIdf(_LexicalSearch):
    r"""Cosine of TF-IDF vectors with logarithmic counts (Manning, Raghavan and Schütze, 2008, section 6.4).

    .. math:: w(t, d) = (1 + \ln tf(t, d)) \cdot \left(\ln\frac{1 + N}{1 + df(t)} + 1\right), \qquad
              \cos(q, d) = \frac{\sum_t w(t, q) \, w(t, d)}{\|w(\cdot, q)\| \, \|w(\cdot, d)\|}

    The smoothed idf is the one that the usual vectorisers compute; without the smoothing every weight in a knowledge
    base of one passage would be 0. A query term that no node contains counts in the query's length, so that only a
    perfect match scores 1. The length of a node is computed when it is first needed, once per generation.
    """

    snapshot: Snapshot
    field: Annotated[str, INTERNAL] = "text"
    _latest: LatestScores = dataclasses.field(
        default_factory=LatestScores, init=False, repr=False, compare=False
    )

    def prefetch(self) -> None:
        """Say, once per generation, that the lengths of all nodes will be needed, where reading them is cheap."""

        def begin() -> None:
            lengths = row_lengths(self.snapshot, self.field)
            if lengths.sum() <= MAX_PREFETCHED_TERMS:
                self.snapshot.postings(self.field).prefetch(rows=np.flatnonzero(lengths))

        self.snapshot.memoize(f"lexical/prefetched/{self.field}", begin, documents_only=True)

    def _term_sum(self, query: str) -> TermSum:
        postings = self.snapshot.postings(self.field)
        terms = QueryTerms.for_documents(query, self.snapshot, self.field)
        # A row's ``1 + ln tf`` is multiplied by both idfs and by the query's ``1 + ln tf`` over the query's length.
        idf = smooth_idf(postings, terms.hashes)
        weights = (1 + np.log(terms.counts)) * idf
        weights = weights / (np.sqrt(weights @ weights) or 1.0) * idf
        norms: TfIdfNorms = self.snapshot.memoize(
            f"lexical/norms/{self.field}", lambda: TfIdfNorms(self.snapshot, self.field), documents_only=True
        )
        return TermSum(postings, terms.hashes, weights, log_term_counts, self.snapshot.size, norms)


def lucene_idf(postings: Postings, terms: Hashes) -> Floats:
    """Return ``ln(1 + (N - df + 0.5) / (df + 0.5))`` of each term."""
    frequency = postings.document_frequency(terms)
    idf: Floats = np.log1p((postings.node_count - frequency + 0.5) / (frequency + 0.5))
    return idf


def smooth_idf(postings: Postings, terms: Hashes) -> Floats:
    """Return ``ln((1 + N) / (1 + df)) + 1`` of each term."""
    idf: Floats = np.log((1 + postings.node_count) / (1 + postings.document_frequency(terms))) + 1
    return idf


def log_term_counts(rows: Rows, counts: Counts) -> Floats:
    """Return ``1 + ln tf``, whatever the row."""
    gains: Floats = 1 + np.log(counts)
    return gains


def row_lengths(snapshot: Snapshot, field: str) -> Floats:
    """Return the number of terms of every row, 0 where it has none; computed once per generation."""

    def make() -> Floats:
        rows = np.arange(snapshot.size, dtype=np.int64)
        return snapshot.postings(field).lengths(rows).astype(np.float64)

    lengths: Floats = snapshot.memoize(f"lexical/lengths/{field}", make, documents_only=True)
    return lengths


#: Terms that are fetched before the walk begins, in place of those of some passages at each hop: some 100 MB.
MAX_PREFETCHED_TERMS = 1 << 24
#: Rows whose terms are read at a time; bounds memory, not results.
_BLOCK = 1 << 14


class TfIdfNorms:
    """The lengths of the TF-IDF vectors of rows, each computed when it is first asked for.

    A walk compares a passage with a few hundred others; the terms of all passages are a third of a large base.
    """

    def __init__(self, snapshot: Snapshot, field: str) -> None:
        self._postings = snapshot.postings(field)
        # Of a row without terms the length is 1; nan: not computed yet.
        self._norms = np.where(row_lengths(snapshot, field) > 0, np.nan, 1.0)

    def of_rows(self, rows: Rows) -> Floats:
        """Return the length of each of ``rows``, which may repeat and come in any order."""
        norms = self._norms[rows]
        unknown = np.isnan(norms)
        if unknown.any():
            self._compute(sorted_unique(rows[unknown]))
            norms = self._norms[rows]
        return norms

    def prefetch(self, rows: Rows) -> None:
        """Begin to fetch what the lengths of ``rows`` need, without waiting for it."""
        self._postings.prefetch(rows=rows[np.isnan(self._norms[rows])])

    def of_all(self) -> Floats:
        """Return the length of every row, (size,)."""
        self._compute(np.flatnonzero(np.isnan(self._norms)))
        return self._norms

    def _compute(self, rows: Rows) -> None:
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            starts, terms, counts = self._postings.term_matrix(block)
            distinct_terms = distinct(terms)
            idf = smooth_idf(self._postings, distinct_terms)
            squares = ((1 + np.log(counts)) * idf[np.searchsorted(distinct_terms, terms)]) ** 2
            # Threads that meet here write the same numbers.
            self._norms[block] = np.sqrt(np.add.reduceat(squares, starts[:-1]))


@dataclass(frozen=True, slots=True)
class TermSum:
    """``sum_t weight(t) * gain(rows, counts)`` over the terms of a query, for all ``size`` rows or for some.

    With ``norms`` the sum of each row is divided by the row's norm.

    Some rows are looked up in the direction that reads less. A few terms against many rows: in each term's list of
    rows. A long text (a question with the passages retrieved so far) against few rows: in the rows' own terms. Costs
    are counted in comparisons; a call of numpy costs as much as about two thousand.
    """

    postings: Postings
    terms: Hashes
    weights: Floats
    gain: Gain
    size: int
    norms: TfIdfNorms | None = None

    def for_all_rows(self) -> Floats:
        """Return the sum for every row, (size,), one term at a time."""
        sums = np.zeros(self.size)
        if self.norms is not None:
            self.norms.prefetch(np.arange(self.size))
        self.postings.prefetch(self.terms)
        for term, weight in zip(self.terms.tolist(), self.weights.tolist(), strict=True):
            rows, counts = self.postings.rows_with(term)
            sums[rows] += weight * self.gain(rows, counts)
        return sums if self.norms is None else sums / self.norms.of_all()

    def is_cheap_for(self, rows: Rows) -> bool:
        """Return whether :meth:`for_rows` is cheaper for ``rows`` than :meth:`for_all_rows`."""
        posting_count = int(self.postings.document_frequency(self.terms).sum())
        cost_of_all = 2 * posting_count + self.size / 2 + 2_000 * len(self.terms)
        return min(self._cost_by_terms(rows), self._cost_by_rows(rows)) < cost_of_all

    def for_rows(self, rows: Rows) -> Floats:
        """Return the sum for each of ``rows``, which may repeat and come in any order."""
        unique, inverse = np.unique(rows, return_inverse=True)
        if not len(unique) or not len(self.terms):
            return np.zeros(len(rows))
        if self.norms is not None:
            self.norms.prefetch(unique)
        by_rows = self._cost_by_rows(unique) < self._cost_by_terms(unique)
        sums = (self._sum_by_rows(unique) if by_rows else self._sum_by_terms(unique))[inverse]
        return sums if self.norms is None else sums / self.norms.of_rows(rows)

    def _cost_by_terms(self, rows: Rows) -> float:
        frequency = self.postings.document_frequency(self.terms)
        smaller, larger = np.minimum(frequency, len(rows)), np.maximum(frequency, len(rows))
        return float(np.sum(smaller * np.log2(larger + 1) + 4_000))

    def _cost_by_rows(self, rows: Rows) -> float:
        return float(self.postings.lengths(rows).sum() * (np.log2(len(self.terms) + 1) + 4))

    def _sum_by_terms(self, rows: Rows) -> Floats:
        sums = np.zeros(len(rows))
        self.postings.prefetch(self.terms)
        for term, weight in zip(self.terms.tolist(), self.weights.tolist(), strict=True):
            rows_with_term, counts = self.postings.rows_with(term)
            places, postings = intersect(rows, rows_with_term)
            sums[places] += weight * self.gain(rows_with_term[postings], counts[postings])
        return sums

    def _sum_by_rows(self, rows: Rows) -> Floats:
        starts, row_terms, counts = self.postings.term_matrix(rows)
        term_index = find_positions(self.terms, row_terms)
        matches = np.flatnonzero(term_index >= 0)
        places = np.repeat(np.arange(len(rows)), np.diff(starts))[matches]
        gains = self.weights[term_index[matches]] * self.gain(rows[places], counts[matches])
        return np.bincount(places, gains, len(rows)).astype(np.float64, copy=False)


def intersect(left: Rows, right: Rows) -> tuple[Rows, Rows]:
    """Return where two ascending arrays without repetitions agree: indices into each."""
    if len(left) > len(right):
        in_right, in_left = intersect(right, left)
        return in_left, in_right
    place = find_positions(right, left)
    in_left = np.flatnonzero(place >= 0)
    return in_left, place[in_left]
