"""The default search: passages and table rows, each judged together with its page, its document and its meaning.

The first half of this file computes what surrounds a passage, the second half is the search.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import cosines
from clew.core.component import component
from clew.core.types import KINDS, RETRIEVED_KINDS, ROW
from clew.retrieve.coverage import CoverageSelector, SemanticGain
from clew.retrieve.document_names import DocumentNames, document_profile, spread_to_rows
from clew.retrieve.lexical import QueryTerms, intersect, row_lengths
from clew.retrieve.ranking import as_hits, best_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Mask, Rows, Vectors
    from clew.core.protocols import Encoder, Snapshot
    from clew.core.types import Hit, Question


@dataclass(frozen=True, slots=True)
class ContextUnits:
    """The page of every searched node, or its section in a document without pages.

    ``unit_of_row`` has one entry per row of the snapshot: the number of its unit (0 for rows without terms).
    ``lengths`` has the number of terms of each unit, and ``average_length`` is their mean.
    """

    unit_of_row: NDArray[np.int64]
    lengths: Floats
    average_length: float

    @property
    def count(self) -> int:
        """The number of units."""
        return len(self.lengths)


def context_units(snapshot: Snapshot) -> ContextUnits:
    """Return the units of a snapshot; computed once per generation."""
    units: ContextUnits = snapshot.memoize(
        "units/text", lambda: _find_context_units(snapshot), documents_only=True
    )
    return units


def _find_context_units(snapshot: Snapshot) -> ContextUnits:
    lengths = row_lengths(snapshot, "text")
    rows = np.flatnonzero(lengths)
    document, page = snapshot.column("document")[rows], snapshot.column("page")[rows]
    parent, kind = snapshot.column("parent"), snapshot.column("kind")[rows]
    section = parent[rows]
    in_table = (kind == KINDS.index(ROW)) & (section >= 0)
    section[in_table] = parent[section[in_table]]
    # A page is identified by its document and number, a section by its row.
    place = np.where(page > 0, page, -section - 1)
    order = np.lexsort((place, document))
    document, place = document[order], place[order]
    begins_unit = (document[1:] != document[:-1]) | (place[1:] != place[:-1])
    unit_of_row = np.zeros(snapshot.size, dtype=np.int64)
    unit_of_row[rows[order]] = np.cumsum(np.r_[False, begins_unit])[: len(rows)]
    unit_lengths = np.bincount(unit_of_row[rows], lengths[rows]).astype(np.float64)
    return ContextUnits(unit_of_row, unit_lengths, float(unit_lengths.mean()) if len(unit_lengths) else 1.0)


def mark_rows_below(snapshot: Snapshot, above: Rows) -> NDArray[np.bool_]:
    """Return which searched rows, (snapshot.size,), stand below one of the rows ``above`` (sections, tables,
    documents)."""
    ends = subtree_ends(snapshot)[above]
    change = np.bincount(above, minlength=snapshot.size + 1) - np.bincount(ends, minlength=snapshot.size + 1)
    below: NDArray[np.bool_] = (np.cumsum(change[:-1]) > 0) & (row_lengths(snapshot, "text") > 0)
    return below


def subtree_ends(snapshot: Snapshot) -> Rows:
    """Return for each row the end of its subtree: its descendants are the rows from ``row + 1`` up to there.

    Parsers number nodes in reading order, so the only other rows in that range are pages, which are not searched.
    Computed once per generation.
    """
    ends: Rows = snapshot.memoize(
        "units/ends", lambda: _find_subtree_ends(snapshot.column("parent")), documents_only=True
    )
    return ends


def _find_subtree_ends(parent: Rows) -> Rows:
    ends = np.arange(1, len(parent) + 1, dtype=np.int64)
    children = np.flatnonzero(parent >= 0)
    while True:
        before = ends.copy()
        np.maximum.at(ends, parent[children], ends[children])
        if np.array_equal(before, ends):
            return ends


@dataclass(frozen=True, slots=True)
class QuestionWord:
    """A word of the question, and how well rows and units match it.

    ``rows`` are the rows with the word, ascending, and ``gains`` say how well each matches, from 0 to 1;
    ``unit_gains`` say the same of every unit.
    """

    weight: float
    rows: Rows
    gains: Floats
    unit_gains: Floats


@dataclass(frozen=True, slots=True)
class WeighedQuestion:
    """A question with the weights that a search gives to its words and to documents.

    ``total`` is the sum of the words' weights: scores are divided by it. ``document_scores`` has a score per
    document, ``row_scores`` the score of every row of the snapshot by words, surroundings and document. ``variety``
    says how much hits should differ. With an encoder, ``vector`` is the question's, (1, dimension), and
    ``nearest_rows`` are the allowed rows with the nearest vectors, best first.
    """

    words: list[QuestionWord]
    total: float
    document_scores: Floats
    variety: float
    vector: Vectors | None
    row_scores: Floats
    nearest_rows: Rows


@component(
    "search",
    summary="passages and table rows by their words, their surroundings and their document's name, and by "
    "meaning where the base has an encoder",
)
@dataclass(frozen=True, slots=True)
class ContextualSearch:
    r"""Finds the passages and table rows that most likely contain the answer to a question.

    The score of a node is a sum of four parts:

    - *words*: BM25 of its text. A word in the headings, the caption or the title above it counts as
      ``heading`` occurrences, added before saturation (BM25F: Robertson, Zaragoza and Taylor, CIKM 2004).
    - *surroundings*, a share ``page`` of the score by words: BM25 of its page (of its section where there are no
      pages). The words of a question are often spread over a page: a heading, a lead-in, a row.
    - *document*: ``prior`` times how well the names in the question fit its document
      (:class:`DocumentNames`).
    - *meaning*, with an encoder: the cosine of its vector with the question's, times ``meaning_weight``, where a
      match of all words counts 1.

    A word counts by how surprising it is *in the documents that the question is about*: a company's name says much
    in a folder of reports and nothing within the company's own report. With ``P(d)`` the probability that the
    question is about document ``d``, ``n_d`` its number of passages and ``df_d`` the number with the word, the word
    has

    .. math:: p = \frac{n \sum_d P(d) \, df_d / n_d + \mu \, df / N}{n + \mu}, \qquad n = \sum_d P(d) \, n_d

    and the weight ``-ln p``. Where no name matches, ``P(d)`` is proportional to ``n_d`` and this is the usual
    idf. Weighted this way, a search in a folder ranks much as a search within the right document would; with the
    statistics of the folder it would not. ``mu`` keeps a document of one paragraph from explaining away its own
    words.

    From the best ``candidates`` rows, hits are then chosen one by one (:class:`CoverageSelector`): a document's score
    fades by ``fading`` with every hit from it, and the words that a hit covers count less for the next, by
    ``variety`` times ``mu / (n + mu)``. In a folder of short notes an answer is put together from several, while the
    pages of a long report are alternatives to each other.
    """

    snapshot: Snapshot
    encoder: Encoder | None = None
    k1: float = 1.2
    b: float = 0.75
    heading: float = 1.0
    page: float = 0.6
    prior: float = 4.0
    mu: float = 100.0
    meaning_weight: float = 0.54
    variety: float = 0.5
    fading: float = 0.7
    candidates: int = 200
    _latest: dict[Question, WeighedQuestion] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def build(cls, snapshot: Snapshot, encoder: Encoder | None, meaning: bool = True) -> ContextualSearch:
        """Return the search with its usual weights; without ``meaning`` vectors do not count."""
        return cls(snapshot, encoder if meaning else None)

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best nodes, best first; rows that repeat an earlier row's text come last."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        weighed = self.weigh_question(question)
        rows, scores = self.best_rows(weighed, max(2 * k + 10, self.candidates), allowed)
        distinct, repeated = split_repeats(self.snapshot, rows)
        candidates = rows[distinct[: self.candidates]]
        rest = np.append(distinct[self.candidates :], repeated)
        order, gains = self.coverage_selector(weighed, candidates).select(k, weighed.variety, self.fading)
        # Rows beyond the candidates keep their order; a score never rises from one hit to the next.
        rows = np.append(candidates[order], rows[rest])[:k]
        scores = np.append(gains, scores[rest])[:k]
        return as_hits(self.snapshot, rows, np.minimum.accumulate(scores))

    def weigh_question(self, question: Question) -> WeighedQuestion:
        """Return the question with its weights. The latest is remembered: a walk asks the same one at every hop."""
        weighed = self._latest.get(question)
        if weighed is None:
            weighed = self._weigh(question.text, self.snapshot.mask(question.scope, RETRIEVED_KINDS))
            self._latest.clear()
            self._latest[question] = weighed
        return weighed

    def _weigh(self, query: str, allowed: Mask) -> WeighedQuestion:
        names = DocumentNames(self.snapshot)
        document_scores = names.scores(query)
        probabilities = names.document_probabilities(document_scores, allowed)
        words = list(self._weigh_words(query, probabilities))
        total = sum(word.weight for word in words) or 1.0
        expected_passages = float(probabilities @ document_profile(self.snapshot).passages)
        vector, nearest = None, np.empty(0, dtype=np.int64)
        if self.encoder is not None:
            vector = self.encoder.encode([query], query=True)
            index = self.snapshot.vectors(self.encoder.name, self.encoder.dimension)
            nearest = index.search(vector, self.candidates, allowed)[0][0]
        return WeighedQuestion(
            words,
            total,
            document_scores,
            self.variety * self.mu / (expected_passages + self.mu),
            vector,
            self._row_scores(words, document_scores) / total,
            nearest[nearest >= 0],
        )

    def _weigh_words(self, query: str, probabilities: Floats) -> Iterator[QuestionWord]:
        text, titles = self.snapshot.postings("text"), self.snapshot.postings("title")
        units, lengths = context_units(self.snapshot), row_lengths(self.snapshot, "text")
        unit_norm = self._length_norm(units.lengths, units.average_length)
        terms = QueryTerms.from_text(query)
        for term, times in zip(terms.hashes.tolist(), terms.counts.tolist(), strict=True):
            rows, counts = text.rows_with(term)
            weight = times * self._surprise(rows, probabilities)
            rows, frequency = self._add_headings(rows, counts, titles.rows_with(term)[0])
            gains = frequency / (frequency + self._length_norm(lengths[rows], text.average_length))
            unit_frequency = np.bincount(units.unit_of_row[rows], frequency, units.count)
            yield QuestionWord(weight, rows, gains, unit_frequency / (unit_frequency + unit_norm))

    def _add_headings(self, rows: Rows, counts: NDArray[np.int64], titled: Rows) -> tuple[Rows, Floats]:
        """Return the rows that have a word or stand below one of ``titled``, and the word's frequency in each."""
        if not len(titled):
            return rows, counts.astype(np.float64)
        frequency = np.zeros(self.snapshot.size)
        frequency[rows] = counts
        frequency[mark_rows_below(self.snapshot, titled)] += self.heading
        rows = np.flatnonzero(frequency)
        return rows, frequency[rows]

    def _surprise(self, rows: Rows, probabilities: Floats) -> float:
        """Return ``-ln p`` of a word that ``rows`` contain."""
        profile = document_profile(self.snapshot)
        share_anywhere = (len(rows) + 0.5) / (profile.passages.sum() + 1)
        frequency = np.bincount(profile.document_of_row[rows], minlength=profile.documents)
        share_expected = float(probabilities @ (frequency / np.maximum(profile.passages, 1)))
        size = float(probabilities @ profile.passages)
        return -float(np.log((size * share_expected + self.mu * share_anywhere) / (size + self.mu)))

    def _length_norm(self, lengths: Floats, average: float) -> Floats:
        return self.k1 * (1 - self.b + self.b * lengths / (average or 1.0))

    def _row_scores(self, words: Sequence[QuestionWord], document_scores: Floats) -> Floats:
        """Return the score of every row without the part for its meaning."""
        units = context_units(self.snapshot)
        by_row, by_unit = np.zeros(self.snapshot.size), np.zeros(units.count)
        for word in words:
            by_row[word.rows] += word.weight * word.gains
            by_unit += word.weight * word.unit_gains
        scores = (1 - self.page) * by_row
        scores += self.page * by_unit[units.unit_of_row] * (row_lengths(self.snapshot, "text") > 0)
        matched = scores > 0
        scores[matched] += self.prior * spread_to_rows(document_scores, self.snapshot)[matched]
        return scores

    def best_rows(self, weighed: WeighedQuestion, k: int, allowed: Mask) -> tuple[Rows, Floats]:
        """Return the ``k`` best rows and their scores, each row judged on its own.

        With an encoder, rows that match by meaning alone are among them.
        """
        scores = weighed.row_scores
        rows = np.flatnonzero((scores > 0) & allowed)
        if self.encoder is None or weighed.vector is None:
            return best_rows(self.snapshot, rows, scores[rows], k)
        by_words = best_rows(self.snapshot, rows, scores[rows], max(k, self.candidates))[0]
        rows = np.union1d(by_words, weighed.nearest_rows)
        vectors = self.snapshot.vectors(self.encoder.name, self.encoder.dimension).vectors(rows)
        sums = scores[rows] + self.meaning_weight * cosines(vectors, weighed.vector[0])
        return best_rows(self.snapshot, rows, sums, k)

    def coverage_selector(self, weighed: WeighedQuestion, rows: Rows) -> CoverageSelector:
        """Return the selector among ``rows``: searched ones, in any order, each once."""
        units = context_units(self.snapshot).unit_of_row[rows]
        matched = np.zeros((len(rows), len(weighed.words)))
        for column, word in zip(matched.T, weighed.words, strict=True):
            column += self.page * word.unit_gains[units]
            places, matches = intersect_unordered(rows, word.rows)
            column[places] += (1 - self.page) * word.gains[matches]
        meaning = None
        if self.encoder is not None and weighed.vector is not None:
            vectors = self.snapshot.vectors(self.encoder.name, self.encoder.dimension).vectors(rows)
            meaning = SemanticGain(vectors, weighed.vector[0], self.meaning_weight)
        unit = 1 / weighed.total
        documents = document_profile(self.snapshot).document_of_row[rows]
        return CoverageSelector(
            matched,
            unit * np.array([word.weight for word in weighed.words]),
            unit * self.prior * weighed.document_scores[documents] * matched.any(axis=1),
            documents,
            meaning,
        )


def intersect_unordered(rows: Rows, ascending: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where ``rows``, distinct and in any order, agree with an ascending array: indices into each."""
    order = np.argsort(rows)
    in_rows, in_ascending = intersect(rows[order], ascending)
    return order[in_rows], in_ascending


def split_repeats(snapshot: Snapshot, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of ``rows`` with new text, and of those with exactly the terms of an earlier row."""
    starts, terms, counts = snapshot.postings("text").term_matrix(rows)
    seen: set[bytes] = set()
    is_new = np.ones(len(rows), dtype=np.bool_)
    for n, (start, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        content = terms[start:end].tobytes() + counts[start:end].tobytes()
        is_new[n] = content not in seen
        seen.add(content)
    return np.flatnonzero(is_new), np.flatnonzero(~is_new)
