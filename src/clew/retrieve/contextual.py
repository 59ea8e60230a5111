"""What surrounds a passage: the names above it, and the page or section it stands on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import cosines
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
    """The page, or where there are no pages the section, of every searched node.

    ``of`` has one entry per row of the snapshot: the number of its unit (0 for rows without terms).
    ``length`` counts the terms of each unit and ``average`` is their mean.
    """

    unit_of_row: NDArray[np.int64]
    lengths: Floats
    average_length: float

    @property
    def count(self) -> int:
        """How many units there are."""
        return len(self.lengths)


def context_units(snapshot: Snapshot) -> ContextUnits:
    """Return the units of a snapshot; made once per generation."""
    made: ContextUnits = snapshot.memoize("units/text", lambda: _units(snapshot), documents_only=True)
    return made


def _units(snapshot: Snapshot) -> ContextUnits:
    lengths = row_lengths(snapshot, "text")
    rows = np.flatnonzero(lengths)
    document, page = snapshot.column("document")[rows], snapshot.column("page")[rows]
    parent, kind = snapshot.column("parent"), snapshot.column("kind")[rows]
    above = parent[rows]
    in_table = (kind == KINDS.index(ROW)) & (above >= 0)
    above[in_table] = parent[above[in_table]]
    # A page is known by its document and number, a section by its row.
    place = np.where(page > 0, page, -above - 1)
    order = np.lexsort((place, document))
    document, place = document[order], place[order]
    new = (document[1:] != document[:-1]) | (place[1:] != place[:-1])
    of = np.zeros(snapshot.size, dtype=np.int64)
    of[rows[order]] = np.cumsum(np.r_[False, new])[: len(rows)]
    length = np.bincount(of[rows], lengths[rows]).astype(np.float64)
    return ContextUnits(of, length, float(length.mean()) if len(length) else 1.0)


def mark_rows_below(snapshot: Snapshot, above: Rows) -> NDArray[np.bool_]:
    """Return which searched rows stand below one of ``above``: sections, tables, documents."""
    ends = subtree_ends(snapshot)[above]
    change = np.bincount(above, minlength=snapshot.size + 1) - np.bincount(ends, minlength=snapshot.size + 1)
    found: NDArray[np.bool_] = (np.cumsum(change[:-1]) > 0) & (row_lengths(snapshot, "text") > 0)
    return found


def subtree_ends(snapshot: Snapshot) -> Rows:
    """Return for each row the end of its subtree: its descendants lie from ``row + 1`` up to there.

    Parsers number nodes in reading order, so what lies in between and is no descendant is a page, which is
    not searched. Made once per generation.
    """
    made: Rows = snapshot.memoize(
        "units/ends", lambda: _subtree_ends(snapshot.column("parent")), documents_only=True
    )
    return made


def _subtree_ends(parent: Rows) -> Rows:
    ends = np.arange(1, len(parent) + 1, dtype=np.int64)
    children = np.flatnonzero(parent >= 0)
    while True:
        before = ends.copy()
        np.maximum.at(ends, parent[children], ends[children])
        if np.array_equal(before, ends):
            return ends


@dataclass(frozen=True, slots=True)
class QuestionWord:
    """A word of the question: its weight; the rows that have it, ascending, and from 0 to 1 how well each
    matches; how well each unit matches."""

    weight: float
    rows: Rows
    gains: Floats
    unit_gains: Floats


@dataclass(frozen=True, slots=True)
class WeighedQuestion:
    """A question, weighed: its words, what each document is worth, how far hits should differ, its vector.

    ``total`` is what a row is worth that matches every word perfectly: the unit of scores. ``everywhere`` is
    what words, surroundings and document say of every row of the snapshot; ``near`` are the allowed rows whose
    vectors are nearest, best first, where there is an encoder.
    """

    words: list[QuestionWord]
    total: float
    document_scores: Floats
    variety: float
    vector: Vectors | None
    row_scores: Floats
    nearest_rows: Rows


@dataclass(frozen=True, slots=True)
class ContextualSearch:
    r"""Finds the passages and table rows that a question is most likely answered from.

    The score of a node adds up what its words, its surroundings, its document and its meaning say:

    - *words*: BM25 of its text. A word in the headings, the caption or the title above it counts as
      ``heading`` occurrences, added before saturation (BM25F: Robertson, Zaragoza and Taylor, CIKM 2004).
    - *surroundings*, a share ``page`` of the whole: BM25 of the page it stands on (of its section where there
      are no pages). The words of a question are often spread over a page: a heading, a lead-in, a row.
    - *document*: ``prior`` times how well the names in the question fit its document
      (:class:`DocumentNames`).
    - *meaning*, where there is an encoder: the cosine of its vector with the question's, times ``meaning``, a
      match of all words being 1.

    Words count by how surprising they are *in the documents that the question is about*: a company's name
    says much in a folder and nothing within the company's own report. With ``P(d)`` the probability that
    document ``d`` is meant, ``n_d`` its passages and ``df_d`` those with the word, the word has

    .. math:: p = \frac{n \sum_d P(d) \, df_d / n_d + \mu \, df / N}{n + \mu}, \qquad n = \sum_d P(d) \, n_d

    and the weight ``-ln p``. Where no name matches, ``P(d)`` is proportional to ``n_d`` and this is the usual
    idf. It keeps a search in a folder close to a search within the right document, as statistics of the
    folder would not. ``mu`` is what keeps a document of one paragraph from explaining away its own words.

    Of the best ``candidates`` hits are then chosen one by one (:class:`CoverageSelector`): what a document is worth
    fades with every hit from it, and the words that a hit covers count less for the next, by ``variety``
    times ``mu / (n + mu)``. In a folder of short notes an answer is put together of several; the pages of a
    long report are alternatives to each other.
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

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best nodes, best first; repetitions of a text come after everything else."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        asked = self.weigh_question(question)
        rows, scores = self.best_rows(asked, max(2 * k + 10, self.candidates), allowed)
        first, again = split_repeats(self.snapshot, rows)
        among, rest = rows[first[: self.candidates]], np.append(first[self.candidates :], again)
        chosen, gains = self.coverage_selector(asked, among).select(k, asked.variety, self.fading)
        # Beyond the candidates the plain order; a score never rises from one hit to the next.
        rows, scores = np.append(among[chosen], rows[rest])[:k], np.append(gains, scores[rest])[:k]
        return as_hits(self.snapshot, rows, np.minimum.accumulate(scores))

    def weigh_question(self, question: Question) -> WeighedQuestion:
        """Return the question, weighed. The latest is kept: a walk asks the same at every hop."""
        asked = self._latest.get(question)
        if asked is None:
            asked = self._weigh(question.text, self.snapshot.mask(question.scope, RETRIEVED_KINDS))
            self._latest.clear()
            self._latest[question] = asked
        return asked

    def _weigh(self, query: str, allowed: Mask) -> WeighedQuestion:
        names = DocumentNames(self.snapshot)
        documents = names.scores(query)
        focus = names.document_probabilities(documents, allowed)
        words = list(self._words(query, focus))
        total = sum(word.weight for word in words) or 1.0
        size = float(focus @ document_profile(self.snapshot).passages)
        vector, near = None, np.empty(0, dtype=np.int64)
        if self.encoder is not None:
            vector = self.encoder.encode([query], query=True)
            near = self.snapshot.vectors(self.encoder.name, self.encoder.dimension).search(
                vector, self.candidates, allowed
            )[0][0]
        return WeighedQuestion(
            words,
            total,
            documents,
            self.variety * self.mu / (size + self.mu),
            vector,
            self._everywhere(words, documents) / total,
            near[near >= 0],
        )

    def _words(self, query: str, focus: Floats) -> Iterator[QuestionWord]:
        text, titles = self.snapshot.postings("text"), self.snapshot.postings("title")
        around, lengths = context_units(self.snapshot), row_lengths(self.snapshot, "text")
        unit_norm = self._norm(around.lengths, around.average_length)
        terms = QueryTerms.from_text(query)
        for term, times in zip(terms.hashes.tolist(), terms.counts.tolist(), strict=True):
            rows, counts = text.rows_with(term)
            weight = times * self._surprise(rows, focus)
            rows, frequency = self._with_headings(rows, counts, titles.rows_with(term)[0])
            gains = frequency / (frequency + self._norm(lengths[rows], text.average_length))
            on_unit = np.bincount(around.unit_of_row[rows], frequency, around.count)
            yield QuestionWord(weight, rows, gains, on_unit / (on_unit + unit_norm))

    def _with_headings(self, rows: Rows, counts: NDArray[np.int64], named: Rows) -> tuple[Rows, Floats]:
        """Return the rows that have a word or stand below ``named``, and how often that counts."""
        if not len(named):
            return rows, counts.astype(np.float64)
        frequency = np.zeros(self.snapshot.size)
        frequency[rows] = counts
        frequency[mark_rows_below(self.snapshot, named)] += self.heading
        rows = np.flatnonzero(frequency)
        return rows, frequency[rows]

    def _surprise(self, rows: Rows, focus: Floats) -> float:
        """Return ``-ln p`` of a word that ``rows`` contain."""
        known = document_profile(self.snapshot)
        usual = (len(rows) + 0.5) / (known.passages.sum() + 1)
        held = np.bincount(known.document_of_row[rows], minlength=known.documents)
        there = float(focus @ (held / np.maximum(known.passages, 1)))
        size = float(focus @ known.passages)
        return -float(np.log((size * there + self.mu * usual) / (size + self.mu)))

    def _norm(self, lengths: Floats, average: float) -> Floats:
        return self.k1 * (1 - self.b + self.b * lengths / (average or 1.0))

    def _everywhere(self, words: Sequence[QuestionWord], documents: Floats) -> Floats:
        """Return the score of every row but for its meaning."""
        around = context_units(self.snapshot)
        by_row, by_unit = np.zeros(self.snapshot.size), np.zeros(around.count)
        for word in words:
            by_row[word.rows] += word.weight * word.gains
            by_unit += word.weight * word.unit_gains
        found = (1 - self.page) * by_row
        found += self.page * by_unit[around.unit_of_row] * (row_lengths(self.snapshot, "text") > 0)
        matched = found > 0
        found[matched] += self.prior * spread_to_rows(documents, self.snapshot)[matched]
        return found

    def best_rows(self, asked: WeighedQuestion, k: int, allowed: Mask) -> tuple[Rows, Floats]:
        """Return the ``k`` best rows, each judged on its own, and their scores; among them such as match by
        meaning alone."""
        scores = asked.row_scores
        rows = np.flatnonzero((scores > 0) & allowed)
        if self.encoder is None or asked.vector is None:
            return best_rows(self.snapshot, rows, scores[rows], k)
        wide = max(k, self.candidates)
        rows = np.union1d(best_rows(self.snapshot, rows, scores[rows], wide)[0], asked.nearest_rows)
        vectors = self.snapshot.vectors(self.encoder.name, self.encoder.dimension).vectors(rows)
        both = scores[rows] + self.meaning_weight * cosines(vectors, asked.vector[0])
        return best_rows(self.snapshot, rows, both, k)

    def _meaning(self, asked: WeighedQuestion, rows: Rows) -> SemanticGain | None:
        if self.encoder is None or asked.vector is None:
            return None
        vectors = self.snapshot.vectors(self.encoder.name, self.encoder.dimension).vectors(rows)
        return SemanticGain(vectors, asked.vector[0], self.meaning_weight)

    def coverage_selector(self, asked: WeighedQuestion, rows: Rows) -> CoverageSelector:
        """Return what speaks for each of ``rows``: searched ones, in any order, each once."""
        around = context_units(self.snapshot).unit_of_row[rows]
        matched = np.zeros((len(rows), len(asked.words)))
        for column, word in zip(matched.T, asked.words, strict=True):
            column += self.page * word.unit_gains[around]
            at, among = intersect_unordered(rows, word.rows)
            column[at] += (1 - self.page) * word.gains[among]
        unit = 1 / asked.total
        document = document_profile(self.snapshot).document_of_row[rows]
        return CoverageSelector(
            matched,
            unit * np.array([word.weight for word in asked.words]),
            unit * self.prior * asked.document_scores[document] * matched.any(axis=1),
            document,
            self._meaning(asked, rows),
        )


def intersect_unordered(rows: Rows, ascending: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where ``rows``, in any order and each once, are found in an ascending array: both indices."""
    order = np.argsort(rows)
    at, among = intersect(rows[order], ascending)
    return order[at], among


def split_repeats(snapshot: Snapshot, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of ``rows`` that have new words, and of those with exactly an earlier one's."""
    starts, terms, counts = snapshot.postings("text").term_matrix(rows)
    seen: set[bytes] = set()
    new = np.ones(len(rows), dtype=np.bool_)
    for n, (start, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        words = terms[start:end].tobytes() + counts[start:end].tobytes()
        new[n] = words not in seen
        seen.add(words)
    return np.flatnonzero(new), np.flatnonzero(~new)


# MERGED: The default search: a passage or table row judged with what surrounds it, and with whose document it is.
