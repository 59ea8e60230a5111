"""Step 3 of 4StepFocus (Boer et al., 2024, Algorithm 1, line 3): candidates in the order of the vectors of their
texts.

Beyond the paper, preferences that no triple can express are terms of the score.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from clew.core.arrays import union
from clew.core.component import Resources
from clew.core.trail import SortStep
from clew.core.types import Hit, Question
from clew.retrieve.nodes import (
    EMBEDDING_CAP,
    NodeBM25,
    NodeRanker,
    NodeTexts,
    NodeVectorSearch,
    RankedRows,
    answer_rows,
    describe_entity,
    node_hit,
    node_hits,
    node_texts,
    rank_and_pad,
)
from clew.triples.engine.patterns import Variable

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows
    from clew.core.protocols import PropertyGraph, Snapshot, Trail
    from clew.methods.focus.exact import ExactAnswers
    from clew.methods.focus.solutions import Solution

#: Candidates that are ranked at most, and that the trail shows.
MAX_RANKED, SHOWN_HITS = 200, 20
#: The weight of all preferences together, against 1 for the question itself.
PREFERENCE_WEIGHT = 0.5
#: What a candidate loses that is met by an unsure constant only, or misses a constraint that was given up.
UNMET_PENALTY = 0.5
#: Nodes that may be embedded for each place of the list that is to be filled up.
EMBEDDED_PER_PLACE = 3


@dataclass(frozen=True, slots=True, eq=False)
class SortedCandidates:
    """Candidates as hits, best first: those that meet the constraints, then those that only fill the list up.

    ``matching`` are all rows that meet the constraints, in their order, of which the first ``matching_hits`` are
    among ``hits``. ``ranked_by`` says by the id of each hit what ranked it (``vector 0.71``).
    """

    hits: Sequence[Hit]
    matching: RankedRows
    ranked_by: Mapping[str, str]
    has_model_scores: bool = False

    @property
    def matching_hits(self) -> int:
        """How many of the hits meet the constraints."""
        return min(len(self.matching.rows), MAX_RANKED)


@dataclass(frozen=True, slots=True)
class CandidateSorter:
    """VSS: sorts the candidates of a solution, and fills up to ``k_max`` with the nodes that come next.

    ``ranker_for`` makes the ranker of a graph's nodes by their texts: by vector, or by words where there is no
    encoder. Its second argument is how many nodes it may embed for one question, None for its own limit.
    """

    snapshot: Snapshot
    ranker_for: Callable[[NodeTexts, int | None], NodeRanker]
    k_max: int = 20

    @classmethod
    def build(cls, resources: Resources, sort: Literal["vector", "words"], k_max: int) -> CandidateSorter:
        """Return the sorter of a recipe. Raises UsageError if there is no encoder to sort by vector."""
        if sort == "words":
            return cls(resources.snapshot, lambda texts, cap: NodeBM25(texts), k_max)
        encoder = resources.require_encoder("focus(sort=vector)")
        return cls(
            resources.snapshot,
            lambda texts, cap: NodeVectorSearch(encoder, texts, EMBEDDING_CAP if cap is None else cap),
            k_max,
        )

    def sort(self, solution: Solution, question: Question, trail: Trail) -> SortedCandidates:
        """Return the candidates, sorted and filled up. A mounted graph has no texts: its candidates keep their order.

        Raises ModelError, RemoteError.
        """
        started, graph, rows = time.perf_counter(), solution.graph, solution.substitution.rows
        if graph.is_mounted:
            matching = np.empty(0, dtype=np.int64) if rows is None else rows
            order = _Order(
                "id", RankedRows(matching, np.zeros(len(matching))), RankedRows(matching[:0], np.empty(0)), {}
            )
        else:
            order = self._order(solution, question)
        hits = self._hits(graph, order)
        rows_of_hits = [*order.matching.rows[:MAX_RANKED].tolist(), *order.padding.rows.tolist()]
        ranked_by = {
            hit.node.id: f"{order.by} {order.own_scores.get(row, 0.0):.2f}"
            for hit, row in zip(hits, rows_of_hits, strict=True)
        }
        if graph.is_mounted and not solution.is_filtered:
            trail.add(SortStep(graph.name, passed_over="it is mounted"))
        else:
            seconds = time.perf_counter() - started
            trail.add(replace(order.to_step(graph.name), hits=tuple(hits[:SHOWN_HITS]), seconds=seconds))
        return SortedCandidates(hits, order.matching, ranked_by)

    def _order(self, solution: Solution, question: Question) -> _Order:
        texts = node_texts(self.snapshot, solution.graph)
        ranker = self.ranker_for(texts, None)
        padding_ranker = self.ranker_for(texts, EMBEDDED_PER_PLACE * self.k_max)
        rows = solution.substitution.rows
        candidates = np.empty(0, dtype=np.int64) if rows is None else rows
        matching, padding = rank_and_pad(
            ranker, question.text, candidates, self.k_max, _padding_rows(solution, question), padding_ranker
        )
        by_words = isinstance(ranker, NodeBM25)
        own_scores = {
            row: score
            for ranked in (matching, padding)
            for row, score in zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True)
        }
        if by_words:
            # Divided by the highest score, so that they weigh against preferences as cosines do.
            top = max([1.0, *own_scores.values()])
            own_scores = {row: score / top for row, score in own_scores.items()}
            matching = _with_unranked(matching, candidates)
        score = _Scorer(ranker, own_scores, solution.prepared.soft_words, solution.mean_scores)
        return _Order("words" if by_words else "vector", score(matching), score(padding), own_scores)

    def _hits(self, graph: PropertyGraph, order: _Order) -> list[Hit]:
        matching = RankedRows(order.matching.rows[:MAX_RANKED], order.matching.scores[:MAX_RANKED])
        if graph.is_mounted:
            entities = graph.entities(matching.rows)
            return [node_hit(graph.name, entity, describe_entity(entity), 0.0) for entity in entities]
        texts = node_texts(self.snapshot, graph)
        return [*node_hits(texts, matching), *node_hits(texts, order.padding)]


def list_exact_answers(exact: ExactAnswers, k_max: int) -> SortedCandidates:
    """Return exact answers in the order of the graph, without ranking them; where there are none, at most ``k_max``
    near misses."""
    answers = exact.graph.entities(exact.rows[:MAX_RANKED])
    near = [] if answers else exact.graph.entities(exact.near_misses(k_max))
    hits = [node_hit(exact.graph.name, entity, describe_entity(entity), 1.0) for entity in answers]
    near_hits = [node_hit(exact.graph.name, entity, describe_entity(entity), 0.0) for entity in near]
    ranked_by = {hit.node.id: "exact" for hit in hits} | {hit.node.id: "near miss" for hit in near_hits}
    return SortedCandidates([*hits, *near_hits], RankedRows(exact.rows, np.ones(len(exact.rows))), ranked_by)


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """The rows that meet the constraints and those that fill up, best first; ``own_scores`` are the parts of their
    scores that compare them with the question, ``by`` says how."""

    by: str
    matching: RankedRows
    padding: RankedRows
    own_scores: Mapping[int, float]

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
class _Scorer:
    """Scores rows by the question, by the constraints that they meet, and by preferences."""

    ranker: NodeRanker
    own_scores: Mapping[int, float]
    preferences: Sequence[str]
    mean_scores: Callable[[Rows], Floats]

    def __call__(self, ranked: RankedRows) -> RankedRows:
        if not len(ranked.rows):
            return ranked
        scores = np.array([self.own_scores.get(row, 0.0) for row in ranked.rows.tolist()])
        scores -= UNMET_PENALTY * (1 - self.mean_scores(ranked.rows))
        for preference in self.preferences:
            scores += PREFERENCE_WEIGHT / len(self.preferences) * self._compare(preference, ranked.rows)
        order = np.lexsort((np.arange(len(scores)), -scores.round(6)))
        return replace(ranked, rows=ranked.rows[order], scores=scores[order])

    def _compare(self, preference: str, rows: Rows) -> Floats:
        """Return how each row compares with a preference, (rows,), from 0 to 1."""
        ranked = self.ranker.rank(preference, len(rows), np.sort(rows))
        by_row = dict(zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True))
        scores = np.array([by_row.get(row, 0.0) for row in rows.tolist()])
        if isinstance(self.ranker, NodeBM25):
            scores /= max(scores.max(initial=0.0), 1e-9)
        clipped: Floats = np.clip(scores, 0.0, 1.0)
        return clipped


def _padding_rows(solution: Solution, question: Question) -> Rows | None:
    """Return the rows that may fill the list up, ascending: those that may answer and have a type of the target;
    None: all."""
    answers = answer_rows(solution.graph, tuple(sorted(question.scope.kinds or ())))
    target = solution.pattern.variable(solution.pattern.target)
    relaxed = {
        constraint.name for constraint in solution.substitution.relaxed if isinstance(constraint, Variable)
    }
    if not target.types or target.name in relaxed:
        return answers
    typed = union([solution.graph.rows_of_type(type) for type in target.types])
    return typed if answers is None else np.intersect1d(typed, answers)


def _with_unranked(ranked: RankedRows, rows: Rows) -> RankedRows:
    """Add the rows that share no word with the question behind those that do: they meet the constraints too."""
    others = np.setdiff1d(rows, ranked.rows)
    return replace(
        ranked,
        rows=np.concatenate([ranked.rows, others]),
        scores=np.concatenate([ranked.scores, np.zeros(len(others))]),
    )
