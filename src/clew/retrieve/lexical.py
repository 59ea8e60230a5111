"""BM25 and TF-IDF over the postings of a snapshot: exact, in float64, with live statistics.

Both are sums over the terms of a query, ``sum_t weight(t) * gain(tf(t, d), d)``, divided for TF-IDF by the
length of the vectors. Two ways to compute them: one term after the other into an array over all nodes (a
search), or only for given nodes (a step of a graph walk); :class:`Sum` does both.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import hash_term, query_terms
from clew.core.types import RETRIEVED_KINDS
from clew.retrieve.ranking import as_hits, best_rows, positive_rows

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Hashes, Mask, Rows
    from clew.core.protocols import Postings, Snapshot
    from clew.core.types import Hit, Question

if TYPE_CHECKING:
    Counts = np.ndarray[tuple[int], np.dtype[np.int64]]
    Gain = Callable[[Rows, Counts], Floats]


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The terms of a query: their hashes, ascending, and how often each occurs in it."""

    hashes: Hashes
    counts: Floats

    @classmethod
    def from_text(cls, query: str) -> QueryTerms:
        """Return the terms of ``query`` without function words (:func:`clew.core.text.query_terms`)."""
        counted = sorted(Counter(map(hash_term, query_terms(query))).items())
        return cls(
            np.array([term for term, _ in counted], dtype=np.uint64),
            np.array([count for _, count in counted], dtype=np.float64),
        )


@dataclass(slots=True)
class LatestScores:
    """The scores of the latest query over all rows: a walk asks for those of one text again and again."""

    entry: tuple[str, Floats] | None = None

    def get(self, query: str) -> Floats | None:
        """Return the scores of ``query`` if it was the latest."""
        held = self.entry
        return held[1] if held is not None and held[0] == query else None

    def put(self, query: str, scores: Floats) -> Floats:
        """Remember and return ``scores``, read-only from now on."""
        scores.flags.writeable = False
        self.entry = (query, scores)
        return scores


@dataclass(frozen=True, slots=True)
class BM25:
    r"""Okapi BM25 (Robertson and Zaragoza, 2009, section 3.4), with the idf that Lucene uses.

    .. math:: \sum_{t \in q} qtf(t) \cdot \ln\left(1 + \frac{N - df(t) + 0.5}{df(t) + 0.5}\right) \cdot
              \frac{tf(t, d) \, (k_1 + 1)}{tf(t, d) + k_1 (1 - b + b \, |d| / \overline{|d|})}

    ``k1`` bounds what repetition of a term adds, ``b`` how much a long node is discounted. The idf is never
    negative, also for a term that most nodes contain.
    """

    snapshot: Snapshot
    k1: float = 1.2
    b: float = 0.75
    field: str = "text"
    _latest: LatestScores = dataclasses.field(
        default_factory=LatestScores, init=False, repr=False, compare=False
    )

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best nodes that share a term with the question, best first."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        rows, scores = self._best(question.text, k, allowed)
        return as_hits(self.snapshot, rows, scores)

    def nearest(self, query: str, k: int, allowed: Mask) -> Rows:
        """Return at most ``k`` allowed rows that share a term with ``query``, best first."""
        return self._best(query, k, allowed)[0]

    def all_scores(self, query: str) -> Floats:
        """Return the score of every row of the snapshot, 0 where no term is shared; not rounded."""
        known = self._latest.get(query)
        return known if known is not None else self._latest.put(query, self._sum(query).for_all_rows())

    def scores(self, query: str, rows: Rows) -> Floats:
        """Return the score of each of ``rows``; not rounded. Their order and repetitions are kept."""
        known = self._latest.get(query)
        if known is not None:
            return known[rows]
        wanted = self._sum(query)
        return wanted.for_rows(rows) if wanted.is_cheap_for(rows) else self.all_scores(query)[rows]

    def _sum(self, query: str) -> TermSum:
        postings, terms = self.snapshot.postings(self.field), QueryTerms.from_text(query)
        weights = terms.counts * lucene_idf(postings, terms.hashes) * (self.k1 + 1)
        return TermSum(postings, terms.hashes, weights, self._gain(postings), self.snapshot.size)

    def _best(self, query: str, k: int, allowed: Mask) -> tuple[Rows, Floats]:
        scores = self.all_scores(query)
        rows = positive_rows(scores, allowed)
        return best_rows(self.snapshot, rows, scores[rows], k)

    def _gain(self, postings: Postings) -> Gain:
        lengths = row_lengths(self.snapshot, self.field)
        flat, slope = self.k1 * (1 - self.b), self.k1 * self.b / (postings.average_length or 1.0)
        return lambda rows, counts: counts / (counts + flat + slope * lengths[rows])


@dataclass(frozen=True, slots=True)
class TfIdf:
    r"""Cosine of TF-IDF vectors with logarithmic counts (Manning, Raghavan and Schütze, 2008, section 6.4).

    .. math:: w(t, d) = (1 + \ln tf(t, d)) \cdot \left(\ln\frac{1 + N}{1 + df(t)} + 1\right), \qquad
              \cos(q, d) = \frac{\sum_t w(t, q) \, w(t, d)}{\|w(\cdot, q)\| \, \|w(\cdot, d)\|}

    The smoothed idf is the one that the usual vectorisers compute; without the smoothing every weight in a
    base of one passage would be 0. A query term that no node contains counts in the query's length, so that
    a perfect match is 1 and nothing else is. The lengths of all nodes are computed once per generation.
    """

    snapshot: Snapshot
    field: str = "text"
    _latest: LatestScores = dataclasses.field(
        default_factory=LatestScores, init=False, repr=False, compare=False
    )

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best nodes that share a term with the question, best first."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        rows, scores = self._best(question.text, k, allowed)
        return as_hits(self.snapshot, rows, scores)

    def nearest(self, query: str, k: int, allowed: Mask) -> Rows:
        """Return at most ``k`` allowed rows that share a term with ``query``, best first."""
        return self._best(query, k, allowed)[0]

    def all_scores(self, query: str) -> Floats:
        """Return the cosine with every row of the snapshot, 0 where no term is shared; not rounded."""
        known = self._latest.get(query)
        if known is not None:
            return known
        return self._latest.put(query, self._sum(query).for_all_rows() / self._norms())

    def scores(self, query: str, rows: Rows) -> Floats:
        """Return the cosine with each of ``rows``; not rounded. Their order and repetitions are kept."""
        known = self._latest.get(query)
        if known is not None:
            return known[rows]
        wanted = self._sum(query)
        if wanted.is_cheap_for(rows):
            return wanted.for_rows(rows) / self._norms()[rows]
        return self.all_scores(query)[rows]

    def _sum(self, query: str) -> TermSum:
        postings, terms = self.snapshot.postings(self.field), QueryTerms.from_text(query)
        weights = self._weights(postings, terms)
        return TermSum(postings, terms.hashes, weights, log_term_counts, self.snapshot.size)

    def _best(self, query: str, k: int, allowed: Mask) -> tuple[Rows, Floats]:
        scores = self.all_scores(query)
        rows = positive_rows(scores, allowed)
        return best_rows(self.snapshot, rows, scores[rows], k)

    def _weights(self, postings: Postings, terms: QueryTerms) -> Floats:
        """Return what a row's ``1 + ln tf`` is multiplied with: both idfs and the query's share."""
        idf = smooth_idf(postings, terms.hashes)
        weights = (1 + np.log(terms.counts)) * idf
        return weights / (np.sqrt(weights @ weights) or 1.0) * idf

    def _norms(self) -> Floats:
        def make() -> Floats:
            return tfidf_norms(self.snapshot, self.field)

        norms: Floats = self.snapshot.memoize(f"lexical/norms/{self.field}", make, documents_only=True)
        return norms


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


#: How many rows are looked at together; bounds memory, not results.
_BLOCK = 1 << 14


def tfidf_norms(snapshot: Snapshot, field: str) -> Floats:
    """Return the length of the TF-IDF vector of every row; 1 for a row without terms."""
    postings = snapshot.postings(field)
    vocabulary, frequency = postings.vocabulary()
    idf = np.log((1 + postings.node_count) / (1 + frequency)) + 1
    norms = np.ones(snapshot.size)
    rows = np.flatnonzero(row_lengths(snapshot, field))
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        starts, terms, counts = postings.term_matrix(block)
        squares = ((1 + np.log(counts)) * idf[np.searchsorted(vocabulary, terms)]) ** 2
        norms[block] = np.sqrt(np.add.reduceat(squares, starts[:-1]))
    return norms


@dataclass(frozen=True, slots=True)
class TermSum:
    """``sum_t weight(t) * gain(rows, counts)`` over the terms of a query, for all ``size`` rows or for some.

    Some rows are looked up in the direction that reads less: a few words against many rows in each word's
    list of holders, a long text (a question with the passages found so far) against few rows in the rows' own
    terms. Costs are counted in comparisons; a call of numpy costs as much as some two thousand.
    """

    postings: Postings
    terms: Hashes
    weights: Floats
    gain: Gain
    size: int

    def for_all_rows(self) -> Floats:
        """Return the sum for every row, one term at a time."""
        found = np.zeros(self.size)
        for term, weight in zip(self.terms.tolist(), self.weights.tolist(), strict=True):
            rows, counts = self.postings.rows_with(term)
            found[rows] += weight * self.gain(rows, counts)
        return found

    def is_cheap_for(self, rows: Rows) -> bool:
        """Return whether :meth:`at` is cheaper for ``rows`` than :meth:`everywhere`."""
        all_holders = int(self.postings.document_frequency(self.terms).sum())
        everywhere = 2 * all_holders + self.size / 2 + 2_000 * len(self.terms)
        return min(self._cost_by_holders(rows), self._cost_by_rows(rows)) < everywhere

    def for_rows(self, rows: Rows) -> Floats:
        """Return the sum for ``rows``; they may repeat, in any order."""
        distinct, back = np.unique(rows, return_inverse=True)
        if not len(distinct) or not len(self.terms):
            return np.zeros(len(rows))
        if self._cost_by_rows(distinct) < self._cost_by_holders(distinct):
            return self._by_rows(distinct)[back]
        return self._by_holders(distinct)[back]

    def _cost_by_holders(self, rows: Rows) -> float:
        frequency = self.postings.document_frequency(self.terms)
        smaller, larger = np.minimum(frequency, len(rows)), np.maximum(frequency, len(rows))
        return float(np.sum(smaller * np.log2(larger + 1) + 4_000))

    def _cost_by_rows(self, rows: Rows) -> float:
        return float(self.postings.lengths(rows).sum() * (np.log2(len(self.terms) + 1) + 4))

    def _by_holders(self, rows: Rows) -> Floats:
        found = np.zeros(len(rows))
        for term, weight in zip(self.terms.tolist(), self.weights.tolist(), strict=True):
            holders, counts = self.postings.rows_with(term)
            at, among = intersect(rows, holders)
            found[at] += weight * self.gain(holders[among], counts[among])
        return found

    def _by_rows(self, rows: Rows) -> Floats:
        starts, held, counts = self.postings.term_matrix(rows)
        place = np.searchsorted(self.terms, held)
        place[place == len(self.terms)] = 0
        kept = np.flatnonzero(self.terms[place] == held)
        at = np.repeat(np.arange(len(rows)), np.diff(starts))[kept]
        gains = self.weights[place[kept]] * self.gain(rows[at], counts[kept])
        return np.bincount(at, gains, len(rows)).astype(np.float64, copy=False)


def intersect(left: Rows, right: Rows) -> tuple[Rows, Rows]:
    """Return where two ascending arrays without repetitions agree: indices into each."""
    if len(left) > len(right):
        there, here = intersect(right, left)
        return here, there
    if not len(right):
        return left[:0], right[:0]
    place = np.searchsorted(right, left)
    place[place == len(right)] = 0
    here = np.flatnonzero(right[place] == left)
    return here, place[here]
