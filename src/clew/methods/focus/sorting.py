"""Candidates in order: by the vectors of their texts, with what can only be wished for as terms of the score
(4StepFocus: Boer et al., 2024, Algorithm 1, line 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.core.steps import SortStep
from clew.retrieve.node_texts import NodeTexts
from clew.retrieve.nodes import NodeBM25, NodeRanker, RankedRows, rank_and_pad

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows

#: What all wishes together weigh against the question itself.
WISHED = 0.5
#: What a candidate loses that is met by an unsure constant, or misses a constraint that was given up.
UNMET = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class SortedCandidates:
    """The candidates that meet the constraints, best first, and those that only fill the list up; ``by`` says what
    they were compared by (``vector``, ``words``), ``own`` the part of each score that this is."""

    matching: RankedRows
    padding: RankedRows
    by: str
    own_scores: dict[int, float]

    def to_step(self, graph: str) -> SortStep:
        """Return the step of the trail, without hits and seconds."""
        return SortStep(
            graph,
            by=self.by,
            kept_by_the_triples=len(self.matching.rows),
            filled_up=len(self.padding.rows),
            sorted=self.matching.counts,
            filling=self.padding.counts,
        )


@dataclass(frozen=True, slots=True)
class CandidateSorter:
    """Sorts candidates by how their texts compare with the question, and fills up to ``k_max``.

    ``ranking`` compares by vector, or by words where there is no encoder: scores by words are divided by the highest,
    so that they weigh against wishes as cosines do. Each wish is compared as the question is, and weighs its part of
    :data:`WISHED`. ``filling``, where some candidates meet the constraints, finds what stands below them: it may look
    at fewer nodes, and embed fewer.
    """

    texts: NodeTexts
    ranking: NodeRanker
    k_max: int = 20
    filling: NodeRanker | None = None

    def sort(
        self,
        question: str,
        candidates: Rows | None,
        wishes: Sequence[str],
        answers: Rows | None,
        shares: Callable[[Rows], Floats],
    ) -> SortedCandidates:
        """Return the candidates sorted. None: nothing restricts them, so that all only fill up.

        ``answers`` are the rows that may answer, None for all; ``shares`` says for some rows how far each meets the
        constraints, (n,) from 0 to 1.
        """
        rows = np.empty(0, dtype=np.int64) if candidates is None else candidates
        firm, more = rank_and_pad(self.ranking, question, rows, self.k_max, answers, self.filling)
        by = "words" if isinstance(self.ranking, NodeBM25) else "vector"
        top = max([1.0, *firm.scores.tolist(), *more.scores.tolist()]) if by == "words" else 1.0
        own = {
            row: score / top
            for one in (firm, more)
            for row, score in zip(one.rows.tolist(), one.scores.tolist(), strict=True)
        }
        firm = _without_words(firm, rows) if by == "words" else firm
        return SortedCandidates(
            self._scored(firm, own, wishes, shares), self._scored(more, own, wishes, shares), by, own
        )

    def _scored(
        self,
        ranked: RankedRows,
        own: dict[int, float],
        wishes: Sequence[str],
        shares: Callable[[Rows], Floats],
    ) -> RankedRows:
        if not len(ranked.rows):
            return ranked
        scores = np.array([own.get(row, 0.0) for row in ranked.rows.tolist()])
        scores -= UNMET * (1 - shares(ranked.rows))
        for wish in wishes:
            scores += WISHED / len(wishes) * self._wished(wish, ranked.rows)
        order = np.lexsort((np.arange(len(scores)), -scores.round(6)))
        return replace(ranked, rows=ranked.rows[order], scores=scores[order])

    def _wished(self, wish: str, rows: Rows) -> Floats:
        """Return how each row compares with a wish, (n,), from 0 to 1."""
        found = self.ranking.rank(wish, len(rows), np.sort(rows))
        scores = dict(zip(found.rows.tolist(), found.scores.tolist(), strict=True))
        made = np.array([scores.get(row, 0.0) for row in rows.tolist()])
        if isinstance(self.ranking, NodeBM25):
            made /= max(made.max(initial=0.0), 1e-9)
        kept: Floats = np.clip(made, 0.0, 1.0)
        return kept


def _without_words(ranked: RankedRows, rows: Rows) -> RankedRows:
    """Add the candidates that share no word with the question, behind those that do: they meet the constraints."""
    others = np.setdiff1d(rows, ranked.rows)
    return replace(
        ranked,
        rows=np.concatenate([ranked.rows, others]),
        scores=np.concatenate([ranked.scores, np.zeros(len(others))]),
    )
