"""The default search: a passage or table row judged with what surrounds it, and with whose document it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.retrieve.dense import cosines
from clew.retrieve.lexical import Terms, row_lengths
from clew.retrieve.names import DocumentNames, profile, spread
from clew.retrieve.ranking import as_hits, best_rows
from clew.retrieve.units import below, units
from clew.types import RETRIEVED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from clew.protocols import Encoder, Floats, Mask, Rows, Snapshot
    from clew.types import Hit, Question

    #: A word of the question: its weight, the rows that have it (above them counts), and how much.
    Word = tuple[float, Rows, Floats]


@dataclass(frozen=True, slots=True)
class Evidence:
    r"""Finds the passages and table rows that a question is most likely answered from.

    The score of a node adds up what its words, its surroundings, its document and its meaning say:

    - *words*: BM25 of its text. A word in the headings, the caption or the title above it counts as
      ``heading`` occurrences, added before saturation (BM25F: Robertson, Zaragoza and Taylor, CIKM 2004).
    - *surroundings*, a share ``page`` of the whole: BM25 of the page it stands on (of its section where there
      are no pages). The words of a question are often spread over a page: a heading, a lead-in, a row.
    - *document*: ``prior`` times how well the names in the question fit its document
      (:class:`DocumentNames`).
    - *meaning*, where there is an encoder: the cosine of its vector with the question's, a share ``meaning``.

    Words count by how surprising they are *in the documents that the question is about*: a company's name
    says much in a folder and nothing within the company's own report. With ``P(d)`` the probability that
    document ``d`` is meant, ``n_d`` its passages and ``df_d`` those with the word, the word has

    .. math:: p = \frac{n \sum_d P(d) \, df_d / n_d + \mu \, df / N}{n + \mu}, \qquad n = \sum_d P(d) \, n_d

    and the weight ``-ln p``. Where no name matches, ``P(d)`` is proportional to ``n_d`` and this is the usual
    idf. It keeps a search in a folder close to a search within the right document, as statistics of the
    folder would not. ``mu`` is what keeps a document of one paragraph from explaining away its own words.
    """

    snapshot: Snapshot
    encoder: Encoder | None = None
    k1: float = 1.2
    b: float = 0.75
    heading: float = 1.0
    page: float = 0.6
    prior: float = 4.0
    mu: float = 100.0
    meaning: float = 0.35
    candidates: int = 200

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best nodes, best first; repetitions of a text come after everything else."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED)
        rows, scores = self._best(question.text, 2 * k + 10, allowed)
        order = repeats_last(self.snapshot, rows)[:k]
        return as_hits(self.snapshot, rows[order], scores[order])

    def nearest(self, query: str, k: int, allowed: Mask) -> Rows:
        """Return at most ``k`` allowed rows, best first."""
        return self._best(query, k, allowed)[0]

    def _best(self, query: str, k: int, allowed: Mask) -> tuple[Rows, Floats]:
        scores = self.lexical(query, allowed)
        rows = np.flatnonzero((scores > 0) & allowed)
        if self.encoder is None:
            return best_rows(self.snapshot, rows, scores[rows], k)
        vector = self.encoder.encode([query], query=True)
        view = self.snapshot.vectors(self.encoder.name)
        wide = max(k, self.candidates)
        near = view.search(vector, wide, allowed)[0][0]
        rows = np.union1d(best_rows(self.snapshot, rows, scores[rows], wide)[0], near[near >= 0])
        similar = cosines(view.vectors(rows), vector[0])
        return best_rows(self.snapshot, rows, (1 - self.meaning) * scores[rows] + self.meaning * similar, k)

    def lexical(self, query: str, allowed: Mask) -> Floats:
        """Return for every row what words, surroundings and document say, 0 where no word matches.

        1 is a row that has every word, without end, and none of whose words its document's name explains.
        Only the scores of ``allowed`` rows mean something.
        """
        names = DocumentNames(self.snapshot)
        documents = names.scores(query)
        words = list(self._words(query, names.focus(documents, allowed)))
        by_row, by_unit = self._sum(words)
        found = (1 - self.page) * by_row + self.page * by_unit
        matched = found > 0
        found[matched] += self.prior * spread(documents, self.snapshot)[matched]
        return found / (sum(weight for weight, _, _ in words) or 1.0)

    def _words(self, query: str, focus: Floats) -> Iterator[Word]:
        text, titles = self.snapshot.postings("text"), self.snapshot.postings("title")
        terms = Terms.of(query)
        for term, times in zip(terms.hashes.tolist(), terms.counts.tolist(), strict=True):
            rows, counts = text.holders(term)
            weight = times * self._surprise(rows, focus)
            named, _ = titles.holders(term)
            yield weight, *self._with_headings(rows, counts, named)

    def _with_headings(self, rows: Rows, counts: NDArray[np.int64], named: Rows) -> tuple[Rows, Floats]:
        if not len(named):
            return rows, counts.astype(np.float64)
        frequency = np.zeros(self.snapshot.size)
        frequency[rows] = counts
        frequency[below(self.snapshot, named)] += self.heading
        rows = np.flatnonzero(frequency)
        return rows, frequency[rows]

    def _surprise(self, rows: Rows, focus: Floats) -> float:
        """Return ``-ln p`` of a word that ``rows`` contain."""
        known = profile(self.snapshot)
        usual = (len(rows) + 0.5) / (known.passages.sum() + 1)
        held = np.bincount(known.number[rows], minlength=known.documents)
        there = float(focus @ (held / np.maximum(known.passages, 1)))
        size = float(focus @ known.passages)
        return -float(np.log((size * there + self.mu * usual) / (size + self.mu)))

    def _sum(self, words: list[Word]) -> tuple[Floats, Floats]:
        """Return BM25 of every row and of the unit that every row is in."""
        around = units(self.snapshot)
        lengths = row_lengths(self.snapshot, "text")
        row_norm = self._norm(lengths, self.snapshot.postings("text").average_length)
        unit_norm = self._norm(around.length, around.average)
        by_row, by_unit = np.zeros(self.snapshot.size), np.zeros(around.count)
        for weight, rows, frequency in words:
            by_row[rows] += weight * frequency / (frequency + row_norm[rows])
            on_unit = np.bincount(around.of[rows], frequency, around.count)
            by_unit += weight * on_unit / (on_unit + unit_norm)
        return by_row, by_unit[around.of] * (lengths > 0)

    def _norm(self, lengths: Floats, average: float) -> Floats:
        return self.k1 * (1 - self.b + self.b * lengths / (average or 1.0))


def repeats_last(snapshot: Snapshot, rows: Rows) -> NDArray[np.int64]:
    """Return the indices of ``rows``, those whose words an earlier one already has, exactly, last."""
    starts, terms, counts = snapshot.postings("text").of(rows)
    seen: set[bytes] = set()
    first: list[int] = []
    again: list[int] = []
    for n, (start, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        words = terms[start:end].tobytes() + counts[start:end].tobytes()
        (again if words in seen else first).append(n)
        seen.add(words)
    return np.array(first + again, dtype=np.int64)
